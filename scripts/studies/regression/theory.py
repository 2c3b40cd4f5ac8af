"""Lemma 3.1, the loss of a randomised predictor on a mixture of two groups, corrected: NOT PRIVATE.

The paper predicts by beta_1 with probability c and by beta_2 otherwise, and states a loss that is itself random, of
c^2 n_1 C s_1^2 with C a chi-squared variable of one degree of freedom. The squared norm of n_1 residuals is s_1^2 times
a chi-squared variable of n_1 degrees, and a row of a mixture is of one group, not a weighted sum of two rows. Its
expected loss, over rows and choice, is

    n_1 s_1^2 + n_2 s_2^2 + (1 - c) |X_1 (beta_1 - beta_2)|^2 + c |X_2 (beta_1 - beta_2)|^2.

Nor is that predictor the best that does not know the group: the loss is convex, so that the fixed coefficients
c beta_1 + (1 - c) beta_2 lose less on every row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def randomised_loss(
    x: tuple[Floats, Floats], betas: tuple[Floats, Floats], spreads: tuple[float, float], c: float
) -> float:
    """Return the expected sum of squared errors of beta_1 with probability c, and beta_2 otherwise.

    `x` are the two groups' rows, `spreads` the deviations of their residuals.
    """
    apart = betas[0] - betas[1]
    return _noise(x, spreads) + (1 - c) * float(((x[0] @ apart) ** 2).sum()) + c * float(((x[1] @ apart) ** 2).sum())


def fixed_loss(
    x: tuple[Floats, Floats], betas: tuple[Floats, Floats], spreads: tuple[float, float], beta: Floats
) -> float:
    """Return the expected sum of squared errors of the coefficients `beta`."""
    missed = sum(float(((rows @ (own - beta)) ** 2).sum()) for rows, own in zip(x, betas, strict=True))
    return _noise(x, spreads) + missed


def _noise(x: tuple[Floats, Floats], spreads: tuple[float, float]) -> float:
    return sum(len(rows) * spread**2 for rows, spread in zip(x, spreads, strict=True))
