"""Exact sums of clipped per-row vectors, as integers in units of clip / GRID.

Privacy needs two things here: a row's integer vector depends on that row alone, to the last bit; and its
norm is at most GRID. Both hold by construction:

- Floats are touched only one element at a time, by operations that IEEE 754 rounds correctly (+ - * / sqrt,
  rint, trunc, comparisons). So no result depends on a row's position, its neighbours, SIMD lanes or threads.
  A norm is added up one coordinate after another. exp is a public table of integers.
- The clipped vector is cut to integers towards zero, and its norm is checked again in exact integers; what
  fails that, or holds a NaN, contributes zero. So the bound does not rest on any float.
- Rows are added as integers: in int64 (2^30 a row, so 2^32 rows fit), or by float64 matrix products of
  integers. In those every product of one row is at most 2^30 and a piece has ROWS = 2^13 rows, so every
  partial sum, in any order, stays below 2^43 < 2^53 and is exact. (Logits: see `_logits`.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.driver import design
from stratsynth.questions.gradients import Gradients, Losses
from stratsynth.questions.locality import evaluate
from stratsynth.questions.queries import Columns, Glm, Moments, Norm, Query, RowVectors
from stratsynth.questions.total import GRID
from stratsynth.schema import Numeric
from stratsynth.schema.transforms import forward

if TYPE_CHECKING:
    from stratsynth.schema import Column, Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Which = slice | NDArray[np.intp]

ROWS = 1 << 13
"""Rows worked on at a time."""
HUGE = 2.0**300
"""Coordinates beyond this are taken as this: their squares do not overflow, and no clip keeps them apart."""
HALF = 1 << 15
"""The square root of GRID: the clip of a vector whose products with itself are summed."""
THETA = 1 << 20
"""Coefficients are taken to the nearest 1 / THETA."""
THETA_MOST = 1 << 30
"""Larger coefficients, in those units, are taken as this: 1,024."""
STEPS = 1 << 11
"""exp is tabulated at this many points in each unit, so its relative error is below 1/4,096."""
LAST = 21 * STEPS
"""Where the table of exp ends: exp(-21) GRID is less than 1."""


@dataclass(frozen=True, eq=False)
class PathRows:
    """The rows of one path, one array a column. Private, and never to leave the driver."""

    schema: Schema
    """The schema of the path."""
    codes: Mapping[str, NDArray[Any]] = field(repr=False)
    """The level of each row."""
    numbers: Mapping[str, Floats] = field(repr=False)
    """For numeric columns, the value within its bounds; NaN where there is none."""
    size: int = field(repr=False)
    """The number of rows."""
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """What has been worked out from these very rows, such as the features of a design."""

    def take(self, which: Which) -> PathRows:
        """Some of the rows."""
        size = len(range(self.size)[which]) if isinstance(which, slice) else len(which)
        codes = {name: column[which] for name, column in self.codes.items()}
        return PathRows(self.schema, codes, {name: column[which] for name, column in self.numbers.items()}, size)


@np.errstate(all="ignore")
def exact_sums(query: Query, rows: PathRows, chosen: NDArray[Any] | None = None) -> list[Ints]:
    """For each block of the query, the exact sum over the rows, or over those chosen by number or by mask."""
    totals = [np.zeros(block.size, np.int64) for block in query.blocks(rows.schema)]
    for which in _pieces(rows.size, chosen):
        for block, part in enumerate(SUMS[type(query)](query, rows, which)):
            totals[block] += part
    return totals


@np.errstate(all="ignore")
def into_ball(vectors: Floats, radius: int | Ints, norm: Norm = "l2") -> Ints:
    """Each column of `vectors`, scaled into a ball of a whole radius of at most GRID and cut to integers.

    That each column's norm is at most its radius is checked in integers; a column that fails the check twice,
    or holds a NaN, is zero.
    """
    vectors = np.clip(vectors, -HUGE, HUGE)
    length = np.zeros(vectors.shape[1])
    for coordinate in vectors:
        length += np.abs(coordinate) if norm == "l1" else coordinate * coordinate
    if norm == "l2":
        length = np.sqrt(length)
    # divided first: with one coordinate, vectors / length is exactly 1, and the result exactly the radius
    vectors = np.where(length > radius, vectors / length * radius, vectors)
    # whatever happened above: no NaN, and nothing that would overflow below
    units = np.clip(np.trunc(np.where(np.isnan(length), 0.0, vectors)), -GRID - 1, GRID + 1).astype(np.int64)
    fits = _within(units, radius, norm)
    if not fits.all():
        # A large coordinate was rounded up: (GRID, 5) has the length GRID in floats. One unit less is enough.
        units -= np.where(fits, 0, np.sign(units))
        units[:, ~_within(units, radius, norm)] = 0
    return units


def _within(units: Ints, radius: int | Ints, norm: Norm) -> NDArray[np.bool_]:
    """Whether each column's norm is at most its radius, exactly; for |units| <= GRID + 1 and radius <= GRID."""
    spent = np.zeros(units.shape[1], np.int64)
    for coordinate in units:
        spent += np.abs(coordinate) if norm == "l1" else coordinate * coordinate
        np.minimum(spent, 2**61, out=spent)  # more than any radius^2, and far from overflow
    return spent <= (radius if norm == "l1" else radius * radius)


def _pieces(size: int, chosen: NDArray[Any] | None) -> Iterator[Which]:
    """The rows asked for, at most ROWS at a time."""
    if chosen is None:
        yield from (slice(start, min(start + ROWS, size)) for start in range(0, size, ROWS))
        return
    numbers = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
    yield from (numbers[start : start + ROWS] for start in range(0, len(numbers), ROWS))


def _row_vectors(query: RowVectors, rows: PathRows, which: Which) -> list[Ints]:
    """A user's function, block by block; what it fails at is NaN, and counts as zero."""
    part = rows.take(which)
    vectors = evaluate(query.function, query.size, part.schema, part.codes, part.numbers, part.size)
    return _clipped(vectors.T, query.clip, query.norm)


def _clipped(vectors: Floats, clip: float, norm: Norm) -> list[Ints]:
    """The one block of a query that clips whole vectors, given as columns in the query's own unit."""
    return [into_ball(vectors / float(clip) * GRID, GRID, norm).sum(axis=1)]


def _columns(query: Columns, rows: PathRows, which: Which) -> list[Ints]:
    """(x - centre) / scale, or its square, clipped; a missing value makes the norm NaN, and the row zero."""
    vectors = np.array(
        [
            (_on_scale(rows.schema.column(name), rows.numbers[name][which]) - float(centre)) / float(scale)
            for name, centre, scale in zip(query.columns, query.centre, query.scale, strict=True)
        ]
    )
    if query.square:
        vectors *= vectors
    return _clipped(vectors, query.clip, query.norm)


def _on_scale(column: Column, numbers: Floats) -> Floats:
    """The numbers on the scale that the column declares."""
    assert isinstance(column, Numeric)  # noqa: S101 - the query's check
    return forward(column, numbers)


def _moments(query: Moments, rows: PathRows, which: Which) -> list[Ints]:
    """The upper triangle of x x', row after row, and x y, for whole vectors |x| <= 2^15 and |y| <= 2^15.

    Nothing is rounded after x and y, so what `Moments` proves of real vectors holds of these.
    """
    rows = rows.take(which)
    y = np.rint(np.clip(design.target(query.target, rows) / query.bound, -1, 1) * HALF)
    x = into_ball(design.features(query.design, rows) / query.clip * HALF, HALF).astype(np.float64)
    absent = np.isnan(y)
    x[:, absent], y[absent] = 0, 0
    return [(x @ x.T)[np.triu_indices(len(x))].astype(np.int64), (x @ y).astype(np.int64)]


def _glm(query: Glm, rows: PathRows, which: Which) -> list[Ints]:
    """The sum of c x over rows, x being a row's whole features and c a whole number, one a class for softmax.

    A row's reach is the largest c for which |c x| <= GRID, so clipping the gradient is clipping c to it.
    """
    whole, reach = design.whole(query.design, rows, which)
    x = whole.astype(np.float64)
    residuals = _residuals(query, rows, which, _logits(x, query))
    c = into_ball(residuals * (GRID // design.UNIT) / query.clip, reach).astype(np.float64)
    return [(x.T @ c.T).astype(np.int64).ravel()]


def _gradients(query: Gradients, rows: PathRows, which: Which) -> list[Ints]:
    """As `_glm`, the models side by side: one product gives all logits, and another all sums.

    A row's c, which the clip has bounded, times a public number from 0 to 1 and cut towards zero, is no larger.
    """
    whole, reach = design.whole(query.design, rows, which)
    x = whole.astype(np.float64)
    residuals = _residuals(query, rows, which, _logits(x, query))
    models = len(query.thetas)
    c = (
        into_ball((residuals * (GRID // design.UNIT) / query.clip).reshape(1, -1), np.tile(reach, models))
        .reshape(models, -1)
        .astype(np.float64)
    )
    if query.parts is not None:
        cell = np.ravel_multi_index(
            [rows.codes[name][which].astype(np.intp) for name in query.by], rows.schema.shape(query.by)
        )
        c = np.trunc(c * query.parts.ravel()[cell])
    return list((x.T @ c.T).astype(np.int64).T)


def _losses(query: Losses, rows: PathRows, which: Which) -> list[Ints]:
    """Each model's sum of losses, cut at the clip and to whole units."""
    whole, _ = design.whole(query.design, rows, which)
    logits = _logits(whole.astype(np.float64), query)
    if query.measure == "log":
        sign = 1 - 2.0 * rows.codes[query.target][which]
        margin = logits * sign / (design.UNIT * THETA)  # of the wrong level over the right one
        depth = np.minimum(np.rint(np.abs(margin) * STEPS), LAST).astype(np.intp)
        losses = np.maximum(margin, 0.0) + _softplus()[depth] / GRID
    else:
        residuals = _residuals(query, rows, which, logits)
        losses = residuals * residuals
    share = np.clip(losses / query.clip, 0, 1)
    units = np.trunc(np.where(np.isnan(share), 0.0, share) * GRID).astype(np.int64)
    return [np.array([model.sum()]) for model in units]


def _logits(x: Floats, query: Glm | Gradients | Losses) -> Floats:
    """X . theta, one row a class and model, in units of 1 / (UNIT THETA) as exact integers.

    A row has at most `width` features that are not 0, each at most UNIT = 2^12; with |theta| <= 2^40 / width
    all partial sums stay within 2^52.
    """
    width = query.design.most_features
    most = min(THETA_MOST, 2**40 // width)
    theta = np.rint(np.clip(np.asarray(query.theta, np.float64) * THETA, -most, most))
    return np.ascontiguousarray((x @ theta.reshape(x.shape[1], -1)).T)


def _residuals(query: Glm | Gradients | Losses, rows: PathRows, which: Which, logits: Floats) -> Floats:
    """The derivative of the loss by the logit of each class: NaN where a row has no target."""
    unit = 1 / (design.UNIT * THETA)  # a power of 2: exact
    if query.link == "linear":
        return logits * unit - design.target(query.target, rows, which)
    levels = rows.codes[query.target][which].astype(np.intp)
    if query.link == "logistic":
        small = _exp(np.abs(logits) * unit)
        return np.where(logits < 0, small, GRID) / (small + GRID) - levels
    weights = _exp((logits.max(axis=0) - logits) * unit)
    residuals: Floats = weights / weights.sum(axis=0)
    residuals[levels, np.arange(len(levels))] -= 1
    return residuals


def _exp(depth: Floats) -> Ints:
    """exp(-depth) in units of 1 / GRID, from the table, for depth >= 0."""
    values: Ints = _table()[np.minimum(np.rint(depth * STEPS), LAST).astype(np.intp)]
    return values


@cache
def _table() -> Ints:
    """exp(-i / STEPS) in units of 1 / GRID."""
    return np.array([round(math.exp(-i / STEPS) * GRID) for i in range(LAST + 1)], np.int64)


@cache
def _softplus() -> Ints:
    """log(1 + exp(-i / STEPS)) in units of 1 / GRID."""
    return np.array([round(math.log1p(math.exp(-i / STEPS)) * GRID) for i in range(LAST + 1)], np.int64)


SUMS: dict[type[Query], Callable[[Any, PathRows, Which], list[Ints]]] = {
    Columns: _columns,
    Moments: _moments,
    Glm: _glm,
    RowVectors: _row_vectors,
    Gradients: _gradients,
    Losses: _losses,
}
"""How each kind of query is summed over one piece of the rows: the sum of each block."""
