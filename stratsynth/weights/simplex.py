"""The nearest shares or counts to noisy ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def nearest(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The nearest point without negative parts that has this positive sum (Euclidean projection).

    All parts are lowered by one amount and cut off at zero: Duchi, Shalev-Shwartz, Singer and Chandra 2008, figure 1.
    """
    import numpy as np

    falling = np.sort(values)[::-1]
    amounts = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    amount = amounts[np.flatnonzero(falling > amounts)[-1]]  # the last part that stays above zero decides
    found: NDArray[np.float64] = np.maximum(values - amount, 0.0)
    return found
