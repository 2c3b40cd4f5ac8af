"""INTERNAL. Page of an evaluation: errors by group, the worst marginals, downstream use, fidelity."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stratsynth.evaluation.evaluations.card import disparity_card
from stratsynth.evaluation.evaluations.columns_page import single_columns
from stratsynth.evaluation.evaluations.coverage_page import coverage_section
from stratsynth.evaluation.evaluations.fidelity import fidelity
from stratsynth.evaluation.evaluations.guarantee import cited, guarantee
from stratsynth.evaluation.evaluations.numbers_page import headline, numbers_section
from stratsynth.evaluation.evaluations.use import use
from stratsynth.evaluation.lens.page import lens_section
from stratsynth.evaluation.report import BANNER
from stratsynth.evaluation.report.figures import from_frame, heat, ranked
from stratsynth.evaluation.report.groups import (
    GroupErrors,
    card,
    group_errors,
    group_name,
    smallest_groups,
    with_people,
    worst_first,
)
from stratsynth.evaluation.scores.baseline import RELEASE
from stratsynth.evaluation.scores.raw import farthest, sentence
from stratsynth.evaluation.tables import EVERYBODY, FAR_OFF, GROUP, OK
from stratsynth.report.numbers import several, short
from stratsynth.report.page import Figure, Page, Section, Value

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.evaluations.evaluate import Evaluation

WORST = 10
HEAT = 40
"""Largest number of groups, the columns of a heat map, by error; the files have all."""
GROUPS = 400
"""Largest number of groups, the rows of a card, by error; the files have all."""
BRIEF = ("numbers", "card", "worst", "use", "fidelity")
"""Chapters that a terminal shows."""
NUMBERS = (
    "Beside the card, in its numbers: from and to are the interval of the release's error; independent is each column "
    "by itself from the real rows, without privacy; times chance, the error over that of chance alone; means, the mean "
    "relative error of the means of all columns."
)
CHANCE = "subsample"
ONE_RUN = "Each release is a single run: another run has other noise, and other errors."


def evaluation_page(
    evaluation: Evaluation, *, name: str = "this release", certificate: Mapping[str, Any] | None = None
) -> Page:
    """Return the Page of an evaluation, a Section for each kind of score.

    Args:
        evaluation: The Evaluation; releases `beside` are columns of the disparity card.
        name: The release's name in the report.
        certificate: That of the release, a mapping, if there is one.
    """
    groups, everybody = everybody_and_groups(evaluation, name)
    sections = [
        numbers_section(evaluation),
        _card(evaluation, groups, everybody),
        *([_where(evaluation)] if evaluation.by else []),
        _worst(evaluation),
        single_columns(evaluation),
        None if evaluation.lens is None else lens_section(evaluation.lens, evaluation.by, evaluation.schema),
        None
        if evaluation.coverage is None
        else coverage_section(evaluation.coverage, evaluation.by, evaluation.schema),
        use(evaluation),
        fidelity(evaluation),
        guarantee(certificate),
        cited(certificate, evaluation.facts),
    ]
    facts = evaluation.facts
    return Page(
        title="What a synthetic table got right, and for whom",
        subtitle=f"{name[:1].upper()}{name[1:]}: {facts['real_rows']:,} real and {facts['synthetic_rows']:,} "
        f"synthetic rows, {several(facts['groups'], 'declared group')}",
        lead=_lead(evaluation, groups, everybody, name),
        sections=[replace(section, detail=section.name not in BRIEF) for section in sections if section is not None],
        internal=BANNER,
        made_with="Made by stratsynth evaluate. Every figure lies beside this file as CSV and Parquet, and all of "
        "them in evaluation.json.",
    )


def everybody_and_groups(evaluation: Evaluation, name: str) -> tuple[list[GroupErrors], GroupErrors]:
    """Return (list of GroupErrors, one a group; everybody's GroupErrors) of an evaluation.

    They hold errors of its release, which is shown under the label `name`, and of the tables beside it.
    """
    shown = {other: other for other in evaluation.facts["beside"]} | {RELEASE: name}
    return group_errors(evaluation.workload, evaluation.by, shown, CHANCE, evaluation.schema)


def in_a_paragraph(evaluation: Evaluation, name: str, other: str) -> str:
    """Return a paragraph of text on the smallest groups' errors in an evaluation's release, `name`, and in `other`."""
    what = "Stratification" if (name, other) == ("stratified", "vanilla") else None
    return f"{smallest_groups(*everybody_and_groups(evaluation, name), name, other, what)} {ONE_RUN}"


def _lead(evaluation: Evaluation, groups: list[GroupErrors], everybody: GroupErrors, name: str) -> list[str]:
    """Return a list of texts, an evaluation's first paragraphs, on the release called `name`.

    They tell the errors of the `groups`, a list of GroupErrors, and of `everybody`.
    """
    facts, whole = evaluation.facts, everybody.error(name).value
    lead = [
        *headline(evaluation),
        (
            "The error compares the release's tables with those of the real people. It is 0 where they are equal, and "
            f"2 where they have nothing in common; it is the mean over {facts['cliques']:,} tables of "
            f"{several(facts['k'], 'column')}. "
            f"Over everybody it is {short(whole, 2)}, where chance alone would leave {short(everybody.chance, 2)}."
        ),
    ]
    if "weighted" in facts:
        lead.append(str(facts["weighted"]))
    if (far := farthest(evaluation.raw)) is not None and far["variable"] not in _headlined(evaluation):
        lead.append(sentence(far))
    if gone := facts["real_rows_left_out"] + facts["synthetic_rows_left_out"]:
        lead.append(f"{gone:,} rows are left out, as the schema says of values that it does not know.")
    known = [s for s in groups if s.error(name).known and s.status in (OK, FAR_OFF)]
    if len(known) > 1:
        worst = max(known, key=lambda s: s.error(name).value)
        best = min(known, key=lambda s: s.error(name).value)
        beyond = worst.error(name).value / worst.chance if worst.chance > 0 else math.nan
        times = f", {beyond:.1f} times what chance alone would leave" if math.isfinite(beyond) else ""
        lead.append(
            f"Errors differ between groups: the error is {short(worst.error(name).value, 2)} for "
            f"{with_people(worst)}{times}, and {short(best.error(name).value, 2)} for {with_people(best)}."
        )
    lead += [in_a_paragraph(evaluation, name, other) for other in evaluation.facts["beside"] if groups]
    left = [s for s in groups if s.status not in (OK, FAR_OFF)]
    if left:
        lead.append(
            f"{several(len(left), 'declared group')} of {len(groups)} {'has' if len(left) == 1 else 'have'} too few "
            "rows in one of the tables for a verdict; they are shown all the same."
        )
    return lead


def _headlined(evaluation: Evaluation) -> set[str]:
    """Set of names of columns of numbers that the head of an evaluation's page mentions already."""
    return {row["variable"] for row in evaluation.facts["headline"].values() if row is not None}


def _card(evaluation: Evaluation, groups: list[GroupErrors], everybody: GroupErrors) -> Section:
    """Return an evaluation's Section with the disparity card: errors of the worst `groups` and of `everybody`.

    `groups` is a list of GroupErrors, `everybody` one more; what chance alone would leave is beside each.
    """
    kept = worst_first(groups)[:GROUPS]
    figures = [
        card(
            kept,
            everybody,
            title="Disparity card",
            note="Each group's error, and how much of it chance alone would leave in a group of that size: the error "
            f"of a perfect model of the real people, sampled as often, in the mean of "
            f"{evaluation.facts['chance']['draws']} draws."
            + (
                f" The {len(groups) - len(kept):,} groups with the smallest errors are in workload.csv."
                if len(kept) < len(groups)
                else ""
            ),
            interval="Lines: 95 % intervals of chance in the rows.",
            more=_more(evaluation),
            rest="more groups in workload.csv",
        )
    ]
    figures += [
        figure
        for frame, what in ((evaluation.parity_marginals, "marginals"), (evaluation.parity_means, "means"))
        if frame is not None and (figure := _parity(frame, what)) is not None
    ]
    if evaluation.areas is not None:
        figures.append(replace(_areas(evaluation, evaluation.areas), detail=True))
    return Section("card", "Who got what", figures=figures, notes=[NUMBERS])


def _more(evaluation: Evaluation) -> dict[str, Callable[[GroupErrors], Value]]:
    """Return a mapping from heading to a function from a group's GroupErrors to a number, for an evaluation's card."""
    records = disparity_card(evaluation).to_dict("records")
    rows = {tuple(str(r[c]) for c in evaluation.by if r["scope"] == GROUP): r for r in records}
    names = {
        "n_synthetic": "synthetic",
        "low": "from",
        "high": "to",
        "independent": "independent",
        "excess": "times chance",
        "means": "means",
    }

    def column(key: str) -> Callable[[GroupErrors], Value]:
        return lambda s: rows[tuple(s.levels.values())][key]

    return {name: column(key) for key, name in names.items() if key in records[0]}


def _parity(frame: pd.DataFrame, what: str) -> Figure | None:
    """Return a Figure, a table of the rows of scope "parity" in `frame` (Definition 10); None without any.

    `what`, "means" or "marginals", names the errors.
    """
    said = {
        "marginals": "Sum of the errors of all groups and, weighted by 1 / number of groups, the error of everybody.",
        "means": "The same sum for relative errors of the means of all variables.",
    }
    columns = (
        ("table", "of"),
        ("value", "parity error"),
        ("low", "low"),
        ("high", "high"),
        ("terms", "terms"),
        ("lost", "groups lost"),
        ("undefined", "left out"),
    )
    rows = frame[(frame["scope"] == "parity") & (frame["variable"] == "(all)")]
    if rows.empty:
        return None
    return from_frame(
        f"Parity error of the {what}",
        said[what],
        rows,
        [(key, name, "text" if key == "table" else "number") for key, name in columns],
        "A group without any row in the release counts with an error of 1; terms without a true value are left out.",
    )


def _areas(evaluation: Evaluation, frame: pd.DataFrame) -> Figure:
    """Return a Figure, an evaluation's k-marginal score of each area from `frame`, by `area_scores`, worst first."""
    area = evaluation.facts["area"]
    here = frame[(frame["table"] == RELEASE) & (frame["scope"] == GROUP)].sort_values("value", kind="stable")
    rows = [
        [group_name({area: r[area]}, evaluation.schema), r["value"], r["low"], r["high"]]
        for r in here.to_dict("records")
    ]
    note = "NIST's k-marginal score in each area: 1000 is perfect, 0 the worst. The worst first."
    return ranked("Score by area", note, rows[:GROUPS], [area], "score")


def _where(evaluation: Evaluation) -> Section:
    """Return the Section with a heat map of an evaluation: mean error of the marginals with a column, by group."""
    frame = evaluation.cliques[evaluation.cliques["scope"] == GROUP]
    by = list(evaluation.by)
    sized = frame.groupby(by, sort=False)["value"].mean().sort_values(ascending=False, na_position="last")
    kept = [key if isinstance(key, tuple) else (key,) for key in sized.index[:HEAT]]
    split = frame.assign(column=frame["clique"].str.split(",")).explode("column")
    means = split.groupby(["column", *by], sort=False)["value"].mean()
    labels = {key: "|".join(map(str, key)) for key in kept}
    columns = [c for c in evaluation.schema.names if c in set(split["column"]) and c not in by]
    values = {
        (column, label): float(means.get((column, *key), math.nan))
        for column in columns
        for key, label in labels.items()
    }
    order = sorted(columns, key=lambda c: -sum(v for (r, _), v in values.items() if r == c and math.isfinite(v)))
    hidden = len(sized) - len(kept)
    names = [(label, group_name(dict(zip(by, key, strict=True)), evaluation.schema)) for key, label in labels.items()]
    figure = heat(
        "Error by column and group",
        "The mean error of the tables that a column is part of. Groups and columns that are worst come first"
        + (f"; {hidden} more groups are in cliques.csv" if hidden > 0 else "")
        + ".",
        order,
        list(labels.values()),
        values,
        corner="Column",
        item="group",
        codes=(f"What the {several(len(names), 'code')} of groups stand for ({' | '.join(by)})", names),
    )
    return Section("where", "Where it goes wrong, for whom", figures=[figure])


def _worst(evaluation: Evaluation) -> Section:
    """Return the Section on the marginals in which an evaluation's release errs most: everybody's, single groups'."""
    frame = evaluation.cliques

    def rows(part: pd.DataFrame, *, grouped: bool) -> list[list[str | float]]:
        return [
            [
                row["clique"].replace(",", ", "),
                *([group_name({c: row[c] for c in evaluation.by}, evaluation.schema)] if grouped else []),
                row["value"],
                row["low"],
                row["high"],
            ]
            for row in part.head(WORST).to_dict("records")
        ]

    whole = frame[(frame["scope"] == EVERYBODY) & (frame["status"] == OK)]
    inside = frame[(frame["scope"] == GROUP) & (frame["status"] == OK)]
    note = f"The {WORST} tables that are farthest off, of {evaluation.facts['cliques']:,}."
    figures = [ranked("Over everybody", note, rows(whole, grouped=False), ["Columns"], "error")] if len(whole) else []
    if evaluation.by and len(inside):
        what = "Tables of any group that is not small."
        figures.append(ranked("In single groups", what, rows(inside, grouped=True), ["Columns", "Group"], "error"))
    return Section("worst", "The worst tables", figures=figures)
