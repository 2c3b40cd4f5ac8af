"""The contract every mechanism must pass, as one function that returns what it found wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Budget, Neighbours
from stratsynth.accounting.charges import Spending
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.digest import digest
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.private import PrivateAnswers
from stratsynth.mechanisms import Mechanism
from stratsynth.testing.moved import exact_answers, moved, standard_noise
from stratsynth.testing.record import Driver, Run, record, same
from stratsynth.testing.worlds import World, worlds

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.questions import Answer
    from stratsynth.questions.handler import Rows

Build = Callable[[World, "pd.DataFrame"], Mechanism[Any]]
"""Makes the mechanism for a world. It is handed the private rows so that tests can build one that cheats."""

KINDS = ("any", "empty", "one", "constant", "lopsided", "any", "any")


@dataclass(frozen=True)
class Finding:
    """One way in which a mechanism or a driver broke the contract."""

    kind: str
    """`questions`, `sensitivity`, `charges`, `noise`, `answers`, `result`, `output`, `failure`, `state`, `adaptive`."""
    detail: str


def check_contract(
    build: Build,
    *,
    driver: Driver = PrivateAnswers,
    load: Callable[..., Rows] = load_rows,
    among: Sequence[World] = (),
    tables: int = 20,
    neighbours: int = 10,
    seed: int = 0,
) -> list[Finding]:
    """Every way found in which the mechanism depends on rows without paying; empty when it is sound.

    For each table: fit once and record. For each of its neighbouring tables, check that the exact answers to the
    recorded questions differ by no more than was charged. Then fit again with the recorded answers: questions,
    shapes, charges, output and result must be the same, and nothing may fail. Any table will do for that, since a
    chain of neighbours leads to it: every second one is a stranger, which finds thresholds that a single record
    seldom crosses.

    Args:
        build: Makes the mechanism for a world.
        driver: What answers from rows; tests put broken ones in its place.
        load: What makes rows of a source, for exact answers.
        among: Worlds for a mechanism that needs columns which the usual ones lack.
        tables: The number of tables.
        neighbours: The number of neighbouring tables of each.
        seed: Of the tables.
    """
    rng = np.random.default_rng(seed)
    found: dict[Finding, None] = {}
    budget = Budget(epsilon=3, delta=1e-6)
    settings = list(among or worlds())
    noise: list[NDArray[np.float64]] = []
    courses: dict[int, Counter[Any]] = {}
    for i in range(tables):
        world = settings[i % len(settings)]
        rows = world.table(rng, KINDS[(i // len(settings)) % len(KINDS)])
        first, wrong = _quietly(build, world, rows, budget, driver, i)
        found.update(dict.fromkeys(wrong))
        if wrong:
            continue
        usual = courses.setdefault(i % len(settings), _course(first))
        if usual != _course(first) and not build(world, rows).adaptive:
            detail = "what it pays for which kind of question depends on answers: do not say adaptive = False"
            found[Finding("adaptive", detail)] = None
        asked = [a for a, _ in _asked(first)]
        exact = exact_answers(load(world.schema, open_source(rows)), asked)
        for (a, answer), truth in zip(_asked(first), exact, strict=True):
            noise.extend(standard_noise(a, truth, budget.neighbours, answer))
        for j in range(neighbours):
            other = world.neighbour(rows, rng)
            there = exact_answers(load(world.schema, open_source(other)), asked)
            found.update(dict.fromkeys(_sensitivity(first, exact, there, budget)))
            if j % 2:
                other = world.table(rng, KINDS[j % len(KINDS)])
            second = record(build(world, other), world, other, budget, driver, frozen=first)
            found.update(dict.fromkeys(_compare(first, second)))
    found.update(dict.fromkeys(_spread(noise)))
    return list(found)


def _course(run: Run) -> Counter[Any]:
    """The number of charges by path, kind, amount and price factor under replace-one."""
    return Counter((c.path, c.kind, c.amount, c.factor(Neighbours.ADD_REMOVE, Neighbours.REPLACE)) for c in run.charges)


def _quietly(
    build: Build, world: World, rows: pd.DataFrame, budget: Budget, driver: Driver, seed: int
) -> tuple[Run, list[Finding]]:
    """Fit once, and look whether global state or the caller's table was touched."""
    before, copy = _global_state(), rows.copy(deep=True)
    first = record(build(world, rows), world, rows, budget, driver, seed=seed)
    wrong = [Finding("failure", first.failure)] if first.failure else []
    if before != _global_state():
        wrong.append(Finding("state", "global random state was used"))
    if not rows.equals(copy):
        wrong.append(Finding("state", "the caller's table was changed"))
    if not first.failure and not first.charges:
        wrong.append(Finding("charges", "nothing was charged"))
    if any(isinstance(answer, tuple) and len(answer) == 0 for _, answer in _asked(first)):
        wrong.append(Finding("answers", "a question was not answered in full"))
    return first, wrong


def _global_state() -> str:
    return digest(random.getstate(), np.random.get_state(legacy=False)["state"])  # noqa: NPY002 - looked at, not used


def _asked(run: Run) -> Iterator[tuple[Asked, Answer]]:
    for batch, answers in zip(run.batches, run.answers, strict=True):
        yield from zip(batch, answers, strict=True)


def _sensitivity(run: Run, here: Sequence[Any], there: Sequence[Any], budget: Budget) -> Iterator[Finding]:
    """The exact answers of neighbouring tables, priced by the noise they got, against what was charged."""
    neighbours, everywhere = budget.neighbours, Fraction(0)
    for (a, answer), one, two in zip(_asked(run), here, there, strict=True):
        cost = moved(a, one, two, neighbours, answer)
        charged = sum((Fraction(c.amount) for c in a.question.charges(a.schema, a.path, neighbours)), Fraction(0))
        if cost > charged:
            yield Finding("sensitivity", f"{type(a.question).__name__}: one record moved more than was charged")
        everywhere += cost
    # one record moves one stratum of a split, so what moved anywhere is within the cost of the whole
    if everywhere > Spending(neighbours, run.charges).spent() * Fraction(1 + 1e-9):
        yield Finding("sensitivity", "all questions together moved more than the whole fit was charged")


def _spread(noise: Sequence[NDArray[np.float64]]) -> Iterator[Finding]:
    """The mean square of standard noise is 1, give or take sqrt(2 / n)."""
    pooled = np.concatenate([*noise, np.zeros(0)])
    if pooled.size and abs(np.mean(pooled**2) - 1) > 6 * (2 / pooled.size) ** 0.5:
        yield Finding("noise", "the noise that was added is not the noise that was declared and charged")


def _compare(first: Run, second: Run) -> Iterator[Finding]:
    """With the answers frozen, nothing may differ between neighbouring tables."""
    if second.failure:
        yield Finding("failure", second.failure)
    if first.questions() != second.questions():
        if not second.failure:
            yield Finding("questions", "neighbouring tables are asked different questions")
        return
    if first.shapes != second.shapes:
        yield Finding("answers", "answers to neighbouring tables differ in shape, type or noise")
    if first.charges != second.charges:
        yield Finding("charges", "neighbouring tables are charged differently")
    if first.heard != second.heard:
        yield Finding("output", "logs, warnings or terminal output differ between neighbouring tables")
    if not same(first.result, second.result):
        yield Finding("result", "the same answers gave different results on neighbouring tables")
