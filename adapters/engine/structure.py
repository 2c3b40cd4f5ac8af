"""Junction trees: maximal cliques of a triangulated graph, joined so that each column's cliques are connected.

With them, structural zeros of the schema by clique, and the part of them that a model of limited size can contain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from stratsynth.errors import Unsupported

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

Clique = tuple[str, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques in an order in which every clique comes after its parent.

    The first is the root. Parts of the graph that share no column are joined by an empty separator, so there is always
    one tree.
    """

    sizes: tuple[tuple[str, int], ...]
    """Every column with its number of levels."""
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    """Number of each clique's parent; -1 for the root."""
    separators: tuple[Clique, ...]
    """Columns that each clique shares with its parent; empty for the root."""

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """Return the shape of a clique's table, a tuple: the number of levels of each column, in its order."""
        return tuple(map(self._sizes.__getitem__, clique))

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        return dict(self.sizes)

    @property
    def cells(self) -> int:
        """Number of cells of all cliques' tables together, each the product of its columns' levels."""
        return sum(math.prod(self.shape(clique)) for clique in self.cliques)

    def home(self, clique: Clique) -> int:
        """Return the number of the tree's clique with the fewest cells that contains the columns of `clique`."""
        found = [i for i, whole in enumerate(self.cliques) if set(clique) <= set(whole)]
        return min(found, key=lambda i: math.prod(self.shape(self.cliques[i])))


@lru_cache(maxsize=4096)
def junction_tree(sizes: tuple[tuple[str, int], ...], cliques: tuple[Clique, ...]) -> JunctionTree:
    """Return the `JunctionTree` of the graph that joins the columns of each clique.

    `sizes` are (column, levels) pairs.
    """
    order = [column for column, _ in sizes]
    maximal = [frozenset(order[i] for i in _members(whole)) for whole in _eliminated(sizes, cliques)]
    graph = nx.Graph()
    graph.add_nodes_from(range(len(maximal)))
    # a maximum spanning tree by separator size has the running intersection property
    for i, j in combinations(range(len(maximal)), 2):
        graph.add_edge(i, j, weight=len(set(maximal[i]) & set(maximal[j])))
    tree = nx.maximum_spanning_tree(graph) if len(maximal) > 1 else graph
    root = max(range(len(maximal)), key=lambda i: len(nx.node_connected_component(tree, i)) and tree.degree(i))
    walk = [(root, -1), *((child, parent) for parent, child in nx.bfs_edges(tree, root))]
    place = {node: i for i, (node, _) in enumerate(walk)}
    named = [tuple(sorted(maximal[node], key=order.index)) for node, _ in walk]
    parents = tuple(place[parent] if parent >= 0 else -1 for _, parent in walk)
    separators = tuple(
        tuple(column for column in clique if parent >= 0 and column in named[parent])
        for clique, parent in zip(named, parents, strict=True)
    )
    return JunctionTree(sizes, tuple(named), parents, separators)


def model_cells(sizes: tuple[tuple[str, int], ...], cliques: Sequence[Clique]) -> int:
    """Return the number of cells of a model that contains these cliques; `sizes` are (column, levels) pairs."""
    products = _products(sizes)
    return sum(products[whole] for whole in _eliminated(sizes, cliques))


def taken_in(
    sizes: tuple[tuple[str, int], ...], held: Sequence[Clique], cliques: Sequence[Clique], most: int
) -> list[bool]:
    """Return a list, for each of `cliques` True if a model of all `held` and it has at most `most` cells.

    `sizes` are (column, levels) pairs. Equal to comparing `model_cells` of `held` and that clique; cliques that add the
    same edges share the result.
    """
    growing = _growing(sizes, tuple(_neighbourhoods(sizes, held)), most)
    return [growing.takes(clique) for clique in cliques]


class _Growing:
    """A graph of cliques already in a model, and a cache of the cliques that fit into it as well."""

    def __init__(self, sizes: tuple[tuple[str, int], ...], around: tuple[int, ...], most: int) -> None:
        self._number = {column: i for i, (column, _) in enumerate(sizes)}
        self._around, self._products = around, _products(sizes)
        self._costs = [_cost(self._products, self._around, i) for i in range(len(sizes))]
        self._most = most
        self._known: dict[int, bool] = {}

    def takes(self, clique: Clique) -> bool:
        """Return True if the model of this graph's cliques and of `clique` has at most `most` cells."""
        around, number = self._around, self._number
        columns = sum(1 << number[column] for column in clique)
        # ends of missing edges: joining these joins the clique
        ends = sum(1 << number[column] for column in clique if columns & ~around[number[column]])
        if ends not in self._known:
            self._known[ends] = self._joins(ends)
        return self._known[ends]

    def _joins(self, ends: int) -> bool:
        """True if the model, after all columns of the bit set `ends` are joined, has at most `most` cells."""
        joined = list(self._around)
        for i in _members(ends):
            joined[i] |= ends
        # an added edge changes the cost of its ends, and of columns adjacent to both
        changed = dict(enumerate(self._costs))
        for i, near in enumerate(joined):
            if (near & ends).bit_count() > 1:
                changed[i] = _cost(self._products, joined, i)
        cells = 0
        for whole in _eliminate(self._products, joined, changed):
            cells += self._products[whole]
            if cells > self._most:
                return False
        return True


@lru_cache(maxsize=64)
def _growing(sizes: tuple[tuple[str, int], ...], around: tuple[int, ...], most: int) -> _Growing:
    """Return the `_Growing` object of a graph of columns, for models of up to `most` cells; cached.

    `sizes` are (column, levels) pairs; `around` has for each of them the bit set of it and its neighbours.
    """
    return _Growing(sizes, around, most)


def _eliminated(sizes: tuple[tuple[str, int], ...], cliques: Sequence[Clique]) -> Iterator[int]:
    """Yield maximal cliques of the triangulated graph of `cliques`, each an int: a bit set of column numbers.

    `sizes` are the graph's (column, levels) pairs.
    """
    products, around = _products(sizes), _neighbourhoods(sizes, cliques)
    return _eliminate(products, around, {i: _cost(products, around, i) for i in range(len(sizes))})


def _neighbourhoods(sizes: tuple[tuple[str, int], ...], cliques: Iterable[Clique]) -> list[int]:
    """Return a list by column number: the bit set, an int, of it and its neighbours in the graph of `cliques`.

    `sizes` are the graph's (column, levels) pairs.
    """
    number = {column: i for i, (column, _) in enumerate(sizes)}
    around = [1 << i for i in range(len(sizes))]
    for clique in cliques:
        joined = sum(1 << number[column] for column in clique)
        for column in clique:
            around[number[column]] |= joined
    return around


def _eliminate(products: _Products, around: list[int], cost: dict[int, tuple[bool, int, int]]) -> Iterator[int]:
    """Yield maximal cliques (bit sets) of a min-size elimination: the column of the least neighbourhood in turn.

    Sizes of cliques are `products`. A column whose neighbours are joined already goes first: that adds no edge, so a
    tree stays a tree of pairs. Overwrites `around`, by column number its neighbours' bit set, and `cost`, its `_cost`.
    """
    found: list[int] = []
    while cost:
        column = min(cost.values())[2]
        del cost[column]
        whole = around[column]
        # a clique within an earlier one is not maximal
        for other in found:
            if not whole & ~other:
                break
        else:
            found.append(whole)
            yield whole
        left = whole & ~(1 << column)
        members = _members(left)
        if len(members) == len(cost):  # all remaining columns are within this clique
            return
        for a in members:
            around[a] = (around[a] | left) & ~(1 << column)
        for a in members:
            cost[a] = _cost(products, around, a)
    if not found:
        yield 0  # no column at all: one clique of one cell


def _cost(products: _Products, around: Sequence[int], column: int) -> tuple[bool, int, int]:
    """Return (True if eliminating `column` adds an edge, number of its clique's cells by `products`, `column`).

    `column` is a number, `around` has each column's bit set of itself and its neighbours.
    """
    whole, joins = around[column], False
    for a in _members(whole):
        if whole & ~around[a]:
            joins = True
            break
    return joins, products[whole], column


@lru_cache(maxsize=2**16)
def _members(columns: int) -> tuple[int, ...]:
    """Return a tuple of the column numbers in a bit set, an int, in rising order."""
    return tuple(i for i in range(columns.bit_length()) if columns >> i & 1)


KNOWN = 2**17
"""Largest number of sets in one cache of products; some 10 MB."""


class _Products(dict[int, int]):
    """Cache of the number of cells by bit set of columns: elimination meets equal sets again and again."""

    def __init__(self, levels: Sequence[int]) -> None:
        super().__init__()
        self._levels = levels

    def __missing__(self, columns: int) -> int:
        if len(self) >= KNOWN:
            self.clear()
        self[columns] = cells = math.prod(self._levels[i] for i in _members(columns))
        return cells


@lru_cache(maxsize=8)
def _products(sizes: tuple[tuple[str, int], ...]) -> _Products:
    """Return the `_Products`, a cache, bit set of columns -> number of cells, for all graphs of the columns `sizes`."""
    return _Products([size for _, size in sizes])


def check_size(tree: JunctionTree, most_cells: int) -> None:
    """Refuse (Unsupported) a junction tree of over `most_cells` cells in all; the message names its widest clique."""
    if tree.cells > most_cells:
        widest = max(tree.cliques, key=lambda c: math.prod(tree.shape(c)))
        raise Unsupported(
            f"the model would hold {tree.cells:,} numbers, more than {most_cells:,}: the clique {','.join(widest)} is "
            "too large. Measure smaller cliques, or use fewer bins."
        )


Forbidden = dict[Clique, "NDArray[np.intp]"]
"""Impossible cells, row-major, by clique."""
MOST_WITH_RULES = 2**16
"""Number of cells up to which structural rules may enlarge a model; a larger structure without rules may stay."""


def forbidden(schema: Schema) -> Forbidden:
    """Return {clique: row-major numbers of impossible cells} for each set of columns in a rule of the schema; or {}."""
    found: Forbidden = {}
    for rule in schema.rules:
        for box in rule.cells(schema):
            # a column with all levels in the box puts no restriction on it
            clique = tuple(name for name in schema.names if name in box and len(box[name]) < schema.size(name))
            if not clique:
                continue
            never = np.zeros(schema.shape(clique), dtype=bool)
            never[np.ix_(*(sorted(box[name]) for name in clique))] = True
            cells = np.flatnonzero(never)
            found[clique] = np.union1d(found[clique], cells) if clique in found else cells
    return found


def held_together(
    rules: Forbidden, sizes: tuple[tuple[str, int], ...], measured: Sequence[Clique]
) -> tuple[Forbidden, set[Clique]]:
    """Return (structural zeros, set of measured cliques), those that fit together into one model of limited size.

    `rules` are the zeros, {clique: array of numbers of cells}, `sizes` (column, levels) pairs. The limit is the larger
    of MOST_WITH_RULES and the measured cliques' own model. Rules come first, the smallest at the head; then cliques, in
    the order of `measured`.
    """
    if not rules:
        return rules, set(measured)
    most = max(MOST_WITH_RULES, model_cells(sizes, measured))
    if model_cells(sizes, (*rules, *measured)) <= most:
        return rules, set(measured)
    levels = dict(sizes)
    held: dict[Clique, None] = {}
    # greedy: each clique stays if the model with all before it is small enough
    for clique in (*sorted(rules, key=lambda c: (math.prod(map(levels.__getitem__, c)), c)), *measured):
        if model_cells(sizes, (*held, clique)) <= most:
            held[clique] = None
    return {clique: cells for clique, cells in rules.items() if clique in held}, set(held) & set(measured)
