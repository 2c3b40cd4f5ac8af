"""What theory says of stratified private means: the bounds of Rosenblatt, Stoyanovich and Musco (AAAI 2024), corrected.

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
"""Its groups by RAC1P, counted where SCHL is known. The last two have 74 together; how they share them is not said."""


def worst_log_sizes(n: float, k: int) -> float:
    """The largest sum of log |G_i|: k log(n / k), all groups equal."""
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
    """The same for whole people: E sum log max(1, round(n g_i)), exactly, by the Beta law of a share."""
    from scipy.special import betainc

    _check(n, k, alpha)
    sizes = np.arange(1, n + 1)
    below = betainc(alpha, (k - 1) * alpha, np.minimum((sizes + 0.5) / n, 1.0))  # P(the size is at most this)
    return float(k * (np.diff(below) * np.log(sizes[1:])).sum())


def log_sizes(sizes: Sequence[float]) -> float:
    """The sum of log |G_i| of given groups; an empty group counts as one person, as in the paper's extreme case."""
    return float(np.log(np.maximum(_sizes(sizes), 1)).sum())


def laplace_deviation(
    sizes: Sequence[float], radius: float, epsilon: float, gamma: float, *, sensitivity: float = 2
) -> float:
    """The standard deviation of the noise in the stratified clipped mean, eq. (2) and (3), exactly.

    Each group's noise is Laplace of scale sensitivity (R + sqrt(log(|G_i| / gamma))) / (|G_i| epsilon); weighted
    by |G_i| / n the sizes cancel. `sensitivity` is 2 where a record is exchanged, as printed, and 1 where one is
    added or removed. With one group this is the noise of the plain mean, eq. (1).
    """
    groups = _sizes(sizes)
    groups = groups[groups > 0]
    _check_bound(radius, epsilon, gamma)
    reach = radius + np.sqrt(np.log(groups / gamma))
    return float(math.sqrt(2) * sensitivity * np.linalg.norm(reach) / (groups.sum() * epsilon))


def stratified_bound(n: float, k: int, radius: float, epsilon: float, gamma: float) -> float:
    """Proposition 8, eq. (4), without its constant: log(1/gamma) sqrt(k) (R + sqrt(log(n / (k gamma)))) / (n epsilon).

    sqrt(k) multiplies R as well, and that part is there however uneven the groups are.
    """
    _check(n, k)
    _check_bound(radius, epsilon, gamma)
    return math.log(1 / gamma) * math.sqrt(k) * (radius + math.sqrt(math.log(n / (k * gamma)))) / (n * epsilon)


def pooled_bound(n: float, radius: float, epsilon: float, gamma: float) -> float:
    """Eq. (1), without its constant: Proposition 8 with one group."""
    return stratified_bound(n, 1, radius, epsilon, gamma)


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


def alpha_by_likelihood(sizes: Sequence[float]) -> float:
    """The symmetric Dirichlet parameter that makes these shares likeliest; every group needs people.

    It solves psi(k alpha) - psi(alpha) + mean log g_i = 0, whose left side falls with alpha.
    """
    from scipy.optimize import brentq
    from scipy.special import digamma

    shares = _shares(sizes)
    if shares.min() <= 0:
        raise UsageError("theory: an empty group has no likelihood; leave it out, or fit by moments.")
    logs, k = float(np.log(shares).mean()), len(shares)
    if logs > math.log(1 / k) - 1e-12:
        raise UsageError("theory: equal shares fit no Dirichlet parameter; alpha is infinite.")
    # the solution is searched for on the scale of log alpha
    at = brentq(lambda t: digamma(k * math.exp(t)) - digamma(math.exp(t)) + logs, -30.0, 30.0, xtol=1e-13)
    return math.exp(at)


@dataclass(frozen=True)
class Savings:
    """How much of the way from the worst to the best case sparse groups save, read in three ways.

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


def _check_bound(radius: float, epsilon: float, gamma: float) -> None:
    if not (radius >= 0 and epsilon > 0 and 0 < gamma < 1):
        raise UsageError("theory: radius must be at least 0, epsilon above 0, and gamma between 0 and 1.")
