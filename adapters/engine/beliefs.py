"""Sum-product on a junction tree with evidence for every row, and drawing of the columns that are not known.

Messages go from the leaves to the root; a clique's message depends on a row only through the known codes, and the kinds
of allowed codes, in the cliques below. Rows that agree in these form a group, and messages are computed by group. Then
rows are drawn from the root to the leaves, each clique's new columns given those above.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.engine.forest import NEVER, Floats, Indices, projection
from stratsynth.adapters.engine.sampling import draw
from stratsynth.adapters.engine.structure import Clique, JunctionTree, junction_tree

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

MOST_AT_ONCE = 2**21
"""Number of cells that one array operation works on, 16 MB; more groups are taken in parts."""
EXPECTED = 2**14
"""Number of rows for which the root is chosen."""

Factor = tuple[Clique, Floats]
"""Log potentials of the cells of some columns; -inf for a cell that cannot be."""


class Beliefs:
    """Product of factors, prepared for rows whose columns `known` are known."""

    def __init__(
        self,
        sizes: Sequence[tuple[str, int]],
        factors: Sequence[Factor],
        known: Sequence[str],
        limited: Sequence[Clique] = (),
    ) -> None:
        """Join the factors, and the sets of columns `limited`, into one tree over the columns `sizes`, with levels."""
        cliques = tuple(dict.fromkeys([*(clique for clique, _ in factors), *limited]))
        tree = junction_tree(tuple(sizes), cliques)
        levels, evidence = dict(sizes), set(known)
        tables = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
        for clique, table in factors:
            home = tree.home(clique)
            tables[home] = tables[home] + _spread(table, clique, tree.cliques[home])
        homes = [tree.home(clique) for clique in limited]
        parents, order = _rooted(tree, evidence)
        self.nodes: list[_Node] = []
        """Nodes in an order in which every one comes after its parent."""
        place = {clique: i for i, clique in enumerate(order)}
        for number in order:
            above, own = parents[number], tree.cliques[number]
            separator = () if above < 0 else tuple(c for c in own if c in tree.cliques[above])
            node = _Node.of(own, separator, evidence, tables[number], levels)
            self.nodes.append(node)
            if above >= 0:
                node.above = place[above]
                parent = self.nodes[node.above]
                parent.children.append((len(self.nodes) - 1, parent.cells_of(node.shared, levels)))
        for number, (clique, home) in enumerate(zip(limited, homes, strict=True)):
            node = self.nodes[place[home]]
            node.limits.append((number, node.cells_of(tuple(clique), levels)))

    def draw(
        self,
        given: Mapping[str, NDArray[np.intp]],
        kinds: Sequence[NDArray[np.intp]],
        logs: Sequence[Floats],
        n: int,
        rng: Generator,
    ) -> tuple[dict[str, NDArray[np.intp]], NDArray[np.bool_]]:
        """Return the codes drawn by `rng` of all columns but the known ones, and a mask of rows of probability 0.

        `given` are the known codes of n rows by column; `kinds` and `logs`, of each set of limited columns, the kind of
        each row and the kinds' tables (kinds, cells), 0 where allowed and -inf elsewhere.
        """
        groups = self._groups(given, kinds, n)
        messages: dict[int, Floats] = {}
        for i in range(len(self.nodes) - 1, 0, -1):
            node, group = self.nodes[i], groups[i]
            message = np.empty((len(group.first), node.table.shape[1]))
            step = max(1, MOST_AT_ONCE // math.prod(node.table.shape[1:]))
            for start in range(0, len(message), step):
                part = slice(start, start + step)
                message[part] = _log_sum(self._belief(node, group, messages, logs, part))
            # a constant of each group changes no probability; it keeps numbers near 0
            top = message.max(axis=1, keepdims=True)
            messages[i] = message - np.where(np.isfinite(top), top, 0.0)
        drawn: dict[str, NDArray[np.intp]] = {}
        impossible = np.zeros(n, dtype=bool)
        for i, node in enumerate(self.nodes):
            cell, never = self._cells(node, groups[i], drawn, messages, logs, n, rng)
            if i == 0:
                impossible = never
            drawn.update(zip(node.new, np.unravel_index(cell, node.new_shape), strict=True) if node.new else ())
        return drawn, impossible

    def _groups(
        self, given: Mapping[str, NDArray[np.intp]], kinds: Sequence[NDArray[np.intp]], n: int
    ) -> list[_Groups]:
        """Return each node's groups of rows: those with equal known codes and kinds in it and in all nodes below."""
        found: dict[int, _Groups] = {}
        for i in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[i]
            line = np.zeros(n, dtype=np.intp)
            for column, stride in zip(node.known, node.strides, strict=True):
                line += stride * given[column]
            parts = {"line": line}
            parts |= {f"child {child}": found[child].of_row for child, _ in node.children}
            parts |= {f"limit {number}": kinds[number] for number, _ in node.limits}
            of_row, first = _distinct(list(parts.values()), n)
            found[i] = _Groups(of_row, first, {name: values[first] for name, values in parts.items()})
        return [found[i] for i in range(len(self.nodes))]

    def _belief(
        self,
        node: _Node,
        group: _Groups,
        messages: Mapping[int, Floats],
        logs: Sequence[Floats],
        part: slice,
    ) -> Floats:
        """Return log beliefs (groups of `part`, separator cells, new cells) of a node, messages from below included."""
        belief = node.table[group.parts["line"][part]]
        flat = belief.reshape(len(belief), -1)
        for child, cells in node.children:
            numbers = group.parts[f"child {child}"][part]
            flat += messages[child][numbers][:, cells]
        for number, cells in node.limits:
            flat += logs[number][group.parts[f"limit {number}"][part]][:, cells]
        return belief

    def _cells(
        self,
        node: _Node,
        group: _Groups,
        drawn: Mapping[str, NDArray[np.intp]],
        messages: Mapping[int, Floats],
        logs: Sequence[Floats],
        n: int,
        rng: Generator,
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the drawn cell of a node's new columns for each row, and a mask of rows without a possible one."""
        width = node.table.shape[2]
        at = np.zeros(n, dtype=np.intp)
        for column, size in zip(node.shared, node.shared_shape, strict=True):
            at = at * size + drawn[column]
        of_row, first = _distinct([group.of_row, at], n)
        lines, places = group.of_row[first], at[first]
        by_line = np.argsort(of_row, kind="stable")
        ends = np.searchsorted(of_row[by_line], np.arange(len(first) + 1))
        cell, never = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool)
        step = max(1, MOST_AT_ONCE // width)
        for start in range(0, len(first), step):
            line, place = lines[start : start + step], places[start : start + step]
            belief = node.table[group.parts["line"][line], place]
            # cells of this node with this separator cell: one run of the row-major table
            run = place[:, None] * width + np.arange(width)
            for child, cells in node.children:
                numbers = group.parts[f"child {child}"][line]
                belief += messages[child][numbers[:, None], cells[run]]
            for number, cells in node.limits:
                belief += logs[number][group.parts[f"limit {number}"][line][:, None], cells[run]]
            top = belief.max(axis=1, keepdims=True)
            weights = np.exp(belief - np.where(np.isfinite(top), top, 0.0))
            rows = by_line[ends[start] : ends[min(start + step, len(first))]]
            if width > 1:
                cell[rows] = draw(weights, of_row[rows] - start, rng)
            never[rows] = ~np.isfinite(top[of_row[rows] - start, 0])
        return cell, never


@dataclass(eq=False)
class _Node:
    """A clique: its log potentials by known codes, by the separator's cells, and by the new columns' cells."""

    known: Clique
    strides: tuple[int, ...]
    """Summand by known column: what a code adds to the number of the line of `table`."""
    shared: Clique
    """Unknown columns of the separator."""
    shared_shape: tuple[int, ...]
    new: Clique
    """Unknown columns that no node above has."""
    new_shape: tuple[int, ...]
    table: Floats
    """Array (cells of the known columns, of the separator, of the new columns)."""
    above: int
    children: list[tuple[int, Indices]]
    """Nodes below: number, and the cell of its separator that each of this node's unknown cells lies in."""
    limits: list[tuple[int, Indices]]
    """Limited columns: number, and the cell of these that each of this node's unknown cells lies in."""

    @classmethod
    def of(cls, clique: Clique, separator: Clique, known: set[str], table: Floats, levels: Mapping[str, int]) -> _Node:
        """Return the node of a clique with its separator, the table's axes in the clique's order."""
        here = tuple(c for c in clique if c in known)
        shared = tuple(c for c in separator if c not in known)
        new = tuple(c for c in clique if c not in known and c not in separator)
        shapes = [tuple(levels[c] for c in columns) for columns in (here, shared, new)]
        sorted_table = np.transpose(table, [clique.index(c) for c in (*here, *shared, *new)])
        cells = np.ascontiguousarray(sorted_table.reshape([math.prod(shape) for shape in shapes]))
        strides = tuple(math.prod(shapes[0][i + 1 :]) for i in range(len(here)))
        return cls(here, strides, shared, shapes[1], new, shapes[2], cells, -1, [], [])

    def cells_of(self, columns: Clique, levels: Mapping[str, int]) -> Indices:
        """Return the number of the cell of `columns`, all of them unknown here, that each unknown cell lies in."""
        mine = (*self.shared, *self.new)
        return projection(tuple(levels[c] for c in mine), [mine.index(c) for c in columns])


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of rows for which a node's beliefs are equal."""

    of_row: NDArray[np.intp]
    first: NDArray[np.intp]
    """One row of each group."""
    parts: Mapping[str, NDArray[np.intp]]
    """Arrays by group: the line of the node's table, the group of each node below, the kind of each limited set."""


def _distinct(parts: Sequence[NDArray[np.intp]], n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return (number of each row's combination of the parts, one row of each combination)."""
    number, first = np.zeros(n, dtype=np.intp), np.zeros(min(n, 1), dtype=np.intp)
    for values in parts:
        if not n or values.max() == values.min():
            continue
        # two numbers below n and below 2**40 make one of 64 bits
        joined = number * (int(values.max()) + 1) + values
        _, first, number = np.unique(joined, return_index=True, return_inverse=True)
    return number.astype(np.intp), first


def _log_sum(belief: Floats) -> Floats:
    """Return log sums over the last axis of exponentials; -inf where there is no mass."""
    top = belief.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        found: Floats = np.log(np.exp(belief - top).sum(axis=-1)) + top[..., 0]
    return found


def _spread(table: Floats, clique: Clique, whole: Clique) -> Floats:
    """Return a clique's table as one that broadcasts over the axes of a larger clique; NEVER becomes -inf."""
    axes = [clique.index(column) for column in whole if column in clique]
    view = np.transpose(table, axes).reshape([table.shape[clique.index(c)] if c in clique else 1 for c in whole])
    found: Floats = np.where(view <= NEVER, -np.inf, view)
    return found


def _rooted(tree: JunctionTree, known: set[str]) -> tuple[list[int], list[int]]:
    """Return (parent of each clique, cliques from the root down) for the root at which messages have fewest cells."""
    near: list[list[int]] = [[] for _ in tree.cliques]
    for clique, parent in enumerate(tree.parents):
        if parent >= 0:
            near[clique].append(parent)
            near[parent].append(clique)
    levels = dict(tree.sizes)
    free = [math.prod(levels[c] for c in clique if c not in known) for clique in tree.cliques]
    best: tuple[float, list[int], list[int]] | None = None
    for root in range(len(tree.cliques)):
        parents, order = [-1] * len(tree.cliques), [root]
        for clique in order:
            for other in near[clique]:
                if other != parents[clique]:
                    parents[other] = clique
                    order.append(other)
        evidence = [{c for c in clique if c in known} for clique in tree.cliques]
        cost = 0.0
        for clique in reversed(order):
            cost += free[clique] * min(EXPECTED, math.prod(levels[c] for c in evidence[clique]))
            if parents[clique] >= 0:
                evidence[parents[clique]] = evidence[parents[clique]] | evidence[clique]
        if best is None or cost < best[0]:
            best = cost, parents, order
    assert best is not None  # noqa: S101 - a tree has a clique
    return best[1], best[2]
