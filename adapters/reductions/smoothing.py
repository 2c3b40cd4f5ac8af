"""Smooth stand-ins for maxima, hinges and absolute values, so that Frank-Wolfe converges; each with its gradient.

    moreau    the Moreau-Yosida envelope of width m: max over p in the simplex of p.z + m (1 - |p|^2) / 2 for a
              maximum, x^2 / 2m from 0 to m for a hinge, x^2 / 2m up to m for an absolute value.
    softmax   m log(sum_j exp(z_j / m)) for a maximum, of (0, x) for a hinge, of (-x, x) for an absolute value.
    none      the functions themselves, with a subgradient.

Smooth maxima are never below the maximum, so a constraint that holds for them holds. Both kinds are convex, have
gradients that are (1 / m)-Lipschitz, and no larger Lipschitz constant than the function that they stand for.
(Definition 8.8 of paper 002 averages by exp(eta y) instead, which is not convex.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Kind = Literal["moreau", "softmax", "none"]


@dataclass(frozen=True)
class Smoothing:
    """Kind and width of the smooth stand-ins for maximum, hinge and absolute value."""

    kind: Kind = "moreau"
    width: float = 0.02
    """Width m, in the unit of the function's argument, as rates."""

    def maximum(self, z: Floats) -> tuple[float, Floats]:
        """Return (smooth maximum of the array of numbers `z`, its gradient: an array of z's size that adds up to 1)."""
        top = int(z.argmax())
        if self.kind == "none":
            return float(z[top]), (np.arange(len(z)) == top).astype(np.float64)
        if self.kind == "softmax":
            power = np.exp((z - z[top]) / self.width)
            return float(z[top] + self.width * np.log(power.sum())), power / power.sum()
        # the maximiser of p.z + m (1 - |p|^2) / 2 over the simplex
        p = onto_simplex(z / self.width)
        return float(p @ z - self.width * (p @ p - 1) / 2), p

    def hinge(self, x: float) -> tuple[float, float]:
        """Return (smooth max(0, x) of a number, its derivative at x, from 0 to 1)."""
        if self.kind == "none":
            return max(0.0, x), float(x > 0)
        if self.kind == "softmax":
            value, (_, slope) = self.maximum(np.array([0.0, x]))
            return value, float(slope)
        # Moreau envelope of max(0, x): quadratic between 0 and m, linear beyond
        slope = min(max(x / self.width, 0.0), 1.0)
        return slope * x - self.width * slope**2 / 2, slope

    def absolute(self, x: Floats) -> tuple[Floats, Floats]:
        """Return two arrays of the shape of the array `x`: a smooth |x| of each entry, and its derivative."""
        if self.kind == "none":
            return np.abs(x), np.sign(x)
        if self.kind == "softmax":
            # m log(exp(x / m) + exp(-x / m)), without overflow
            far = np.abs(x) / self.width
            return self.width * (far + np.log1p(np.exp(-2 * far))), np.tanh(x / self.width)
        # Huber's function, the Moreau envelope of |x|
        slope = np.clip(x / self.width, -1, 1)
        return slope * x - self.width * slope**2 / 2, slope


def onto_simplex(z: Floats) -> Floats:
    """Return an array: the numbers from 0 on that add up to 1 and are nearest to the array `z`, of the same size."""
    down = np.sort(z)[::-1]
    above = (np.cumsum(down) - 1) / np.arange(1, len(z) + 1)
    # the threshold that leaves the largest coordinates with a sum of 1
    kept = int(np.flatnonzero(down > above)[-1])
    found: Floats = np.maximum(z - above[kept], 0.0)
    found /= found.sum()
    return found
