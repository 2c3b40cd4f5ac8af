"""Zero-concentrated DP to (epsilon, delta), by the optimal conversion of Canonne, Kamath and Steinke (2020).

rho-zCDP bounds the Renyi divergence of order a by rho * a for every a > 1; Proposition 12 of that paper turns
each order into an (epsilon, delta) statement, and the best order gives

    epsilon(rho, delta) = min over a > 1 of  rho * a + (log(1/delta) + (a-1) log(1 - 1/a) - log a) / (a-1).

Every order is valid, so a minimiser that stops early only overstates epsilon. Nothing is added to guard against
the last bit of floating point; `rho_of` keeps a relative 1e-12 below the exact answer instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

_GOLDEN = (math.sqrt(5) - 1) / 2
_SLACK = 1e-12
"""Relative distance of `rho_of` below the exact rho: more than the conversion's rounding, less than any digit shown."""


@lru_cache(maxsize=1024, typed=True)  # strata of a fit cost the same, most of them
def epsilon_of(rho: float, delta: float) -> float:
    """Return the least epsilon found such that rho-zCDP implies (epsilon, delta)-DP, an upper bound; 0 for rho 0."""
    if rho == 0:
        return 0.0

    def at(t: float) -> float:  # the bound at order a = 1 + exp(t), unimodal in t
        a = 1 + math.exp(t)
        return rho * a + (math.log(1 / delta) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1)

    # The best order is about 1 + sqrt(log(1/delta) / rho): search eight e-folds either side of it.
    centre = 0.5 * math.log(math.log(1 / delta) / rho)
    # Golden section over t.
    low, high = centre - 8, centre + 8
    while high - low > 1e-9:
        a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, b) if at(a) < at(b) else (a, high)
    return max(0.0, at((low + high) / 2))


@lru_cache(maxsize=1024, typed=True)  # every stratum of a fit asks for the same budget
def rho_of(epsilon: float, delta: float, convert: Callable[[float, float], float] = epsilon_of) -> float:
    """Return the largest rho whose conversion, by `convert`, is at most epsilon at delta, a relative 1e-12 below it."""
    low, high = 0.0, epsilon
    while convert(high, delta) <= epsilon:  # rho <= epsilon holds for small delta only
        high *= 2
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if convert(middle, delta) <= epsilon else (low, middle)
    return low * (1 - _SLACK)
