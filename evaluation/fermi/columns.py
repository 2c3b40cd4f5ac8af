"""Many fair classifiers as columns of one matrix, on public data: NOT PRIVATE.

Each column is fitted as a fit of its own would be: by the mechanism's own program, on the driver's own exact sums, with
the noise of its own budget. Columns share the Poisson samples, so one column has the distribution of a fit alone, and
two are not independent. The noise is numpy's, since there is nothing to protect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from stratsynth.accounting.budget import Allotment, Budget, Currency
from stratsynth.accounting.sampled import least_noise
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.lockstep import AnswerSource, Asked, run
from stratsynth.driver.solving import one_thread
from stratsynth.driver.sums import exact_sums
from stratsynth.errors import UsageError
from stratsynth.mechanisms import Public, make
from stratsynth.questions import NoisySum, Total
from stratsynth.questions.sums.clipping import GRID

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator

    from stratsynth.models import Predictor
    from stratsynth.questions import Program
    from stratsynth.schema import Schema

PROMISE = Budget(1.0, 1e-6)
"""Placeholder budget of an allotment that no account uses: columns have budgets of their own."""


@dataclass(frozen=True)
class CurveFit:
    """One fit of a trade-off curve: a penalty (lambda), a budget and the number of its repetition."""

    penalty: float
    epsilon: float
    """Privacy budget of the fit; infinite for no noise."""
    seed: int


class SideBySide(Protocol):
    """Methods that `fermi` has besides those of every mechanism."""

    def task(self, public: Public, budget: Budget) -> Any:
        """Return a training task: the settings that follow from public facts and budget, such as steps and rate."""

    def side_by_side(
        self, public: Public, allot: Allotment, penalties: Sequence[float], rng: Generator
    ) -> Program[list[Any]]:
        """Program on public facts that spends the allotment; returns a list, a model for each of `penalties`, numbers.

        `rng` is for starting points alone.
        """


def fitted(
    train: pd.DataFrame,
    schema: Schema,
    columns: Sequence[CurveFit],
    *,
    delta: float,
    settings: Mapping[str, Any],
    seed: int = 0,
) -> list[Predictor]:
    """List of Predictors, one fitted for each of the `columns`, in their order, side by side on public rows.

    Args:
        train: Public rows, a frame.
        schema: Schema of these rows.
        columns: CurveFits to make. Those without a penalty are run together, and so are all others.
        delta: Delta of every column's budget.
        settings: Mapping of settings of `fermi`; `penalty` comes from the columns.
        seed: Seed of samples and noise.

    Raises:
        UsageError: Settings that protect the sensitive attribute alone.
    """
    if settings.get("protect", "all") != "all":
        raise UsageError('fermi side by side: the rows are public here, so protect = "all" is all there is to compare.')
    rows = load_rows(schema, open_source(train))
    found: dict[int, Predictor] = {}
    rng = np.random.default_rng(seed)
    # fits without penalty ask other sums, so both kinds run as programs of their own
    for fair in (False, True):
        places = [i for i, column in enumerate(columns) if (column.penalty > 0) == fair]
        if not places:
            continue
        how = cast("SideBySide", make("fermi", {**settings, "penalty": float(fair)}))
        public = Public(schema, len(train))
        task = how.task(public, PROMISE)
        steps = task.descent.steps
        allot = Allotment(Currency.SAMPLED, float(steps), PROMISE, noise=1.0, rate=task.sampling)
        noise = np.array([multiplier(columns[i].epsilon, delta, task.sampling, steps) for i in places])
        program = how.side_by_side(public, allot, [columns[i].penalty for i in places], np.random.default_rng(0))
        answers = NoisyColumns(rows._parts[0], noise, rng)  # noqa: SLF001 - public rows, in memory
        with one_thread():  # matrices of a thousand rows: threads would wait for each other
            found.update(zip(places, run(program, schema, answers), strict=True))
    return [found[i] for i in range(len(columns))]


def sized(train: pd.DataFrame, schema: Schema, settings: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return (training task by `settings` in a schema, rows of `train` as the driver holds them).

    `settings` maps names of settings of `fermi` to values; `train` is a frame of public rows.
    """
    how = cast("SideBySide", make("fermi", {"penalty": 1.0, **settings}))
    return how.task(Public(schema, len(train)), PROMISE), load_rows(schema, open_source(train))._parts[0]  # noqa: SLF001


def multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Noise multiplier of a fit at epsilon and delta with `steps` Poisson samples of `rate`.

    0 for an infinite epsilon.
    """
    return 0.0 if math.isinf(epsilon) else least_noise(Budget(epsilon, delta), rate=rate, steps=steps)


class NoisyColumns(AnswerSource):
    """Source of answers for many fits at once: exact sums over Poisson samples, with each column's own noise."""

    def __init__(self, rows: Any, noise: Any, rng: np.random.Generator) -> None:
        """Keep the public `rows` in memory, the Generator `rng`, and the array `noise`, a noise multiplier a column."""
        self._rows, self._noise, self._rng = rows, noise, rng

    def __call__(self, asked: Sequence[Asked]) -> list[tuple[NoisySum, ...]]:
        """Answer a list `asked` of one question, for sums over a Poisson sample: a list of one tuple of noisy sums.

        It has one a block, each with the noise of its column.
        """
        (one,) = asked
        question = one.question
        assert isinstance(question, Total)  # noqa: S101 - what the program asks
        chosen = np.flatnonzero(self._rng.random(self._rows.size) < question.rate)
        sums = exact_sums(question.query, self._rows, chosen)
        blocks = question.query.blocks(one.schema)
        parts = len(blocks) // len(self._noise)
        weights = np.array((question.weights or (1.0,) * len(blocks))[:parts])
        spread = np.sqrt(weights.sum() / weights)  # block's multiplier over its column's
        scales = np.outer(self._noise, spread).ravel()
        sizes = [block.size for block in blocks]
        # Gaussian noise rounded to the driver's grid, in units of clip / GRID
        drawn = np.rint(self._rng.normal(size=sum(sizes)) * np.repeat(scales * GRID, sizes)).astype(np.int64)
        units = np.split(np.concatenate(sums) + drawn, np.cumsum(sizes)[:-1])
        return [
            tuple(
                NoisySum(part, block.clip / GRID, float(z) * block.clip)
                for part, block, z in zip(units, blocks, scales, strict=True)
            )
        ]
