"""Run an experiment on the real driver and on broken ones, and judge it.

Whether a control must be caught is settled beforehand, from the distribution of its answers under the fault. It must
not be judged by the control's own result: a harness that catches nothing would excuse itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from stratsynth.evaluation.audit.broken import Breakage, Quieter
from stratsynth.evaluation.audit.estimators import AuditErrors, epsilon_of_errors, errors, mu_of, root_of_rho, upper
from stratsynth.evaluation.audit.report import NEEDED, Audit, Control

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIKELY, SURE = 0.05, 1e-4
"""Error probabilities of the bound that is shown, and of the one that a violation is judged by."""
HALF, THREE_QUARTERS = "noise x 0.5", "noise x 0.75"
_GRID = 400

Draw = Callable[[Breakage | None, int], "tuple[NDArray[np.float64], NDArray[np.float64]]"]
"""Function from a driver's fault (None for the real driver) and a number of runs to the scores of two tables.

Each array has one entry per run, or one row for each way of scoring if there are several.
"""


@dataclass(frozen=True)
class Point:
    """One claim, and the test that tries to refute it: `score >= threshold`, fixed beforehand."""

    claim: float
    """Claimed mu, sqrt(2 rho) or epsilon."""
    threshold: float
    """Smallest score that the test classifies as the neighbour's."""
    delta: float | None = None
    """Delta of a claimed epsilon; None if the claim is a mu or a rho."""
    score: int = 0
    """Number of the score used."""
    rho: bool = False
    """True if the claim is sqrt(2 rho) of zero-concentrated privacy, which equals mu if all noise is Gaussian."""

    @property
    def unit(self) -> str:
        """Unit of claim and bound: `mu`, `sqrt(2 rho)`, or epsilon at a delta."""
        if self.rho:
            return "sqrt(2 rho)"
        return "mu" if self.delta is None else f"epsilon at {self.delta:g}"

    def bound(self, found: AuditErrors, alpha: float) -> Any:
        """Lower bound on mu, sqrt(2 rho) or epsilon by a test's AuditErrors `found`, at confidence 1 - alpha.

        The bound is an array if the numbers of errors are.
        """
        return self.of(upper(found.positives, found.runs, alpha / 2), upper(found.negatives, found.runs, alpha / 2))

    def of(self, positive: Any, negative: Any) -> Any:
        """Lower bound on the point's mu, sqrt(2 rho) or epsilon.

        Upper bounds on error rates are `positive`, `negative`. These are F and N, numbers or arrays.
        """
        if self.rho:
            return root_of_rho(positive, negative)
        return mu_of(positive, negative) if self.delta is None else epsilon_of_errors(positive, negative, self.delta)


Rates = tuple[tuple[float, float], ...]
"""Error rates (F, N) of each point's test, by a model of the answers."""


@dataclass(frozen=True)
class Fault:
    """Fault of the driver or of the claim, for a control."""

    name: str
    """Description of the fault."""
    breakage: Breakage | None
    """Change to the driver; None if the claim is wrong instead."""
    rates: Rates
    """Error rates under the fault, computed without the driver: they decide whether it must be caught."""
    part: float = 1.0
    """Fraction of the honest runs that suffices for the control."""
    points: tuple[Point, ...] = ()
    """Claims in place of the experiment's; empty for the same."""
    must: bool = False
    """True if it must be caught even if the estimated rates say that it may be missed."""


def normal(mu: float) -> Rates:
    """Tuple of one pair (F, N), error rates, for the one point: both Phi(-mu / 2).

    They are of the test half way between N(0, 1) and N(mu, 1).
    """
    rate = float(special.ndtr(-mu / 2))
    return ((rate, rate),)


def quieter(rates: Callable[[float], Rates], half: float = 0.2, quarters: float = 1.0) -> tuple[Fault, Fault]:
    """Two Faults, half and three quarters of the noise; `rates` is a function from the share of noise to error rates.

    `half` and `quarters` are the fractions of the runs that each is given.
    """
    return (
        Fault(HALF, Quieter(0.5), rates(0.5), half, must=True),
        Fault(THREE_QUARTERS, Quieter(0.75), rates(0.75), quarters),
    )


@dataclass(frozen=True)
class Experiment:
    """Two neighbouring tables, questions, and a score."""

    what: str
    """Description of what is audited."""
    points: tuple[Point, ...]
    """Claims, tested at once: alpha is shared among them."""
    draw: Draw
    """Function that draws the scores."""
    faults: tuple[Fault, ...]
    """Faults of the controls."""
    law: tuple[float, float] | None = None
    """Smallest error rates of the first point's test under the declared mechanism, if known exactly.

    Fewer errors are an alarm too: the price is for exactly that distribution.
    """
    note: str = ""
    """Remark for the report."""

    def run(self, runs: int, *, controls: bool = True) -> Audit:
        """Return an Audit by `runs` runs on each table: bounds of the honest driver, and the faults' if `controls`."""
        found, seconds = self._errors(None, self.points, runs)
        # of sqrt(2 rho) and mu, the former covers choices too, and is the one reported
        best = 0 if self.points[0].rho else nearest(self.points, found)
        likely, sure = (bound(self.points, found, best, alpha) for alpha in (LIKELY, SURE))
        half = [fault for fault in self.faults if fault.name == HALF]
        return Audit(
            what=self.what,
            unit=self.points[best].unit,
            claim=self.points[best].claim,
            lower=float(likely),
            sure=float(sure),
            runs=found[0].runs,
            power=self.power(half[0], found[0].runs) if half else None,
            alarm=bool(alarm(self.points, found, self.law)),
            seconds=seconds,
            controls=tuple(self.control(f, math.ceil(runs * f.part)) for f in self.faults) if controls else (),
            note=self.note,
        )

    def control(self, fault: Fault, runs: int) -> Control:
        """Return a Control: bound and alarm of this experiment with a `fault`, by `runs` runs on each table.

        The fault is in the driver or in the claim.
        """
        points = fault.points or self.points
        found, seconds = self._errors(fault.breakage, points, runs)
        best, power = nearest(points, found), self.power(fault, found[0].runs)
        return Control(
            name=fault.name,
            claim=points[best].claim,
            lower=float(bound(points, found, best, LIKELY)),
            runs=found[0].runs,
            power=power,
            must=fault.must or power >= NEEDED,
            alarm=bool(alarm(points, found, self.law)),
            seconds=seconds,
        )

    def power(self, fault: Fault, runs: int) -> float:
        """Probability, 0 to 1, that `runs` runs on each table raise the alarm with a `fault`, by its error rates.

        Computed over independent binomial numbers of both kinds of error, by their quantiles. With several points, the
        largest probability of any one of them, which is a lower bound.
        """
        from scipy import stats

        points, quantiles = fault.points or self.points, (np.arange(_GRID) + 0.5) / _GRID
        chances = []
        for i, (point, rates) in enumerate(zip(points, fault.rates, strict=True)):
            positives, negatives = (stats.binom.ppf(quantiles, runs, rate) for rate in rates)
            drawn = AuditErrors(positives[:, None], negatives[None, :], runs)
            # mean over the grid of quantile pairs: the two numbers of errors are independent
            alarms = alarm([point], [drawn], self.law if i == 0 else None, SURE / len(points))
            chances.append(float(np.mean(alarms)))
        return max(chances)

    def _errors(self, breakage: Breakage | None, points: Sequence[Point], runs: int) -> tuple[list[AuditErrors], float]:
        """Return (list of AuditErrors, one a point's test by `runs` runs a table; seconds).

        A `breakage` is in the driver; None for the honest one.
        """
        start = time.perf_counter()
        one, two = (np.atleast_2d(scores) for scores in self.draw(breakage, runs))
        found = [errors(one[p.score], two[p.score], p.threshold) for p in points]
        return found, time.perf_counter() - start


def bound(points: Sequence[Point], found: Sequence[AuditErrors], i: int, alpha: float) -> Any:
    """Lower bound on the quantity of point number `i` of `points`, by its test's errors, at alpha / number of points.

    `found` is a list, an `AuditErrors` a point. The bound is an array if their numbers of errors are.
    """
    return points[i].bound(found[i], alpha / len(points))


def nearest(points: Sequence[Point], found: Sequence[AuditErrors]) -> int:
    """Index of the one of `points` whose lower bound is the largest share of its claim.

    `found` has the AuditErrors of each point.
    """
    return max(range(len(points)), key=lambda i: float(bound(points, found, i, LIKELY)) / points[i].claim)


def alarm(
    points: Sequence[Point], found: Sequence[AuditErrors], law: tuple[float, float] | None = None, alpha: float = SURE
) -> Any:
    """True if a lower bound, at alpha, is above its point's claim; `found` has the AuditErrors of each point.

    Also if an error rate of the first point is surely below its own of `law`, a pair (F, N) that must be reached, None
    for none. With arrays of errors it is an array.
    """
    refuted = [bound(points, found, i, alpha) > point.claim for i, point in enumerate(points)]
    if law is not None:
        pairs = zip(law, (found[0].positives, found[0].negatives), strict=True)
        refuted.extend(upper(count, found[0].runs, alpha / 2) < least for least, count in pairs)
    return np.any(np.broadcast_arrays(*refuted), axis=0)
