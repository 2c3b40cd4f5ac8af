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

    def beliefs(self, potentials: Floats) -> tuple[Floats, Floats]:
        """Log marginals of every clique, up to the tree's constant, and that constant: its log partition sum."""
        logs = potentials.copy()
        tables = self.views(logs)
        sent: dict[int, Floats] = {}
        for i in range(len(tables) - 1, 0, -1):
            above = self._above[i]
            assert above is not None  # noqa: S101 - the root alone has no parent
            sent[i] = self._separators[i].logsum(tables[i])
            tables[self._tree.parents[i]] += above.spread(sent[i])
        for i in range(1, len(tables)):
            above = self._above[i]
            assert above is not None  # noqa: S101 - the root alone has no parent
            back = above.logsum(tables[self._tree.parents[i]]) - sent[i]
            tables[i] += self._separators[i].spread(back)
        return logs, self._separators[0].logsum(tables[0]).reshape(1)

    def maps(self, tables: Sequence[tuple[int, Clique]]) -> Maps:
        """Between tables of some cliques and the cells of the tree."""
        return _Views(self, [clique for _, clique in tables])

    def views(self, cells: Floats) -> list[Floats]:
        """The table of each clique."""
        return [
            cells[start : start + math.prod(shape)].reshape(shape)
            for start, shape in zip(self.offsets[0], self._shapes, strict=True)
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

    def logsum(self, table: Floats) -> Floats:
        """log(sum(exp)), the largest of each sum taken out first, so that nothing under- or overflows."""
        if not self._summed:
            return table.transpose(self._order)
        top = table.max(axis=self._summed, keepdims=True)
        summed = np.log(np.exp(table - top).sum(axis=self._summed, keepdims=True)) + top
        found: Floats = summed.squeeze(self._summed).transpose(self._order)
        return found

    def spread(self, kept: Floats) -> Floats:
        """The kept columns' table in the whole one's shape, as an array that can be added to it."""
        return kept.transpose(self._back).reshape(self._wide)


class _Views(Maps):
    """Between tables, one after another, and the cells of one tree."""

    def __init__(self, tree: Dense, cliques: Sequence[Clique]) -> None:
        self._of = tree
        whole = tree.trees[0]
        self._homes = [whole.home(clique) for clique in cliques]
        self._kept = [
            _Kept(whole.cliques[home], whole.shape(whole.cliques[home]), clique)
            for home, clique in zip(self._homes, cliques, strict=True)
        ]
        self._shapes = [whole.shape(clique) for clique in cliques]
        ends = np.cumsum([0, *(math.prod(shape) for shape in self._shapes)])
        self._slices = [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]
        self._cells = int(ends[-1])

    def spread(self, terms: Floats) -> Floats:
        """What the terms of all tables add to each cell."""
        cells = np.zeros(self._of.cells)
        tables = self._of.views(cells)
        for home, kept, place, shape in zip(self._homes, self._kept, self._slices, self._shapes, strict=True):
            tables[home] += kept.spread(terms[place].reshape(shape))
        return cells

    def gather(self, cells: Floats) -> Floats:
        """All tables, summed down from the cells."""
        found, tables = np.empty(self._cells), self._of.views(cells)
        for home, kept, place, shape in zip(self._homes, self._kept, self._slices, self._shapes, strict=True):
            found[place].reshape(shape)[...] = kept.sum(tables[home])
        return found
