"""INTERNAL. Cost of one step of private gradient descent for each group: Theorem 2 of paper 001, corrected.

A step is theta - eta (gb_B + psi): B is a Poisson sample in which each of n rows takes part with probability q, gb_B
the sum of its clipped gradients over q n, and psi noise of the standard deviation s in each coordinate of that mean.
For a group a with Hessian H_a, exactly for quadratic losses and to second order for others:

    plain   -eta <g_a, g_D> + eta^2/2 E[g_B' H_a g_B]                                              no privacy at all
    clipping eta <g_a, g_D - gb_D> + eta^2/2 (E[gb_B' H_a gb_B] - E[g_B' H_a g_B])                 clipping
    noise    eta^2/2 Tr(H_a) s^2                                                                    noise

    E[g_B' H g_B] = g_D' H g_D + (1 - q) / (q n^2) * sum over rows of g_i' H g_i

Corrected: s is the noise of the mean gradient, clip x multiplier / batch; the paper's C sigma has not been divided by
the batch (for 32 rows, its part for noise is 1,024 times too large), and its (25a) has eta/2 for eta^2/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from studies.lens.losses import cut

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from studies.lens.losses import Loss
    from studies.lens.people import People

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """Settings of one step."""

    rate: float
    """Learning rate eta."""
    clip: float = math.inf
    """Largest norm C of a row's gradient."""
    noise: float = 0.0
    """Standard deviation s of the noise in each coordinate of the mean gradient."""
    sampling: float = 1.0
    """Probability q with which a row takes part."""

    @classmethod
    def usual(cls, rate: float, clip: float, multiplier: float, batch: float, rows: int) -> Step:
        """A step of DP-SGD: noise of clip x multiplier on the sum of about `batch` of `rows` gradients."""
        return cls(rate, clip, clip * multiplier / batch, batch / rows)


def decompose(loss: Loss, people: People, theta: Floats, step: Step) -> pd.DataFrame:
    """The expected change of each group's mean loss in one step from `theta`, and its parts.

    Returns:
        One row a group and one for everybody: `n`; `loss`; `gradient_norm`, the mean norm of rows' gradients, and
        `mean_gradient_norm`, the norm of their mean; `clipped`, the part of rows that the clip cuts; `trace` of the
        group's Hessian; `boundary`, the mean of 1 - sum f^2; `plain`, `clipping` and `noise` as above;
        `clipping_second`, the part of `clipping` that has the Hessian; `excess`, the sum of `clipping` and `noise`.
    """
    import pandas as pd

    local = loss.local(people.x, people.y, theta)
    gradients = local.gradients
    norms = np.sqrt((gradients**2).sum(axis=1))
    kept = gradients * cut(norms, np.asarray(step.clip))[:, None]
    moments = [_Moments.of(part, step.sampling) for part in (gradients, kept)]
    own = theta[:, None]
    scores = {
        "loss": people.means(loss.values(people.x, people.y, own))[:, 0],
        "gradient_norm": people.means(norms),
        "clipped": people.means((norms > step.clip).astype(np.float64)),
        "boundary": people.means(loss.boundary(people.x, own))[:, 0],
    }
    rows = []
    for k, name in enumerate(people.scopes):
        here = people.of(k)
        row = {"group": name, "n": here.size, **{key: float(score[k]) for key, score in scores.items()}}
        if here.size:
            own_local = loss.local(here.x, here.y, theta)
            mean, hessian = own_local.gradients.mean(axis=0), loss.hessian(here.x, own_local)
            row |= _parts(mean, hessian, moments[0], moments[1], step)
        rows.append(row)
    return pd.DataFrame(rows)


@dataclass(frozen=True, eq=False)
class _Moments:
    """The mean of a sample's mean gradient, and its covariance."""

    mean: Floats
    covariance: Floats

    @classmethod
    def of(cls, gradients: Floats, sampling: float) -> _Moments:
        rows = len(gradients)
        spread = (1 - sampling) / (sampling * rows**2)
        return cls(gradients.mean(axis=0), gradients.T @ gradients * spread)

    def square(self, hessian: Floats) -> float:
        """E[g_B' H g_B]."""
        return float(self.mean @ hessian @ self.mean + (self.covariance * hessian).sum())


def _parts(mean: Floats, hessian: Floats, plain: _Moments, kept: _Moments, step: Step) -> dict[str, float]:
    """The three parts for a group with this mean gradient and Hessian."""
    half, trace = step.rate**2 / 2, float(np.trace(hessian))
    second = half * (kept.square(hessian) - plain.square(hessian))
    clip = step.rate * float(mean @ (plain.mean - kept.mean)) + second
    noise = half * trace * step.noise**2
    return {
        "mean_gradient_norm": float(np.linalg.norm(mean)),
        "trace": trace,
        "plain": -step.rate * float(mean @ plain.mean) + half * plain.square(hessian),
        "clipping": clip,
        "clipping_second": second,
        "noise": noise,
        "excess": clip + noise,
    }
