"""A stratum's own budget is a cap: what its records may cost is enforced by the account, whoever asks."""

import dataclasses
import time
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from helpers.accounts import BUDGET, STANDING, allotment, charge
from helpers.toys import Toy
from stratsynth import Budget, Schema, Stratified, StratumBudgets, Weights
from stratsynth.accounting.account import FitAccount
from stratsynth.accounting.charges import Spending
from stratsynth.adapters import MST, ClippedMean, Independent
from stratsynth.data.load import load_rows
from stratsynth.errors import BudgetRefused
from stratsynth.mechanisms import Public, prepare
from stratsynth.planning import plan
from stratsynth.questions import Counts, Split, counts, split
from stratsynth.schema import Unit
from stratsynth.strata import Stratum
from stratsynth.strata.groups import Groups

OWN = StratumBudgets.epsilons({"1|b": 0.1})


def stratified(mechanism=Independent(), **settings):  # noqa: B008 - frozen
    weights = Weights.public(small.shares_frame(), citation="made up for testing")
    return Stratified(mechanism, ["SEX", "GROUP"], weights, budgets=OWN, **settings)


@dataclass(frozen=True)
class Greedy(Toy):
    """Declares the strata of an honest mechanism, with their budgets, and gives each a part of the whole budget."""

    inner: Any = field(default_factory=stratified)
    part: float = 1.0
    everybody: float = 0.0
    needs = frozenset({Counts, Split})

    def strata(self, public, budget):
        return self.inner.strata(public, budget)

    def steps(self, public, allot, rng):
        if self.everybody:
            yield from counts([("AGE",)], rho=self.everybody * allot.rho)
        strata = self.strata(public, allot.promise).strata
        return (yield from split({s: self._asks(self.part * allot.rho) for s in strata}))

    def _asks(self, rho):
        return (yield from counts([("AGE",)], rho=rho))


@pytest.fixture
def loads(monkeypatch):
    """Each time rows are loaded."""
    found = []

    def load(*given, **settings):
        found.append(given)
        return load_rows(*given, **settings)

    monkeypatch.setattr("stratsynth.data.backends.load_rows", load)
    return found


def people():
    """Of no other test."""
    return pd.concat([small.people(), small.people(31)], ignore_index=True)


def test_a_mechanism_that_overspends_inside_a_stratum_is_refused_before_reading(loads):
    with pytest.raises(BudgetRefused, match=r"before reading: stratum 1\|b has a budget of its own: asked rho"):
        ss.fit(Greedy(), small.table(people()), small.BUDGET)
    assert loads == []


@dataclass(frozen=True)
class Sly(Greedy):
    """Asks little in its rehearsal."""

    def rehearsal(self, public, allot, rng):
        return Greedy(self.inner, part=1e-3).steps(public, allot, rng)


def test_the_account_refuses_what_no_rehearsal_showed(loads):
    with pytest.raises(BudgetRefused, match=r"before reading: stratum 1\|b has a budget of its own: asked rho"):
        ss.fit(Sly(), small.table(people()), small.BUDGET)
    assert loads == []


def test_what_everybody_pays_counts_in_each_stratum(loads):
    """Two questions, each within the stratum's budget, and together beyond it."""
    own, whole = Budget(0.2, 1e-9).zcdp().rho, small.BUDGET.zcdp().rho
    part = 0.6 * own / whole
    asking = TwoOf(inner=HONEST["private weights"], part=part)
    ss.fit(asking, small.table(people()), small.BUDGET)
    with pytest.raises(BudgetRefused, match=r"stratum 1\|b"):
        ss.fit(dataclasses.replace(asking, everybody=part), small.table(people()), small.BUDGET)


@dataclass(frozen=True)
class TwoOf(Greedy):
    """Returns a model, if it gets that far."""

    def steps(self, public, allot, rng):
        from stratsynth.adapters.independent import Product

        yield from Greedy.steps(self, public, allot, rng)
        return Product.of(public.schema, [])


def test_a_plan_refuses_it_too():
    with pytest.raises(BudgetRefused, match=r"stratum 1\|b"):
        plan(Greedy(), small.SCHEMA, small.BUDGET, declared_size=small.SIZE)


HONEST = {
    "independent": stratified(),
    "mst": stratified(MST()),
    "one-way": stratified(MST(), groups=Groups(small="one-way", threshold=50)),
    "a pure mean": stratified(ClippedMean()),
    "private weights": Stratified(
        Independent(), ["SEX", "GROUP"], Weights.private(share=0.001), budgets=StratumBudgets.epsilons({"1|b": 0.2})
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_mechanisms_keep_to_the_caps_and_use_them_up(name):
    """The certificate's charges, added up apart."""
    how = HONEST[name]
    release = ss.fit(how, small.table(people()), small.BUDGET)
    caps = release_caps(how)
    charges = release.certificate["charges"]
    unit = "rho" if "rho" in charges[0] else "epsilon"
    for stratum, cap in caps.items():
        mine = [Fraction(c[unit]) for c in charges if not c["path"] or c["path"][0] == stratum.to_dict()]
        assert Fraction(cap) * Fraction(99, 100) < sum(mine) <= Fraction(cap)


def release_caps(how):
    caps = prepare(how, small.SCHEMA, small.BUDGET, small.SIZE).caps
    assert [stratum.label for stratum in caps] == ["1|b"]
    return caps


def test_a_unit_of_several_rows_has_its_caps_for_all_of_them():
    schema = Schema(small.SCHEMA.columns, unit=Unit(column="PERSON", max_rows=3))
    (cap,) = prepare(stratified(), schema, small.BUDGET, small.SIZE).caps.values()
    assert cap == pytest.approx(Budget(0.1, 1e-9).zcdp().rho, rel=1e-11)
    data = people()
    data["PERSON"] = [i // 3 for i in range(len(data))]
    table = ss.open_table(data, schema=schema, declared_size=small.SIZE)
    charges = ss.fit(stratified(), table, small.BUDGET).certificate["charges"]
    (mine,) = (c["rho"] for c in charges if c["path"] == [{"SEX": "1", "GROUP": "b"}])
    assert 0.99 * cap < mine <= cap


def test_spending_on_one_stratum_is_what_its_records_pay():
    here, there = (Stratum((("SEX", (level,)),)) for level in "12")
    inside = Stratum((("GROUP", ("a",)),))
    spending = Spending(
        BUDGET.neighbours, [charge(1.0), charge(0.5, here), charge(0.25, here, inside), charge(4, there)]
    )
    assert spending.spent_on(here) == Fraction(7, 4)
    assert spending.spent_on(there) == 5
    assert spending.spent_on(inside) == 1


def test_nothing_stays_of_what_a_cap_refused():
    here, there = (Stratum((("SEX", (level,)),)) for level in "12")
    account = FitAccount(BUDGET, allotment(1.0), STANDING, 0, {here: 0.25})
    with pytest.raises(BudgetRefused, match="stratum 1"):
        account.charge(0, "", [charge(0.5, here), charge(0.5, there)], 0.0)
    assert account.spending.spent() == 0
    account.charge(0, "", [charge(0.25, here), charge(1.0, there)], 0.0)
    with pytest.raises(BudgetRefused, match="stratum 1"):
        account.charge(1, "", [charge(1e-9, here)], 0.0)


def test_hundreds_of_strata_cost_next_to_nothing():
    strata = [Stratum((("G", (str(i),)),)) for i in range(600)]
    account = FitAccount(BUDGET, allotment(1.0), STANDING, 0, dict.fromkeys(strata, 20 / 64))
    began = time.process_time()
    for moment in range(20):
        account.charge(moment, "", [charge(1 / 64, stratum) for stratum in strata], 0.0)
    assert time.process_time() - began < 10
    with pytest.raises(BudgetRefused, match="stratum 599"):
        account.charge(20, "", [charge(1 / 64, strata[-1])], 0.0)


def test_strata_with_the_whole_budget_have_no_cap_of_their_own():
    how = small.stratified()
    assert prepare(how, small.SCHEMA, small.BUDGET, small.SIZE).caps == {}
    assert how.price(Public(small.SCHEMA, small.SIZE), small.BUDGET).amount > 0
