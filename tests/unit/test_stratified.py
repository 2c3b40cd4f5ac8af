"""Strata with weights that cost, budgets of their own, and small groups: what is charged is what was said."""

from dataclasses import dataclass, replace
from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stratsynth as ss
from helpers import recompute, small
from helpers.fits import OnStep
from helpers.small import BUDGET, SCHEMA, SIZE, shares_frame, table
from stratsynth import Groups, Stratified, StratumBudgets, Weights
from stratsynth.accounting.budget import Budget, less
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.adapters import External, Independent
from stratsynth.errors import StratsynthError, Unsupported, UsageError
from stratsynth.fitting import fitted
from stratsynth.noise import SeededEntropy

PUBLIC = Weights.public(shares_frame(), citation="made up for testing")


def how(weights=PUBLIC, **settings):
    return Stratified(Independent(), ["SEX", "GROUP"], weights, **settings)


def charges(release):
    """The charges of everybody, and of each stratum, as exact rho."""
    everybody, strata = Fraction(0), {}
    for charge in release.certificate["charges"]:
        rho = Fraction(charge["rho"])
        if charge["path"]:
            label = "|".join(charge["path"][0].values())
            strata[label] = strata.get(label, Fraction(0)) + rho
        else:
            everybody += rho
    return everybody, strata


def test_private_weights_cost_everybody_their_share_and_every_stratum_the_rest():
    release = ss.fit(how(Weights.private(share=0.1)), table(), BUDGET)
    everybody, strata = charges(release)
    rho = BUDGET.zcdp().rho
    assert everybody == Fraction(0.1 * rho)
    for spent in strata.values():
        assert spent == pytest.approx(0.9 * rho, rel=1e-12)
        assert everybody + spent <= Fraction(rho)
    assert len(strata) == 4
    recompute.check(release.certificate)


@given(st.floats(1e-6, 25), st.floats(0.001, 0.999))
def test_the_parts_of_a_budget_never_pass_it(rho, share):
    asked = rho * share
    left = less(rho, asked)
    assert Fraction(left) + Fraction(asked) <= Fraction(rho)
    assert left == pytest.approx(rho - asked, rel=1e-12)


@pytest.mark.usefixtures("seeded_noise")
def test_private_weights_are_what_was_counted_and_the_count_is_released():
    release = ss.fit(how(Weights.private(share=0.5)), table(small.people(3000)), Budget(20, 1e-9))
    counted = release.measurements.to_pandas().query("stratum == ''")
    assert set(counted.clique) == {"SEX,GROUP"}
    rows = release.sample(2000, seed=1)
    shares = rows.groupby(["SEX", "GROUP"]).size() / 2000
    truth = small.people(3000).groupby(["SEX", "GROUP"]).size() / 3000
    assert (shares - truth).abs().max() < 0.01
    assert release.certificate["weights"]["source"] == "private"
    assert release.certificate["unprotected"] == ["declared_size"]


def test_private_weights_need_no_declared_size():
    opened = ss.open_table(small.people(), schema=SCHEMA)
    assert len(ss.fit(how(Weights.private(share=0.5)), opened, BUDGET).sample(10)) == 10


def test_private_weights_are_counted_in_zcdp_only():
    def draw(frame, sizes, epsilon, delta, rows):
        return frame.sample(rows, replace=True)

    mechanism = External(draw, "nobody", counts_rows=False)
    with pytest.raises(Unsupported, match="another source"):
        ss.fit(Stratified(mechanism, ["SEX"], Weights.private(share=0.1)), table(), BUDGET)
    groups = Groups(small="one-way", threshold=30)
    with pytest.raises(Unsupported, match="Keep small groups"):
        ss.fit(Stratified(mechanism, ["SEX", "GROUP"], PUBLIC, groups), table(), BUDGET)


# Budgets of single strata


def test_a_stratum_spends_its_own_budget_and_the_certificate_says_so():
    budgets = StratumBudgets.read(pd.DataFrame({"SEX": ["1"], "GROUP": ["a"], "factor": [0.5]}))
    release = ss.fit(how(budgets=budgets), table(), BUDGET)
    _, strata = charges(release)
    delta = BUDGET.delta - BUDGET.truncation_delta
    spent = {label: epsilon_of(float(rho), delta) for label, rho in strata.items()}
    assert spent == pytest.approx({"1|a": 0.5, "1|b": 1, "2|a": 1, "2|b": 1}, rel=1e-6)
    assert release.certificate["strata"]["epsilon"] == {"1|a": 0.5, "1|b": 1, "2|a": 1, "2|b": 1}
    assert release.certificate["guarantee"]["epsilon"] == 1
    recompute.check(release.certificate)
    foreseen = ss.plan(how(budgets=budgets), SCHEMA, BUDGET, declared_size=SIZE)
    assert foreseen.budgets == release.certificate["strata"]["epsilon"]
    assert {s.stratum: s.epsilon for s in foreseen.strata} == pytest.approx(spent)


def test_budgets_are_read_as_factors_or_epsilons(tmp_path):
    strata = how().strata(public(), BUDGET).strata
    (tmp_path / "b.csv").write_text("SEX,GROUP,epsilon\n1,a,0.25\n2,b,1\n")
    for budgets in (
        StratumBudgets.read(tmp_path / "b.csv"),
        StratumBudgets.epsilons({"1|a": 0.25}),
        StratumBudgets.factors({"1|a": 0.25}),
    ):
        assert list(budgets.resolve(strata, 1.0).values()) == [0.25, 1, 1, 1]
    assert list(StratumBudgets.epsilons({"1|a": 1}).relative(2.0).resolve(strata, 4.0).values()) == [2, 4, 4, 4]


def public():
    from stratsynth.mechanisms import Public

    return Public(SCHEMA, SIZE)


BAD_BUDGETS = {
    "more than the whole": ({"1|a": 1.5}, "at most the fit's 1"),
    "nothing": ({"1|a": 0}, "above 0"),
    "an unknown stratum": ({"1|z": 0.5}, "not a stratum"),
    "a label of too few": ({"1": 0.5}, "by SEX"),
    "a text": ({"1|a": "half"}, "finite number"),
    "a list": ([0.5], "label"),
}


@pytest.mark.parametrize("case", BAD_BUDGETS)
def test_budgets_that_make_no_sense_are_refused(case):
    given_budgets, match = BAD_BUDGETS[case]
    with pytest.raises(UsageError, match=match):
        ss.plan(how(budgets=StratumBudgets.factors(given_budgets)), SCHEMA, BUDGET, declared_size=SIZE)


def test_a_table_of_budgets_has_one_column_of_figures():
    for columns in ("SEX GROUP", "SEX GROUP factor epsilon"):
        with pytest.raises(UsageError, match="one column"):
            StratumBudgets.read(pd.DataFrame([["1"] * len(columns.split())], columns=columns.split()))


def test_budgets_of_strata_are_a_statement_for_added_and_removed_records():
    with pytest.raises(Unsupported, match="add-remove"):
        ss.plan(
            how(budgets=StratumBudgets.factors({"1|a": 0.5})),
            SCHEMA,
            replace(BUDGET, neighbours="replace"),
            declared_size=SIZE,
        )


def test_budgets_cover_what_everybody_pays_for_private_weights():
    weights, budgets = Weights.private(share=0.2), StratumBudgets.factors({"1|a": 0.5})
    release = ss.fit(how(weights, budgets=budgets), table(), BUDGET)
    everybody, strata = charges(release)
    delta = BUDGET.delta - BUDGET.truncation_delta
    assert epsilon_of(float(everybody + strata["1|a"]), delta) == pytest.approx(0.5, rel=1e-6)
    assert epsilon_of(float(everybody + strata["1|b"]), delta) == pytest.approx(1, rel=1e-6)
    recompute.check(release.certificate)
    with pytest.raises(UsageError, match="smaller share"):
        ss.fit(how(weights, budgets=StratumBudgets.factors({"1|a": 0.1})), table(), BUDGET)


# Small groups


MERGED = Groups(hierarchy={"GROUP": {"both": ["a", "b"]}}, small="merge", threshold=20)


def test_a_merged_group_keeps_its_column_and_the_certificate_lists_it():
    release = ss.fit(how(groups=MERGED), table(), BUDGET, entropy=SeededEntropy(1))  # noise may hide 17 people
    strata = release.certificate["strata"]
    assert (strata["cells"], strata["groups"]) == (4, 2)
    assert [m["stratum"] for m in strata["merged"]] == ["1|both", "2|both"]
    assert strata["merged"][0]["why"] == "1|b: public size 10 x epsilon 1 is below 20"
    paths = {tuple(charge["path"][0].items()) for charge in release.certificate["charges"]}
    assert paths == {(("SEX", s), ("GROUP", "a|b")) for s in "12"}
    cliques = release.measurements.to_pandas().groupby("stratum", observed=True).clique.unique()
    assert {label: sorted(c) for label, c in cliques.items()} == {f"{s}|both": ["AGE", "GROUP", "WORK"] for s in "12"}
    assert set(release.sample(200, seed=1).GROUP) == {"a", "b"}
    recompute.check(release.certificate)


def test_plain_strata_have_the_three_keys_of_the_contract():
    assert ss.fit(how(), table(), BUDGET).certificate["strata"] == {"by": ["SEX", "GROUP"], "cells": 4, "merged": []}


def test_small_groups_are_given_one_way_tables():
    @dataclass(frozen=True)
    class Twice(Independent):
        """Not what small groups get."""

        def steps(self, public, allot, rng):
            from stratsynth.adapters.independent import Product
            from stratsynth.questions import counts

            first = yield from counts(public.schema.oneways, rho=allot.rho / 2)
            yield from counts(public.schema.oneways, rho=allot.rho / 2)
            return Product.of(public.schema, first)

    groups = Groups(small="one-way", threshold=20)
    release = ss.fit(Stratified(Twice(), ["SEX", "GROUP"], PUBLIC, groups), table(), BUDGET)
    asked = release.measurements.to_pandas().groupby("stratum", observed=True).question.nunique()
    assert dict(asked) == {"1|a": 2, "1|b": 1, "2|a": 2, "2|b": 1}
    assert list(release.certificate["strata"]["small"]["below"]) == ["1|b", "2|b"]


@pytest.mark.parametrize("weights", ["public", "private"])
def test_an_interrupted_fit_goes_on_without_a_second_charge(weights, tmp_path):
    """Merges and counts come back from the ledger as they were charged."""
    small.people().to_csv(tmp_path / "people.csv", index=False)
    source = Weights.private(share=0.1, prior=PUBLIC) if weights == "private" else PUBLIC

    def opened():
        return ss.open_table(
            tmp_path / "people.csv", schema=SCHEMA, ledger=tmp_path / "people.ledger", declared_size=SIZE
        )

    moments = iter(range({"public": 0, "private": 1}[weights]))

    def stop():
        if next(moments, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), fitted(how(source, groups=MERGED), opened(), BUDGET, observer=OnStep(stop)):
        pass
    before = (tmp_path / "people.ledger").read_bytes()
    with fitted(how(source, groups=MERGED), opened(), BUDGET) as release:
        assert (tmp_path / "people.ledger").read_bytes() == before, "nothing was charged again"
    assert release.certificate["ledger"]["releases"] == 1
    labels = set(release.measurements["stratum"].to_pylist())
    assert labels == {"1|both", "2|both"} | ({""} if weights == "private" else set())
    recompute.check(release.certificate)


def test_what_is_disclosed_by_strata_within_strata_is_listed():
    exact = Weights.invariant(pd.DataFrame({"GROUP": ["a", "b"], "count": [3, 1]}))
    even = small.even(SCHEMA, "SEX")
    deep = Stratified(Stratified(Independent(), ["GROUP"], exact), ["SEX"], even)
    release = ss.fit(deep, table(), BUDGET)
    assert release.certificate["unprotected"] == ["declared_size", "group_counts"]


def test_private_weights_within_strata_are_paid_within_them():
    even = small.even(SCHEMA, "SEX")
    deep = Stratified(Stratified(Independent(), ["GROUP"], Weights.private(share=0.25)), ["SEX"], even)
    release = ss.fit(deep, table(), BUDGET)
    recompute.check(release.certificate)
    assert {len(charge["path"]) for charge in release.certificate["charges"]} == {1, 2}


@pytest.mark.parametrize("settings", [{"groups": {"small": "keep"}}, {"budgets": {"1|a": 0.5}}])
def test_what_is_not_of_its_kind_is_refused(settings):
    with pytest.raises(StratsynthError, match="stratified"):
        how(**settings)
