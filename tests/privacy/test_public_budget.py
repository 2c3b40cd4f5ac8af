"""Epsilons above 25, and infinite ones: for data declared public, and refused of any other before any charge."""

import dataclasses
import json
import math

import numpy as np
import pytest

import stratsynth as ss
from helpers import small
from helpers.ledgers import lines_of
from stratsynth import cli
from stratsynth.accounting.account import Request
from stratsynth.accounting.public_budget import MOST_PUBLIC_EPSILON, budget_of
from stratsynth.adapters.sklearn import GroupClassifier
from stratsynth.errors import NotPrivateWarning, UsageError
from stratsynth.fitting.stages import Fit
from stratsynth.mechanisms import make

LARGE = ss.PublicBudget(50, 1e-9)
REASON = r"above 25, where a guarantee promises nothing: .* data declared public alone"


def private(**settings):
    return ss.open_table(small.people(), schema=small.SCHEMA, declared_size=small.SIZE, **settings)


def of_public_rows():
    return private(public=True)


def test_a_fit_of_private_rows_refuses_it_with_the_reason_and_charges_nothing(tmp_path):
    ledger = tmp_path / "people.ledger"
    for table in (private(ledger=ledger, ledger_epsilon=1e9), private()):
        with pytest.raises(UsageError, match=REASON):
            ss.fit(make("independent", {}), table, LARGE)
    assert not ledger.exists()


@pytest.mark.parametrize("place", ["a ledger file", "a ledger file that is there", "a process"])
def test_no_account_of_private_rows_reserves_it_whoever_asks(tmp_path, place):
    """The account itself refuses it, even where the checks of a fit were passed by."""
    ledger = tmp_path / "people.ledger"
    table = private() if place == "a process" else private(ledger=ledger, ledger_epsilon=1e9)
    if place.endswith("there"):
        ss.fit(make("independent", {}), table, small.BUDGET)
    request = Fit.prepare(make("independent", {}), of_public_rows(), LARGE).request
    assert isinstance(request, Request)
    assert request.allot.promise.epsilon == 50
    with pytest.raises(UsageError, match="epsilon 50 is for data declared public alone"):
        table.ledger.open(request)
    if place != "a process":
        kinds = [line["kind"] for line in lines_of(ledger)]
        assert kinds.count("reserve") == place.endswith("there")


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, -math.inf, 2e6, None, "50", True])
def test_a_public_budget_refuses_what_is_no_epsilon_at_all(epsilon):
    with pytest.raises(UsageError, match="budget: epsilon"):
        ss.PublicBudget(epsilon, 1e-9)


@pytest.mark.parametrize("epsilon", [math.inf, np.float64("inf")])
def test_infinity_is_the_largest_epsilon(epsilon):
    assert ss.PublicBudget(epsilon, 1e-9) == ss.PublicBudget(MOST_PUBLIC_EPSILON, 1e-9)
    assert budget_of(epsilon, 1e-9, public=True) == ss.PublicBudget(MOST_PUBLIC_EPSILON, 1e-9)


def test_an_epsilon_that_any_budget_takes_makes_an_ordinary_one_on_public_data_too():
    """So that fits of earlier versions are recognised."""
    assert type(budget_of(25, 1e-9, public=True)) is ss.Budget
    with pytest.raises(UsageError, match=REASON):
        budget_of(25.1, 1e-9)


@pytest.mark.parametrize("epsilon", [50, 1_000, math.inf])
def test_releases_of_public_rows_promise_nothing_and_are_read_again(tmp_path, epsilon):
    release = ss.fit(make("independent", {}), of_public_rows(), ss.PublicBudget(epsilon, 1e-9))
    release.save(tmp_path / "release")
    again = ss.Release.load(tmp_path / "release")
    assert again.certificate["private"] is False
    assert again.certificate["guarantee"]["epsilon"] == min(epsilon, 1e6)
    counts = again.query(["SEX"])["estimate"].to_numpy()
    assert np.allclose(counts, 50, atol=3 if epsilon == 50 else 0.01)
    assert "were declared public" in again.certificate["warning"]
    assert not ss.verify(tmp_path / "release").ok


def test_a_certificate_that_calls_itself_private_at_such_an_epsilon_is_refused(tmp_path):
    ss.fit(make("independent", {}), of_public_rows(), LARGE).save(tmp_path / "release")
    path = tmp_path / "release" / "certificate.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record |= {"private": True}
    del record["warning"]
    path.write_text(json.dumps(record), encoding="utf-8")
    found = ss.verify(tmp_path / "release")
    assert not found.ok
    assert any("its epsilon is not above 0 and at most 25" in finding for finding in found.findings)


def written(folder, epsilon, *, public):
    recipe = small.write_recipe(folder)
    small.edit(recipe, "epsilon = 1.0", f"epsilon = {epsilon}")
    if public:
        small.edit(recipe, "declared_size = 100", "declared_size = 100\npublic = true")
    return str(recipe)


def test_a_recipe_on_public_data_takes_it_and_any_other_says_why_not(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, epsilon in enumerate(["40.0", "inf"]):
        (tmp_path / f"{number}").mkdir()
        assert cli.run(["fit", written(tmp_path / f"{number}", epsilon, public=True)]) == 0
    (tmp_path / "private").mkdir()
    assert cli.run(["plan", written(tmp_path / "private", "inf", public=False)]) == UsageError.exit_code
    said = capsys.readouterr().err
    assert "epsilon inf is above 25" in said
    assert "public = true" in said


def test_one_call_and_estimators_take_it_with_public_true_alone():
    frame = small.people()
    with pytest.warns(NotPrivateWarning):
        release = ss.synthesize(frame, epsilon=math.inf, schema=small.SCHEMA, public=True, mechanism="independent")
    assert release.certificate["guarantee"]["epsilon"] == 1e6
    with pytest.raises(UsageError, match=REASON):
        ss.synthesize(frame, epsilon=30, schema=small.SCHEMA, mechanism="independent")
    X, y = np.linspace(0, 9, 40).reshape(-1, 2), np.tile(["no", "yes"], 10)
    model = GroupClassifier(epsilon=100, delta=1e-6, bounds=(0, 9), classes=["no", "yes"], iterations=2)
    with pytest.raises(UsageError, match=REASON):
        model.fit(X, y)
    assert model.set_params(public=True).fit(X, y).certificate_["guarantee"]["epsilon"] == 100


def test_strata_may_have_such_epsilons_too():
    how = dataclasses.replace(small.stratified(), budgets=ss.StratumBudgets.factors({"1|a": 0.5}))
    release = ss.fit(how, of_public_rows(), LARGE)
    assert release.certificate["guarantee"]["epsilon"] == 50
