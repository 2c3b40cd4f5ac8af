"""Junction trees: the maximal cliques of a triangulated graph, joined so that shared columns stay connected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import networkx as nx

from stratsynth.errors import Unsupported

Clique = tuple[str, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques in an order in which every clique comes after its parent.

    The first is the root. Parts of the graph that share no column are joined by an empty separator, so there
    is always one tree.
    """

    sizes: tuple[tuple[str, int], ...]
    """Every column with its number of levels."""
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    """The number of each clique's parent; -1 for the root."""
    separators: tuple[Clique, ...]
    """The columns that each clique shares with its parent; empty for the root."""

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """The levels of a clique's columns."""
        sizes = dict(self.sizes)
        return tuple(sizes[column] for column in clique)

    @property
    def cells(self) -> int:
        """How many numbers the model's tables hold."""
        return sum(math.prod(self.shape(clique)) for clique in self.cliques)

    def home(self, clique: Clique) -> int:
        """The smallest maximal clique that contains these columns."""
        found = [i for i, whole in enumerate(self.cliques) if set(clique) <= set(whole)]
        return min(found, key=lambda i: math.prod(self.shape(self.cliques[i])))


@lru_cache(maxsize=4096)
def junction_tree(sizes: tuple[tuple[str, int], ...], cliques: tuple[Clique, ...]) -> JunctionTree:
    """The junction tree of a graph in which every clique's columns are joined; lone columns are cliques too."""
    order = [column for column, _ in sizes]
    maximal = [frozenset(order[i] for i in _members(whole)) for whole in _eliminate(sizes, cliques)]
    graph = nx.Graph()
    graph.add_nodes_from(range(len(maximal)))
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
    """How many numbers a model that holds these cliques has: `junction_tree(...).cells`, without the tree."""
    levels = [size for _, size in sizes]
    return sum(_cells(levels, whole) for whole in _eliminate(sizes, cliques))


def _eliminate(sizes: tuple[tuple[str, int], ...], cliques: Sequence[Clique]) -> list[int]:
    """Maximal cliques after eliminating, again and again, the column whose neighbourhood has the fewest cells.

    A column whose neighbours are joined already goes first: that adds no edge, so a tree stays a tree of pairs.
    Sets of columns are bits of whole numbers: this runs for every candidate of every round of AIM.
    """
    number = {column: i for i, (column, _) in enumerate(sizes)}
    levels = [size for _, size in sizes]
    around = [0] * len(sizes)
    for clique in cliques:
        joined = sum(1 << number[column] for column in clique)
        for column in clique:
            around[number[column]] |= joined & ~(1 << number[column])
    found: list[int] = []
    cost = {i: _cost(levels, around, i) for i in range(len(sizes))}
    while cost:
        column = min(cost, key=cost.__getitem__)
        del cost[column]
        near, own = around[column], 1 << column
        if all((near | own) & ~other for other in found):
            found.append(near | own)
        members = list(_members(near))
        for a in members:
            around[a] = (around[a] | near) & ~(1 << a) & ~own
        for a in members:
            cost[a] = _cost(levels, around, a)
    return found or [0]  # no column at all: one clique of one cell


def _cost(levels: Sequence[int], around: Sequence[int], column: int) -> tuple[bool, int, int]:
    """Whether eliminating a column joins any of its neighbours, the cells of the clique it makes, its number."""
    near, cells, joins = around[column], levels[column], False
    for a in _members(near):
        cells *= levels[a]
        joins = joins or bool(near & ~around[a] & ~(1 << a))
    return joins, cells, column


def _members(columns: int) -> Iterator[int]:
    """The numbers of the columns in a set."""
    while columns:
        lowest = columns & -columns
        yield lowest.bit_length() - 1
        columns ^= lowest


def _cells(levels: Sequence[int], columns: int) -> int:
    return math.prod(levels[i] for i in _members(columns))


def check_size(tree: JunctionTree, most_cells: int) -> None:
    """Refuse a model that would not fit into memory, from the schema and the cliques alone."""
    if tree.cells > most_cells:
        widest = max(tree.cliques, key=lambda c: math.prod(tree.shape(c)))
        raise Unsupported(
            f"the model would hold {tree.cells:,} numbers, more than {most_cells:,}: the clique {','.join(widest)} is "
            "too large. Measure smaller cliques, or use fewer bins."
        )
