"""Sum-product with evidence for every row, and drawing of the columns that are not known.

The junction tree is one of the unknown columns alone: what a factor says of them given the known ones is a table by the
known codes. Messages go from the leaves to the root; a clique's message depends on a row only through the known codes,
and the kinds of allowed codes, in the cliques below. Rows that agree in these form a group, which has one message. Then
rows are drawn from the root to the leaves, each clique's new columns given those above.

Arrays have the cells of unknown columns first and groups or rows last, which numpy runs through fastest. Products of
many small numbers may underflow; rows that come near are done again with logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.engine.drawing import Draws
from stratsynth.adapters.engine.forest import NEVER, Floats
from stratsynth.adapters.engine.structure import Clique, JunctionTree, junction_tree

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Ints = NDArray[np.intp]

MOST_AT_ONCE = 2**19
"""Number of cells that one array operation works on, 4 MB; more groups are taken in parts."""
EXPECTED = 2**14
"""Number of rows for which the root is chosen."""
NEAR = 1e-150
"""Largest product of a group, of factors of at most 1, below which its logarithms are taken instead."""

REPEATED = 2
"""Rows for each set of weights up to which they are drawn independently of one another."""

Factor = tuple[Clique, Floats]
"""Log potentials of the cells of some columns; -inf, or NEVER, for a cell that cannot be."""


class Beliefs:
    """Product of factors, prepared for rows whose columns `known` are known."""

    def __init__(
        self,
        sizes: Sequence[tuple[str, int]],
        factors: Sequence[Factor],
        known: Sequence[str],
        limited: Sequence[Clique] = (),
    ) -> None:
        """Join the factors, and the sets of columns `limited`, into one tree of the columns not `known`.

        Args:
            sizes: Pairs of a column and its number of levels.
            factors: Pairs of columns and a table.
            known: Names of the columns whose levels each row gives.
            limited: Sets of columns whose codes together are limited for each row.
        """
        levels, evidence = dict(sizes), set(known)
        unknown = tuple((name, size) for name, size in sizes if name not in evidence)
        free = [tuple(c for c in clique if c not in evidence) for clique in (*(c for c, _ in factors), *limited)]
        tree = junction_tree(unknown, tuple(dict.fromkeys(filter(None, free))))
        homes = [tree.home(clique) if clique else 0 for clique in free]
        parts = [[_Part.of(*factors[i], evidence, levels) for i in _at(homes[: len(factors)], c)] for c in _all(tree)]
        spans = [math.prod(levels[c] for c in {c for part in own for c in part.known}) for own in parts]
        parents, order = _rooted(tree, spans)
        place = {clique: i for i, clique in enumerate(order)}
        self.nodes: list[_Node] = []
        """Nodes in an order in which every one comes after its parent."""
        for number in order:
            above, own = parents[number], tree.cliques[number]
            shared = () if above < 0 else tuple(c for c in own if c in tree.cliques[above])
            new = tuple(c for c in own if c not in shared)
            shapes = tuple(tuple(levels[c] for c in columns) for columns in (shared, new))
            node = _Node(shared, new, shapes[0], shapes[1], parts[number], [], [])
            self.nodes.append(node)
            if above >= 0:
                self.nodes[place[above]].children.append(len(self.nodes) - 1)
        for number, home in enumerate(homes[len(factors) :]):
            self.nodes[place[home]].limits.append((number, tuple(limited[number])))
        self._levels = levels

    def draw(
        self,
        given: Mapping[str, Ints],
        kinds: Sequence[Ints],
        logs: Sequence[Floats],
        n: int,
        rng: Generator,
    ) -> tuple[dict[str, Ints], NDArray[np.bool_]]:
        """Return ({column: int array of codes drawn by `rng`}, mask of rows of probability 0), of the unknown columns.

        `given` maps known columns to arrays of the n rows' codes. `kinds` and `logs` have an array for each set of
        limited columns: the kind of each row; and a table (kinds, levels ...), 0 where allowed and -inf elsewhere.
        """
        drawn, never = self._drawn(given, kinds, logs, n, rng, log=False)
        left = np.flatnonzero(never)
        if left.size:  # of probability 0, or of products too small
            some = {name: codes[left] for name, codes in given.items()}
            again, none = self._drawn(some, [kind[left] for kind in kinds], logs, len(left), rng, log=True)
            for name, codes in again.items():
                drawn[name][left] = codes
            never[left] = none
        return drawn, never

    def _drawn(
        self,
        given: Mapping[str, Ints],
        kinds: Sequence[Ints],
        logs: Sequence[Floats],
        n: int,
        rng: Generator,
        *,
        log: bool,
    ) -> tuple[dict[str, Ints], NDArray[np.bool_]]:
        """Return ({column: array of codes drawn by `rng`}, mask of rows without a cell) as `draw`, by one arithmetic.

        `given` maps known columns to arrays of the `n` rows' codes; `kinds` and `logs` have an array for each limited
        set of columns: each row's kind, and each kind's factors of cells. Arithmetic is with logarithms if `log`.
        """
        groups: dict[int, _Group] = {}
        for i in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[i]
            pieces = [*node.pieces(given, log=log, n=n)]
            for number, clique in node.limits:
                shape = tuple(self._levels[c] for c in clique)
                pieces.append(_Piece.of(clique, logs[number].reshape(-1, *shape), kinds[number], log=log))
            for child in node.children:
                below = groups[child]
                assert below.message is not None  # noqa: S101 - of a node with one above
                pieces.append(_Piece(self.nodes[child].shared, below.message, below.of_row))
            group = _Group.of(pieces, n)
            if i:
                group.message = node.message(group, log=log)
            groups[i] = group
        drawn: dict[str, Ints] = {}
        never = np.zeros(n, dtype=bool)
        for i, node in enumerate(self.nodes):
            cell, none = node.cells(groups[i], drawn, n, rng, log=log)
            never |= none
            if node.new:
                drawn.update(zip(node.new, np.unravel_index(cell, node.new_shape), strict=True))
        return drawn, never


@dataclass(frozen=True, eq=False)
class _Part:
    """A factor's log potentials by its known codes: array (unknown levels ..., lines of known codes)."""

    known: Clique
    strides: tuple[int, ...]
    """Summand by known column: what a code adds to the number of the line."""
    free: Clique
    table: Floats
    scaled: Floats
    """Exponentials of the table, at most 1 in each line."""

    @classmethod
    def of(cls, clique: Clique, table: Floats, evidence: set[str], levels: Mapping[str, int]) -> _Part:
        """Return the `_Part` of a factor: `table`, logs with an axis for each column of `clique`, known columns apart.

        `evidence` is the set of known columns, `levels` maps columns to their numbers of levels.
        """
        known, free = (tuple(c for c in clique if (c in evidence) == there) for there in (True, False))
        shape = [*(levels[c] for c in free), math.prod(levels[c] for c in known)]
        turned = np.transpose(table, [clique.index(c) for c in (*free, *known)]).reshape(shape)
        turned = np.where(turned <= NEVER, -np.inf, turned)
        strides = tuple(math.prod(levels[c] for c in known[i + 1 :]) for i in range(len(known)))
        return cls(known, strides, free, turned, _scaled(turned, axes=len(free)))

    def lines(self, given: Mapping[str, Ints], n: int) -> Ints:
        """Return an int array: for each of `n` rows the number of the line of its known codes.

        `given` maps known columns to arrays of codes, an entry a row.
        """
        found = np.zeros(n, dtype=np.intp)
        for column, stride in zip(self.known, self.strides, strict=True):
            found += stride * given[column]
        return found


@dataclass(frozen=True, eq=False)
class _Piece:
    """A table that a node's beliefs are multiplied with: one for each line, and the line of each row or group."""

    columns: Clique
    table: Floats
    """Array (levels of the columns ..., lines)."""
    lines: Ints

    @classmethod
    def of(cls, clique: Clique, logs: Floats, kinds: Ints, *, log: bool) -> _Piece:
        """Return the `_Piece` of the columns `clique`, by a table and the kind of each row, an array `kinds`.

        The table, `logs`, is (kinds, levels ...). With `log`, a flag, the piece keeps its logarithms, else
        exponentials.
        """
        table = np.ascontiguousarray(np.moveaxis(logs, 0, -1))
        return cls(clique, table if log else _scaled(table, axes=len(clique)), kinds)


@dataclass(eq=False)
class _Group:
    """Groups of rows for which a node's beliefs are equal."""

    of_row: Ints
    pieces: list[_Piece]
    """The node's pieces, with the line of each group."""
    size: int
    message: Floats | None = None
    """Array (levels of the separator ..., groups)."""

    @classmethod
    def of(cls, pieces: list[_Piece], n: int) -> _Group:
        """Return the `_Group` of n rows: its lines are the sets of rows that have equal lines in all pieces."""
        of_row, first = _distinct([piece.lines for piece in pieces], n)
        return cls(of_row, [_Piece(p.columns, p.table, p.lines[first]) for p in pieces], len(first))


@dataclass(eq=False)
class _Node:
    """A clique of unknown columns: those of its separator, the others, and the factors that belong to it."""

    shared: Clique
    new: Clique
    shared_shape: tuple[int, ...]
    new_shape: tuple[int, ...]
    parts: list[_Part]
    children: list[int]
    limits: list[tuple[int, Clique]]
    """Sets of limited columns: number, columns."""

    def pieces(self, given: Mapping[str, Ints], *, log: bool, n: int) -> list[_Piece]:
        """Return a list of the node's factors as `_Piece`s, each with the line of each of `n` rows.

        `given` maps known columns to arrays of codes. With `log`, a flag, tables are logarithms, else scaled factors.
        """
        return [_Piece(p.free, p.table if log else p.scaled, p.lines(given, n)) for p in self.parts]

    def message(self, group: _Group, *, log: bool) -> Floats:
        """Return an array, an axis for each separator column, then lines of `group`: beliefs summed over new columns.

        The largest of a line is 1. With `log`, their logarithms. A line whose products are too small has NaN, and one
        without mass 0 or -inf.
        """
        columns, shape = (*self.shared, *self.new), (*self.shared_shape, *self.new_shape)
        axes = tuple(range(len(self.shared), len(columns)))
        found = np.empty((*self.shared_shape, group.size))
        step = max(1, MOST_AT_ONCE // math.prod(shape))
        for start in range(0, group.size, step):
            part = slice(start, min(start + step, group.size))
            belief = np.zeros((*shape, part.stop - start)) if log else np.ones((*shape, part.stop - start))
            for piece in group.pieces:
                one = piece.table.shape[-1] == 1
                table = piece.table if one else piece.table.take(piece.lines[part], axis=-1)
                _combine(belief, columns, piece.columns, table, log=log)
            if log:
                top = _finite(belief.max(axis=axes, keepdims=True)) if axes else np.zeros(1)
                with np.errstate(divide="ignore"):
                    sums = np.log(np.exp(belief - top).sum(axis=axes)) + top.reshape(found[..., part].shape)
                found[..., part] = sums - _finite(sums.max(axis=tuple(range(sums.ndim - 1)), keepdims=True))
            else:
                sums = belief.sum(axis=axes)
                top = sums.max(axis=tuple(range(sums.ndim - 1)), keepdims=True)
                found[..., part] = sums / np.where(top > NEAR, top, np.nan)
        return found

    def cells(
        self, group: _Group, drawn: Mapping[str, Ints], n: int, rng: Generator, *, log: bool
    ) -> tuple[Ints, NDArray[np.bool_]]:
        """Return two arrays, one entry a row: the cell of the new columns, drawn by `rng`; True where none is possible.

        `group` has the rows' factors, as logs if `log`; `drawn` maps columns drawn before to arrays, the level number
        of each of `n` rows.
        """
        at = np.zeros(n, dtype=np.intp)
        for column, size in zip(self.shared, self.shared_shape, strict=True):
            at = at * size + drawn[column]
        of_row, first = _distinct([group.of_row, at], n)
        lines = group.of_row[first]
        codes = (
            dict(zip(self.shared, np.unravel_index(at[first], self.shared_shape), strict=True)) if self.shared else {}
        )
        by_line = np.argsort(of_row, kind="stable")
        ends = np.searchsorted(of_row[by_line], np.arange(len(first) + 1))
        cell, never = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool)
        width = math.prod(self.new_shape)
        step = max(1, MOST_AT_ONCE // width)
        for start in range(0, len(first), step):
            stop = min(start + step, len(first))
            belief = np.zeros((*self.new_shape, stop - start)) if log else np.ones((*self.new_shape, stop - start))
            for piece in group.pieces:
                own = tuple(c for c in piece.columns if c not in self.shared)
                index = tuple(codes[c][start:stop] if c in codes else slice(None) for c in piece.columns)
                taken = piece.table[(*index, piece.lines[lines[start:stop]])]
                # numpy puts indexed axes first unless they are side by side; here they go last
                taken = _indexed_last(taken, index)
                _combine(belief, self.new, own, taken, log=log)
            weights = belief.reshape(width, -1)
            top = weights.max(axis=0)
            rows = by_line[ends[start] : ends[stop]]
            if log:
                weights = np.exp(weights - _finite(top))
                bad = ~np.isfinite(top)
            else:
                bad = ~(top > NEAR)
                weights = np.where(bad, 0.0, weights)
            if width > 1:
                cell[rows] = _picked(weights, of_row[rows] - start, rng)
            never[rows] = bad[of_row[rows] - start]
        return cell, never


def _picked(weights: Floats, line: Ints, rng: Generator) -> Ints:
    """Return an int array: for each row a cell drawn by `rng` with the weights of its line.

    `weights` is an array (cells, lines), `line` an array of the rows' lines.
    """
    if len(line) > REPEATED * weights.shape[1]:
        # many rows of a line share them out evenly
        return Draws(len(line), rng).draw(np.ascontiguousarray(weights.T), line)
    sums = np.cumsum(weights, axis=0)
    single = len(line) == weights.shape[1] and bool((line == np.arange(len(line))).all())
    mine = sums if single else sums[:, line]
    target = rng.random(len(line)) * mine[-1]
    picked: Ints = (mine <= target).sum(axis=0)
    beyond = picked == len(weights)  # rounded to the whole sum, or no cell at all
    picked[beyond] = weights[:, line[beyond]].argmax(axis=0)
    return picked


def _combine(belief: Floats, columns: Clique, own: Clique, table: Floats, *, log: bool) -> None:
    """Multiply the array `belief`, over `columns`, in place with `table`, over `own`, some of them; with `log`, add.

    Both arrays have an axis for each column, then one of rows or groups, of which the table may have one for all.
    """
    axes = sorted(range(len(own)), key=lambda i: columns.index(own[i]))
    turned = np.transpose(table, [*axes, len(own)])
    view = turned.reshape([belief.shape[i] if c in own else 1 for i, c in enumerate(columns)] + [table.shape[-1]])
    if log:
        belief += view
    else:
        belief *= view


def _indexed_last(taken: Floats, index: tuple[Ints | slice, ...]) -> Floats:
    """Return the array `taken`, which was indexed by `index`, with the axis of the index's arrays last.

    `index` has arrays and slices, and one more array at its end.
    """
    arrays = [i for i, each in enumerate(index) if not isinstance(each, slice)]
    # arrays side by side, up to the last axis, leave theirs where they are
    together = arrays == list(range(len(index) - len(arrays), len(index)))
    return taken if together else np.moveaxis(taken, 0, -1)


def _finite(top: Floats) -> Floats:
    found: Floats = np.where(np.isfinite(top), top, 0.0)
    return found


def _scaled(table: Floats, axes: int) -> Floats:
    """Return an array like `table`, an array of logarithms: their exponentials, divided by the largest of each line.

    A line runs over the first `axes` axes, a number; the last axis counts lines.
    """
    top = table.max(axis=tuple(range(axes)), keepdims=True) if axes else table
    found: Floats = np.exp(table - _finite(top))
    return found


def _distinct(parts: Sequence[Ints], n: int) -> tuple[Ints, Ints]:
    """Return two int arrays: the number of each row's combination of `parts`, and one row of each combination.

    `parts` is a list of arrays of numbers, an entry a row; there are `n` rows.
    """
    number, first = np.zeros(n, dtype=np.intp), np.zeros(min(n, 1), dtype=np.intp)
    for values in parts:
        if not n or values.max() == values.min():
            continue
        # two numbers below n and below 2**40 make one of 64 bits
        joined = number * (int(values.max()) + 1) + values
        _, first, number = np.unique(joined, return_index=True, return_inverse=True)
    return number.astype(np.intp), first


def _at(homes: Sequence[int], clique: int) -> list[int]:
    return [i for i, home in enumerate(homes) if home == clique]


def _all(tree: JunctionTree) -> range:
    return range(len(tree.cliques))


def _rooted(tree: JunctionTree, spans: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return two lists of numbers of a junction tree's cliques: each one's parent (-1: root); all, from the root down.

    The root is that at which messages have fewest cells; `spans` has for each clique the number of combinations of
    known codes that its beliefs depend on.
    """
    near: list[list[int]] = [[] for _ in tree.cliques]
    for clique, parent in enumerate(tree.parents):
        if parent >= 0:
            near[clique].append(parent)
            near[parent].append(clique)
    cells = [math.prod(tree.shape(clique)) for clique in tree.cliques]
    best: tuple[float, list[int], list[int]] | None = None
    for root in range(len(tree.cliques)):
        parents, order = [-1] * len(tree.cliques), [root]
        for clique in order:
            for other in near[clique]:
                if other != parents[clique]:
                    parents[other] = clique
                    order.append(other)
        below, cost = [float(span) for span in spans], 0.0
        for clique in reversed(order):
            cost += cells[clique] * min(EXPECTED, below[clique])
            if parents[clique] >= 0:
                below[parents[clique]] = min(below[parents[clique]] * below[clique], 1e300)
        if best is None or cost < best[0]:
            best = cost, parents, order
    assert best is not None  # noqa: S101 - a tree has a clique
    return best[1], best[2]
