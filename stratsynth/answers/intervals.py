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

from dataclasses import dataclass
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


def quantile_of(level: float) -> float:
    """Return the normal quantile z with P(|Z| <= z) = level; 1.96 for 0.95."""
    return NormalDist().inv_cdf((1 + level) / 2)


def counts(value: Floats, variance: Floats, rows: float, level: float, effect: float) -> Answer:
    """Return the Answer on counts `value` of noise `variance`, of about `rows` records, at probability `level`.

    `effect` widens the sampling error.
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
    squares: Floats
    """Sum of squares of the rows' contributions to `a`; for a share, `a` itself."""
    share: bool
    """True if `a` counts a subset of the rows in `b`."""
    most: Floats | float = np.inf
    """Upper bound on `b` from public sizes."""

    @property
    def value(self) -> Floats:
        """Quotient a / b; NaN if b is not above 0."""
        return np.divide(self.a, self.b, out=np.full_like(self.a, np.nan), where=self.b > 0)

    @property
    def variance(self) -> Floats:
        """Noise variance of the quotient, to first order in the noise."""
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
        """Sampling variance of the quotient, for independent rows of weight 1."""
        r = self.value
        squares = self.a if self.share else self.squares
        return np.maximum(squares - 2 * r * self.a + r**2 * self.b, 0.0) / self.b**2

    def answer(self, level: float, effect: float) -> Answer:
        """Return the quotients with intervals of probability `level`; `effect` widens the sampling variance."""
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


def difference(answer: Answer, reference: NDArray[np.intp], correlated: ErrorCorrelations) -> Answer:
    """Return an Answer: each estimate minus number `reference`, both intervals combined by their `correlated` errors.

    With ends l, u of one and m, v of the other interval, estimates x and y, and r the correlation of the errors, the
    lower end is x - y - sqrt((x - l)^2 + (v - y)^2 - 2 r (x - l) (v - y)), and the upper end likewise: normal intervals
    give the usual interval, and skewed ones stay skewed.
    """
    x, y = answer.estimate, answer.estimate[reference]
    same = np.arange(len(x)) == reference

    def ends(low: Floats, high: Floats, r: Floats) -> tuple[Floats, Floats]:
        def far(one: Floats, other: Floats) -> Floats:
            found = np.sqrt(np.maximum(one**2 + other**2 - 2 * r * one * other, 0.0))
            return np.where(same, 0.0 * found, found)

        return x - y - far(x - low, high[reference] - y), x - y + far(high - x, y - low[reference])

    sd, other = answer.noise_sd, answer.noise_sd[reference]
    spread = np.where(same, 0.0 * sd, np.sqrt(np.maximum(sd**2 + other**2 - 2 * correlated.noise * sd * other, 0.0)))
    noise = ends(answer.noise_low, answer.noise_high, correlated.noise)
    both = ends(answer.low, answer.high, correlated.both)
    return _answer(x - y, spread, noise, both, answer.measured & answer.measured[reference])


def _between(square: Floats | float, linear: Floats, constant: Floats) -> tuple[Floats, Floats]:
    """Return (lower, upper) ends of the x with square x^2 - 2 linear x + constant <= 0; NaN if there is no bound."""
    square = np.broadcast_to(np.asarray(square, dtype=np.float64), linear.shape)
    inside = linear**2 - square * constant
    sound = (square > 0) & (inside >= -ROUNDING * linear**2)
    root = np.sqrt(np.where(sound, np.maximum(inside, 0.0), np.nan))
    below = np.where(sound, square, np.nan)
    return (linear - root) / below, (linear + root) / below


def _answer(
    value: Floats, sd: Floats, noise: tuple[Floats, Floats], both: tuple[Floats, Floats], measured: NDArray[np.bool_]
) -> Answer:
    """Return an Answer on `value` of noise `sd`, `both` widened to hold `noise`, and the mask `measured`.

    NaN if unknown.
    """
    known = np.isfinite(value) & np.isfinite(noise[0]) & np.isfinite(both[0])
    low, high = np.minimum(both[0], noise[0]), np.maximum(both[1], noise[1])
    parts = [np.where(known, part, np.nan) for part in (value, sd, *noise, low, high)]
    return Answer(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], measured)
