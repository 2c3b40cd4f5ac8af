"""Declared beside measured: noisy numbers of records against the declared size and shares.

Post-processing of answers that were charged: nothing more is read or spent. A reader and the curator can notice that
a fit did not read the people it was meant for, or that shares given as public fit the private rows too well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from stratsynth.schema.weight import ONE
from stratsynth.strata import StratumPath, label

if TYPE_CHECKING:
    from stratsynth.driver.private import Counted
    from stratsynth.mechanisms import Prepared

CHANCE = 0.001
"""Probability that some comparison of a fit finds a difference though there is none (Bonferroni)."""
ABOUT = 0.1
"""Relative error of a declared size that is no difference: it is the approximate number of records."""
ABOUT_SHARE = 0.25
"""Relative error of a group's declared share that is no difference: it is often that of another year."""
TOO_CLOSE = 1e-6
"""Probability of independent shares at most this near the noisy totals below which shares are too close."""
NORMAL_95 = NormalDist().inv_cdf(0.975)

DECLARED_SIZE = "declared_size"
SHARE = "share"


@dataclass(frozen=True)
class MeasuredCount:
    """A measured number of records, with the standard deviation of its noise."""

    value: float
    noise_sd: float

    def __str__(self) -> str:
        """Return the number with the half-width of a 95 % interval, as "4,985 give or take 12"."""
        return f"{max(self.value, 0.0):,.0f} give or take {NORMAL_95 * self.noise_sd:,.0f}"


@dataclass(frozen=True)
class Comparison:
    """One declared figure beside the measured one, in records."""

    what: str
    """DECLARED_SIZE, or SHARE: the declared size (else the measured total) times the group's share."""
    stratum: str
    """Levels of the group joined by `|`; empty for all records."""
    declared: float | None
    """Declared number of records; None if no size was declared."""
    measured: float
    """Best combination of all tables and counts that were paid for; noise may bring it below 0."""
    noise_sd: float
    z: float | None
    """Measured minus declared, in standard deviations: of the noise, and for a share of sampling too."""
    verdict: str
    """One of: agrees, fewer, more, far fewer (less than half), far more (more than twice), cannot tell, nothing."""

    @property
    def estimate(self) -> MeasuredCount:
        """Measured number of records with the standard deviation of its noise."""
        return MeasuredCount(self.measured, self.noise_sd)


def comparisons(prepared: Prepared, counted: Sequence[Counted]) -> list[Comparison]:
    """Return declared beside noisy numbers of records, all first, then strata; [] if no answer counts records.

    With weights of rows, tables and declared sizes both count weights. Rows of one weight above 1 are not compared:
    their tables count weights, and a size counts records.
    """
    weight = prepared.public.schema.row_weight
    if weight.column is None and weight != ONE:
        return []
    layout, direct = prepared.strata, _measured(counted)
    strata = () if layout is None else layout.strata
    groups = {s: direct[(s,)] for s in strata if (s,) in direct}
    ways = [direct[()]] if () in direct else []
    if strata and len(groups) == len(strata):
        noise = math.sqrt(math.fsum(m.noise_sd**2 for m in groups.values()))
        ways.append(MeasuredCount(math.fsum(m.value for m in groups.values()), noise))
    if not ways:
        return []
    whole, size = _together(ways), prepared.public.size
    # private weights are measured themselves, and exact counts of the rows are no declaration of their number
    said = layout is not None and not layout.weights.asked
    z = -NormalDist().inv_cdf(CHANCE / 2 / (1 + (len(groups) if said else 0)))
    found = [_compared(DECLARED_SIZE, "", None if size is None else float(size), whole, z)]
    if layout is None or not said:
        return found
    people = max(whole.value, 0.0) if size is None else float(size)
    for stratum, measured in groups.items():
        expected = people * layout.shares[stratum]
        found.append(_compared(SHARE, label((stratum,)), expected, measured, z, sampled=weight.most))
    return found


def too_close(prepared: Prepared, found: Sequence[Comparison]) -> bool:
    """True if shares declared of other people fit the noisy totals of groups better than other people's could.

    Were the rows independent of the shares, a group's noisy total would miss its share of everybody by the noise and
    by the sampling of the rows: sum of (n_g - N p_g)^2 / (N p_g + sigma_g^2) follows chi-square with one degree less
    than there are groups. Shares that were counted in these very rows leave the noise alone, a far smaller sum.
    """
    layout = prepared.strata
    if layout is None or layout.weights.asked or layout.weights.of_rows:
        return False
    shares = {stratum.label: share for stratum, share in layout.shares.items() if share > 0}
    groups = [c for c in found if c.what == SHARE and c.stratum in shares]
    people = math.fsum(c.measured for c in groups)
    if len(groups) < 2 or not people > 0:
        return False
    from scipy.special import gammainc

    total = math.fsum(shares[c.stratum] for c in groups)
    expected = [people * shares[c.stratum] / total for c in groups]
    away = math.fsum((c.measured - e) ** 2 / (e + c.noise_sd**2) for c, e in zip(groups, expected, strict=True))
    return bool(gammainc((len(groups) - 1) / 2, away / 2) < TOO_CLOSE)


def _measured(counted: Sequence[Counted]) -> dict[StratumPath, MeasuredCount]:
    """Return, by path of strata, the noisy number of records: the mean of its answers, weighted by 1 / variance."""
    ways: dict[StratumPath, list[MeasuredCount]] = {}
    for one in counted:
        ways.setdefault(one.path, []).append(MeasuredCount(one.records, one.noise_sd))
    return {path: _together(several) for path, several in ways.items()}


def _together(ways: Sequence[MeasuredCount]) -> MeasuredCount:
    """Return the mean of independent measurements, weighted by 1 / variance; the first one without noise, if any."""
    exact = [way for way in ways if not way.noise_sd > 0]
    if exact:
        return exact[0]
    weights = [way.noise_sd**-2 for way in ways]
    total = math.fsum(weights)
    return MeasuredCount(math.fsum(w * way.value for w, way in zip(weights, ways, strict=True)) / total, total**-0.5)


def _compared(
    what: str, stratum: str, declared: float | None, measured: MeasuredCount, z: float, *, sampled: int = 0
) -> Comparison:
    """Return the comparison of one declared number of records (None: not declared) with the measured one.

    Differences of up to `z` standard deviations are none. `sampled` is the largest weight of a row if rows are a sample
    of the declared, else 0: a total of weights varies by at most that many times as much as a count.
    """
    noise, value = measured.noise_sd, measured.value
    sd = math.hypot(noise, math.sqrt(sampled * (declared or 0.0)))
    away = None if declared is None or not sd > 0 else (value - declared) / sd
    return Comparison(
        what, stratum, declared, value, noise, away, _verdict(declared, measured, z * sd, sampled=bool(sampled))
    )


def _verdict(declared: float | None, measured: MeasuredCount, slack: float, *, sampled: bool) -> str:
    value, noise = measured.value, measured.noise_sd
    least = max(3 * noise, 1.0)
    if not sampled and value < least and (declared is None or not value + least > declared > least):
        return "nothing"
    if declared is None:
        return "agrees"
    if abs(value - declared) <= slack + (ABOUT_SHARE if sampled else ABOUT) * declared:
        return "cannot tell" if slack > declared / 2 else "agrees"
    if value < declared:
        return "far fewer" if value + slack < declared / 2 else "fewer"
    return "far more" if value - slack > 2 * declared else "more"
