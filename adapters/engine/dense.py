"""Message passing over one large junction tree, by sums along the axes of its tables.

`Forest` joins many small trees by index arrays; for a large tree these arrays would be longer than the tables, and each
step would read memory out of order. Both classes compute equal numbers, up to the order of their sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from stratsynth.adapters.engine.forest import Floats, Forest, Maps
from stratsynth.adapters.engine.structure import Clique, JunctionTree

LARGE = 2**13
"""Cells above which a tree is calibrated alone: index arrays then cost more than they save."""


def is_large(tree: JunctionTree) -> bool:
    """Return True if the junction tree has more than `LARGE` cells; its solution depends on its own problem alone."""
    return tree.cells > LARGE


def laid_out(trees: Sequence[JunctionTree]) -> Forest:
    """Return the message passing for these junction trees: a `Dense` for a single large one, else a `Forest` of all."""
    return Dense(trees[0]) if len(trees) == 1 and is_large(trees[0]) else Forest(trees)


class Dense(Forest):
    """One junction tree, each clique's table an array of its own shape."""

    alone = True

    def __init__(self, tree: JunctionTree) -> None:
        """Take one tree: reserve a range of cells for each table, and prepare the sums to and from every separator."""
        super().__init__([tree], levels=False)
        self._tree = tree
        self._shapes = [tree.shape(clique) for clique in tree.cliques]
        self._separators = [
            _Kept(clique, shape, separator)
            for clique, shape, separator in zip(tree.cliques, self._shapes, tree.separators, strict=True)
        ]
        """Projections of the cliques' tables, by clique, to the separator from the parent."""
        self._above = [
            None if parent < 0 else _Kept(tree.cliques[parent], self._shapes[parent], separator)
            for parent, separator in zip(tree.parents, tree.separators, strict=True)
        ]
        """Projections of the parents' tables, by clique, to the separator; None for the root."""

    def calibrated(self, potentials: Floats) -> tuple[Floats, Floats]:
        """Return two flat arrays: every cell's probability, and the tree's log partition sum as the only entry.

        `potentials` is a flat array of all cells' logs. On the way to the root each table becomes P(cell | separator),
        and the sum divided out is kept; on the way back each table is multiplied by that sum and the parent's
        probability of the separator.
        """
        cells = potentials.copy()
        tables, parents = self.views(cells), self._tree.parents
        # upward pass: children come after their parents, so the reverse order starts at the leaves
        sums: list[Floats] = []
        for i in range(len(tables) - 1, 0, -1):
            above = self._above[i]
            assert above is not None  # noqa: S101 - the root alone has no parent
            summed, message = self._separators[i].exponentiate(tables[i])
            sums.append(summed)
            tables[parents[i]] += above.spread(message)
        summed, constant = self._separators[0].exponentiate(tables[0])
        tables[0] /= summed
        # downward pass
        for i in range(1, len(tables)):
            above = self._above[i]
            assert above is not None  # noqa: S101 - the root alone has no parent
            # P(cell) = P(separator) x exp(cell) / sum of exp over the separator's cells
            share = self._separators[i].spread(above.sum(tables[parents[i]]))
            tables[i] *= share / sums.pop()
        return cells, constant.reshape(1)

    def maps(self, tables: Sequence[tuple[int, Clique]]) -> Maps:
        """Return the `Maps` of `tables`, pairs of a tree's number (ignored) and a clique of its columns."""
        return _Views(self, [clique for _, clique in tables])

    def views(self, cells: Floats, number: int = 0) -> list[Floats]:
        """Return a list of views, each clique's range of `cells` in the shape of its table; `number` is ignored."""
        return [
            cells[start : start + math.prod(shape)].reshape(shape)
            for start, shape in zip(self.offsets[number], self._shapes, strict=True)
        ]


class _Kept:
    """Projection of a table to some of its columns: sums down to them, and broadcasts back."""

    def __init__(self, whole: Clique, shape: tuple[int, ...], kept: Clique) -> None:
        self._summed = tuple(axis for axis, column in enumerate(whole) if column not in kept)
        inside = [column for column in whole if column in kept]
        self._order = tuple(inside.index(column) for column in kept)
        """Positions of the kept columns, in the order requested, among the kept axes of the table."""
        self._back = tuple(kept.index(column) for column in inside)
        self._wide = tuple(1 if axis in self._summed else size for axis, size in enumerate(shape))

    def sum(self, table: Floats) -> Floats:
        """Return a whole table summed over all columns but the kept ones, axes in the order of `kept`."""
        found: Floats = table.sum(axis=self._summed).transpose(self._order)
        return found

    def exponentiate(self, table: Floats) -> tuple[Floats, Floats]:
        """Replace the array `table`, in place, by exp(table - largest entry of its sum), so that nothing overflows.

        Returns two arrays: the sums of these exponentials, shaped to broadcast over the table; and the logarithms of
        the sums of the original exp(table), as a table of the kept columns.
        """
        top = table.max(axis=self._summed, keepdims=True)
        np.exp(np.subtract(table, top, out=table), out=table)
        sums = table.sum(axis=self._summed, keepdims=True)
        return sums, (np.log(sums) + top).squeeze(self._summed).transpose(self._order)

    def spread(self, kept: Floats) -> Floats:
        """Return the array `kept`, a table of the kept columns, as a view that broadcasts over the whole table."""
        return kept.transpose(self._back).reshape(self._wide)


class _Views(Maps):
    """Maps between consecutive tables and the cells of one large tree; small tables go through larger ones.

    The terms of a table whose columns another table contains are added to that table, and its sums are taken from it.
    Most columns are measured alone and again with others, so the tree's own, larger table is passed over once instead
    of twice.
    """

    def __init__(self, tree: Dense, cliques: Sequence[Clique]) -> None:
        self._of = tree
        whole = tree.trees[0]
        self._shapes = [whole.shape(clique) for clique in cliques]
        sizes = [math.prod(shape) for shape in self._shapes]
        ends = np.cumsum([0, *sizes])
        self._slices = [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]
        self._cells = int(ends[-1])
        self._inner: list[tuple[int, int, _Kept]] = []
        """Tables contained in another: their number, the other's number, the projection; smallest first."""
        self._outer: list[tuple[int, int, _Kept]] = []
        """All other tables: their number, the tree's clique that contains them, the projection."""
        # smallest first: a table has received all terms before it passes them on
        order = sorted(range(len(cliques)), key=lambda i: sizes[i])
        for place, i in enumerate(order):
            larger = next((j for j in order[place + 1 :] if set(cliques[i]) <= set(cliques[j])), None)
            if larger is not None:
                self._inner.append((i, larger, _Kept(cliques[larger], self._shapes[larger], cliques[i])))
            else:
                home = whole.home(cliques[i])
                names = whole.cliques[home]
                self._outer.append((i, home, _Kept(names, whole.shape(names), cliques[i])))

    def _tables(self, terms: Floats) -> list[Floats]:
        return [terms[place].reshape(shape) for place, shape in zip(self._slices, self._shapes, strict=True)]

    def spread(self, terms: Floats) -> Floats:
        """Return a flat array with one number for each cell of the tree: the sum of the tables' `terms` there.

        `terms` is a flat array of all tables' cells, one table after another.
        """
        cells = np.zeros(self._of.cells)
        homes, tables = self._of.views(cells), self._tables(terms.copy())
        for i, larger, kept in self._inner:
            tables[larger] += kept.spread(tables[i])
        for i, home, kept in self._outer:
            homes[home] += kept.spread(tables[i])
        return cells

    def gather(self, cells: Floats) -> Floats:
        """Return a flat array of the tables, one after another: sums of the tree's cells over all other columns.

        `cells` is a flat array of these.
        """
        found = np.empty(self._cells)
        homes, tables = self._of.views(cells), self._tables(found)
        for i, home, kept in self._outer:
            tables[i][...] = kept.sum(homes[home])
        for i, larger, kept in reversed(self._inner):
            tables[i][...] = kept.sum(tables[larger])
        return found
