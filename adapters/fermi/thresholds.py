"""A threshold of its own for each group: post-processing of noisy counts, by a rule that is told everybody's group.

Most steps minimise the loss alone, the groups' columns being features. A fifth of the steps then count decisions by
group and true class, each at another threshold of the probability, at a step's usual price. From these counts follow
each group's rate of positive decisions and its errors at every threshold; of all choices of a threshold a group whose
rates lie within the wanted gap, the one of fewest errors is taken. The last steps measure the gap of that model.

A shift of one group's threshold is a shift of its coefficient, so that the model is a regression like any other.
"""

from __future__ import annotations

import math
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.fermi.gap import MeasuredGap, aim_of_pair
from stratsynth.adapters.fermi.steered import MEASURING, UNUSED, by_cell, step_of
from stratsynth.adapters.fermi.training import CellCounts, FermiResult
from stratsynth.adapters.predictors.descent import Descent
from stratsynth.questions import FairGradients, NoisySum, Program, total
from stratsynth.strata import crossing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment
    from stratsynth.adapters.fermi.task import FermiProblem

    Floats = NDArray[np.float64]

TRYING = 0.2
"""Part of the steps that count decisions at a threshold each."""
RATES = 401
"""Number of rates of positive decisions, from 0 to 1, among which each group's is chosen."""
BEYOND = 5.0
"""Distance, in log-odds, of the ends from the lowest and the highest threshold that is tried."""


def train_with_thresholds(task: FermiProblem, allot: Allotment) -> Program[FermiResult]:
    """Program that returns a `FermiResult`: one model, a threshold a group, noise, shares of groups, measured gap.

    Args:
        task: The `FermiProblem`: public facts of the fit, with a wanted gap, and the groups' columns among the
            features.
        allot: The allotment: steps and their noise.
    """
    assert allot.noise is not None and allot.rate is not None  # noqa: S101, PT018 - those of a sampled fit
    settings, pace, steps = task.settings, task.descent, round(allot.amount)
    last, tried = max(1, round(MEASURING * steps)), round(TRYING * steps)
    moving = min(steps - last - 1, steps - last - tried)
    tried = steps - last - moving
    wait = max(1, round(settings.warm_up * moving)) if task.counts else 0
    descent = Descent(
        task.region, pace.rate, pace.momentum, moving, max(1, round(moving * settings.tail)), np.zeros(task.shape)
    )
    counts, spread = CellCounts(task, allot.rate, np.zeros((1, task.cells))), 0.0
    for step in range(moving):
        share = settings.adversary_share if step < wait else UNUSED
        gradient, sums = yield from step_of(task, allot, descent.theta, None, share)
        if step < wait:
            counts.add([sums])
        descent.step((gradient.values / counts.batch[0]).reshape(task.shape))
        spread = gradient.sigma / float(counts.batch[0])
    theta, logits = descent.result, _logits(tried)
    seen, sigma = [], 0.0
    for logit in logits:
        sums = yield from _decisions(task, allot, np.concatenate([theta[:1] - logit, theta[1:]]))
        seen.append(sums.values.reshape(task.groups, 2, 2))
        sigma = sums.sigma
    positive, sizes = counted(np.array(seen))
    bound = aim_of_pair(settings.wanted, np.sort(sizes.sum(axis=1))[:2], sigma / math.sqrt(last), task.pairs)
    chosen = best_thresholds(positive, sizes, logits, bound)
    theta = theta + shift(task, -chosen)
    found, sigma = np.zeros((1, task.groups, 2)), 0.0
    for _ in range(last):
        _, sums = yield from step_of(task, allot, theta, None, 1 - UNUSED)
        found, sigma = found + by_cell(task, sums), math.hypot(sigma, sums.sigma)
    gap = {**MeasuredGap.of(found, sigma).stated(settings.wanted, settings.criterion), "multipliers": []}
    shares = np.maximum(sizes.sum(axis=1), sigma)
    return FermiResult(theta[None], spread, (shares / shares.sum())[None], gap, 1 / (1 + np.exp(-chosen)))


def _logits(steps: int) -> Floats:
    """Return an array of logits of `steps` thresholds, a number; they are evenly spaced as probabilities."""
    chances = (np.arange(steps) + 0.5) / steps
    found: Floats = np.log(chances / (1 - chances))
    return found


def _decisions(task: FermiProblem, allot: Allotment, theta: Floats) -> Program[NoisySum]:
    """Program on a `FermiProblem` that asks for decisions of `theta` by group and true class, at nearly a step's price.

    `theta` is one model's coefficients; the allotment has a step's noise. It returns the `NoisySum` of numbers of
    records.
    """
    by = (*task.settings.groups, task.target)
    slopes = np.zeros((1, *task.schema.shape(by), task.classes))
    query = FairGradients(task.design, task.target, task.link, theta[None], task.descent.clip, by, slopes, decided=True)
    found: Sequence[NoisySum] = yield from total(
        query, noise=allot.noise, rate=task.sampling, weights=(UNUSED, 1 - UNUSED)
    )
    return found[1]


def counted(seen: Floats) -> tuple[Floats, Floats]:
    """Return two arrays by noisy counts: positive decisions and sizes; axes threshold, group, true class.

    Args:
        seen: Array of noisy counts, threshold x group x true class x decision, thresholds in increasing order.

    Returns:
        Numbers of positive decisions that do not grow with the threshold, from 0 to the size; and sizes of at least 1,
        without the axis of thresholds.
    """
    from scipy.optimize import isotonic_regression

    sizes = np.maximum(seen.sum(axis=-1).mean(axis=0), 1.0)
    # both decisions of a cell are counted, each with noise of its own
    positive = (seen[..., 1] + sizes - seen[..., 0]) / 2
    flat = positive.reshape(len(seen), -1)
    smooth = np.column_stack([isotonic_regression(line, increasing=False).x for line in flat.T])
    return np.clip(smooth.reshape(positive.shape), 0, sizes), sizes


def best_thresholds(positive: Floats, sizes: Floats, logits: Floats, bound: float) -> Floats:
    """Return an array of the groups' thresholds, logits, of fewest errors, with rates no further apart than `bound`.

    Args:
        positive: Array of positive decisions, threshold x group x true class; they do not grow with the threshold.
        sizes: Array of records, group x true class.
        logits: Array of the thresholds, increasing.
        bound: Largest difference between two groups' rates of positive decisions.
    """
    rates = np.linspace(0, 1, RATES)
    errors, at = np.empty((len(sizes), RATES)), np.empty((len(sizes), RATES))
    # beyond the thresholds that were tried lie one that everybody is above, and one that nobody is
    ends = np.concatenate([[logits[0] - BEYOND], logits, [logits[-1] + BEYOND]])
    for g, (line, size) in enumerate(zip(np.moveaxis(positive, 1, 0), sizes, strict=True)):
        whole = np.concatenate([[size], line, [np.zeros(2)]])
        # rates fall with the threshold, and interpolation wants them to grow
        here, wrong = whole.sum(axis=1)[::-1] / size.sum(), (whole[:, 0] + size[1] - whole[:, 1])[::-1]
        errors[g], at[g] = np.interp(rates, here, wrong), np.interp(rates, here, ends[::-1])
    width = int(bound * (RATES - 1) + 1e-9) + 1
    fewest = [errors[:, low : low + width].min(axis=1).sum() for low in range(RATES - width + 1)]
    low = int(np.argmin(fewest))
    chosen = low + errors[:, low : low + width].argmin(axis=1)
    found: Floats = at[np.arange(len(sizes)), chosen]
    return found


def shift(task: FermiProblem, by: Floats) -> Floats:
    """Return an array of a `FermiProblem`'s coefficients that add `by` to logits; 0 but of the groups' features.

    `by` is an array of one number a group.
    """
    columns = task.settings.groups
    groups = [{f"{c}={one.levels[c][0]}" for c in columns} for one in crossing(task.schema, columns)]
    active = np.array([[_holds(name, group) for name in task.names] for group in groups], np.float64)
    return np.asarray(np.linalg.lstsq(active, by, rcond=None)[0], np.float64)


def _holds(name: str, group: set[str]) -> bool:
    """Return True if the feature called `name` is 1 of all records of `group`, a set of texts `column=level`.

    The intercept `1` is, and `column=level` and products of two.
    """
    return name == "1" or name in group | {f"{one}*{other}" for one, other in permutations(group, 2)}
