"""Logits, probabilities and losses of linear models, for one model or many at once."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.questions.sums import design
from stratsynth.questions.sums.base import GRID, Floats, Ints, into_ball

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stratsynth.questions.sums.design import Design
    from stratsynth.schema.rows import CodedRows, Which

THETA = 1 << 20
"""Coefficients are rounded to 1 / THETA."""
THETA_MOST = 1 << 30
"""Largest coefficient in units of 1 / THETA: 1,024; larger ones are clipped to it."""
STEPS = 1 << 11
"""Points per unit at which exp is tabulated: its relative error is below 1/4,096."""
LAST = 21 * STEPS
"""Last index of the table of exp: exp(-21) GRID is less than 1."""


def by_feature(thetas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `thetas` (models x features x classes) as a table: a row a feature, models' columns side by side."""
    return np.moveaxis(thetas, 1, 0).reshape(thetas.shape[1], -1)


def cells_of(by: Sequence[str], rows: CodedRows, which: Which) -> NDArray[np.intp]:
    """Return an int array: the index of each of coded rows `which` in the cells of the columns `by`, at least one."""
    codes = [rows.codes[name][which].astype(np.intp) for name in by]
    return np.ravel_multi_index(codes, rows.schema.shape(by))


def logits_of(x: Floats, features: Design, theta: Floats) -> Floats:
    """Return x (rows x `features`, a design's) times `theta`: a line a class and model, a column a row, 1/(UNIT THETA).

    A row has at most `width` features that are not 0, each at most UNIT = 2^12; with |theta| <= 2^40 / width
    all partial sums stay within 2^52.
    """
    width = features.most_features
    most = min(THETA_MOST, 2**40 // width)
    whole = np.rint(np.clip(np.asarray(theta, np.float64) * THETA, -most, most))
    return np.ascontiguousarray((x @ whole.reshape(x.shape[1], -1)).T)


def residuals_of(link: str, target: str, rows: CodedRows, which: Which, logits: Floats) -> Floats:
    """Return a float array, lines as `logits`, a column a coded row `which`: probability by `link` minus `target`.

    `logits` are in units of 1 / (UNIT THETA), one model's lines after another's; with `linear` the target is mapped to
    [-1, 1], and NaN if a row has none.
    """
    unit = 1 / (design.UNIT * THETA)  # a power of 2: exact
    if link == "linear":
        return logits * unit - design.target(target, rows, which)
    levels = rows.codes[target][which].astype(np.intp)
    if link == "logistic":
        # 1 / (1 + exp(-z)) from exp(-|z|) of the table.
        small = exp_of(np.abs(logits) * unit)
        return np.where(logits < 0, small, GRID) / (small + GRID) - levels
    classes = rows.schema.size(target)
    each = logits.reshape(-1, classes, len(levels))  # one model after another
    # Softmax relative to the largest logit: exponents are at most 0.
    weights = exp_of((each.max(axis=1, keepdims=True) - each) * unit)
    residuals: Floats = weights / weights.sum(axis=1, keepdims=True)
    residuals[:, levels, np.arange(len(levels))] -= 1
    return residuals.reshape(-1, len(levels))


def clip_gradients(residuals: Floats, reach: Ints, clip: float) -> Floats:
    """Return an integer c per class, model and row of `residuals`: c x, x being the row's features, is within the clip.

    A row's reach is the largest integer m with |m x| <= GRID, so the gradient is clipped by clipping c to it, for all
    models' rows side by side. Axes: class, model and row.
    """
    vectors = residuals.reshape(len(residuals), -1) * (GRID // design.UNIT)
    vectors /= clip
    c = into_ball(vectors, np.tile(reach, residuals.shape[1]))
    return c.astype(np.float64).reshape(residuals.shape)


def sum_gradients(c: Floats, x: Floats) -> list[Ints]:
    """Return a list, a flat int array [feature, class] a model: `c` [class, model, row] times `x` [row, feature]."""
    classes, models, rows = c.shape
    found = (c.reshape(-1, rows) @ x).astype(np.int64).reshape(classes, models, -1)
    return [np.ascontiguousarray(found[:, model].T).ravel() for model in range(models)]


def exp_of(depth: Floats) -> Ints:
    """Return exp(-depth) in units of 1 / GRID, from the table, for depth >= 0."""
    values: Ints = _table()[np.minimum(np.rint(depth * STEPS), LAST).astype(np.intp)]
    return values


@cache
def _table() -> Ints:
    """Return an int64 array: exp(-i / STEPS) x GRID, rounded, for i from 0 to LAST."""
    return np.array([round(math.exp(-i / STEPS) * GRID) for i in range(LAST + 1)], np.int64)
