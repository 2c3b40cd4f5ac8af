"""Euclidean projection of noisy shares or counts onto nonnegative vectors of a given sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def nearest(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the array nearest to the array `values` without negative parts and with the positive sum `total`.

    All parts are lowered by one amount and cut off at 0: Duchi, Shalev-Shwartz, Singer and Chandra 2008, figure 1.
    """
    import numpy as np

    falling = np.sort(values)[::-1]
    amounts = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    amount = amounts[np.flatnonzero(falling > amounts)[-1]]  # by the last part that stays above 0
    found: NDArray[np.float64] = np.maximum(values - amount, 0.0)
    return found
