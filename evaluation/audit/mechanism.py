"""The audit of a mechanism: its recorded transcript, on the worst neighbours found."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from stratsynth.evaluation.audit.broken import Breakage, Quieter
from stratsynth.evaluation.audit.claims import ASSUMED, claimed, seen, tuned
from stratsynth.evaluation.audit.desk import Desk, plenty
from stratsynth.evaluation.audit.harness import HALF, THREE_QUARTERS, Experiment, Fault, Point, Rates, normal
from stratsynth.evaluation.audit.likelihood import Transcript
from stratsynth.evaluation.audit.report import Report

from stratsynth.accounting.budget import Budget, Currency, Neighbours
from stratsynth.accounting.charges import Spending
from stratsynth.driver.load import load_rows
from stratsynth.errors import Unsupported
from stratsynth.mechanism import Mechanism, make, title
from stratsynth.sources import open_source
from stratsynth.stratified import Stratified
from stratsynth.testing import World, check_contract, worlds
from stratsynth.testing.moved import exact_answers, moved
from stratsynth.testing.record import Run, record

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.driver.rows import Rows

BUDGET = Budget(3, 1e-6)


def audit_mechanism(
    mechanism: Mechanism[Any], *, stratified: bool = False, world: World | None = None, budget: Budget = BUDGET,
    runs: int = 10_000, neighbours: int = 50, tables: int = 6, controls: bool = True,
) -> Report:  # fmt: skip
    """Audit one mechanism, your own or a registered one, by itself or `stratified` by the world's groups.

    1. It is fitted once on a random table of a small world, and what it asked is recorded. Of some random
       neighbouring tables the one is taken on which the recorded questions' answers cost the most to tell apart.
    2. All questions whose exact answers differ are answered anew, `runs` times on each of the two tables, by
       the real driver. The log-likelihood ratio of all answers together is the score; the bound is on mu where
       all noise is Gaussian, else on epsilon at several deltas; the claim is what the ledger recorded.
    3. The contract of `stratsynth.testing` is checked on so many `tables`: that neighbours are asked the same
       questions, and that nothing but answers reaches the result.

    An adaptive mechanism would ask other questions after other answers. Here the recorded questions are asked
    whatever is answered: that audits the prices of what was asked. That later questions depend on earlier answers
    only is what 3 looks at.
    """
    build = _stratify(mechanism) if stratified else lambda _: mechanism
    chosen, first, base = _record(build, world, budget)
    experiment = _experiment(title(build(chosen)), chosen, first, base, budget, neighbours, runs)
    found = experiment.run(runs, controls=controls)
    findings = check_contract(lambda w, _: build(w), tables=tables, neighbours=4, seed=_seed()) if tables else []
    return Report((found,), tuple(f"{found.what}: {finding.kind}: {finding.detail}" for finding in findings))


def _stratify(mechanism: Mechanism[Any]) -> Callable[[World], Mechanism[Any]]:
    return lambda world: Stratified(mechanism, world.by, world.weights)


def _seed() -> int:
    return int(np.random.default_rng().integers(2**31))


def _record(
    build: Callable[[World], Mechanism[Any]], world: World | None, budget: Budget
) -> tuple[World, Run, pd.DataFrame]:
    """The first world that the mechanism can be fitted in, what it asked there, and of which table."""
    why = "it asked nothing"
    for candidate in [world] if world is not None else list(worlds()):
        for kind in ("any", "empty"):
            rows = candidate.table(np.random.default_rng(), kind)
            first = record(build(candidate), candidate, rows, budget)
            # a Poisson sample's likelihood is known for an empty table and one record only
            if first.failure or not first.charges:
                why = first.failure or why
            elif kind == "empty" or first.charges[0].currency != Currency.SAMPLED:
                return candidate, first, rows
    raise Unsupported(f"audit: the mechanism could not be fitted in a small world: {why}.")


def _experiment(
    what: str, world: World, first: Run, base: pd.DataFrame, budget: Budget, neighbours: int, runs: int
) -> Experiment:
    """The recorded questions on the table they were asked of and on its worst neighbour."""
    asked, charge = [a for batch in first.batches for a in batch], first.charges[0]
    here = load_rows(world.schema, open_source(base))
    cost, there = _worst(world, first, base, here, budget, neighbours)
    transcript = Transcript.of(asked, exact_answers(here, asked), exact_answers(there, asked), budget.neighbours)
    if not transcript.asked:
        raise Unsupported("audit: no neighbouring table was found on which any answer differs.")
    sampled = charge.currency == Currency.SAMPLED
    reserved = plenty(
        charge.currency, budget.neighbours, noise=charge.details.get("noise"), rate=charge.details.get("rate")
    )

    def draw(breakage: Breakage | None, number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        desks = [Desk(rows, breakage, reserved) for rows in (here, there)]
        one, two = (transcript.draw(desk, number, ASSUMED if sampled else ASSUMED[:1]) for desk in desks)
        return one, two

    claims = claimed(first.charges, budget)
    # all noise Gaussian: the best threshold is half way, and the error rates follow from the pair's cost
    known = claims[0].delta is None

    def pilot(breakage: Breakage | None) -> tuple[tuple[Point, ...], Rates]:
        """Thresholds, and rates, from runs that are not used again."""
        if known:
            return claims, normal(math.sqrt(2 * float(cost)))
        scores = draw(breakage, max(200, runs // 4))
        points = tuned(claims, scores)
        return points, seen(points, scores)

    def fault(name: str, share: float) -> Fault:
        points, rates = pilot(Quieter(share))
        rates = normal(math.sqrt(2 * float(cost)) / share) if known else rates
        return Fault(name, Quieter(share), rates, 0.3 if known and share == 0.5 else 1.0, points, must=share == 0.5)

    faults = fault(HALF, 0.5), fault(THREE_QUARTERS, 0.75)
    points, _ = pilot(None)
    note = f"{len(transcript.asked)} of {len(asked)} recorded questions differ between the two tables"
    if charge.currency == Currency.ZCDP:
        spent = Spending(budget.neighbours, first.charges).spent()
        note += f", and they use {float(cost / spent):.0%} of what was charged"
    return Experiment(what, points, draw, faults, note=note)


def _worst(
    world: World, first: Run, base: pd.DataFrame, here: Rows, budget: Budget, number: int
) -> tuple[Fraction, Rows]:
    """Of some random neighbours the one that costs the most to tell apart, and that cost."""
    rng = np.random.default_rng()
    asked = [a for batch in first.batches for a in batch]
    answers: Sequence[Any] = [answer for given in first.answers for answer in given]
    exact = exact_answers(here, asked)
    most, worst = Fraction(-1), here
    for _ in range(number):
        rows = load_rows(world.schema, open_source(_neighbour(world, base, rng, budget.neighbours)))
        found = zip(asked, exact, exact_answers(rows, asked), answers, strict=True)
        cost = sum((moved(a, one, two, budget.neighbours, answer) for a, one, two, answer in found), Fraction(0))
        if cost > most:
            most, worst = cost, rows
    return most, worst


def _neighbour(world: World, base: pd.DataFrame, rng: Generator, neighbours: Neighbours) -> pd.DataFrame:
    """One record more or fewer, or one exchanged."""
    if neighbours == Neighbours.ADD_REMOVE:
        return world.neighbour(base, rng)
    import pandas as pd

    kept = base.drop(index=int(rng.integers(len(base)))) if len(base) else base
    return pd.concat([kept, world.table(rng, "one").head(len(base))], ignore_index=True)


def audit_registered(name: str, *, long: bool = False) -> Report:
    """Audit a registered mechanism with its default settings, alone and stratified."""
    runs, tables = (100_000, 20) if long else (10_000, 6)
    mechanism = make(name, {})
    alone = audit_mechanism(mechanism, runs=runs, tables=tables)
    try:
        stratified = audit_mechanism(mechanism, stratified=True, runs=runs, tables=tables)
    except Unsupported as reason:
        return replace(alone, skipped=(f"{name}, stratified: {reason}",))
    return Report(alone.audits + stratified.audits, alone.findings + stratified.findings)
