"""95 of 100: the ends of intervals, from standard errors and from counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Z = 1.959963984540054
"""Half the width of a 95 % interval, in standard errors."""


def interval(value: NDArray[Any], error: NDArray[Any], top: float = np.inf) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of a score with this standard error: by the normal distribution, nothing below 0 or above `top`."""
    return np.maximum(value - Z * error, 0), np.minimum(value + Z * error, top)


def absolute(value: NDArray[Any], error: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of the size of a difference whose signed value has this standard error: down to 0 where its sign is in doubt."""
    one, two = value - Z * error, value + Z * error
    ends = np.abs([one, two])
    low = np.where(np.sign(one) == np.sign(two), ends.min(axis=0), 0.0)
    return np.where(np.isnan(one), np.nan, low), ends.max(axis=0)


def wilson(part: NDArray[Any], whole: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of a share, by Wilson's formula, which is never of width 0; NaN of nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(whole > 0, part / whole, np.nan)
        middle = (share + Z**2 / (2 * whole)) / (1 + Z**2 / whole)
        half = Z / (1 + Z**2 / whole) * np.sqrt(share * (1 - share) / whole + Z**2 / (4 * whole**2))
    return np.maximum(middle - half, 0), np.minimum(middle + half, 1)
