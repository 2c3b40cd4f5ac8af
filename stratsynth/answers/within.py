"""Numbers within their bins, by the law that synthetic ones are drawn with, and the ends of bins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.schema import inside
from stratsynth.schema.bins import EVEN, LINEAR

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from stratsynth.schema import Numeric
    from stratsynth.schema.inside import Inside

    Floats = NDArray[np.float64]

POINTS = 64
"""Number of places of a bin at which moments of its numbers are computed."""


def ends(column: Numeric) -> Floats:
    """Return an array (2, bins): smallest and largest number of each bin of a numeric column.

    Of reals, the ends between bins.
    """
    low, top = np.array(column.extents, dtype=np.float64).T
    single = low == top
    if not column.integer:
        top[:-1] = np.where(single[:-1], top[:-1], np.asarray(column.breaks[1:-1], dtype=np.float64))
        low[1:] = np.where(single[:-1], top[:-1], low[1:])  # right after a spike
    return np.stack([low, top])


def numbers_at(column: Numeric, law: Inside, bins: ArrayLike, parts: ArrayLike) -> Floats:
    """Return an array: the number below which the part `parts`, 0 to 1, of each of a numeric column's `bins` lies.

    `bins` are codes; the law within them is an `Inside`, `law`; both arrays are broadcast.
    """
    codes, shares = np.broadcast_arrays(np.asarray(bins, dtype=np.int64), np.asarray(parts, dtype=np.float64))
    return inside.numbers(column, codes.ravel(), shares.ravel(), law).reshape(codes.shape)


def on_scale(column: Numeric, numbers: Floats) -> Floats:
    """Return an array of `numbers` on the scale, perhaps logarithmic, on which a numeric column's bins are even."""
    if column.shape in LINEAR and column.spacing == EVEN:
        return numbers
    return np.asarray(np.copysign(np.log1p(np.abs(numbers) / column.transform_unit), numbers))


def drawn(column: Numeric, law: Inside) -> Floats:
    """Return an array (bins, POINTS): numbers at even places of each bin of a numeric column, as its `Inside` draws."""
    parts = (np.arange(POINTS) + 0.5) / POINTS
    return numbers_at(column, law, np.arange(len(column.extents))[:, None], parts[None, :])
