"""The audit of sums over Poisson samples: many steps, and the whole profile of (epsilon, delta).

At a tiny delta an audit of sampled steps sees next to nothing; at a large one it sees most of what is lost
(trust.md, family D). So epsilon is claimed, by the privacy loss distribution, at several deltas at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from stratsynth.evaluation.audit.broken import Breakage, everybody
from stratsynth.evaluation.audit.claims import ASSUMED
from stratsynth.evaluation.audit.desk import Desk, plenty
from stratsynth.evaluation.audit.harness import NOISE, Experiment, Fault, Point
from stratsynth.evaluation.audit.totals import CLIP, SCHEMA, WIDTH, columns, targets

from stratsynth.accounting.budget import Currency
from stratsynth.driver.lockstep import Asked
from stratsynth.questions import Total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.driver.rows import MemoryRows

NOISE_MULTIPLIER, RATE, STEPS = 1.0, 0.1, 50
DELTAS = (1e-5, 1e-3, 0.01, 0.05, 0.1)


def sampled_steps() -> Experiment:
    """A record at the clip's edge, against none, in 50 steps with rate 0.1 and noise multiplier 1.

    The score adds up the steps' log-likelihood ratios log(1 - q + q exp((2 x - 1) / (2 z^2))) for the sum x in
    clips. Unlike elsewhere, the best test of quieter noise is another one, so scores are made for quieter noise
    too. At each delta the test is the one that defines it: whether the score passes the claimed epsilon.
    """
    from stratsynth.accounting.sampled import epsilon_sampled

    question = Total(columns(), NOISE_MULTIPLIER, Currency.SAMPLED, None, RATE)
    claims = {delta: epsilon_sampled(NOISE_MULTIPLIER, RATE, STEPS, delta) for delta in DELTAS}
    points = tuple(
        Point(epsilon, epsilon, delta, score) for score in range(len(ASSUMED)) for delta, epsilon in claims.items()
    )
    worlds = [targets(0.0), targets(2 * CLIP)]

    def draw(breakage: Breakage | None, runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = [np.concatenate(list(_scores(rows, question, runs, breakage)), axis=1) for rows in worlds]
        return found[0], found[1]

    faults = (*NOISE, Fault("everybody takes part in every step", everybody, part=0.2))
    return Experiment(f"total: {STEPS} Poisson samples", points, draw, faults)


def _scores(rows: MemoryRows, question: Total, runs: int, breakage: Breakage | None) -> Iterator[NDArray[np.float64]]:
    """Scores of WIDTH runs at a time, one row for each assumed noise: STEPS answers to the same question."""
    desk = Desk(rows, breakage, plenty(Currency.SAMPLED, noise=NOISE_MULTIPLIER, rate=RATE))
    passes = math.ceil(runs / WIDTH)
    answers = desk.again([Asked((), SCHEMA, question)], passes * STEPS)
    for _ in range(passes):
        score = np.zeros((len(ASSUMED), WIDTH))
        for _ in range(STEPS):
            x = next(answers)[0][0].values / CLIP
            for i, share in enumerate(ASSUMED):
                score[i] += np.log1p(RATE * np.expm1((2 * x - 1) / (2 * (share * NOISE_MULTIPLIER) ** 2)))
        yield score
