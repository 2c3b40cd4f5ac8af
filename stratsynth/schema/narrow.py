"""A column where only some of its levels occur, as in a stratum that merges them.

Levels keep their names and their order, so that codes of the narrow column map to those of the wide one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from stratsynth.schema.columns import Categorical, Column, Numeric
from stratsynth.schema.text import MISSING


def narrow(column: Column, levels: Collection[str]) -> Column:
    """The column with these levels alone, at least two of them: with one it would not vary.

    Numeric bins that lie side by side stay numeric, with closer bounds. Bins with a gap between them are no
    interval, and one single number is none either: they become categories, whose numbers nobody can sum.
    """
    wanted = set(levels)
    kept = tuple(level for level in column.all_levels if level in wanted)
    labels = {level: label for level, label in column.labels.items() if level in wanted}
    own = column.not_applicable if column.not_applicable in kept else None
    if isinstance(column, Categorical):
        added = () if MISSING in column.levels else (MISSING,)
        listed = tuple(level for level in kept if level not in added)
        outside = column.outside if column.outside in kept else None
        return replace(column, levels=listed, labels=labels, not_applicable=own, outside=outside)
    bins = [code for code in map(column.codes.__getitem__, kept) if code < len(column.extents)]
    if bins and bins[-1] - bins[0] == len(bins) - 1:
        lower, upper = column.extents[bins[0]][0], column.extents[bins[-1]][1]
        if lower < upper:
            return _interval(column, bins[0], bins[-1], missing=MISSING in kept, own=own, labels=labels)
    return Categorical(levels=kept, labels=labels, not_applicable=own)


def _interval(
    column: Numeric, first: int, last: int, *, missing: bool, own: str | None, labels: dict[str, str]
) -> Numeric:
    return replace(
        column,
        lower=column.extents[first][0],
        upper=column.extents[last][1],
        edges=column.breaks[first : last + 2],
        bins=None,
        outside=column.outside if missing else "clip",
        missing=missing,
        not_applicable=own,
        labels=labels,
    )
