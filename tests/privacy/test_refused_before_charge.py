"""Refusals that follow from recipe, schema and declared types come before any charge, from plans as from fits."""

from dataclasses import replace

import pandas as pd
import pytest

from helpers.command import complaint, stratsynth
from helpers.small import BUDGET, SCHEMA, edit, people, shares_frame, write_recipe
from stratsynth import Budget, Prior, PublishedTable, Schema, Stratified, Weights, fit, open_table
from stratsynth.adapters import AIM, MST, ClippedMean, Independent
from stratsynth.errors import StratsynthError, Unsupported, UsageError, WeightsError
from stratsynth.mechanisms import make
from stratsynth.planning import plan
from stratsynth.recipes.recipe import Recipe
from stratsynth.release import sampling
from stratsynth.schema import Categorical

BY = ["SEX", "GROUP"]


def refused(how, budget, error, match, schema=SCHEMA):
    """By fit before it reserves, and by plan in the same words."""
    table = open_table(people(), schema=schema, declared_size=100)
    with pytest.raises(error, match=match) as first:
        fit(how, table, budget)
    with pytest.raises(error) as second:
        plan(how, schema, budget, declared_size=100)
    assert table.ledger.reserved == ()
    assert str(first.value) == str(second.value)


def test_a_delta_that_noise_cannot_keep_to_is_refused_with_one_that_works():
    refused(MST(), Budget(10, 1e-25), Unsupported, r"delta has to be well above \d+e-\d+. 1e-9 is usual")


def test_settings_that_no_noise_can_pay():
    weights = Weights.private(share=1e-320)
    refused(Stratified(Independent(), by=BY, weights=weights), BUDGET, StratsynthError, "too small to be paid in noise")
    refused(ClippedMean(count_share=1e-300), BUDGET, StratsynthError, "too small")


@pytest.mark.parametrize("kind", [MST, AIM])
def test_a_prior_that_outweighs_everybody(kind):
    with pytest.raises(UsageError, match="prior must be a number from 0 to 1e"):
        kind(prior=1e30)


@pytest.mark.parametrize("share", ["1e308", "1e16", "inf", "nan", "-1"])
def test_figures_that_cannot_be_added_up(share, tmp_path):
    frame = shares_frame().astype({"share": object})
    frame.loc[0:1, "share"] = share
    with pytest.raises(WeightsError, match="line 2 is not a number from 0 to 1e"):
        Weights.public(frame, citation="a yearbook")
    with pytest.raises(WeightsError, match="line 2 is not a number from 0 to 1e"):
        Weights.public(frame.rename(columns={"share": "count"}), citation="a yearbook")


def test_a_second_column_of_one_name_is_refused(tmp_path):
    (tmp_path / "s.csv").write_text("SEX,share,share\n1,0.9,0.5\n2,0.1,0.5\n")
    frame = pd.DataFrame([["1", 0.9, 0.5], ["2", 0.1, 0.5]], columns=["SEX", "share", "share"])
    for table in (tmp_path / "s.csv", frame):
        with pytest.raises(WeightsError, match="two columns of one name"):
            Weights.public(table, citation="a yearbook")


@pytest.mark.parametrize("name", ["share", "count", "low", "high"])
def test_a_stratum_column_called_like_a_figure_is_refused_with_the_remedy(name):
    schema = Schema({name: Categorical(levels=("1", "2")), "X": Categorical(levels=("a", "b"))})
    figure = "count" if name != "count" else "share"
    shares = pd.DataFrame({name: ["1", "2"], figure: [0.5, 0.5]})
    with pytest.raises(WeightsError, match="rename it in the data"):
        plan(
            Stratified(Independent(), [name], Weights.public(shares, citation="made up")),
            schema,
            BUDGET,
            declared_size=100,
        )


def test_such_a_column_is_fine_where_no_table_of_figures_is_needed():
    schema = Schema({"count": Categorical(levels=("1", "2")), "X": Categorical(levels=("a", "b"))})
    plan(Stratified(Independent(), ["count"], Weights.private(share=0.1)), schema, BUDGET, declared_size=100)


def test_the_advice_on_workloads_is_not_what_was_refused():
    schema = Schema({f"C{i}": Categorical(levels=("0", "1")) for i in range(1000)})
    with pytest.raises(Unsupported, match=r"more than [0-9,]+ marginals; list those") as found:
        plan(AIM("all 2-way"), schema, BUDGET, declared_size=1000)
    assert 'use "all 2-way"' not in str(found.value)


@pytest.mark.parametrize("rows", [2**31, 10**12, 10**18, 10**30])
def test_rows_beyond_all_memory_are_refused_by_plan_and_fit_before_anything(rows, tmp_path):
    recipe = write_recipe(tmp_path)
    edit(recipe, "rows = 50", f"rows = {rows}\ncsv = false")
    edit(recipe, "delta = 1e-9", 'delta = 1e-9\nledger = "people.ledger"')
    for command in ("plan", "fit"):
        if rows > 2**63:  # TOML's own integers end there
            assert "rows" in complaint(stratsynth(command, recipe, cwd=tmp_path), 2)
        else:
            said = complaint(stratsynth(command, recipe, cwd=tmp_path), 2)
            assert "would take about" in said
            assert "stratsynth sample" in said
    assert not (tmp_path / "people.ledger").exists()


def test_a_sample_beyond_all_memory_is_refused(monkeypatch):
    release = fit(MST(), open_table(people(), schema=SCHEMA, declared_size=100), BUDGET)
    with monkeypatch.context() as patch:
        patch.setattr(sampling, "MOST_BYTES", 2**16)  # without the check these would be drawn
        with pytest.raises(Unsupported, match="in parts"):
            release.sample(10**5)
    for asked in ({"n": 10**15}, {"n_by_group": {("1",): 10**14}, "by": ["SEX"]}, {"n": 10**15, "balance": ["SEX"]}):
        with pytest.raises(Unsupported, match="in parts"):
            release.sample(**asked)


@pytest.mark.parametrize(
    "citation",
    [
        "TODO",
        "todo: find it",
        "[Publisher] (2024). [Title of the data]",
        "your source here",
        "<where published>",
        "...",
        "XXX",
        "{citation}",
        "citation goes here",
        "[insert reference]",
    ],
)
def test_a_citation_that_nobody_filled_in_is_refused(citation):
    with pytest.raises(WeightsError, match=r"citation (still holds|has no words)"):
        Weights.public(shares_frame(), citation=citation)
    with pytest.raises(WeightsError, match=r"citation (still holds|has no words)"):
        Weights.holdout(people(), citation=citation)
    for given in (lambda: Prior.public(people(), citation=citation), lambda: PublishedTable(shares_frame(), citation)):
        with pytest.raises(UsageError, match=r"prior: the citation (still holds|has no words)") as refused:
            given()
        assert not isinstance(refused.value, WeightsError)


@pytest.mark.parametrize("citation", ["x", "ACS", " 2010 ", "a b"])
def test_a_citation_by_which_nobody_finds_anything_is_refused_with_an_example(citation):
    with pytest.raises(WeightsError, match=r"is too short to find anything by; .* who published what, of which year"):
        Weights.public(shares_frame(), citation=citation)
    with pytest.raises(UsageError, match="is too short to find anything by"):
        Prior.public(people(), citation=citation)


@pytest.mark.parametrize(
    "citation", ["ACS 2018, table B01001 [revised]", "Statistics Office, Yearbook <2024>", "A survey"]
)
def test_citations_with_words_of_their_own_are_taken(citation):
    assert Weights.public(shares_frame(), citation=citation).citation == citation


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), 1e400, -0.0, None, "1", True, 26])
def test_a_budget_that_promises_nothing_is_refused(epsilon):
    with pytest.raises(UsageError, match="budget: epsilon"):
        Budget(epsilon, 1e-9)


@pytest.mark.parametrize("delta", [-1e-9, 1, 2, float("nan"), float("inf"), None, "0", True, False, 1e-101])
def test_a_delta_that_promises_nothing_is_refused_and_there_is_no_default(delta):
    with pytest.raises(UsageError, match="budget: delta"):
        Budget(1, delta)
    with pytest.raises(TypeError):
        Budget(1)


RHO_OR_STEPS = [
    *(make(name, {}) for name in ("independent", "mst", "aim", "gem")),
    make("coinpress", {"columns": ["AGE"]}),
    Stratified(Independent(), by=BY, weights=Weights.public(shares_frame(), citation="made up for testing")),
    *(make(name, {"target": "SEX"}) for name in ("reductions", "fair_sgd")),
    make("reductions", {"target": "SEX", "method": "sampling"}),
    make("reductions", {"target": "SEX", "oracle": "exponential"}),
    make("fermi", {"target": "SEX", "groups": ["GROUP"], "penalty": 1.0}),
    make("group_regression", {"target": "AGE"}),
]


@pytest.mark.parametrize("how", RHO_OR_STEPS, ids=lambda how: how.name)
def test_a_delta_of_0_is_refused_wherever_more_than_pure_epsilon_is_spent(how):
    refused(how, Budget(1, 0), Unsupported, "delta = 0")


def test_a_recipe_and_a_fit_agree_on_what_is_refused(tmp_path):
    recipe = write_recipe(tmp_path)
    edit(recipe, "delta = 1e-9", "delta = 0.01")
    said = [complaint(stratsynth(command, recipe, cwd=tmp_path), 2) for command in ("plan", "fit")]
    assert said[0] == said[1]
    assert Recipe.read(recipe).budget() == replace(BUDGET, delta=0.01)


def test_a_mechanism_that_takes_the_row_count_is_not_fitted_in_strata():
    """Under add-remove the number of rows is private: inside strata it would publish the size of every group."""

    class Counting(Independent):
        takes_row_count = True

    with pytest.raises(Unsupported, match="publish the size of every group"):
        Stratified(Counting(), by=BY, weights=Weights.private(share=0.1))
