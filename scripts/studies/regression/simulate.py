"""Projected noisy gradient descent in closed form, for experiments on public or simulated rows: NOT PRIVATE.

Many runs share the rows and differ in their noise: each is a column of one matrix, so that a step is two matrix
products. A row's gradient (x.theta - y) x is clipped to the L2 norm D by cutting its residual to D / |x|. What is
released privately is fitted by `group_regression`; here the noise comes from a seeded generator, and its variances are
what that would add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ROWS = 512
"""Rows worked on at a time: their residuals in 1,000 runs fit in the processor's cache."""


@dataclass(frozen=True)
class People:
    """Rows sorted by group."""

    x: Floats
    """The features, an intercept of 1 first."""
    y: Floats
    ends: tuple[int, ...]
    """End of each group: the index after its last row."""

    @property
    def sizes(self) -> Floats:
        """Number of rows of each group."""
        return np.diff(np.array((0, *self.ends))).astype(np.float64)

    def errors(self, thetas: Floats) -> Floats:
        """Return the mean squared prediction error, one row a run and one column a group."""
        square = (self.x @ thetas.T - self.y[:, None]) ** 2
        return np.add.reduceat(square, (0, *self.ends[:-1]), axis=0).T / self.sizes


@dataclass(frozen=True)
class Way:
    """Weights of the groups, and the noise that each gets."""

    weights: Floats
    """Weight v_k of a record of each group in a step's gradient."""
    sigmas: Floats
    """Standard deviation of the noise in a coordinate of each group's clipped sum; one row a run, or one for all."""


@dataclass(frozen=True)
class Steps:
    """Settings of the descent."""

    number: int = 100
    clip: float = 2.0
    rate: float = 0.5
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
    return People(np.column_stack([np.ones(group.size), x]), y, tuple(np.cumsum(sizes).tolist()))


def descend(people: People, way: Way, steps: Steps, runs: int, rng: Generator) -> Floats:
    """The last iterate of each run, one row a run. One thread: pieces are small, and a second one would mostly wait."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        return _descended(people, way, steps, runs, rng)


def _descended(people: People, way: Way, steps: Steps, runs: int, rng: Generator) -> Floats:
    x, y, features = people.x, people.y, people.x.shape[1]
    bound = (steps.clip / np.linalg.norm(x, axis=1))[:, None]
    theta = np.zeros((features, runs))
    spread = np.sqrt(((way.weights * way.sigmas) ** 2).sum(axis=-1))
    weight = np.repeat(way.weights, people.sizes.astype(np.intp))
    weighted = x * weight[:, None]
    for _ in range(steps.number):
        gradient = rng.normal(size=(features, runs)) * spread
        for start in range(0, len(x), ROWS):
            piece = slice(start, start + ROWS)
            residual = x[piece] @ theta
            residual -= y[piece, None]
            np.clip(residual, -bound[piece], bound[piece], out=residual)
            gradient += weighted[piece].T @ residual
        np.clip(theta - steps.rate * gradient, -steps.radius, steps.radius, out=theta)
    return theta.T
