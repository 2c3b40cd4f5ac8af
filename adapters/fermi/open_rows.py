"""Steps of `protect = "sensitive"`: features and target are public rows, and only the group is asked about.

    gradient of [loss + lambda psi]  =  gradient of a row of unknown group, over public rows
                                        + the group's addition to it, a noisy sum over a secret Poisson sample

Both parts estimate their means over all rows. The first is post-processing of public columns, over a sample of its own
or over all rows, and needs no noise; it is never taken over the secret sample, whose records it would show (the reason
is in `stratsynth.questions.sums.attribute`). The second is the one question of a step, and is priced as a record
exchanged. The sums that W learns from, and the groups' sizes, are split likewise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.predictors.descent import largest_norm
from stratsynth.adapters.predictors.designed import softmax
from stratsynth.questions import AttributeGradients, NoisySum, Program, public_rows, total
from stratsynth.questions.sums.design import features
from stratsynth.schema.rows import CodedRows

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment
    from stratsynth.adapters.fermi.task import FermiProblem

    Floats = NDArray[np.float64]

LEAST_CLIP = 1e-9
"""Clip for a group's addition to a gradient where there is none, as at independence."""
COUNTING = 1e-4
"""Share of a step's price for the gradient while groups are counted, when the group adds nothing to it."""


@dataclass(frozen=True)
class ExpectedSum:
    """Array of sums over a sample of expected size, part of it public, with its noise: stands for a `NoisySum`."""

    values: Floats
    sigma: float
    """Noise scale of each value."""


@dataclass(frozen=True, eq=False)
class OpenRows:
    """Public columns of all rows, from which steps compute their public part."""

    task: FermiProblem
    rows: CodedRows
    rng: Generator
    """Source of the public samples: post-processing."""
    rate: float

    @classmethod
    def ask(cls, task: FermiProblem, rate: float, rng: Generator) -> Program[OpenRows]:
        """Program that asks for features and target of a `FermiProblem`'s rows, all public; returns an `OpenRows`.

        It keeps a step's `rate` and `rng`.
        """
        found = yield from public_rows(task.open_columns)
        return cls(task, CodedRows(task.schema, found.codes, found.numbers, found.size), rng, rate)

    @property
    def expected(self) -> float:
        """Expected number of rows in a secret sample: the rate times all rows, at least 1 row."""
        return max(self.rows.size, 1) * self.rate

    def step(
        self, theta: Floats, slopes: Floats | None, allot: Allotment, weights: tuple[float, ...]
    ) -> Program[list[ExpectedSum]]:
        """Program that asks a step's question; returns a list, two `ExpectedSum`s a model.

        These are its gradient, then its sums of class probabilities by cell.

        Args:
            theta: Array of the coefficients, one entry a model.
            slopes: Slopes of the penalty, shaped as in the task's query; None while groups are counted.
            allot: The allotment, with the noise and the rate of every step.
            weights: Shares of the step's price.
        """
        task, models = self.task, len(theta)
        if slopes is None:
            slopes = np.zeros((models, *task.schema.shape(task.by), task.classes))
            weights = (COUNTING, 1 - COUNTING) * models
        # the gradient is split in two: a mean over groups, which is public, and each row's difference from it
        by_group = slopes.reshape(models, task.groups, task.true_classes, task.classes)
        query = AttributeGradients(
            task.design,
            task.target,
            task.link,
            theta,
            self._clip(by_group),
            tuple(task.settings.groups),
            task.by[len(task.settings.groups) :],
            slopes,
        )
        answer: tuple[NoisySum, ...] = yield from total(query, noise=allot.noise, rate=self.rate, weights=weights)
        gradients, sums = self._public(theta, by_group.mean(axis=1))
        found = []
        for model in range(models):
            mine, theirs = answer[2 * model], answer[2 * model + 1]
            secret = theirs.values.reshape(task.groups, task.true_classes, task.classes)
            secret = secret - secret.mean(axis=0)  # without noise these add up to 0 over groups
            found.append(ExpectedSum(gradients[model].ravel() + mine.values, mine.sigma))
            found.append(ExpectedSum((sums[model] / task.groups + secret).ravel(), theirs.sigma))
        return found

    def _clip(self, slopes: Floats) -> float:
        """Return the setting's clip, or a bound on every row's addition at these slopes (of `step`) if that is smaller.

        With d the slopes less their mean over groups, and r the largest of d less the smallest, at one group and true
        class, the derivatives by the logits have a length of at most r / 2, and for two classes in one logit r / 4: a
        sum of p_j^2 (d_j - mean)^2 is at most the variance of d under p.
        """
        steep = slopes - slopes.mean(axis=1, keepdims=True)
        spread = float((steep.max(axis=-1) - steep.min(axis=-1)).max())
        most = spread * (0.25 if self.task.link == "logistic" else 0.5) * largest_norm(self.task.design)
        return min(self.task.descent.clip, max(most * (1 + 1e-3), LEAST_CLIP))

    def _public(self, theta: Floats, slopes: Floats) -> tuple[Floats, Floats]:
        """Return two arrays of sampled rows of unknown group: models' gradients, and sums of class probabilities.

        The gradients are shaped as `theta`, the sums are model x true class x class.

        Args:
            theta: Array of the coefficients, an entry a model.
            slopes: The mean over groups. Axes: model, true class (one for parity), class.
        """
        task, size = self.task, self.rows.size
        if size == 0:
            return np.zeros_like(theta), np.zeros((len(theta), task.true_classes, task.classes))
        # a sample of public rows costs nothing: it only saves time
        batch = round(size * self.rate)
        drawn = slice(0, size) if batch >= size else self.rng.integers(size, size=max(batch, 1))
        part = self.rows.take(drawn)
        x, levels = features(task.design, part).T, part.codes[task.target].astype(np.intp)
        at = levels if task.true_classes > 1 else np.zeros(len(x), np.intp)
        if task.link == "logistic":
            logits = x @ theta.T
            logits = np.stack([np.zeros_like(logits), logits], axis=-1)
        else:
            logits = np.einsum("np,mpk->nmk", x, theta)
        chances = softmax(logits.reshape(-1, task.classes)).reshape(logits.shape)
        steep = np.moveaxis(slopes, 0, 1)[at]
        # derivative of loss + slopes . F by the logits: softmax Jacobian, less the one-hot label
        residuals = chances * (1 + steep - (chances * steep).sum(axis=-1, keepdims=True))
        residuals[np.arange(len(x)), :, levels] -= 1
        if task.link == "logistic":
            gradients = (residuals[:, :, 1].T @ x) / len(x) * self.expected
        else:
            gradients = np.einsum("nmk,np->mpk", residuals, x) / len(x) * self.expected
        return gradients, self._sums(chances, at)

    def _sums(self, chances: Floats, at: NDArray[np.intp]) -> Floats:
        """Return an array model x true class x class: mean class probabilities by true class, times its expected rows.

        `chances` is an array of probabilities, row x model x class, `at` one of the rows' true classes. A class without
        rows gets even ones.
        """
        task = self.task
        # a class that the sample lacks gets even probabilities
        means = np.full((task.true_classes, *chances.shape[1:]), 1 / task.classes)
        for level in np.unique(at):
            means[level] = chances[at == level].mean(axis=0)
        everybody = self.rows.codes[task.target]
        counts = np.bincount(everybody, minlength=task.classes) if task.true_classes > 1 else np.array([self.rows.size])
        found: Floats = np.moveaxis(means * (counts * self.rate)[:, None, None], 1, 0)
        return found
