"""Algorithm 1 of paper 004 on noisy sums: descent in the coefficients, ascent in W, one Poisson sample a step.

    theta <- P(theta - rate * gradient of [loss + lambda psi] by theta)
    W     <- P(W + ascent * gradient of psi by W)

A step asks one `FairGradients`: both of its sums are of one sample, and its price is that of one subsampled Gaussian
for both together. (The paper's Theorem 3.3 gives each of them the whole budget.) The first is clipped as one, loss and
penalty together, so that features and labels are protected too. W needs no clip: its gradient is a linear function of
the second sum, whose rows are of norm 1 at most, and so is all noise in it.

The second sum also counts the records of each group. Where that number is not public, the first steps add it up and
minimise the loss alone; they cost as much as other steps. Several models, which differ in their penalties, can learn
side by side. Everything here but the answers is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.fermi import ermi
from stratsynth.adapters.fermi.open_rows import ExpectedSum, OpenRows
from stratsynth.adapters.predictors.descent import Descent
from stratsynth.questions import NoisySum, Program, total

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment
    from stratsynth.adapters.fermi.task import FermiProblem

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FermiResult:
    """Result of one `fermi` training: each penalty's coefficients, noise, and the shares of groups that it used."""

    theta: Floats
    """Coefficients, one entry a penalty."""
    noise: float
    """Noise scale of a coordinate of the first model's mean gradient, at the last step."""
    shares: Floats | None
    """Shares of the groups used by the first model: one row a true class, one row in all for parity."""
    gap: Mapping[str, Any] | None = None
    """Measured gap of the model beside the wanted one, and its multipliers; None where none is wanted."""
    thresholds: Floats | None = None
    """Threshold of each group, a probability of the target's second level; None where groups have none."""


def train(task: FermiProblem, allot: Allotment, penalties: Sequence[float], rng: Generator) -> Program[FermiResult]:
    """Program that returns a `FermiResult`: coefficients of a model for each penalty, side by side.

    Args:
        task: The `FermiProblem`: public facts of the fit.
        allot: The allotment: steps and their noise.
        penalties: One penalty a model; all are positive, or all are 0.
        rng: Makes a network's first weights, and draws samples of public rows.
    """
    assert allot.noise is not None and allot.rate is not None  # noqa: S101, PT018 - those of a sampled fit
    rows = None
    if task.settings.protect == "sensitive":
        rows = yield from OpenRows.ask(task, allot.rate, rng)
        task = replace(task, records=float(max(rows.rows.size, 1)))
    settings, models, steps = task.settings, len(penalties), round(allot.amount)
    # one price for both gradients of a sample: theta's and W's share it
    weights = (1 - settings.adversary_share, settings.adversary_share) * models
    tail = max(1, round(steps * settings.tail))
    counts = CellCounts(task, allot.rate, np.zeros((models, 1)))
    pace = task.descent
    descents = [Descent(task.region, pace.rate, pace.momentum, steps, tail, start) for start in task.start(models, rng)]
    # sizes that nobody published are counted in the first steps, at their price
    wait = max(1, round(settings.warm_up * steps)) if task.counts else 0
    adversary, spread = None, 0.0
    # Algorithm 1, lines 3 to 7: one sample a step for both gradients
    for step in range(steps):
        fair = step >= wait and settings.weight > 0
        if fair and adversary is None:
            # W needs p(s), so that it starts once the groups are counted
            adversary = Adversary.start(task, np.array(penalties, np.float64), counts)
        theta = np.array([descent.theta for descent in descents])
        slopes = None if adversary is None else adversary.slopes
        if rows is not None:
            answer: Sequence[NoisySum | ExpectedSum] = yield from rows.step(theta, slopes, allot, weights)
            paired = True
        else:
            query = task.counting(theta) if step < wait else task.query(theta, slopes)
            answer = yield from total(
                query, noise=allot.noise, rate=allot.rate, weights=weights if query.by else (1.0,) * models
            )
            paired = bool(query.by)
        gradients = answer[:: 2 if paired else 1]
        if step < wait:
            counts.add(answer[1::2])
        elif adversary is not None:
            adversary.step(answer[1::2])
        batch = counts.batch
        # line 5: the noisy sum over the expected, not the realised, batch size
        for descent, one, records in zip(descents, gradients, batch, strict=True):
            descent.step((one.values / records).reshape(task.shape))
        spread = gradients[0].sigma / float(batch[0])
    theta = np.array([descent.result for descent in descents])
    return FermiResult(theta, spread, None if adversary is None else adversary.shares[0])


@dataclass
class CellCounts:
    """Number of records of each cell in a step: as published, or from the noisy sums of the first steps."""

    task: FermiProblem
    rate: float
    seen: Floats
    """Noisy counts of all steps so far, added up: one line a model, one column a cell of the query."""
    variance: float = 0.0
    """Variance of the noise in each entry of `seen`."""
    steps: int = 0

    def add(self, answers: Sequence[NoisySum | ExpectedSum]) -> None:
        """Add a step's noisy sums of class probabilities by cell: added up over classes, they count records.

        `answers` has one for each model, `NoisySum` or `ExpectedSum`.
        """
        classes = self.task.classes
        self.seen = self.seen + np.array([one.values.reshape(-1, classes).sum(axis=1) for one in answers])
        self.variance += answers[0].sigma ** 2 * classes
        self.steps += 1

    @property
    def batch(self) -> Floats:
        """Expected records in a step, an array of one entry a model: as declared, or noisy and at least their noise."""
        models, cells = self.seen.shape
        if self.task.records is not None:
            return np.full(models, self.task.records * self.rate)
        noise = math.sqrt(self.variance * cells)
        found: Floats = np.maximum(self.seen.sum(axis=1), noise) / self.steps
        return found

    @property
    def sizes(self) -> Floats:
        """Array of sizes, of any unit and at least their noise, by model, true class (one for parity) and group."""
        task, models = self.task, len(self.seen)
        if task.sizes is not None:
            return np.broadcast_to(task.sizes, (models, task.true_classes, task.groups))
        # a size below its noise is set to the noise, as p(s) stands in denominators
        found = np.maximum(self.seen, math.sqrt(self.variance)).reshape(models, task.groups, task.true_classes)
        return np.moveaxis(found, 1, 2)

    @property
    def records(self) -> Floats:
        """Array of the expected records of each cell in a step, by model, true class (one for parity) and group."""
        sizes = self.sizes
        found: Floats = self.batch[:, None, None] * sizes / sizes.sum(axis=(-2, -1), keepdims=True)
        return found


@dataclass
class Adversary:
    """Each model's W, by which the mean of psi estimates ERMI of its predictions and the group."""

    task: FermiProblem
    penalties: Floats
    w: Floats
    """Matrices W. Axes: model, true class (one for parity), group, predicted class."""
    shares: Floats
    """Shares p(s), or p(s | y) for odds. Axes: model, true class, group."""
    each: Floats
    """Expected records of each true class in a step. Axes: model, true class."""

    @classmethod
    def start(cls, task: FermiProblem, penalties: Floats, counts: CellCounts) -> Adversary:
        """Return the `Adversary` of a `FermiProblem`; its matrices W are best for predictions independent of the group.

        `penalties` is an array, one weight a model; `counts`, a `CellCounts`, knows the number of records of each cell.
        """
        records = counts.records
        each = records.sum(axis=-1)
        shares = records / each[..., None]
        return cls(task, penalties, ermi.independent(shares, task.classes), shares, each)

    @property
    def weights(self) -> Floats:
        """Array of the weight of a row's penalty, by model and true class, axes as in W; 1 for parity.

        With weight 1 for every row, as in the paper, a true class counts by its share of the records.
        """
        if self.task.settings.odds_weights == "shares":
            return np.ones((*self.each.shape, 1, 1))
        # every true class counts equally: rows of a rare one weigh more
        found: Floats = self.each.mean(axis=1, keepdims=True) / self.each
        return found[..., None, None]

    @property
    def slopes(self) -> Floats:
        """Array of the penalties' derivatives by predicted probability: model x columns of `by` x predicted class."""
        whole = self.penalties[:, None, None, None] * self.weights
        found = np.moveaxis(whole * ermi.slopes(self.w, self.shares), 1, 2)
        shape = (len(found), *self.task.schema.shape(self.task.by), self.task.classes)
        return np.ascontiguousarray(found).reshape(shape)

    def step(self, answers: Sequence[NoisySum | ExpectedSum]) -> None:
        """Move the matrices W up the gradient by noisy sums of class probabilities by cell, and project them.

        `answers` has one for each model, `NoisySum` or `ExpectedSum`.
        """
        task = self.task
        sums = np.array([one.values for one in answers]).reshape(
            len(self.w), task.groups, task.true_classes, task.classes
        )
        # line 6, without lambda, which would only rescale the step
        uphill = ermi.ascent(self.w, self.shares, np.moveaxis(sums, 1, 2)) / self.each[..., None, None]
        self.w = ermi.into_ball(self.w + task.settings.ascent * uphill, task.adversary_radius)
