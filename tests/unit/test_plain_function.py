"""`External.plain`: a function from frame to frame, on public rows alone, whose failures show their cause there."""

import numpy as np
import pandas as pd
import pytest

from helpers import small
from stratsynth import Budget, Stratified, Weights, fit, open_table
from stratsynth.adapters import External
from stratsynth.errors import FewPeopleWarning, MechanismError, Unsupported

BUDGET = Budget(1, 1e-9)


def public(n=100):
    return open_table(small.people(n), schema=small.SCHEMA, declared_size=100, public=True)


def resample(df):
    return df.sample(150, replace=True, random_state=0)


def by_sex():
    shares = small.shares_frame().groupby("SEX", as_index=False)["share"].sum()
    return Weights.public(shares, citation="made up for testing")


def test_one_line_makes_a_release_of_values_in_the_schemas_types():
    release = fit(External.plain(resample), public(), BUDGET)
    made = release.sample(80, seed=1)
    assert list(made.columns) == list(small.SCHEMA.names)
    assert set(made["SEX"].astype(str)) <= {"1", "2"}
    assert release.certificate["unverified"]


def test_a_function_of_few_rows_is_told_of():
    """users3, A.13: 10 rows of 20,000 were taken without a word."""
    with pytest.warns(FewPeopleWarning, match=r"returned \d+ rows that the schema knows, where 100 were wanted"):
        fit(External.plain(lambda df: df.iloc[:12]), public(), BUDGET)


def test_it_is_given_what_a_release_would_show_and_what_it_asks_for_by_name():
    seen = {}

    def mine(df, *, rows, epsilon):
        seen.update(df=df, rows=rows, epsilon=epsilon)
        return df

    fit(External.plain(mine), public(60), BUDGET)
    assert (seen["rows"], seen["epsilon"]) == (100, 1)
    real, given = small.people(60), seen["df"]
    assert list(given.columns) == list(small.SCHEMA.names)
    assert len(given) == 60
    for name in ("SEX", "GROUP"):
        assert given[name].astype(str).tolist() == real[name].astype(str).tolist()


@pytest.mark.usefixtures("seeded_noise")
def test_it_may_be_fitted_in_strata():
    how = Stratified(External.plain(lambda df: df), by=["SEX"], weights=by_sex())
    made = fit(how, public(), BUDGET).sample(1000, seed=1)
    shares = small.shares_frame().groupby("SEX")["share"].sum()
    assert (made["SEX"].astype(str) == "1").mean() == pytest.approx(shares["1"], abs=0.05)


@pytest.mark.parametrize("stratified", [False, True])
def test_rows_that_are_not_public_are_refused_and_the_function_is_not_called(stratified):
    called = []

    def mine(df):
        called.append(1)
        return df

    how = External.plain(mine)
    how = Stratified(how, by=["SEX"], weights=by_sex()) if stratified else how
    with pytest.raises(Unsupported, match="claims no privacy"):
        fit(how, small.table(), BUDGET)
    assert not called


def broken(df):
    raise KeyError(f"no column like {df['SEX'].iloc[0]}")


def lacking(df):
    return df.drop(columns="SEX")


def nothing(df):
    return df.iloc[:0]


def strange(df):
    return 3


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (broken, "KeyError: 'no column like"),
        (lacking, "without the column SEX"),
        (nothing, "returned no row"),
        (strange, "int without the column"),
        (lambda: 3, "TypeError"),
    ],
)
def test_on_public_rows_a_failure_shows_its_cause(function, said):
    with pytest.raises(MechanismError, match=said) as raised:
        fit(External.plain(function), public(), BUDGET)
    if function is broken:
        assert "test_plain_function.py, line" in str(raised.value)
        assert isinstance(raised.value.__cause__, KeyError)


def test_on_other_rows_the_cause_of_a_synthesizers_failure_stays_hidden():
    def fails(frame, sizes, epsilon, delta, rows):
        raise KeyError("a private value")

    for table, shown in ((small.table(), False), (public(), True)):
        with pytest.raises(MechanismError) as raised:
            fit(External(fails, "theirs 1.0"), table, Budget(1, 1e-9, "replace"))
        assert ("a private value" in str(raised.value)) is shown
        assert ("public" in str(raised.value)) is shown


def test_the_release_has_its_own_number_of_rows():
    release = fit(External.plain(lambda df: pd.concat([df] * 6)), public(10), BUDGET)
    made = release.sample(30, seed=0)
    assert len(made) == 30
    assert np.isin(made["GROUP"].astype(str), small.people(10)["GROUP"].astype(str)).all()
