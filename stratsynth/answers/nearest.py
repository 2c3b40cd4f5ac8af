"""Note on a question that no measured table covers: the groups that lack one, and a condition with an answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stratsynth.report.numbers import listed, several

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from stratsynth.answers.squares import Squares
    from stratsynth.answers.tables import Columns, Leaf

NAMED = 3
"""Largest number of groups, and of levels, that a note names."""


class Nearest(dict[tuple[str, ...], str]):
    """Columns of a question -> note that no measured table covers them; computed on first use."""

    def __init__(self, squares: Squares) -> None:
        """Keep the release's `Squares`, least squares that know all measured tables."""
        super().__init__()
        self._squares = squares
        self._tables = squares.tables

    def __missing__(self, columns: Columns) -> str:
        """Return and keep the note, words on why no table covers `columns`: strata without, or nearest tables."""
        own = [name for name in columns if name not in self._tables.by]
        lacking = [leaf for leaf in self._tables.leaves if not has_table(leaf, columns, self._tables.by)]
        if 0 < len(lacking) < len(self._tables.leaves):
            note = f"{self._without(own, lacking)}{self._remedy(lacking)}"
        else:
            held = self._squares.nearest(columns)
            near = f"; there are {'; '.join(' x '.join(some) for some in held)}" if held else ""
            note = f"no measured table covers {' x '.join(columns) or 'the rows'}{near}"
        self[columns] = note
        return note

    def _without(self, own: Sequence[str], lacking: Sequence[Leaf]) -> str:
        """Return words on the list `lacking` of strata, each a `Leaf`, without a table of the columns `own`."""
        more = [f"{len(lacking) - NAMED:,} more"] if len(lacking) > NAMED else []
        names = listed([*(leaf.label for leaf in lacking[:NAMED]), *more])
        people = math.fsum(leaf.people for leaf in lacking)
        size = f", of about {people:,.0f} in all by declared figures" if math.isfinite(people) else ""
        table = f"table of {' x '.join(own)}" if own else "table"
        return f"{several(len(lacking), 'group')} of {len(self._tables.leaves):,} without a {table}: {names}{size}"

    def _remedy(self, lacking: Sequence[Leaf]) -> str:
        """Return words: the condition on one column that leaves out `lacking` strata, each a `Leaf`, and fewest others.

        "" if none.
        """
        schema, found = self._tables.schema, dict[str, tuple[float, list[str]]]()
        for name in sorted(self._tables.by):
            out = {code for leaf in lacking for code in leaf.codes[name]}
            kept = [leaf for leaf in self._tables.leaves if out.isdisjoint(leaf.codes[name])]
            if kept:
                levels = [level for code, level in enumerate(schema.levels(name)) if code not in out]
                people = math.fsum(leaf.people for leaf in kept)
                found[name] = (people if math.isfinite(people) else len(kept), levels)
        if not found:
            return ""
        name = max(found, key=lambda each: found[each][0])
        levels = found[name][1]
        return f"; there is an answer where {name} is {listed(levels[:12], 'or')}{' ...' if len(levels) > 12 else ''}"


def has_table(leaf: Leaf, columns: Sequence[str], by: AbstractSet[str]) -> bool:
    """True if one table of stratum `leaf` has all `columns` but those in the set `by`, constant in the stratum."""
    wanted = {*(name for name in columns if name not in by), *leaf.merged(columns)}
    return any(wanted <= set(table.columns) for table in leaf.tables)
