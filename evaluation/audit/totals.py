"""Audits of `Total`: sums of clipped rows, with Gaussian and with Laplace noise.

Repetitions come from coordinates. The rows' numbers are far beyond the clip, each in a column of its own, and at the
centre of all other columns: so every coordinate of the sum has one target record in it, and noise of its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.accounting.budget import Budget, Currency, Neighbours
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.rows import StoredRows
from stratsynth.evaluation.audit.audited import AuditedAnswers, unlimited_allotment
from stratsynth.evaluation.audit.broken import Breakage, twice_the_clip
from stratsynth.evaluation.audit.harness import Experiment, Fault, Point, normal, quieter
from stratsynth.questions import Columns, Total
from stratsynth.schema import Numeric, Schema
from stratsynth.schema.rows import CodedRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH = 500
"""Number of coordinates of a sum: runs per question."""
CLIP = 3.0
BEYOND = 8.0
"""Value of the target record: more than twice the clip."""
BUDGET = Budget(1, 1e-6)
NAMES = tuple(f"X{i}" for i in range(WIDTH))
SCHEMA = Schema(dict.fromkeys(NAMES, Numeric(lower=-9, upper=9, edges=(-9, 0, 10))))
CLIPPED = "clip x 2, noise as for x 1"


def columns(norm: str = "l2") -> Columns:
    """Columns, the query of the clipped sum of all `WIDTH` columns, centred at 0, with clip `CLIP`.

    The norm is "l1" or "l2".
    """
    return Columns(NAMES, (0.0,) * WIDTH, (1.0,) * WIDTH, CLIP, "l1" if norm == "l1" else "l2")


def targets(value: float) -> StoredRows:
    """StoredRows: one record for each column, with `value` in it and 0 in all others; no rows if the value is 0."""
    number = WIDTH if value else 0
    grid = np.zeros((WIDTH, number))
    np.fill_diagonal(grid, value)
    codes = {name: (numbers >= 0).astype(np.int8) for name, numbers in zip(NAMES, grid, strict=True)}
    return StoredRows([CodedRows(SCHEMA, codes, dict(zip(NAMES, grid, strict=True)), number)])


def sums(
    rows: StoredRows, question: Total, runs: int, breakage: Breakage | None, neighbours: Neighbours
) -> NDArray[np.float64]:
    """Array of at least `runs` noisy coordinates, in clips: answers to the sum `question` on `StoredRows`.

    A `breakage` makes the driver faulty; the charge is for this notion of neighbour.
    """
    audited = AuditedAnswers(rows, breakage, unlimited_allotment(question.currency, neighbours))
    answers = audited.again([Asked((), SCHEMA, question)], math.ceil(runs / WIDTH))
    return np.concatenate([answer[0][0].values for answer in answers]) / CLIP


def _charged(question: Total, neighbours: Neighbours) -> float:
    """Amount that the sum `question` charges, in its currency, for this notion of neighbour."""
    return math.fsum(charge.amount for charge in question.charges(SCHEMA, (), neighbours))


def gaussian_total(neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Experiment:
    """Experiment on a record at the clip's edge; beside it, by `neighbours`, none or one at the opposite edge."""
    question = Total(columns(), BUDGET.zcdp().rho)
    mu = math.sqrt(2 * _charged(question, neighbours))
    exchanged = neighbours == Neighbours.REPLACE
    low, high = (-1.0, 1.0) if exchanged else (0.0, 1.0)
    sigma = (high - low) / mu
    worlds = [targets(-BEYOND if exchanged else 0.0), targets(BEYOND)]

    def draw(breakage: Breakage | None, runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = [sums(rows, question, runs, breakage, neighbours) for rows in worlds]
        # the grid is a millionth of the noise, so scores need no jitter
        score = [((x - low) ** 2 - (x - high) ** 2) / (2 * sigma**2) for x in found]
        return score[0], score[1]

    # twice the clip moves the means to 0 and 2, or -2 and 2; the threshold stays
    wide = normal(2 * mu) if exchanged else ((normal(mu)[0][0], normal(3 * mu)[0][0]),)
    faults = (*quieter(lambda share: normal(mu / share)), Fault(CLIPPED, twice_the_clip, wide, 0.2, must=True))
    name = "exchanged" if exchanged else "present or absent"
    return Experiment(f"total: record {name}", (Point(mu, 0.0),), draw, faults)


def laplace_total() -> Experiment:
    """Experiment for pure epsilon: exp(-|x - 1| epsilon), a record at the clip, against exp(-|x| epsilon), none.

    Above 1 the log-likelihood ratio is epsilon itself, so that is the test: F = exp(-epsilon) / 2 and N = 1/2.
    """
    question = Total(columns("l1"), BUDGET.pure().amount, Currency.PURE)
    epsilon = _charged(question, Neighbours.ADD_REMOVE)
    worlds = [targets(0.0), targets(BEYOND)]

    def draw(breakage: Breakage | None, runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = [sums(rows, question, runs, breakage, Neighbours.ADD_REMOVE) for rows in worlds]
        score = [(np.abs(x) - np.abs(x - 1)) * epsilon for x in found]
        return score[0], score[1]

    tail = math.exp(-epsilon) / 2
    wide = Fault(CLIPPED, twice_the_clip, ((tail, tail),), 0.2, must=True)
    faults = (*quieter(lambda share: ((math.exp(-epsilon / share) / 2, 0.5),)), wide)
    return Experiment("total: Laplace noise, pure", (Point(epsilon, epsilon - 1e-6, 0.0),), draw, faults)
