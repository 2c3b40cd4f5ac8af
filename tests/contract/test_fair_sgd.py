"""Noisy descent in all its ways on neighbouring tables; and the planted leaks that this must catch, each by name."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from helpers.contract import violations
from helpers.priced import RATE, STEPS, remember
from helpers.small import even
from stratsynth import Categorical, Numeric, Schema, Stratified
from stratsynth.adapters import FairSGD
from stratsynth.adapters.fair_sgd import leaning
from stratsynth.mechanisms import make
from stratsynth.questions.sums import mitigation, networks, penalised
from stratsynth.testing import World, check_contract

SCHEMA = Schema(
    {
        "GROUP": Categorical(levels=("a", "b", "c")),
        "AREA": Categorical(levels=("n", "s")),
        "AGE": Numeric(lower=0, upper=40, bins=3, missing=True),
        "JOB": Categorical(levels=("x", "y", "z")),
        "WORK": Categorical(levels=("no", "yes"), outside="no"),
    }
)
COMMON = {"iterations": STEPS, "groups": ["GROUP"], "sampling": RATE, "mitigation": "surrogate"}
WORLD = World(SCHEMA, ("GROUP",), even(SCHEMA, "GROUP"))
WAYS = {
    "surrogate": {"clip": 0.5},
    "surrogate of noise alone": {"gamma1": 0.0, "memory": 0.0},
    "surrogate of clipping alone, softmax": {"gamma2": 0.0, "target": "JOB", "groups": ["GROUP", "AREA"]},
    "network": {"model": "network", "hidden": 2},
    "network of three levels, clips of the groups": {
        "model": "network",
        "hidden": 2,
        "target": "JOB",
        "mitigation": "group_clip",
        "clip": 0.1,
    },
    "network of noise alone": {"model": "network", "hidden": 2, "gamma1": 0.0, "clip": 0.1},
    "everybody in every step": {"sampling": 1.0, "region": "ball"},
    "clips of the groups": {"mitigation": "group_clip", "tail": 0.0},
    "a clip that adapts": {"mitigation": "global_adapt", "clip": 0.1},
    "no mitigation": {"mitigation": "none", "groups": []},
}


@pytest.fixture(autouse=True, scope="module")
def _priced():
    remember()


def checked(settings, check=violations, tables=3):
    def build(world, rows):
        return make("fair_sgd", {**COMMON, **settings})

    return check(build, among=[WORLD], tables=tables, neighbours=4)


def kinds(settings):
    return {finding.kind for finding in checked(settings, check_contract, tables=4)}


LONG = {"everybody in every step", "surrogate of noise alone", "network of noise alone"}
"""Settings of the long run alone: one has a price of its own, the others a part of the questions of the first."""


@pytest.mark.parametrize("way", [pytest.param(way, marks=[pytest.mark.slow] * (way in LONG)) for way in WAYS])
def test_it_keeps_the_contract(way):
    assert checked(WAYS[way]) == []


def test_within_strata_of_another_column():
    def build(world, rows):
        inner = make("fair_sgd", {"iterations": STEPS, "groups": ["GROUP"], "sampling": RATE, "target": "WORK"})
        return Stratified(inner, ["AREA"], even(SCHEMA, "AREA"))

    assert violations(build, among=[WORLD], tables=3) == []


def test_a_penalty_outside_the_clip_is_caught(monkeypatch):
    """Loss and penalty each within the clip, and added up afterwards."""
    into_ball = penalised.into_ball
    monkeypatch.setattr(penalised, "into_ball", lambda *given: 2 * into_ball(*given))
    assert "sensitivity" in kinds({"clip": 0.1})


def test_a_network_whose_layers_are_clipped_one_by_one_is_caught(monkeypatch):
    into_ball = networks.into_ball

    def each(vectors, radius, norm="l2"):
        return np.concatenate([into_ball(vectors[[i]], radius, norm) for i in range(len(vectors))])

    monkeypatch.setattr(networks, "into_ball", each)
    assert "sensitivity" in kinds({"clip": 0.05, "model": "network", "hidden": 2, "gamma1": 0.0})


def test_a_boundary_score_that_is_added_to_every_group_is_caught(monkeypatch):
    """The paper's averages over everybody: a record would count in each group's sum."""
    bincount = np.bincount

    def everywhere(cell, weights=None, minlength=0):
        found = bincount(cell, weights, minlength)
        return found if weights is None else np.full(len(found), found.sum())

    monkeypatch.setattr(mitigation.np, "bincount", everywhere)
    assert "sensitivity" in kinds({"gamma1": 0.0, "statistics_share": 0.9})


@dataclass(frozen=True, kw_only=True)
class FromRows(FairSGD):
    """Leans by the groups' exact sizes, or by which groups there are."""

    exact: Any = field(default=None, metadata={"describe": False}, compare=False)

    def steps(self, public, allot, rng):
        exact = self.exact

        class Told(leaning.Leaning):
            def now(self):
                told = super().now()
                cuts = np.where(exact > 0, 1.0, 0.5)
                return leaning.Lean(told.clip * cuts.max(), told.threshold, cuts=cuts / cuts.max())

        before = leaning.Leaning
        from stratsynth.adapters.fair_sgd import training

        training.Leaning = Told
        try:
            return (yield from super().steps(public, allot, rng))
        finally:
            training.Leaning = before


def test_a_clip_by_the_groups_present_is_caught(monkeypatch):
    """DPSGD-F's published code: the noise says which groups a batch had."""
    monkeypatch.setattr("stratsynth.testing.contract.CAN_FORK", False)  # by replaying alone

    def build(world, rows):
        exact = np.array([(rows["GROUP"] == level).sum() for level in ("a", "b", "c")])
        exact[:2] = 0  # only the last group's clip is the larger one
        return FromRows(groups=["GROUP"], iterations=STEPS, sampling=RATE, mitigation="group_clip", exact=exact)

    few = World(SCHEMA, ("GROUP",), even(SCHEMA, "GROUP"))
    found = {finding.kind for finding in check_contract(build, among=[few], tables=12, neighbours=8)}
    assert found & {"questions", "result", "noise"}


def test_a_division_by_the_realised_sample_is_caught(monkeypatch):
    """Global-Adapt's published code divides by the number of records drawn: here that number is told by the rows."""
    monkeypatch.setattr("stratsynth.testing.contract.CAN_FORK", False)

    def build(world, rows):
        return Realised(
            groups=["GROUP"], iterations=STEPS, sampling=RATE, mitigation="global_adapt", clip=0.1, exact=len(rows)
        )

    found = {finding.kind for finding in check_contract(build, among=[WORLD], tables=4, neighbours=4)}
    assert found & {"questions", "result"}


@dataclass(frozen=True, kw_only=True)
class Realised(FairSGD):
    """Divides by the number of rows there are."""

    exact: Any = field(default=None, metadata={"describe": False}, compare=False)

    def task(self, public, budget):
        from dataclasses import replace

        return replace(super().task(public, budget), records=float(self.exact))
