"""Declared tables: how the budget is split, what is asked, and what rows are drawn from."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from helpers import small
from stratsynth import Budget, Stratified, fit
from stratsynth.adapters import Fixed
from stratsynth.adapters.fixed.mechanism import split
from stratsynth.errors import SchemaError, Unsupported, UsageError


@pytest.mark.parametrize(("errors", "power"), [("squared", 2), ("absolute", 1)])
def test_no_other_split_has_less_error(errors, power):
    cells, importance = [4, 60, 9, 1000], [1.0, 3.0, 0.1, 1.0]

    def error(logs):
        parts = np.exp(logs) / np.exp(logs).sum()
        return sum(a * n * (1 / (2 * r)) ** (power / 2) for a, n, r in zip(importance, cells, parts, strict=True))

    found = split(cells, importance, errors)
    assert math.fsum(found) == pytest.approx(1)
    best = minimize(error, np.zeros(4), method="BFGS").fun
    assert error(np.log(found)) == pytest.approx(best, rel=1e-6)
    assert error(np.log(found)) < error(np.zeros(4))


def test_declared_tables_are_measured_once_and_cost_the_budget():
    how = Fixed(tables=[["WORK", "SEX"], ["AGE"]], importance=[4, 1])
    release = fit(how, small.table(), small.BUDGET)
    found = release.measurements.to_pandas().groupby("clique", observed=True).sigma.first().to_dict()
    assert set(found) == {"SEX,WORK", "AGE"}
    # rho by the square root of importance times cells: sqrt(4 * 6) to sqrt(1 * 3)
    assert (found["AGE"] / found["SEX,WORK"]) ** 2 == pytest.approx(math.sqrt(24 / 3), rel=1e-9)
    spent = math.fsum(charge["rho"] for charge in release.certificate["charges"])
    assert spent == pytest.approx(release.certificate["guarantee"]["rho"], rel=1e-12)
    assert release.answers.conditions == ()
    assert len(release.sample(50, seed=1)) == 50


def test_in_strata_the_columns_that_define_them_are_left_out():
    how = Stratified(Fixed(tables=[["SEX", "WORK"], ["WORK"], ["SEX"]]), ["SEX"], small.even(small.SCHEMA, "SEX"))
    release = fit(how, small.table(), small.BUDGET)
    assert set(release.measurements.column("clique").to_pylist()) == {"WORK"}
    assert "not_estimable" not in set(release.query(["WORK"], by=["SEX"]).status)
    only = Stratified(Fixed(tables=[["SEX"]]), ["SEX"], small.even(small.SCHEMA, "SEX"))
    counted = fit(only, small.table(), small.BUDGET)
    assert "not_estimable" not in set(counted.query(by=["SEX"]).status)


@pytest.mark.usefixtures("seeded_noise")
def test_rows_come_from_as_many_tables_as_a_model_holds_and_answers_from_all():
    tables = [["SEX", "WORK"], ["WORK", "AGE"], ["SEX", "AGE"]]
    release = fit(Fixed(tables=tables, importance=[3, 2, 1], model_cells=16), small.table(), Budget(20, 1e-6))
    assert release.model.state().arrays
    for table in tables:
        assert "not_estimable" not in set(release.query(table).status)
    drawn = release.sample(4000, seed=1).groupby(["SEX", "WORK"]).size() / 40
    counted = release.query(["SEX", "WORK"]).set_index(["SEX", "WORK"]).estimate
    assert np.abs(drawn - counted).max() < 5


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"tables": "SEX"}, UsageError, "list of lists"),
        ({"tables": [["SEX", "SEX"]]}, UsageError, "names a column twice"),
        ({"tables": [["SEX", "AGE"], ["AGE", "SEX"]]}, UsageError, "declared twice"),
        ({"tables": [["SEX"]], "importance": [1, 2]}, UsageError, "one number for each table"),
        ({"tables": [["SEX"]], "importance": [0]}, UsageError, "importance"),
        ({"tables": [["SEX"]], "errors": "relative"}, UsageError, "errors"),
        ({"tables": [["SEXES"]]}, SchemaError, "no column 'SEXES'"),
        ({"tables": [["SEX"]], "model_cells": 3}, Unsupported, "model_cells"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_a_charge(settings, error, message):
    with pytest.raises(error, match=message):
        fit(Fixed(**settings), small.table(), small.BUDGET)
