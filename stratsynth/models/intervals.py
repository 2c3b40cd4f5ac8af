"""Intervals of shares and of estimates with Gaussian and Laplace errors; errors of weighted means of groups.

An error's distribution is summarised by its variance and fourth cumulant, which both add up over independent errors (0
for a normal law, 3 v^2 for a Laplace law of variance v; scaled by w^4 under a weight w). Quantiles are those of the sum
of one normal and one Laplace variable with these two numbers: exact if the error is such a sum, and close for any
number of Laplace errors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.checks import number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

NORMAL_95 = 1.959963984540054
"""Half width of the central 95 % interval of a normal law, in standard deviations."""


def wilson(part: ArrayLike, whole: ArrayLike) -> tuple[Floats, Floats]:
    """Return arrays (lower, upper): ends of Wilson's 95 % interval for shares part / whole; NaN where `whole` is 0."""
    part, whole = np.asarray(part, dtype=float), np.asarray(whole, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        share, square = np.where(whole > 0, part / whole, np.nan), NORMAL_95**2 / whole
        middle = (share + square / 2) / (1 + square)
        half = NORMAL_95 / (1 + square) * np.sqrt(share * (1 - share) / whole + square / (4 * whole))
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def effective(weights: ArrayLike) -> Floats:
    """Return the array `weights` scaled to add up to the effective number of rows (Kish), (sum w)^2 / sum w^2.

    All are 0 if they were. The sampling variance of a weighted share or mean is then that of as many rows of weight 1.
    """
    given = np.asarray(weights, dtype=float)
    total, squares = float(given.sum()), float((given**2).sum())
    found: Floats = given * (total / squares if squares else 0.0)
    return found


def half_width(variance: float, fourth: float, level: float) -> float:
    """Return the half width of the interval around 0 that an error is in with probability `level`.

    The error is a normal plus a Laplace variable, of this variance and fourth cumulant; infinite if the variance is.
    """
    from scipy.optimize import brentq

    number("the level of an interval", level, above=0, below=1, hint="; 0.95 is usual")
    if not math.isfinite(variance):
        return math.inf
    if variance <= 0:
        return 0.0
    # variance of the Laplace part over the whole variance: fourth = 3 v_L^2
    laplace = math.sqrt(min(max(fourth / variance / variance, 0.0), 3.0) / 3.0)
    scale, normal = math.sqrt(laplace / 2), math.sqrt(1 - laplace)
    beyond = (1 - level) / 2
    most = 2 + 12 / min(1.0, beyond) ** 0.25 - math.log(beyond)  # above the quantile of every such sum
    found = brentq(lambda x: _above(x, normal, scale) - beyond, 0.0, most, xtol=1e-12)
    return float(found) * math.sqrt(variance)


def _above(x: float, normal: float, scale: float) -> float:
    """Return P(N + L > x), x >= 0, of N normal with deviation `normal` and L Laplace of scale `scale`."""
    from scipy.special import log_ndtr, ndtr

    if normal < 1e-9:
        return 0.5 * math.exp(-x / scale)
    if scale < 1e-3:  # negligible Laplace part, for which the terms below would cancel
        return float(ndtr(-x / normal))
    shift, half = normal / scale, normal**2 / (2 * scale**2)
    left = math.exp(half + x / scale + log_ndtr(-x / normal - shift))
    right = math.exp(half - x / scale + log_ndtr(x / normal - shift))
    return float(ndtr(-x / normal)) - 0.5 * left + 0.5 * right


def weighted_variance(means: ArrayLike, variances: ArrayLike, shares: ArrayLike, covariance: ArrayLike) -> float:
    """Return the variance, a number, of sum W_g M_g: group means M, and independent shares W of covariance C.

    Arrays by group are `means` m, `variances` of M and `shares` w; `covariance` is the matrix C. Exact if the M_g are
    independent of one another, m and w being the expectations of M and W:

        sum w_g^2 Var(M_g)  +  m' C m  +  sum C_gg Var(M_g)

    With exact public shares C is 0 and only the first term is left. Estimated m, w and C give an estimate.
    """
    m, v, w, c = (np.asarray(x, dtype=float) for x in (means, variances, shares, covariance))
    return float((w**2 * v).sum() + m @ c @ m + (np.diag(c) * v).sum())


def sampled_shares_covariance(shares: ArrayLike, n: float) -> Floats:
    """Return the covariance matrix of the array `shares`, w, counted in a sample of n people: (diag(w) - w w') / n."""
    w = np.asarray(shares, dtype=float)
    found: Floats = (np.diag(w) - np.outer(w, w)) / n
    return found


def noisy_shares_covariance(counts: ArrayLike, sigmas: ArrayLike) -> Floats:
    """Return the covariance matrix of shares c_g / sum c of the array of `counts` c, to first order in their noise.

    The noise is independent, of standard deviations `sigmas`, an array or one for all. With N = sum c and
    J = (I - w 1') / N, the derivative of the shares w by the counts, it is J diag(sigma^2) J'.
    """
    c, sigma = np.asarray(counts, dtype=float), np.broadcast_to(np.asarray(sigmas, dtype=float), np.shape(counts))
    total = c.sum()
    jacobian = (np.eye(len(c)) - (c / total)[:, None]) / total
    found: Floats = jacobian @ np.diag(sigma**2) @ jacobian.T
    return found
