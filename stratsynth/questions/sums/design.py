"""Designs: public maps of a row to features, and the features of rows.

Features are computed one element at a time, as `stratsynth.questions.sums.base` requires: as numbers in [-1, 1], and
integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import is_plain_tuple
from stratsynth.questions.sums.base import GRID, ROWS
from stratsynth.schema import Categorical, Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

UNIT = 1 << 12
"""Integer features are rounded to 1 / UNIT."""
KEPT = 2**28
"""Largest number of rows times features whose integer features are cached; larger designs are computed each time."""


@known
@dataclass(frozen=True)
class Design:
    """A public map of a row to features between -1 and 1, for models.

    An intercept of 1; each numeric column scaled from its bounds to [-1, 1], with a 0/1 for each of its
    further levels (not applicable, missing), where the number itself is 0; a 0/1 for each level of a
    categorical column.
    """

    columns: tuple[str, ...]
    intercept: bool = True

    def names(self, schema: Schema) -> tuple[str, ...]:
        """Return a tuple of texts, features by `schema`: `1`, numeric column, `column=level`; products have `*`."""
        return _names(self, schema)

    def products(self, schema: Schema) -> tuple[tuple[int, ...], ...] | None:
        """Return, per feature by `schema`, a tuple of plain features' indices, its factors; None if all are plain."""
        return None

    @property
    def most_features(self) -> int:
        """Largest number of nonzero features of a row. None is beyond 1, so its square root bounds a row's norm."""
        return len(self.columns) + 1

    def plain(self, schema: Schema) -> tuple[str, ...]:
        """Return a tuple of names, plain features by `schema`: intercept `1`, each number, `column=level` per level."""
        found = ["1"] if self.intercept else []
        for name in self.columns:
            column = schema.column(name)
            numeric = isinstance(column, Numeric)
            levels = column.all_levels[len(column.extents) :] if isinstance(column, Numeric) else column.all_levels
            found.extend([name] * numeric + [f"{name}={level}" for level in levels])
        return tuple(found)

    def check(self, what: str, schema: Schema) -> None:
        """Raise MechanismError, opening with `what`, for columns no tuple, empty, repeated or not in the schema."""
        if not is_plain_tuple(self.columns, str):
            raise MechanismError(f"{what}: a design's columns are a tuple of names.")
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise MechanismError(f"{what}: a design needs columns, each once.")
        for name in self.columns:
            if name not in schema.columns:
                raise MechanismError(f"{what}: column {name!r} is not in the schema, or is constant in this stratum.")


@lru_cache(maxsize=64, typed=True)  # every step of a fit asks for them several times
def _names(design: Design, schema: Schema) -> tuple[str, ...]:
    """Return a tuple: the names of a design's features in `schema`, plain or products `a*b`; cached by value."""
    plain, products = design.plain(schema), design.products(schema)
    return plain if products is None else tuple("*".join(plain[factor] for factor in factors) for factors in products)


@known
@dataclass(frozen=True)
class Coded(Design):
    """A `Design` in which a categorical column's reference level has no feature: the intercept stands for it.

    A separate class, so that designs of earlier versions keep their identity.
    """

    reference: tuple[tuple[str, str], ...] = ()
    """Pairs of a categorical column and its reference level; the first level if a column has no pair."""
    interactions: tuple[tuple[str, str], ...] = ()
    """Pairs of columns, each feature of the one multiplied by each of the other."""

    def check(self, what: str, schema: Schema) -> None:
        """Raise MechanismError, on `what`, as `Design` for a schema; no intercept, false references, self-pairs."""
        if not self.intercept:
            raise MechanismError(f"{what}: without an intercept there is nothing to stand for the reference levels.")
        if type(self.columns) is not tuple or self.columns:
            Design.check(self, what, schema)
        several = self.reference, self.interactions
        if not all(is_plain_tuple(pairs, tuple) and all(is_plain_tuple(p, str) for p in pairs) for pairs in several):
            raise MechanismError(f"{what}: references and interactions are tuples of pairs.")
        for name, level in self.reference:
            column = schema.columns.get(name)
            if name not in self.columns or not isinstance(column, Categorical) or level not in column.all_levels:
                raise MechanismError(f"{what}: {level!r} is no level of a categorical column {name!r} of the design.")
        pairs = {frozenset(pair) for pair in self.interactions}
        if len(pairs) < len(self.interactions) or any(len(pair) != 2 or not pair <= {*self.columns} for pair in pairs):
            raise MechanismError(f"{what}: an interaction is of two different columns of the design, each pair once.")

    def products(self, schema: Schema) -> tuple[tuple[int, ...], ...]:
        """Return a tuple per feature in `schema`: indices of plain ones; all but reference levels, then pairs."""
        said, at, found = dict(self.reference), 1, dict[str, list[int]]()
        for name in self.columns:
            column = schema.column(name)
            size = len(Design((name,), intercept=False).plain(schema))
            numbers = list(range(at, at + size))
            if isinstance(column, Categorical):
                del numbers[column.all_levels.index(said.get(name, column.all_levels[0]))]
            found[name], at = numbers, at + size
        pairs = [(i, j) for one, other in self.interactions for i in found[one] for j in found[other]]
        return ((0,), *((i,) for numbers in found.values() for i in numbers), *pairs)

    @property
    def most_features(self) -> int:
        """Largest number of nonzero features of a row: the intercept, one per column and one per pair of columns."""
        return 1 + len(self.columns) + len(self.interactions)


def check_target(what: str, design: Design, target: str, schema: Schema, *, numeric: bool = True) -> None:
    """Raise MechanismError on `what` for a `design` unsound in `schema`, a target in it, or not `numeric`."""
    if type(design) not in (Design, Coded):  # another could say that its features are fewer or smaller
        raise MechanismError(f"{what}: {type(design).__name__} is not one of the known designs.")
    design.check(what, schema)
    if target in design.columns:
        raise MechanismError(f"{what}: the target {target} is among the features.")
    if target not in schema.columns or isinstance(schema.columns[target], Numeric) != numeric:
        kind = "numeric" if numeric else "categorical"
        raise MechanismError(f"{what}: the target {target!r} is not a {kind} column here.")


def features(design: Design, rows: CodedRows) -> NDArray[np.float64]:
    """Return the features of coded rows, one line each in the order of `Design.names`, and one column per row."""
    made = np.zeros((len(design.plain(rows.schema)), rows.size))
    at = 0
    if design.intercept:
        made[0], at = 1.0, 1
    for name in design.columns:
        column, codes, first = rows.schema.column(name), rows.codes[name].astype(np.intp), 0
        if isinstance(column, Numeric):
            first = len(column.extents)
            number = scaled(column, rows.numbers[name])
            made[at] = np.where((codes < first) & ~np.isnan(number), number, 0.0)
            at += 1
        level = np.flatnonzero(codes >= first)
        made[at + codes[level] - first, level] = 1.0
        at += column.size - first
    products = design.products(rows.schema)
    if products is None:
        return made
    # Factors are in [-1, 1], so products are too.
    found = np.ones((len(products), rows.size))
    for i, factors in enumerate(products):
        for factor in factors:
            found[i] *= made[factor]
    return found


def scaled(column: Numeric, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an array of a numeric column's numbers, [lower, upper] mapped to [-1, 1], cut there; NaN stays NaN."""
    lower, upper = float(column.lower), float(column.upper)
    part = 1.0 if math.isfinite(upper - lower) else 0.25  # bounds so far apart that the distance overflows
    share = (numbers * part - lower * part) / (upper * part - lower * part)
    return np.clip(share * 2 - 1, -1, 1)


def target(name: str, rows: CodedRows, which: Which = slice(None)) -> NDArray[np.float64]:
    """Return a float array: numeric target `name` of coded rows `which`, mapped to [-1, 1]; NaN if a row has none."""
    column = rows.schema.column(name)
    assert isinstance(column, Numeric)  # noqa: S101 - the query's check
    return scaled(column, rows.numbers[name][which])


def integer_features(design: Design, rows: CodedRows, which: Which) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return (integer features of a design of coded rows `which`, one line per row; each row's reach, an int array)."""
    x, reach = _kept(design, rows, which)
    return x.astype(np.float64), reach


def _kept(design: Design, rows: CodedRows, which: Which) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    kept = rows.cache.setdefault("whole features", {})
    if design not in kept:
        cells = rows.size * len(design.names(rows.schema))
        if cells > KEPT:
            return _integer_features(design, rows.take(which))
        if cells + sum(x.size for x, _ in kept.values()) > KEPT:
            kept.clear()
        parts = [_integer_features(design, rows.take(slice(i, i + ROWS))) for i in range(0, max(rows.size, 1), ROWS)]
        kept[design] = tuple(np.concatenate(both) for both in zip(*parts, strict=True))
    x, reach = kept[design]
    return x[which], reach[which]


def _integer_features(design: Design, rows: CodedRows) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    """Return (a design's features, a line a coded row, ints in 1 / UNIT; largest m of each: |m features| <= GRID)."""
    x: NDArray[Any] = np.rint(features(design, rows).T * UNIT).astype(np.int64)
    square = np.maximum((x * x).sum(axis=1), 1)
    # The quotient is right to 2^-52 of itself, so m is at most one too large, and m^2 |x|^2 far below 2^63.
    m = np.floor(GRID / np.sqrt(square.astype(np.float64))).astype(np.int64)
    m -= m * m * square > GRID**2
    return np.ascontiguousarray(x, np.int16), m
