"""Junction trees: the maximal cliques of a triangulated graph, joined so that shared columns stay connected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    levels, order = dict(sizes), [column for column, _ in sizes]
    maximal = _eliminate(levels, cliques)
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


def _eliminate(levels: Mapping[str, int], cliques: Sequence[Clique]) -> list[frozenset[str]]:
    """Maximal cliques after eliminating, again and again, the column whose neighbourhood has the fewest cells.

    A column whose neighbours are joined already goes first: that adds no edge, so a tree stays a tree of pairs.
    """
    around: dict[str, set[str]] = {column: set() for column in levels}
    for clique in cliques:
        for a, b in combinations(clique, 2):
            around[a].add(b)
            around[b].add(a)
    found: list[frozenset[str]] = []
    cost = {column: _cost(levels, around, column) for column in around}
    while around:
        column = min(around, key=lambda c: (cost[c], c))
        near = around.pop(column)
        whole = frozenset({column, *near})
        if not any(whole <= other for other in found):
            found.append(whole)
        for a in near:
            around[a] |= near
            around[a] -= {a, column}
        for a in near:
            cost[a] = _cost(levels, around, a)
    return found or [frozenset()]  # no column at all: one clique of one cell


def _cost(levels: Mapping[str, int], around: Mapping[str, set[str]], column: str) -> tuple[bool, int]:
    """Whether eliminating a column joins any of its neighbours, and the cells of the clique it makes."""
    near = around[column]
    return any(b not in around[a] for a, b in combinations(near, 2)), _cells(levels, {column, *near})


def _cells(levels: Mapping[str, int], columns: set[str]) -> int:
    return math.prod(levels[column] for column in columns)


def check_size(tree: JunctionTree, most_cells: int) -> None:
    """Refuse a model that would not fit into memory, from the schema and the cliques alone."""
    if tree.cells > most_cells:
        widest = max(tree.cliques, key=lambda c: math.prod(tree.shape(c)))
        raise Unsupported(
            f"the model would hold {tree.cells:,} numbers, more than {most_cells:,}: the clique {','.join(widest)} is "
            "too large. Measure smaller cliques, or use fewer bins."
        )
