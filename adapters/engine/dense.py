"""Message passing over one large junction tree, by sums along the axes of its tables.

`Forest` joins many small trees by index arrays; of a large tree these arrays would be longer than the tables, and each
step a walk through memory. Both compute the same numbers, up to the order of their sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from stratsynth.adapters.engine.forest import Floats, Forest, Maps
from stratsynth.adapters.engine.structure import Clique, JunctionTree

LARGE = 2**13
"""Above as many numbers a tree is passed over alone: index arrays then cost more than they save."""


def is_large(tree: JunctionTree) -> bool:
    """Whether a tree is better passed over alone: by its own size, since a solution depends on its problem alone."""
    return tree.cells > LARGE


def laid_out(trees: Sequence[JunctionTree]) -> Forest:
    """A large tree by its tables, other trees by index arrays over all of them."""
    return Dense(trees[0]) if len(trees) == 1 and is_large(trees[0]) else Forest(trees)


class Dense(Forest):
    """One junction tree, each of its tables as an array of its own shape."""

    alone = True

    def __init__(self, tree: JunctionTree) -> None:
        """Lay the tables out, one after another."""
        super().__init__([tree], levels=False)
        self._tree = tree
        self._shapes = [tree.shape(clique) for clique in tree.cliques]
        self._separators = [
            _Kept(clique, shape, separator)
            for clique, shape, separator in zip(tree.cliques, self._shapes, tree.separators, strict=True)
        ]
        """Each clique's table, and what its parent sees of it."""
        self._above = [
            None if parent < 0 else _Kept(tree.cliques[parent], self._shapes[parent], separator)
            for parent, separator in zip(tree.parents, tree.separators, strict=True)
        ]
        """Each clique's parent's table, and what the clique sees of it."""

    def calibrated(self, potentials: Floats) -> tuple[Floats, Floats]:
        """Every cell's probability, and the tree's log partition sum, with one exponential a cell.

        On the way to the root each table becomes that of its cells given the separator, times the sum that was taken
        out; on the way back these are multiplied by what the parent says of the separator.
        """
        cells = potentials.copy()
        tables, parents = self.views(cells), self._tree.parents
        sums: list[Floats] = []
        for i in range(len(tables) - 1, 0, -1):
            above = self._above[i]
            assert above is not None  # noqa: S101 - the root alone has no parent
            summed, message = self._separators[i].exponentiate(tables[i])
            sums.append(summed)
            tables[parents[i]] += above.spread(message)
        summed, constant = self._separators[0].exponentiate(tables[0])
        tables[0] /= summed
        for i in range(1, len(tables)):
            above = self._above[i]
            assert above is not None  # noqa: S101 - the root alone has no parent
            share = self._separators[i].spread(above.sum(tables[parents[i]]))
            tables[i] *= share / sums.pop()
        return cells, constant.reshape(1)

    def maps(self, tables: Sequence[tuple[int, Clique]]) -> Maps:
        """Between tables of some cliques and the cells of the tree."""
        return _Views(self, [clique for _, clique in tables])

    def views(self, cells: Floats, number: int = 0) -> list[Floats]:
        """The table of each clique."""
        return [
            cells[start : start + math.prod(shape)].reshape(shape)
            for start, shape in zip(self.offsets[number], self._shapes, strict=True)
        ]


class _Kept:
    """Some columns of a table: summed down to these, and spread over it again."""

    def __init__(self, whole: Clique, shape: tuple[int, ...], kept: Clique) -> None:
        self._summed = tuple(axis for axis, column in enumerate(whole) if column not in kept)
        inside = [column for column in whole if column in kept]
        self._order = tuple(inside.index(column) for column in kept)
        """Where the kept columns, in the order that is asked for, stand among those of the table."""
        self._back = tuple(kept.index(column) for column in inside)
        self._wide = tuple(1 if axis in self._summed else size for axis, size in enumerate(shape))

    def sum(self, table: Floats) -> Floats:
        """The table over the kept columns alone."""
        found: Floats = table.sum(axis=self._summed).transpose(self._order)
        return found

    def exponentiate(self, table: Floats) -> tuple[Floats, Floats]:
        """Exponentials take the table's place, the largest of each sum taken out first, so that none overflows.

        Returns their sums, in the shape that `spread` gives to a table of the kept columns; and the logarithms of what
        the sums are with the largest, as a table of the kept columns.
        """
        top = table.max(axis=self._summed, keepdims=True)
        np.exp(np.subtract(table, top, out=table), out=table)
        sums = table.sum(axis=self._summed, keepdims=True)
        return sums, (np.log(sums) + top).squeeze(self._summed).transpose(self._order)

    def spread(self, kept: Floats) -> Floats:
        """The kept columns' table in the whole one's shape, as an array that can be added to it."""
        return kept.transpose(self._back).reshape(self._wide)


class _Views(Maps):
    """Between tables, one after another, and the cells of one tree; small tables go through larger ones, if they can.

    A table within another one is added to that one, which is then added to the tree's, and summed from it. Most columns
    are measured alone and again with others: a pass through the tree's table is needed for one of them.
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
        """Tables that go through a larger one, by number, smallest first: which one, and how."""
        self._outer: list[tuple[int, int, _Kept]] = []
        """The others: the clique of the tree, and how."""
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
        """What the terms of all tables add to each cell."""
        cells = np.zeros(self._of.cells)
        homes, tables = self._of.views(cells), self._tables(terms.copy())
        for i, larger, kept in self._inner:
            tables[larger] += kept.spread(tables[i])
        for i, home, kept in self._outer:
            homes[home] += kept.spread(tables[i])
        return cells

    def gather(self, cells: Floats) -> Floats:
        """All tables, summed down from the cells."""
        found = np.empty(self._cells)
        homes, tables = self._of.views(cells), self._tables(found)
        for i, home, kept in self._outer:
            tables[i][...] = kept.sum(homes[home])
        for i, larger, kept in reversed(self._inner):
            tables[i][...] = kept.sum(tables[larger])
        return found
