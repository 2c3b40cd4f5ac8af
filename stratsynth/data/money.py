"""INTERNAL: bins that hold most of a column's money, counted in private rows for those who hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.schema.drawn import PARETO
from stratsynth.schema.temporal import Temporal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema.columns import Numeric

MOST_MONEY = 0.5
"""Part of the sum of all sizes in one bin above which means depend on the law within that bin."""
NARROW = 2.0
"""Quotient of a bin's ends up to which numbers drawn in it are near the true ones, whatever its law is."""


def heavy_bin(column: Numeric, codes: NDArray[np.integer], sizes: NDArray[np.float64]) -> str:
    """Return a remark on the bin that holds most of the sum of a column's sizes; "" for none, or a narrow one.

    Args:
        column: The numeric column.
        codes: The bin of each number.
        sizes: The absolute value of each, as counted.
    """
    with np.errstate(over="ignore"):
        if isinstance(column, Temporal) or not 0 < sizes.sum() < np.inf:
            return ""
    held = np.bincount(codes, sizes, len(column.extents)) / sizes.sum()
    fullest = int(held.argmax())
    ends = sorted(map(abs, column.extents[fullest]))
    if held[fullest] <= MOST_MONEY or ends[1] <= NARROW * ends[0] or ends[0] == ends[1]:
        return ""
    law = "a model of the tail" if column.shape == PARETO else f"the shape {column.shape!r}"
    return (
        f"{held[fullest]:.0%} of the sum of its sizes is in the bin {column.bin_name(fullest)}, whose numbers are "
        f"drawn by {law}: means depend on it. Declare more edges there"
    )
