"""How far a noisy table is, by chance alone, from what foretells it rightly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def farthest(shares: NDArray[Any], total: float, noise: float, variance: float, chance: float) -> float:
    """The squared distance, over all cells, of counts from N times the right shares that is passed with some chance.

    The counts of N people who are a sample have the covariance N (diag(p) - p p') besides what is independent in each
    cell. The distance is a sum of squares of normal numbers whose variances are the eigenvalues of the whole. Its
    quantile is taken from the chi-square, scaled and moved, that has the same mean, variance and skewness (Buckley and
    Eagleson 1988), all of which follow from traces. Where there is noise alone this is exact.

    Args:
        shares: The share of each cell; those of a noisy table may be below zero.
        total: N, the number of people.
        noise: The variance of a cell's noise.
        variance: The variance of a cell by sampling and by what else the shares may be off, the mean over all cells.
        chance: How probable it is that the distance is larger.
    """
    from scipy.special import chdtri

    share = np.clip(shares, 0, 1).ravel()
    alone = noise + variance - total * float((share * (1 - share)).mean())
    diagonal, square = alone + total * share, total * float(share @ share)  # the covariance, but for N p p'
    once, twice = (total * float(share**2 @ diagonal**power) for power in (1, 2))
    first = share.size * (noise + variance)
    second = max(float(diagonal @ diagonal) - 2 * once + square**2, first**2 / share.size)
    third = float(diagonal**2 @ diagonal) - 3 * twice + 3 * once * square - square**3
    # between one eigenvalue and equal ones, whatever is left of small differences of large numbers
    freedom = min(max(second**3 / max(third, 1e-9) ** 2, 1.0), float(share.size))
    limit: float = first + math.sqrt(second / freedom) * (float(chdtri(freedom, chance)) - freedom)
    return limit
