"""Training to a wanted gap: descent in the coefficients, with multipliers of the gap that are steered in one fit.

    theta <- P(theta - rate * gradient of [loss + multiplier x difference of the groups' mean probabilities] by theta)
    multiplier <- max(0, multiplier + pace (difference of the groups' rates of decisions - wanted gap))

A step asks one `FairGradients`, whose second sum is of decisions: probabilities close to the border say little of them.
The first steps minimise the loss alone, and count groups whose sizes are not public. The model is a mean of
coefficients, which no step has asked about; so the last steps ask of that model alone, with nearly all of a step's
price for its decisions. All steps cost as much as any other, and the rest is post-processing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.fermi.gap import PACE, PACE_WITH_GROUP, MeasuredGap, Steering, aims
from stratsynth.adapters.fermi.training import CellCounts, FermiResult
from stratsynth.adapters.predictors.descent import Descent
from stratsynth.questions import NoisySum, Program, total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment
    from stratsynth.adapters.fermi.task import FermiProblem

    Floats = NDArray[np.float64]

MEASURING = 0.1
"""Part of the steps that measure the gap of the model; at least one does."""
UNUSED = 1e-4
"""Share of a measuring step's price for the gradient, which is not used."""


def train_to_gap(task: FermiProblem, allot: Allotment) -> Program[FermiResult]:
    """Program that returns a `FermiResult`: one model's coefficients, noise, shares of groups, measured gap.

    Args:
        task: The `FermiProblem`: public facts of the fit, with a wanted gap.
        allot: The allotment: steps and their noise.
    """
    assert allot.noise is not None and allot.rate is not None  # noqa: S101, PT018 - those of a sampled fit
    settings, pace, steps = task.settings, task.descent, round(allot.amount)
    last = max(1, round(MEASURING * steps))
    moving = steps - last
    own_group = set(settings.groups) & set(task.design.columns)
    wait = min(moving, max(1, round(settings.warm_up * steps)))
    descent = Descent(
        task.region, pace.rate, pace.momentum, moving, max(1, round(moving * settings.tail)), np.zeros(task.shape)
    )
    counts, steering, spread = CellCounts(task, allot.rate, np.zeros((1, task.cells))), None, 0.0
    for step in range(moving):
        if step >= wait and steering is None:
            records = counts.records[0]
            bounds = aims(settings.wanted, records, allot.noise * task.schema.row_weight.most / math.sqrt(last))
            steering = Steering(bounds, PACE_WITH_GROUP if own_group else PACE, records)
        gradient, sums = yield from step_of(task, allot, descent.theta, steering, settings.adversary_share)
        if steering is None:
            counts.add([sums])
        else:
            steering.step(by_cell(task, sums)[..., 1])
        descent.step((gradient.values / counts.batch[0]).reshape(task.shape))
        spread = gradient.sigma / float(counts.batch[0])
    theta, seen, sigma = descent.result, np.zeros((task.true_classes, task.groups, task.classes)), 0.0
    for _ in range(last):
        _, sums = yield from step_of(task, allot, theta, steering, 1 - UNUSED)
        seen, sigma = seen + by_cell(task, sums), math.hypot(sigma, sums.sigma)
    gap = MeasuredGap.of(seen, sigma).stated(settings.wanted, settings.criterion)
    records = counts.records[0]
    gap["multipliers"] = [] if steering is None else steering.multipliers.ravel().tolist()
    return FermiResult(theta[None], spread, records / records.sum(axis=-1, keepdims=True), gap)


def step_of(
    task: FermiProblem, allot: Allotment, theta: Floats, steering: Steering | None, share: float
) -> Program[Sequence[NoisySum]]:
    """Program on a `FermiProblem` that asks its gradient at `theta` and, for `share` of the price, decisions by cell.

    `theta` is one model's array of coefficients. The allotment has noise and rate. It returns both answers, two
    `NoisySum`s; slopes are those of `steering`, 0 if it is None.
    """
    slopes = np.zeros((1, *task.schema.shape(task.by), task.classes))
    if steering is not None:
        slopes[..., 1] = steering.slopes.reshape(slopes.shape[:-1])
    query, rate = task.decided(theta[None], slopes), task.sampling
    found: Sequence[NoisySum] = yield from total(query, noise=allot.noise, rate=rate, weights=(1 - share, share))
    return found


def by_cell(task: FermiProblem, sums: NoisySum) -> Floats:
    """Return an array, true class x group x decision: the values of a `NoisySum` by a `FermiProblem`'s cells.

    They are numbers of records.
    """
    found = sums.values.reshape(task.groups, task.true_classes, task.classes)
    return np.moveaxis(found, 1, 0)
