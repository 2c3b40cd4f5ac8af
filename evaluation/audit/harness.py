"""Running an experiment on the real driver and on broken ones, and judging it.

Whether a control must be caught is settled beforehand, from what its fault does to the law of the answers. It must
not be judged by what the control showed: a harness that catches nothing would excuse itself.
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
from stratsynth.evaluation.audit.estimators import Errors, epsilon_of_errors, errors, mu_of, root_of_rho, upper
from stratsynth.evaluation.audit.report import NEEDED, Audit, Control

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIKELY, SURE = 0.05, 1e-4
"""The error probabilities of the bound that is shown, and of the one that a violation is judged by."""
HALF, THREE_QUARTERS = "noise x 0.5", "noise x 0.75"
_GRID = 400

Draw = Callable[[Breakage | None, int], "tuple[NDArray[np.float64], NDArray[np.float64]]"]
"""Scores of a number of runs on a table and on its neighbour, by the real driver or by a broken one.

One row for each way of scoring, where there are several.
"""


@dataclass(frozen=True)
class Point:
    """One thing that is claimed, and the test that tries to refute it: `score >= threshold`, fixed beforehand."""

    claim: float
    """The claimed mu, sqrt(2 rho) or epsilon."""
    threshold: float
    """The least score that the test takes for the neighbour's."""
    delta: float | None = None
    """None when the claim is a mu or a rho; otherwise it is the epsilon at this delta."""
    score: int = 0
    """Which of the scores is used."""
    rho: bool = False
    """Whether the claim is sqrt(2 rho) of zero-concentrated privacy, which is mu where all noise is Gaussian."""

    @property
    def unit(self) -> str:
        """The unit of claim and bound: `mu`, `sqrt(2 rho)`, or epsilon at a delta."""
        if self.rho:
            return "sqrt(2 rho)"
        return "mu" if self.delta is None else f"epsilon at {self.delta:g}"

    def bound(self, found: Errors, alpha: float) -> Any:
        """The lower bound that errors give, at confidence 1 - alpha; for arrays of errors an array."""
        return self.of(upper(found.positives, found.runs, alpha / 2), upper(found.negatives, found.runs, alpha / 2))

    def of(self, positive: Any, negative: Any) -> Any:
        """The lower bound on the claim that follows from upper bounds on the error rates."""
        if self.rho:
            return root_of_rho(positive, negative)
        return mu_of(positive, negative) if self.delta is None else epsilon_of_errors(positive, negative, self.delta)


Rates = tuple[tuple[float, float], ...]
"""For each point the error rates (F, N) of its test, as a law has them."""


@dataclass(frozen=True)
class Fault:
    """A way to be wrong: the driver is broken, or the claim is."""

    name: str
    """The fault, in words."""
    breakage: Breakage | None
    """The change to the driver; None where the claim is wrong."""
    rates: Rates
    """The error rates with the fault, computed without the driver: they decide whether it must be caught."""
    part: float = 1.0
    """The share of the honest runs that is enough for it."""
    points: tuple[Point, ...] = ()
    """Claims in place of the experiment's."""
    must: bool = False
    """Whether it must be caught even where the rates say that it may be missed, being but estimates."""


def normal(mu: float) -> Rates:
    """The error rates of the test half way between N(0, 1) and N(mu, 1)."""
    rate = float(special.ndtr(-mu / 2))
    return ((rate, rate),)


def quieter(rates: Callable[[float], Rates], half: float = 0.2, quarters: float = 1.0) -> tuple[Fault, Fault]:
    """Half and three quarters of the noise: their rates by the share of the noise, and their parts of the runs."""
    return (
        Fault(HALF, Quieter(0.5), rates(0.5), half, must=True),
        Fault(THREE_QUARTERS, Quieter(0.75), rates(0.75), quarters),
    )


@dataclass(frozen=True)
class Experiment:
    """Two neighbouring tables, questions, and a score."""

    what: str
    """The audited thing, in words."""
    points: tuple[Point, ...]
    """The claims. Several hold together: alpha is shared among them."""
    draw: Draw
    """Draws the scores."""
    faults: tuple[Fault, ...]
    """The faults of the controls."""
    law: tuple[float, float] | None = None
    """The least error rates of the first point's test that the mechanism's law allows, where it is known exactly.

    Fewer errors than the law's are an alarm too: the price is that of the law.
    """
    note: str = ""
    """A remark for the report."""

    def run(self, runs: int, *, controls: bool = True) -> Audit:
        """The honest runs first, then the controls."""
        found, seconds = self._errors(None, self.points, runs)
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
        """The same experiment with a fault."""
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
        """The chance of an alarm in `runs` runs with a fault, by its rates.

        Over independent binomial numbers of both kinds of error, by their quantiles. With several points, that of
        the best alone: no less than that is true.
        """
        from scipy import stats

        points, quantiles = fault.points or self.points, (np.arange(_GRID) + 0.5) / _GRID
        chances = []
        for i, (point, rates) in enumerate(zip(points, fault.rates, strict=True)):
            positives, negatives = (stats.binom.ppf(quantiles, runs, rate) for rate in rates)
            drawn = Errors(positives[:, None], negatives[None, :], runs)
            alarms = alarm([point], [drawn], self.law if i == 0 else None, SURE / len(points))
            chances.append(float(np.mean(alarms)))
        return max(chances)

    def _errors(self, breakage: Breakage | None, points: Sequence[Point], runs: int) -> tuple[list[Errors], float]:
        start = time.perf_counter()
        one, two = (np.atleast_2d(scores) for scores in self.draw(breakage, runs))
        found = [errors(one[p.score], two[p.score], p.threshold) for p in points]
        return found, time.perf_counter() - start


def bound(points: Sequence[Point], found: Sequence[Errors], i: int, alpha: float) -> Any:
    """The lower bound of one of several points that hold together."""
    return points[i].bound(found[i], alpha / len(points))


def nearest(points: Sequence[Point], found: Sequence[Errors]) -> int:
    """The point whose bound is the largest share of its claim."""
    return max(range(len(points)), key=lambda i: float(bound(points, found, i, LIKELY)) / points[i].claim)


def alarm(
    points: Sequence[Point], found: Sequence[Errors], law: tuple[float, float] | None = None, alpha: float = SURE
) -> Any:
    """Whether any claim is refuted, or the law is; for arrays of errors an array."""
    refuted = [bound(points, found, i, alpha) > point.claim for i, point in enumerate(points)]
    if law is not None:
        pairs = zip(law, (found[0].positives, found[0].negatives), strict=True)
        refuted.extend(upper(count, found[0].runs, alpha / 2) < least for least, count in pairs)
    return np.any(np.broadcast_arrays(*refuted), axis=0)
