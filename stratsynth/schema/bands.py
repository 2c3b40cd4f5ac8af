"""Bands of a number between declared ends, as counted columns of linked tables have them, and their defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from stratsynth.schema.columns import Numeric

if TYPE_CHECKING:
    from stratsynth.schema.columns import Column

NONE = "none"
"""Level of a band for a number that is missing or not applicable."""
MOST_LEFT, MOST_BANDS = 18, 10
"""Largest number of bands of what is left of a sum, and of the number of the row before, where none are declared."""


@dataclass(frozen=True)
class Bands:
    """Bands of a number between ascending ends, and one for no number."""

    ends: tuple[float, ...]

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """Tuple of the names of the bands, by code: below the first end, then from each end on, then NONE."""
        spelt = [repr(float(end)).removesuffix(".0") for end in self.ends]
        inner = [f"[{low},{high})" for low, high in pairwise(spelt)]
        return (f"<{spelt[0]}", *inner, f">={spelt[-1]}", NONE)

    def extent(self, code: int) -> tuple[float, float]:
        """Return (smallest number, end) of the band of this code, the end excluded; infinite where it is open."""
        low = -math.inf if code == 0 else float(self.ends[code - 1])
        return low, math.inf if code == len(self.ends) else float(self.ends[code])


def bands_left(column: Column) -> tuple[float, ...]:
    """Return a tuple, the ends of bands of what is left of a column's sum: 0, what is just above, and ends of its bins.

    Of two rows the second has all that is left: bands as fine as its bins keep these.
    """
    assert isinstance(column, Numeric)  # noqa: S101 - checked by the linked schema
    least = 1.0 if column.integer else 0.01
    above = [end for end in column.breaks[1:-1] if end > least]
    step = max(1, math.ceil(len(above) / (MOST_LEFT - 3)))
    return (0.0, least, *(float(end) for end in above[step - 1 :: step]))


def bands_before(column: Column | None) -> tuple[float, ...]:
    """Return a tuple, ends of bands of a column's number in the row before: decades of ages, or tenths of its range."""
    assert isinstance(column, Numeric)  # noqa: S101 - checked by the linked schema
    step = max(1.0, (column.upper - column.lower) / MOST_BANDS)
    ends = (column.lower + step * i for i in range(1, MOST_BANDS))
    whole = step >= 5  # then ends are multiples of ten
    rounded = [float(math.ceil(end / 10) * 10) if whole else float(math.ceil(end)) for end in ends]
    return tuple(sorted({end for end in rounded if column.lower < end <= column.upper}))
