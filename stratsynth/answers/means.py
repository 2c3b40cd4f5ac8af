"""Means of numbers, in three ways, each with the noise of the sum and of the number of rows in its interval.

Where every bin is a single number, counts give the sum exactly. Where the release holds noisy sums of the column up to
its clip, the mean of min(x, clip) is (S + c N) / N, with c the sums' centre and N the rows by least squares, whose
noise moves the quotient by (c - mean) of its own. Otherwise a mean lies between those of the smallest and of the
largest numbers of all bins, and the interval reaches from the lower end of the one to the upper end of the other; so do
numbers of strata without a sum of their own.

No interval is given that says little: with a half width above `HALF` of the mean size of the group's numbers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from stratsynth.answers.intervals import FIGURES, SURE, Answer, unknown
from stratsynth.answers.quantiles import drawn, ends
from stratsynth.answers.quotients import QueryBatch, quotient, quotients
from stratsynth.answers.squares import Added, Functions, Interaction, Squares
from stratsynth.schema import Numeric
from stratsynth.schema.inside import middles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stratsynth.answers.clipped import ClippedSum
    from stratsynth.answers.tables import Tables

    Bools = NDArray[np.bool_]
    Cells = NDArray[np.intp]
    Floats = NDArray[np.float64]

HALF = 0.5
"""Largest half width of a mean's interval, as a part of the mean size of the group's numbers."""


def means(squares: Squares, name: str, rows: Functions, level: float, effect: float, reference: Cells | None) -> Answer:
    """Return the Answer on a numeric column's mean in each group, or on its difference from that of another group.

    Args:
        squares: Least squares of the release.
        name: The column.
        rows: `Functions`, one a group: count of the rows with a number.
        level: Probability of each interval.
        effect: Largest factor by which units of several rows, or weights, widen the sampling variance.
        reference: `Cells`, an array: index of the group that each is compared with; None for the means themselves.
    """
    ways = _Ways(squares, name, rows, level, effect)
    if ways.exact:
        found = ways.by_counts(reference)
    else:
        bounds, sums = ways.by_bins(None), ways.by_sums(None)
        fits = ways.says_enough(bounds, ways.size)
        sound = ways.says_enough(sums, np.fmax(ways.size, np.abs(sums.estimate)))
        if reference is not None:
            fits, sound = fits & fits[reference], sound & sound[reference]
            bounds, sums = ways.by_bins(reference), ways.by_sums(reference)
        found = bounds.where(sound, sums).without(~(fits | sound))
        # numbers whose size noise hides may even have a mean outside their bounds, and the model's own value stands
        wide = ~np.isfinite(found.estimate) & (ways.size > 0)
        found = replace(found, point=np.where(wide, bounds.estimate, np.nan))
    return replace(found, **{name: getattr(found, name) * ways.unit for name in (*FIGURES, "above", "point")})


class _Ways:
    """Ways to the means of one column in the same groups; numbers are in units of `unit`, as squares may overflow."""

    def __init__(self, squares: Squares, name: str, rows: Functions, level: float, effect: float) -> None:
        """Keep the arguments, those of `means`, and work out the numbers of each bin by the column and its law."""
        self.squares, self.name, self.rows, self.level, self.effect = squares, name, rows, level, effect
        self.column, law = cast("Numeric", squares.tables.schema.column(name)), squares.tables.law(name)
        found = ends(self.column)
        self.unit = 2.0 ** min(math.frexp(float(np.abs(found).max()))[1], 1023)
        """Power of two above the size of all numbers."""
        self.ends: Floats = found / self.unit
        """Array (2, bins): the smallest and the largest number of each bin, in multiples of `unit`."""
        self.exact = bool((self.ends[0] == self.ends[1]).all())
        """True if each bin is a single number."""
        self.middles: Floats = np.asarray(middles(self.column, law), dtype=np.float64) / self.unit
        """Array, one a bin: the mean of the numbers that are drawn in it, in multiples of `unit`."""
        self.drawn: Floats = drawn(self.column, law) / self.unit
        """Array (bins, places): numbers at even places of each bin, as they are drawn, in multiples of `unit`."""

    @cached_property
    def size(self) -> Floats:
        """Array: mean absolute value of each group's numbers, as drawn within bins; 0 if noise hides it.

        A size that noise alone makes large would let through intervals that the same noise has moved.
        """
        found = quotient(self.squares, QueryBatch(self._sum(np.abs(self.middles)), self.rows))
        return np.where(found.value > SURE * np.sqrt(found.variance), found.value, 0.0)

    def says_enough(self, answer: Answer, size: Floats) -> Bools:
        """Return a mask of the cells of `answer` whose noise interval is narrow enough to be shown.

        Half of it is at most HALF of `size`, the mean size of numbers.
        """
        return np.asarray((answer.noise_high - answer.noise_low) / 2 <= HALF * size)

    def by_counts(self, reference: Cells | None) -> Answer:
        """Return the Answer on this column's means in each group, of numbers as they are drawn within bins.

        With `reference`, an array of a cell's index for each, on differences from that one; in multiples of `unit`.
        """
        return self._answer(self._sum(self.middles), reference=reference)

    def by_bins(self, reference: Cells | None) -> Answer:
        """Return the Answer on means with the bounds that bins leave: numbers from all at lower to all at upper ends.

        With `reference`, an array of a cell's index for each cell, on differences from its mean.
        """
        low, top = (self._sum(end) for end in self.ends)
        return self._bounds(self._sum(self.middles), low, top, reference)

    def by_sums(self, reference: Cells | None) -> Answer:
        """Return the Answer on means of min(x, clip) by measured sums, and the most that numbers above the clip add.

        With `reference`, an array of a cell's index for each cell, on differences from its mean. Strata without a sum
        of their own that no other sums give are bounded by their bins.
        """
        number, sums = self.rows.number, sums_of(self.squares.tables, self.name, self.unit)
        if sums is None or self.column.clip is None:
            return unknown(number)
        (centre, measured), clip = sums, self.column.clip / self.unit
        inside = self.squares.strata(self.rows)
        # a sum is of all rows of whole strata
        plain = [self._counts_all(name, factor) for name, factor in self.rows.factors.items()]
        whole = np.all([*plain, ((inside == 0) | (inside == 1)).all(axis=1)], axis=0)
        lacking = inside * (measured.lacking & ~measured.estimable(inside)[:, None])
        whole &= (inside > lacking).any(axis=1)
        (low, top), beyond = self.ends, np.maximum(self.ends[1] - clip, 0.0)
        added = Added(measured, inside - lacking)

        def summed(numbers: Floats, *, above: float = 0.0) -> Functions:
            each = replace(self._sum(centre + above * beyond), added=added)
            return replace(each, more=replace(self._sum(np.minimum(numbers, clip) - centre), kept=lacking))

        ends = summed(self.drawn.mean(axis=1)), summed(low), summed(top)
        found, own = self._bounds(*ends, reference, clip), self._bounds(*ends, None, clip)
        above = np.maximum(self._answer(summed(top, above=1.0), clip).noise_high - own.noise_high, 0.0)
        if reference is not None:
            above = np.where(np.arange(number) == reference, 0.0, np.maximum(above, above[reference]))
        found = replace(found, above=above, bounded=found.bounded & (lacking > 0).any(axis=1))
        return found.without(~whole)

    def _bounds(
        self, value: Functions, low: Functions, top: Functions, reference: Cells | None, clip: float = math.inf
    ) -> Answer:
        """Return the Answer on means by sums `value`, intervals from ends by `low` to ends by `top`, all `Functions`.

        Numbers above `clip` scatter as it. With `reference`, an array of a cell's index for each cell, on differences
        from its mean.
        """
        found, least, most = (self._answer(each, clip, reference) for each in (value, low, top))
        same = np.zeros(self.rows.number, dtype=bool)
        if reference is None:  # ends that are noise would be near each other by chance alone, and then too seldom right
            size = self.size if math.isinf(clip) else np.fmax(self.size, np.abs(found.estimate))
            wide = np.where(self.says_enough(least, size) & self.says_enough(most, size), 0.0, np.inf)
        else:  # the least of one group is compared with the most of the other
            wide = np.zeros(self.rows.number)
            least, most = self._answer(low, clip, reference, top), self._answer(top, clip, reference, low)
            same = np.arange(self.rows.number) == reference  # a group's difference from itself is 0
        known = np.isfinite(found.estimate + least.estimate + most.estimate) & ~same
        widened = replace(
            found,
            noise_low=np.minimum(least.noise_low, found.estimate) - wide,
            noise_high=np.maximum(most.noise_high, found.estimate) + wide,
            low=np.minimum(least.low, found.estimate),
            high=np.maximum(most.high, found.estimate),
            bounded=np.ones(self.rows.number, dtype=bool),
        )
        return found.where(known, widened)

    def _counts_all(self, name: str, factor: Floats) -> Bools:
        """Return a mask of functions, True where `factor` (functions, levels of column `name`) counts all its levels.

        All groups, for a column that defines strata.
        """
        if name in self.squares.tables.by:
            return np.ones(self.rows.number, dtype=bool)
        levels = len(self.column.extents) if name == self.name else factor.shape[1]
        return np.asarray((factor[:, :levels] == 1).all(axis=1))

    def _sum(self, numbers: Floats) -> Functions:
        """Return `Functions`, one a group: sums over its rows of the entry of `numbers`, an array, for a row's bin."""
        each = np.zeros((1, self.column.size))
        each[0, : len(numbers)] = numbers
        return self.rows.times(self.name, each)

    def _answer(
        self, sums: Functions, clip: float = math.inf, reference: Cells | None = None, against: Functions | None = None
    ) -> Answer:
        """Return the Answer on `Functions`, sums over rows, one a group; numbers above `clip` scatter as it.

        With `reference`, an array of a cell's index for each cell, on differences from its mean, by the sums `against`
        if any.
        """
        numbers = np.minimum(self.drawn, clip)
        moments = self._sum(numbers.mean(axis=1)), self._sum((numbers**2).mean(axis=1))
        other = None if against is None else QueryBatch(against, self.rows, moments)
        return quotients(
            self.squares, QueryBatch(sums, self.rows, moments), self.level, self.effect, reference, against=other
        )


def sums_of(tables: Tables, name: str, unit: float = 1.0) -> tuple[float, Interaction] | None:
    """Return (centre, `Interaction` of measured sums of the column `name` in a release's tables); None without any.

    The sums are a copy for each stratum and one for all; both are in units of `unit`. Of sums about several centres,
    those about the most frequent one.
    """
    centres: dict[float, list[ClippedSum]] = {}
    for each in tables.sums:
        if each.column == name:
            centres.setdefault(each.centre, []).append(each)
    if not centres:
        return None
    centre, sums = max(centres.items(), key=lambda item: len(item[1]))
    of: dict[str, list[ClippedSum]] = {}
    for each in sums:
        of.setdefault(each.stratum, []).append(each)
    copies = [_average(of.get(leaf.label, ()), unit) for leaf in tables.leaves]
    values, variances = np.array([[value] for value, _ in copies]), np.array([variance for _, variance in copies])
    total, variance = _average(of.get("", ()), unit)
    if math.isinf(variance) or not tables.by:
        return centre / unit, Interaction(values, variances, None, math.inf)
    return centre / unit, Interaction.of(values, variances, np.array([total]), variance)


def _average(sums: Sequence[ClippedSum], unit: float) -> tuple[float, float]:
    """Return (average of `sums`, a list of `ClippedSum`, by inverse variance; its variance), in units of `unit`.

    (0, infinity) for none.
    """
    worth = math.fsum((unit / each.noise_sd) ** 2 for each in sums)
    if not worth:
        return 0.0, math.inf
    return math.fsum(each.value / unit * (unit / each.noise_sd) ** 2 for each in sums) / worth, 1 / worth
