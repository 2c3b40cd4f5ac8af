"""Projected noisy gradient descent in closed form, for experiments on public or simulated rows: NOT PRIVATE.

Many runs share the rows and differ in their noise: each is a column of one matrix, so that a step is two matrix
products. As in the paper a row's gradient is 2 (x.theta - y) x; it is clipped to the L2 norm D by cutting its residual
to D / (2 |x|), and coefficients stay in the box [-radius, radius]. What is released privately is fitted by
`group_regression`; here the noise comes from a seeded generator. Both descend alike, with noise of one width:
tests/unit/test_regression_agreement.py, with the mechanism's `momentum`, `tail` and `most_weight` out of play, which
the paper does not have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PACE, PUSH = 0.3, 2.0
"""Movement of a multiplier by an excess of 1 over its bound, in units of the clip: for good, and in this step only."""
ROWS = 512
"""Rows worked on at a time: their residuals in 1,000 runs fit in the processor's cache."""


@dataclass(frozen=True)
class People:
    """Rows sorted by group."""

    x: Floats
    """The features, within [-1, 1], an intercept of 1 first."""
    y: Floats
    ends: tuple[int, ...]
    """End of each group: the index after its last row."""
    reach: float
    """Public bound of y: larger ones count as this in stage 1."""

    @property
    def sizes(self) -> Floats:
        """Number of rows of each group."""
        return np.diff(np.array((0, *self.ends))).astype(np.float64)

    def errors(self, thetas: Floats) -> Floats:
        """Return the mean squared prediction error, one row a run and one column a group."""
        square = (self.x @ thetas.T - self.y[:, None]) ** 2
        return np.add.reduceat(square, (0, *self.ends[:-1]), axis=0).T / self.sizes


@dataclass(frozen=True)
class Bound:
    """Bounded group loss: every group's mean loss, of squared residuals of at most `clip`, is to be at most `most`."""

    most: float
    clip: float = 4.0
    """The paper's Delta^2."""
    multiplier: float = 3.0
    """Largest multiplier G of a bound; the learning rate is divided by 1 + G."""


@dataclass(frozen=True)
class Way:
    """Weights of the groups, the noise that each gets, and where runs start."""

    slopes: Floats
    """Derivative of the objective by each group's mean loss."""
    sigmas: Floats | None
    """Standard deviation of the noise in a coordinate of each group's clipped sum, one row a run, or one for all; None
    where one noise is put on the weighted sum."""
    rho: float
    """The rho of a step's gradients, for that one noise."""
    losses: Floats | None = None
    """Standard deviation of the noise in each group's sum of clipped losses, likewise; None where none are asked."""
    start: Floats | None = None
    """Coefficients that runs start from, one row a run; None for 0."""


@dataclass(frozen=True)
class Steps:
    """Settings of the descent: those of the paper for synthetic people. It names no number of steps and no rate."""

    number: int = 100
    clip: float = 2.0
    """Largest L2 norm D of a row's gradient 2 (x.theta - y) x."""
    rate: float = 0.25
    radius: float = 5.0
    """Half the side of the box that coefficients are kept in."""


def make_people(sizes: tuple[int, ...], slopes: Floats, spreads: tuple[float, ...], rng: Generator) -> People:
    """People whose target is x.slope_k plus normal noise, for features that are uniform from -1 to 1.

    Args:
        sizes: Of the groups.
        slopes: One row a group, one column a feature but the intercept, which is 0.
        spreads: The deviation of each group's noise.
        rng: A seeded generator.
    """
    group = np.repeat(np.arange(len(sizes)), sizes)
    x = rng.uniform(-1, 1, (group.size, slopes.shape[1]))
    y = (x * slopes[group]).sum(axis=1) + rng.normal(size=group.size) * np.array(spreads)[group]
    reach = float(np.abs(slopes).sum(axis=1).max()) + 3 * max(spreads)
    return People(np.column_stack([np.ones(group.size), x]), y, tuple(np.cumsum(sizes).tolist()), reach)


def descend(people: People, way: Way, steps: Steps, runs: int, rng: Generator, bound: Bound | None = None) -> Floats:
    """The last iterate of each run, one row a run. One thread: pieces are small, and a second one would mostly wait."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        return _descended(people, way, steps, runs, rng, bound)


def _descended(people: People, way: Way, steps: Steps, runs: int, rng: Generator, bound: Bound | None) -> Floats:
    x, sizes, features = people.x, people.sizes, people.x.shape[1]
    cut = (steps.clip / 2 / np.linalg.norm(x, axis=1))[:, None]
    theta = np.zeros((features, runs)) if way.start is None else np.clip(way.start.T, -steps.radius, steps.radius)
    weights = (way.slopes / sizes)[:, None]
    rate = steps.rate if bound is None else steps.rate / (1 + bound.multiplier)
    held = np.zeros((len(sizes), runs))
    for _ in range(steps.number):
        sums, losses = _sums(people, theta, cut, bound)
        v = weights
        if bound is not None and way.losses is not None:
            noisy = losses + rng.normal(size=(len(sizes), runs)) * way.losses.T
            excess = (noisy / sizes[:, None] - bound.most) / bound.clip
            held = np.clip(held + PACE * excess, 0, bound.multiplier)
            v = weights + np.clip(held + PUSH * excess, 0, bound.multiplier) / sizes[:, None]
        gradient = np.einsum("kr,kpr->pr", np.broadcast_to(v, (len(sizes), runs)), sums)
        gradient += rng.normal(size=(features, runs)) * spread(way, v, steps.clip)
        theta = np.clip(theta - rate * gradient, -steps.radius, steps.radius)
    return theta.T


def spread(way: Way, v: Floats, clip: float) -> Floats:
    """Return the deviation of a coordinate of the weighted sum of gradients, for groups' weights v: one a run."""
    if way.sigmas is None:
        found: Floats = v.max(axis=0) * clip / math.sqrt(2 * way.rho)
    else:
        found = np.sqrt(((v * way.sigmas.T) ** 2).sum(axis=0))
    return found


def _sums(people: People, theta: Floats, cut: Floats, bound: Bound | None) -> tuple[Floats, Floats]:
    """Return each group's sum of clipped gradients, group x feature x run, and of clipped losses, group x run."""
    sums = np.zeros((len(people.ends), *theta.shape))
    losses = np.zeros((len(people.ends), theta.shape[1]))
    for k, (first, end) in enumerate(zip((0, *people.ends), people.ends, strict=False)):
        for start in range(first, end, ROWS):
            piece = slice(start, min(start + ROWS, end))
            residual = people.x[piece] @ theta
            residual -= people.y[piece, None]
            if bound is not None:
                losses[k] += np.minimum(residual**2, bound.clip).sum(axis=0)
            np.clip(residual, -cut[piece], cut[piece], out=residual)
            sums[k] += 2 * people.x[piece].T @ residual
    return sums, losses
