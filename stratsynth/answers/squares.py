"""Generalised least squares over every measured table at once, in closed form.

Cells of a table have independent noise of one variance. For a set A of columns, let the interaction z(A) be the counts
over A with the mean taken out along each axis (for no columns, the total). A table of columns C with noise variance s^2
holds one noisy copy of z(A) for each A within C, with noise of variance s^2 prod_{C-A} n_i in the space of such arrays,
n_i being the levels of column i. Copies for different A are independent, since projections of equal independent noise
on orthogonal spaces are. So least squares over all tables falls apart into one small problem for each A:

- in one stratum, the copies are averaged by inverse variance;
- tables of all records hold a copy Z(A), of variance V, of the sum over the strata. If every stratum s was measured,
  with variance v_s, z_s moves by v_s (Z - sum z) / (V + sum v), and the covariance is diag(v) - v v' / (V + sum v).
  If some were not, only sums in which all of these have one weight k are known: k Z + sum (c_s - k) z_s;
- tables of all records over some of the columns that define strata hold copies of sums over several strata: see
  `stratsynth.answers.across`.

A linear function of counts that is a product over columns, w = prod w_i, depends on z(A) through the product of w_i
over A and of the means of w_i elsewhere, so that its variance is a sum over A of products of numbers. All of this is
exact: the dense solution of the same least squares has the same estimates and covariances.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from stratsynth.answers.across import Across
from stratsynth.answers.tables import Columns, Leaf, Noisy, Tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

FLAT = 1e-12
"""Smallest fraction of a factor's squared norm that is not rounding error."""


@dataclass(frozen=True, eq=False)
class Functions:
    """Linear functions of the cell counts of all records; each one's weights are a product of one factor per column."""

    number: int
    factors: Mapping[str, Floats]
    """Column -> array (functions, levels), or (1, levels) if shared; a column without a factor is summed over all
    levels."""
    kept: Floats | None = None
    """Array (functions, strata) of factors of the strata; None for 1 in all."""
    added: Added | None = None
    """Numbers measured beside the tables that are added; None for none."""
    more: Functions | None = None
    """Functions that are added to these, one to each; None for none."""

    def times(self, name: str, factor: Floats) -> Functions:
        """Return `Functions`: these multiplied by `factor`, an array (functions or 1, levels), of the column `name`."""
        factor = np.broadcast_to(factor, (self.number, factor.shape[1]))
        factor = self.factors[name] * factor if name in self.factors else factor
        return replace(self, factors={**self.factors, name: factor})

    def take(self, rows: NDArray[np.intp]) -> Functions:
        """Return `Functions`: those of these with the indices `rows`, in that order."""
        return Functions(
            len(rows),
            {name: factor[rows] for name, factor in self.factors.items()},
            None if self.kept is None else self.kept[rows],
            None if self.added is None else Added(self.added.numbers, self.added.weights[rows]),
            None if self.more is None else self.more.take(rows),
        )

    @property
    def terms(self) -> tuple[Functions, ...]:
        """Tuple of `Functions` that add up to these, each a product of factors."""
        return (self,) if self.more is None else (self, *self.more.terms)


@dataclass(frozen=True, eq=False)
class Added:
    """Sums over the strata of numbers that were measured beside the tables, with noise of their own."""

    numbers: Interaction
    weights: Floats
    """Array (functions, strata) of the numbers' weights."""


@dataclass(frozen=True, eq=False)
class Interaction:
    """Least-squares state of one interaction z(A): a copy per stratum and a pooled copy of their sum."""

    values: Floats
    """Array (strata, entries of z(A)): 0 if unmeasured; adjusted by the pooled copy if all strata were measured."""
    variances: Floats
    """Noise variance of each stratum's own copy, in records squared; infinite if unmeasured."""
    total: Floats | None
    """Pooled copy: z(A) of all records; None if no table of all records covers A."""
    variance: float
    """Noise variance of the pooled copy; infinite if there is none."""

    @classmethod
    def of(cls, values: Floats, variances: Floats, total: Floats | None, variance: float) -> Interaction:
        """Return an `Interaction` of strata's copies, an array `values` (strata, entries) and an array `variances`.

        These are the noise's, infinite for none. A pooled copy, an array `total`, of `variance`, or None, is worked
        in: with all strata measured, z_s moves by v_s (Z - sum z) / (V + sum v).
        """
        if total is not None and np.isfinite(variances).all():
            step = variances / (variance + variances.sum())
            values = values + step[:, None] * (total - values.sum(axis=0))
        return cls(values, variances, total, variance)

    @cached_property
    def lacking(self) -> Bools:
        """Mask by stratum: True without a measured copy of the interaction."""
        return np.isinf(self.variances)

    @cached_property
    def known(self) -> Floats:
        """Array by stratum: noise variance of its copy, 0 in place of infinite ones."""
        return np.where(self.lacking, 0.0, self.variances)

    def split(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return (array by function: pooled part; array like `weights`: rest, 0 if unmeasured), (functions, strata)."""
        if self.total is None or not self.lacking.any():
            return np.zeros(len(weights)), np.where(self.lacking, 0.0, weights)
        # an unmeasured stratum is known only as part of the pooled total Z, so all of these need one weight k
        k = weights[:, self.lacking][:, 0]
        return k, np.where(self.lacking, 0.0, weights - k[:, None])

    def estimable(self, weights: Floats) -> Bools:
        """Return a mask of functions: True where their sum over the strata is known; `weights` are (functions, strata).

        Unmeasured strata have one weight, 0 if nothing is pooled.
        """
        there = weights[:, self.lacking]
        if there.shape[1] == 0:
            return np.ones(len(weights), dtype=bool)
        if self.total is None:
            return np.asarray((there == 0).all(axis=1))
        return np.asarray((there == there[:, :1]).all(axis=1))

    def sums(self, weights: Floats) -> Floats:
        """Return an array (functions, entries): this estimate summed over strata by `weights` (functions, strata)."""
        k, rest = self.split(weights)
        # k Z + sum (c_s - k) z_s; with all strata measured, k is 0 and `values` already contain Z
        found = rest @ self.values
        return found if self.total is None else found + k[:, None] * self.total

    def covariance(self, one: Floats, other: Floats) -> Floats:
        """Return an array, one a function: noise covariance of two sums over strata, by weights `one` and `other`.

        Both are (functions, strata); the covariance is that along a unit vector.
        """
        (k, a), (m, b) = self.split(one), self.split(other)
        # diag(v), plus k m V for the pooled copy, or minus v v' / (V + sum v) if Z adjusted all strata
        found = (a * b) @ self.known
        if self.total is None:
            return np.asarray(found)
        if self.lacking.any():
            return np.asarray(found + k * m * self.variance)
        return np.asarray(found - (a @ self.known) * (b @ self.known) / (self.variance + self.known.sum()))


class Squares:
    """Estimates and noise covariances of linear functions of the counts, from all tables of a release."""

    def __init__(self, tables: Tables) -> None:
        """Keep `tables`, all those of a release; results are computed on demand and cached."""
        self.tables = tables
        self._found: dict[Columns, Interaction | Across] = {}
        self._places: dict[str, tuple[list[list[int]], NDArray[np.intp]]] = {}
        self._weighted: WeakKeyDictionary[Functions, Floats] = WeakKeyDictionary()
        self._inside: dict[tuple[int, Columns], tuple[Floats, float] | None] = {}
        self._merging = [(number, leaf) for number, leaf in enumerate(tables.leaves) if leaf.merged(tuple(tables.by))]
        """(Number, stratum) of every stratum in which a defining column takes several levels."""
        self._across: dict[tuple[int, ...], list[Noisy]] = {}
        """Tables that count several strata together, by the strata's numbers."""
        for each in tables.across:
            self._across.setdefault(each.leaves, []).append(each.table)
        shapes: dict[tuple[Columns, tuple[int, ...]], tuple[list[int], list[Noisy]]] = {}
        for number, leaf in enumerate(tables.leaves):
            for table in leaf.tables:
                leaves, same = shapes.setdefault((table.columns, table.values.shape), ([], []))
                leaves.append(number)
                same.append(table)
        self._by_shape = [(key[0], np.array(leaves, dtype=np.intp), same) for key, (leaves, same) in shapes.items()]
        """(Columns, array of strata's numbers, tables) for the strata's tables of equal columns and shape."""

    def estimate(self, functions: Functions) -> tuple[Floats, Bools]:
        """Return (array: estimate of each of `functions`, in records, NaN if unknown; mask of the known ones)."""
        value, known = np.zeros(functions.number), np.ones(functions.number, dtype=bool)
        for term in functions.terms:
            for (_, columns), part, weights, found in self._keyed(term):
                needed = (_squares(part, columns) > FLAT) & (weights != 0).any(axis=1)
                known &= ~needed | found.estimable(weights)
                # w reads z(A) through its factors over A; the other factors enter by their means
                value += _contract(found.sums(weights), [part.vectors[name] for name in columns]) * part.mean(columns)
            if term.added is not None:
                known &= term.added.numbers.estimable(term.added.weights)
                value += term.added.numbers.sums(term.added.weights)[:, 0]
        return np.where(known, value, np.nan), known

    def covariance(self, one: Functions, other: Functions) -> Floats:
        """Return an array: noise covariance of function i of `one` with function i of `other`, in records squared."""
        result = np.zeros(one.number)
        for first, second in itertools.product(one.terms, other.terms):
            result += self._between(first, second)
            if first.added is not None and second.added is not None:
                result += first.added.numbers.covariance(first.added.weights, second.added.weights)
        return result

    def _between(self, one: Functions, other: Functions) -> Floats:
        """Return an array: noise covariance of function i of `one` with function i of `other`, without added terms.

        Each is one product of factors.
        """
        result = np.zeros(one.number)
        theirs = {key: (part, weights) for key, part, weights, _ in self._keyed(other)}
        for key, part, weights, found in self._keyed(one):
            if key in theirs:
                (_, columns), (second, others) = key, theirs[key]
                # different interactions have independent noise, so only those that both functions read contribute
                inner = np.prod([_inner(part.vectors[c], second.vectors[c]) for c in columns], axis=0)
                scale = inner * part.mean(columns) * second.mean(columns)
                result += np.where(scale != 0, scale * found.covariance(weights, others), 0.0)
        return result

    @cached_property
    def totals(self) -> tuple[Floats, Floats, tuple[float, float] | None]:
        """(Array of strata's totals; their variances, infinite: none; everybody's (total, variance) or None)."""
        values, variances = self._copies(())
        pooled = _average(self.tables.everybody, ())
        return values[:, 0], variances, None if pooled is None else (float(pooled[0].item()), float(pooled[1]))

    def most(self, functions: Functions) -> Floats:
        """Return an array: the largest value that each of `functions`, 0 or 1, can have by the strata's public sizes.

        Infinite if unknown.
        """
        outer = tuple(name for name in self.tables.schema.names if name in functions.factors and name in self.tables.by)
        people = np.array([leaf.people for leaf in self.tables.leaves])
        found: Floats = np.where(self._weights(functions, outer) > 0, people, 0.0).sum(axis=1)
        return found

    def strata(self, functions: Functions) -> Floats:
        """Return an array (functions, strata): the part of each stratum's levels that each of `functions` counts."""
        return self._weights(functions, tuple(name for name in functions.factors if name in self.tables.by))

    def nearest(self, columns: Columns) -> list[Columns]:
        """Return a list of maximal subsets of `columns`, tuples, that measured tables cover, largest first; or []."""
        several = [c for size in range(len(columns), 0, -1) for c in itertools.combinations(columns, size)]
        held = [c for c in several if self._covers(c)]
        return [c for c in held if not any(set(c) < set(d) for d in held)]

    def forget(self, columns: Columns) -> None:
        """Drop the cached interaction of `columns`, as those of thousands of strata would fill the memory."""
        self._found.pop(columns, None)
        for number, _ in self._merging:
            self._inside.pop((number, columns), None)

    def _covers(self, columns: Columns) -> bool:
        """True if a table of all records has all `columns`, or each stratum has one with those that vary in it."""
        wanted, by = set(columns), self.tables.by
        if any(wanted <= set(each.of) for each in self.tables.across):
            return True
        return any(wanted <= set(t.columns) for t in self.tables.everybody) or all(
            any(wanted - (by - set(leaf.merged(columns))) <= set(t.columns) for t in leaf.tables)
            for leaf in self.tables.leaves
        )

    def _keyed(self, functions: Functions) -> Iterator[tuple[tuple[int, Columns], _Part, Floats, Interaction | Across]]:
        """Yield (key, factors, weights of strata, interaction) for each interaction that the functions can depend on.

        First those of the columns that define no strata, key (-1, columns); then those with merged levels, one stratum
        at a time, key (number of the stratum, columns).
        """
        by = self.tables.by
        inner = tuple(name for name in self.tables.schema.names if name in functions.factors and name not in by)
        outer = tuple(name for name in self.tables.schema.names if name in functions.factors and name in by)
        part = _Part({name: functions.factors[name] for name in inner})
        if functions not in self._weighted:
            self._weighted[functions] = self._weights(functions, outer)
        weights = self._weighted[functions]
        for columns in _subsets(inner):
            yield (-1, columns), part, weights, self._interaction(columns)
        for number, leaf in self._merging:
            for varying in _subsets(leaf.merged(outer)):
                if not varying:
                    continue
                # within a merged stratum the defining column varies, and has interactions that no other stratum shares
                cut = {name: functions.factors[name][:, leaf.codes[name]] for name in varying}
                here = _Part({**part.vectors, **cut})
                alone, others = np.zeros_like(weights), tuple(name for name in outer if name not in varying)
                alone[:, number] = _weight(functions, leaf, others) * self._kept(functions)[:, number]
                for columns in _subsets(inner):
                    every = (*columns, *varying)
                    yield (number, every), here, alone, self._alone(number, every)

    def _weights(self, functions: Functions, outer: Columns) -> Floats:
        """Return an array (functions, strata): product of the factors of columns `outer`, averaged over levels."""
        found = self._kept(functions)
        for name in outer:
            several, place = self._levels(name)
            factors = np.stack([functions.factors[name][:, codes].mean(axis=1) for codes in several], axis=1)
            found = found * factors[:, place]
        return found

    def _kept(self, functions: Functions) -> Floats:
        """Return an array (functions, strata) of the functions' factors of the strata; 1 where they have none."""
        ones = np.ones((functions.number, len(self.tables.leaves)))
        return ones if functions.kept is None else functions.kept

    def _levels(self, name: str) -> tuple[list[list[int]], NDArray[np.intp]]:
        """Return (list of distinct lists of codes, the strata's in column `name`; array: each stratum's index)."""
        if name not in self._places:
            several: dict[tuple[int, ...], int] = {}
            place = [several.setdefault(tuple(leaf.codes[name]), len(several)) for leaf in self.tables.leaves]
            self._places[name] = list(map(list, several)), np.array(place, dtype=np.intp)
        return self._places[name]

    def _interaction(self, columns: Columns) -> Interaction | Across:
        """Return the `Interaction` or `Across` of `columns`: least squares of copies of strata and of sums; cached."""
        if columns not in self._found:
            values, variances = self._copies(columns)
            pooled, sums = _average(self.tables.everybody, columns), self._sums(columns)
            total, variance = (None, np.inf) if pooled is None else pooled
            if sums and total is not None:
                sums.append((total, np.ones(len(variances)), variance))
            one = Across.of(values, variances, sums) if sums else Interaction.of(values, variances, total, variance)
            self._found[columns] = one
        return self._found[columns]

    def _sums(self, columns: Columns) -> list[tuple[Floats, Floats, float]]:
        """Return a list of (flat interaction of `columns`, 0/1 mask of strata, noise variance), one a measured sum."""
        found = []
        for leaves, tables in self._across.items():
            copy = _average(tables, columns)
            if copy is not None:
                mask = np.zeros(len(self.tables.leaves))
                mask[list(leaves)] = 1.0
                found.append((copy[0], mask, copy[1]))
        return found

    def _copies(self, columns: Columns) -> tuple[Floats, Floats]:
        """Return arrays (strata x entries: interaction of `columns` in each one's tables; noise variances by stratum).

        Tables are averaged by inverse variance; the variance is infinite, and the entries 0, for a stratum without a
        table.
        """
        cells = int(np.prod([self.tables.schema.size(name) for name in columns], dtype=int))
        total, worth = np.zeros((len(self.tables.leaves), cells)), np.zeros(len(self.tables.leaves))
        for held, leaves, tables in self._by_shape:
            if set(columns) <= set(held):
                found = _interactions(held, np.stack([table.values for table in tables]), columns)
                weights = _summed(tables[0], columns) / np.array([table.variance for table in tables])
                total[leaves] += weights[:, None] * found
                worth[leaves] += weights
        there = worth > 0
        values = np.divide(total, worth[:, None], out=total, where=there[:, None])
        return values, np.divide(1.0, worth, out=np.full_like(worth, np.inf), where=there)

    def _alone(self, number: int, columns: Columns) -> Interaction:
        """Return the `Interaction` of `columns`, one merged among them, known in the stratum of this `number` only."""
        leaves, sizes = self.tables.leaves, self.tables.sizes(self.tables.leaves[number])
        if (number, columns) not in self._inside:
            self._inside[number, columns] = _average(leaves[number].tables, columns)
        values = np.zeros((len(leaves), int(np.prod([sizes[name] for name in columns], dtype=int))))
        variances, copy = np.full(len(leaves), np.inf), self._inside[number, columns]
        if copy is not None:
            values[number], variances[number] = copy
        return Interaction(values, variances, None, np.inf)


class _Part:
    """Factors (functions, levels) by column, with the mean of each over its levels."""

    def __init__(self, vectors: Mapping[str, Floats]) -> None:
        self.vectors = vectors
        self._means = {name: vector.mean(axis=1) for name, vector in vectors.items()}

    def mean(self, columns: Columns) -> Floats:
        """Return an array, one a function: the product of the means of these factors but for those of `columns`."""
        others = [mean for name, mean in self._means.items() if name not in columns]
        return np.asarray(np.prod(others, axis=0)) if others else np.ones(1)


def _subsets(columns: Columns) -> Iterator[Columns]:
    """Yield every subset of `columns` as a tuple, the empty one first."""
    return itertools.chain.from_iterable(itertools.combinations(columns, n) for n in range(len(columns) + 1))


def _weight(functions: Functions, leaf: Leaf, outer: Columns) -> Floats:
    """Return an array: each function's factors of the columns `outer`, averaged over levels of a stratum `leaf`."""
    weight = np.ones(functions.number)
    for name in outer:
        weight = weight * functions.factors[name][:, leaf.codes[name]].mean(axis=1)
    return weight


def _inner(one: Floats, other: Floats) -> Floats:
    """Return an array, one a row: inner product of `one` and `other` (functions, levels), each less its row's mean.

    Exactly 0 within rounding.
    """
    a, b = one - one.mean(axis=1, keepdims=True), other - other.mean(axis=1, keepdims=True)
    found = np.einsum("fi,fi->f", a, b)
    # rounding of a constant factor must not make its interactions seem needed
    tiny = FLAT * np.sqrt(np.einsum("fi,fi->f", one, one) * np.einsum("fi,fi->f", other, other))
    return np.where(np.abs(found) > tiny, found, 0.0)


def _squares(part: _Part, columns: Columns) -> Floats:
    """Return an array, 0 to 1: share of each function's squared norm, by `part`, in the interaction of `columns`."""
    found = np.ones(1)
    for name in columns:
        vector = part.vectors[name]
        whole = np.einsum("fi,fi->f", vector, vector)
        found = found * np.divide(_inner(vector, vector), whole, out=np.zeros_like(whole), where=whole > 0)
    return np.asarray(found * (part.mean(columns) != 0))


def _contract(values: Floats, vectors: Sequence[Floats]) -> Floats:
    """Return an array, one number a row of `values`: the row, seen as an array, multiplied by a vector for each axis.

    `vectors` has an array (rows, levels) for each of the axes.
    """
    for vector in reversed(vectors):
        values = np.einsum("fai,fi->fa", values.reshape(len(values), -1, vector.shape[1]), vector)
    return values.reshape(len(values))


def _average(tables: Sequence[Noisy], columns: Columns) -> tuple[Floats, float] | None:
    """Return (flat interaction of `columns`, averaged by inverse variance over `tables` that have them; its variance).

    `tables` are a list of `Noisy`; None if no table has them.
    """
    total, worth, wanted = np.zeros(1), 0.0, set(columns)
    for table in tables:
        if wanted <= set(table.columns):
            weight = _summed(table, columns) / table.variance
            total = total + weight * _interactions(table.columns, table.values[None], columns)[0]
            worth += weight
    return (total / worth, 1 / worth) if worth else None


def _interactions(held: Columns, values: Floats, columns: Columns) -> Floats:
    """Return an array (tables, entries): sums over `columns` of `values`, counts of tables, centred along each axis.

    `held` are the names of the axes of `values` after the first.
    """
    kept = [name for name in held if name in columns]
    found: Floats = values.sum(axis=tuple(1 + i for i, name in enumerate(held) if name not in columns))
    found = found.transpose([0, *(1 + kept.index(name) for name in columns)])
    # taking out the mean along every axis projects onto the space of the interaction
    for axis in range(1, found.ndim):
        found = found - found.mean(axis=axis, keepdims=True)
    return found.reshape(len(found), -1)


def _summed(table: Noisy, columns: Columns) -> float:
    """Return 1 over the number of a noisy table's cells that add up to one cell of its marginal over `columns`."""
    sizes = zip(table.values.shape, table.columns, strict=True)
    return 1.0 / math.prod(int(size) for size, name in sizes if name not in columns)
