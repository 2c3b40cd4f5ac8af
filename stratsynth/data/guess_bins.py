"""INTERNAL: bounds and bins of a drafted column of numbers, read from private rows.

A draft is for a person to review; these choices only set her starting point.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from stratsynth.schema.bins import LOG
from stratsynth.schema.columns import EXACT, Numeric
from stratsynth.schema.drawn import PARETO

MOST_IN_A_BIN = 0.4
"""Largest share of the numbers in one bin of equal width; above it, edges follow quantiles."""
SPIKE = 0.03
"""Share of records at one exact number from which that number is a bin of its own: zeros, rounded answers."""
HEAPED = 0.5
"""Share of the numbers besides 0 above which multiples of 10, 100, ... are pointed out."""
SPIKES = 12
"""Largest number of spikes, bins of one exact number, in a drafted column."""
MANY_VALUES = 128
"""Width of the range of whole numbers below which each has a bin of its own, without spikes."""
SINGLE = 20
"""Number of values up to which whole numbers are no smooth ones, as ages are."""
ROUGH, MOST_ROUGH = 0.1, 0.5
"""Mean distance of a count from the middle of its neighbours', as a share of the mean count, up to which numbers are
smooth: beside twice what chance makes of it, and in any case."""
MOST_TIMES = 20
"""Largest quotient of the larger bound and the usual size, the median of absolute values, for bins of equal width."""
LONG = 100
"""Quotient of the upper bound and the usual size from which the draft has a Pareto tail."""
LOG_BINS = 20
"""Number of bins on a logarithmic scale: more of them make means worse, as noise cannot be below 0 in the last."""
UNITS = 10
"""Quotient of the usual size and the unit of that scale, from which on its bins grow."""
FEW_VALUES = 20
"""Largest number of different values for which bins of equal width are kept."""
MOST_CODES, EACH_CODE = 500, 20
"""Largest number of codes of a list, and least mean number of rows for each."""
CODES = 4
"""Largest number of special codes that are looked for at the ends."""
QUANTILES = (0.01, 0.03, *(i / 16 for i in range(1, 16)), 0.96, 0.98, 0.99, 0.995, 0.999)
"""Quantiles at which a skewed column is cut; beyond the last of them, powers of ten."""
DIGITS = 2
"""Significant digits of the edges in a drafted column."""

_LOGARITHMIC = (
    "bins are of equal width on a logarithmic scale. Replace `lower`, `upper` and `transform_unit`, which were seen, "
    'by public numbers; shape "pareto" is for incomes, payments and fortunes, and "log" for what ends at a known number'
)
_SEEN = (
    "`edges` follow what was seen, to two digits. Replace them by public ones, narrow where most people are and wide "
    "in the tail"
)

Counts = Mapping[float, int]
"""Number of rows of each value."""


def numeric_keys(counts: Counts, *, whole: bool) -> tuple[dict[str, Any], list[str]]:
    """Return (keyword arguments of `Numeric`, notes for its reviewer) for a column of numbers.

    `counts` maps numbers to rows; `whole`: they are integers.
    """
    notes: list[str] = []
    codes = set(_codes(counts)) if whole else set()
    rest = {value: count for value, count in counts.items() if value not in codes}
    lower, upper = rounded_bounds(min(rest), max(rest), whole=whole)
    keys: dict[str, Any] = {"lower": lower, "upper": upper, "integer": whole}
    if codes:
        keys["special"] = tuple(f"{value:.0f}" for value in sorted(codes))
        notes.append(f"{', '.join(keys['special'])} looks like a code and no amount; if it is one, leave `special` out")
    if whole and upper - lower < MANY_VALUES:
        values = int(upper - lower) + 1
        if values > SINGLE and _is_smooth([rest.get(lower + i, 0) for i in range(values)]):
            keys["shape"] = "smooth"
            notes.append(
                'neighbouring numbers are about equally frequent; `shape = "smooth"` has them counted in bands where '
                "noise would cover single ones: leave it out if conditions are to name each"
            )
        return keys if values <= 100 else keys | {"bins": values}, notes  # as it is without saying so
    rows = sum(rest.values())
    often = [value for value, count in rest.items() if count >= SPIKE * rows] if len(rest) > 2 else []
    spikes = tuple(sorted(sorted(often, key=rest.__getitem__)[-SPIKES:]))
    if spikes:
        keys["spikes"] = spikes
        most = max(spikes, key=rest.__getitem__)
        notes.append(f"{rest[most] / rows:.0%} of the numbers are exactly {most:g}; `spikes` keeps such numbers apart")
    notes += _heaped(rest) if whole else ()
    others = {value: count for value, count in rest.items() if value not in spikes}
    if len(others) > FEW_VALUES and 1e-90 < max(map(abs, others)) < 1e90:
        found, why = _skewed(keys, others)
        return keys | found, notes + why
    return keys | (_number_of_bins(others, lower, upper) if others else {}), notes


def _heaped(counts: Counts) -> Iterator[str]:
    """Yield a note on the largest of 10, 100, ... that most whole numbers but 0, by `counts`, are multiples of."""
    rows = sum(count for value, count in counts.items() if value)
    for step in (10**power for power in range(6, 0, -1)):
        share = sum(count for value, count in counts.items() if value and value % step == 0) / rows
        if share > HEAPED:
            drawn = f"`round = [[0, {step}]]` draws no others" if share == 1 else f"`heaps = [{step}]` draws as many"
            yield f"{share:.0%} of the numbers besides 0 are multiples of {step}; where that is public, {drawn}"
            return


def _skewed(keys: Mapping[str, Any], counts: Counts) -> tuple[dict[str, Any], list[str]]:
    """Return (dict of further arguments of `Numeric`, list of notes) for a column: bins that suit skewed numbers.

    `keys` has its other arguments by name, `counts` maps numbers, without spikes, to rows. Bounds far above the usual
    size make bins of equal width on a logarithmic scale, which give nothing away but the bounds and the first digit of
    a size. Quantiles of the data are the last resort.
    """
    lower, upper, whole = keys["lower"], keys["upper"], keys["integer"]
    share = _fullest(Numeric(**keys), counts)
    usual = _quantile(sorted(counts.items()), 0.5, size=True)
    unit = _round(usual / UNITS, 1)
    unit = max(unit, 1.0) if whole else unit or 1.0
    ruin = f"bins of equal width would put {share:.0%} of the numbers into one, and ruin means"
    if max(abs(lower), abs(upper)) > MOST_TIMES * usual:
        shape = PARETO if upper > LONG * usual else LOG
        log: dict[str, Any] = {"bins": LOG_BINS, "spacing": LOG, "shape": shape, "transform_unit": unit}
        if _fullest(Numeric(**keys, **log), counts) <= MOST_IN_A_BIN:
            return log, [f"{ruin}: {_LOGARITHMIC}"]
    if share > MOST_IN_A_BIN:
        size = _round(usual, 1)
        found = {"edges": _edges(counts, lower, upper, whole=whole), "shape": "log"}
        return found | {"transform_unit": max(size, 1.0) if whole else size or 1.0}, [f"{ruin}: {_SEEN}"]
    return _number_of_bins(counts, lower, upper), []


def _is_smooth(counts: Sequence[int]) -> bool:
    """True if the counts of neighbouring numbers, in order, are about equal, as those of ages and not of hours."""
    near = list(zip(counts, counts[1:], counts[2:], strict=False))
    apart = sum(abs(here - (before + after) / 2) for before, here, after in near)
    chance = sum(math.sqrt(before + here + after) for before, here, after in near) * 2 * math.sqrt(1 / math.pi)
    return apart <= min(ROUGH * sum(counts) + chance, MOST_ROUGH * sum(counts))


def looks_coded(counts: Counts) -> bool:
    """True if the numbers of `counts` (number -> rows) look like codes: some hundred, far apart, no common step.

    Amounts have a zero, or a step such as 1,000, or lie densely where most people are.
    """
    seen = sorted(counts)
    few = MANY_VALUES // 4 < len(seen) <= MOST_CODES and sum(counts.values()) >= EACH_CODE * len(seen)
    if not few or seen[0] <= 0:
        return False
    ordered = sorted(counts.items())
    low, high = _quantile(ordered, 0.1), _quantile(ordered, 0.9)
    inside = sum(low <= value <= high for value in seen)
    return math.gcd(*map(int, seen)) == 1 and inside < 0.1 * (high - low)


def decimal_keys(keys: Mapping[str, Any], digits: int) -> dict[str, Any]:
    """Return a dict of arguments of `Numeric` to add to `keys`, for numbers of `digits` decimals.

    Few numbers get a bin each.
    """
    first, last = math.floor(keys["lower"] * 10**digits), math.ceil(keys["upper"] * 10**digits)
    if last - first >= MANY_VALUES or keys.keys() & {"edges", "spacing"}:
        return {"digits": digits}
    edges = tuple(place / 10**digits for place in range(first, last + 2))
    return {"lower": edges[0], "upper": edges[-2], "digits": digits, "edges": edges, "bins": None, "spikes": ()}


def _number_of_bins(counts: Counts, lower: float, upper: float) -> dict[str, int]:
    """Return {"bins": n} for a column from `lower` to `upper`: bins at most 1/5 standard deviation wide, n <= 60.

    The deviation is that of `counts` (number -> rows); {} for n <= 20.
    """
    rows = sum(counts.values())
    mean = math.fsum(value / rows * count for value, count in counts.items())
    square = math.fsum(((value - mean) / (upper - lower)) ** 2 * count for value, count in counts.items()) / rows
    spread = math.sqrt(square)
    found = min(60, math.ceil(5 / spread)) if spread > 0 else 0
    return {"bins": found} if found > 20 else {}


def rounded_bounds(least: float, most: float, *, whole: bool) -> tuple[float, float]:
    """Return (lower, upper): `least` and `most` rounded outward to half the power of ten between them.

    `whole`: to integers at least.
    """
    low, high = Decimal(least), Decimal(most)
    step = Decimal(10) ** (high - low or abs(high) or Decimal(1)).adjusted() / 2
    step = max(step, Decimal(1)) if whole else step
    lower = (low / step).to_integral_value(ROUND_FLOOR) * step
    upper = (high / step).to_integral_value(ROUND_CEILING) * step
    upper += step if lower == upper else 0
    limit = Decimal(EXACT) if whole else Decimal(sys.float_info.max)
    return float(max(lower, -limit)), float(min(upper, limit))


def _codes(counts: Counts) -> Iterator[float]:
    """Yield the numbers of `counts` (number -> rows) at the ends that look like codes: 9s, 8s, 7s, or negatives."""
    seen = sorted(counts)
    for _ in range(CODES):
        if len(seen) <= MANY_VALUES // 2:
            return
        first, last, spread = seen[0], seen[-1], seen[-2] - seen[1]
        text = f"{last:.0f}"
        if len(text) > 1 and len(set(text)) == 1 and text[0] in "789" and last - seen[-2] > spread:
            yield seen.pop()
        elif first < 0 <= seen[1] and (first >= -9 or set(f"{-first:.0f}") == {"9"}):
            yield seen.pop(0)
        else:
            return


def _fullest(column: Numeric, counts: Counts) -> float:
    """Return the share, 0 to 1, of numbers of `counts` (number -> rows) that lie in a numeric column's fullest bin."""
    bins: dict[int, int] = {}
    for value, count in counts.items():
        place = bisect_right(column.breaks, value)
        bins[place] = bins.get(place, 0) + count
    return max(bins.values()) / sum(bins.values())


def _edges(counts: Counts, lower: float, upper: float, *, whole: bool) -> tuple[float, ...]:
    """Return a tuple of ends of bins from `lower` to `upper`: rounded quantiles of `counts`, powers of ten.

    `counts` maps numbers to rows; `whole`: they are integers.
    """
    ordered = sorted(counts.items())
    cuts = {_round(_quantile(ordered, q), DIGITS) for q in QUANTILES}
    cuts |= {cut for cut in _ladder(lower, upper) if not min(cuts) <= cut <= max(cuts)}
    cuts = {float(round(cut)) for cut in cuts} if whole else cuts
    end = upper + 1 if whole else upper
    return (lower, *sorted(cut + 0.0 for cut in cuts if lower < cut < upper), end)


def _ladder(lower: float, upper: float) -> Iterator[float]:
    """Yield powers of ten, of both signs, up to the size of `lower` and `upper`: finer bins add noise to means."""
    most = math.floor(math.log10(max(abs(lower), abs(upper))))
    for power in range(most - 8, most + 1):
        yield from (10.0**power, -(10.0**power))


def _quantile(ordered: list[tuple[float, int]], q: float, *, size: bool = False) -> float:
    """Return the least value in `ordered`, a list of (value, rows), that at least a share `q` of rows is up to.

    With `size`, absolute values count in place of the values.
    """
    if size:
        ordered = sorted((abs(value), count) for value, count in ordered)
    wanted, before = q * sum(count for _, count in ordered), 0
    for value, count in ordered:
        before += count
        if before >= wanted:
            return value
    return ordered[-1][0]


def _round(value: float, digits: int) -> float:
    """Return `value` rounded to so many significant `digits`."""
    return float(f"{value:.{digits}g}")
