"""Audit of sums over Poisson samples: many steps, and the whole profile of (epsilon, delta).

At a tiny delta an audit of sampled steps sees next to nothing; at a large one it sees most of the privacy loss. So
epsilon is claimed, by the privacy loss distribution, at several deltas at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.accounting.budget import Currency
from stratsynth.driver.lockstep import Asked
from stratsynth.evaluation.audit.audited import AuditedAnswers, unlimited_allotment
from stratsynth.evaluation.audit.broken import Breakage, everybody
from stratsynth.evaluation.audit.claims import ASSUMED, pilot_rates
from stratsynth.evaluation.audit.harness import Experiment, Fault, Point, Rates, quieter
from stratsynth.evaluation.audit.totals import CLIP, SCHEMA, WIDTH, columns, targets
from stratsynth.questions import Total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.driver.rows import StoredRows

NOISE_MULTIPLIER, RATE, STEPS = 1.0, 0.1, 50
DELTAS = (1e-5, 1e-3, 0.01, 0.05, 0.1)


def sampled_steps() -> Experiment:
    """Experiment on a record at the clip's edge, against none: 50 steps, rate 0.1, noise multiplier 1.

    The score adds up the steps' log-likelihood ratios log(1 - q + q exp((2 x - 1) / (2 z^2))) for the sum x in clips.
    Unlike elsewhere, the best test of quieter noise is another one, so scores are made for quieter noise too. At each
    delta the test is the one that defines it: whether the score exceeds the claimed epsilon.
    """
    from stratsynth.accounting.sampled import epsilon_sampled

    question = Total(columns(), NOISE_MULTIPLIER, Currency.SAMPLED, None, RATE)
    claims = {delta: epsilon_sampled(NOISE_MULTIPLIER, RATE, STEPS, delta) for delta in DELTAS}
    # quieter noise shows at the larger deltas; each further test weakens the others, as alpha is shared
    points = tuple(
        Point(epsilon, epsilon, delta, score)
        for score, share in enumerate(ASSUMED)
        for delta, epsilon in claims.items()
        if share == 1 or delta >= 0.01
    )
    worlds = [targets(0.0), targets(2 * CLIP)]

    def draw(breakage: Breakage | None, runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = [np.concatenate(list(_scores(rows, question, runs, breakage)), axis=1) for rows in worlds]
        return found[0], found[1]

    def rates(share: float, rate: float = RATE) -> Rates:
        return pilot_rates(points, (_ideal(share, 0.0), _ideal(share, rate)))

    unsampled = Fault("everybody takes part in every step", everybody, rates(1.0, 1.0), 0.2, must=True)
    return Experiment(f"total: {STEPS} Poisson samples", points, draw, (*quieter(rates, 0.2, 0.5), unsampled))


def _ideal(share: float, rate: float, runs: int = 20_000) -> NDArray[np.float64]:
    """Array (assumed noises, runs) of scores by numpy alone, without driver.

    The noise is continuous, `share` of the multiplier, and the record is sampled with probability `rate`; 0 is no
    record.
    """
    rng = np.random.default_rng()
    score = np.zeros((len(ASSUMED), runs))
    for _ in range(STEPS):
        score += _step(share * NOISE_MULTIPLIER * rng.normal(size=runs) + (rng.random(runs) < rate))
    return score


def _step(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Array (assumed noises, runs): log-likelihood ratios of one step.

    `x` is an array of noisy sums, one a run, in clips.
    """
    return np.stack([np.log1p(RATE * np.expm1((2 * x - 1) / (2 * (s * NOISE_MULTIPLIER) ** 2))) for s in ASSUMED])


def _scores(rows: StoredRows, question: Total, runs: int, breakage: Breakage | None) -> Iterator[NDArray[np.float64]]:
    """Yield arrays (assumed noises, WIDTH runs) of log-likelihood ratios, at least `runs` runs in all.

    They add up over STEPS noisy answers to `question` on `StoredRows`, by the real driver or one with a `breakage`.
    """
    audited = AuditedAnswers(rows, breakage, unlimited_allotment(Currency.SAMPLED, noise=NOISE_MULTIPLIER, rate=RATE))
    passes = math.ceil(runs / WIDTH)
    answers = audited.again([Asked((), SCHEMA, question)], passes * STEPS)
    for _ in range(passes):
        score = np.zeros((len(ASSUMED), WIDTH))
        for _ in range(STEPS):
            score += _step(next(answers)[0][0].values / CLIP)
        yield score
