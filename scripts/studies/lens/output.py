"""INTERNAL. Output perturbation: the best coefficients plus Gaussian noise of the deviation s (Theorem 1 of paper 001).

    R_a = E L(theta + s N(0, I), D_a) - L(theta, D_a)  ~  s^2 / 2 Tr(H_a)      xi_a = |R_a - R|

exactly for quadratic losses. For a loss of Lipschitz constant L with a penalty lambda / 2 |theta|^2, the best
coefficients of n rows move by at most 2 L / (n lambda) when a row is exchanged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator
    from numpy.typing import NDArray

    from studies.lens.losses import Loss
    from studies.lens.people import People

    Floats = NDArray[np.float64]


def spread(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the least sigma of Gaussian noise for a release at (epsilon, delta): Balle and Wang (2018), Theorem 8."""
    from scipy.optimize import brentq
    from scipy.special import log_ndtr

    def excess(log_sigma: float) -> float:
        ratio = sensitivity / math.exp(log_sigma)
        lost = math.exp(log_ndtr(ratio / 2 - epsilon / ratio))
        return lost - math.exp(epsilon + log_ndtr(-ratio / 2 - epsilon / ratio)) - delta

    middle = math.log(sensitivity)
    return math.exp(brentq(excess, middle - 20, middle + 20, xtol=1e-10))


def fitted(loss: Loss, people: People, penalty: float) -> Floats:
    """The coefficients of least mean loss plus penalty / 2 |theta|^2, by Newton steps."""
    theta = np.zeros(loss.size(people.x.shape[1]))
    for _ in range(50):
        local = loss.local(people.x, people.y, theta)
        gradient = local.gradients.mean(axis=0) + penalty * theta
        move = np.linalg.solve(loss.hessian(people.x, local) + (penalty + 1e-12) * np.eye(len(theta)), gradient)
        theta = theta - move
        if np.abs(move).max() < 1e-12:
            break
    return theta


def perturbed(loss: Loss, people: People, theta: Floats, noise: float, runs: int, rng: Generator) -> pd.DataFrame:
    """Return each group's excessive risk under output perturbation, by its closed form and by drawing the noise.

    Args:
        loss: The kind of model.
        people: The rows.
        theta: The coefficients before noise.
        noise: s.
        runs: The number of draws.
        rng: Draws them.

    Returns:
        One row a group and one for everybody: `n`, `trace`, `closed` (the formula), `gap` (xi by the formula),
        `risk` (by draws) with `low` and `high`, a 95 percent interval for its expectation.
    """
    import pandas as pd

    own = theta[:, None]
    traces = people.means(loss.traces(people.x, people.y, own))[:, 0]
    start = people.means(loss.values(people.x, people.y, own))
    drawn = own + noise * rng.normal(size=(len(theta), runs))
    risks = people.means(loss.values(people.x, people.y, drawn)) - start
    mean, error = risks.mean(axis=1), risks.std(axis=1, ddof=1) / math.sqrt(runs)
    closed = noise**2 / 2 * traces
    return pd.DataFrame(
        {
            "group": people.scopes,
            "n": [*people.counts.astype(int), people.size],
            "trace": traces,
            "closed": closed,
            "gap": np.abs(closed - closed[-1]),
            "risk": mean,
            "low": mean - 1.96 * error,
            "high": mean + 1.96 * error,
        }
    )
