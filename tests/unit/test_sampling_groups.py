"""Samples by group: exact numbers, or as many of each group that can occur."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stratsynth as ss
from helpers import small
from stratsynth.errors import UsageError
from stratsynth.mechanisms import make
from stratsynth.schema import Rule

BY = ["SEX", "GROUP"]
CACHED = small.clear_release()


@pytest.fixture(scope="module")
def stratified():
    return CACHED


@pytest.fixture(scope="module")
def vanilla():
    return small.clear_release(make("mst", {}))


@pytest.fixture(params=["stratified", "vanilla"])
def release(request):
    return request.getfixturevalue(request.param)


def sizes(rows, by=BY):
    return rows[by].value_counts().to_dict()


def test_each_group_gets_the_number_it_is_given(release):
    wanted = {("1", "a"): 3, ("1", "b"): 0, ("2", "a"): 40}
    rows = release.sample(n_by_group=wanted, by=BY, seed=1)
    assert sizes(rows) == {("1", "a"): 3, ("2", "a"): 40}
    pd.testing.assert_frame_equal(rows, release.sample(n_by_group=wanted, by=BY, seed=1))


def test_groups_are_named_by_numbers_as_well(stratified):
    assert sizes(stratified.sample(n_by_group={1: 5, 2: 7}, by=["SEX"]), ["SEX"]) == {("1",): 5, ("2",): 7}


def test_rows_of_different_groups_are_mixed(stratified):
    rows = stratified.sample(n_by_group={("1", "a"): 100, ("2", "a"): 100})
    assert set(rows["SEX"][:40]) == {"1", "2"}


def test_the_strata_s_columns_need_not_be_named(stratified):
    assert sizes(stratified.sample(n_by_group={("1", "b"): 5})) == {("1", "b"): 5}


def test_without_strata_the_columns_must_be_named(vanilla):
    with pytest.raises(UsageError, match="by="):
        vanilla.sample(n_by_group={("1", "b"): 5})


def test_groups_of_other_columns_than_the_strata_s(stratified):
    rows = stratified.sample(n_by_group={"yes": 7, "no": 2}, by=["WORK"])
    assert rows["WORK"].value_counts().to_dict() == {"yes": 7, "no": 2}


def test_a_frame_of_numbers_its_levels_as_pandas_reads_them(release):
    frame = pd.DataFrame({"SEX": [1, 2], "rows": [4.0, 6.0]})
    assert sizes(release.sample(n_by_group=frame), ["SEX"]) == {("1",): 4, ("2",): 6}


def test_a_file_of_numbers(release, tmp_path):
    (tmp_path / "numbers.csv").write_text("GROUP,SEX,rows\na,1,4\nb,1,2\n", encoding="utf-8")
    assert sizes(release.sample(n_by_group=tmp_path / "numbers.csv")) == {("1", "a"): 4, ("1", "b"): 2}


def test_a_condition_goes_with_numbers(release):
    rows = release.sample(n_by_group={"1": 20, "2": 30}, by=["SEX"], where={"WORK": ["yes", "no"]})
    assert sizes(rows, ["SEX"]) == {("1",): 20, ("2",): 30}
    assert set(rows["WORK"]) <= {"yes", "no"}


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_by_group": {("1", "z"): 1}}, "no level"),
        ({"n_by_group": {("1",): 1}}, "key"),
        ({"n_by_group": {(1, 2): 1}}, "GROUP has no level '2'"),
        ({"n_by_group": {("1", None): 1}}, "one value"),
        ({"n": 5, "balance": 1}, "balance is a list of columns, not 1"),
        ({"n_by_group": {"1": 1}, "by": 3}, "by is a list of columns, not 3"),
        ({"n_by_group": {("1", "a"): -1}}, "whole"),
        ({"n_by_group": {("1", "a"): 1.5}}, "whole"),
        ({"n_by_group": {("1", "a"): True}}, "whole"),
        ({"n_by_group": {("2", "b"): 1}}, "no weight"),
        ({"n_by_group": {("1", "a"): 1}, "n": 2}, "adds up"),
        ({"n_by_group": {("1", "a"): 1}, "balance": ["SEX"], "n": 1}, "not both"),
        ({"n_by_group": {("1", "a"): 1}, "where": {"SEX": "2"}}, "no weight"),
        ({"n_by_group": {"1": 1}, "by": "SEX"}, "list"),
        ({"n_by_group": {"1": 1}, "by": ["SEXX"]}, "no column"),
        ({"n_by_group": pd.DataFrame({"SEX": ["1"]})}, "rows"),
        ({"n_by_group": pd.DataFrame({"rows": [1]})}, "rows"),
        ({"n_by_group": pd.DataFrame({"SEX": ["1", "1"], "rows": [1, 1]})}, "twice"),
        ({"n_by_group": pd.DataFrame({"SEX": [], "rows": []})}, "no line"),
        ({"n_by_group": "nowhere.csv"}, "no file"),
        ({"n_by_group": [1]}, "a frame"),
        ({"n": 1, "by": ["SEX"]}, "by="),
        ({}, "how many"),
        ({"balance": ["SEX"]}, "how many"),
        ({"n": 5, "balance": "SEX"}, "list"),
        ({"n": 5, "balance": []}, "column"),
        ({"n": 5, "balance": ["SEXX"]}, "no column"),
        ({"n": 5, "balance": ["SEX"], "where": {"SEX": "2", "GROUP": "b"}}, "no weight"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(stratified, settings, match):
    with pytest.raises(UsageError, match=match):
        stratified.sample(**settings)


def test_a_balanced_sample_has_as_many_of_each_group_that_can_occur(stratified):
    """SEX 2 GROUP b has no public weight: nobody is made up for it."""
    assert sizes(stratified.sample(300, balance=BY)) == {("1", "a"): 100, ("1", "b"): 100, ("2", "a"): 100}


@given(n=st.integers(0, 50), seed=st.integers(0, 10))
def test_what_does_not_divide_evenly_is_shared_out_one_by_one(n, seed):
    found = sizes(CACHED.sample(n, balance=BY, seed=seed))
    assert sum(found.values()) == n
    assert all(n // 3 <= number <= -(-n // 3) for number in found.values())


def test_a_balanced_sample_follows_the_model_within_groups(stratified):
    balanced = stratified.sample(60_000, balance=["SEX"], seed=1)
    plain = stratified.sample(60_000, where={"SEX": "1"}, seed=2)
    ours = balanced[balanced["SEX"] == "1"]["WORK"].value_counts(normalize=True)
    theirs = plain["WORK"].value_counts(normalize=True)
    assert np.allclose(ours.reindex(theirs.index).fillna(0), theirs, atol=0.02)


@pytest.mark.parametrize("name", ["independent", "mst"])
@pytest.mark.parametrize("strata", [False, True])
def test_groups_that_a_rule_forbids_get_no_row(name, strata):
    """A model that knows nothing of rules gives them weight, and mending could not make them."""
    schema = ss.Schema(small.SCHEMA.columns, rules=(Rule(when={"AGE": "0-2"}, never={"WORK": ("yes", "no")}),))
    how = make(name, {})
    how = ss.Stratified(how, ["SEX"], small.even(schema, "SEX")) if strata else how
    table = ss.open_table(small.people(2_000), schema=schema, declared_size=2_000)
    release = ss.fit(how, table, ss.Budget(10, 1e-5))
    found = sizes(release.sample(70, balance=["AGE", "WORK"]), ["WORK"])
    assert found == {("N",): 30, ("yes",): 20, ("no",): 20}
    ages = release.sample(90, balance=["AGE", "WORK"], where={"WORK": ["yes", "N"]})["AGE"]
    assert (ages <= 2).sum() == 18
    with pytest.raises(UsageError, match="no weight"):
        release.sample(n_by_group={("0-2", "yes"): 1}, by=["AGE", "WORK"])


def test_every_group_of_a_census_by_hand():
    """The groups of the built-in census, down to a share of a thousandth, a hundred rows each."""
    people, by = ss.census.make(3_000), ["SEX", "RAC1P"]
    schema = ss.census.schema()
    weights = ss.Weights.public(ss.census.shares(by), citation=ss.census.CITATION)
    table = ss.open_table(people, schema=schema, declared_size=3_000)
    release = ss.fit(ss.Stratified(make("independent", {}), by, weights), table, ss.Budget(1, 1e-9))
    groups = list(itertools.product(schema.levels("SEX"), schema.levels("RAC1P")))
    assert sizes(release.sample(100 * len(groups), balance=by), by) == dict.fromkeys(groups, 100)
