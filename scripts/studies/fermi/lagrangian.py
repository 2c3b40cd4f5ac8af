"""Lagrangian dual approach of Tran, Fioretto and Van Hentenryck (2021), the strongest baseline of paper 004.

    theta      <- theta - rate * gradient by theta of  [mean loss + sum over groups g of multiplier_g |v_g|]
    multiplier <- multiplier + step |v_g|,   at most `MOST`

v_g is the mean predicted probability of the second class in group g less that of everybody; for odds, within each true
class. At the true budget: gradient and the groups' sums of probabilities are of one sample and priced as one Gaussian,
whole records are protected, and signs and sizes of v_g are of noisy sums. (The paper hides the sensitive attribute
alone.) No multiplier falls, so that noise alone makes them grow: the published rule, not ours; `fermi` with a gap has
another. Trade-offs come of `step`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Allotment, Currency
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.lockstep import run
from stratsynth.driver.solving import one_thread
from stratsynth.evaluation.fermi.columns import PROMISE, CurveFit, NoisyColumns, multiplier, sized
from stratsynth.questions import NoisySum, Program, total

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.models import Predictor
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

MOST = 10.0
"""Largest multiplier."""


def dual_fits(
    train: pd.DataFrame,
    schema: Schema,
    columns: Sequence[CurveFit],
    *,
    delta: float,
    settings: Mapping[str, Any],
    seed: int = 0,
) -> list[Predictor]:
    """Fit one predictor for each of the `columns`, side by side on public rows: NOT PRIVATE.

    Args:
        train: Public rows.
        schema: Of these rows.
        columns: Fits; the `penalty` of one is the step of its multipliers.
        delta: Delta of every fit.
        settings: Settings of `fermi` for the descent, target, groups and criterion.
        seed: Seed of noise.
    """
    task, _ = sized(train, schema, settings)
    noise = np.array([multiplier(one.epsilon, delta, task.sampling, task.descent.steps) for one in columns])
    allot = Allotment(Currency.SAMPLED, float(task.descent.steps), PROMISE, noise=1.0, rate=task.sampling)
    rows = load_rows(schema, open_source(train))._parts[0]  # noqa: SLF001 - public rows, in memory
    answers = NoisyColumns(rows, noise, np.random.default_rng(seed))
    with one_thread():
        thetas = run(_program(task, allot, np.array([one.penalty for one in columns])), schema, answers)
    return [task.model(theta, {}) for theta in thetas]


def _program(task: Any, allot: Allotment, steps_up: Floats) -> Program[Floats]:
    """Program that returns the coefficients of a model for each step of the multipliers.

    The first steps count the groups, and minimise the loss alone.
    """
    settings, pace, models = task.settings, task.descent, len(steps_up)
    weights = (1 - settings.adversary_share, settings.adversary_share) * models
    wait = max(1, round(settings.warm_up * pace.steps))
    first = pace.steps - max(1, round(settings.tail * pace.steps))  # the mean of the steps after it is the model
    theta, direction, found = (np.zeros((models, *task.shape)) for _ in range(3))
    cells = (models, task.true_classes, task.groups)
    counted, multipliers = np.zeros(cells), np.zeros(cells)
    slopes = np.zeros((models, *task.schema.shape(task.by), task.classes))
    for step in range(pace.steps):
        answer: Sequence[NoisySum] = yield from total(
            task.query(theta, slopes), noise=allot.noise, rate=task.sampling, weights=weights
        )
        sums = np.array([one.values.reshape(task.groups, task.true_classes, 2) for one in answer[1::2]])
        sums = np.moveaxis(sums, 1, 2)
        if step < wait:
            counted += sums.sum(axis=-1) / wait
        else:
            # a size is at least a thousandth of everybody's, as it stands in denominators
            sizes = np.maximum(counted, counted.sum(axis=(1, 2), keepdims=True) / 1000)
            multipliers, slopes[..., 1] = _dual(sizes, multipliers, sums[..., 1], steps_up, slopes.shape[:-1])
        gradient = np.array([one.values.reshape(task.shape) for one in answer[::2]]) / (task.records * task.sampling)
        direction = pace.momentum * direction + gradient
        theta = np.clip(theta - pace.rate * direction, -settings.radius, settings.radius)
        found += theta / (pace.steps - first) * (step >= first)
    return found


def _dual(
    records: Floats, multipliers: Floats, sums: Floats, steps_up: Floats, shape: tuple[int, ...]
) -> tuple[Floats, Floats]:
    """Return the next multipliers, and the slopes by a row's probability of the second class, shaped as cells of `by`.

    Args:
        records: Expected records of each cell: model, true class, group, as in `multipliers` and `sums`.
        multipliers: Those of the last step.
        sums: Noisy sums of the second class's probabilities.
        steps_up: Step of the multipliers of each model.
        shape: Model and columns of `by`, groups first.
    """
    each = records.sum(axis=-1, keepdims=True)
    apart = sums / records - sums.sum(axis=-1, keepdims=True) / each
    grown = np.minimum(MOST, multipliers + steps_up[:, None, None] * np.abs(apart))
    pull = grown * np.sign(apart)
    # a group's mean falls with its own records' probabilities; everybody's with all records'
    of_row = (pull / records - pull.sum(axis=-1, keepdims=True) / each) * each
    return grown, np.moveaxis(of_row, 1, 2).reshape(shape)
