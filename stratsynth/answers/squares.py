"""Generalised least squares over every measured table at once, in closed form.

Cells of a table have independent noise of one variance. For a set A of columns, let z(A) be the counts over A with
the mean taken out along each of its axes (the interaction of A; for no columns, the total). A table of columns C with
noise variance s^2 holds one noisy copy of z(A) for each A within C, with noise of variance s^2 prod_{C-A} n_i in the
space of such arrays, and copies for different A are independent, since projections of equal independent noise on
orthogonal spaces are. So least squares over all tables falls apart into one small problem for each A:

- in one stratum, the copies are averaged by inverse variance;
- where everybody was measured too, its copy Z(A) of variance V is one of the strata's sum. With strata all measured,
  z_s moves by v_s (Z - sum z) / (V + sum v), which leaves the covariance diag(v) - v v' / (V + sum v). With some not
  measured, only sums that count all of these alike are known: k Z + sum (c_s - k) z_s.

A linear function of counts that is a product over columns, w = prod w_i, reads of z(A) the product of w_i over A and
of the means of w_i elsewhere, so that its variance is a sum over A of products of numbers. All of this is exact: the
dense solution of the same least squares has the same estimates and covariances.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from stratsynth.answers.tables import Columns, Leaf, Noisy, Tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

FLAT = 1e-12
"""A function's part in a space below this part of its own square is rounding."""


@dataclass(frozen=True, eq=False)
class Functions:
    """Linear functions of the counts of everybody, as many as each factor has rows: products over columns."""

    number: int
    factors: Mapping[str, Floats]
    """For some columns, one row a function and one entry a level; columns that are not there count all levels."""

    def times(self, name: str, factor: Floats) -> Functions:
        """The same functions with one factor more, a row each or one for all."""
        factor = np.broadcast_to(factor, (self.number, factor.shape[1]))
        factor = self.factors[name] * factor if name in self.factors else factor
        return Functions(self.number, {**self.factors, name: factor})

    def take(self, rows: NDArray[np.intp]) -> Functions:
        """Some of them, in this order."""
        return Functions(len(rows), {name: factor[rows] for name, factor in self.factors.items()})


@dataclass(frozen=True, eq=False)
class Interaction:
    """What is known of z(A) in every stratum: least squares over the strata's copies and everybody's."""

    values: Floats
    """A row a stratum; 0 where it was not measured. Moved by everybody's copy where all strata were."""
    variances: Floats
    """Of each stratum's own copy; infinite where it was not measured."""
    total: Floats | None
    """Everybody's copy."""
    variance: float
    """Its variance."""

    @cached_property
    def lacking(self) -> Bools:
        """The strata where it was not measured."""
        return np.isinf(self.variances)

    @cached_property
    def known(self) -> Floats:
        """The variances, with 0 where there is none."""
        return np.where(self.lacking, 0.0, self.variances)

    def split(self, weights: Floats) -> tuple[Floats, Floats]:
        """Weights of the strata, a row a function, as k of everybody and the rest of the measured strata."""
        if self.total is None or not self.lacking.any():
            return np.zeros(len(weights)), np.where(self.lacking, 0.0, weights)
        k = weights[:, self.lacking][:, 0]
        return k, np.where(self.lacking, 0.0, weights - k[:, None])

    def estimable(self, weights: Floats) -> Bools:
        """For which weights the strata's sum is known."""
        there = weights[:, self.lacking]
        if there.shape[1] == 0:
            return np.ones(len(weights), dtype=bool)
        if self.total is None:
            return np.asarray((there == 0).all(axis=1))
        return np.asarray((there == there[:, :1]).all(axis=1))

    def sums(self, weights: Floats) -> Floats:
        """The weighted sums of the strata, a row a function."""
        k, rest = self.split(weights)
        found = rest @ self.values
        return found if self.total is None else found + k[:, None] * self.total

    def covariance(self, one: Floats, other: Floats) -> Floats:
        """Between two weighted sums, for each entry of z(A) along any unit vector of its space."""
        (k, a), (m, b) = self.split(one), self.split(other)
        found = (a * b) @ self.known
        if self.total is None:
            return np.asarray(found)
        if self.lacking.any():
            return np.asarray(found + k * m * self.variance)
        return np.asarray(found - (a @ self.known) * (b @ self.known) / (self.variance + self.known.sum()))


class Squares:
    """Estimates and covariances of linear functions, from all tables of a release."""

    def __init__(self, tables: Tables) -> None:
        """Nothing is worked out before it is asked for, and then it is kept."""
        self.tables = tables
        self._found: dict[Columns, Interaction] = {}
        self._places: dict[str, tuple[list[list[int]], NDArray[np.intp]]] = {}
        self._weighted: WeakKeyDictionary[Functions, Floats] = WeakKeyDictionary()
        self._inside: dict[tuple[int, Columns], tuple[Floats, float] | None] = {}
        self._merging = [(number, leaf) for number, leaf in enumerate(tables.leaves) if leaf.merged(tuple(tables.by))]
        """The strata of several levels of a column, with their numbers."""

    def estimate(self, functions: Functions) -> tuple[Floats, Bools]:
        """Each function's estimate, and whether it can be estimated at all."""
        value, known = np.zeros(functions.number), np.ones(functions.number, dtype=bool)
        for (_, columns), part, weights, found in self._keyed(functions):
            needed = (_squares(part, columns) > FLAT) & (weights != 0).any(axis=1)
            known &= ~needed | found.estimable(weights)
            value += _contract(found.sums(weights), [part.vectors[name] for name in columns]) * part.mean(columns)
        return np.where(known, value, np.nan), known

    def covariance(self, one: Functions, other: Functions) -> Floats:
        """The covariance of the noise in each function of one and the same row of the other."""
        result = np.zeros(one.number)
        theirs = {key: (part, weights) for key, part, weights, _ in self._keyed(other)}
        for key, part, weights, found in self._keyed(one):
            if key in theirs:
                (_, columns), (second, others) = key, theirs[key]
                inner = np.prod([_inner(part.vectors[c], second.vectors[c]) for c in columns], axis=0)
                scale = inner * part.mean(columns) * second.mean(columns)
                result += np.where(scale != 0, scale * found.covariance(weights, others), 0.0)
        return result

    def most(self, functions: Functions) -> Floats:
        """The most that each function can be by the public sizes of the strata; infinite where these are not known."""
        outer = tuple(name for name in self.tables.schema.names if name in functions.factors and name in self.tables.by)
        people = np.array([leaf.people for leaf in self.tables.leaves])
        found: Floats = np.where(self._weights(functions, outer) > 0, people, 0.0).sum(axis=1)
        return found

    def nearest(self, columns: Columns) -> list[Columns]:
        """The sets of columns among these that a table of every stratum, or of everybody, holds; largest first."""
        several = [c for size in range(len(columns), 0, -1) for c in itertools.combinations(columns, size)]
        held = [c for c in several if self._held(c)]
        return [c for c in held if not any(set(c) < set(d) for d in held)]

    def forget(self, columns: Columns) -> None:
        """Let go of what was worked out of these columns together, which in thousands of strata is much."""
        self._found.pop(columns, None)
        for number, _ in self._merging:
            self._inside.pop((number, columns), None)

    def _held(self, columns: Columns) -> bool:
        """Whether some table of everybody holds these columns, or one of each stratum those that vary there."""
        wanted, by = set(columns), self.tables.by
        return any(wanted <= set(t.columns) for t in self.tables.everybody) or all(
            any(wanted - (by - set(leaf.merged(columns))) <= set(t.columns) for t in leaf.tables)
            for leaf in self.tables.leaves
        )

    def _keyed(self, functions: Functions) -> Iterator[tuple[tuple[int, Columns], _Part, Floats, Interaction]]:
        """Every interaction that functions may read: of all strata, then those of merged levels in one of them."""
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
                cut = {name: functions.factors[name][:, leaf.codes[name]] for name in varying}
                here = _Part({**part.vectors, **cut})
                alone = np.zeros_like(weights)
                alone[:, number] = _weight(functions, leaf, tuple(name for name in outer if name not in varying))
                for columns in _subsets(inner):
                    every = (*columns, *varying)
                    yield (number, every), here, alone, self._alone(number, every)

    def _weights(self, functions: Functions, outer: Columns) -> Floats:
        """As `_weight`, for all strata, a row a function; those of the same levels of a column have the same factor."""
        found = np.ones((functions.number, len(self.tables.leaves)))
        for name in outer:
            several, place = self._levels(name)
            factors = np.stack([functions.factors[name][:, codes].mean(axis=1) for codes in several], axis=1)
            found = found * factors[:, place]
        return found

    def _levels(self, name: str) -> tuple[list[list[int]], NDArray[np.intp]]:
        """The level numbers that strata have in a column, each once, and which of them each stratum has."""
        if name not in self._places:
            several: dict[tuple[int, ...], int] = {}
            place = [several.setdefault(tuple(leaf.codes[name]), len(several)) for leaf in self.tables.leaves]
            self._places[name] = list(map(list, several)), np.array(place, dtype=np.intp)
        return self._places[name]

    def _interaction(self, columns: Columns) -> Interaction:
        """The strata's z(A) and everybody's."""
        if columns in self._found:
            return self._found[columns]
        values, variances = self._copies(columns)
        pooled = _average(self.tables.everybody, columns)
        total, variance = (None, np.inf) if pooled is None else pooled
        if total is not None and np.isfinite(variances).all():
            step = variances / (variance + variances.sum())
            values = values + step[:, None] * (total - values.sum(axis=0))
        self._found[columns] = Interaction(values, variances, total, variance)
        return self._found[columns]

    def _copies(self, columns: Columns) -> tuple[Floats, Floats]:
        """Each stratum's z(A) by inverse variance over its tables that hold A, a row a stratum, and the variances."""
        cells = int(np.prod([self.tables.schema.size(name) for name in columns], dtype=int))
        total, worth = np.zeros((len(self.tables.leaves), cells)), np.zeros(len(self.tables.leaves))
        for held, leaves, tables in self._alike:
            if set(columns) <= set(held):
                found = _interactions(held, np.stack([table.values for table in tables]), columns)
                weights = _summed(tables[0], columns) / np.array([table.variance for table in tables])
                total[leaves] += weights[:, None] * found
                worth[leaves] += weights
        there = worth > 0
        values = np.divide(total, worth[:, None], out=total, where=there[:, None])
        return values, np.divide(1.0, worth, out=np.full_like(worth, np.inf), where=there)

    @cached_property
    def _alike(self) -> list[tuple[Columns, NDArray[np.intp], list[Noisy]]]:
        """Tables of the same columns and shape in different strata, and the numbers of these strata."""
        groups: dict[tuple[Columns, tuple[int, ...]], tuple[list[int], list[Noisy]]] = {}
        for number, leaf in enumerate(self.tables.leaves):
            for table in leaf.tables:
                leaves, tables = groups.setdefault((table.columns, table.values.shape), ([], []))
                leaves.append(number)
                tables.append(table)
        return [(key[0], np.array(leaves, dtype=np.intp), tables) for key, (leaves, tables) in groups.items()]

    def _alone(self, number: int, columns: Columns) -> Interaction:
        """z(A) of one stratum alone, where A holds a merged column; all other strata have none."""
        leaves, sizes = self.tables.leaves, self.tables.sizes(self.tables.leaves[number])
        if (number, columns) not in self._inside:
            self._inside[number, columns] = _average(leaves[number].tables, columns)
        values = np.zeros((len(leaves), int(np.prod([sizes[name] for name in columns], dtype=int))))
        variances, copy = np.full(len(leaves), np.inf), self._inside[number, columns]
        if copy is not None:
            values[number], variances[number] = copy
        return Interaction(values, variances, None, np.inf)


class _Part:
    """Factors of functions in some columns, with the means that other columns' interactions read."""

    def __init__(self, vectors: Mapping[str, Floats]) -> None:
        self.vectors = vectors
        self._means = {name: vector.mean(axis=1) for name, vector in vectors.items()}

    def mean(self, columns: Columns) -> Floats:
        """The product of the means of all factors but those of some columns."""
        others = [mean for name, mean in self._means.items() if name not in columns]
        return np.asarray(np.prod(others, axis=0)) if others else np.ones(1)


def _subsets(columns: Columns) -> Iterator[Columns]:
    return itertools.chain.from_iterable(itertools.combinations(columns, n) for n in range(len(columns) + 1))


def _weight(functions: Functions, leaf: Leaf, outer: Columns) -> Floats:
    """What functions give a stratum: the factors of the columns that define it, at its level or in the mean of them."""
    weight = np.ones(functions.number)
    for name in outer:
        weight = weight * functions.factors[name][:, leaf.codes[name]].mean(axis=1)
    return weight


def _inner(one: Floats, other: Floats) -> Floats:
    """The inner product of two factors without their means; exactly 0 where one of them is even."""
    a, b = one - one.mean(axis=1, keepdims=True), other - other.mean(axis=1, keepdims=True)
    found = np.einsum("fi,fi->f", a, b)
    tiny = FLAT * np.sqrt(np.einsum("fi,fi->f", one, one) * np.einsum("fi,fi->f", other, other))
    return np.where(np.abs(found) > tiny, found, 0.0)


def _squares(part: _Part, columns: Columns) -> Floats:
    """The square of functions within the interaction of some columns, each factor in its own unit."""
    found = np.ones(1)
    for name in columns:
        vector = part.vectors[name]
        whole = np.einsum("fi,fi->f", vector, vector)
        found = found * np.divide(_inner(vector, vector), whole, out=np.zeros_like(whole), where=whole > 0)
    return np.asarray(found * (part.mean(columns) != 0))


def _contract(values: Floats, vectors: Sequence[Floats]) -> Floats:
    """Each row's array against one vector an axis."""
    for vector in reversed(vectors):
        values = np.einsum("fai,fi->fa", values.reshape(len(values), -1, vector.shape[1]), vector)
    return values.reshape(len(values))


def _average(tables: Sequence[Noisy], columns: Columns) -> tuple[Floats, float] | None:
    """z(A) by inverse variance over the tables that hold A, flat, and its variance."""
    total, worth, wanted = np.zeros(1), 0.0, set(columns)
    for table in tables:
        if wanted <= set(table.columns):
            weight = _summed(table, columns) / table.variance
            total = total + weight * _interactions(table.columns, table.values[None], columns)[0]
            worth += weight
    return (total / worth, 1 / worth) if worth else None


def _interactions(held: Columns, values: Floats, columns: Columns) -> Floats:
    """z(A), flat, of several tables of the same columns that hold A: a row a table."""
    kept = [name for name in held if name in columns]
    found: Floats = values.sum(axis=tuple(1 + i for i, name in enumerate(held) if name not in columns))
    found = found.transpose([0, *(1 + kept.index(name) for name in columns)])
    for axis in range(1, found.ndim):
        found = found - found.mean(axis=axis, keepdims=True)
    return found.reshape(len(found), -1)


def _summed(table: Noisy, columns: Columns) -> float:
    """One over the number of cells of a table that are summed to one of z(A)."""
    sizes = zip(table.values.shape, table.columns, strict=True)
    return 1.0 / math.prod(int(size) for size, name in sizes if name not in columns)
