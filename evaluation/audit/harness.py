"""Running an experiment on the real driver and on broken ones, and judging it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from stratsynth.evaluation.audit.broken import Breakage, Quieter
from stratsynth.evaluation.audit.estimators import Errors, epsilon_of_errors, errors, mu_of, upper
from stratsynth.evaluation.audit.report import Audit, Control

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIKELY, SURE = 0.05, 1e-4
"""The error probabilities of the bound that is shown, and of the one that a violation is judged by."""
HALF, THREE_QUARTERS = "noise x 0.5", "noise x 0.75"
_GRID = 400

Draw = Callable[[Breakage | None, int], "tuple[NDArray[np.float64], NDArray[np.float64]]"]
"""Scores of so many runs on a table and on its neighbour, by the real driver or by a broken one.

One row for each way of scoring, where there are several.
"""


@dataclass(frozen=True)
class Point:
    """One thing that is claimed, and the test that tries to refute it: `score >= threshold`, fixed beforehand."""

    claim: float
    threshold: float
    delta: float | None = None
    """None when the claim is a mu; otherwise it is the epsilon at this delta."""
    score: int = 0
    """Which of the scores is used."""

    @property
    def unit(self) -> str:
        """What the claim is."""
        return "mu" if self.delta is None else f"epsilon at {self.delta:g}"

    def bound(self, found: Errors, alpha: float) -> Any:
        """The lower bound that errors give, at confidence 1 - alpha; for arrays of errors an array."""
        return self.of(upper(found.positives, found.runs, alpha / 2), upper(found.negatives, found.runs, alpha / 2))

    def of(self, positive: Any, negative: Any) -> Any:
        """What upper bounds on the error rates refute."""
        return mu_of(positive, negative) if self.delta is None else epsilon_of_errors(positive, negative, self.delta)


@dataclass(frozen=True)
class Fault:
    """A way to be wrong: the driver is broken, or the claim is."""

    name: str
    breakage: Breakage | None = None
    points: tuple[Point, ...] = ()
    """Claims in place of the experiment's."""
    part: float = 1.0
    """The share of the honest runs that is enough for it."""


NOISE = (Fault(HALF, Quieter(0.5), part=0.2), Fault(THREE_QUARTERS, Quieter(0.75)))


@dataclass(frozen=True)
class Experiment:
    """Two neighbouring tables, questions, and a score."""

    what: str
    points: tuple[Point, ...]
    """What is claimed. Where there are several, they hold together: alpha is shared."""
    draw: Draw
    faults: tuple[Fault, ...] = NOISE
    law: tuple[float, float] | None = None
    """The least error rates of the first point's test that the mechanism's law allows, where it is known exactly.

    Fewer errors than the law's are an alarm too: what is priced is the law.
    """
    note: str = ""

    def run(self, runs: int, *, controls: bool = True) -> Audit:
        """The honest runs first, then the controls."""
        found, seconds = self._errors(None, self.points, runs)
        power, done = None, []
        for fault in self.faults if controls else ():
            control, seen = self._control(fault, max(1, round(runs * fault.part)))
            done.append(control)
            if fault.name == HALF:
                power = self._power(self.points, seen, runs)
        best = self._nearest(self.points, found)
        likely, sure = (float(self._bound(self.points, found, best, alpha)) for alpha in (LIKELY, SURE))
        point, alarm = self.points[best], bool(self._alarm(self.points, found))
        return Audit(
            self.what,
            point.unit,
            point.claim,
            likely,
            sure,
            found[0].runs,
            power,
            alarm,
            seconds,
            tuple(done),
            self.note,
        )

    def _control(self, fault: Fault, runs: int) -> tuple[Control, list[Errors]]:
        points = fault.points or self.points
        found, seconds = self._errors(fault.breakage, points, runs)
        best = self._nearest(points, found)
        likely = float(self._bound(points, found, best, LIKELY))
        power, alarm = self._power(points, found, found[0].runs), bool(self._alarm(points, found))
        return Control(fault.name, points[best].claim, likely, found[0].runs, power, alarm, seconds), found

    def _errors(self, breakage: Breakage | None, points: Sequence[Point], runs: int) -> tuple[list[Errors], float]:
        start = time.perf_counter()
        one, two = (np.atleast_2d(scores) for scores in self.draw(breakage, runs))
        found = [errors(one[p.score], two[p.score], p.threshold) for p in points]
        return found, time.perf_counter() - start

    def _bound(self, points: Sequence[Point], found: Sequence[Errors], i: int, alpha: float) -> Any:
        return points[i].bound(found[i], alpha / len(points))

    def _nearest(self, points: Sequence[Point], found: Sequence[Errors]) -> int:
        """The point whose bound is the largest share of its claim."""
        return max(range(len(points)), key=lambda i: float(self._bound(points, found, i, LIKELY)) / points[i].claim)

    def _alarm(self, points: Sequence[Point], found: Sequence[Errors]) -> Any:
        """Whether any claim is refuted, or the law is; for arrays of errors an array."""
        refuted = [self._bound(points, found, i, SURE) > point.claim for i, point in enumerate(points)]
        if self.law is not None:
            pairs = zip(self.law, (found[0].positives, found[0].negatives), strict=True)
            refuted.extend(upper(count, found[0].runs, SURE / 2) < least for least, count in pairs)
        return np.any(np.broadcast_arrays(*refuted), axis=0)

    def _power(self, points: Sequence[Point], seen: Sequence[Errors], runs: int) -> float:
        """The chance of an alarm in so many runs, if the error rates are those seen.

        Over independent binomial numbers of both kinds of error, by their quantiles. With several points, that of
        the best alone: no less than that is true.
        """
        from scipy import stats

        quantiles = (np.arange(_GRID) + 0.5) / _GRID
        chances = []
        for point, found in zip(points, seen, strict=True):
            positives = stats.binom.ppf(quantiles, runs, found.positives / found.runs)[:, None]
            negatives = stats.binom.ppf(quantiles, runs, found.negatives / found.runs)[None, :]
            drawn = Errors(positives, negatives, runs)
            bound = point.bound(drawn, SURE / len(points))
            alarms = bound > point.claim
            if self.law is not None and point is points[0]:
                alarms = self._alarm([point], [drawn]) | alarms
            chances.append(float(np.mean(alarms)))
        return max(chances)
