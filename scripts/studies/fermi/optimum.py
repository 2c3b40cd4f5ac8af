"""Exact minimiser of loss and penalty, without clip, samples or noise: a lower bound for private fits.

    minimise over theta   mean log loss + lambda * ERMI(F, s)                               for parity
                                        + lambda * sum over y of weight(y) ERMI(F, s | y)   for odds

NOT PRIVATE, and of public rows only. Where it falls short of a wish, such as a violation that shrinks with lambda, the
objective does, and no learning rate, averaging or budget can help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.evaluation.fermi.columns import sized
from stratsynth.questions.sums.design import features

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.models import Predictor
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

CLASSES = 2


@dataclass(frozen=True, eq=False)
class Objective:
    """Loss and penalty of a logistic model on some rows."""

    x: Floats
    """One line a row."""
    y: NDArray[np.intp]
    """The true class, 0 or 1."""
    cell: NDArray[np.intp]
    """The number of true class (0 for parity) and group, groups last."""
    weights: Floats
    """Weight of each true class in the penalty; 1 for parity."""
    groups: int
    penalty: float

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return value and gradient."""
        from scipy.special import expit

        logits, size = self.x @ theta, len(self.y)
        chances = expit(logits)
        loss = float((np.logaddexp(0, logits) - self.y * logits).mean())
        value, steep = self._ermi(chances)
        residuals = chances - self.y + self.penalty * (steep[:, 1] - steep[:, 0])[self.cell] * chances * (1 - chances)
        return loss + self.penalty * value, residuals @ self.x / size

    def _ermi(self, chances: Floats) -> tuple[float, Floats]:
        """ERMI, the weighted sum over true classes; and its derivatives by the sum of F, by cell and class."""
        size = len(self.y)
        count = np.bincount(self.cell, minlength=len(self.weights) * self.groups) / size
        second = np.bincount(self.cell, chances, len(count)) / size
        sums = np.stack([count - second, second], axis=-1).reshape(-1, self.groups, CLASSES)
        group = np.maximum(count.reshape(-1, self.groups, 1), 1e-150)
        said = np.maximum(sums.sum(axis=1, keepdims=True), 1e-150)
        part = (sums**2 / group).sum(axis=1, keepdims=True) / said
        steep = self.weights[:, None, None] * (2 * sums / (group * said) - part / said)
        return float((self.weights * (part.sum(axis=(1, 2)) - 1)).sum()), steep.reshape(-1, CLASSES)


def minimisers(
    train: pd.DataFrame, schema: Schema, penalties: Sequence[float], *, settings: Mapping[str, Any]
) -> list[Predictor]:
    """The best logistic model for each lambda.

    Args:
        train: Public rows.
        schema: Of these rows.
        penalties: Values of lambda, each fit beginning where the one before ended.
        settings: Of `fermi`; `penalty` is replaced.

    Raises:
        UsageError: A target of more than two classes, or a network.
    """
    from scipy.optimize import minimize

    alone = UsageError("the exact minimiser is found for logistic models alone: two classes, and no network.")
    if settings.get("network") is not None:
        raise alone
    task, rows = sized(train, schema, {**settings, "penalty": 1.0})
    if task.link != "logistic":
        raise alone
    x = features(task.design, rows).T
    y = rows.codes[task.target].astype(np.intp)
    codes = [rows.codes[name].astype(np.intp) for name in task.settings.groups]
    group = np.ravel_multi_index(codes, schema.shape(task.settings.groups))
    cell, weights = group, np.ones(1)
    if task.true_classes > 1:
        cell, weights = y * task.groups + group, np.full(CLASSES, 1 / CLASSES)
        if task.settings.odds_weights == "shares":
            weights = np.bincount(y, minlength=CLASSES) / len(y)
    theta, found = np.zeros(x.shape[1]), []
    for penalty in penalties:
        best = minimize(
            Objective(x, y, cell, weights, task.groups, penalty),
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=[(-task.settings.radius, task.settings.radius)] * len(theta),
            options={"maxiter": 1000},
        )
        theta = best.x
        found.append(task.model(theta, {}))
    return found
