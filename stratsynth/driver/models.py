"""Exact sums of the gradients and losses of generalised linear models, one model or many side by side."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stratsynth.driver import design
from stratsynth.driver.clipping import Floats, Ints, Which, into_ball
from stratsynth.questions.attribute import AttributeGradients
from stratsynth.questions.confusions import Confusions
from stratsynth.questions.fairness import FairGradients
from stratsynth.questions.gradients import Gradients, Losses
from stratsynth.questions.grouped import GroupLosses
from stratsynth.questions.mitigation import Mitigated
from stratsynth.questions.networks import NetworkGradients
from stratsynth.questions.newton import Curvature
from stratsynth.questions.queries import Glm, Moments
from stratsynth.questions.total import GRID
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.transforms import exact_log

Linear = (
    Glm | Gradients | Losses | Curvature | Confusions | GroupLosses | FairGradients | AttributeGradients | Mitigated
)
"""What has coefficients by feature."""
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


def glm(query: Glm, rows: CodedRows, which: Which) -> list[Ints]:
    """The sum of c x over rows, x being a row's whole features and c a whole number, one a class for softmax.

    A row's reach is the largest c for which |c x| <= GRID, so clipping the gradient is clipping c to it.
    """
    whole, reach = design.whole(query.design, rows, which)
    x = whole.astype(np.float64)
    residuals = residuals_of(query, rows, which, logits_of(x, query))
    c = into_ball(residuals * (GRID // design.UNIT) / query.clip, reach).astype(np.float64)
    return [(x.T @ c.T).astype(np.int64).ravel()]


def gradients(query: Gradients, rows: CodedRows, which: Which) -> list[Ints]:
    """As `glm`, the models side by side: one product gives all logits, and another all sums.

    A row's c, which the clip has bounded, times a public number from 0 to 1 and cut towards zero, is no larger.
    """
    whole, reach = design.whole(query.design, rows, which)
    x = whole.astype(np.float64)
    models = len(query.thetas)
    residuals = residuals_of(query, rows, which, logits_of(x, query)).reshape(models, -1, len(x))
    if query.flips is not None:
        away = 2 * rows.codes[query.target][which].astype(np.intp) - 1  # from p - y to p - (1 - y)
        residuals = np.where(query.flips.ravel()[cells_of(query, rows, which)], residuals + away, residuals)
    levels = residuals.shape[1]
    # into the ball, all models' rows side by side: one line a level of the target
    vectors = np.moveaxis(residuals, 1, 0).reshape(levels, -1) * (GRID // design.UNIT) / query.clip
    c = into_ball(vectors, np.tile(reach, models)).astype(np.float64).reshape(levels, models, len(x))
    if query.parts is not None:
        c = np.trunc(c * share_of(query, rows, which))
    sums = (x.T @ c.reshape(-1, len(x)).T).astype(np.int64).reshape(-1, levels, models)
    return [sums[:, :, model].ravel() for model in range(models)]


def share_of(query: Gradients | NetworkGradients, rows: CodedRows, which: Which) -> Floats:
    """The part that each row's cell has of its clipped gradient."""
    found: Floats = np.asarray(query.parts).ravel()[cells_of(query, rows, which)]
    return found


def cells_of(query: Gradients | NetworkGradients, rows: CodedRows, which: Which) -> Ints:
    """The number of each row's cell of `by`."""
    codes = [rows.codes[name][which].astype(np.intp) for name in query.by]
    return np.asarray(np.ravel_multi_index(codes, rows.schema.shape(query.by)), np.int64)


def losses(query: Losses, rows: CodedRows, which: Which) -> list[Ints]:
    """Each model's sum of losses."""
    return [np.array([model.sum()]) for model in loss_units(query, rows, which)]


def loss_units(query: Losses | GroupLosses, rows: CodedRows, which: Which) -> Ints:
    """Each row's loss, cut at the clip and towards zero to whole units, from 0 to GRID: one row a model."""
    whole, _ = design.whole(query.design, rows, which)
    x = whole.astype(np.float64)
    logits, models = logits_of(x, query), len(query.thetas)
    if query.measure == "log":
        losses = _log_losses(query, rows.codes[query.target][which].astype(np.intp), logits)
    else:
        residuals = residuals_of(query, rows, which, logits).reshape(models, -1, len(x))
        losses = np.zeros((models, len(x)))
        for level in range(residuals.shape[1]):  # one after another: a sum over an axis may be in any order
            losses += residuals[:, level] * residuals[:, level]
    share = np.clip(losses / query.clip, 0, 1)
    return np.asarray(np.trunc(np.where(np.isnan(share), 0.0, share) * GRID), np.int64)


def _log_losses(query: Losses | GroupLosses, levels: NDArray[np.intp], logits: Floats) -> Floats:
    """The log loss of each model, one row a model."""
    unit = 1 / (design.UNIT * THETA)
    if query.link == "logistic":
        margin = logits * (1 - 2.0 * levels) * unit  # of the wrong level over the right one
        depth = np.minimum(np.rint(np.abs(margin) * STEPS), LAST).astype(np.intp)
        return np.asarray(np.maximum(margin, 0.0) + _softplus()[depth] / GRID)
    each = logits.reshape(len(query.thetas), -1, len(levels))
    likeliest = each.max(axis=1)
    weights = np.zeros(likeliest.shape, np.int64)
    for level in range(each.shape[1]):
        weights += exp_of((likeliest - each[:, level]) * unit)
    own = each[:, levels, np.arange(len(levels))]
    return np.asarray((likeliest - own) * unit + exact_log(weights / GRID))


def moments(query: Moments, rows: CodedRows, which: Which) -> list[Ints]:
    """The upper triangle of x x', row after row, and x y, for whole vectors |x| <= 2^15 and |y| <= 2^15.

    Nothing is rounded after x and y, so what `Moments` proves of real vectors holds of these.
    """
    rows = rows.take(which)
    y = np.rint(np.clip(design.target(query.target, rows) / query.bound, -1, 1) * HALF)
    x = into_ball(design.features(query.design, rows) / query.clip * HALF, HALF).astype(np.float64)
    absent = np.isnan(y)
    x[:, absent], y[absent] = 0, 0
    return [_triangle(x), (x @ y).astype(np.int64)]


def curvature(query: Curvature, rows: CodedRows, which: Which) -> list[Ints]:
    """As `moments`, of x and p - y, but that the triangle is of sqrt(4 p (1 - p)) x, cut to a whole vector first."""
    whole, _ = design.whole(query.design, rows, which)
    (logits,) = logits_of(whole.astype(np.float64), query)
    rows = rows.take(which)
    chances = exp_of(np.abs(logits) / (design.UNIT * THETA))  # of the less likely level over the likelier one
    weight = np.sqrt((chances * GRID).astype(np.float64)) * 2 / (chances + GRID)
    levels = rows.codes[query.target].astype(np.intp)
    residuals = np.rint((np.where(logits < 0, chances, GRID) / (chances + GRID) - levels) * HALF)
    x = design.features(query.design, rows) / query.clip * HALF
    weighted = into_ball(x * weight, HALF).astype(np.float64)
    return [_triangle(weighted), (into_ball(x, HALF).astype(np.float64) @ residuals).astype(np.int64)]


def _triangle(x: Floats) -> Ints:
    """The upper triangle of the sum of x x' over rows, for whole vectors: exact."""
    return (x @ x.T)[np.triu_indices(len(x))].astype(np.int64)


def logits_of(x: Floats, query: Linear) -> Floats:
    """X . theta, one row a class and model, in units of 1 / (UNIT THETA) as exact integers.

    A row has at most `width` features that are not 0, each at most UNIT = 2^12; with |theta| <= 2^40 / width
    all partial sums stay within 2^52.
    """
    width = query.design.most_features
    most = min(THETA_MOST, 2**40 // width)
    theta = np.rint(np.clip(np.asarray(query.theta, np.float64) * THETA, -most, most))
    return np.ascontiguousarray((x @ theta.reshape(x.shape[1], -1)).T)


def residuals_of(
    query: Glm | Gradients | Losses | GroupLosses | Mitigated, rows: CodedRows, which: Which, logits: Floats
) -> Floats:
    """The derivative of the loss by the logit of each class: NaN where a row has no target."""
    unit = 1 / (design.UNIT * THETA)  # a power of 2: exact
    if query.link == "linear":
        return logits * unit - design.target(query.target, rows, which)
    levels = rows.codes[query.target][which].astype(np.intp)
    if query.link == "logistic":
        small = exp_of(np.abs(logits) * unit)
        return np.where(logits < 0, small, GRID) / (small + GRID) - levels
    classes = rows.schema.size(query.target)
    each = logits.reshape(-1, classes, len(levels))  # one model after another
    weights = exp_of((each.max(axis=1, keepdims=True) - each) * unit)
    residuals: Floats = weights / weights.sum(axis=1, keepdims=True)
    residuals[:, levels, np.arange(len(levels))] -= 1
    return residuals.reshape(-1, len(levels))


def exp_of(depth: Floats) -> Ints:
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
