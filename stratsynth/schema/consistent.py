"""Rules that follow from the meaning of counted columns: combinations of levels that no numbers have.

    difference   the band before, the band of the difference and the bin of the number, of a child row
    total        the total, the reference's number and the band of the others' sum, of a parent
    left         the band of what is left, whether a row has all of it, and the bin of its number

Without them a model knows these columns by noisy tables alone, and draws parents that cannot be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from stratsynth.schema.columns import Numeric
from stratsynth.schema.rules import Rule

if TYPE_CHECKING:
    from stratsynth.schema.bands import Bands
    from stratsynth.schema.columns import Column

Spans = Mapping[str, tuple[float, float] | None]
"""Smallest and largest number of each level; None for a level without a number."""


def spans_of(column: Column, *, nothing: float | None = None, beyond: bool = False) -> Spans:
    """Return a dict from level of a numeric column to (low, high), the numbers in it; None for a level without.

    Args:
        column: The column.
        nothing: The number that a level without one stands for; None for none.
        beyond: True if the first and last bin hold all numbers beyond the bounds.
    """
    assert isinstance(column, Numeric)  # noqa: S101 - checked by the linked schema
    none = None if nothing is None else (nothing, nothing)
    found: dict[str, tuple[float, float] | None] = dict.fromkeys(column.all_levels, none)
    for level, (low, top) in zip(column.all_levels, column.extents, strict=False):
        outer = low <= column.lower, top >= column.upper
        found[level] = (-math.inf if beyond and outer[0] else low, math.inf if beyond and outer[1] else top)
    return found


def spans_between(bands: Bands, column: Column, *, bounded: bool = False) -> Spans:
    """Return a dict from band's name to (low, high), None for no numbers; whole ones end before the next band.

    If `bounded`, the outer bands end at the column's bounds.
    """
    assert isinstance(column, Numeric)  # noqa: S101 - checked by the linked schema
    found: dict[str, tuple[float, float] | None] = dict.fromkeys(bands.levels)
    for code in range(len(bands.ends) + 1):
        low, end = bands.extent(code)
        top = end - 1 if column.integer else math.nextafter(end, -math.inf)
        found[bands.levels[code]] = (max(low, column.lower), min(top, column.upper)) if bounded else (low, top)
    return found


def rules_where(
    columns: tuple[str, str, str], spans: tuple[Spans, Spans, Spans], fits: Callable[..., bool]
) -> Iterator[Rule]:
    """Yield each `Rule` against levels of three `columns` whose spans of numbers, in dicts by level, `fits` refuses."""
    one, two, three = columns
    for second, its in spans[1].items():
        groups: dict[tuple[str, ...], list[str]] = {}
        for first, own in spans[0].items():
            never = tuple(third for third, number in spans[2].items() if not fits(own, its, number))
            if never:
                groups.setdefault(never, []).append(first)
        for never, levels in groups.items():
            yield Rule(when={one: tuple(levels), two: second}, never={three: never})


Span = tuple[float, float] | None


def differs(before: Span, apart: Span, number: Span) -> bool:
    """True if `number` less `before` can lie in `apart`, each (low, high); with either None, if `apart` is None too."""
    if before is None or number is None or apart is None:
        return (before is None or number is None) and apart is None
    return max(apart[0], number[0] - before[1]) <= min(apart[1], number[1] - before[0])


def adds_up(total: Span, own: Span, rest: Span) -> bool:
    """True if some numbers in `own` and `rest` add up to one in `total`; each is (low, high), False for a None."""
    if total is None or own is None or rest is None:
        return False
    return max(total[0], own[0] + rest[0]) <= min(total[1], own[1] + rest[1])


def takes(left: Span, everything: Span, own: Span) -> bool:
    """True if `own` can be `left`, for `everything` (1, 1), or can differ, for (0, 0); each (low, high) or None."""
    if left is None or everything is None or own is None:
        return False
    if everything == (1, 1):
        return max(left[0], own[0]) <= min(left[1], own[1])
    return not left[0] == left[1] == own[0] == own[1]
