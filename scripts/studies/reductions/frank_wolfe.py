"""Frank-Wolfe over losses, as paper 002 writes it and as it converges; on a problem that tells the two apart.

    minimise (l1 - .2)^2 + 4 (l2 - .7)^2   over the convex hull of   (1, 0), (0, 1), (.3, .8)

The paper's Algorithm 4 takes the gradient at the losses of its last decision and returns all decisions alike. Here it
goes to and fro between (1, 0) and (0, 1), and the goal stays at .25 however many steps it takes. The true method takes
the gradient at the losses of the mixture so far and gives the new decision the weight 2 / (t + 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

VERTICES = np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.8]])
CENTRE, WEIGHT = np.array([0.2, 0.7]), np.array([1.0, 4.0])


def value(losses: Floats) -> float:
    """The goal."""
    return float(WEIGHT @ (losses - CENTRE) ** 2)


def gradient(losses: Floats) -> Floats:
    """Return the gradient of the goal."""
    found: Floats = 2 * WEIGHT * (losses - CENTRE)
    return found


def run(method: Literal["paper", "true"], steps: int, start: int) -> float:
    """The goal at the mixture that is returned, from one of the decisions."""
    losses = mixed = VERTICES[start]
    seen = [losses]
    for t in range(1, steps):
        losses = VERTICES[int((VERTICES @ gradient(losses if method == "paper" else mixed)).argmin())]
        seen.append(losses)
        mixed = mixed + 2 / (t + 2) * (losses - mixed)
    return value(np.mean(seen, axis=0) if method == "paper" else mixed)


def least() -> float:
    """The smallest value on the hull, by a fine grid of mixtures."""
    a, b = np.meshgrid(np.linspace(0, 1, 1_001), np.linspace(0, 1, 1_001))
    inside = a + b <= 1
    weights = np.column_stack([a[inside], b[inside], 1 - a[inside] - b[inside]])
    return float(((weights @ VERTICES - CENTRE) ** 2 @ WEIGHT).min())
