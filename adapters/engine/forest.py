"""Message passing over many junction trees at once.

All tables of all trees lie one after another in one array, and every step of message passing is a few array operations
over all edges of the same depth, whichever tree they belong to. Eighteen strata thus cost little more than one,
structures may differ, and nothing is compiled but index arrays.

Rows are drawn from a calibrated tree a whole clique at a time: the rows that share a separator cell take the levels of
the clique's other columns from their conditional distribution, by the randomised rounding of `Draws`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine.drawing import Draws
from stratsynth.adapters.engine.structure import Clique, JunctionTree

if TYPE_CHECKING:
    from numpy.random import Generator


NEVER = -1e9
"""Log potential of an impossible cell: finite, so that differences of messages stay defined."""

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class _Level:
    """Index arrays of all edges of the trees' message passing whose child lies at one depth."""

    child: Indices
    """Cells of the children's tables, sorted by separator cell."""
    starts: Indices
    """Start of each separator cell's run in `child`."""
    runs: Indices
    """Separator cell of each entry of `child`."""
    parent: Indices
    """Cells of the parents' tables, sorted by separator cell."""
    parent_starts: Indices
    parent_runs: Indices


def projection(shape: tuple[int, ...], axes: Sequence[int]) -> Indices:
    """Return a flat array: for each cell of a table of `shape` (row-major) the number of its cell in that over `axes`.

    `axes` are numbers of axes, in the order of the smaller table's.
    """
    kept = [shape[axis] for axis in axes]
    cell = np.zeros(shape, dtype=np.intp)
    for axis, stride in zip(axes, _strides(kept), strict=True):
        view = [1] * len(shape)
        view[axis] = shape[axis]
        cell += stride * np.arange(shape[axis]).reshape(view)
    return cell.ravel()


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


class Maps(ABC):
    """Maps between some tables, one after another in one array, and the cells of the trees that contain them."""

    @abstractmethod
    def spread(self, terms: Floats) -> Floats:
        """Return a flat array with one number for each cell of the trees: the sum of the tables' `terms` there.

        `terms` is a flat array of all tables' cells, one table after another.
        """

    @abstractmethod
    def gather(self, cells: Floats) -> Floats:
        """Return a flat array of the tables, one after another: sums of the trees' cells over all other columns.

        `cells` is a flat array of these, one tree after another.
        """


class Forest:
    """Junction trees, the tables of all flattened into one array of cells."""

    alone = False
    """True if the forest is one large tree, never batched, so that its sums may be taken in another order."""

    def __init__(self, trees: Sequence[JunctionTree], *, levels: bool = True) -> None:
        """Reserve a range of cells for every table of the `trees`; with `levels`, index edges depth by depth."""
        self.trees = tuple(trees)
        self.offsets: list[list[int]] = []
        """First cell of each clique's table, by tree."""
        self.cells = 0
        roots: list[NDArray[np.intp]] = []
        for tree in self.trees:
            places = []
            for i, clique in enumerate(tree.cliques):
                cells = math.prod(tree.shape(clique))
                places.append(self.cells)
                if i == 0:
                    roots.append(np.arange(self.cells, self.cells + cells))
                self.cells += cells
            self.offsets.append(places)
        self._root = np.concatenate(roots) if roots else np.zeros(0, dtype=np.intp)
        self._root_starts = np.cumsum([0, *(len(r) for r in roots[:-1])]).astype(np.intp)
        self._levels = self._index() if levels else []

    @cached_property
    def owner(self) -> Indices:
        """Array with the number of the tree that each cell of the forest belongs to."""
        sizes = np.array([tree.cells for tree in self.trees], dtype=np.intp)
        return np.repeat(np.arange(len(sizes), dtype=np.intp), sizes)

    def _index(self) -> list[_Level]:
        """Return a list of `_Level`s, the edges' cells by depth, from the children of roots on.

        Messages of one depth run together.
        """
        edges: dict[int, list[tuple[int, int]]] = {}
        for number, tree in enumerate(self.trees):
            depth = [0] * len(tree.cliques)
            for i, parent in enumerate(tree.parents):
                if parent >= 0:
                    depth[i] = depth[parent] + 1
                    edges.setdefault(depth[i], []).append((number, i))
        return [self._level(edges[depth]) for depth in sorted(edges)]

    def _level(self, edges: Sequence[tuple[int, int]]) -> _Level:
        """Return the `_Level` of one depth's edges, pairs (tree number, clique number).

        It has places of their cells below and above, by separator cell.
        """
        below: list[tuple[Indices, Indices]] = []
        above: list[tuple[Indices, Indices]] = []
        sepcells = 0
        for number, i in edges:
            tree, separator = self.trees[number], self.trees[number].separators[i]
            for clique_number, side in ((i, below), (tree.parents[i], above)):
                clique = tree.cliques[clique_number]
                axes = [clique.index(column) for column in separator]
                sep = projection(tree.shape(clique), axes)
                # sorted by separator cell, each message is a sum over runs (reduceat)
                order = np.argsort(sep, kind="stable")
                side.append((order + self.offsets[number][clique_number], sep[order] + sepcells))
            sepcells += math.prod(tree.shape(separator))
        (child, runs), (parent, parent_runs) = (
            tuple(np.concatenate(arrays) for arrays in zip(*side, strict=True)) for side in (below, above)
        )
        first = np.arange(sepcells)
        starts, parent_starts = np.searchsorted(runs, first), np.searchsorted(parent_runs, first)
        return _Level(child, starts, runs, parent, parent_starts, parent_runs)

    def _beliefs(self, potentials: Floats) -> tuple[Floats, Floats]:
        """Return two flat arrays: all cells' log marginals by `potentials`, and the trees' log partition sums.

        The log marginals are up to a constant of each tree.
        """
        logs = potentials.copy()
        sent = []
        # collect: messages go from the leaves to the roots, the deepest edges first
        for level in reversed(self._levels):
            message = _logsum(logs[level.child], level.starts, level.runs)
            sent.append(message)
            # several children may share a parent: their messages add up, cell by cell
            np.add.at(logs, level.parent, message[level.parent_runs])
        sent.reverse()
        for level, message in zip(self._levels, sent, strict=True):
            # distribute: the parent's belief less the message that it received from this child
            back = _logsum(logs[level.parent], level.parent_starts, level.parent_runs) - message
            logs[level.child] += back[level.runs]
        if not len(self._root):
            return logs, np.zeros(0)
        root = logs[self._root]
        runs = self.owner[self._root]
        return logs, _logsum(root, self._root_starts, runs)

    def maps(self, tables: Sequence[tuple[int, Clique]]) -> Maps:
        """Return the `Maps` of the `tables`, each a pair of a tree's number and a clique of that tree's columns."""
        return _Scattered(self, tables)

    def calibrated(self, potentials: Floats) -> tuple[Floats, Floats]:
        """Return two flat arrays: every cell's probability, and each tree's log partition sum.

        `potentials` are all cells' logs, a flat array.
        """
        logs, constants = self._beliefs(potentials)
        return np.exp(logs - (constants[0] if len(self.trees) == 1 else constants[self.owner])), constants

    def views(self, cells: Floats, number: int = 0) -> list[Floats]:
        """Return views of tree `number`'s part of `cells`: a list of its cliques' tables, each in its shape."""
        tree = self.trees[number]
        return [
            cells[start : start + math.prod(shape)].reshape(shape)
            for start, shape in zip(self.offsets[number], map(tree.shape, tree.cliques), strict=True)
        ]

    def cells_of(self, number: int, clique: Clique) -> tuple[Indices, Indices]:
        """Return two index arrays: cells of a table that contains `clique`, and each one's cell in `clique`'s table.

        The first, of tree `number`, counts all cells of the forest, the second those of the flat table of `clique`.
        """
        tree = self.trees[number]
        home = tree.home(clique)
        whole = tree.cliques[home]
        axes = [whole.index(column) for column in clique]
        part = projection(tree.shape(whole), axes)
        start = self.offsets[number][home]
        return np.arange(start, start + len(part)), part


class _Scattered(Maps):
    """Maps by index arrays, for tables of many trees at once."""

    def __init__(self, forest: Forest, tables: Sequence[tuple[int, Clique]]) -> None:
        source, target, place = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)], 0
        for number, clique in tables:
            cells, part = forest.cells_of(number, clique)
            source.append(cells)
            target.append(part + place)
            place += math.prod(forest.trees[number].shape(clique))
        self._source, self._target = np.concatenate(source), np.concatenate(target)
        self._cells, self._terms = forest.cells, place

    def spread(self, terms: Floats) -> Floats:
        """Return a flat array with one number for each cell of the trees: the sum of the tables' `terms` there.

        `terms` is a flat array of all tables' cells, one table after another.
        """
        found = np.bincount(self._source, weights=terms[self._target], minlength=self._cells)
        return found.astype(np.float64, copy=False)

    def gather(self, cells: Floats) -> Floats:
        """Return a flat array of the tables, one after another: sums of the trees' cells over all other columns.

        `cells` is a flat array of these, one tree after another.
        """
        found = np.bincount(self._target, weights=cells[self._source], minlength=self._terms)
        return found.astype(np.float64, copy=False)


def _logsum(values: Floats, starts: Indices, runs: Indices) -> Floats:
    """Return an array, log(sum(exp)) of each run of the array `values`.

    `starts` is an array of the runs' first places, `runs` has the number of each value's run.
    """
    top = np.maximum.reduceat(values, starts)
    return top + np.log(np.add.reduceat(np.exp(values - top[runs]), starts))


def sample(
    tree: JunctionTree, calibrated: Sequence[Floats], n: int, rng: Generator
) -> dict[str, NDArray[np.integer[Any]]]:
    """Return a dict of level numbers by column: `n` rows drawn by `rng` from the tables of a junction tree's cliques.

    The arrays are of small types; `calibrated` are the tables, of probabilities, in the cliques' order.
    """
    rows: dict[str, NDArray[np.integer[Any]]] = {}
    sizes = dict(tree.sizes)
    draws = Draws(n, rng)
    for clique, separator, table in zip(tree.cliques, tree.separators, calibrated, strict=True):
        new = [column for column in clique if column not in separator]
        if not new:  # a model of no column at all
            continue
        axes = [clique.index(column) for column in (*separator, *new)]
        given = math.prod(sizes[column] for column in separator)
        conditional = np.transpose(table, axes).reshape(given, -1)
        place = [rows[column] for column in separator], [sizes[column] for column in separator]
        drawn = draws.draw(conditional, np.ravel_multi_index(*place) if separator else None)
        for column, codes in zip(new, np.unravel_index(drawn, [sizes[c] for c in new]), strict=True):
            rows[column] = codes.astype(np.min_scalar_type(sizes[column] - 1))
    return rows
