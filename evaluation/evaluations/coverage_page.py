"""INTERNAL. Chapter on the release's published intervals: the share that holds the real counts, by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stratsynth.evaluation.report.groups import group_name
from stratsynth.report.numbers import Numbers
from stratsynth.report.page import Column, Figure, Section, Table

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

TEXT = (
    "Each count of the release has an interval for its noise, which should contain the real count in 95 of 100 cases. "
    "The intervals are of one release: counts of one table share its noise, so a group's share may be low or high "
    "by chance."
)


def coverage_section(frame: pd.DataFrame | None, by: Sequence[str], schema: Schema) -> Section | None:
    """Return the Section on intervals, from `frame` by `interval_coverage`: a row a group, smallest share first.

    Groups, by the columns `by`, are named by the schema's labels; None if `frame` is None: no intervals were checked.
    """
    if frame is None:
        return None
    ordered = frame.sort_values("value", kind="stable", na_position="last")
    rows, numbers = [], []
    for row in ordered.to_dict("records"):
        name = group_name({column: row[column] for column in by}, schema)
        rows.append([name, row["n"], row["value"], row["not_estimable"]])
        numbers.append([name, row["n"], row["value"], row["low"], row["high"], row["not_estimable"]])
    table = Table(
        "Counts that no measured table gives have no interval.",
        [
            Column("Group", "text"),
            Column("intervals", "count"),
            Column("hold the real count", "share"),
            Column("counts without", "count"),
        ],
        rows,
    )
    columns = ["group", "intervals", "part that holds", "low", "high", "counts without an interval"]
    return Section(
        "intervals",
        "Whether its intervals hold",
        text=[TEXT],
        figures=[Figure("", table=table, numbers=Numbers("coverage of intervals", columns, numbers))],
    )
