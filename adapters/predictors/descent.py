"""Projected gradient descent on noisy gradients: state, step and public step size.

    theta <- P(theta - rate * direction)      direction <- momentum * direction + gradient

The rate comes from public numbers alone: features lie between -1 and 1 and a row has at most R^2 of them, so the mean
loss has a curvature of at most R^2 (linear), R^2 / 4 (logistic) or R^2 / 2 (softmax), and the rate is one over that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions import Design

    Floats = NDArray[np.float64]

GRID = 2.0**20
"""Inverse grid size: coefficients in questions are rounded to 1 / GRID, so that a resumed fit asks bit for bit equal
ones."""
CURVATURE = {"linear": 1.0, "logistic": 0.25, "softmax": 0.5}
"""Largest second derivative of a row's loss by its logits."""
RESIDUAL = {"linear": 0.5, "logistic": 1.0, "softmax": math.sqrt(2)}
"""Residual up to which no gradient is clipped by default: half of half the target's range; any for levels."""


def rounded(theta: Floats) -> Floats:
    """Return a copy of the array `theta`, coefficients or weights, rounded to multiples of 1 / GRID.

    Questions hold such numbers.
    """
    found: Floats = np.rint(theta * GRID) / GRID
    return found


def largest_norm(design: Design) -> float:
    """Return the largest L2 norm of a row's features under a design: the square root of its `most_features`."""
    return math.sqrt(design.most_features)


@dataclass(frozen=True)
class Region:
    """Region of the coefficients of scaled features: a box [-radius, radius]^P or a ball of that radius."""

    shape: Literal["box", "ball"]
    radius: float

    def project(self, theta: Floats) -> Floats:
        """Return an array of the shape of `theta`, coefficients: those in the region that are nearest."""
        if self.shape == "box":
            return np.clip(theta, -self.radius, self.radius)
        length = float(np.linalg.norm(theta))
        return theta * (self.radius / length) if length > self.radius else theta


@dataclass
class Descent:
    """State of a descent: coefficients, direction, and the sum of the last iterates."""

    region: Region
    rate: float
    momentum: float
    steps: int
    tail: int
    """Number of last iterates whose mean is returned; 1 returns the last one."""
    theta: Floats
    taken: int = 0

    def __post_init__(self) -> None:
        """Set direction and sum of the last iterates to 0, in arrays of `theta`'s shape."""
        self._direction, self._sum = np.zeros_like(self.theta), np.zeros_like(self.theta)

    def step(self, gradient: Floats) -> None:
        """Move the descent's own `theta`, coefficients, one step against `gradient`, a noisy array shaped as they are.

        They become a new array, in the region, which enters the mean `result` if among the last `tail` of all steps.
        """
        # heavy ball: the direction keeps a part of the earlier gradients, and with it averages their noise
        self._direction = self.momentum * self._direction + gradient
        self.theta = self.region.project(self.theta - self.rate * self._direction)
        self.taken += 1
        # averaging the tail reduces the noise of single iterates
        if self.taken > self.steps - self.tail:
            self._sum += self.theta

    @property
    def result(self) -> Floats:
        """Mean of the last `tail` iterates, an array shaped as `theta`; right only after all `steps`."""
        return self._sum / self.tail
