"""Reductions in all their ways on neighbouring tables; and the planted leaks that this must catch."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from helpers.contract import violations
from helpers.small import even
from stratsynth import Categorical, Numeric, Schema, Stratified
from stratsynth.accounting.budget import PRICED, Budget
from stratsynth.adapters import Reductions
from stratsynth.adapters.reductions import loop
from stratsynth.adapters.reductions.oracles import DescentOracle
from stratsynth.evaluation.audit import audit_mechanism
from stratsynth.mechanisms import make
from stratsynth.questions import Confusions, GroupLosses
from stratsynth.testing import World, check_contract, worlds

NUMBER = Schema(
    {
        "X": Numeric(lower=0, upper=10, bins=2),
        "GROUP": Categorical(levels=("a", "b")),
        "YES": Categorical(levels=("n", "y")),
    }
)
AMONG = [*list(worlds())[:2]]
ODDS = {"target": "SEX", "groups": ["GROUP"], "constraints": {"equalized_odds": 0.05}}
WAYS = {
    "gradients": ODDS,
    "gradients, classic weights, groups as features": {
        **ODDS,
        "features": ["GROUP", "AGE"],
        "mixing": "classic",
        "smoothing": "softmax",
        "versus": "overall",
    },
    "several constraints at once": {
        **ODDS,
        "constraints": {"demographic_parity": 0.1, "gini": 0.05, "h_mean": 0.5, "bounded_loss": {"1": 0.3}},
        "objective": "worst_error",
    },
    "exponential, a net": {**ODDS, "oracle": "exponential", "candidates": "net", "number": 20},
    "sampling, a pool": {**ODDS, "method": "sampling", "number": 20, "objective": "g_mean"},
    "sampling, everybody": {
        "target": "SEX",
        "method": "sampling",
        "candidates": "net",
        "objective": "h_mean",
        "number": 8,
        "constraints": {"false_positive_rate": 0.2, "g_mean": 0.5},
    },
    "losses of probabilities": {
        **ODDS,
        "objective": "worst_log_loss",
        "loss_clip": 2.0,
        "constraints": {"demographic_parity": 0.1, "bounded_squared_loss": {"1": 0.2, "2|1": 0.3}},
    },
    "without chance": {**ODDS, "deterministic": True, "objective": "balanced_error"},
    "three levels": {
        "target": "GROUP",
        "groups": ["SEX"],
        "objective": "g_mean",
        "constraints": {"error_parity": 0.1, "worst_f": 0.3, "bounded_loss": {"1": 0.6}},
    },
    "three levels, sampling": {
        "target": "GROUP",
        "method": "sampling",
        "candidates": "net",
        "number": 8,
        "objective": "h_mean",
        "constraints": {"micro_f": 0.3},
    },
}
SHORT = {"iterations": 3, "inner_steps": 2, "start_steps": 2}


def checked(settings, among=AMONG, check=violations, tables=3):
    def build(world, rows):
        return make("reductions", {**SHORT, **settings})

    return check(build, among=among, tables=tables, neighbours=3, orders=1)


@pytest.mark.parametrize("way", WAYS)
def test_alone(way):
    assert checked(WAYS[way]) == []


@dataclass(frozen=True, kw_only=True)
class PureReductions(Reductions):
    """Spends the budget of the check in pure epsilon, as it does where delta is 0."""

    def price(self, public, budget):
        Reductions.price(self, public, replace(budget, delta=0))
        return budget.pure()


@pytest.mark.parametrize("way", ["sampling, everybody", "exponential, a net", "three levels, sampling"])
def test_in_pure_epsilon(way):
    def build(world, rows):
        return PureReductions(**{**SHORT, **WAYS[way]})

    assert violations(build, among=AMONG, tables=3) == []


def test_thresholds():
    world = World(NUMBER, ("GROUP",), even(NUMBER, "GROUP"))
    how = {
        "target": "YES",
        "features": ["X"],
        "groups": ["GROUP"],
        "method": "sampling",
        "candidates": "thresholds",
        "number": 10,
        "constraints": {"demographic_parity": 0.1},
    }
    assert checked(how, [world]) == []


def test_within_strata():
    def build(world, rows):
        inner = make("reductions", {**SHORT, **ODDS, "target": "WORK2", "groups": ["GROUP"]})
        return Stratified(inner, ["SEX"], even(world.schema, "SEX"))

    schema = Schema({**AMONG[0].schema.columns, "WORK2": Categorical(levels=("no", "yes"))})
    world = World(schema, ("SEX",), even(schema, "SEX"))
    assert violations(build, among=[world], tables=3, neighbours=3) == []


@dataclass(frozen=True, kw_only=True)
class RawLosses(Reductions):
    """The paper's Algorithm 2: the oracle's weights are made of exact losses, here of the first group's count."""

    exact: float = 0.0

    def goal(self, sizes):
        sizes.numbers[0] += self.exact
        return Reductions.goal(self, sizes)


def test_weights_of_exact_losses_are_caught():
    def build(world, rows):
        return RawLosses(**SHORT, **ODDS, exact=float((rows["GROUP"] == "1").sum()))

    found = {finding.kind for finding in check_contract(build, among=AMONG[:1], tables=4, neighbours=4)}
    assert found & {"questions", "result"}


def test_a_row_in_two_cells_is_caught(monkeypatch):
    proper = Confusions.exact

    def twice(query, rows, which):
        return [block + np.roll(block, 1) for block in proper(query, rows, which)]

    monkeypatch.setattr(Confusions, "exact", twice)
    assert "sensitivity" in {finding.kind for finding in checked(ODDS, check=check_contract, tables=4)}


def test_losses_that_are_not_cut_are_caught(monkeypatch):
    proper = GroupLosses.exact

    def whole(query, rows, which):
        return [3 * block for block in proper(query, rows, which)]

    monkeypatch.setattr(GroupLosses, "exact", whole)
    assert "sensitivity" in {
        finding.kind for finding in checked(WAYS["losses of probabilities"], check=check_contract, tables=4)
    }


class Generous(DescentOracle):
    """Spends on one problem what it may spend on two."""

    def solve(self, task, sizes, weights, start, rho):
        return (yield from DescentOracle.solve(self, task, sizes, weights, start, 2 * rho))


def test_more_than_the_allotment_is_refused_by_the_driver(monkeypatch):
    monkeypatch.setattr(loop, "DescentOracle", Generous)
    found = checked(ODDS, check=check_contract, tables=4)
    assert {finding.kind for finding in found} == {"failure"}


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", PRICED)
@pytest.mark.parametrize("way", ["gradients", "losses of probabilities", "sampling, everybody"])
def test_the_audit_holds(neighbours, way):
    """The short form is that of questions and mechanisms of other kinds, in tests/statistical."""
    how = make("reductions", {**WAYS[way], "iterations": 1, "inner_steps": 1, "start_steps": 1})
    report = audit_mechanism(
        how, world=AMONG[0], budget=Budget(3, 1e-6, neighbours), runs=1000, seconds=1e9, tables=0, neighbours=20
    )
    assert [found.alarm for found in report.audits] == [False] * len(report.audits)
    assert report.audits
