"""Columns of two linked tables as they were drawn: numbers by their quartiles, levels by their shares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.report.numbers import Numbers, percent, several
from stratsynth.report.page import Column, Figure, Row, Table
from stratsynth.schema.columns import Numeric
from stratsynth.schema.linked import MOST_DRAWN
from stratsynth.schema.temporal import Temporal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.release.drawn_rows import DrawnRows

    Array = NDArray[Any]

COUNTED = Numeric(0, MOST_DRAWN, integer=True, bins=1)
"""Column by which counts of child rows are spelt."""
LEVELS = 3
"""Largest number of levels of a categorical column that are named."""


def both_tables(rows: DrawnRows) -> Iterator[Figure]:
    """Yield a `Figure` on the columns of each table of `DrawnRows`: quartiles of numbers, shares of levels."""
    linked = rows.linked
    for of, schema in zip(linked.names, (linked.parent, linked.child), strict=True):
        made: list[Row] = []
        drawn = rows.tables[of].column_names  # without columns of other kinds alone, where one kind is fitted
        for name, column in ((name, column) for name, column in schema.columns.items() if name in drawn):
            if isinstance(column, Numeric):
                made.append([name, _number_words(column, rows.numbers(of, name))])
            else:
                codes = rows.codes(of, name)
                counts = np.bincount(codes[codes >= 0], minlength=column.size)
                made.append([name, _level_words(column, counts)])
        for name in linked.counts:  # those that the parent's own columns lack
            if name in drawn and name not in schema.columns:
                numbers = np.asarray(rows.tables[of].column(name), dtype=float)
                made.append([name, _number_words(COUNTED, numbers)])
        caption = f"{several(rows.tables[of].num_rows, 'row')}."
        heads = [Column("Column", "text"), Column("Values", "text")]
        table = Table(caption, heads, made, most=len(made))
        yield Figure(f"The table {of}", table=table, numbers=Numbers(f"columns of {of}", ["column", "values"], made))


def _number_words(column: Numeric, numbers: Array) -> str:
    """Return text on the array `numbers` of a numeric column: range, median, middle half, and the share without one."""
    real = numbers[~np.isnan(numbers)]
    if not len(real):
        return "no number"
    ends = np.quantile(real, (0, 0.25, 0.5, 0.75, 1), method="nearest")
    low, first, middle, last, top = (_spelt(column, float(end)) for end in ends)
    none = f"; {percent(1 - len(real) / len(numbers))} without a number" if len(real) < len(numbers) else ""
    return f"{low} to {top}, median {middle}, middle half {first} to {last}{none}"


def _spelt(column: Numeric, number: float) -> str:
    if isinstance(column, Temporal):
        return column.spell(number)
    return (f"{number:,.0f}" if column.integer else f"{number:,.6g}").replace("-", "−")


def _level_words(column: Any, counts: Array) -> str:
    """Return text on a categorical column: the most frequent of its levels, with meaning and share.

    `counts` is an array of numbers of rows by level.
    """
    order = np.argsort(-counts, kind="stable")[:LEVELS]
    total, labels = max(counts.sum(), 1), column.labels
    parts = []
    for code in order[counts[order] > 0]:
        level = column.all_levels[code]
        meaning = f" ({labels[level]})" if level in labels else ""
        parts.append(f"{level}{meaning} {percent(counts[code] / total)}")
    rest = int((counts > 0).sum()) - len(parts)
    return "; ".join([*parts, *([f"{several(rest, 'more level')}"] if rest > 0 else [])])
