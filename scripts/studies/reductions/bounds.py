"""Sample sizes and numbers of steps of paper 002 with their constants, and its lower bounds beside what reaches them.

Upper bounds, for K losses that one record moves by 1 / n each, f and g 1-Lipschitz, and probability 9 / 10:

    G     (alpha + sqrt(K)) / alpha                                                     Corollary 4.2
    n_0   8 sqrt(K) (1 + G) ((P + 1) log 3 + log 10) / (epsilon alpha)                  Theorem 5.2 by Corollary 5.3
          2 sqrt(K) (1 + G) (log M + log 10) / (epsilon alpha), among M candidates      Theorem 3.6
    n_0   8 sqrt(K) ((P + 1) log 3 + log(1 / theta)) / (epsilon tau)                    Theorem 5.10
    T     36 (1 + K) K^2 (1 + G)^2 (3 + alpha)^2 / alpha^2                              Theorem 5.5
    n_0   that of 5.10 at tau = alpha / 6K(1 + G), theta = 1 / 10T and the epsilon of one of T steps   Corollary 5.11

The paper says T = O(K^4 / alpha^2) and n_0 = O(K^4 P / epsilon alpha^3). With G = O(sqrt(K) / alpha) in it, T is of
order K^4 / alpha^4 and n_0 of order K^4 P / (epsilon alpha^4): a factor 1 / alpha is lost between proof and statement.

Lower bounds (Theorems 6.1 and 6.2), of order K / (epsilon n), and sqrt(K) / (epsilon n) with delta: without constants.
Their problem is solved here, a mean direction of vectors whose sum has the length K / epsilon, or sqrt(K) / epsilon, by
noise on the sum: what it misses, in units of the order, is a constant in n, epsilon and K. NOT PRIVATE.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from stratsynth.accounting.zcdp import rho_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DELTA = 1e-6
MISSED = 0.1
"""Probability with which an upper bound may fail."""


def multiplier(alpha: float, losses: int) -> float:
    """Return G, the slope of the penalty at which h within alpha of its least is f and g within alpha of theirs."""
    return (alpha + math.sqrt(losses)) / alpha


def sampling_size(epsilon: float, alpha: float, losses: int, features: int) -> float:
    """Return n_0 of Theorem 5.2, for convex losses of a convex set of `features` dimensions."""
    steep = 1 + multiplier(alpha, losses)
    return 8 * math.sqrt(losses) * steep * ((features + 1) * math.log(3) - math.log(MISSED)) / (epsilon * alpha)


def candidates_size(epsilon: float, alpha: float, losses: int, candidates: int) -> float:
    """Return n_0 of Theorem 5.2 among a finite number of candidates, of any losses."""
    steep = 1 + multiplier(alpha, losses)
    return 2 * math.sqrt(losses) * steep * (math.log(candidates) - math.log(MISSED)) / (epsilon * alpha)


def oracle_size(epsilon: float, tau: float, losses: int, features: int, theta: float) -> float:
    """Return n_0 of Theorem 5.10: the oracle is within tau with probability 1 - theta, for convex losses."""
    return 8 * math.sqrt(losses) * ((features + 1) * math.log(3) - math.log(theta)) / (epsilon * tau)


def steps_needed(alpha: float, losses: int) -> float:
    """Return T of Theorem 5.5, as its proof has it."""
    steep = 1 + multiplier(alpha, losses)
    return 36 * (1 + losses) * losses**2 * steep**2 * (3 + alpha) ** 2 / alpha**2


def linear_size(epsilon: float, delta: float, alpha: float, losses: int, features: int, *, zcdp: bool = False) -> float:
    """Return n_0 of Corollary 5.11, its steps by the paper's composition, or by zCDP: then epsilon'^2 T / 8 = rho."""
    steps, tau = steps_needed(alpha, losses), alpha / (6 * losses * (1 + multiplier(alpha, losses)))
    each = (
        math.sqrt(8 * rho_of(epsilon, delta) / steps)
        if zcdp
        else epsilon / (2 * math.sqrt(2 * steps * -math.log(delta)))
    )
    return oracle_size(each, tau, losses, features, MISSED / steps)


def sizes(alphas: Sequence[float], losses: int, features: int, epsilon: float, delta: float) -> pd.DataFrame:
    """Return T and all n_0 by alpha."""
    return pd.DataFrame(
        [
            {
                "alpha": alpha,
                "T": steps_needed(alpha, losses),
                "n_0 by sampling": sampling_size(epsilon, alpha, losses, features),
                "n_0 by oracles": linear_size(epsilon, delta, alpha, losses, features),
                "n_0 by oracles, zCDP": linear_size(epsilon, delta, alpha, losses, features, zcdp=True),
            }
            for alpha in alphas
        ]
    )


def missed(direction: Floats, total: Floats, n: int) -> float:
    """Return f(c) - f(c*) of the lower bounds' problem, |sum| |c - c*|^2 / 2n (Lemma 6.4), c of length 1."""
    length = float(np.linalg.norm(total))
    return length / (2 * n) * float(((direction - total / length) ** 2).sum())


def beside_the_orders(losses: Sequence[int], epsilon: float, delta: float, n: int, runs: int) -> pd.DataFrame:
    """Return the mean of what noise on the sum misses, in units of K / (epsilon n), or of sqrt(K) / (epsilon n)."""
    rng, found = np.random.default_rng(61), []
    sigma = 1 / math.sqrt(2 * rho_of(epsilon, delta))
    for k in losses:
        total = np.zeros(k)
        for name, length, order in (("pure", k / epsilon, k), ("delta", math.sqrt(k) / epsilon, math.sqrt(k))):
            total[0] = length
            misses = []
            for _ in range(runs):
                # pure: density exp(-epsilon |z|), a vector of even direction and a length of law Gamma(K, 1 / epsilon)
                z = rng.normal(size=k)
                z *= rng.gamma(k, 1 / epsilon) / np.linalg.norm(z) if name == "pure" else sigma
                misses.append(missed((total + z) / np.linalg.norm(total + z), total, n))
            found.append(
                {"K": k, "privacy": name, "missed": np.mean(misses), "in orders": np.mean(misses) * epsilon * n / order}
            )
    return pd.DataFrame(found)
