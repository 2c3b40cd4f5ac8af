"""Gap of decisions between groups: its multipliers, which a fit steers, and its measurement with a stated level.

Rates are shares of a group's records that are predicted as the target's second level; for equalized odds there is one
for each true class. A contrast is a difference of rates: of the two groups, or of each of several groups and everybody.
Arrays have the axes true class (one, for parity) and group, or true class and contrast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MEMORY = 0.9
"""Part of the past in the mean of noisy contrasts that multipliers follow."""
PACE, PACE_WITH_GROUP = 0.1, 0.05
"""Movement of a multiplier by a contrast of 1 above its bound; the smaller one where a group's column is a feature."""
LEVEL = 0.95
"""Probability with which all intervals of differences between two groups hold at once."""
CLEAR = 10.0
"""Number of standard deviations of its noise that a group's count is at least, where its rate has an interval."""
PAIR = 2
"""Number of groups whose rates are compared with one another; each of several is compared with everybody's."""


def contrasts(shares: Floats) -> Floats:
    """Return an array, contrasts x groups: the weights of the groups' rates in each contrast.

    `shares` is an array of the groups' shares within one true class. Of two groups there is one contrast, their
    difference; of more one each, its rate less everybody's.
    """
    if len(shares) == PAIR:
        return np.array([[1.0, -1.0]])
    found: Floats = np.eye(len(shares)) - shares
    return found


@dataclass
class Steering:
    """Multipliers of all contrasts: m <- max(0, m + pace (contrast - bound)), one for each sign of it.

    Contrasts are means of noisy ones, with the weights of `MEMORY`. A noise of mean 0 moves no multiplier for long, as
    both of a contrast's follow it with opposite signs. Of several groups, those of a group move at the pace times the
    root of its share: a unit of it weighs a record by one over the share, and small groups' would overshoot.
    """

    bounds: Floats
    """Largest wanted size of a contrast, an entry a true class."""
    pace: float
    records: Floats
    """Expected records of each cell in a step: true class x group."""
    weights: Floats = field(init=False)
    """Weights of rates: true class x contrast x group."""
    paces: Floats = field(init=False)
    """Movement of each multiplier by a contrast of 1 above its bound: true class x contrast."""

    def __post_init__(self) -> None:
        """Set multipliers and mean contrasts to 0."""
        shares = self.records / self.records.sum(axis=1, keepdims=True)
        self.weights = np.array([contrasts(line) for line in shares])
        several = self.records.shape[1] != PAIR
        self.paces = self.pace * (np.sqrt(shares) if several else np.ones(self.weights.shape[:2]))
        self.upper, self.lower = np.zeros(self.weights.shape[:2]), np.zeros(self.weights.shape[:2])
        self.mean = np.zeros_like(self.upper)

    @property
    def multipliers(self) -> Floats:
        """Array of signed multipliers: true class x contrast."""
        found: Floats = self.upper - self.lower
        return found

    @property
    def slopes(self) -> Floats:
        """Array, group x true class, of derivatives of multipliers x contrasts by a row's chance of the second level.

        They are times the number of records, as the loss is a sum over rows.
        """
        whole = np.einsum("yk,ykg->yg", self.multipliers, self.weights)
        found: Floats = (whole * self.records.sum(axis=-1, keepdims=True) / self.records).T
        return found

    def step(self, positive: Floats) -> None:
        """Move the multipliers by `positive`, an array true class x group.

        It has the noisy numbers of records that are predicted as the second level.
        """
        here = np.einsum("ykg,yg->yk", self.weights, positive / self.records)
        self.mean = MEMORY * self.mean + (1 - MEMORY) * here
        self.upper = np.maximum(0, self.upper + self.paces * (self.mean - self.bounds[:, None]))
        self.lower = np.maximum(0, self.lower - self.paces * (self.mean + self.bounds[:, None]))


def aims(wanted: float, records: Floats, sigma: float) -> Floats:
    """Return an array of bounds of contrasts, an entry a true class, that multipliers aim at for a wanted gap.

    Of two groups, the wanted gap less half the reach of the interval that it will be measured with, and at least half
    of it; of several, half of it, as each is compared with everybody and two of them may lie on both sides.

    Args:
        wanted: Largest wanted gap.
        records: Array of expected records of each cell, true class x group.
        sigma: Standard deviation of the noise in each number of decisions that the measurement has.
    """
    if records.shape[1] != PAIR:
        return np.full(len(records), wanted / 2)
    return np.array([aim_of_pair(wanted, pair, sigma, len(records)) for pair in records])


def aim_of_pair(wanted: float, records: Floats, sigma: float, intervals: int) -> float:
    """Return the gap of two groups to aim at: the wanted one less half the reach of one of so many `intervals`.

    It is at least half of the wanted gap. `records` is an array of the two groups' sizes, `sigma` the noise of a count.
    """
    # at a rate of one half, where the noise of a rate is least; it is up to sqrt(2) times that
    noise = sigma * math.sqrt(0.5) * math.hypot(*(1 / records))
    return max(wanted / 2, wanted - _quantile(intervals) * noise / 2)


def _quantile(intervals: int) -> float:
    """Return the normal quantile of so many intervals that hold at `LEVEL` together."""
    return NormalDist().inv_cdf(1 - (1 - LEVEL) / (2 * intervals))


@dataclass(frozen=True)
class MeasuredGap:
    """Largest difference of two groups' rates of the published model, by noisy counts of its own decisions."""

    value: float | None
    """Noisy gap; None where no pair of groups has counts that are clear of their noise."""
    noise: float | None
    """Standard deviation of the noise in it."""
    low: float
    """Lower end of the interval at `LEVEL`."""
    high: float
    """Upper end."""

    @classmethod
    def of(cls, counts: Floats, sigma: float) -> MeasuredGap:
        """Return the `MeasuredGap` of noisy `counts`, an array true class x group x decision.

        Each count has noise of deviation `sigma`; without a group whose count is clear of it, value and noise are None.
        """
        sizes = counts.sum(axis=-1)
        clear = sizes >= CLEAR * sigma * math.sqrt(2)
        safe = np.where(clear, sizes, 1.0)
        rates = np.clip(counts[..., 1] / safe, 0, 1)
        # a rate is S / (S + S'), each with noise: its derivatives by them are (1 - rate) and -rate over the size
        spread = np.where(clear, sigma * np.hypot(1 - rates, rates) / safe, np.inf)
        first, second = np.triu_indices(counts.shape[1], 1)
        apart = np.abs(rates[:, first] - rates[:, second]).ravel()
        noise = np.hypot(spread[:, first], spread[:, second]).ravel()
        reach = _quantile(len(apart)) * noise
        low, high = float(max(0, *(apart - reach))), float(min(1, max(apart + reach)))
        known = np.isfinite(noise)
        if not known.any():
            return cls(None, None, low, high)
        most = int(np.where(known, apart, -1).argmax())
        return cls(float(apart[most]), float(noise[most]), low, high)

    def status(self, wanted: float) -> str:
        """Return `met` if all of the interval is at most `wanted`, `missed` if all is above, else `not to be told`."""
        if self.high <= wanted:
            return "met"
        return "missed" if self.low > wanted else "not to be told"

    def stated(self, wanted: float, criterion: str) -> dict[str, Any]:
        """Return a dict of JSON values for a certificate: the gap beside the wanted one, by its criterion.

        Keys: criterion, wanted, measured, noise, low, high, level, status.
        """
        return {
            "criterion": criterion,
            "wanted": wanted,
            "measured": self.value,
            "noise": self.noise,
            "low": self.low,
            "high": self.high,
            "level": LEVEL,
            "status": self.status(wanted),
        }
