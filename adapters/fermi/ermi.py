"""The exponential Renyi mutual information of predictions and a sensitive attribute, as a maximum over matrices.

    ERMI = sum over j, r of p(j, r)^2 / (p(j) p(r)) - 1  =  max over W of the mean of psi
    psi(W; F, s) = - sum over j of |W_j|^2 F_j + 2 sum over j of W_sj F_j / sqrt(p(s)) - 1

F is the vector of a row's predicted probabilities, j a class; s is its level of the sensitive attribute, r any; W_j is
the column of W for class j. At W_rj = p(j, r) / (p(j) sqrt(p(r))) the mean of psi over rows is ERMI. psi is linear in
F, and its mean depends on rows through A_rj alone, the sum of F_j over the rows of level r. (Paper 004, Theorem 3.1 and
Corollary 3.2, for a published group distribution p(s): the authors' code takes it from the rows.)

For equalized odds there is a matrix for each true class, and p(s) is the distribution among its rows (appendix B).
Arrays have the axes true class (one, for parity), level, and predicted class, after any others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def ermi(joint: Floats) -> float:
    """Return ERMI, a number from 0, of `joint`, an array levels x classes of joint probabilities or counts.

    0 if they are independent. Cells of a class or level of probability 0 are left out.
    """
    joint = joint / joint.sum()
    expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    here = expected > 0
    return float((joint[here] ** 2 / expected[here]).sum() - 1)


def slopes(w: Floats, shares: Floats) -> Floats:
    """Return an array, psi's derivative by each class probability, shaped as W: -|W_j|^2 + 2 W_sj / sqrt(p(s)).

    Args:
        w: Array of the matrices W: ... x levels of the attribute x predicted classes.
        shares: Array of the probability p(s) of each level; no axis of classes.
    """
    found: Floats = 2 * w / np.sqrt(shares)[..., None] - (w * w).sum(axis=-2, keepdims=True)
    return found


def ascent(w: Floats, shares: Floats, sums: Floats) -> Floats:
    """Return the gradient by W of the sum of psi, shaped as W: 2 (A_rj / sqrt(p(r)) - W_rj sum over r of A_rj).

    Args:
        w: Array of the matrices W: ... x levels of the attribute x predicted classes.
        shares: Array of the probability p(r) of each level; no axis of classes.
        sums: A, the sums of predicted class probabilities over the rows of each level, shaped as W.
    """
    found: Floats = 2 * (sums / np.sqrt(shares)[..., None] - w * sums.sum(axis=-2, keepdims=True))
    return found


def value(w: Floats, shares: Floats, sums: Floats) -> Floats:
    """Return an array, for each matrix of `w` the sum of psi over rows: its mean is ERMI at the best W, else less.

    `shares` are the levels' probabilities, `sums` predicted class probabilities added up by level, shaped as `w`.
    """
    found: Floats = (slopes(w, shares) * sums).sum(axis=(-2, -1)) - sums.sum(axis=(-2, -1))
    return found


def best(sums: Floats, shares: Floats) -> Floats:
    """Return the array, shaped as `sums`, of the matrices at which the mean of psi is ERMI.

    It is 0 for a class that is never predicted. `sums` is an array, predicted class probabilities added up by level,
    ... x levels x classes; `shares` one of the levels' probabilities.
    """
    predicted = sums.sum(axis=-2, keepdims=True)
    scaled: Floats = sums / np.sqrt(shares)[..., None]
    found: Floats = np.divide(scaled, predicted, out=np.zeros_like(scaled), where=predicted > 0)
    return found


def independent(shares: Floats, classes: int) -> Floats:
    """Return an array, the best W, levels x `classes`, if predictions are independent of the attribute.

    It holds the roots of the array `shares`, the levels' probabilities; `classes` is a number.
    """
    return np.repeat(np.sqrt(shares)[..., None], classes, axis=-1)


def into_ball(w: Floats, radius: float) -> Floats:
    """Return each matrix of `w`, on the last two axes, scaled to a Frobenius norm of at most `radius`."""
    length = np.sqrt((w * w).sum(axis=(-2, -1), keepdims=True))
    found: Floats = w * np.minimum(1.0, radius / np.maximum(length, 1e-300))
    return found
