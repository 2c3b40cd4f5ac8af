"""Exact sums of the gradients and losses of generalised linear models, one model or many side by side."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from stratsynth.driver import design
from stratsynth.driver.clipping import Floats, Ints, PathRows, Which, into_ball
from stratsynth.questions.fairness import FairGradients
from stratsynth.questions.gradients import Gradients, Losses
from stratsynth.questions.queries import Glm
from stratsynth.questions.total import GRID

THETA = 1 << 20
"""Coefficients are taken to the nearest 1 / THETA."""
THETA_MOST = 1 << 30
"""Larger coefficients, in those units, are taken as this: 1,024."""
STEPS = 1 << 11
"""exp is tabulated at this many points in each unit, so its relative error is below 1/4,096."""
LAST = 21 * STEPS
"""Where the table of exp ends: exp(-21) GRID is less than 1."""


def glm(query: Glm, rows: PathRows, which: Which) -> list[Ints]:
    """The sum of c x over rows, x being a row's whole features and c a whole number, one a class for softmax.

    A row's reach is the largest c for which |c x| <= GRID, so clipping the gradient is clipping c to it.
    """
    whole, reach = design.whole(query.design, rows, which)
    x = whole.astype(np.float64)
    residuals = residuals_of(query, rows, which, logits_of(x, query))
    c = into_ball(residuals * (GRID // design.UNIT) / query.clip, reach).astype(np.float64)
    return [(x.T @ c.T).astype(np.int64).ravel()]


def gradients(query: Gradients, rows: PathRows, which: Which) -> list[Ints]:
    """As `glm`, the models side by side: one product gives all logits, and another all sums.

    A row's c, which the clip has bounded, times a public number from 0 to 1 and cut towards zero, is no larger.
    """
    whole, reach = design.whole(query.design, rows, which)
    x = whole.astype(np.float64)
    residuals = residuals_of(query, rows, which, logits_of(x, query))
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


def losses(query: Losses, rows: PathRows, which: Which) -> list[Ints]:
    """Each model's sum of losses, cut at the clip and to whole units."""
    whole, _ = design.whole(query.design, rows, which)
    logits = logits_of(whole.astype(np.float64), query)
    if query.measure == "log":
        sign = 1 - 2.0 * rows.codes[query.target][which]
        margin = logits * sign / (design.UNIT * THETA)  # of the wrong level over the right one
        depth = np.minimum(np.rint(np.abs(margin) * STEPS), LAST).astype(np.intp)
        losses = np.maximum(margin, 0.0) + _softplus()[depth] / GRID
    else:
        residuals = residuals_of(query, rows, which, logits)
        losses = residuals * residuals
    share = np.clip(losses / query.clip, 0, 1)
    units = np.trunc(np.where(np.isnan(share), 0.0, share) * GRID).astype(np.int64)
    return [np.array([model.sum()]) for model in units]


def logits_of(x: Floats, query: Glm | Gradients | Losses | FairGradients) -> Floats:
    """X . theta, one row a class and model, in units of 1 / (UNIT THETA) as exact integers.

    A row has at most `width` features that are not 0, each at most UNIT = 2^12; with |theta| <= 2^40 / width
    all partial sums stay within 2^52.
    """
    width = query.design.most_features
    most = min(THETA_MOST, 2**40 // width)
    theta = np.rint(np.clip(np.asarray(query.theta, np.float64) * THETA, -most, most))
    return np.ascontiguousarray((x @ theta.reshape(x.shape[1], -1)).T)


def residuals_of(query: Glm | Gradients | Losses, rows: PathRows, which: Which, logits: Floats) -> Floats:
    """The derivative of the loss by the logit of each class: NaN where a row has no target."""
    unit = 1 / (design.UNIT * THETA)  # a power of 2: exact
    if query.link == "linear":
        return logits * unit - design.target(query.target, rows, which)
    levels = rows.codes[query.target][which].astype(np.intp)
    if query.link == "logistic":
        small = exp_of(np.abs(logits) * unit)
        return np.where(logits < 0, small, GRID) / (small + GRID) - levels
    weights = exp_of((logits.max(axis=0) - logits) * unit)
    residuals: Floats = weights / weights.sum(axis=0)
    residuals[levels, np.arange(len(levels))] -= 1
    return residuals


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
