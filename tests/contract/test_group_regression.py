"""Group regression in all its ways on neighbouring tables; and the planted leaks that this must catch."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from helpers.audits import judged_twice
from helpers.contract import violations
from helpers.small import even
from stratsynth import Categorical, Numeric, Schema, Stratified
from stratsynth.accounting.budget import PRICED, Budget, Neighbours
from stratsynth.adapters import GroupRegression
from stratsynth.adapters.predictors.tailored import ask
from stratsynth.evaluation.audit import audit_mechanism
from stratsynth.mechanisms import make
from stratsynth.questions.sums import base, kernel, networks
from stratsynth.testing import World, check_contract, worlds

MIXED = Schema(
    {
        "PAY": Numeric(lower=-20, upper=50, transform="log", transform_unit=5, not_applicable="N"),
        "GROUP": Categorical(levels=("a", "b")),
        "AGE": Numeric(lower=0, upper=40, bins=3),
        "YES": Categorical(levels=("n", "y")),
    }
)
NUMERIC = [w for w in worlds() if any(isinstance(w.schema.column(c), Numeric) for c in w.schema.names)]
AMONG = [*NUMERIC, World(MIXED, ("GROUP",), even(MIXED, "GROUP"))]
BINARY = AMONG[:2]

WAYS = {
    "tailored, in parallel": {"mode": "DPSE", "accounting": "parallel"},
    "tailored, as in the paper": {"mode": "DPSE", "accounting": "paper", "features": ["GROUP"]},
    "one noise for balanced groups": {"objective": "balanced", "features": ["GROUP"]},
    "bounded group losses": {"loss_bounds": {"": 0.1}, "features": ["GROUP"]},
    "the worst group": {"objective": "maximum", "accounting": "parallel", "stage_one": 0.3},
    "the smooth worst group": {"objective": "smooth_maximum", "accounting": "paper"},
}
LOGISTIC = {
    "tailored": {"mode": "DPSE", "accounting": "parallel"},
    "bounded log losses": {"loss_bounds": {"": 0.3}},
    "a precursor": {"stage_one": 0.2, "region": "ball", "radius": 1.0},
}


NETWORK = {
    "one noise for balanced groups": {"objective": "balanced", "features": ["GROUP"]},
    "tailored, in parallel": {"mode": "DPSE", "accounting": "parallel", "features": ["GROUP"]},
    "tailored, as in the paper": {"mode": "DPSE", "accounting": "paper"},
    "bounded log losses": {"loss_bounds": {"": 0.3}},
}


def checked(settings, among, check=violations, tables=3):
    def build(world, rows):
        return make("group_regression", {"iterations": 3, "groups": ["GROUP"], **settings})

    return check(build, among=among, tables=tables, neighbours=3, orders=1)


@pytest.mark.parametrize("way", WAYS)
def test_linear(way):
    assert checked(WAYS[way], AMONG) == []


@pytest.mark.parametrize("way", LOGISTIC)
def test_logistic(way):
    assert checked({"model": "logistic", "target": "SEX", **LOGISTIC[way]}, BINARY) == []


@pytest.mark.parametrize("mode", ["DPSE", "DPNoSE"])
def test_softmax(mode):
    settings = {"model": "softmax", "target": "WORK", "mode": mode, "accounting": "parallel", "stage_one": 0.2}
    assert checked(settings, AMONG[:1]) == []


@pytest.mark.parametrize("way", NETWORK)
def test_network(way):
    assert checked({"model": "network", "hidden": 3, "target": "SEX", **NETWORK[way]}, BINARY) == []


@pytest.mark.parametrize("accounting", ["combined", "parallel", "paper"])
def test_groups_that_overlap(accounting):
    settings = {"groups": [["GROUP"], ["SEX"]], "target": "AGE", "objective": "balanced", "accounting": accounting}
    assert checked(settings, BINARY) == []


def test_groups_within_strata():
    """Budgets tailored to groups inside each stratum."""

    def build(world, rows):
        inner = {"iterations": 2, "groups": ["GROUP"], "mode": "DPSE", "accounting": "parallel", "target": "AGE"}
        return Stratified(make("group_regression", inner), ["SEX"], even(world.schema, "SEX"))

    assert violations(build, among=BINARY, tables=3) == []


def test_groups_that_the_strata_have_used_up():
    """Inside a stratum of GROUP there is one group left: everybody in it."""
    for settings in (WAYS["tailored, in parallel"], WAYS["one noise for balanced groups"]):

        def build(world, rows, settings=settings):
            inner = {"iterations": 2, "groups": ["GROUP"], "target": "AGE", **settings}
            return Stratified(make("group_regression", inner), ["GROUP"], even(world.schema, "GROUP"))

        assert violations(build, among=BINARY[:1], tables=2, orders=0) == []


def test_an_unclipped_gradient_is_caught(monkeypatch):
    """Rows' gradients are scaled to the clip as everywhere, but not those beyond it."""
    clipped = base.into_ball

    def loose(vectors, radius, norm="l2"):
        return clipped(vectors, np.minimum(np.asarray(radius) * 8, base.GRID), norm)

    monkeypatch.setattr(kernel, "into_ball", loose)
    found = {finding.kind for finding in checked({"clip": 0.05}, AMONG, check_contract, tables=4)}
    assert "sensitivity" in found


def test_a_network_whose_layers_are_clipped_one_by_one_is_caught(monkeypatch):
    """Each weight's part of the gradient is kept to the clip, but not the whole."""
    clipped = base.into_ball

    def each(vectors, radius, norm="l2"):
        return np.concatenate([clipped(vectors[[i]], radius, norm) for i in range(len(vectors))])

    monkeypatch.setattr(networks, "into_ball", each)
    settings = {"model": "network", "hidden": 2, "target": "SEX", "clip": 0.05}
    assert "sensitivity" in {finding.kind for finding in checked(settings, BINARY, check_contract, tables=4)}


@dataclass(frozen=True, kw_only=True)
class Peeking(GroupRegression):
    """Steps by a rate that depends on how many rows a group has."""

    counted: float = 1.0

    def task(self, public, budget):
        task = GroupRegression.task(self, public, budget)
        return replace(task, rate=task.rate * self.counted)


def test_a_step_size_that_depends_on_a_groups_rows_is_caught():
    def build(world, rows):
        return Peeking(iterations=3, groups=["GROUP"], accounting="parallel", counted=1 + (rows["GROUP"] == "1").sum())

    found = {finding.kind for finding in check_contract(build, among=BINARY, tables=4, neighbours=4, orders=1)}
    assert found & {"questions", "result"}


@dataclass(frozen=True, kw_only=True)
class Thrifty(GroupRegression):
    """Asks twice what its groups' mode says, and pays once: the driver refuses what is beyond the allotment."""

    def steps(self, public, allot, rng):
        task = self.task(public, allot.promise)
        for _ in range(2):
            yield from ask(task.gradients(np.zeros(len(task.names))), allot.rho * 0.9)
        return (yield from GroupRegression.steps(self, public, allot, rng))


def test_more_than_the_allotment_is_refused_by_the_driver():
    found = check_contract(lambda world, rows: Thrifty(iterations=1), among=BINARY, tables=1, neighbours=1)
    assert {finding.kind for finding in found} == {"failure"}


@pytest.mark.parametrize("neighbours", PRICED)
def test_the_audit_holds_and_its_controls_are_caught(neighbours):
    how = GroupRegression(groups=["GROUP"], accounting="parallel", iterations=1, target="AGE")
    controlled = neighbours == Neighbours.ADD_REMOVE  # an exchange at the full cost is seldom among random ones
    settings = {"runs": 2000, "seconds": 1e9, "tables": 0, "neighbours": 20, "controls": controlled}
    budget = Budget(3, 1e-6, neighbours)
    report = judged_twice(lambda: audit_mechanism(how, world=BINARY[0], budget=budget, **settings))
    (found,) = report.audits
    assert not found.alarm
    if controlled:
        assert found.controls[0].state == "caught"
