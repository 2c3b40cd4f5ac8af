"""Bins of numeric columns: their ends, their labels, and the law of numbers drawn within one.

Equal widths suit ages and hurt incomes: nearly all people fall into the first bin, and numbers drawn evenly in it are
too large by far. For these a column declares `spacing = "log"`, `edges`, `spikes` and `shape = "log"`. All of it is
declared; nothing here sees a row.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from stratsynth.checks import check_integer
from stratsynth.errors import SchemaError
from stratsynth.schema import checks

if TYPE_CHECKING:
    from stratsynth.schema.columns import Numeric

EVEN, LOG = "even", "log"
SHAPES = (EVEN, LOG)
"""Spacings of bins, and laws of numbers within a bin: even, or even on the scale sign(x) log(1 + |x| / u)."""
LEAST = 1e-300
"""Smallest width of a spike's bin: processors that round the smallest numbers to 0 still tell its ends apart."""


def scale(x: float, unit: float) -> float:
    """Return sign(x) log(1 + |x| / u), the logarithmic scale of bins; `unit` is u, the column's `transform_unit`."""
    return math.copysign(math.log1p(abs(x) / unit), x)


def unscale(y: float, unit: float) -> float:
    """Return sign(y) unit (exp(|y|) - 1): the number at place `y` of the logarithmic scale with this unit."""
    return math.copysign(math.expm1(abs(y)) * unit, y)


def breaks(column: Numeric) -> tuple[float, ...]:
    """Return the ends of the bins, however declared; one more than there are bins.

    A spike is a bin of its own: for whole numbers [v, v + 1), for others from v to the next float.
    """
    ends = set(column.edges if column.edges is not None else _spaced(column))
    for spike in column.spikes:
        ends |= {spike, after(column, spike)} if spike >= column.lower else set()
    return tuple(sorted(ends))


def after(column: Numeric, spike: float) -> float:
    """Return the number at which the bin of the single value `spike` ends, excluded."""
    return spike + 1 if column.integer else max(math.nextafter(spike, math.inf), spike + LEAST)


def kept(column: Numeric, lower: float, upper: float) -> tuple[float, ...]:
    """Return the column's spikes from `lower` to `upper`, and one right below, which names the first bin's open end."""
    return tuple(s for s in column.spikes if lower <= s <= upper or after(column, s) == lower)


def _spaced(column: Numeric) -> tuple[float, ...]:
    """Return the ends of bins of equal width, whole for whole numbers; on the log scale, of three digits."""
    lower, upper = column.lower, column.upper
    values = upper - lower + 1
    few = column.integer and values <= 100
    parts = column.bins if column.bins is not None else int(values) if few else 20
    if column.spacing == LOG:
        low, top = scale(lower, column.transform_unit), scale(upper, column.transform_unit)
        places = (low * (1 - i / parts) + top * (i / parts) for i in range(1, parts))
        rounded = (float(f"{unscale(place, column.transform_unit):.3g}") + 0.0 for place in places)
        inner = {round(end) if column.integer else end for end in rounded}
        end = int(upper) + 1 if column.integer else upper
        return (lower, *sorted(e for e in inner if lower < e <= upper and e < end), end)
    if column.integer:
        low = int(lower)
        return tuple(low + i * int(values) // parts for i in range(parts + 1))
    inner_ends = (lower * (1 - i / parts) + upper * (i / parts) for i in range(1, parts))
    return (lower, *inner_ends, upper)


def check(column: Numeric) -> None:
    """Raise SchemaError for a column's edges, bins, spacing or spikes that make no bins."""
    if column.edges is not None and column.bins is not None:
        checks.refuse("give edges or bins, not both")
    if column.bins is not None:
        check_integer("bins", column.bins, 1, checks.MAX_LEVELS, error=SchemaError)
        if column.integer and column.bins > column.upper - column.lower + 1:
            checks.refuse("bins must not exceed the number of whole numbers from lower to upper")
    if column.spacing != EVEN and column.edges is not None:
        checks.refuse("spacing is of bins; leave it out where edges are given")
    if kept(column, column.lower, column.upper) != column.spikes:
        checks.refuse("spikes must lie between lower and upper; a code outside them is `special`")
    if column.edges is not None and any(a >= b for a, b in pairwise(column.edges)):
        checks.refuse("edges must increase strictly")
    ends = column.breaks
    if len(ends) < 2:
        checks.refuse("edges must hold at least two numbers")
    if column.edges is None and any(a >= b for a, b in pairwise(_spaced(column))):
        checks.refuse("bins are too many for numbers this close")
    if ends[0] > column.lower or ends[-1] < column.upper:
        checks.refuse("edges must reach from lower (or below) to upper (or above)")
    if ends[1] <= column.lower or ends[-2] > column.upper:
        checks.refuse("edges must not make a bin that lies outside lower and upper")


def extents(column: Numeric) -> tuple[tuple[float, float], ...]:
    """Return, for each bin, its smallest and largest value, both included and within the column's bounds."""
    ends = column.breaks
    tops = [end - 1 if column.integer else math.nextafter(end, -math.inf) for end in ends[1:]]
    if not column.integer:
        spikes = [spike for spike in column.spikes if spike >= column.lower]
        tops = [low if low in spikes else top for low, top in zip(ends, tops, strict=False)]
    tops[-1] = column.upper
    return tuple((max(low, column.lower), top) for low, top in zip(ends, tops, strict=False))


def label(column: Numeric, i: int) -> str:
    """Return the name of bin i: a single number, `low-top` for whole numbers, and an interval for others."""
    low, top = column.extents[i]
    if column.integer and low != top:
        return column.spell_range(low, top)
    if column.integer or low in column.spikes:
        return column.spell(low)
    closed = i == len(column.breaks) - 2 and column.breaks[-1] == column.upper
    before = next((spike for spike in column.spikes if after(column, spike) == column.breaks[i]), None)
    first = f"[{column.spell(column.breaks[i])}" if before is None else f"({column.spell(before)}"
    return f"{first},{column.spell(column.breaks[i + 1])}{']' if closed else ')'}"
