"""INTERNAL. First section of an evaluation's page: means, medians, deciles and shares of the numbers in both tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.report.figures import listing
from stratsynth.evaluation.report.groups import group_name
from stratsynth.evaluation.scores.baseline import RELEASE
from stratsynth.evaluation.scores.headline import DECILES, LACKING, MEAN, MEDIAN, P99, TENTHS, worst
from stratsynth.evaluation.tables import EVERYBODY, GROUP, OK, SMALL
from stratsynth.report.numbers import several, short, signed
from stratsynth.report.page import Cell, Column, Figure, Section, Table, Value

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.evaluations.evaluate import Evaluation

GROUPS, BRIEFLY = 200, 12
"""Largest number of groups' rows on the page, and in a terminal; the files have all."""
NOTE = (
    "Numbers as in the files, neither binned nor clipped; rows without a number are left out. Off: synthetic minus "
    "real, in per cent of the real figure; deciles: mean size of the nine errors, in per cent of the real P90 minus "
    "P10. A dash: per cent of 0. Errors of a perfect model's rows are chance: numbers.csv has intervals of means."
)


def headline(evaluation: Evaluation) -> Iterator[str]:
    """Yield sentences for a page's head: the columns of numbers that an evaluation's release gets most wrong.

    By mean, by median, and the mean of a group; none without numbers.
    """
    frame, few = _release(evaluation), evaluation.facts["few_numbers"]
    if frame is None:
        return
    for statistic in (MEAN, MEDIAN):
        if (row := worst(frame, statistic)) is not None:
            yield f"Of the {statistic}s of numbers, {_in_words(row)}.{_doubt(row, few)}"
    groups = frame[(frame["scope"] == GROUP) & (frame["statistic"] == MEAN)]
    known = groups[(groups["status"] == OK) & groups["value"].notna()]
    if len(known):
        row = max(known.to_dict("records"), key=lambda row: abs(row["value"]))
        who = group_name({c: row[c] for c in evaluation.by}, evaluation.schema)
        yield f"Of the means in groups of at least {few:,} numbers, {_in_words(row, who)}."


def _in_words(row: Mapping[Any, Any], who: str = "") -> str:
    """Return part of a sentence on `row`, a mapping of `number_errors`: the column, in the group `who`, its figures.

    They are the synthetic and the real one. `who` is a name, "" for everybody.
    """
    inside = f" in {who}" if who else ""
    return (
        f"that of {row['variable']}{inside} is farthest off: {short(row['synthetic'])}, where the real one is "
        f"{short(row['real'])}: {signed(row['value'])} %"
    )


def _doubt(row: Mapping[Any, Any], few: int) -> str:
    """Return a sentence of doubt if `row`, a mapping of `number_errors`, is small, of fewer than `few` numbers.

    Or "".
    """
    return f" With fewer than {few:,} numbers this is mostly chance." if row["status"] == SMALL else ""


def numbers_section(evaluation: Evaluation) -> Section | None:
    """Return an evaluation's Section on numbers, everybody's and each group's; None without columns of numbers."""
    if evaluation.numbers is None:
        return None
    frame = _farthest_first(evaluation.numbers)
    figures = [_everybody(evaluation, frame), _shares(evaluation, frame)]
    figures += [_groups(evaluation)] if evaluation.by else []
    return Section("numbers", "Numbers", figures=[*figures, _deciles(evaluation, frame)])


def _release(evaluation: Evaluation) -> pd.DataFrame | None:
    """Return the rows of `number_errors` on the release itself; None if the evaluation has no numbers."""
    frame = evaluation.numbers
    return None if frame is None else frame[frame["table"] == RELEASE]


def _farthest_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `frame` of `number_errors` sorted by column: the one whose mean the release gets most wrong comes first.

    Columns without a known mean are last.
    """
    means = frame[(frame["table"] == RELEASE) & (frame["scope"] == EVERYBODY) & (frame["statistic"] == MEAN)]
    order = means.assign(size=means["value"].abs()).sort_values("size", ascending=False, kind="stable")["variable"]
    place = {name: i for i, name in enumerate(order)}
    return frame.assign(place=frame["variable"].map(place)).sort_values("place", kind="stable").drop(columns="place")


def _off(row: Mapping[str, Any] | None) -> Cell:
    """Cell with the signed error `value` of `row`, a mapping of `number_errors`, sorted by its size.

    It is unknown for None.
    """
    value = None if row is None else float(row["value"])
    return Cell(signed(value), None if value is None or value != value else abs(value))  # noqa: PLR0124


def _by_statistic(frame: pd.DataFrame, *keys: str) -> dict[tuple[str, ...], dict[str, dict[str, Any]]]:
    """Mapping from a tuple of a row's values in the columns `keys` to a dict from statistic's name to that row, a dict.

    The rows are those of `frame`, by `number_errors`.
    """
    found: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for record in frame.to_dict("records"):
        row = {str(name): value for name, value in record.items()}
        found.setdefault(tuple(str(row[key]) for key in keys), {})[str(row["statistic"])] = row
    return found


def _named(evaluation: Evaluation, table: str) -> list[str]:
    """List of one text, the table's name on the page, if the evaluation compares several; else the empty list."""
    return [("this release" if table == RELEASE else table)] if evaluation.facts["beside"] else []


def _head(evaluation: Evaluation) -> list[Column]:
    return [Column("column", "text"), *([Column("of", "text")] if evaluation.facts["beside"] else [])]


def _main(rows: Mapping[str, Mapping[str, Any]]) -> list[Value]:
    """List of cells for one column of numbers: count; real and synthetic mean and its error; likewise of the median.

    Last are the errors of deciles and P99. `rows` maps statistics' names to rows of `number_errors`, mappings.
    """
    mean, median = rows[MEAN], rows[MEDIAN]
    return [
        int(mean["n"]),
        mean["real"],
        mean["synthetic"],
        _off(mean),
        median["real"],
        median["synthetic"],
        _off(median),
        rows[DECILES]["value"],
        _off(rows[P99]),
    ]


def _main_columns() -> list[Column]:
    names = ("mean", "synthetic", "off, %", "median", "synthetic", "off, %", "deciles, %", "P99, %")
    return [Column("numbers", "count"), *map(Column, names)]


def _everybody(evaluation: Evaluation, frame: pd.DataFrame) -> Figure:
    """Return a Figure, a table of everybody's means, medians and deciles: a row a column of numbers and release.

    `frame` has the numbers of the evaluation, sorted.
    """
    here = _by_statistic(frame[frame["scope"] == EVERYBODY], "variable", "table")
    rows = [[name, *_named(evaluation, table), *_main(found)] for (name, table), found in here.items()]
    table = Table("The means that are farthest off come first.", [*_head(evaluation), *_main_columns()], rows)
    return Figure("Means, medians and deciles, everybody", NOTE, table, numbers=table.numbers("numbers"))


def _shares(evaluation: Evaluation, frame: pd.DataFrame) -> Figure:
    """Return one Figure, a table of everybody's real and synthetic shares above thresholds or without a number.

    Its rows are those of `frame`, the numbers of `evaluation`, whose unit is points.
    """
    whole = frame[(frame["scope"] == EVERYBODY) & (frame["unit"] == "points")]
    rows = [
        [
            str(row["variable"]),
            *_named(evaluation, str(row["table"])),
            _with_commas(str(row["statistic"])),
            row["real"],
            row["synthetic"],
            _off(row),
        ]
        for record in whole.to_dict("records")
        if (row := {str(name): value for name, value in record.items()})
    ]
    heads = [*_head(evaluation), Column("share", "text"), Column("real", "share"), Column("synthetic", "share")]
    table = Table(
        f"Off: in percentage points. Thresholds: {evaluation.facts['thresholds']['rule']}. No number: missing values "
        "and codes, of all rows.",
        [*heads, Column("off")],
        rows,
    )
    return Figure("Shares above thresholds, and without a number", "", table, numbers=table.numbers("shares"))


def _with_commas(statistic: str) -> str:
    word, _, level = statistic.partition(" ")
    return "without a number" if statistic == LACKING else f"{word} {float(level):,.12g}"


def _groups(evaluation: Evaluation) -> Figure:
    """Return a Figure, a table of an evaluation's means, medians, deciles by group, the means farthest off first."""
    frame, few = _release(evaluation), evaluation.facts["few_numbers"]
    assert frame is not None  # noqa: S101 - the section has numbers
    inside = _by_statistic(frame[frame["scope"] == GROUP], *evaluation.by, "variable")
    claimed = {key: found for key, found in inside.items() if min(found[MEAN]["n"], found[MEAN]["n_synthetic"]) >= few}
    ordered = sorted(claimed.items(), key=lambda item: -np.nan_to_num(abs(item[1][MEAN]["value"]), nan=-1))
    rows = [
        [group_name(dict(zip(evaluation.by, key, strict=False)), evaluation.schema), key[-1], *_main(found)[:-1]]
        for key, found in ordered
    ]
    small = len(inside) - len(claimed)
    note = (
        f"The means that are farthest off come first. No claim is made of groups with fewer than {few:,} numbers in "
        f"either table: {several(small, 'pair')} of a group and a column, left out here; numbers.csv has them, "
        "marked small, and the P99, deciles and shares of every group."
    )
    table = Table(
        "",
        [Column("Group", "text"), Column("column", "text"), *_main_columns()[:-1]],
        rows[:GROUPS],
        most=BRIEFLY,
        ends=(BRIEFLY, 0),
        rest="more are in numbers.csv",
    )
    return Figure("Means, medians and deciles, group by group", note, table, numbers=table.numbers("numbers by group"))


def _deciles(evaluation: Evaluation, frame: pd.DataFrame) -> Figure:
    """Return a Figure, a table of everybody's deciles and P99 in both tables, for the page alone.

    `frame` has the numbers of the evaluation, sorted.
    """
    here = _by_statistic(frame[frame["scope"] == EVERYBODY], "variable", "table")
    rows: list[list[Value]] = []
    for (name, table), found in here.items():
        own = _named(evaluation, table)
        if table == RELEASE:
            rows.append(
                [name, *(["real rows"] if own else []), "real", *(found[one]["real"] for one in (*TENTHS, P99))]
            )
        rows.append([name, *own, "synthetic", *(found[one]["synthetic"] for one in (*TENTHS, P99))])
    heads = [(column.name, column.kind) for column in _head(evaluation)]
    listed = listing(
        "Deciles, everybody",
        "",
        [*heads, ("rows", "text"), *((one, "number") for one in (*TENTHS, P99))],
        rows,
        "P10: the smallest number with at least a tenth of all numbers, or of their weight, at or below it.",
    )
    return Figure(listed.title, listed.note, listed.table, numbers=listed.numbers, detail=True)
