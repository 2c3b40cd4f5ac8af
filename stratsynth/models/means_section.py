"""Section of a report that shows estimates: each column's means, group by group, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stratsynth.report.numbers import Numbers, short
from stratsynth.report.page import Cell, Column, Figure, Points, Section, Table
from stratsynth.report.strip import Axis, Mark

if TYPE_CHECKING:
    import pandas as pd

STATUS = {"ok": "ok", "small": "noise outweighs sampling error", "not_estimable": "not estimable"}
"""Status of a mean -> words for readers."""
NOTE = (
    "The mean of a population of which each group's records would be a simple random sample lies in the interval in 95 "
    "of 100 cases: the interval includes the error of noise, of such sampling, and of uncertain weights; public shares "
    "that state no error are taken for exact. For a mean that is not estimable, the interval is the whole range "
    "between the public bounds. No interval includes the bias of clipping; estimates.parquet has more."
)
DESIGN = (
    "The design-based interval, by {}, is for the groups' own records, weighted by the true shares of the population "
    "that this survey was drawn from: it includes the error of noise and the design error of the shares, and not how "
    "the private records were drawn."
)


def means_section(table: pd.DataFrame, named: Callable[[str], str]) -> Section:
    """Return the Section of means with 95 % intervals, from `table`, the rows of `Estimate.estimates`.

    `named` is a function from a group's label to its name for readers.
    """
    columns = table.groupby("column", sort=False)
    by = [text for text in dict.fromkeys(table["design_by"]) if text]
    figures = [_means(str(name), rows.to_dict("records"), named, design=bool(by)) for name, rows in columns]
    return Section("means", "The means", text=[NOTE, *map(DESIGN.format, by)], figures=figures)


def _means(column: str, rows: list[dict[Any, Any]], named: Callable[[str], str], *, design: bool) -> Figure:
    """Return a Figure of one column's means, from `rows`, a list of dicts, lines of `Estimate.estimates`.

    A line is for all records, or for a group by its name for readers, a function `named` of its label. `design` is True
    for a column of design-based intervals.
    """
    scale = Axis.over([row[end] for row in rows for end in ("lower", "upper")], zero=False)
    lines = [
        [
            named(row["stratum"]),
            Points(named(row["stratum"]), [Mark("mean", row["value"], row["lower"], row["upper"], 1)], row["value"]),
            row["value"],
            Cell(f"{short(row['lower'])} to {short(row['upper'])}", row["lower"]),
            *([_between(row["design_lower"], row["design_upper"])] if design else []),
            max(0.0, row["size"]),
            STATUS[row["status"]],
        ]
        for row in rows
    ]
    heads = [
        Column("Group", "text"),
        Column("mean and interval", "picture", scale),
        Column("mean"),
        Column("interval of 95 %, simple random sampling"),
        *([Column("interval of 95 %, design-based", "text")] if design else []),
        Column("records, about", "count"),
        Column("status", "text"),
    ]
    shown = ["value", "lower", "upper", "status", "size", "noise", "sampling"]
    shown += ["design_lower", "design_upper"] if design else []
    return Figure(
        column,
        table=Table(f"Means of {column}.", heads, lines),
        numbers=Numbers(
            f"means of {column}",
            ["group", *shown],
            [[row["stratum"] or "everybody", *(row[key] for key in shown)] for row in rows],
        ),
    )


def _between(low: float, high: float) -> Cell:
    """Return the cell of a table with the text "low to high", in order of `low`; a dash if `low` is NaN."""
    return Cell("–") if math.isnan(low) else Cell(f"{short(low)} to {short(high)}", low)
