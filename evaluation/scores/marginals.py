"""Distances between two tables' marginals, in every group and for everybody, in one pass over the rows per clique.

Rows are counted by group x cell at once, real and synthetic alike, and all groups' distances follow from the two tables
of counts; eighteen groups cost little more than none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.checks import check_integer
from stratsynth.errors import Unsupported, UsageError
from stratsynth.evaluation.tables import Array, Codes, EncodedRows, Pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

DENSE = 1 << 20
"""Cells up to which a table of counts is an array (or up to 8 per row); larger ones list the occupied cells."""
SEED = 5
"""Seed of the choice among too many cliques: it is the same for every pair of tables."""


@dataclass(frozen=True, eq=False)
class WorkloadError:
    """INTERNAL. Total variation (half the L1 distance, from 0 to 1) between two tables' marginals, by clique and scope.

    Scopes are those of `Pair.frame`. A scope in which either table has no row has NaN.
    """

    cliques: tuple[tuple[str, ...], ...]
    """Sets of columns."""
    values: NDArray[np.float64]
    """Array (cliques, scopes) of total variations."""
    errors: NDArray[np.float64]
    """Standard errors of `values`, by the delta method; NaN if a table has fewer than two rows."""
    influence: tuple[Array, Array]
    """Influence of each real and each synthetic row on its group's mean error, times the number of cliques: half the
    sum over cliques of the sign of its cell's difference within its group."""
    influence_everybody: tuple[Array, Array]
    """Influences on the mean error of everybody."""

    def mean(self) -> NDArray[np.float64]:
        """Array over groups, then everybody: mean of the total variation over the cliques."""
        means: NDArray[np.float64] = self.values.mean(axis=0)
        return means

    def mean_errors(self, pair: Pair) -> NDArray[np.float64]:
        """Array by group of a pair, then everybody: standard errors of the mean over cliques of these errors.

        Errors of cliques correlate, as they share rows.
        """
        count = len(self.cliques)
        groups, whole = np.zeros(len(pair.groups)), np.zeros(1)
        for side in (0, 1):
            weights = pair.tables[side].weights
            pull = self.influence[side] / count
            groups = groups + variance_of_means(pull, pair.members[side], pair.mass[side], weights)
            everybody = np.zeros(pair.tables[side].rows, np.int64)
            sizes = pair.mass[side].sum(keepdims=True)
            whole = whole + variance_of_means(self.influence_everybody[side] / count, everybody, sizes, weights)
        found: NDArray[np.float64] = np.sqrt(pair.spread(groups, whole[0]))
        return found


def variance_of_means(values: Array, group: Array, sizes: Array, weights: Array | None = None) -> NDArray[np.float64]:
    """Array over groups: variance of the mean of `values` in each; NaN for a size up to 1.

    `values` and `group` are arrays of one a row, the latter the number of its group. `sizes` is the array of the
    groups' sums of `weights`, an array of one a row, or of rows if that is None.
    """
    each = 1.0 if weights is None else weights
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(group, weights=each * values, minlength=len(sizes)) / sizes
        squares = np.bincount(group, weights=each * (values - means[group]) ** 2, minlength=len(sizes))
        spread: NDArray[np.float64] = np.where(sizes > 1, squares / (sizes * (sizes - 1.0)), np.nan)
    return spread


def all_cliques(columns: Sequence[str], k: int, most: int | None) -> list[tuple[str, ...]]:
    """List of tuples, all sets of `k` of the named columns, in order; a fixed choice of `most` sets if there are more.

    With `most` None all of them. UsageError for a k that is out of range.
    """
    check_integer("evaluation: k", k, 1)
    check_integer("evaluation: the number of cliques", most, 1, optional=True)
    if not 1 <= k <= len(columns):
        raise UsageError(f"evaluation: k must be from 1 to the {len(columns)} columns.")
    if most is not None and comb(len(columns), k) > most:
        order = {name: i for i, name in enumerate(columns)}
        return sorted(some_cliques(columns, k, most), key=lambda clique: [order[name] for name in clique])
    return list(combinations(columns, k))


def some_cliques(columns: Sequence[str], k: int, most: int) -> list[tuple[str, ...]]:
    """List of tuples, all sets of k of the columns in order; if there are more than `most`, so many in random order.

    The choice is fixed.
    """
    every = list(combinations(columns, k))
    if len(every) <= most:
        return every
    return [every[i] for i in np.random.default_rng(SEED).permutation(len(every))[:most]]


def workload(pair: Pair, cliques: Sequence[tuple[str, ...]], *, errors_of_means: bool = True) -> WorkloadError:
    """Count all cliques in a Pair's tables; return WorkloadError: total variations and errors by group and everybody.

    Without `errors_of_means` the rows' influences on the means are not computed, which is half of the work, and
    `mean_errors` is 0: for callers that estimate the spread from several tables.
    """
    real, synthetic = pair.mass
    # sums of signs are exact in integers
    influences = [np.zeros(table.rows, np.int32) for table in (*pair.tables, *pair.tables)]
    shares = _Shares(real, synthetic), _Shares(real.sum(keepdims=True), synthetic.sum(keepdims=True))
    keys = _Keys(pair)
    values, errors = [], []
    for clique in cliques:
        found = []
        # without `by`, everybody is the only group
        passes = ((True, shares[0], influences[:2]), (False, shares[1], influences[2:]))[not pair.by :]
        for grouped, share, kept in passes:
            cells = keys.count(clique, grouped=grouped)
            distance, error, signs = share.compare(cells)
            for side, at in enumerate(cells.rows if errors_of_means else ()):
                kept[side] += signs[at]
            found.append((distance, error))
        values.append(np.concatenate([distance for distance, _ in found]))
        errors.append(np.concatenate([error for _, error in found]))
    groups, everybody = (influences[:2], influences[2:]) if pair.by else (influences[2:], influences[2:])
    return WorkloadError(
        tuple(cliques),
        np.array(values),
        np.array(errors),
        (groups[0] / 2, groups[1] / 2),
        (everybody[0] / 2, everybody[1] / 2),
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """Occupied cells of a clique's tables."""

    counts: Array
    """Array (2, cells): number or weight of the real and synthetic rows in each cell, empty ones included."""
    rows: tuple[Array, Array]
    """Number of the cell that each row of the two tables lies in."""
    group: Array
    """Group of each occupied cell."""
    occupied: Array
    """Numbers of the occupied cells."""


class _Keys:
    """Cell numbers of rows, built column by column; the prefix up to the last column is cached for the next clique."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._kept: dict[bool, tuple[tuple[str, ...], list[Array], int]] = {}

    def count(self, clique: tuple[str, ...], *, grouped: bool) -> _Cells:
        """Return _Cells, the counts of both tables' rows in cells of the clique, or of group x clique if `grouped`.

        Unsupported for 2^62 cells or more.
        """
        pair, last = self._pair, clique[-1]
        prefix, size = self._prefix(clique[:-1], grouped=grouped)
        levels = pair.schema.size(last)
        cells, groups = size * levels, len(pair.groups) if grouped else 1
        if cells >= 1 << 62:
            raise Unsupported(f"evaluation: {' x '.join(clique)} has too many cells to number; use a smaller k.")
        weights = [table.weights for table in pair.tables]
        rows: list[Array] = [key * levels + t.codes[last] for key, t in zip(prefix, pair.tables, strict=True)]
        if cells <= max(DENSE, 8 * sum(map(len, rows))):
            counts = np.stack([np.bincount(key, w, cells) for key, w in zip(rows, weights, strict=True)])
            occupied = np.flatnonzero(counts[0] + counts[1])
            return _Cells(counts, (rows[0], rows[1]), occupied // (cells // groups), occupied)
        unique, place = np.unique(np.concatenate(rows), return_inverse=True)
        rows = list(np.split(place, [len(rows[0])]))
        counts = np.stack([np.bincount(key, w, len(unique)) for key, w in zip(rows, weights, strict=True)])
        return _Cells(counts, (rows[0], rows[1]), unique // (cells // groups), np.arange(len(unique)))

    def _prefix(self, columns: tuple[str, ...], *, grouped: bool) -> tuple[list[Array], int]:
        """Return (list of two arrays, one a table: each row's number among cells of `columns`; the number of cells).

        With `grouped`, cells are those of the groups and `columns`.
        """
        kept = self._kept.get(grouped)
        if kept is not None and kept[0] == columns:
            return kept[1], kept[2]
        pair = self._pair
        keys = [m.astype(np.int64) if grouped else np.zeros(len(m), np.int64) for m in pair.members]
        size = len(pair.groups) if grouped else 1
        for name in columns:
            levels = pair.schema.size(name)
            keys = [key * levels + table.codes[name] for key, table in zip(keys, pair.tables, strict=True)]
            size *= levels
            if size >= 1 << 62:
                raise Unsupported(f"evaluation: {' x '.join(columns)} has too many cells to number; use a smaller k.")
        self._kept[grouped] = (columns, keys, size)
        return keys, size


class _Shares:
    """Conversion of counts to shares within a group, and of shares to distances."""

    def __init__(self, real: Array, synthetic: Array) -> None:
        self._sizes = (real, synthetic)
        self._none = (real == 0) | (synthetic == 0)
        self._scale = [1 / np.where(size > 0, size, 1) for size in self._sizes]

    def compare(self, cells: _Cells) -> tuple[Array, Array, Array]:
        """Return three arrays by one `_Cells` of both tables: total variation by group, standard errors, cells' signs.

        The first two are NaN for a group that one table lacks; a sign is of real minus synthetic share, 0 if equal.
        """
        group, groups = cells.group, len(self._none)
        shares = [c[cells.occupied] * s[group] for c, s in zip(cells.counts, self._scale, strict=True)]
        difference = shares[0] - shares[1]
        # the two shares are rounded separately: equal ones must not get a sign
        difference[np.abs(difference) < 1e-12] = 0
        distance = np.bincount(group, np.abs(difference), groups) / 2
        distance[self._none] = np.nan
        sign = np.sign(difference)
        spread = np.zeros(groups)
        for share, size in zip(shares, self._sizes, strict=True):
            # variance of a mean of signs over the cells, by the delta method
            signed = np.bincount(group, share * sign, groups)
            squared = np.bincount(group, share * np.abs(sign), groups)
            with np.errstate(invalid="ignore", divide="ignore"):
                spread += np.where(size > 1, np.maximum(squared - signed**2, 0) / (4 * (size - 1.0)), np.nan)
        signs = np.zeros(cells.counts.shape[1], np.int8)
        signs[cells.occupied] = sign
        spread[self._none] = np.nan
        return distance, np.sqrt(spread), signs


def coded(frame: Any, schema: Schema) -> Codes:
    """Mapping from column to array of level numbers, one a row, from `frame` (frame, path, Arrow table) of a schema."""
    return EncodedRows.read(frame, schema).codes


def mean_l1(one: Codes, two: Codes, schema: Schema, cliques: Sequence[tuple[str, ...]]) -> float:
    """Mean over cliques of the L1 distance, 0 to 2, of the tables `one` and `two`.

    Each is a mapping from column to array of level numbers in the schema, one a row. Tables are normalised; an empty
    one has only zeros, and is at distance 1 from any other.
    """
    names = sorted({name for clique in cliques for name in clique})
    tables = [EncodedRows(schema, {c: codes[c] for c in names}, {}, len(codes[names[0]])) for codes in (one, two)]
    if not tables[0].rows or not tables[1].rows:
        return float(tables[0].rows != tables[1].rows)
    found = workload(Pair.of(tables[0], tables[1], schema), cliques)
    return 2 * float(found.values.mean())


def members(codes: Codes, schema: Schema, group: Mapping[str, str]) -> Codes:
    """Return {column: array of level numbers}, as `codes`, of the rows that are in one group of a schema.

    `group` maps columns to the one level of the group, a text.
    """
    kept = np.ones(len(next(iter(codes.values()))), dtype=bool)
    for column, level in group.items():
        kept &= codes[column] == schema.index(column, level)
    return {name: column[kept] for name, column in codes.items()}
