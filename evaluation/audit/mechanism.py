"""Audit of a mechanism: its recorded transcript, on the worst neighbours found."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Budget, Currency
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.errors import Unsupported
from stratsynth.evaluation.audit.broken import Breakage, Quieter
from stratsynth.evaluation.audit.claims import claimed, pilot_rates, tuned
from stratsynth.evaluation.audit.harness import HALF, THREE_QUARTERS, Experiment, Fault, Point, Rates, normal
from stratsynth.evaluation.audit.pair import Build, NeighbouringTables, recorded
from stratsynth.evaluation.audit.report import Audit, Report
from stratsynth.mechanisms import Mechanism, Public, as_mechanism, load, make
from stratsynth.stratified import Groupwise, Stratified
from stratsynth.testing import World, check_contract, worlds

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUDGET = Budget(3, 1e-6)
LONG = Budget(1, 1e-9)
"""Budget of the long form: the usual claim, which takes many runs to test."""
QUICK: dict[str, dict[str, Any]] = {
    "fair_sgd": {"groups": ["SEX"], "target": "WORK", "iterations": 3, "sampling": 0.5},
    "output_perturbation": {"model": "linear", "strength": 1e4},
    "linked": {"base": "mst"},
    "gem": {"components": 4, "hidden": [3], "latent": 2, "iterations": 1, "rounds": 2, "least": 20},
}
"""Mechanism's name -> settings for small worlds, where defaults would ask one question only, train at
length or move by far less than what is charged."""


def audit_mechanism(
    mechanism: Mechanism[Any] | Build | str,
    *,
    stratified: bool = False,
    world: World | None = None,
    budget: Budget = BUDGET,
    runs: int = 10_000,
    seconds: float = 60.0,
    neighbours: int = 50,
    tables: int = 6,
    controls: bool = True,
) -> Report:
    """Audit one mechanism, your own or a registered one, by itself or `stratified` by the world's groups.

    1. It is fitted once on a random table of a small world, and its questions are recorded. Of some random
       neighbouring tables the one is taken on which the recorded questions' answers cost the most to tell apart.
    2. All questions whose exact answers differ are answered anew, `runs` times on each of the two tables, by
       the real driver. The log-likelihood ratio of all answers together is the score; the bound is on mu if all noise
       is Gaussian, on sqrt(2 rho) if there are choices too, else on epsilon at several deltas; the claim is the
       ledger's record. If that would take more than about `seconds`, fewer runs are made, and less is demanded of the
       controls.
    3. The contract of `stratsynth.testing` is checked on `tables` tables: that neighbours are asked the same
       questions, and that nothing but answers reaches the result.

    An adaptive mechanism would ask other questions after other answers. Here the recorded questions are asked whatever
    is answered: that audits the prices of what was asked. Step 3 checks that later questions depend on earlier answers
    only.

    Args:
        mechanism: Mechanism to audit, or its name; or a function that makes it for a world, for strata of its groups.
        stratified: True to fit it in each of the world's groups.
        world: World to record it in; None for the first that it can be fitted in.
        budget: Budget of the fit.
        runs: Number of transcripts drawn from each of the two tables.
        seconds: Approximate time for the answering, controls included.
        neighbours: Number of neighbouring tables tried.
        tables: Number of tables that the contract is checked on; 0 leaves it out.
        controls: True to audit drivers with less noise too.

    Returns:
        A Report with one Audit, the findings of the contract, and the parts left out.
    """
    given = as_mechanism(mechanism) if isinstance(mechanism, str | type) else mechanism
    made: Build = (lambda _: given) if isinstance(given, Mechanism) else given
    build: Build = (lambda w: Stratified(made(w), w.by, w.weights)) if stratified else made
    chosen, first, base = recorded(build, world, budget)
    pair, name = NeighbouringTables.worst(chosen, first, base, budget, neighbours), build(chosen).title
    affordable = pair.affordable(seconds)
    number = min(runs, affordable)
    found = _experiment(name, pair, number, everything=affordable >= runs).run(number, controls=controls)
    found = replace(found, note="; ".join(filter(None, (found.note, _converted(found, budget)))))
    seed = int(np.random.default_rng().integers(2**31))
    among = [w for w in worlds() if _served(build(w), w, budget)]
    findings = (
        check_contract(lambda w, _: build(w), among=among, tables=tables, neighbours=4, seed=seed) if tables else []
    )
    return Report((found,), tuple(f"{name}: {finding.kind}: {finding.detail}" for finding in findings))


def audit_linked(
    mechanism: Mechanism[Any],
    *,
    budget: Budget = BUDGET,
    runs: int = 10_000,
    seconds: float = 60.0,
    neighbours: int = 30,
    declared: int = 10_000,
    controls: bool = True,
) -> Report:
    """Audit a mechanism for two linked tables on neighbours that differ by a household with all its persons.

    As `audit_mechanism` does, in a small world of households; the neighbours tried are one household more, of any
    number of persons: alike, so that all count in one cell, or not. The controls are noise that is too small, and
    households whose rows do not share one weight.

    Args:
        mechanism: Mechanism to audit.
        budget: Budget of the fit.
        runs: Number of transcripts drawn from each of the two pairs of tables.
        seconds: Approximate time for the answering, controls included.
        neighbours: Number of households tried.
        declared: Declared number of households, by which a mechanism settles what it asks; there are few.
        controls: True to audit broken drivers too.

    Returns:
        A Report with one Audit, and what is left out.
    """
    from stratsynth.evaluation.audit.linked import UNSHARED, linked_pair, unshared

    pair, broken = linked_pair(mechanism, budget, neighbours, declared)
    affordable = pair.affordable(seconds)
    number = min(runs, affordable)
    name = f"{mechanism.title}, {getattr(mechanism, 'children', '')}".removesuffix(", ")
    plain = _experiment(name, pair, number, everything=affordable >= runs)
    told = [broken.noisy if point.score else broken.information for point in plain.points]
    rates = tuple(rate for share in told for rate in normal(math.sqrt(2 * share)))

    def draw(breakage: Breakage | None, runs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return broken.draw(None, runs) if breakage is unshared else pair.draw(breakage, runs)

    fault = Fault(UNSHARED, unshared, rates, part=0.3, points=plain.points, must=affordable >= runs)
    found = replace(plain, draw=draw, faults=(*plain.faults, fault)).run(number, controls=controls)
    found = replace(found, note="; ".join(filter(None, (found.note, _converted(found, budget)))))
    return Report((found,), (), ("linked: the contract, which is checked in small worlds of one table",))


def _served(mechanism: Mechanism[Any], world: World, budget: Budget) -> bool:
    """True if the mechanism states a price for the `budget` in a world's schema; False if it raises Unsupported."""
    try:
        mechanism.price(Public(world.schema, world.declared_size, budget.neighbours), budget)
    except Unsupported:
        return False
    return True


def _experiment(name: str, pair: NeighbouringTables, runs: int, *, everything: bool) -> Experiment:
    """Experiment called `name`, `runs` runs a table, on a pair of neighbouring tables: claims and two faults.

    The faults are half and three quarters of the noise; with `everything`, half must be caught for sure.
    """
    claims = claimed(pair.run.charges, pair.budget)
    # zCDP: the best threshold is half way, and the error rates follow from the divergence of the answers
    gaussian = claims[0].delta is None
    mu = math.sqrt(2 * pair.information) if gaussian else 0.0
    noisy = math.sqrt(2 * pair.noisy) if gaussian else 0.0

    def pilot(share: float, breakage: Breakage | None) -> tuple[tuple[Point, ...], Rates]:
        """(Points with thresholds, error rates) at a `share` of the noise, by formula or runs with a `breakage`."""
        if gaussian:
            return claims, tuple(rates for p in claims for rates in normal((noisy if p.score else mu) / share))
        scores = pair.draw(breakage, max(200, runs // 4))
        # if the score is the true log ratio, the best test of an epsilon at delta is score >= epsilon
        points = claims if pair.currency == Currency.SAMPLED else tuned(claims, scores)
        return points, pilot_rates(points, scores)

    def fault(name: str, share: float) -> Fault:
        points, rates = pilot(share, Quieter(share))
        return Fault(name, Quieter(share), rates, points=points, must=everything and share == 0.5)

    faults = fault(HALF, 0.5), fault(THREE_QUARTERS, 0.75)
    return Experiment(name, pilot(1.0, None)[0], pair.draw, faults, note=pair.note())


def _converted(found: Audit, budget: Budget) -> str:
    """Sentence part: the audit's claim and lower bound as epsilon at the budget's delta, by the conversion of rho.

    The text is empty if the unit of the audit `found` is neither mu nor the root of 2 rho.
    """
    if found.unit not in ("mu", "sqrt(2 rho)"):
        return ""
    claim, lower = (epsilon_of(root**2 / 2, budget.delta) for root in (found.claim, found.lower))
    return f"as epsilon at {budget.delta:g}, by the conversion of rho: {claim:.3f} claimed, {lower:.3f} seen"


def audit_registered(name: str, *, long: bool = False) -> Report:
    """Report on the registered mechanism `name`, alone and in strata; alone, with a reason, if it cannot be stratified.

    One that makes strata itself is fitted once, in the strata of each world. `long` takes more runs, at a smaller
    epsilon.
    """
    runs, seconds, tables = (100_000, 180.0, 20) if long else (10_000, 8.0, 6)
    budget, settings = LONG if long else BUDGET, QUICK.get(name, {})
    if issubclass(load(name), Groupwise):

        def groupwise(world: World) -> Mechanism[Any]:
            return make(name, {**settings, "by": world.by, "weights": world.weights})

        return audit_mechanism(groupwise, budget=budget, runs=runs, seconds=seconds, tables=tables)
    mechanism = make(name, settings)
    if mechanism.takes_linked:
        orders = [make(name, {**settings, "children": children}) for children in ("chain", "independent")]
        found = [audit_linked(order, budget=budget, runs=runs, seconds=seconds) for order in orders]
        return Report(tuple(audit for report in found for audit in report.audits), (), found[0].skipped)
    alone = audit_mechanism(mechanism, budget=budget, runs=runs, seconds=seconds, tables=tables)
    try:
        stratified = audit_mechanism(
            mechanism, stratified=True, budget=budget, runs=runs, seconds=seconds, tables=tables
        )
    except Unsupported as reason:
        return replace(alone, skipped=(f"{name}, stratified: {reason}",))
    return Report(alone.audits + stratified.audits, alone.findings + stratified.findings)
