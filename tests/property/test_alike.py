"""One stratum is rehearsed for all of which equal facts are known: the plan is that of rehearsing each."""

from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stratsynth as ss
from helpers.replies import Replies
from stratsynth.adapters import AIM, GEM, MST, ClippedMean, CoinPress, Independent, Pooled
from stratsynth.driver.lockstep import run
from stratsynth.errors import MechanismError
from stratsynth.mechanisms import prepare
from stratsynth.planning import plan
from stratsynth.planning.rehearsal import SimulatedAnswers, rehearse, size_of
from stratsynth.questions import split
from stratsynth.schema import Rule
from stratsynth.strata import Stratum, within
from stratsynth.strata.groups import Groups
from stratsynth.stratified import stratified

LEVELS = tuple("abcdefgh")
SCHEMA = ss.Schema(
    {
        "AREA": ss.Categorical(levels=LEVELS),
        "SEX": ss.Categorical(levels=("1", "2")),
        "AGE": ss.Numeric(lower=0, upper=99, integer=True, edges=(0, 20, 40, 60, 80, 100)),
        "WORK": ss.Categorical(levels=("N", "yes", "no"), not_applicable="N"),
        "HOME": ss.Categorical(levels=("own", "rent")),
    },
    rules=[Rule(when={"SEX": "1", "AGE": "< 20"}, never={"WORK": "yes"})],
)
BY = ("AREA", "SEX")
MADE = {
    "independent": lambda by, weights, groups: ss.Stratified(Independent(), by, weights, groups),
    "mst": lambda by, weights, groups: ss.Stratified(MST(), by, weights, groups),
    "aim": lambda by, weights, groups: ss.Stratified(AIM(), by, weights, groups),
    "gem": lambda by, weights, groups: ss.Stratified(GEM(), by, weights, groups),
    "pooled": lambda by, weights, groups: Pooled(by=by, weights=weights, groups=groups),
    "clipped_mean": lambda by, weights, groups: ss.Stratified(ClippedMean(columns=["AGE"]), by, weights, groups),
    "coinpress": lambda by, weights, groups: ss.Stratified(CoinPress(columns=["AGE"]), by, weights, groups),
    "strata within strata": lambda by, weights, groups: ss.Stratified(
        ss.Stratified(Independent(), by[1:], _weights(by[1:], [3, 1])), by[:1], _weights(by[:1], [1] * 8)
    ),
}


def _weights(by, parts):
    strata = list(pd.MultiIndex.from_product([SCHEMA.levels(name) for name in by]))
    frame = pd.DataFrame(strata, columns=list(by)).assign(share=[part / sum(parts) for part in parts])
    return ss.Weights.public(frame, citation="made up")


def _each(given):
    return {stratum: [stratum] for stratum in given}


@pytest.mark.parametrize("name", MADE)
@settings(max_examples=4)
@given(
    parts=st.lists(st.sampled_from([1, 2, 40]), min_size=16, max_size=16),
    small=st.sampled_from(["keep", "one-way"]),
    size=st.sampled_from([200, 9_000]),
)
def test_the_plan_is_that_of_rehearsing_every_stratum(name, parts, small, size):
    groups = (
        Groups() if small == "keep" or name in {"clipped_mean", "coinpress"} else Groups(small=small, threshold=300)
    )
    budget = ss.Budget(1, 1e-9)

    def planned():
        return plan(MADE[name](BY, _weights(BY, parts), groups), SCHEMA, budget, declared_size=size)

    shared = planned()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stratified, "equivalence_classes", _each)
        assert planned() == shared


def test_strata_that_private_weights_give_one_size_are_alike_where_answers_are_made_up_by_one(monkeypatch):
    """Noisy counts below 0 give strata the size 0; their answers are made up by the prior's shares."""
    parts, kinds = [*range(1, 8), *[8] * 9], []

    def noted(given):
        kinds.append((given, real(given)))
        return kinds[-1][1]

    real = stratified.equivalence_classes
    monkeypatch.setattr(stratified, "equivalence_classes", noted)
    weights = ss.Weights.private(share=0.1, prior=_weights(BY, parts))
    prepared = prepare(MADE["independent"](BY, weights, Groups()), SCHEMA, ss.Budget(0.1, 1e-9), 900)
    rehearse(prepared)
    [(given, found)] = kinds
    sizes = {stratum: round(size_of((stratum,), prepared)) for stratum in given}
    assert all(len({sizes[stratum] for stratum in kind}) == 1 for kind in found.values())
    assert any(len(kind) > 1 for kind in found.values())
    told = {(id(one.public), sizes[stratum]) for stratum, one in given.items()}
    assert len(told) > len({id(one.public) for one in given.values()})  # one size told, and several made up


def test_one_of_a_kind_runs_and_all_are_charged():
    parts = [1, 2] * 8  # eight areas of one size, of which the second sex has twice as many people
    prepared = prepare(MADE["mst"](BY, _weights(BY, parts), Groups()), SCHEMA, ss.Budget(1, 1e-9), 9_000)
    found = rehearse(prepared)
    ran = {seen.path for seen in found.answers.seen if seen.path}  # the first question is asked of everybody
    assert len(ran) == 2
    assert {c.path for c in found.account.spending.charges if c.path} == {(s,) for s in prepared.strata.strata}
    assert found.fits == 16
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stratified, "equivalence_classes", _each)
        every = rehearse(prepared)
    assert every.account.spending.spent() == found.account.spending.spent()
    assert sorted(map(repr, every.account.spending.charges)) == sorted(map(repr, found.account.spending.charges))
    assert every.account._distance > 0
    assert found.account._distance == pytest.approx(every.account._distance, rel=1e-12, abs=0)


def test_strata_that_rules_tell_apart_are_not_alike():
    """Under the rule on the first sex, its strata have another schema than those of the second, of the same size."""
    prepared = prepare(MADE["independent"](BY, _weights(BY, [1] * 16), Groups()), SCHEMA, ss.Budget(1, 1e-9), 9_000)
    assert len({seen.path for seen in rehearse(prepared).answers.seen if seen.path}) == 2
    first, second, third = (
        within(SCHEMA, (Stratum.of({"AREA": area, "SEX": sex}),)) for area, sex in ("a1", "b1", "a2")
    )
    assert first is second
    assert first.rules
    assert not third.rules


def test_no_fit_runs_one_program_for_several_strata():
    """Its questions would be charged once, and hold for rows of strata that nobody looked at."""
    strata = [Stratum.of({"SEX": sex}) for sex in "12"]

    def program():
        yield from split({strata[0]: iter(())}, alike={strata[0]: strata})

    with pytest.raises(MechanismError, match="rehearsals alone"):
        run(program(), SCHEMA, Replies(pytest.fail))


@pytest.mark.parametrize(
    ("programs", "alike"),
    [
        ("1", {}),
        ("1", {"1": "2"}),
        ("1", {"1": "11"}),
        ("1", {"1": "12", "2": "2"}),
        ("12", {"1": "1"}),
        ("12", {"1": "12"}),
        ("12", {"1": "2", "2": "1"}),
        ("12", {"2": "2", "1": "1"}),
    ],
)
def test_strata_that_are_alike_have_one_program(programs, alike):
    strata = {sex: Stratum.of({"SEX": sex}) for sex in "12"}
    kinds = {strata[sex]: [strata[other] for other in others] for sex, others in alike.items()}
    refused(program({strata[sex]: iter(()) for sex in programs}, kinds))


@pytest.mark.parametrize("kind", [tuple, dict.fromkeys, type("Turning", (list,), {})])
def test_what_is_alike_are_plain_lists(kind):
    stratum = Stratum.of({"SEX": "1"})
    refused(program({stratum: iter(())}, {stratum: kind([stratum])}))
    refused(program({stratum: iter(())}, {stratum: [stratum, "2"]}))


def program(programs, alike):
    yield from split(programs, alike=alike)


def refused(steps):
    with pytest.raises(MechanismError):
        run(steps, SCHEMA, SimulatedAnswers(SimpleNamespace(budget=ss.Budget(1, 1e-9)), lambda path: 1.0))
