"""INTERNAL. An evaluation in a page of text: the disparity card, the worst marginals, notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.evaluation.report.text import aligned, shown
from stratsynth.evaluation.scores.declared import with_mean
from stratsynth.evaluation.scores.raw import farthest, sentence
from stratsynth.evaluation.tables import EVERYBODY, FAR_OFF, GROUP, OK, STAMP

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.evaluations.evaluate import Evaluation

GROUPS = 30
"""The largest number of groups shown; the files have all."""
WORST = 5


def text(evaluation: Evaluation) -> str:
    """The page."""
    parts = [_heading(evaluation), _card(evaluation), _worst(evaluation), _notes(evaluation)]
    if evaluation.downstream is not None:
        parts.insert(3, _learned(evaluation))
    return "\n\n".join(part for part in parts if part)


def disparity_card(evaluation: Evaluation) -> pd.DataFrame:
    """Each group's error (mean L1 of the k-way marginals), worst first, beside that of the baselines; then everybody.

    `means` is the mean relative error of its means; `excess` is the error divided by that of the subsample, the error
    of chance alone in a group of this size.
    """
    keys = ["scope", *evaluation.by]
    wide = evaluation.workload
    card = wide[wide["table"] == "release"].drop(columns=["table", "cliques"]).rename(columns={"value": "error"})
    for name in (*evaluation.facts["beside"], "subsample", "independent"):
        other = wide[wide["table"] == name][[*keys, "value"]].rename(columns={"value": name})
        card = card.merge(other, on=keys, how="left")
    card["excess"] = card["error"] / card["subsample"].where(card["subsample"] > 0)
    if evaluation.parity_means is not None:
        means = evaluation.parity_means
        means = means[(means["table"] == "release") & (means["variable"] == "(all)")]
        card = card.merge(means[[*keys, "value"]].rename(columns={"value": "means"}), on=keys, how="left")
    order = card.assign(last=card["scope"] == EVERYBODY).sort_values(
        ["last", "error"], ascending=[True, False], na_position="last", kind="stable"
    )
    return card.loc[order.index].reset_index(drop=True)


def _heading(evaluation: Evaluation) -> str:
    facts = evaluation.facts
    left = facts["real_rows_left_out"] + facts["synthetic_rows_left_out"]
    lines = [
        f"{STAMP}.",
        f"{facts['real_rows']:,} real and {facts['synthetic_rows']:,} synthetic rows.",
        *([facts["weighted"]] if "weighted" in facts else []),
        f"Error: mean L1 distance (0 to 2) of {facts['cliques']:,} {facts['k']}-way marginals.",
    ]
    if (far := farthest(evaluation.raw)) is not None:
        lines.append(sentence(far))
    if left:
        lines.append(f"{left:,} rows are left out, as the schema says of values that it does not know.")
    return "\n".join(lines)


def _card(evaluation: Evaluation) -> str:
    card = disparity_card(evaluation)
    groups = card[card["scope"] == GROUP]
    hidden = len(groups) - GROUPS
    kept = card if hidden <= 0 else card[(card["scope"] == EVERYBODY) | (card.index < GROUPS)]
    others = [*evaluation.facts["beside"], "subsample", "independent"]
    head = [*evaluation.by, "real", "synthetic", "error", "95 % interval", *others, "excess"]
    means = "means" in card
    rows = [[*head, *(["means"] if means else []), "status"]]
    for row in kept.to_dict("records"):
        names = [str(row[name]) for name in evaluation.by] if row["scope"] == GROUP else _everybody(evaluation.by)
        ends = f"{shown(row['low'])} to {shown(row['high'])}" if not np.isnan(row["low"]) else "-"
        figures = [shown(row[name]) for name in others]
        excess = "-" if np.isnan(row["excess"]) else f"{row['excess']:.1f} x"
        more = [shown(row["means"])] if means else []
        counts = [f"{row['n']:,}", f"{row['n_synthetic']:,}"]
        rows.append([*names, *counts, shown(row["error"]), ends, *figures, excess, *more, row["status"]])
    lines = aligned(rows, len(evaluation.by))
    if hidden > 0:
        lines.append(f"... and {hidden:,} more groups in workload.csv.")
    lines += [
        "", "subsample: as far off as chance makes a perfect model of the real rows, sampled as often: excess 1.0 x.",
        f"It is the mean of {evaluation.facts['chance']['draws']} draws.",
        *(["far_off: half or more of what the tables say there is wrong."] if FAR_OFF in set(kept["status"]) else []),
        "independent: each column by itself from the real rows, without privacy.",
        *(["means: mean relative error of the means of all columns."] if means else []), *_parity(evaluation),
    ]  # fmt: skip
    return "\n".join(lines)


def _everybody(by: Sequence[str]) -> list[str]:
    return ["all", *[""] * (len(by) - 1)] if by else []


def _parity(evaluation: Evaluation) -> Iterator[str]:
    """Definition 10 of the release and the baselines, and the gap between groups."""
    for what, frame in (("means", evaluation.parity_means), ("marginals", evaluation.parity_marginals)):
        if frame is None:
            continue
        rows = frame[(frame["scope"] == "parity") & (frame["variable"] == "(all)")].set_index("table")
        figures = ", ".join(f"{name} {shown(rows.loc[name, 'value'])}" for name in rows.index)
        release = rows.to_dict("index")["release"]
        lost, undefined = release["lost"], release["undefined"]
        lost_note = f"; {lost} of groups that the release lost count as 1" if lost else ""
        note = f"; {undefined} without a true value are left out" if undefined else ""
        yield f"Parity error of {what}: {figures} ({release['terms']} terms{lost_note}{note})."


def _worst(evaluation: Evaluation) -> str:
    frame = evaluation.cliques
    lines = ["Worst marginals, everybody:", *_listed(frame[frame["scope"] == EVERYBODY], ())]
    groups = frame[(frame["scope"] == GROUP) & (frame["status"] == OK)]
    if evaluation.by and len(groups):
        lines += ["Worst marginals, in groups that are not small:", *_listed(groups, evaluation.by)]
    return "\n".join(lines)


def _listed(frame: pd.DataFrame, by: Sequence[str]) -> list[str]:
    rows = [
        [f"  {row['clique']}", *[f"{name}={row[name]}" for name in by], shown(row["value"])]
        for row in frame.head(WORST).to_dict("records")
    ]
    return aligned(rows, 1 + len(by))


def _learned(evaluation: Evaluation) -> str:
    """Accuracy, or error, of each model, by its training table."""
    frame = evaluation.downstream
    if frame is None:
        return ""
    numbers = [name for name in ("accuracy", "auc", "f1", "mean_absolute_error") if name in set(frame["metric"])]
    return "\n\n".join(_one_score(evaluation, frame[frame["metric"] == number], number) for number in numbers)


def _one_score(evaluation: Evaluation, frame: pd.DataFrame, number: str) -> str:
    here = frame[frame["scope"] == EVERYBODY]
    trained = [name for name in ("synthetic", "subsample", "real") if name in set(here["trained_on"])]
    rows = [["model", *trained]]
    for model in dict.fromkeys(here["model"]):
        figures = here[here["model"] == model].set_index("trained_on")["value"]
        rows.append([str(model), *[shown(figures.get(name, np.nan)) for name in trained]])
    what = f"Predicting {evaluation.facts['task']}, tested on {int(here['n'].iloc[0]):,} held-out rows"
    return "\n".join([f"{what}: {number.replace('_', ' ')} by what was trained on.", *aligned(rows, 1)])


def _means(evaluation: Evaluation) -> Iterator[str]:
    """A line for each declared score that has a mean."""
    for name, score in with_mean().items():
        if name in evaluation.declared:
            whole = score.overall(evaluation.declared[name], evaluation.by, evaluation.facts["few"])
            yield f"{score.summary}: {shown(whole[whole['scope'] == EVERYBODY]['value'].iloc[0])}."


def _notes(evaluation: Evaluation) -> str:
    """One line each on rules, telling apart, levels and matches."""
    lines = []
    rules = evaluation.inconsistencies
    broken = rules[(rules["rule"] == "(any)") & (rules["scope"] == EVERYBODY)].iloc[0]
    if evaluation.schema.rules:
        lines.append(f"Rows that break a rule: {broken['synthetic_rows']:,} synthetic, {broken['real_rows']:,} real.")
    if (told := evaluation.propensity) is not None:
        told = told[told["scope"] == EVERYBODY]
        aucs = ", ".join(f"{row['model']} {shown(row['auc'])}" for row in told.to_dict("records"))
        lines.append(f"Told apart from real rows (1/2 is not at all, 1 always): {aucs}.")
    lost = evaluation.levels[evaluation.levels["scope"] == EVERYBODY].groupby("kind")["levels"].sum()
    lines.append(f"Levels lost: {lost.get('lost', 0)}; invented: {lost.get('invented', 0)}; by group in levels.csv.")
    lines += list(_means(evaluation))
    for row in evaluation.matches[evaluation.matches["scope"] == EVERYBODY].to_dict("records"):
        what = row["measure"].replace("_", " ")
        lines.append(
            f"{what.capitalize()}, {row['people']}: {row['matches']:,} of {row['base']:,} people alone in this."
        )
    lines.append(f"Note: {evaluation.matches.attrs['warning']}.")
    return "\n".join(lines)
