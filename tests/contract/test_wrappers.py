"""A mechanism that wraps another: what it fails to forward costs a refusal, or a certificate that says too much."""

import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from helpers.contract import violations
from helpers.ledgers import kinds, without_account
from helpers.small import SCHEMA, SIZE
from helpers.toys import Toy, by_hand
from stratsynth import Stratified, Weights
from stratsynth.adapters import AIM, MST, External, Independent
from stratsynth.errors import MechanismError, StratsynthError, Unsupported, UsageError
from stratsynth.mechanisms import Mechanism, prepare
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Choose, Counts, Distance, Split, choose, counts, split
from stratsynth.strata import Stratum, crossing
from stratsynth.stratified import Groupwise

ADDED, EXCHANGED = ss.Budget(1, 1e-9), ss.Budget(1, 1e-9, "replace")


@dataclass(frozen=True)
class Thin(Mechanism):
    """Forwards what it must define, and nothing else."""

    inner: Any

    @property
    def name(self):
        return f"thin {self.inner.name}"

    @property
    def needs(self):
        return self.inner.needs

    @property
    def returns(self):
        return self.inner.returns

    def price(self, public, budget):
        return self.inner.price(public, budget)

    def steps(self, public, allot, rng):
        return self.inner.steps(public, allot, rng)


@dataclass(frozen=True)
class Shy(Thin):
    """Hides that it splits."""

    @property
    def needs(self):
        return self.inner.needs - {Split}


@dataclass(frozen=True)
class Eager(Thin):
    """Forwards whatever `Mechanism` does not have."""

    def __getattr__(self, name):
        return getattr(self.inner, name)


@dataclass(frozen=True)
class Whole(Thin):
    """Forwards everything that certificates state."""

    @property
    def adaptive(self):
        return self.inner.adaptive

    @property
    def unprotected(self):
        return self.inner.unprotected

    @property
    def takes_row_count(self):
        return self.inner.takes_row_count

    def strata(self, public, budget):
        return self.inner.strata(public, budget)


@dataclass(frozen=True)
class Duck:
    """Has all methods, and inherits none."""

    inner: Any
    name = "duck"
    adaptive = False
    unprotected = ()
    needs, returns, price, steps = Thin.needs, Thin.returns, Thin.price, Thin.steps


class Ghost:
    """Has nothing, and answers to everything."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


def drawn(frame, sizes, epsilon, delta, rows):
    """Stands for third-party code."""
    return pd.DataFrame({column: [0] * rows for column in frame})


def counted():
    """Weights that are the exact counts of confidential people."""
    exact = small.people().groupby(["SEX", "GROUP"]).size().rename("count").reset_index()
    return Weights.invariant(exact)


def strata():
    return Stratified(Independent(), ["SEX", "GROUP"], counted())


def external():
    return External(drawn, "nobody 1.0")


INNER = {"strata": (strata, ADDED), "aim": (lambda: AIM(rounds=2), ADDED), "external": (external, EXCHANGED)}


def certificate(mechanism, budget):
    return without_account(ss.fit(mechanism, small.table(), budget, seed=1, entropy=SeededEntropy(1)))


def no_cheaper(wrapped, plain):
    """Give or take how a square root of 2 is rounded in charges."""
    for step, price in plain["prices"].items():
        assert wrapped["prices"][step] >= price * (1 - 1e-12), step


def refused(mechanism, budget, kind, match):
    """Nothing is reserved, nothing is charged, and a plan is refused too."""
    table = small.table()
    with pytest.raises(kind, match=match):
        ss.fit(mechanism, table, budget)
    assert table.ledger.reserved == ()
    with pytest.raises(kind, match=match):
        ss.plan(mechanism, SCHEMA, budget, declared_size=SIZE)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("wrapper", [Duck, Ghost])
def test_what_does_not_inherit_is_no_mechanism(wrapper, inner):
    make, budget = INNER[inner]
    refused(wrapper(make()), budget, UsageError, "inherits stratsynth.mechanisms.Mechanism")


@pytest.mark.parametrize("wrapper", [Thin, Eager])
def test_strata_that_a_wrapper_keeps_quiet_about_are_refused(wrapper):
    """Their weights are exact counts: without the refusal the certificate would not say that these were disclosed."""
    refused(wrapper(strata()), ADDED, Unsupported, "asks by strata and declares none")


def test_one_that_hides_that_it_splits_is_refused_before_it_is_charged(tmp_path):
    """That shows in its rehearsal: nothing was reserved, charged or read."""
    opened = with_a_ledger(tmp_path)
    with pytest.raises(MechanismError, match=r"asks stratum 1\|a, which it does not declare"):
        ss.fit(Shy(strata()), opened, ADDED)
    assert not (tmp_path / "people.ledger").exists()


@pytest.mark.parametrize("wrapper", [Thin, Eager])
@pytest.mark.parametrize("inner", ["aim", "external"])
def test_of_everybody_the_certificate_is_that_of_the_worst(wrapper, inner):
    make, budget = INNER[inner]
    plain, wrapped = certificate(make(), budget), certificate(wrapper(make()), budget)
    assert wrapped["unprotected"] == [*plain["unprotected"], "undeclared"]
    assert wrapped["mechanism"]["adaptive"] is True
    assert wrapped["unverified"] == plain["unverified"]
    # AIM is priced at the dearest, and a claim as it stands
    same = plain.keys() - {"unprotected", "not_protected", "mechanism"}
    assert {key: wrapped[key] for key in same} == {key: plain[key] for key in same}


@pytest.mark.parametrize("make", [Independent, MST], ids=["independent", "mst"])
def test_a_fixed_course_that_is_not_declared_is_priced_as_the_dearest(make):
    plain, wrapped = certificate(make(), ADDED), certificate(Thin(make()), ADDED)
    assert wrapped["charges"] == plain["charges"]
    assert "adaptive" not in plain["mechanism"]
    assert wrapped["mechanism"]["adaptive"] is True
    no_cheaper(wrapped, plain)
    asks_choices = Choose in make().needs
    assert (wrapped["prices"]["replace"] > plain["prices"]["replace"]) == asks_choices


@pytest.mark.parametrize("wrapper", [Thin, Eager])
def test_inside_strata_a_wrapper_is_the_worst_too(wrapper):
    by = {"by": ["SEX"], "weights": small.even(SCHEMA, "SEX")}
    plain, wrapped = (
        certificate(Stratified(AIM(rounds=2), **by), ADDED),
        certificate(Stratified(wrapper(AIM(rounds=2)), **by), ADDED),
    )
    assert wrapped["unprotected"] == ["declared_size", "undeclared"]
    assert wrapped["prices"] == plain["prices"]
    with pytest.raises(Unsupported, match="size of every group"):  # whatever the code says that it does not count
        Stratified(wrapper(External(drawn, "nobody 1.0", counts_rows=False)), **by)


def test_strata_in_strata_that_a_wrapper_keeps_quiet_about_are_undeclared():
    """The outer strata are the declared ones; nobody says what the inner weights disclose, so that is listed."""
    exact = Weights.invariant(pd.DataFrame({"GROUP": ["a", "b"], "count": [67, 33]}))
    inner = Stratified(Independent(), ["GROUP"], exact)
    plain, wrapped = (
        certificate(Stratified(how, ["SEX"], small.even(SCHEMA, "SEX")), ADDED) for how in (inner, Thin(inner))
    )
    assert plain["unprotected"] == ["declared_size", "group_counts"]
    assert wrapped["unprotected"] == ["declared_size", "undeclared"]
    no_cheaper(wrapped, plain)


@pytest.mark.parametrize("inner", INNER)
def test_a_wrapper_that_forwards_everything_has_the_certificate_of_what_it_wraps(inner):
    make, budget = INNER[inner]
    plain, wrapped = certificate(make(), budget), certificate(Whole(make()), budget)
    assert wrapped.pop("mechanism")["name"] == f"thin {make().name}"
    plain.pop("mechanism")
    assert wrapped == plain
    if inner == "external":  # whose frames no plan can make up
        return
    own, through = (ss.plan(how, SCHEMA, budget, declared_size=SIZE) for how in (make(), Whole(make())))
    assert through.prices == own.prices
    assert through.unprotected == own.unprotected
    assert [s.stratum for s in through.strata] == [s.stratum for s in own.strata]


def test_wrappers_pass_the_contract():
    """They learn nothing from rows but by asking, whatever they declare."""
    assert violations(lambda w, _: Thin(MST())) == []
    assert violations(lambda w, _: Whole(Stratified(MST(), w.by, w.weights))) == []


# What is asked and not declared


@dataclass(frozen=True)
class Understated(Toy):
    """Declares tables, and asks for a choice when it has them."""

    needs: ClassVar = frozenset({Counts})

    def steps(self, public, allot, rng):
        first = yield from counts(public.schema.oneways, rho=allot.rho / 2)
        yield from choose([Distance(t.clique, 0.0 * t.values) for t in first[:1]], rho=allot.rho / 2)


@dataclass(frozen=True)
class Elsewhere(Toy):
    """Declares the strata of one column, and asks those that `asked` names."""

    needs: ClassVar = frozenset({Counts, Split})
    asked: tuple[Stratum, ...]

    def strata(self, public, budget):
        return by_hand(public, budget, ["SEX"])

    def steps(self, public, allot, rng):
        programs = {}
        for stratum in self.asked:
            programs[stratum] = Independent().steps(public.within(stratum, 0.5), allot, rng)
        yield from split(programs)


def innocent(self, public, allot, rng):
    """A rehearsal that asks nothing wrong, so that the fit itself has to be refused."""
    return split({s: Independent().steps(public.within(s, 0.5), allot, rng) for s in crossing(public.schema, ["SEX"])})


def with_a_ledger(folder):
    small.people().to_csv(folder / "people.csv", index=False)
    return ss.open_table(folder / "people.csv", schema=SCHEMA, declared_size=SIZE, ledger=folder / "people.ledger")


def test_a_kind_of_question_that_is_not_declared_is_refused_before_it_is_charged(tmp_path, monkeypatch):
    opened = with_a_ledger(tmp_path)
    with pytest.raises(MechanismError, match="asks Choose, which it does not declare in `needs`"):
        ss.fit(Understated(), opened, ADDED)
    assert not (tmp_path / "people.ledger").exists(), "its rehearsal asks it too"
    monkeypatch.setattr(Understated, "rehearsal", lambda *given: Independent().steps(*given[1:]), raising=False)
    with pytest.raises(MechanismError, match="asks Choose, which it does not declare in `needs`"):
        ss.fit(Understated(), opened, ADDED)
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve", "charge"], "the tables, and not the choice"
    monkeypatch.setattr("stratsynth.data.backends.load_rows", lambda *given, **settings: pytest.fail("read"))
    monkeypatch.setattr(Understated, "needs", frozenset({Choose}))
    with pytest.raises(MechanismError, match="asks Counts"):
        ss.fit(Understated(), small.table(), ADDED)


BOTH = crossing(SCHEMA, ["SEX"])
OTHERS = {
    "another column": crossing(SCHEMA, ["GROUP"]),
    "a crossing": crossing(SCHEMA, ["SEX", "GROUP"]),
    "a merge of those declared": (Stratum.of({"SEX": ("1", "2")}),),
}


@pytest.mark.parametrize("asked", OTHERS.values(), ids=OTHERS)
def test_strata_that_are_not_declared_are_refused_before_they_are_charged(asked, tmp_path, monkeypatch):
    monkeypatch.setattr("stratsynth.data.backends.load_rows", lambda *given, **settings: pytest.fail("read"))
    with pytest.raises(MechanismError, match="which it does not declare in `strata`"):
        ss.fit(Elsewhere(asked), with_a_ledger(tmp_path), ADDED)
    assert not (tmp_path / "people.ledger").exists()
    monkeypatch.setattr(Elsewhere, "rehearsal", innocent)
    with pytest.raises(MechanismError, match="which it does not declare in `strata`"):
        ss.fit(Elsewhere(asked), with_a_ledger(tmp_path), ADDED)
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve"]


def test_fewer_strata_than_declared_are_no_harm():
    prepared = prepare(Elsewhere(BOTH[:1]), SCHEMA, ADDED, SIZE)
    prepared.admit((BOTH[0],), frozenset({Counts}))
    with pytest.raises(StratsynthError):
        prepared.admit((OTHERS["another column"][0],), frozenset({Counts}))


@dataclass(frozen=True)
class StrataAlone(Elsewhere):
    """Declares that it asks strata alone, and asks everybody first, or strata within strata."""

    deeper: bool = False

    def strata(self, public, budget):
        return replace(by_hand(public, budget, ["SEX"]), only_strata=True)

    def steps(self, public, allot, rng):
        if not self.deeper:
            yield from counts(public.schema.oneways, rho=allot.rho / 2)
        inner = crossing(public.schema.without(["SEX"]), ["GROUP"])
        inside = {s: Independent().steps(public.within(self.asked[0], 0.5).within(s, 0.5), allot, rng) for s in inner}
        yield from split({self.asked[0]: split(inside)})


@pytest.mark.parametrize(("deeper", "where"), [(False, "asks everybody"), (True, "asks strata within")])
def test_who_declares_to_ask_strata_alone_is_kept_to_it(deeper, where, tmp_path, monkeypatch):
    """A move between strata is priced as two records added or removed, which holds for strata alone."""
    with pytest.raises(MechanismError, match=where):
        ss.fit(StrataAlone(BOTH, deeper), with_a_ledger(tmp_path), ADDED)
    assert not (tmp_path / "people.ledger").exists()
    monkeypatch.setattr(Elsewhere, "rehearsal", innocent)
    with pytest.raises(MechanismError, match=where):
        ss.fit(StrataAlone(BOTH, deeper), with_a_ledger(tmp_path), ADDED)
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve"]


class Quiet(Groupwise):
    """Makes strata in a way of its own, and says nothing of whether answers decide what it asks."""

    name = "quiet"
    needs = frozenset({Counts, Split})
    inner = Independent()
    only_strata = True

    def price(self, public, budget):
        return budget.zcdp()

    def steps(self, public, allot, rng):
        raise NotImplementedError


def test_what_makes_strata_is_adaptive_unless_it_says_otherwise():
    assert Quiet().adaptive
    assert not Stratified(Independent(), ["SEX"], small.even(SCHEMA, "SEX")).adaptive


def test_nobody_prepares_an_allotment_beyond_the_budget():
    prepared = prepare(Independent(), SCHEMA, ADDED, SIZE)
    with pytest.raises(MechanismError, match="not within the budget"):
        replace(prepared, allot=replace(prepared.allot, amount=2 * prepared.allot.amount))


def test_a_copy_of_public_facts_keeps_nothing_of_what_was_worked_out():
    """Results are kept by the identity of settings, which a copy has not."""
    public = prepare(AIM(), SCHEMA, ADDED, SIZE).public
    assert public._kept
    assert copy.deepcopy(public)._kept == {}
    assert copy.deepcopy(public) == public
