"""Section of a report that shows estimates: each column's means, group by group, with their intervals."""

from __future__ import annotations

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
    "The true mean lies in the interval in 95 of 100 cases: the interval includes the error of noise, of sampling, "
    "and of uncertain weights. For a mean that is not estimable, the interval is the whole range between the public "
    "bounds. No interval includes the bias of clipping; estimates.parquet has more."
)


def means_section(table: pd.DataFrame, named: Callable[[str], str]) -> Section:
    """Return the Section of means with 95 % intervals, from `table`, the rows of `Estimate.estimates`.

    `named` turns a group's label into its name for readers.
    """
    columns = table.groupby("column", sort=False)
    figures = [_means(str(name), rows.to_dict("records"), named) for name, rows in columns]
    return Section("means", "The means", text=[NOTE], figures=figures)


def _means(column: str, rows: list[dict[Any, Any]], named: Callable[[str], str]) -> Figure:
    """Return a Figure of one column's means, from `rows` of estimates.

    A line is for all records, or for a group by its name for readers, `named`.
    """
    scale = Axis.over([row[end] for row in rows for end in ("lower", "upper")], zero=False)
    lines = [
        [
            named(row["stratum"]),
            Points(named(row["stratum"]), [Mark("mean", row["value"], row["lower"], row["upper"], 1)], row["value"]),
            row["value"],
            Cell(f"{short(row['lower'])} to {short(row['upper'])}", row["lower"]),
            max(0.0, row["size"]),
            STATUS[row["status"]],
        ]
        for row in rows
    ]
    heads = [
        Column("Group", "text"),
        Column("mean and interval", "picture", scale),
        Column("mean"),
        Column("interval of 95 %"),
        Column("records, about", "count"),
        Column("status", "text"),
    ]
    shown = ("value", "lower", "upper", "status", "size", "noise", "sampling")
    return Figure(
        column,
        table=Table(f"Means of {column}.", heads, lines),
        numbers=Numbers(
            f"means of {column}",
            ["group", *shown],
            [[row["stratum"] or "everybody", *(row[key] for key in shown)] for row in rows],
        ),
    )
