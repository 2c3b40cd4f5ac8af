"""Predictions corrected after the fit, by group: Hardt, Price and Srebro (2016) on noisy counts.

A derived predictor predicts the second class with a probability that depends on the group and on the classifier's
prediction. Among those whose rates differ between groups by at most a tolerance, the one of least error is a linear
program in the counts of group, prediction and truth. These counts are charged: discrete Laplace noise at a part of
epsilon, one record in one cell. It needs the sensitive attribute at prediction, which FERMI does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PART = 0.1
"""Fraction of epsilon for the counts; the classifier has the rest."""


def noisy_counts(
    said: NDArray[np.intp], truth: NDArray[np.intp], group: NDArray[np.intp], epsilon: float, rng: np.random.Generator
) -> Floats:
    """Array of counts with axes group, prediction, truth, of rows, with noise by `rng` for this epsilon.

    `said` (predictions), `truth` and `group` are arrays of level numbers, one a row. No noise if epsilon is infinite;
    each count is at least 0.5.
    """
    counts = np.zeros((group.max() + 1, 2, 2))
    np.add.at(counts, (group, said, truth), 1.0)
    if np.isfinite(epsilon):
        # difference of two geometric numbers: discrete Laplace noise of scale 1 / epsilon, for sensitivity 1
        p = 1 - np.exp(-epsilon)
        counts += rng.geometric(p, counts.shape) - rng.geometric(p, counts.shape)
    return np.maximum(counts, 0.5)


def derived(counts: Floats, criterion: Literal["parity", "odds"], tolerance: float) -> Floats:
    """Array (groups, 2) of probabilities to predict the second class, by group and the classifier's prediction.

    Of least error by the array `counts` (group, prediction, truth), among those whose rates by `criterion` differ
    between groups by at most `tolerance`.
    """
    from scipy.optimize import linprog

    groups, whole = len(counts), counts.sum()
    cost = (counts[:, :, 0] - counts[:, :, 1]).ravel() / whole  # false positives gained minus misses avoided
    parts = [counts.sum(axis=2)] if criterion == "parity" else [counts[:, :, y] for y in (0, 1)]
    lines, ends = [], []
    for i, part in enumerate(parts):  # each group's rate is between a common lower end and the tolerance above it
        rates = part / part.sum(axis=1, keepdims=True)
        for g in range(groups):
            line = np.zeros(2 * groups + len(parts))
            line[2 * g : 2 * g + 2], line[2 * groups + i] = rates[g], -1.0
            lines += [line, -line]
            ends += [tolerance, 0.0]
    program = linprog(
        np.concatenate([cost, np.zeros(len(parts))]), A_ub=np.array(lines), b_ub=np.array(ends), bounds=(0.0, 1.0)
    )
    found: Floats = np.clip(program.x[: 2 * groups].reshape(groups, 2), 0.0, 1.0)
    return found


def corrected(
    chances: Floats, said: NDArray[np.intp], group: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Array of random predictions, 0 or 1, one a row, by the array `chances` (groups, 2) of `derived`.

    `said` is the array of the classifier's predictions, `group` that of the groups' numbers; `rng` draws.
    """
    found: NDArray[np.intp] = (rng.random(len(said)) < chances[group, said]).astype(np.intp)
    return found
