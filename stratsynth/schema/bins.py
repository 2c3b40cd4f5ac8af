"""Bins of numeric columns: their ends, their labels, and the law of numbers drawn within one.

Equal widths suit ages and hurt incomes: nearly all people fall into the first bin, and numbers drawn evenly in it are
too large by far. For these a column declares `spacing = "log"`, `edges`, `spikes` and `shape = "log"`. All of it is
declared; nothing here sees a row.
"""

from __future__ import annotations

import math
from functools import cached_property

EVEN, LOG, SMOOTH = "even", "log", "smooth"
SPACINGS, SHAPES, LINEAR = (EVEN, LOG), (EVEN, LOG, SMOOTH), (EVEN, SMOOTH)
"""Spacings of bins, even on the numbers or on the scale sign(x) log(1 + |x| / u); laws of numbers within a bin, even on
either, or along a curve through the counts of all bins."""
LEAST = 1e-300
"""Smallest width of a spike's bin: processors that round the smallest numbers to 0 still tell its ends apart."""


def scale(x: float, unit: float) -> float:
    """Return the number `x` on the logarithmic scale of bins, sign(x) log(1 + |x| / unit), with a unit above 0."""
    return math.copysign(math.log1p(abs(x) / unit), x)


def unscale(y: float, unit: float) -> float:
    """Return the number at place `y` of the logarithmic scale of bins: sign(y) unit (exp(|y|) - 1)."""
    return math.copysign(math.expm1(abs(y)) * unit, y)


class Binned:
    """Bins of a numeric column, from the fields that `Numeric` declares."""

    lower: float
    upper: float
    edges: tuple[float, ...] | None
    bins: int | None
    integer: bool
    spikes: tuple[float, ...]
    spacing: str
    transform_unit: float

    @cached_property
    def breaks(self) -> tuple[float, ...]:
        """Tuple of ends of the bins in ascending order, one more than there are bins, however they are declared.

        A spike is a bin of its own: for whole numbers [v, v + 1), for others from v to the next float.
        """
        ends = set(self.edges if self.edges is not None else self.spaced())
        for spike in self.spikes:
            ends |= {spike, self._after(spike)} if spike >= self.lower else set()
        return tuple(sorted(ends))

    @cached_property
    def extents(self) -> tuple[tuple[float, float], ...]:
        """Tuple, one a bin, of (smallest, largest) value of it, both included and within the bounds."""
        ends = self.breaks
        tops = [end - 1 if self.integer else math.nextafter(end, -math.inf) for end in ends[1:]]
        if not self.integer:
            spikes = [spike for spike in self.spikes if spike >= self.lower]
            tops = [low if low in spikes else top for low, top in zip(ends, tops, strict=False)]
        tops[-1] = self.upper
        return tuple((max(low, self.lower), top) for low, top in zip(ends, tops, strict=False))

    def spikes_within(self, lower: float, upper: float) -> tuple[float, ...]:
        """Return a tuple of this column's spikes from `lower` to `upper`, and any whose bin ends at `lower`."""
        return tuple(s for s in self.spikes if lower <= s <= upper or self._after(s) == lower)

    def bin_name(self, i: int) -> str:
        """Return the name, a text, of the bin of index `i`: one number, `low-top` of whole numbers, an interval."""
        low, top = self.extents[i]
        if self.integer and low != top:
            return self.spell_range(low, top)
        if self.integer or low in self.spikes:
            return self.spell(low)
        closed = i == len(self.breaks) - 2 and self.breaks[-1] == self.upper
        before = next((spike for spike in self.spikes if self._after(spike) == self.breaks[i]), None)
        first = f"[{self.spell(self.breaks[i])}" if before is None else f"({self.spell(before)}"
        return f"{first},{self.spell(self.breaks[i + 1])}{']' if closed else ')'}"

    def spell(self, value: float) -> str:
        """Return the shortest text that reads back as the number `value`, without a trailing `.0`."""
        return repr(value).removesuffix(".0")

    def spell_range(self, low: float, top: float) -> str:
        """Return the name of a bin of whole numbers from `low` to `top`: `0-4`, or `[-4,4]` if `low` is negative."""
        first, last = self.spell(low), self.spell(top)
        return f"{first}-{last}" if low >= 0 else f"[{first},{last}]"

    def _after(self, spike: float) -> float:
        """Return the number at which the bin of the single value `spike` ends, excluded."""
        return spike + 1 if self.integer else max(math.nextafter(spike, math.inf), spike + LEAST)

    def spaced(self) -> tuple[float, ...]:
        """Return a tuple of the ends of this column's `bins` (None: 20), equal in width or on the log scale."""
        lower, upper = self.lower, self.upper
        values = upper - lower + 1
        few = self.integer and values <= 100
        parts = self.bins if self.bins is not None else int(values) if few else 20
        if self.spacing == LOG:
            low, top = scale(lower, self.transform_unit), scale(upper, self.transform_unit)
            places = (low * (1 - i / parts) + top * (i / parts) for i in range(1, parts))
            rounded = (float(f"{unscale(place, self.transform_unit):.3g}") + 0.0 for place in places)
            inner = {round(end) if self.integer else end for end in rounded}
            end = int(upper) + 1 if self.integer else upper
            return (lower, *sorted(e for e in inner if lower < e <= upper and e < end), end)
        if self.integer:
            low = int(lower)
            return tuple(low + i * int(values) // parts for i in range(parts + 1))
        inner_ends = (lower * (1 - i / parts) + upper * (i / parts) for i in range(1, parts))
        return (lower, *inner_ends, upper)
