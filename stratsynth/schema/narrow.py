"""Columns restricted to some of their levels, as in a stratum that merges them.

Levels keep their names and their order, so that codes of the narrow column map to those of the wide one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from stratsynth.schema.columns import Categorical, Column
from stratsynth.schema.drawn import narrowed
from stratsynth.schema.nested import Nested
from stratsynth.schema.text import MISSING


def narrow(column: Column, levels: Collection[str]) -> Column:
    """Return `column` with only the categories named in `levels`, two or more: a `Categorical`, or still a `Numeric`.

    Adjacent numeric bins stay numeric, with closer bounds. Bins with a gap between them are no
    interval, and a single number is none either: they become categories, which have no sums.
    """
    wanted = set(levels)
    kept = tuple(level for level in column.all_levels if level in wanted)
    labels = {level: label for level, label in column.labels.items() if level in wanted}
    own = column.not_applicable if column.not_applicable in kept else None
    if isinstance(column, Categorical):
        added = () if MISSING in column.levels else (MISSING,)
        listed = tuple(level for level in kept if level not in added)
        if isinstance(column, Nested):
            return column.keep(listed)
        outside = column.outside if column.outside in kept else None
        return replace(column, levels=listed, labels=labels, not_applicable=own, outside=outside)
    numbers = [code for code in map(column.codes.__getitem__, kept) if code < len(column.extents)]
    if numbers and numbers[-1] - numbers[0] == len(numbers) - 1:
        lower, upper = column.extents[numbers[0]][0], column.extents[numbers[-1]][1]
        if lower < upper:
            missing = MISSING in kept
            return replace(
                column,
                **narrowed(column, numbers[0], numbers[-1]),
                lower=lower,
                upper=upper,
                edges=column.breaks[numbers[0] : numbers[-1] + 2],
                bins=None,
                spacing="even",
                spikes=column.spikes_within(lower, upper),
                special=tuple(word for word in column.special if word in kept),
                outside=column.outside if missing else "clip",
                missing=missing,
                not_applicable=own,
                labels=labels,
            )
    return Categorical(levels=kept, labels=labels, not_applicable=own)
