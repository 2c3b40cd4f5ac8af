"""The theory of stratified private means after Rosenblatt, Stoyanovich and Musco (AAAI 2024), corrected.

Adding noise to k group means instead of one costs something. The paper measures it by the sum of log |G_i| over
the groups: largest when all groups are equal, smallest when one group holds nearly everybody. Its slips, put
right here:

- Theorem 9 takes |G_i| = g_i / n; groups have n g_i people. It is then an equality, not a bound.
- It lets groups have fractions of a person, whose logarithm is negative: `expected_log_sizes_whole` does not.
- The saving of "about 80 %, for any setting of R or epsilon" leaves out the term of R, which does not shrink
  with sparsity; and it is one of three readings, `savings`.

Logarithms are natural. `n` is the number of people, `k` of groups, `alpha` the parameter of a symmetric
Dirichlet law of the groups' shares: small alpha, few large groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

NY_2018_PEOPLE = 196_967
"""The people of the paper's example: the American Community Survey of 2018, New York."""
NY_2018 = (134_696, 23_428, 16_594, 10_599, 5_245, 500, 236, 37, 37)
"""Sizes of that example's groups by RAC1P, where SCHL is known. The last two have 74 together; the split is not
published."""


def worst_log_sizes(n: float, k: int) -> float:
    """Return the largest sum of log |G_i|: k log(n / k), all groups equal."""
    _check(n, k)
    return k * math.log(n / k)


def best_log_sizes(n: float, k: int) -> float:
    """The paper's informal lower bound, (k - 1) + log(n - k): one group has all but a few people."""
    _check(n, k)
    return (k - 1) + math.log(n - k)


def expected_log_sizes(n: float, k: int, alpha: float) -> float:
    """Theorem 9, corrected: E sum log(n g_i) = k (psi(alpha) - psi(k alpha) + log n) for Dirichlet shares g.

    An equality, since g_i has a Beta(alpha, (k - 1) alpha) law and E log g_i = psi(alpha) - psi(k alpha).
    """
    from scipy.special import digamma

    _check(n, k, alpha)
    return float(k * (digamma(alpha) - digamma(k * alpha) + math.log(n)))


def expected_log_sizes_whole(n: int, k: int, alpha: float) -> float:
    """Return E sum log max(1, round(n g_i)), for whole people, exactly, by the Beta law of a share."""
    from scipy.special import betainc

    _check(n, k, alpha)
    sizes = np.arange(1, n + 1)
    below = betainc(alpha, (k - 1) * alpha, np.minimum((sizes + 0.5) / n, 1.0))  # P(the size is at most this)
    return float(k * (np.diff(below) * np.log(sizes[1:])).sum())


def by_alpha(n: int, k: int, alphas: Sequence[float]) -> list[dict[str, float]]:
    """Figure 1: Theorem 9's expectation by alpha, for fractions of people and for whole ones, between its two ends."""
    return [
        {
            "alpha": alpha,
            "worst": worst_log_sizes(n, k),
            "expected": expected_log_sizes(n, k, alpha),
            "expected, whole people": expected_log_sizes_whole(n, k, alpha),
            "best": best_log_sizes(n, k),
        }
        for alpha in alphas
    ]


def log_sizes(sizes: Sequence[float]) -> float:
    """The sum of log |G_i| of given groups; an empty group counts as one person, as in the paper's extreme case."""
    return float(np.log(np.maximum(_sizes(sizes), 1)).sum())


def alpha_by_moments(sizes: Sequence[float]) -> float:
    """The symmetric Dirichlet parameter whose E sum g_i^2 = (1 + alpha) / (1 + k alpha) is that of these shares.

    The paper's alpha of about 0.13 is this fit. One vector of shares says little about alpha.
    """
    shares = _shares(sizes)
    second = float((shares**2).sum())
    excess = len(shares) * second - 1
    if excess <= 1e-12:
        raise UsageError("theory: equal shares fit no Dirichlet parameter; alpha is infinite.")
    if second > 1 - 1e-12:
        raise UsageError("theory: one group has everybody; alpha is 0.")
    return (1 - second) / excess


@dataclass(frozen=True)
class Savings:
    """Share of the way from the worst to the best case that sparse groups save, by three readings.

    Each is (worst - x) / (worst - best): 0 for equal groups, 1 for one that has nearly everybody.
    """

    expected: float
    """x is Theorem 9's expectation, fractions of people included: what the paper calls "about 80 %"."""
    actual: float
    """x is the groups' own sum of log |G_i|."""
    whole: float
    """x is the expectation for whole people."""


def savings(sizes: Sequence[float], *, n: int | None = None, alpha: float | None = None) -> Savings:
    """The three readings for given groups; `alpha` by moments and `n` as their total, unless given."""
    groups = _sizes(sizes)
    people, k = n if n is not None else int(groups.sum()), len(groups)
    fitted = alpha if alpha is not None else alpha_by_moments(sizes)
    worst, best = worst_log_sizes(people, k), best_log_sizes(people, k)

    def saved(x: float) -> float:
        return (worst - x) / (worst - best)

    return Savings(
        saved(expected_log_sizes(people, k, fitted)),
        saved(log_sizes(sizes)),
        saved(expected_log_sizes_whole(people, k, fitted)),
    )


def _sizes(sizes: Sequence[float]) -> NDArray[np.float64]:
    groups = np.asarray(sizes, dtype=float)
    if groups.ndim != 1 or len(groups) < 1 or not np.isfinite(groups).all() or groups.min() < 0 or groups.sum() <= 0:
        raise UsageError("theory: sizes are a list of numbers of at least 0, not all 0.")
    return groups


def _shares(sizes: Sequence[float]) -> NDArray[np.float64]:
    groups = _sizes(sizes)
    if len(groups) < 2:
        raise UsageError("theory: a Dirichlet law needs at least two groups.")
    shares: NDArray[np.float64] = groups / groups.sum()
    return shares


def _check(n: float, k: int, alpha: float | None = None) -> None:
    if not (k >= 1 and n > k):
        raise UsageError("theory: there must be at least one group, and more people than groups.")
    if alpha is not None and not (alpha > 0 and k >= 2):
        raise UsageError("theory: a Dirichlet law needs alpha above 0 and at least two groups.")
