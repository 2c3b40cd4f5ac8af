"""Audit of attribute privacy: sums over secret Poisson samples in many steps, with the group as the protected column.

One table's people are all of the second group and the other's of the first; all else about them is public. Each person
has a cell and a sampling coin of their own, so that one question is many runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.rows import StoredRows
from stratsynth.evaluation.audit.audited import AuditedAnswers, unlimited_allotment
from stratsynth.evaluation.audit.broken import Breakage, everybody
from stratsynth.evaluation.audit.claims import ASSUMED, pilot_rates
from stratsynth.evaluation.audit.harness import Experiment, Fault, Point, Rates, quieter
from stratsynth.questions import AttributeGradients, Coded, Question, Total
from stratsynth.questions.sums.attribute import reach
from stratsynth.questions.sums.clipping import GRID
from stratsynth.schema import Categorical, Schema
from stratsynth.schema.rows import CodedRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.noise import Entropy
    from stratsynth.questions import Query
    from stratsynth.strata import StratumPath

    Floats = NDArray[np.float64]

WIDTH = 500
"""Number of people, each a run."""
NOISE_MULTIPLIER, RATE, STEPS = 3.0, 0.5, 8
DELTAS = (1e-3, 0.01, 0.05)
FAR = 100.0
"""Size, in clips, of each coordinate added by the driver that leaves the loss in."""
SHARE = 1 - 1e-4
"""Fraction of a step's price for the sums by cell; the gradient, which the group does not change, gets the rest."""
SCHEMA = Schema(
    {
        "GROUP": Categorical(levels=("a", "b"), outside="a"),
        "WHO": Categorical(levels=tuple(map(str, range(WIDTH))), public=True),
        "LABEL": Categorical(levels=("no", "yes"), public=True),
    }
)
QUERY = AttributeGradients(
    Coded(()), "LABEL", "logistic", np.array([[20.0]]), 1.0, ("GROUP",), ("WHO",), np.zeros((1, 2, WIDTH, 2))
)
"""Model that predicts yes for everybody, with a log-odds of 20."""
BESIDE = "the loss of the same sample, unclipped"


def people(group: int) -> StoredRows:
    """Return StoredRows in memory of `WIDTH` people, one row each, all with level number `group` in column GROUP."""
    codes: dict[str, NDArray[Any]] = {"GROUP": np.full(WIDTH, group, np.uint8)}
    codes["WHO"] = np.arange(WIDTH, dtype=np.uint16)
    return StoredRows([CodedRows(SCHEMA, {**codes, "LABEL": np.ones(WIDTH, np.uint8)}, {}, WIDTH)])


class LossBeside(StoredRows):
    """NOT PRIVATE, on purpose: each sampled row adds `FAR` clips to known coordinates, which nobody has clipped."""

    def sums(
        self, asked: Sequence[tuple[StratumPath, Query, float]], entropy: Entropy
    ) -> list[list[NDArray[np.int64]]]:
        """Return a list of lists of int arrays, one for each (path, query, sampling rate) `asked`: its exact sums.

        An inner list has an array a block. Rows are sampled by `entropy`; `FAR` clips are added to the first group's
        sums where the second's are not 0.
        """
        found = super().sums(asked, entropy)
        for _, block in found:
            cells = block.reshape(2, WIDTH, 2)
            cells[:, :, 0] += int(FAR * GRID) * (cells[:, :, 1] != 0)
        return found


def beside(question: Question) -> Question:
    """Return the question to ask in place of the charged `question`: itself, as this fault is in the rows."""
    return question


def attribute_steps() -> Experiment:
    """Experiment on a person of one group against the same of the other: 8 steps, rate 0.5, noise multiplier 3.

    With x the noisy difference of the two groups' sums in clips, exactly 1 or -1 if the person is sampled (probability
    q) and 0 otherwise, a score adds up the steps' log-likelihood ratios for one assumed noise. The last score counts
    only steps in which the unclipped loss reveals that the person was sampled.
    """
    from stratsynth.accounting.sampled import epsilon_sampled

    question = Total(QUERY, NOISE_MULTIPLIER, Currency.SAMPLED, (1 - SHARE, SHARE), RATE)

    def claims(neighbours: Neighbours) -> tuple[Point, ...]:
        """Tuple of claims to test for this notion of neighbour: a point for each score and delta of `DELTAS`.

        The claim is the epsilon of 8 steps.
        """
        epsilons = {d: epsilon_sampled(NOISE_MULTIPLIER, RATE, STEPS, d, neighbours) for d in DELTAS}
        return tuple(Point(e, e, d, score) for score in range(len(ASSUMED) + 1) for d, e in epsilons.items())

    points, cheap = claims(Neighbours.ATTRIBUTE), claims(Neighbours.ADD_REMOVE)

    def draw(breakage: Breakage | None, runs: int) -> tuple[Floats, Floats]:
        worlds = [people(1), people(0)]
        if breakage is beside:
            worlds = [LossBeside(rows._parts) for rows in worlds]  # noqa: SLF001 - made above
        found = [np.concatenate(list(_scores(rows, question, runs, breakage)), axis=1) for rows in worlds]
        return found[0], found[1]

    def rates(share: float, rate: float = RATE, *, shown: bool = False, of: tuple[Point, ...] = points) -> Rates:
        return pilot_rates(of, (_ideal(share, rate, -1, shown=shown), _ideal(share, rate, 1, shown=shown)))

    faults = (
        *quieter(rates, 0.5, 1.0),
        Fault("everybody takes part in every step", everybody, rates(1.0, 1.0), 0.5, must=True),
        Fault(BESIDE, beside, rates(1.0, shown=True), 0.5, must=True),
        Fault("priced as a record more or fewer", None, rates(1.0, of=cheap), points=cheap, must=True),
    )
    return Experiment(f"total: an attribute, in {STEPS} Poisson samples", points, draw, faults)


def _scores(rows: StoredRows, question: Total, runs: int, breakage: Breakage | None) -> Iterator[Floats]:
    """Yield arrays (ways of scoring, WIDTH runs) of log-likelihood ratios, at least `runs` runs in all.

    They are of STEPS noisy answers to `question` on `StoredRows`, by the real driver or one with a `breakage`.
    """
    allot = unlimited_allotment(Currency.SAMPLED, Neighbours.ATTRIBUTE, noise=NOISE_MULTIPLIER, rate=RATE)
    audited, passes = AuditedAnswers(rows, breakage, allot), math.ceil(runs / WIDTH)
    answers = audited.again([Asked((), SCHEMA, question)], passes * STEPS)
    for _ in range(passes):
        score = np.zeros((len(ASSUMED) + 1, WIDTH))
        for _ in range(STEPS):
            cells = next(answers)[0][1].values.reshape(2, WIDTH, 2) / (reach(2) * math.sqrt(2))
            score += _step(cells[0, :, 1] - cells[1, :, 1], cells[:, :, 0].sum(axis=0))
        yield score


def _ideal(share: float, rate: float, side: int, *, shown: bool, runs: int = 20_000) -> Floats:
    """Array (ways of scoring, runs) of simulated scores: log-likelihood ratios summed over STEPS steps.

    Drawn by numpy without the driver, with noise of `share` NOISE_MULTIPLIER. In each step the person is sampled with
    probability `rate` and adds `side` (1 or -1); with `shown`, a second noisy number tells whether the person was
    sampled.
    """
    rng = np.random.default_rng()
    score = np.zeros((len(ASSUMED) + 1, runs))
    for _ in range(STEPS):
        here = rng.random(runs) < rate
        noise = share * NOISE_MULTIPLIER * rng.normal(size=(2, runs))
        score += _step(noise[0] + side * here, noise[1] + 2 * FAR * here * shown)
    return score


def _step(x: Floats, aside: Floats) -> Floats:
    """Array (ways of scoring, runs) of log-likelihood ratios of one step, a row for each assumed noise.

    They are of the noisy sums `x`, an array of one a run, in clips. The last row is the ratio of what the loss reveals
    besides, the array of numbers `aside`, one a run.
    """
    found = []
    for share in ASSUMED:
        z = (share * NOISE_MULTIPLIER) ** 2
        up, down = (math.log(RATE) + (2 * side * x - 1) / (2 * z) for side in (1, -1))
        found.append(np.logaddexp(math.log1p(-RATE), up) - np.logaddexp(math.log1p(-RATE), down))
    return np.stack([*found, np.where(aside > FAR / 2, 2 * x / NOISE_MULTIPLIER**2, 0.0)])
