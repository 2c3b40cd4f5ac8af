"""Intervals by inverting tests: the values that noise, or noise and sampling, would not make look unlikely.

For a count, a test of the value c compares |estimate - c| with its standard deviation. For a quotient r = a / b, such
as a share or a mean, it compares |a - r b| with its own (Fieller 1954), which is linear in the measurements: the level
holds for any size of the denominator, and if the denominator may be 0 given its noise, there is no bounded interval.
The sampling error is that of the value tested (Wilson 1927), so that it does not vanish with a count that happens to
look like 0. Both give a quadratic inequality.

Rows are treated as a random sample of a population of the same composition; `effect` bounds the factor by which several
rows of one unit, or weights of rows, can widen the sampling variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

COARSE = 3.0
"""Standard deviation, in records, below which a count's interval is widened to whole numbers."""

ROUNDING = 1e-12
"""Largest relative size of a difference that is rounding error."""
SURE = 3.0
"""Standard deviations of noise that a denominator must exceed 0 by; below, its quotients are unknown."""

FIGURES = ("estimate", "noise_sd", "noise_low", "noise_high", "low", "high")
"""Numbers of an Answer, in order."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Estimates with noise standard deviation and two intervals: of noise, of noise and sampling; NaN if unknown."""

    estimate: Floats
    noise_sd: Floats
    noise_low: Floats
    noise_high: Floats
    low: Floats
    high: Floats
    measured: NDArray[np.bool_]
    """Mask of cells that measured tables cover; a covered cell without an estimate is hidden by noise."""
    bounded: NDArray[np.bool_]
    """Mask of intervals that also allow for what was not measured, such as the place of numbers within their bin."""
    above: Floats
    """Largest amount that numbers above a column's clip may add to its mean; NaN of other means and statistics."""
    point: Floats
    """Mean of numbers as they are drawn, where bins are too wide for an interval; NaN elsewhere."""

    def take(self, cells: slice | NDArray[np.intp]) -> Answer:
        """Return an Answer with this one's entries for some `cells`: a slice, or an array of their indices."""
        return Answer(*(array[cells] for array in vars(self).values()))

    def where(self, mask: NDArray[np.bool_], other: Answer) -> Answer:
        """Return an Answer with entries of `other` in the cells where `mask`, an array, is true, else this one's."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Answer(*(np.where(mask, theirs, own) for own, theirs in pairs))

    def without(self, mask: NDArray[np.bool_]) -> Answer:
        """Return this Answer with NaN for estimates and intervals where `mask`, an array, is true; `measured` stays."""
        return self.where(mask, replace(unknown(len(mask)), measured=self.measured))


def unknown(number: int) -> Answer:
    """Return an Answer of `number` cells that nothing covers: NaN, none measured."""
    nothing, none = np.full(number, np.nan), np.zeros(number, dtype=bool)
    return Answer(nothing, nothing, nothing, nothing, nothing, nothing, none, none, nothing, nothing)


def quantile_of(level: float) -> float:
    """Return the normal quantile z with P(|Z| <= z) = `level`; 1.96 for 0.95."""
    return NormalDist().inv_cdf((1 + level) / 2)


def counts(value: Floats, variance: Floats, rows: float, level: float, effect: float) -> Answer:
    """Return the Answer on noisy counts: arrays `value` and `variance`, of noise (NaN: unknown), among `rows` records.

    `level` is the probability of both intervals; `effect` is a factor on the sampling variance.
    """
    z, sd = quantile_of(level), np.sqrt(variance)
    low, high = value - z * sd, value + z * sd
    coarse = sd < COARSE  # counts and their discrete noise are integers
    low, high = np.where(coarse, np.floor(low), low), np.where(coarse, np.ceil(high), high)
    # (c - value)^2 <= z^2 (variance + effect c (1 - c / rows))
    square = 1 + z**2 * effect / max(rows, 1.0)
    ends = _between(square, value + z**2 * effect / 2, value**2 - z**2 * variance)
    ends = np.where(np.isnan(ends[0]), low, ends[0]), np.where(np.isnan(ends[1]), high, ends[1])  # no real root
    return _answer(value, sd, (low, high), ends, np.isfinite(variance))


@dataclass(frozen=True, eq=False)
class RatioOfSums:
    """Quotients a / b of noisy sums: the sums, their noise covariances, and what the sampling error needs."""

    a: Floats
    b: Floats
    variance_a: Floats
    covariance: Floats
    variance_b: Floats
    scatter: Floats
    """Sum over the rows of the squared distance of their number from the quotient."""
    share: bool
    """True if `a` counts a subset of the rows in `b`."""
    most: Floats | float = np.inf
    """Upper bound on `b` from public sizes."""

    @property
    def value(self) -> Floats:
        """Array of quotients a / b; NaN if b is not above 0."""
        return np.divide(self.a, self.b, out=np.full_like(self.a, np.nan), where=self.b > 0)

    @property
    def variance(self) -> Floats:
        """Array: noise variance of each quotient, to first order in the noise."""
        r = self.value
        spread = self.variance_a - 2 * r * self.covariance + r**2 * self.variance_b
        return np.maximum(spread, 0.0) / self.b**2

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Mask of denominators far from 0, both as measured and by their public bound.

        Denominators near 0 would get an interval only if noise made them look larger, and these intervals would hold
        too seldom. A public size excludes them independently of the noise.
        """
        return np.asarray(np.minimum(self.b, self.most) > SURE * np.sqrt(self.variance_b))

    @property
    def sampling(self) -> Floats:
        """Array: sampling variance of each quotient, for independent rows of weight 1."""
        return np.maximum(self.scatter, 0.0) / self.b**2

    def answer(self, level: float, effect: float) -> Answer:
        """Return the Answer on these quotients, one a cell, with two intervals of probability `level`.

        `effect` is a factor on the sampling variance.
        """
        from scipy.special import stdtrit

        z2 = quantile_of(level) ** 2
        square = self.b**2 - z2 * self.variance_b
        linear = self.a * self.b - z2 * self.covariance
        constant = self.a**2 - z2 * self.variance_a
        square = np.where(self.sure, square, np.nan)
        noise = _between(square, linear, constant)
        rows = z2 * effect * np.maximum(self.b, 0.0)
        if self.share:  # a - r b has the sampling variance b r (1 - r)
            both = _between(square + rows, linear + rows / 2, constant)
        else:
            # few numbers estimate their own spread poorly: Student's quantile replaces the normal one
            t2 = stdtrit(np.maximum(self.b - 1, 1.0), (1 + level) / 2) ** 2
            both = _between(square, linear, constant - t2 * effect * self.b**2 * self.sampling)
        return _answer(self.value, np.sqrt(self.variance), noise, both, np.isfinite(self.variance_a + self.variance_b))


@dataclass(frozen=True, eq=False)
class ErrorCorrelations:
    """Correlations in [-1, 1] of each estimate's error with the error of the estimate it is compared with."""

    noise: Floats
    both: Floats
    """Correlations of the sums of noise and sampling error."""


def difference(answer: Answer, other: Answer, same: NDArray[np.bool_], correlated: ErrorCorrelations) -> Answer:
    """Return an Answer: estimates of `answer` minus those of `other`, both intervals combined (Zou and Donner 2008).

    With ends l, u of one and m, v of the other interval, estimates x and y, and r of the `ErrorCorrelations`, the lower
    end is x - y - sqrt((x - l)^2 + (v - y)^2 - 2 r (x - l) (v - y)), and the upper end likewise: normal intervals give
    the usual interval, and skewed ones stay skewed. Where the mask `same` is true, the difference is exactly 0.
    """
    x, y = answer.estimate, other.estimate

    def ends(one: tuple[Floats, Floats], two: tuple[Floats, Floats], r: Floats) -> tuple[Floats, Floats]:
        def far(a: Floats, b: Floats) -> Floats:
            found = np.sqrt(np.maximum(a**2 + b**2 - 2 * r * a * b, 0.0))
            return np.where(same, 0.0 * found, found)

        return x - y - far(x - one[0], two[1] - y), x - y + far(one[1] - x, y - two[0])

    sd, theirs = answer.noise_sd, other.noise_sd
    spread = np.sqrt(np.maximum(sd**2 + theirs**2 - 2 * correlated.noise * sd * theirs, 0.0))
    noise, both = (
        ends((answer.noise_low, answer.noise_high), (other.noise_low, other.noise_high), correlated.noise),
        ends((answer.low, answer.high), (other.low, other.high), correlated.both),
    )
    return _answer(x - y, np.where(same, 0.0 * sd, spread), noise, both, answer.measured & other.measured)


def _between(square: Floats | float, linear: Floats, constant: Floats) -> tuple[Floats, Floats]:
    """Return two arrays: lower and upper ends of the x with `square` x^2 - 2 `linear` x + `constant` <= 0.

    The three are arrays, read entry by entry, of which `square` may be one number. NaN if there is no bound.
    """
    square = np.broadcast_to(np.asarray(square, dtype=np.float64), linear.shape)
    inside = linear**2 - square * constant
    sound = (square > 0) & (inside >= -ROUNDING * linear**2)
    root = np.sqrt(np.where(sound, np.maximum(inside, 0.0), np.nan))
    below = np.where(sound, square, np.nan)
    return (linear - root) / below, (linear + root) / below


def _answer(
    value: Floats, sd: Floats, noise: tuple[Floats, Floats], both: tuple[Floats, Floats], measured: NDArray[np.bool_]
) -> Answer:
    """Return an Answer on arrays, `value` and its noise's deviation `sd`, with two intervals: `noise`, and `both`.

    Each is a pair of arrays, ends; `both` (with sampling) is widened to hold `noise`. NaN if unknown. `measured` is a
    mask.
    """
    known = np.isfinite(value) & np.isfinite(noise[0]) & np.isfinite(both[0])
    low, high = np.minimum(both[0], noise[0]), np.maximum(both[1], noise[1])
    parts = [np.where(known, part, np.nan) for part in (value, sd, *noise, low, high)]
    return replace(unknown(len(value)), **dict(zip(FIGURES, parts, strict=True)), measured=measured)
