"""INTERNAL. The section on fidelity: how alike a release is to the real rows, as NIST reports it, for any schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from markupsafe import Markup

from stratsynth.evaluation.report.figures import Panel, listing, panels
from stratsynth.evaluation.report.groups import group_name
from stratsynth.evaluation.scores.declared import RowScore, declared, with_mean
from stratsynth.evaluation.scores.matching import WARNING
from stratsynth.evaluation.tables import EVERYBODY, GROUP, OK, STAMP
from stratsynth.report.numbers import Numbers, short
from stratsynth.report.page import Figure, Section
from stratsynth.report.strip import Scale, legend

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.evaluations.evaluate import Evaluation

MOST = 12
DOTS = 400
"""The number of rows of each table in the picture."""


def fidelity(evaluation: Evaluation) -> Section:
    """The section."""
    told, matched = _told(evaluation), _matches(evaluation)
    detail = [*_raw(evaluation), *_declared(evaluation)], [*_correlations(evaluation), _levels(evaluation)]
    before, after = ([replace(figure, detail=True) for figure in figures] for figures in detail)
    figures = [*before, *told, *after, *_components(evaluation), matched]
    return Section("fidelity", "How alike it is", facts=list(_facts(evaluation)), figures=figures)


def _facts(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Broken rules, lost levels, and the mean of each declared score that has one; of everybody."""
    if evaluation.schema.rules:
        rules = evaluation.inconsistencies
        broken = rules[(rules["rule"] == "(any)") & (rules["scope"] == EVERYBODY)].iloc[0]
        yield "Rows that break a rule", f"{broken['synthetic_rows']:,} synthetic, {broken['real_rows']:,} real"
    lost = evaluation.levels[evaluation.levels["scope"] == EVERYBODY].groupby("kind")["levels"].sum()
    yield "Levels lost", f"{lost.get('lost', 0)}; invented: {lost.get('invented', 0)}; by group in levels.csv"
    for name, score in with_mean().items():
        if name in evaluation.declared:
            whole = score.overall(evaluation.declared[name], evaluation.by, evaluation.facts["few"])
            yield score.summary, short(whole[whole["scope"] == EVERYBODY]["value"].iloc[0])


def _raw(evaluation: Evaluation) -> list[Figure]:
    """Means and quartiles of the numbers themselves, farthest first."""
    known = evaluation.raw[evaluation.raw["value"].notna()].sort_values("value", ascending=False, kind="stable")
    rows = [
        [r["variable"], r["statistic"], r["real"], r["synthetic"], r["value"]]
        for r in known.head(MOST).to_dict("records")
    ]
    if not rows:
        return []
    return [
        listing(
            "Means and quartiles of the numbers themselves",
            "As they are in the files: neither binned nor clipped. Bins that are right can hold numbers that are not.",
            [("column", "text"), ("figure", "text"), ("real", "number"), ("synthetic", "number"), ("apart", "number")],
            rows, f"Apart: in standard deviations of the real numbers. The {MOST} farthest off; all are in raw.csv.",
        )
    ]  # fmt: skip


def _declared(evaluation: Evaluation) -> list[Figure]:
    """The scores that declare themselves: everybody's items, the largest first."""
    return [_table(score, evaluation.declared[score.name]) for score in declared() if score.name in evaluation.declared]


def _table(score: RowScore, frame: pd.DataFrame) -> Figure:
    here = frame[frame["scope"] == EVERYBODY].sort_values(score.order, ascending=False, kind="stable")
    names = [name for name, _, _ in score.columns]
    rows = [[row[name] for name in names] for row in here.head(MOST).to_dict("records")]
    columns = [(heading, kind) for _, heading, kind in score.columns]
    return listing(score.title, score.note, columns, rows, score.caption)


def _told(evaluation: Evaluation) -> list[Figure]:
    if evaluation.propensity is None:
        return []
    rows = [
        [r["model"], r["auc"], r["value"], r["null"]]
        for r in evaluation.propensity[evaluation.propensity["scope"] == EVERYBODY].to_dict("records")
    ]
    return [
        listing(
            "Can a model tell it from real rows?",
            "The chance that a model takes the synthetic one of two rows for the synthetic one: one half where it "
            "cannot tell, 1 where it always can.",
            [("model", "text"), ("chance", "number"), ("pMSE", "number"), ("pMSE by chance", "number")], rows,
            "pMSE is the mean squared distance of predictions from a coin's; 0 where rows cannot be told apart.",
        )
    ]  # fmt: skip


def _correlations(evaluation: Evaluation) -> list[Figure]:
    frame = evaluation.correlations
    if frame is None:
        return []
    here = frame[(frame["scope"] == EVERYBODY) & (frame["measure"] == "cramer") & (frame["status"] == OK)]
    here = here.sort_values("value", ascending=False, kind="stable")
    rows = [[r["one"], r["two"], r["real"], r["synthetic"], r["value"]] for r in here.head(MOST).to_dict("records")]
    return [
        listing(
            "Which columns should go together more, or less",
            "Cramér's V of two columns: 0 where one says nothing about the other, 1 where it says all.",
            [("column", "text"), ("and", "text"), ("real", "number"), ("synthetic", "number"), ("apart", "number")],
            rows, f"The {MOST} pairs that are farthest off; Pearson's and Kendall's are in correlations.csv.",
        )
    ]  # fmt: skip


def _levels(evaluation: Evaluation) -> Figure:
    frame = evaluation.levels
    scope = GROUP if evaluation.by else EVERYBODY
    here = frame[(frame["scope"] == scope) & (frame["levels"] > 0)].sort_values("value", ascending=False, kind="stable")
    rows = [
        [r["column"], group_name({c: r[c] for c in evaluation.by}, evaluation.schema) if evaluation.by else "everybody",
         r["kind"], str(r["names"]).replace("|", ", "), r["value"]]
        for r in here.head(MOST).to_dict("records")
    ]  # fmt: skip
    more = len(here) - len(rows)
    return listing(
        "Levels lost and invented",
        "Levels that real people of a group have and the release never shows, or the other way round. Those that "
        "concern the most people of a group come first" + (f"; {more:,} more are in levels.csv." if more > 0 else "."),
        [("column", "text"), ("group", "text"), ("kind", "text"), ("levels", "text"), ("share", "number")], rows,
        "Share: of the group's real rows, or for invented levels of its synthetic ones.",
    )  # fmt: skip


def _components(evaluation: Evaluation) -> list[Figure]:
    frame = evaluation.components
    if frame is None or "pc2" not in frame:
        return []
    scales = [Scale.over(frame[axis].tolist(), zero=False) for axis in ("pc1", "pc2")]
    drawings, numbers = [], []
    for series, name in enumerate(("real", "synthetic")):
        panel = Panel(*scales, x_name="first component", y_name="second component")
        here = frame[frame["table"] == name].head(DOTS)
        points = list(zip(here["pc1"].tolist(), here["pc2"].tolist(), strict=True))
        panel.points(series, points, 2)
        numbers += [[name, x, y] for x, y in points]
        drawings.append(panel.drawing(f"{name} rows", f"{len(points)} {name} rows on two principal components"))
    return [
        Figure(
            "Both tables from afar",
            "Some rows of each on the two axes along which real rows differ most. Clouds of one shape are a good sign.",
            picture=panels(drawings), legend=legend([]) if not drawings else Markup(""),
            numbers=Numbers("components", ["table", "pc1", "pc2"], numbers, STAMP),
        )
    ]  # fmt: skip


def _matches(evaluation: Evaluation) -> Figure:
    frame: pd.DataFrame = evaluation.matches
    rows = [
        [r["measure"].replace("_", " "), {"real": "in the data", "holdout": "held out"}.get(r["people"], r["people"]),
         r["matches"], r["base"], r["value"], r["similarity"]]
        for r in frame[frame["scope"] == EVERYBODY].to_dict("records")
    ]  # fmt: skip
    return listing(
        "Real people whom it seems to show", f"{WARNING[:1].upper()}{WARNING[1:]}.",
        [("match", "text"), ("people", "text"), ("matches", "number"), ("of", "number"), ("share", "number"),
         ("agreement", "number")], rows,
        "Of people whom nobody equals, how many some synthetic row equals in all columns, or in what neighbours know. "
        "Where people held out match as often as those in the data, matches do not come from their rows.",
    )  # fmt: skip
