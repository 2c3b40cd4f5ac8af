"""DP-FERMI in all its ways on neighbouring tables; and the planted leaks that this must catch, each by name."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from helpers.audits import judged_twice
from helpers.contract import violations
from helpers.priced import RATE, STEPS, remember
from helpers.small import even
from stratsynth import Budget, Categorical, Numeric, Schema, Stratified
from stratsynth.adapters import DPFermi
from stratsynth.driver import rows
from stratsynth.evaluation.audit import audit_mechanism
from stratsynth.mechanisms import make
from stratsynth.questions.sums import fairness, kernel
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
WORLD = World(SCHEMA, ("GROUP",), even(SCHEMA, "GROUP"))
LABELS = ("a", "b", "c")
COMMON = {"iterations": STEPS, "groups": ["GROUP"], "sampling": RATE, "penalty": 1.0}
PUBLIC = {"sizes": {"a": 5, "b": 3, "c": 2}, "sizes_citation": "made up for testing"}
EVERYBODY = {"penalty": None, "sampling": 1.0, "warm_up": 0.4}
WAYS = {
    "parity, shares from noisy sums": {},
    "odds, shares from noisy sums": {"criterion": "odds", "warm_up": 0.5},
    "parity, public shares": PUBLIC,
    "softmax, a crossing of groups": {"target": "JOB", "groups": ["GROUP", "AREA"], "region": "ball"},
    "softmax, odds": {"target": "JOB", "criterion": "odds", "features": ["GROUP", "AGE"], "tail": 0.0},
    "no penalty": {"penalty": 0.0},
    "a wanted gap of parity": {"gap": 0.05, "target": "WORK", **EVERYBODY},
    "a wanted gap by thresholds": {"gap": 0.05, "target": "WORK", "thresholds": True, **EVERYBODY},
    "a wanted gap of odds, public shares": {
        "gap": 0.05,
        "target": "WORK",
        "criterion": "odds",
        "sizes": {f"{g}|{y}": 4 for g in LABELS for y in ("no", "yes")},
        "sizes_citation": "made up for testing",
        **EVERYBODY,
    },
}


@pytest.fixture(scope="module", autouse=True)
def priced():
    remember()


def checked(settings, check=violations, tables=3):
    def build(world, rows):
        return make("fermi", {**COMMON, **settings})

    return check(build, among=[WORLD], tables=tables, neighbours=4)


def kinds(settings):
    return {finding.kind for finding in checked(settings, check_contract, tables=4)}


@pytest.mark.parametrize("way", WAYS)
def test_it_keeps_the_contract(way):
    assert checked(WAYS[way]) == []


def test_within_strata_of_another_column():
    def build(world, rows):
        inner = make("fermi", {**COMMON, "target": "WORK"})
        return Stratified(inner, ["AREA"], even(SCHEMA, "AREA"))

    assert violations(build, among=[WORLD], tables=3) == []


@dataclass(frozen=True, kw_only=True)
class FromRows(DPFermi):
    """Weighs groups by their shares in the rows, as the authors' code does."""

    exact: Any = field(default=None, metadata={"describe": False}, compare=False)

    def steps(self, public, allot, rng):
        sizes = dict(zip(LABELS, self.exact, strict=True))
        inner = DPFermi(
            groups=self.groups,
            penalty=1.0,
            iterations=self.iterations,
            sampling=self.sampling,
            sizes=sizes,
            sizes_citation="the rows",
        )
        return inner.steps(public, allot, rng)


def test_group_shares_from_rows_are_caught(monkeypatch):
    """Neighbouring tables would be asked about other slopes, and so learn other models."""
    monkeypatch.setattr("stratsynth.testing.contract.CAN_FORK", False)  # by replaying alone

    def build(world, rows):
        exact = [(rows["GROUP"] == level).sum() + 1.0 for level in LABELS]
        return FromRows(groups=["GROUP"], penalty=1.0, iterations=STEPS, sampling=RATE, exact=exact)

    found = {finding.kind for finding in check_contract(build, among=[WORLD], tables=4, neighbours=4)}
    assert found & {"questions", "result"}


def test_noise_for_w_that_leaves_the_penalty_out_is_caught(monkeypatch):
    """Sums that W learns from, multiplied by lambda before the noise is added and not after."""
    added = fairness.added
    monkeypatch.setattr(fairness, "added", lambda *given: [2 * part for part in added(*given)])
    assert "sensitivity" in kinds({"penalty": 2.0, "clip": 0.1})


def test_decisions_that_count_twice_are_caught(monkeypatch):
    decisions = fairness.decisions
    monkeypatch.setattr(fairness, "decisions", lambda *given: 2 * decisions(*given))
    assert "sensitivity" in kinds(WAYS["a wanted gap of parity"])


def test_a_clip_after_averaging_is_caught(monkeypatch):
    """Fault of the authors' code: rows' gradients are shorter than the clip, and the noise is for clipped ones."""
    into_ball = kernel.into_ball

    def after(vectors, radius, norm="l2"):
        return into_ball(vectors / 1024, radius, norm) * 1024

    monkeypatch.setattr(kernel, "into_ball", after)
    assert "sensitivity" in kinds({"clip": 0.1, "penalty": 5.0})


def test_a_penalty_outside_the_clip_is_caught(monkeypatch):
    """Loss and penalty each within the clip, and added up afterwards."""
    into_ball = kernel.into_ball
    monkeypatch.setattr(kernel, "into_ball", lambda *given: 2 * into_ball(*given))
    assert "sensitivity" in kinds({"clip": 0.1})


def shuffled(count, rate, entropy):
    """A batch of one size, drawn without replacement."""
    chosen = np.zeros(count, np.bool_)
    chosen[np.random.default_rng(entropy.bits(60)).permutation(count)[: round(rate * count)]] = True
    return chosen


def sizes_of_samples(coins):
    """Numbers of rows that take part in each of many steps."""
    from stratsynth.noise import SystemEntropy

    return np.array([coins(400, 0.1, SystemEntropy()).sum() for _ in range(2000)])


def test_shuffled_batches_claimed_as_poisson_are_caught():
    """Coins are priced: the sizes of samples vary as those of coins do, and batches of one size do not."""
    for coins, poisson in ((rows.poisson_coins, True), (shuffled, False)):
        spread = sizes_of_samples(coins).var() / (400 * 0.1 * 0.9)
        assert (abs(spread - 1) < 7 * (2 / 2000) ** 0.5) == poisson


@pytest.mark.parametrize("runs", [4000, pytest.param(16_000, marks=pytest.mark.slow)])
def test_the_audit_of_a_sampled_step_holds_and_its_controls_are_caught(runs):
    """Both sums of a step together, as an attacker who knows all other records sees them."""
    how = DPFermi(**COMMON, clip=0.1)
    report = judged_twice(
        lambda: audit_mechanism(
            how, world=WORLD, budget=Budget(3, 1e-6), runs=runs, seconds=1e9, tables=0, neighbours=60
        )
    )
    (found,) = report.audits
    assert not found.alarm
    assert found.controls[0].state == "caught", found
