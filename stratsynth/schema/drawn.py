"""Keys of a numeric column that say how its numbers are drawn within a bin, and what is measured for that.

No key here changes the code of a record. All are declared: bounds of a slope, multiples, units of rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from stratsynth.checks import is_list, is_number, is_whole, quoted_value
from stratsynth.schema import checks
from stratsynth.schema.bins import LOG, SHAPES

if TYPE_CHECKING:
    from stratsynth.schema.columns import Numeric

PARETO = "pareto"
DECLARED, PRIOR = "declared", "prior"
SLOPES = (1.5, 6.0)
"""Bounds of a Pareto tail's slope where a column declares none."""
STEEPEST = 50.0
"""Largest slope that can be declared."""
MOST_STEPS = 20
"""Largest number of multiples in `heaps`, and of pairs in `round`."""
_APART = {"digest": False}
"""Mark of fields that no digest has: the hash of the schema has them, where they are declared."""


@dataclass(frozen=True, kw_only=True)
class DrawnWithin:
    """Law of a column's numbers within its bins, beside its shape."""

    tail: tuple[float, float] | None = field(default=None, metadata=_APART)
    """Smallest and largest slope of the Pareto tail, whose density falls as x to the power -slope - 1: the larger, the
    fewer large numbers. With shape "pareto" alone; without it they are 1.5 and 6."""

    within: str = field(default=DECLARED, metadata=_APART)
    """Source of the law within a bin: "declared", the shape; or "prior", the numbers that a prior of public rows has in
    the bin, and the shape where it has none."""

    round: tuple[tuple[float, float], ...] = field(default=(), metadata=_APART)
    """Units of synthetic numbers, as pairs of a size and the unit from that size on, both ascending: [[0, 10], [1000,
    100]] is multiples of 10, and of 100 from 1,000 on. A number whose bin has no such multiple stays."""

    clip: float | None = field(default=None, metadata=_APART)
    """Number above which values count as this number in the measured sum of the column, for means; above `lower` and at
    most `upper`. None: no sum is measured."""

    sums: float | None = field(default=None, metadata=_APART)
    """Part of a fit's amount that the sums of the columns with a `clip` may take together, below .5: the largest that
    one of them declares. None is .05; 0 measures none."""

    places: float = field(default=0.0, metadata=_APART)
    """Part of the amount of the column's own table, below .5, for the mean place of its numbers in each bin."""

    heaps: tuple[float, ...] = field(default=(), metadata=_APART)
    """Whole numbers, descending, of which many values are multiples: [10000, 1000, 100]. Noise is added to how many of
    each bin are multiples of each. None if empty."""

    @property
    def slopes(self) -> tuple[float, float]:
        """Pair (smallest, largest) of slopes of the Pareto tail."""
        return SLOPES if self.tail is None else self.tail


def check(column: Numeric) -> None:
    """Raise SchemaError for a column's keys of drawing, `DrawnWithin`, that are invalid, or of no use to it."""
    checks.choice("shape", column.shape, (*SHAPES, PARETO))
    checks.choice("within", column.within, (DECLARED, PRIOR))
    if column.digits is not None and (not is_whole(column.digits) or not 0 <= column.digits <= 9 or column.integer):
        checks.refuse("digits must be a whole number from 0 to 9, of a column that is not integer")
    if hasattr(column, "kind"):
        _refuse_times(column)
    _check_tail(column)
    object.__setattr__(column, "round", _ladder(column.round))
    if column.clip is not None:
        if not is_number(column.clip) or not column.lower < column.clip <= column.upper:
            checks.refuse(f"clip must be a number above lower and at most upper, not {quoted_value(column.clip)}")
        object.__setattr__(
            column, "clip", int(column.clip) if column.integer and column.clip == int(column.clip) else column.clip
        )
        if column.integer and not is_whole(column.clip):
            checks.refuse("clip of an integer column must be a whole number")
    if column.sums is not None and column.clip is None:
        checks.refuse("sums needs clip, the number above which values count as it")
    for key in ("sums", "places"):
        value = getattr(column, key)
        if value is not None and (not is_number(value) or not 0 <= value < 0.5):
            checks.refuse(f"{key} must be a number from 0 to below .5, not {quoted_value(value)}")
    heaps: tuple[Any, ...] = checks.items("heaps", column.heaps)
    if len(heaps) > MOST_STEPS or not all(is_number(n) and n >= 1 and n == math.floor(n) for n in heaps):
        checks.refuse(f"heaps must be at most {MOST_STEPS} whole numbers of which values are multiples")
    if any(a <= b for a, b in pairwise(heaps)):
        checks.refuse("heaps must descend: the largest multiple comes first")
    object.__setattr__(column, "heaps", tuple(map(int, heaps)))


def narrowed(column: Numeric, first: int, last: int) -> dict[str, Any]:
    """Return a dict, key of drawing -> value: changes for a numeric column with only bins `first` to `last`."""
    keys: dict[str, Any] = {}
    if column.shape == PARETO and not _is_above_zero(column, first, last):
        keys = {"shape": LOG, "tail": None}
    if column.clip is not None:
        lower, upper = column.extents[first][0], column.extents[last][1]
        keys |= {"clip": min(column.clip, upper)} if column.clip > lower else {"clip": None, "sums": None}
    return keys


def _refuse_times(column: Numeric) -> None:
    """Raise SchemaError for keys of drawing for amounts alone, in a numeric column of dates, times or durations."""
    if column.shape == PARETO:
        checks.refuse('shape "pareto" is of amounts; dates, times and durations are "even", "log" or "smooth"')
    for key in ("clip", "heaps", "round"):
        if (value := getattr(column, key)) is not None and (not isinstance(value, list | tuple) or value):
            checks.refuse(f"{key} is of amounts; dates, times and durations have none")


def _check_tail(column: Numeric) -> None:
    """Raise SchemaError for a numeric column's `tail` of no two slopes, no Pareto shape, or a last bin not above 0."""
    if column.shape != PARETO:
        if column.tail is not None:
            checks.refuse('tail needs shape = "pareto"')
        return
    if column.tail is not None:
        ends: tuple[Any, ...] = checks.items("tail", column.tail)
        if len(ends) != 2 or not all(is_number(a) and 0 < a <= STEEPEST for a in ends) or ends[0] > ends[1]:
            checks.refuse(f"tail must be the smallest and the largest slope, two numbers above 0, at most {STEEPEST:g}")
        object.__setattr__(column, "tail", tuple(map(float, ends)))
    if not _is_above_zero(column, 0, len(column.extents) - 1):
        checks.refuse('shape "pareto" needs a last bin above 0; give edges, or bins, above 0')


def _is_above_zero(column: Numeric, first: int, last: int) -> bool:
    """True if, of a numeric column's bins `first` to `last` (indices), the last that is no spike starts above 0."""
    starts = [low for low, _ in column.extents[first : last + 1] if low not in column.spikes]
    return bool(starts) and starts[-1] > 0


def _ladder(value: object) -> tuple[tuple[float, float], ...]:
    """Return a tuple of the pairs (size, unit) in `value`, the key `round`; SchemaError for others or not ascending."""
    pairs: list[tuple[Any, ...]] = [tuple(pair) if is_list(pair) else () for pair in checks.items("round", value)]
    sound = len(pairs) <= MOST_STEPS and all(len(pair) == 2 and all(map(is_number, pair)) for pair in pairs)
    if not sound or any(size < 0 or not 0 < unit < 1e15 for size, unit in pairs):
        checks.refuse(f"round must be at most {MOST_STEPS} pairs of a size, 0 or more, and a unit above 0: [[0, 10]]")
    if any(a[0] >= b[0] or a[1] >= b[1] for a, b in pairwise(pairs)):
        checks.refuse("round must ascend: larger sizes have larger units")
    return tuple((_plain(size), _plain(unit)) for size, unit in pairs)


def _plain(number: float) -> float:
    return int(number) if float(number).is_integer() else float(number)
