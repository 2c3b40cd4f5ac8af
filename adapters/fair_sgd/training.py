"""Descent on noisy gradients of Poisson samples, each step mitigated by earlier statistics of the groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.fair_sgd.leaning import Leaning
from stratsynth.adapters.predictors.descent import Descent
from stratsynth.questions import Program, total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment
    from stratsynth.adapters.fair_sgd.task import FairSgdProblem

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FairSgdResult:
    """Result of one `fair_sgd` training: coefficients, and figures of the noise and the groups."""

    theta: Floats
    batch: float
    """Expected number of records in a sample."""
    noise: float
    """Noise scale of a coordinate of the last step's mean gradient."""
    clip: float
    """Clip of the last step."""
    groups: list[str]
    """Sizes and statistics of each group in words, averaged over the last steps; empty without groups."""


def train(task: FairSgdProblem, allot: Allotment, start: Floats) -> Program[FairSgdResult]:
    """Program of the descent that returns a `FairSgdResult`; one question a step, at one price.

    It asks for the gradient and the groups' statistics of one sample.

    Args:
        task: The `FairSgdProblem`: public facts of the fit.
        allot: The allotment: steps and their noise.
        start: Array of the first coefficients.
    """
    assert allot.noise is not None and allot.rate is not None  # noqa: S101, PT018 - those of a sampled fit
    steps, tail = round(allot.amount), max(1, round(allot.amount * task.settings.tail))
    descent = Descent(task.region, task.descent.rate, task.descent.momentum, steps, tail, task.region.project(start))
    leaning, spread, clip = Leaning.start(task), 0.0, task.descent.clip
    for _ in range(steps):
        lean = leaning.now()
        answers = yield from total(
            task.query(descent.theta, lean), noise=allot.noise, rate=allot.rate, weights=task.weights
        )
        # statistics of this step steer the next one only
        told = dict(zip(map(str, task.statistics), answers[1:], strict=True))
        if task.batch is None:
            leaning.count(told["tally"])
        # divided by the expected size: the realised one is private
        gradient, scale = answers[0], leaning.scale / leaning.batch
        descent.step(gradient.values.reshape(task.form.shape) * scale)
        spread, clip = gradient.sigma * scale, lean.clip
        # running averages of noisy statistics: one step's alone are too noisy to steer by
        leaning.learn(told)
    return FairSgdResult(descent.result, leaning.batch, spread, clip, _groups(task, leaning))


def _groups(task: FairSgdProblem, leaning: Leaning) -> list[str]:
    """Return a list of texts, one a group of a `FairSgdProblem`: label, noisy size, mean of 1 - sum of p^2 if asked.

    `leaning` has the noisy statistics. [] without groups.
    """
    if not task.by:
        return []
    sizes = leaning.sizes()
    said = [
        f"{label} about {size / task.sampling:,.0f} records" for label, size in zip(task.labels, sizes, strict=True)
    ]
    if "boundary" in leaning.kept:
        near = leaning.kept["boundary"].mean / sizes
        said = [f"{one}, mean of 1 - sum of p^2 {mean:.3f}" for one, mean in zip(said, near, strict=True)]
    return said
