"""Amounts that add up: the first row's, the sum of the others', and each row's part of what is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.linked.roles import ALL, FIRST, SHARE, CountRole, LinkRoles, SumRole, extent
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.adapters.linked.limits import OpenParents
    from stratsynth.models import Codes

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]

WIDE = 3.0
"""Numbers in a range whose end is more than this times its positive start lie evenly on the logarithmic scale."""
OPEN = 2.0
"""End of a range without one, as a multiple of its start."""
LEAST = 1e-6
"""Smallest part that a row without all of it leaves of a sum of numbers with any number of decimals."""


@dataclass(frozen=True, eq=False)
class Amounts:
    """Numbers of the summed column, for roles that have one."""

    roles: LinkRoles

    @property
    def _summed(self) -> SumRole:
        assert self.roles.summed is not None  # noqa: S101 - the callers looked
        return self.roles.summed

    @property
    def _column(self) -> Numeric:
        return self.roles.number(self._summed.of)

    @property
    def _total(self) -> Numeric:
        column = self.roles.parent.column(self._summed.column)
        assert isinstance(column, Numeric)  # noqa: S101 - the linked schema wants it
        return column

    def band(self, totals: Floats) -> Ints:
        """Return an array of codes, those of `totals` in the parent's column, at most those of outer bins."""
        codes = np.searchsorted(np.asarray(self._total.breaks, np.float64), totals, side="right") - 1
        found: Ints = np.clip(codes, 0, len(self._total.extents) - 1)
        return found

    def rounded(self, numbers: NDArray[Any]) -> Floats:
        """Return an array of sums of the column's numbers without what adding floating-point numbers leaves behind."""
        digits = self._column.digits
        found = np.asarray(numbers, np.float64)
        return found if digits is None or self._column.integer else np.round(found, digits)

    def shared(
        self, parent: Codes, own: Floats, rest: Ints, rng: Generator, usual: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return two arrays: first rows' numbers and sums of the others', both and their sums in the bands of `parent`.

        `parent` is column -> codes. `own` are numbers of the first row, which stay where they can; `rest` is the number
        of other rows. `usual` is the share of each of the column's bins among these: sums are spread in a band as
        single numbers are. Where no numbers fit, each of the two is in its own band and the sum is in another one. NaN
        for no number.
        """
        if SHARE not in parent:  # nothing is known of the others
            return own, np.full(len(own), np.nan)
        code, ends = parent[SHARE].astype(np.intp), self._summed.ends
        nothing = (rest == 0) | (code > len(ends))
        low, end = (np.where(nothing, 0.0, each[np.minimum(code, len(ends))]) for each in extent(ends))
        high = np.where(nothing, 0.0, below(end, self._column))
        total = np.asarray(self._total.extents, np.float64)[np.minimum(parent[self._summed.column], self._bins - 1)]
        # sums beyond the bounds are in the first and the last bin
        least = np.where(total[:, 0] <= self._total.lower, -np.inf, total[:, 0])
        most = np.where(total[:, 1] >= self._total.upper, np.inf, total[:, 1])
        none = np.isnan(own)
        bins = np.asarray(self._column.extents, np.float64)
        mine = bins[np.minimum(parent[FIRST + self._summed.of], len(bins) - 1)]
        start = np.maximum(np.where(none, 0.0, mine[:, 0]), least - high)
        stop = np.minimum(np.where(none, 0.0, mine[:, 1]), most - low)
        value = np.where(none, 0.0, own)
        move = ((value < start) | (value > stop)) & (start <= stop)
        value[move] = self.rounded(between(start[move], stop[move], unit_of(self._column), rng))
        first, last = np.maximum(low, least - value), np.minimum(high, most - value)
        fits = first <= last
        left = self._within(np.where(fits, first, low), np.where(fits, last, high), rest, rng, usual)
        return np.where(none, np.nan, value), left

    @property
    def _bins(self) -> int:
        return len(self._total.extents)

    def _within(self, low: Floats, high: Floats, rest: Ints, rng: Generator, usual: Floats | None) -> Floats:
        """Return an array of sums from `low` to `high`; a side without an end gets one by what `rest` rows can have.

        Of several bins in that range, one is drawn by the shares `usual`, each as far as it lies in the range.
        """
        column, rows = self._column, np.maximum(rest, 1)
        low = np.where(np.isinf(low), np.minimum(column.lower * rows, high), low)
        high = np.where(np.isinf(high), np.clip(low * OPEN, low, np.maximum(column.upper * rows, low)), high)
        if usual is not None and len(low):
            bins, unit = np.asarray(column.extents, np.float64), unit_of(column) or LEAST
            start, stop = np.maximum(low[:, None], bins[:, 0]), np.minimum(high[:, None], bins[:, 1])
            weights = np.maximum(stop - start + unit, 0.0) / (bins[:, 1] - bins[:, 0] + unit) * usual[: len(bins)]
            weights = np.where(start <= stop, weights, 0.0)
            total = weights.cumsum(axis=1)
            chosen = (rng.random(len(low))[:, None] * total[:, -1:] >= total).sum(axis=1)
            some = np.flatnonzero((total[:, -1] > 0) & (chosen < len(bins)))
            low, high = low.copy(), high.copy()
            low[some], high[some] = start[some, chosen[some]], stop[some, chosen[some]]
        return self.rounded(between(low, high, unit_of(self._column), rng))

    def take(self, values: Floats, codes: Codes, now: OpenParents, rng: Generator) -> None:
        """Change `values`, numbers of the summed column, in place: all that is left, or less, drawn by `rng`.

        `codes` are those of the same child rows by column, `now` the `OpenParents` before them.
        """
        real = ~np.isnan(values)
        if ALL in codes:
            everything = real & (codes[ALL] == 1)
        else:  # the model says nothing of it, but the last row's bin is that of what is left
            met = self.roles.meets(CountRole(where=self.roles.condition), codes, len(real)) & bool(self.roles.condition)
            inside = codes_left(self._column, now.left)[0] == codes[self._summed.of]
            everything = real & (now.others == 1) & ~met & inside
        values[everything] = now.left[everything]
        low = np.asarray(self._column.extents, np.float64)[
            np.minimum(codes[self._summed.of], len(self._column.extents) - 1), 0
        ]
        high = now.left - (unit_of(self._column) or LEAST)
        more = real & ~everything & (now.left > 0) & (values > high) & (low <= high)
        values[more] = self.rounded(between(low[more], high[more], unit_of(self._column), rng))


def codes_left(column: Numeric, left: Floats) -> NDArray[np.intp]:
    """Return an array (2, rows): the code of a numeric column's bin that holds `left` or -1, and the sign of it."""
    breaks = np.asarray(column.breaks, np.float64)
    code = np.clip(np.searchsorted(breaks, left, side="right") - 1, 0, len(column.extents) - 1)
    inside = (left >= column.lower) & (left <= column.upper)
    return np.stack([np.where(inside, code, -1), np.sign(np.nan_to_num(left)).astype(np.intp)]).astype(np.intp)


def unit_of(column: Numeric) -> float:
    """Return the distance of two numbers of a numeric column: 1 for whole ones, that of its decimals; 0 without any."""
    return 1.0 if column.integer else 0.0 if column.digits is None else 10.0**-column.digits


def below(end: Floats, column: Numeric) -> Floats:
    """Return an array, the largest number of a numeric column below each of the ends `end`; infinite where that is."""
    unit = unit_of(column)
    found: Floats = end - unit if unit else np.where(np.isinf(end), end, np.nextafter(end, -np.inf))
    return found


def between(low: Floats, high: Floats, unit: float, rng: Generator) -> Floats:
    """Return an array of numbers by `rng` from `low` to `high`, both included, in wide ranges above 0 evenly by log.

    They are multiples of `unit`; with unit 0 any numbers.
    """
    share = rng.random(len(low))
    found = low + share * (high - low + unit)
    wide = (low > 0) & (high > WIDE * low)
    found[wide] = low[wide] * ((high[wide] + unit) / low[wide]) ** share[wide]
    return np.clip(np.floor(found / unit) * unit if unit else found, low, high)
