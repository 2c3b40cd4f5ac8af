"""Contract that every mechanism must pass, as one function that returns the violations it finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Budget, Neighbours
from stratsynth.accounting.charges import Spending
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.private import PrivateAnswers
from stratsynth.mechanisms import Mechanism
from stratsynth.testing.privacy_loss import exact_answers, privacy_loss, standard_noise
from stratsynth.testing.record import CAN_FORK, Driver, Run, apart, identical, record
from stratsynth.testing.worlds import World, worlds

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.questions import Answer
    from stratsynth.questions.reading import Rows

Build = Callable[[World, "pd.DataFrame"], Mechanism[Any]]
"""Maker of the mechanism for a world; it gets the private rows so that tests can build a mechanism that cheats."""

KINDS = ("any", "empty", "one", "constant", "lopsided", "any", "many")
NEVER = 1e-9
"""Probability of a false finding about noise that has the declared distribution."""
SAID = {
    "questions": "neighbouring tables are asked different questions",
    "charges": "neighbouring tables are charged differently",
    "work": "other problems are handed out as work on neighbouring tables",
    "settings": "settings, name, needs, price or certificate differ between neighbouring tables",
    "output": "logs, warnings or terminal output differ between neighbouring tables",
    "files": "files are written, programs started or connections opened on some tables",
    "state": "the process is changed differently on neighbouring tables",
    "result": "the same answers gave different results on neighbouring tables",
    "failure": "a fit fails on some tables and not on others",
}
"""Kind of finding -> sentence, for differences between runs with the same answers."""


SPEND = Budget(epsilon=3, delta=1e-6)
"""Budget of each fit, where no other is wanted."""


@dataclass(frozen=True)
class Finding:
    """One way in which a mechanism or a driver broke the contract."""

    kind: str
    """`questions`, `sensitivity`, `charges`, `noise`, `answers`, `work`, `result`, `settings`, `output`, `files`,
    `failure`, `state`, `adaptive`."""
    detail: str


def check_contract(
    build: Build,
    *,
    driver: Driver = PrivateAnswers,
    load: Callable[..., Rows] = load_rows,
    among: Sequence[World] = (),
    tables: int = 20,
    neighbours: int = 10,
    orders: int | None = None,
    seed: int = 0,
    spend: Budget = SPEND,
) -> list[Finding]:
    """Return the ways in which a mechanism depends on rows without paying, as Findings; [] if it is sound.

    First, in separate processes where nothing has been run before, two very different tables are fitted in both orders,
    with answers about the same one of them: every run must be equal. That detects state kept from one run to the next,
    and behaviour that begins above a few hundred rows. It needs a system that can fork, Linux; and a mechanism that
    this process has already run may have kept something, so check in a fresh one.

    Then each table is fitted once and recorded. For each of its neighbouring tables, the exact answers to the recorded
    questions may differ by no more than was charged. Then the neighbour is fitted with the recorded answers: questions,
    shapes, charges, work, what the mechanism and its certificate state, output, result, and the model's outputs with a
    fixed seed must be equal, and nothing may fail. Every second of these tables is a stranger, not a neighbour: any
    table is valid there, since a chain of neighbours leads to it, and it reveals thresholds that one record seldom
    crosses.

    No fit may write files, start programs, open connections, or change the state of the process. Not detectable are a
    trigger on one value that no generated table has, timing, and memory shared with other processes.

    Args:
        build: Makes the mechanism for a world.
        driver: Makes the answers from rows; tests replace it by broken ones.
        load: Makes rows of a source, for exact answers.
        among: Worlds for a mechanism that needs columns which the usual ones lack; all of one notion of neighbour.
        tables: Number of tables.
        neighbours: Number of neighbouring tables of each.
        orders: Number of worlds in which two tables are fitted in both orders; None for all of them.
        seed: Seed of the tables, and number of the kind of table to begin with.
        spend: Budget of each fit; its neighbours are the worlds'.
    """
    rng = np.random.default_rng(seed)
    found: dict[Finding, None] = {}
    settings = list(among or worlds())
    (notion,) = {world.neighbours for world in settings}
    budget = replace(spend, neighbours=notion)
    if CAN_FORK:
        chosen = [settings[(i + seed) % len(settings)] for i in range(len(settings))][:orders]
        found.update(dict.fromkeys(f for world in chosen for f in _orders(build, world, budget, driver, rng)))
    noise: list[NDArray[np.float64]] = []
    courses: dict[int, Counter[Any]] = {}
    for i in range(tables):
        world = settings[i % len(settings)]
        rows = world.table(rng, KINDS[(i // len(settings) + seed) % len(KINDS)])
        first, wrong = _quietly(build, world, rows, budget, driver, i)
        found.update(dict.fromkeys(wrong))
        if wrong:
            continue
        usual = courses.setdefault(i % len(settings), _course(first))
        if usual != _course(first) and not build(world, rows).adaptive:
            detail = "what it pays for which kind of question depends on answers: do not say adaptive = False"
            found[Finding("adaptive", detail)] = None
        asked = [a for a, _ in _asked(first)]
        counted = first.schema or world.schema
        exact = exact_answers(load(counted, open_source(rows)), asked)
        for (a, answer), truth in zip(_asked(first), exact, strict=True):
            noise.extend(standard_noise(a, truth, budget.neighbours, answer))
        for j in range(neighbours):
            other = world.neighbour(rows, rng)
            there = exact_answers(load(counted, open_source(other)), asked)
            found.update(dict.fromkeys(_sensitivity(first, exact, there, budget)))
            if j % 2:
                other = world.stranger(rows, rng, KINDS[(j + seed) % len(KINDS)])
            second = record(build(world, other), world, other, budget, driver, frozen=first)
            found.update(dict.fromkeys(_compare(first, second)))
    found.update(dict.fromkeys(_spread(noise)))
    return list(found)


def _course(run: Run) -> Counter[Any]:
    """Return a Counter of a run's charges by (path, kind, amount, price factor under replace-one)."""
    return Counter((c.path, c.kind, c.amount, c.factor(Neighbours.ADD_REMOVE, Neighbours.REPLACE)) for c in run.charges)


def _orders(build: Build, world: World, budget: Budget, driver: Driver, rng: np.random.Generator) -> Iterator[Finding]:
    """Yield findings on two tables of a world, by `rng`, fitted in both orders, each order in a process of its own.

    `build` makes the mechanism, fitted in the budget by the driver. All questions are answered from the first table, so
    all runs must be equal.
    """
    one = world.table(rng, "any")
    many = world.stranger(one, rng, "many")

    def runs(order: Sequence[pd.DataFrame]) -> list[dict[str, str]]:
        return [record(build(world, rows), world, rows, budget, driver, twin=one).parts() for rows in order]

    seen: list[dict[str, str]] = []
    for order in ((one, many), (many, one)):
        found = apart(lambda order=order: runs(order))  # type: ignore[misc]
        if found is None:
            yield Finding("failure", "the process ended, or came to no end, during a fit")
            return
        seen.extend(found)
    for kind, said in SAID.items():
        if len({parts[kind] for parts in seen}) > 1:
            yield Finding(kind, said)


def _quietly(
    build: Build, world: World, rows: pd.DataFrame, budget: Budget, driver: Driver, seed: int
) -> tuple[Run, list[Finding]]:
    """Fit the frame `rows` once, by the mechanism that `build` makes in a world, in this budget, driver and seed.

    Return (the fit's `Run`, a list of `Finding` on failures, missing charges and changes outside).
    """
    copy = rows.copy(deep=True)
    first = record(build(world, rows), world, rows, budget, driver, seed=seed)
    wrong = [Finding("failure", first.failure)] if first.failure else []
    wrong.extend(_traces(first))
    if not rows.equals(copy):
        wrong.append(Finding("state", "the caller's table was changed"))
    if not first.failure and not first.charges:
        wrong.append(Finding("charges", "nothing was charged"))
    if any(isinstance(answer, tuple) and len(answer) == 0 for _, answer in _asked(first)):
        wrong.append(Finding("answers", "a question was not answered in full"))
    return first, wrong


def _traces(run: Run) -> Iterator[Finding]:
    """Yield a finding for each side effect of a run that a fit may not have, on any table."""
    for event in sorted(run.watched.did):
        yield Finding("files", f"a fit does what others can see: {event}")
    for what in sorted(run.watched.changed):
        yield Finding("state", f"a fit changes what others use: {what}")


def _asked(run: Run) -> Iterator[tuple[Asked, Answer]]:
    """Yield (question asked, answer) for all questions of a run, in order."""
    for batch, answers in zip(run.batches, run.answers, strict=True):
        yield from zip(batch, answers, strict=True)


def _sensitivity(run: Run, here: Sequence[Any], there: Sequence[Any], budget: Budget) -> Iterator[Finding]:
    """Yield findings on a run's questions whose exact answers `here` and `there` differ by more than was charged.

    Each is a list in the order of the questions; neighbours are those of `budget`; all questions together are checked
    too.
    """
    neighbours, everywhere = budget.neighbours, Fraction(0)
    for (a, answer), one, two in zip(_asked(run), here, there, strict=True):
        cost = privacy_loss(a, one, two, neighbours, answer)
        charged = sum(
            (Fraction(c.amount) for c in a.question.charges(a.schema, a.path, neighbours.priced)), Fraction(0)
        )
        if cost > charged:
            yield Finding("sensitivity", f"{type(a.question).__name__}: one record moved more than was charged")
        everywhere += cost
    # parallel composition: one record is in one stratum of a split, so all costs together stay within the fit's charge
    if everywhere > Spending(neighbours, run.charges).spent() * Fraction(1 + 1e-9):
        yield Finding("sensitivity", "all questions together moved more than the whole fit was charged")


def _spread(noise: Sequence[NDArray[np.float64]]) -> Iterator[Finding]:
    """Yield a finding if `noise`, a list of arrays of standardised noise, fails a chi-square test.

    Right noise fails each side by chance `NEVER`.
    """
    from scipy import stats

    pooled = np.concatenate([*noise, np.zeros(0)])
    law, square = stats.chi2(max(1, pooled.size)), float(np.sum(pooled**2))
    if pooled.size and min(law.cdf(square), law.sf(square)) < NEVER:
        yield Finding("noise", "the noise that was added is not the noise that was declared and charged")


def _compare(first: Run, second: Run) -> Iterator[Finding]:
    """Yield a finding for each difference between runs `first`, `second` on neighbouring tables with equal answers."""
    if second.failure:
        yield Finding("failure", second.failure)
    yield from _traces(second)
    if first.stated != second.stated:
        yield Finding("settings", SAID["settings"])
    if first.questions != second.questions:
        if not second.failure:
            yield Finding("questions", SAID["questions"])
        return
    if first.shapes != second.shapes:
        yield Finding("answers", "answers to neighbouring tables differ in shape, type or noise")
    if first.charges != second.charges:
        yield Finding("charges", SAID["charges"])
    if first.works != second.works:
        yield Finding("work", SAID["work"])
    if first.watched.heard != second.watched.heard:
        yield Finding("output", SAID["output"])
    if second.failure:
        return
    if first.certified != second.certified:
        yield Finding("settings", SAID["settings"])
    if not identical(first.result, second.result) or first.given != second.given:
        yield Finding("result", SAID["result"])
