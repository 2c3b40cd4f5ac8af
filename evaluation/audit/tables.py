"""Audits of `Counts`: a record that is present or absent, and one that moves between strata.

Repetitions come from cells. A record changes one cell of a table, and every cell has noise of its own. So a table with
one target record in each of its cells, against a table without any, is a run of the experiment for each cell, all
answered by the driver in one pass; many passes are asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Budget, Currency
from stratsynth.accounting.exact import EXACT
from stratsynth.driver.lockstep import run
from stratsynth.driver.rows import StoredRows
from stratsynth.evaluation.audit.audited import AuditedAnswers, unlimited_allotment
from stratsynth.evaluation.audit.broken import Breakage, whole_rho_for_each_table
from stratsynth.evaluation.audit.estimators import jittered
from stratsynth.evaluation.audit.harness import Experiment, Fault, Point, normal, quieter
from stratsynth.questions import Clique, NoisyTable, Program, counts, split
from stratsynth.schema import Categorical, Schema
from stratsynth.schema.rows import CodedRows
from stratsynth.strata import crossing

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIDE = 316
"""Levels of a column: tables have at most SIDE^2 cells, about 100,000 runs a pass."""
BUDGET = Budget(1, 1e-6)
GROUP = "GROUP"


def tables(k: int = 20, accounting: str = "zcdp") -> Experiment:
    """Experiment on a target record alone in its cell of each of k tables, present or absent.

    The score is the log-likelihood ratio of the k noisy cells. The claim is mu = sqrt(2 rho) for the rho that the
    driver charged: the exact privacy loss of Gaussian noise of that price, and in `exact` what it promises.
    """
    cliques: tuple[Clique, ...] = tuple(("A", f"B{i}") for i in range(k))
    currency, rho = Currency(accounting), replace(BUDGET, accounting=accounting).zcdp().rho

    def ask(side: int, present: bool, breakage: Breakage | None) -> tuple[AuditedAnswers, NDArray[np.float64]]:
        schema = _schema(side, k)
        audited = AuditedAnswers(_rows(schema, side * side * present, side), breakage, unlimited_allotment(currency))
        return audited, _sum(run(counts(cliques, rho=rho), schema, audited))

    charged = float(ask(1, False, None)[0].charged())
    variance = k / (2 * charged)  # of the noise in each cell, by what was charged

    def draw(breakage: Breakage | None, runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        absent, present = (
            np.concatenate([ask(side, here, breakage)[1] for side in _sides(runs)]) for here in (False, True)
        )
        return _score(absent, k, variance), _score(present, k, variance)

    mu = math.sqrt(2 * charged)
    forgotten = Fault("sqrt(k) forgotten", whole_rho_for_each_table, normal(math.sqrt(k) * mu), 0.2, must=True)
    faults = (*quieter(lambda share: normal(mu / share)), *([forgotten] if k > 1 else []))
    return Experiment(f"counts: {k} tables{', exact' * (accounting == EXACT)}", (Point(mu, 0.0),), draw, faults)


def move() -> Experiment:
    """Experiment on a record that is in one stratum of a split, or in another one.

    Each stratum's table is charged rho, and by parallel composition so is the split. A move changes two tables at once
    and costs 2 rho: more than adding or removing a record, which is what the last control claims of it.
    """
    schema_of = {side: _schema(side, 1, GROUP) for side in (1, 2)}
    rho = BUDGET.zcdp().rho
    strata = crossing(schema_of[2], [GROUP])

    def program() -> Program[NDArray[np.float64]]:
        parts = yield from split({stratum: counts([("A", "B0")], rho=rho) for stratum in strata})
        left, entered = (_sum(parts[stratum]) for stratum in strata)
        return entered - left

    def ask(side: int, entered: bool, breakage: Breakage | None) -> tuple[AuditedAnswers, NDArray[np.float64]]:
        schema = _schema(side, 1, GROUP)
        audited = AuditedAnswers(_rows(schema, side * side, side, int(entered)), breakage)
        return audited, run(program(), schema, audited)

    audited, _ = ask(1, False, None)
    moved, one = float(audited.charged("move")), float(audited.charged())
    variance = 1 / (2 * one)

    def draw(breakage: Breakage | None, runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rng = np.random.default_rng()
        stayed, gone = (
            np.concatenate([ask(side, entered, breakage)[1] for side in _sides(runs)]) for entered in (False, True)
        )
        return jittered(stayed / variance, 1 / variance, rng), jittered(gone / variance, 1 / variance, rng)

    mu, cheap = math.sqrt(2 * moved), Point(math.sqrt(2 * one), 0.0)
    unpriced = Fault("claims add/remove for a move", None, normal(mu), points=(cheap,))
    faults = (*quieter(lambda share: normal(mu / share)), unpriced)
    return Experiment("counts: move between strata", (Point(mu, 0.0),), draw, faults)


def _sides(runs: int) -> Iterator[int]:
    """Yield numbers of levels a column, at most SIDE, of square tables that together have at least `runs` cells."""
    while runs > 0:
        side = min(SIDE, math.ceil(math.sqrt(runs)))
        yield side
        runs -= side * side


def _schema(side: int, k: int, *further: str) -> Schema:
    """Schema of a column A and k columns B0, B1, ... of `side` levels each, and `further` ones of two."""
    levels = Categorical(levels=tuple(str(i) for i in range(side)))
    two = Categorical(levels=("one", "other"))
    return Schema({"A": levels, **{f"B{i}": levels for i in range(k)}, **dict.fromkeys(further, two)})


def _rows(schema: Schema, number: int, side: int, group: int = 0) -> StoredRows:
    """StoredRows of a schema: one in each of the first `number` cells of the square of A and Bs, `side` by `side`.

    All have level number `group` in the column GROUP, if the schema has it.
    """
    a, b = (part.astype(np.int16) for part in np.divmod(np.arange(number), side))
    known: dict[str, NDArray[Any]] = {"A": a, GROUP: np.full(number, group, np.int8)}
    codes = {name: known.get(name, b) for name in schema.names}
    return StoredRows([CodedRows(schema, codes, {}, number)])


def _sum(answer: tuple[NoisyTable, ...]) -> NDArray[np.float64]:
    """Flat array of sums over the noisy tables of `answer`, cell by cell; the tables have one shape."""
    total: NDArray[np.float64] = np.sum([table.values.ravel() for table in answer], axis=0, dtype=np.float64)
    return total


def _score(total: NDArray[np.float64], k: int, variance: float) -> NDArray[np.float64]:
    """Array, one a run: jittered log-likelihood ratio that k cells are 1, not 0.

    `total` is an array, one a run, of the sums of their counts; `variance` is that of one cell's noise.
    """
    return jittered((2 * total - k) / (2 * variance), 1 / variance, np.random.default_rng())
