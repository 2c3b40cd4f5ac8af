"""Ends of 95 % intervals of scores, from standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.models.intervals import NORMAL_95

if TYPE_CHECKING:
    from numpy.typing import NDArray


def interval(value: NDArray[Any], error: NDArray[Any], top: float = np.inf) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two arrays, lower and upper ends of normal 95 % intervals of scores: `value`, with the standard errors `error`.

    These are arrays alike. The ends are cut off at 0 and `top`; NaN if unknown.
    """
    return np.maximum(value - NORMAL_95 * error, 0), np.minimum(value + NORMAL_95 * error, top)


def absolute(value: NDArray[Any], error: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Arrays of lower and upper ends of 95 % intervals of |value|, for an array of signed scores `value`.

    `error` is the array of their standard errors. The lower end is 0 if the sign is in doubt.
    """
    one, two = value - NORMAL_95 * error, value + NORMAL_95 * error
    ends = np.abs([one, two])
    low = np.where(np.sign(one) == np.sign(two), ends.min(axis=0), 0.0)
    return np.where(np.isnan(one), np.nan, low), ends.max(axis=0)
