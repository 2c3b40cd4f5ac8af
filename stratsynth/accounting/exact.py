"""Exact price of Gaussian noise, for fits that ask nothing else: rho = mu^2 / 2 of Gaussian DP, with its own curve.

A transcript of Gaussian answers, each of variance s^2 around exact ones that neighbours move by D, adaptive or not,
whose rho = D^2 / (2 s^2) add up to at most mu^2 / 2, tells neighbours apart no better than one draw tells N(0, 1) from
N(mu, 1), which for every epsilon is (epsilon, delta)-DP with

    delta = Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu).

Noise here is discrete, on integers. It is drawn with variance s^2 + r^2, where r^2 = 1 + s / 100: up to a factor
exp(+-2 eta), eta <= 2.01 exp(-2 pi^2 r^2), in each probability, that is continuous noise of variance s^2 and what
follows from it (docs/privacy.md, section 5). At a price of rho at most 2 rho s^2 coordinates move, each by 1 or more,
so that the factors of both tables together are at most exp(SLACK rho), whatever the number of answers.
"""

from __future__ import annotations

import math
from functools import lru_cache

from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.errors import Unsupported

EXACT = "exact"
"""Name of the currency."""
SLACK = 6e-7
"""Epsilon, a unit of rho, that discrete noise may cost beyond the continuous: above 8 s^2 eta for every s."""
LEAST = 4.0
"""Smallest standard deviation of priced noise, in units of the grid: the variance r^2 on top of smaller ones costs
more than the exact curve gains."""
_MARGIN = 1e-12
"""Relative margin above an epsilon, and a tenth of the absolute one: more than the rounding of the search."""
_FAINT = 1e-300
"""Probability below which floats lose digits: taken for 0 where less of it makes delta larger."""


def widened(s: float) -> float:
    """Return the sigma, up, of the discrete noise that is as private as continuous noise of `s`, both in grid units.

    Unsupported if `s` is below LEAST.
    """
    if s < LEAST:
        raise Unsupported(
            f'budget: accounting = "exact" is for noise of a standard deviation of {LEAST:g} or more, not {s:.3g}: so '
            'little costs less in accounting = "zcdp".'
        )
    return math.sqrt(s * s + 1 + s / 100) * (1 + 1e-14)


def narrowed(sigma: float) -> float:
    """Return s, a float: `sigma` is `widened` of it, but for rounding; 0 for a sigma that is too small for any."""
    return max(0.0, math.sqrt(max(0.0, sigma * sigma - 1) + 1 / 40_000) - 1 / 200)


def delta_of(epsilon: float, mu: float) -> float:
    """Return the delta of Gaussian DP with `mu` at `epsilon`, a number in [0, 1]."""
    near = epsilon / mu - mu / 2
    tail, far = (math.erfc(x / math.sqrt(2)) / 2 for x in (near, near + mu))
    return max(0.0, tail - math.exp(epsilon + math.log(far))) if far > _FAINT else tail


@lru_cache(maxsize=1024, typed=True)
def epsilon_exact(rho: float, delta: float) -> float:
    """Return the least epsilon found that `rho` of discrete Gaussian noise implies at `delta`, an upper bound."""
    if rho == 0:
        return 0.0
    mu, below = math.sqrt(2 * rho), delta * math.exp(-SLACK * rho)
    low, high = 0.0, epsilon_of(rho, below) * (1 + 1e-9)
    while high - low > 1e-15 * high and (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if delta_of(middle, mu) > below else (low, middle)
    return high * (1 + _MARGIN) + 10 * _MARGIN + SLACK * rho
