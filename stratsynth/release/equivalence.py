"""Equivalence test of a measured number of records with a declared one, with a margin.

Each figure has an interval of its relative difference, measured / declared - 1. The intervals of one release hold all
at once with the stated probability (Bonferroni: each leaves out its part of what the level leaves out). A figure

    agrees             where its interval lies within the margin: two one-sided tests both reject (Schuirmann 1987)
    differs            where its interval lies beyond the margin, above or below
    is not to be told  otherwise: noise, or a difference near the margin, leaves both possible

so that all verdicts of a release are right at once, too, with that probability (Goeman, Solari and Stijnen 2010). The
records are those of the table that was fitted, not a population that they were drawn from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

MARGIN = 0.05
"""Relative difference, as a part of the declared number, that counts as none unless a recipe says otherwise."""
LEVEL = 0.95
"""Probability that all intervals of a release hold at once."""
CORRECTION = "Bonferroni"
FEW = 30
"""Number of a sample's records in a group below which nothing is told of its declared share."""
AGREES, DIFFERS, UNDECIDED, UNDECLARED = "agrees", "differs", "not to be told", "not declared"


@dataclass(frozen=True)
class Difference:
    """Relative difference of a measured from a declared number, with its interval and the verdict."""

    value: float | None
    """Measured / declared - 1; None where nothing was declared, or 0."""
    low: float | None
    high: float | None
    z: float | None
    """Measured less declared, in standard deviations of that difference; None without an error."""
    verdict: str


NOTHING_DECLARED = Difference(None, None, None, None, UNDECLARED)


@dataclass(frozen=True)
class EquivalenceTest:
    """Margin and level of all comparisons of a release, and the errors that enter them."""

    margin: float
    statements: int
    """Number of figures that are compared: everybody's if a size was declared, and each group's."""
    laplace: bool = False
    """True if some noise is Laplace, whose tails are heavier."""
    records: float | None = None
    """Number of records in which the declared shares were counted; None if unknown, when they are taken for exact."""
    level: float = LEVEL

    @cached_property
    def quantile(self) -> float:
        """Standard deviations that an error exceeds, above or below, with probability (1 - level) / statements.

        Of Laplace noise it is one variable's quantile, which a sum of several of the same variance has not beyond it.
        """
        beyond = (1 - self.level) / max(self.statements, 1)
        normal = -NormalDist().inv_cdf(beyond / 2)
        return max(normal, -math.log(beyond) / math.sqrt(2)) if self.laplace else normal

    def size(self, declared: float | None, measured: float, variance: float) -> Difference:
        """Return the Difference of everybody's `measured` number from the `declared` one, relative to that.

        `variance` is that of the noise in `measured`; None declared gives a Difference without figures.
        """
        if declared is None:
            return NOTHING_DECLARED
        return self._difference(declared, measured, variance, 0.0, 0.0)

    def share(self, share: float, measured: float, variance: float, total: tuple[float, float, float]) -> Difference:
        """Return the `Difference` of a group's measured number from its declared share of everybody's.

        Args:
            share: The declared share, from 0 to 1.
            measured: The group's number of records.
            variance: The variance of its noise.
            total: Everybody's number, the variance of its noise, and the covariance of both.
        """
        everybody, spread, between = total
        counted = None if self.records is None else self.records * share
        sampling = 0.0 if self.records is None else everybody * everybody / self.records
        found = self._difference(
            share * everybody, measured, variance, share * between, share**2 * spread, sampling * share * (1 - share)
        )
        if counted is not None and counted < FEW:  # of so few records the sampling error has no normal law
            return Difference(found.value, None, None, found.z, UNDECIDED)
        return found

    def _difference(
        self, declared: float, measured: float, own: float, between: float, theirs: float, sampling: float = 0.0
    ) -> Difference:
        """Return measured / declared - 1 as a Difference: with its interval, by inverting a test, z and verdict.

        The interval is None if the declared number may be 0 given its noise, the ratio if it is not above 0.

        The ratios r with (measured - r declared)^2 <= q^2 (own - 2 r between + r^2 theirs + r s), q the quantile and
        s = measured sampling / declared (Fieller 1954). The declared share's sampling variance is that of the share
        which is tested, as in Wilson's interval: measured / r, without the factor 1 - share.

        Args:
            declared: Declared number of records.
            measured: Measured number of records.
            own: Variance of the noise in the measured number.
            between: Covariance of the noise in both.
            theirs: Variance of the noise in the declared number, which is a share of a noisy total.
            sampling: Sampling variance of the declared number.
        """
        variance = own - 2 * between + theirs + sampling
        z = (measured - declared) / math.sqrt(variance) if variance > 0 else None
        if not declared > 0:
            over = measured - self.quantile * math.sqrt(max(variance, 0.0)) > 0
            return Difference(None, None, None, z, DIFFERS if over else UNDECIDED)
        q2, ratio = self.quantile**2, measured / declared
        square = declared**2 - q2 * theirs
        linear = measured * declared - q2 * between + q2 * sampling * max(ratio, 0.0) / 2
        if not square > 0:  # the declared number may be 0 given its noise: no ratio is left out
            return Difference(ratio - 1, None, None, z, UNDECIDED)
        root = math.sqrt(max(linear**2 - square * (measured**2 - q2 * own), 0.0))
        low, high = (max((linear + sign * root) / square, 0.0) - 1 for sign in (-1, 1))
        return Difference(ratio - 1, low, high, z, self.verdict(low, high))

    def verdict(self, low: float, high: float) -> str:
        """Return AGREES, DIFFERS or UNDECIDED for an interval, `low` to `high`, of measured / declared - 1."""
        if -self.margin <= low and high <= self.margin:
            return AGREES
        return DIFFERS if low > self.margin or high < -self.margin else UNDECIDED
