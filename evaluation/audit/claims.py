"""Privacy claims of a recorded transcript, as inequalities that a test can refute."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.accounting.budget import IN_RHO, Budget, Currency
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.errors import Unsupported
from stratsynth.evaluation.audit.estimators import errors, upper
from stratsynth.evaluation.audit.harness import LIKELY, Point, Rates

if TYPE_CHECKING:
    from numpy.typing import NDArray

DELTAS = (1e-3, 0.01, 0.05, 0.1)
"""Deltas at which the claimed privacy profile is tested: an audit sees little at a tiny delta."""
ASSUMED = (1.0, 0.75, 0.5)
"""Shares of the declared noise that scores assume for Poisson samples: for each, another score is the best test."""
LEAST = 0.05
"""Smallest claimed epsilon that is tested: no audit of this size could refute smaller ones."""
WITHOUT_CHOICES = 1
"""Number of the score, in zCDP, that leaves choices out."""
CONTINUOUS = 1.0
"""Noise standard deviation from which an audit cannot tell discrete and continuous Gaussian noise apart."""


def claimed(charges: Sequence[Charge], budget: Budget) -> tuple[Point, ...]:
    """Tuple of Points that Charges claim under a Budget, to be refuted.

    A threshold of 0 is still to be tuned, if no mu. Gaussian noise alone: one mu = sqrt(2 rho). With choices among it:
    sqrt(2 rho) of everything, and the mu of the Gaussian part by the score that leaves choices out. Pure: epsilon at
    delta 0. Sampled: the epsilon of the privacy loss distribution at several deltas. Unsupported for another currency.
    """
    currency = charges[0].currency
    spent = float(Spending(budget.neighbours, charges).spent())
    if currency == Currency.PURE:
        return (Point(spent, 0.0, 0.0),)
    if currency == Currency.SAMPLED:
        return _sampled(charges[0].details, round(spent), budget)
    if currency not in IN_RHO:
        raise Unsupported(f"audit: a claim in the currency {currency} is not checked by anything we asked.")
    # the likelihood ratio of a choice is not Gaussian, so with choices only the zCDP bound holds for everything
    noisy = [charge for charge in charges if charge.kind != "choose"]
    mu = math.sqrt(2 * float(Spending(budget.neighbours, noisy).spent()))
    gaussian = all(charge.details.get("sigma", 0.0) >= CONTINUOUS for charge in noisy)
    if gaussian and len(noisy) == len(charges):
        return (Point(mu, 0.0),)
    alone = [Point(mu, 0.0, score=WITHOUT_CHOICES)] if gaussian and noisy else []
    return (Point(math.sqrt(2 * spent), 0.0, rho=True), *alone)


def _sampled(details: Mapping[str, float], steps: int, budget: Budget) -> tuple[Point, ...]:
    """Tuple of Points, one for each score and delta: epsilon of `steps` on samples for the `budget`'s neighbours.

    `details` is a mapping with "noise" and "rate". Deltas with an epsilon below `LEAST` are left out.
    """
    from stratsynth.accounting.sampled import epsilon_sampled

    epsilons = {
        delta: epsilon_sampled(details["noise"], details["rate"], steps, delta, budget.neighbours) for delta in DELTAS
    }
    pairs = [(delta, epsilon) for delta, epsilon in epsilons.items() if epsilon >= LEAST]
    return tuple(Point(epsilon, epsilon, delta, score) for score in range(len(ASSUMED)) for delta, epsilon in pairs)


def tuned(points: Sequence[Point], pilot: tuple[NDArray[np.float64], NDArray[np.float64]]) -> tuple[Point, ...]:
    """Return a tuple of the `points`, each with the threshold whose errors in the `pilot` give the best lower bound.

    The pilot is a pair of arrays of scores (kinds of score, runs), of both tables; they must not be used again.
    """
    found = []
    for point in points:
        one, two = (scores[point.score] for scores in pilot)
        # thresholds between quantiles of the pooled scores: beyond them, error rates are too small to bound
        candidates = np.unique(np.quantile(np.concatenate([one, two]), np.linspace(0.005, 0.995, 67)))
        bounds = [float(point.bound(errors(one, two, t), LIKELY)) for t in candidates]
        found.append(dataclasses.replace(point, threshold=float(candidates[int(np.argmax(bounds))])))
    return tuple(found)


def pilot_rates(points: Sequence[Point], pilot: tuple[NDArray[np.float64], NDArray[np.float64]]) -> Rates:
    """Tuple of pairs, one a point: upper confidence bounds on its error rates F and N in a pilot.

    The pilot is a pair of arrays of scores (kinds of score, runs), of both tables, and may have chosen the thresholds.
    """
    found = [errors(pilot[0][point.score], pilot[1][point.score], point.threshold) for point in points]
    return tuple((float(upper(e.positives, e.runs, LIKELY)), float(upper(e.negatives, e.runs, LIKELY))) for e in found)
