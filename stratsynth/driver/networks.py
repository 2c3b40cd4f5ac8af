"""Exact sums of a network's clipped gradients and of its losses, under the rules of `stratsynth.driver.sums`.

Both layers are products of exact integers: features in units of 1 / UNIT = 2^-12, hidden units in 1 / TANH = 2^-16 from
a public table, weights in 1 / THETA. Everything between is done one element at a time, in a fixed order.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from stratsynth.driver import design
from stratsynth.driver.clipping import Floats, Ints, Which, into_ball
from stratsynth.driver.models import LAST, STEPS, THETA, THETA_MOST, exp_of, share_of
from stratsynth.questions.networks import NetworkGradients, NetworkLosses
from stratsynth.questions.total import GRID
from stratsynth.schema.rows import CodedRows

Query = NetworkGradients | NetworkLosses

TANH = 1 << 16
"""Hidden units are taken to the nearest 1 / TANH."""


def gradients(query: NetworkGradients, rows: CodedRows, which: Which) -> list[Ints]:
    """The sum of the rows' gradients, each clipped as one vector to GRID."""
    features, reach = design.whole(query.design, rows, which)
    x = features.astype(np.float64)
    h, logits = forward(x, query)
    output = whole_output(query) / THETA  # a power of 2: exact
    residuals = residuals_of(query, rows, which, logits)[-output.shape[1] :]
    inner = back(residuals, output) * (1 - h * h)
    units = whole(lines(inner, outer(h, residuals), reach), len(h), reach, query.clip)
    if query.parts is not None:
        units = np.trunc(units * share_of(query, rows, which)).astype(np.int64)
    return [added(units, len(h), x)]


def back(residuals: Floats, output: Floats) -> Floats:
    """What reaches each hidden unit of the residuals, through the output weights; one line a unit."""
    found = np.zeros((len(output) - 1, residuals.shape[1]))
    for residual, weights in zip(residuals, output.T, strict=True):
        found += residual * weights[:-1, None]
    return found


def outer(units: Floats, residuals: Floats, constant: float = 1.0) -> list[Floats]:
    """The products of units, and of a constant after them, with residuals: one line an output weight."""
    return [line for unit in (*units, np.full(residuals.shape[1], constant)) for line in unit * residuals]


def lines(inner: Floats, outer: list[Floats], reach: Ints) -> Floats:
    """What is clipped of a vector whose part for hidden unit j is inner_j x, x being the row's features.

    One coordinate stands for the length of that part: inner_j times GRID / reach >= |x|, where reach is the largest
    whole m with |m x| <= GRID.
    """
    return np.array([*(inner * (GRID / reach / design.UNIT)), *outer])


def whole(lines: Floats, hidden: int, reach: Ints, clip: float, radius: int | Ints = GRID) -> Ints:
    """Such lines in integers of a norm of at most `radius`, the first ones as whole numbers of features.

    A coordinate u of a hidden unit is made c = floor(|u| reach / GRID) with its sign, so that |c x| <= |u|: the vector
    of all c x and of the output layer's coordinates is as long as the clipped one at most.
    """
    units = into_ball(lines / clip * GRID, radius)
    c = units[:hidden]
    units[:hidden] = np.sign(c) * ((np.abs(c) * reach) // GRID)
    return units


def added(units: Ints, hidden: int, x: Floats) -> Ints:
    """The sum over rows of the vectors that `whole` made."""
    inner = (units[:hidden].astype(np.float64) @ x).astype(np.int64)
    return np.concatenate([inner.ravel(), units[hidden:].sum(axis=1)])


def losses(query: NetworkLosses, rows: CodedRows, which: Which) -> list[Ints]:
    """The sum of losses, cut at the clip and to whole units."""
    features, _ = design.whole(query.design, rows, which)
    _, logits = forward(features.astype(np.float64), query)
    if query.measure == "log":
        levels = rows.codes[query.target][which].astype(np.intp)
        largest = logits.max(axis=0)
        weights = exp_of(largest - logits).sum(axis=0)  # from GRID to GRID times the number of levels
        step = np.rint((weights - GRID) * (STEPS / GRID)).astype(np.intp)
        found = largest - logits[levels, np.arange(len(levels))] + _log(len(logits))[step] / GRID
    else:
        found = np.zeros(len(features))
        for residual in residuals_of(query, rows, which, logits):
            found += residual * residual / 2
    share = np.clip(found / query.clip, 0, 1)
    units: Ints = np.trunc(np.where(np.isnan(share), 0.0, share) * GRID).astype(np.int64)
    return [np.array([units.sum()])]


def forward(x: Floats, query: Query) -> tuple[Floats, Floats]:
    """The hidden units, one a line, and a logit for each level of the target: 0 for the first of two.

    A row has at most `width` features that are not 0, each at most UNIT = 2^12, and weights are at most 2^40 / width:
    sums stay within 2^52. So they do in the second layer, of `units` + 1 numbers that are at most TANH = 2^16.
    """
    z = inputs_of(x, query)
    h = np.sign(z).astype(np.int64) * _tanh()[np.minimum(np.rint(np.abs(z) * STEPS), LAST).astype(np.intp)]
    inputs = np.concatenate([h, np.full((1, len(x)), TANH)]).astype(np.float64)
    logits = (whole_output(query).T @ inputs) * (1 / (TANH * THETA))
    if len(logits) == 1:
        logits = np.concatenate([np.zeros_like(logits), logits])
    return h / TANH, logits


def inputs_of(x: Floats, query: Query) -> Floats:
    """What hidden units see: features times hidden weights, one line a unit, exactly."""
    most = min(THETA_MOST, 2**40 // query.design.most_features)
    hidden = np.rint(np.clip(query.hidden * THETA, -most, most))
    return np.ascontiguousarray((x @ hidden.T).T) * (1 / (design.UNIT * THETA))


def whole_output(query: Query) -> Floats:
    """The output weights in units of 1 / THETA."""
    most = min(THETA_MOST, 2**36 // len(query.output))
    found: Floats = np.rint(np.clip(query.output * THETA, -most, most))
    return found


def residuals_of(query: Query, rows: CodedRows, which: Which, logits: Floats) -> Floats:
    """Each level's probability, less 1 for the row's own level; one line a level."""
    levels = rows.codes[query.target][which].astype(np.intp)
    weights = exp_of(logits.max(axis=0) - logits)
    residuals: Floats = weights / weights.sum(axis=0)
    residuals[levels, np.arange(len(levels))] -= 1
    return residuals


@cache
def _tanh() -> Ints:
    """tanh(i / STEPS) in units of 1 / TANH."""
    return np.array([round(math.tanh(i / STEPS) * TANH) for i in range(LAST + 1)], np.int64)


@cache
def _log(levels: int) -> Ints:
    """log(1 + i / STEPS) in units of 1 / GRID, for up to 1 + i / STEPS = `levels`."""
    return np.array([round(math.log1p(i / STEPS) * GRID) for i in range((levels - 1) * STEPS + 1)], np.int64)
