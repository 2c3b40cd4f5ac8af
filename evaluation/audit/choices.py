"""Audits of `Choose`: the exponential mechanism's probabilities, enumerated exactly, and draws from it."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.rows import StoredRows
from stratsynth.evaluation.audit.audited import AuditedAnswers
from stratsynth.evaluation.audit.harness import HALF, THREE_QUARTERS, Experiment, Point, Rates, quieter
from stratsynth.evaluation.audit.report import Audit, Control
from stratsynth.questions import Choose, Clique, Columns, Distance, Peak
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.schema.rows import CodedRows
from stratsynth.testing.privacy_loss import exact_answers

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.evaluation.audit.broken import Breakage

RHO = 1 / 8
"""Price of the choice, rho = epsilon^2 / 8 at epsilon = 1."""
CANDIDATES = 20
ROWS = 7
"""Number of records that both tables have."""
FAR = 1000.0
ALMOST = 1 + 1e-9
"""Multiple of epsilon above which a log-ratio is no rounding error."""
SMALL = Schema(
    {
        "A": Categorical(levels=("1", "2", "3")),
        "B": Categorical(levels=("1", "2")),
        "X": Numeric(lower=-2, upper=2, edges=(-2, 0, 3)),
    }
)


def log_law(question: Choose, exact: Exact, schema: Schema, neighbours: Neighbours) -> NDArray[np.float64]:
    """Array of the log-probabilities of the candidates of a Choose, each proportional to exp(epsilon score / (2 D)).

    The scores are the driver's exact integers, from an Exact, one table's answers before noise, under the schema, of
    sensitivity D for this notion of neighbour; epsilon is the question's.
    """
    scores, reach = question.judge.units(question.scores, exact, Setting(schema, neighbours), {})
    # subtracting the best score keeps exp in range
    best = max(scores)
    rate = question.epsilon / 2
    weights = np.array([float(Fraction(score - best, reach)) * rate for score in scores])
    law: NDArray[np.float64] = weights - math.log(np.exp(weights).sum())
    return law


def charged_epsilon(question: Choose, schema: Schema, neighbours: Neighbours) -> float:
    """Epsilon of the choice `question` in a schema, by the rho it charges for these neighbours: rho = epsilon^2 / 8."""
    return math.sqrt(8 * sum(charge.amount for charge in question.charges(schema, (), neighbours)))


def choices() -> Experiment:
    """Experiment with twenty candidates: a record raises the score of one and lowers that of all others.

    The test is whether that one was chosen; its error rates are known exactly. One record makes it exp(epsilon/2) /
    mean(exp(-+epsilon/2)) times as likely: log-ratio 0.918 at epsilon 1, the most that twenty can show of it. Draws are
    compared with the claim and with the exact probabilities: a sampler that favours the best more than these is caught
    long before the claim is exceeded.
    """
    schema = Schema({"A": Categorical(levels=("1", "2"))})
    up = Distance(("A",), np.zeros(2), offset=ROWS)
    down = Distance(("A",), np.array([FAR, 0.0]), offset=FAR - ROWS)
    question = Choose((up, *[down] * (CANDIDATES - 1)), RHO)
    worlds = [StoredRows([CodedRows(schema, {"A": np.zeros(n, np.int8)}, {}, n)]) for n in (ROWS, ROWS + 1)]
    asked = [Asked((), schema, question)]
    laws = [log_law(question, exact_answers(rows, asked)[0], schema, Neighbours.ADD_REMOVE) for rows in worlds]
    ratios = laws[1] - laws[0]

    def draw(breakage: Breakage | None, runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        absent, present = (
            [answer[0] for answer in AuditedAnswers(rows, breakage).again(asked, runs)] for rows in worlds
        )
        return ratios[absent], ratios[present]

    epsilon = charged_epsilon(question, schema, Neighbours.ADD_REMOVE)
    point = Point(epsilon, float(ratios[0]) - 1e-6, 0.0)

    def rates(share: float) -> Rates:
        quiet = replace(question, rho=question.rho / share**2)
        absent, present = (
            log_law(quiet, exact_answers(rows, asked)[0], schema, Neighbours.ADD_REMOVE)[0] for rows in worlds
        )
        return ((math.exp(absent), 1 - math.exp(present)),)

    note = f"the law's own log-ratio is {np.abs(ratios).max():.4f}, the most that draws can show"
    return Experiment(
        f"choose: {CANDIDATES} candidates, draws", (point,), draw, quieter(rates, 0.3, 0.5), rates(1)[0], note
    )


def enumerated(pairs: int = 200) -> Audit:
    """Audit of the largest log-ratio of a choice's probabilities between neighbouring tables, as a share of epsilon.

    No draws and no confidence: probabilities are computed. Half of the pairs exchange a record, for which the same kind
    of question is asked under the other notion of neighbour.
    """
    start, rng = time.perf_counter(), np.random.default_rng()
    worst = {"": 0.0, HALF: 0.0, THREE_QUARTERS: 0.0}
    for pair in range(pairs):
        neighbours = PRICED[pair % 2]
        tables = _tables(rng, neighbours)
        question = (_distances if pair % 4 < 2 else _peaks)(rng)
        asked = [Asked((), SMALL, question)]
        exact = [exact_answers(rows, asked)[0] for rows in tables]
        epsilon = charged_epsilon(question, SMALL, neighbours)
        for name, factor in (("", 1.0), (HALF, 0.5), (THREE_QUARTERS, 0.75)):
            broken = replace(question, rho=question.rho / factor**2)
            one, two = (log_law(broken, answer, SMALL, neighbours) for answer in exact)
            worst[name] = max(worst[name], float(np.abs(one - two).max()) / epsilon)
    found, seconds = worst.pop(""), time.perf_counter() - start
    controls = tuple(Control(name, 1.0, w, pairs, 1.0, True, w > ALMOST, 0.0) for name, w in worst.items())
    what, unit = "choose: enumerated laws", "share of epsilon, exact"
    return Audit(what, unit, 1.0, found, found, pairs, 1.0, found > ALMOST, seconds, controls)


def _tables(rng: Generator, neighbours: Neighbours) -> tuple[StoredRows, StoredRows]:
    """Draw by `rng` a pair of StoredRows: 1 to 5 records, and these with one more, or with one exchanged.

    The notion of neighbour decides which of the two.
    """
    number = int(rng.integers(1, 6))
    sizes = zip("AB", SMALL.shape("AB"), strict=True)
    records = {name: rng.integers(0, size, number + 1).astype(np.int64) for name, size in sizes}
    x = np.asarray(rng.choice([-2.0, -0.5, 0.0, 2.0], number + 1), dtype=np.float64)
    records["X"] = (x >= 0).astype(np.int64)

    def rows(which: slice) -> StoredRows:
        codes = {name: column[which].astype(np.int8) for name, column in records.items()}
        return StoredRows([CodedRows(SMALL, codes, {"X": x[which]}, len(x[which]))])

    fewer, more, others = rows(slice(number)), rows(slice(None)), rows(slice(1, None))
    return (fewer, more) if neighbours == Neighbours.ADD_REMOVE else (fewer, others)


def _distances(rng: Generator) -> Choose:
    """Return a Choose, drawn by `rng`: among 2 to 7 distances of random cliques, references, weights and norms.

    Its rho is random too.
    """
    cliques: list[Clique] = [("A",), ("B",), ("A", "B")]
    scores = []
    for _ in range(int(rng.integers(2, 8))):
        clique = cliques[int(rng.integers(3))]
        reference = rng.choice([0.0, 1.5, 50.0]) * rng.random(SMALL.shape(clique))
        weight, offset = float(rng.choice([0.1, 0.5, 1.0])), float(rng.random())
        scores.append(Distance(clique, reference, weight, offset, "l1" if rng.random() < 0.5 else "largest"))
    return Choose(tuple(scores), float(rng.choice([0.01, 0.1, 1.0])))


def _peaks(rng: Generator) -> Choose:
    """Return a Choose, drawn by `rng`: among 2 to 4 maxima of a few affine functions of a clipped sum of X.

    Its rho is random.
    """
    scores = []
    for _ in range(int(rng.integers(2, 5))):
        query = Columns(("X",), (0.0,), (1.0,), float(rng.choice([0.5, 1.0])))
        slopes = np.asarray(rng.choice([-1.0, 0.3, 1.0], (int(rng.integers(1, 4)), 1)), dtype=np.float64)
        scores.append(Peak(query, slopes, rng.normal(size=len(slopes)), 1 if rng.random() < 0.5 else -1))
    return Choose(tuple(scores), float(rng.choice([0.01, 0.1, 1.0])))
