"""Marginals of a calibrated junction tree, many at once.

Seen from a clique m, whatever lies beyond its neighbour n depends on m through their separator S alone. Each directed
edge therefore gets one matrix, P(columns beyond n | S), and the marginal of columns that share no clique is the table
of some clique in their middle, contracted with one such matrix for each neighbour on the way to a column. Columns
beyond the same neighbours are contracted together: all triples of twenty columns take some hundred matrix products
instead of a thousand eliminations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine.forest import Floats
from stratsynth.adapters.engine.structure import Clique, JunctionTree

MOST_KEPT = 2**22
"""Largest total number of cells that `Marginals.kept` keeps for later requests."""
_Ports = tuple[tuple[int, Clique], ...]
"""Neighbours of a clique, each with the requested columns that lie beyond it."""


class Marginals:
    """A calibrated junction tree, with a cache of conditional matrices and marginals derived from it."""

    def __init__(self, tree: JunctionTree, calibrated: Sequence[Floats]) -> None:
        """Keep a tree and `calibrated`, the array of probabilities of each of its cliques."""
        self._tree = tree
        self.calibrated = calibrated
        """Probability table of each clique of the tree."""
        self._routes = _routes(tree)
        self._levels = dict(tree.sizes)
        self._beyond: dict[tuple[int, int], Floats] = {}
        """P(columns beyond | separator) by directed edge, one row a separator cell."""
        self._kept: dict[Clique, Floats] = {}
        self._held = 0
        """Number of cells in the tables of `_kept`."""

    def table(self, columns: Clique) -> Floats:
        """Return the array of the probabilities of the cells of `columns`, axes in that order."""
        return self.tables([columns])[0]

    def tables(self, cliques: Sequence[Clique]) -> list[Floats]:
        """Return a list of each clique's probability table, axes in its order, by shared contractions."""
        parts = [self._routes.apart(clique) for clique in cliques]
        wanted = list(dict.fromkeys(part for several in parts for part in several))
        known = dict(zip(wanted, self._joined(wanted), strict=True))
        return [
            known[clique] if several == (clique,) else _product(clique, several, known)
            for clique, several in zip(cliques, parts, strict=True)
        ]

    def kept(self, cliques: Sequence[Clique]) -> list[Floats]:
        """Return the list `tables(cliques)`, arrays, through a cache that strata with equal requests share.

        Each missing table is computed by itself, so that its last bit is independent of earlier requests; if the
        missing ones exceed half the cache, all are computed together and none is kept.
        """
        missing = [clique for clique in dict.fromkeys(cliques) if clique not in self._kept]
        if missing and sum(map(self._cells, missing)) > MOST_KEPT // 2:
            return self.tables(cliques)
        for clique in missing:
            self._kept[clique] = table = self.table(clique)
            table.flags.writeable = False  # later callers get the same array
            self._held += table.size
        found = [self._kept[clique] for clique in cliques]
        while self._held > MOST_KEPT:
            self._held -= self._kept.pop(next(iter(self._kept))).size
        return found

    def _joined(self, cliques: Sequence[Clique]) -> list[Floats]:
        """Return a list of marginals, arrays, of the sets `cliques`, each inside one connected part of the tree."""
        together: dict[tuple[int, Clique, tuple[int, ...]], list[tuple[int, _Ports]]] = {}
        for i, (middle, own, ports) in enumerate(self._routes.plan(cliques)):
            # sets with equal middle, own columns and neighbours share one contraction
            together.setdefault((middle, own, tuple(port for port, _ in ports)), []).append((i, ports))
        found: dict[int, Floats] = {}
        for (middle, own, _), wanted in together.items():
            for i, names, table in self._group(middle, own, wanted):
                found[i] = np.transpose(table, [names.index(column) for column in cliques[i]])
        return [found[i] for i in range(len(cliques))]

    def _group(
        self, middle: int, own: Clique, wanted: Sequence[tuple[int, _Ports]]
    ) -> list[tuple[int, Clique, Floats]]:
        """Return a list of triples (number of the set, its columns, array of their probabilities), by one contraction.

        All sets have the columns `own` in clique number `middle`, the rest beyond equal neighbours of it; `wanted` are
        pairs (number of the set, its pairs (neighbour, columns beyond it)).
        """
        sets = [list(dict.fromkeys(ports[j][1] for _, ports in wanted)) for j in range(len(wanted[0][1]))]
        matrices = [
            self._conditionals(middle, port, sets[j]) for j, (port, _) in enumerate(wanted[0][1])
        ]  # one column of the matrix for each cell of each set
        whole = self._contract(middle, own, [port for port, _ in wanted[0][1]], matrices)
        starts = [dict(zip(s, np.cumsum([0, *(self._cells(c) for c in s)]), strict=False)) for s in sets]
        found = []
        for i, ports in wanted:
            part: tuple[slice, ...] = tuple(slice(None) for _ in own)
            names, shape = own, [self._levels[column] for column in own]
            for (_, columns), start in zip(ports, starts, strict=True):
                part += (slice(start[columns], start[columns] + self._cells(columns)),)
                names, shape = (*names, *columns), [*shape, *(self._levels[column] for column in columns)]
            found.append((i, names, whole[part].reshape(shape)))
        return found

    def _contract(self, clique: int, own: Clique, ports: Sequence[int], matrices: Sequence[Floats]) -> Floats:
        """Return an array, axes `own`, then one a matrix: sum over the cells of `clique` of P(cell) x matrices' rows.

        `clique` is a number; `matrices` has one for each neighbour in `ports`, a row a cell of its separator.
        """
        separators = [self._routes.near[clique][port] for port in ports]
        names = tuple(c for c in self._tree.cliques[clique] if c in own or any(c in s for s in separators))
        # the last axis collects the matrices' columns
        table, out = self._sum(clique, names)[..., None], 1
        for i, (separator, matrix) in enumerate(zip(separators, matrices, strict=True)):
            # separator columns needed later stay as batch axes of the product; the others are summed out
            later = set(own).union(*separators[i + 1 :])
            both = [c for c in separator if c in later]
            gone = [c for c in separator if c not in later]
            rest = [c for c in names if c not in separator]
            order = [*(names.index(c) for c in (*both, *rest)), len(names), *(names.index(c) for c in gone)]
            left = np.transpose(table, order).reshape(self._cells(both), -1, self._cells(gone))
            view = matrix.reshape([*(self._levels[c] for c in separator), matrix.shape[1]])
            axes = [*(separator.index(c) for c in (*both, *gone)), len(separator)]
            right = np.transpose(view, axes).reshape(self._cells(both), self._cells(gone), -1)
            out *= matrix.shape[1]
            names = (*both, *rest)
            table = np.matmul(left, right).reshape([*(self._levels[c] for c in names), out])
        shape = [*(self._levels[c] for c in own), *(matrix.shape[1] for matrix in matrices)]
        whole: Floats = np.transpose(table, [*(names.index(c) for c in own), len(names)]).reshape(shape)
        return whole

    def _conditionals(self, clique: int, port: int, sets: Sequence[Clique]) -> Floats:
        """Return a matrix, separator's cells x cells of `sets`, side by side: P(columns of a set | separator).

        Each of `sets` is a tuple of columns beyond the edge from clique number `clique` to its neighbour `port`.
        """
        separator = self._routes.near[clique][port]
        if all(len(columns) == 1 for columns in sets):
            whole, places = self._edge(clique, port), self._routes.places(clique, port)
            if [columns[0] for columns in sets] == list(places):
                return whole
            return whole[:, np.concatenate([places[columns[0]] for columns in sets])]
        joints = [self.table((*separator, *columns)).reshape(self._cells(separator), -1) for columns in sets]
        return self._conditional(clique, separator, np.concatenate(joints, axis=1))

    def _edge(self, clique: int, port: int) -> Floats:
        """Return a matrix, separator's cells x levels of all columns beyond an edge: P(level | separator's cell).

        The edge is from clique number `clique` to its neighbour `port`.
        """
        todo = [(clique, port)]
        while todo:
            above, node = edge = todo[-1]
            others = [other for other in self._routes.near[node] if other != above]
            missing = [(node, other) for other in others if (node, other) not in self._beyond]
            if edge not in self._beyond and missing:
                todo.extend(missing)
                continue
            todo.pop()
            if edge in self._beyond:
                continue
            separator = self._routes.near[above][node]
            cells = self._cells(separator)
            own = [self._sum(node, (*separator, c)) for c in self._tree.cliques[node] if c not in separator]
            further = [self._contract(node, separator, [other], [self._beyond[node, other]]) for other in others]
            # P(separator, column) side by side: the neighbour's own columns, then those beyond it
            joint = np.concatenate([part.reshape(cells, -1) for part in (*own, *further)], axis=1)
            self._beyond[edge] = self._conditional(node, separator, joint)
        return self._beyond[clique, port]

    def _conditional(self, clique: int, separator: Clique, joint: Floats) -> Floats:
        """Return `joint`, a matrix with a row a cell of `separator`, each row over that cell's probability.

        The probability is summed from the table of clique number `clique`; where it is 0, the result is 0.
        """
        base = self._sum(clique, separator).reshape(-1, 1)
        return np.divide(joint, base, out=np.zeros_like(joint), where=base > 0)

    def _sum(self, clique: int, columns: Clique) -> Floats:
        """Return the table of clique number `clique`, an array, summed down to `columns`, axes in that order."""
        names, table = self._tree.cliques[clique], self.calibrated[clique]
        summed = table.sum(axis=tuple(i for i, name in enumerate(names) if name not in columns))
        left = [name for name in names if name in columns]
        ordered: Floats = np.transpose(summed, [left.index(column) for column in columns])
        return ordered

    def _cells(self, columns: Sequence[str]) -> int:
        return math.prod(self._levels[column] for column in columns)


def _product(clique: Clique, parts: Sequence[Clique], known: Mapping[Clique, Floats]) -> Floats:
    """Return the array of a clique of independent `parts`, cliques: outer product of theirs in `known`.

    `known` maps cliques to arrays.
    """
    table = known[parts[0]]
    for part in parts[1:]:
        table = np.multiply.outer(table, known[part])
    names = [column for part in parts for column in part]
    return np.transpose(table, [names.index(column) for column in clique])


class _Routes:
    """Direction of each column from each clique of a tree; depends on the structure alone."""

    def __init__(self, tree: JunctionTree) -> None:
        self.tree = tree
        self.near: list[dict[int, Clique]] = [{} for _ in tree.cliques]
        """Neighbours of each clique, with the separators from them."""
        for i, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
            if parent >= 0:
                self.near[i][parent] = self.near[parent][i] = separator
        self._number = {column: j for j, (column, _) in enumerate(tree.sizes)}
        self._far = np.zeros((len(tree.cliques), len(tree.sizes)), dtype=np.intp)
        """Edges between a clique (row) and the nearest one that contains a column (column)."""
        self._towards = np.full(self._far.shape, -1, dtype=np.intp)
        """First neighbour on that way; -1 where the clique contains the column."""
        for column, j in self._number.items():
            self._walk(j, [i for i, clique in enumerate(tree.cliques) if column in clique])
        self._places: dict[tuple[int, int], dict[str, NDArray[np.intp]]] = {}
        self._part = self._parts()
        """Connected part of each column; parts are joined by empty separators."""

    def _parts(self) -> list[int]:
        """Return a list of numbers, one a column in the tree's order: its connected part of the tree."""
        part, found = list(range(len(self.tree.cliques))), [0] * len(self.tree.sizes)
        for i, (parent, separator) in enumerate(zip(self.tree.parents, self.tree.separators, strict=True)):
            if separator:  # parents come before their children
                part[i] = part[parent]
            for column in self.tree.cliques[i]:
                found[self._number[column]] = part[i]
        return found

    def _walk(self, j: int, reached: list[int]) -> None:
        """Fill in each clique's distance from column number `j`, breadth first from the cliques that hold it.

        `reached` is the list of their numbers.
        """
        seen = set(reached)
        for node in reached:
            for other in self.near[node]:
                if other not in seen:
                    seen.add(other)
                    reached.append(other)
                    self._far[other, j] = self._far[node, j] + 1
                    self._towards[other, j] = node

    def apart(self, clique: Clique) -> tuple[Clique, ...]:
        """Return the columns of `clique` as tuples, one for each connected part of the tree; parts are independent."""
        parts: dict[int, Clique] = {}
        for column in clique:
            part = self._part[self._number[column]]
            parts[part] = (*parts.get(part, ()), column)
        return tuple(parts.values()) or (clique,)

    def plan(self, cliques: Sequence[Clique]) -> list[tuple[int, Clique, _Ports]]:
        """Return a list of triples, one for each of `cliques`: number of its middle clique, its columns there, pairs.

        The pairs are (number of a neighbour, columns beyond it). The middle is the clique with the smallest sum of
        distances to the columns.
        """
        found = []
        for clique in cliques:
            columns = [self._number[column] for column in clique]
            # the middle minimises the sum of distances, and so the number of matrix products
            middle = int(self._far[:, columns].sum(axis=1).argmin())
            ways: dict[int, Clique] = {}
            for column, j in sorted(zip(clique, columns, strict=True), key=lambda pair: pair[1]):
                way = int(self._towards[middle, j])
                ways[way] = (*ways.get(way, ()), column)
            own = ways.pop(-1, ())
            found.append((middle, own, tuple(sorted(ways.items()))))
        return found

    def places(self, clique: int, port: int) -> Mapping[str, NDArray[np.intp]]:
        """Return {column: array of the columns of the matrix of `_edge` that its levels have}, for one edge.

        The edge is from clique number `clique` to its neighbour `port`.
        """
        if (clique, port) not in self._places:
            levels, start, found = dict(self.tree.sizes), 0, {}
            for column in self._order(clique, port):
                found[column] = np.arange(start, start + levels[column])
                start += levels[column]
            self._places[clique, port] = found
        return self._places[clique, port]

    def _order(self, clique: int, port: int) -> list[str]:
        """Return a list of columns beyond the edge `clique`-`port`: the neighbour's own, then those past its others."""
        order, todo = [], [(clique, port)]
        while todo:
            above, node = todo.pop()
            order += [c for c in self.tree.cliques[node] if c not in self.near[above][node]]
            todo.extend((node, other) for other in reversed(self.near[node]) if other != above)
        return order


@lru_cache(maxsize=256)
def _routes(tree: JunctionTree) -> _Routes:
    return _Routes(tree)
