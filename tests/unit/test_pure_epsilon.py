"""Budgets with delta 0: what keeps to pure epsilon, what an account says of it, and what a release states."""

import json
from dataclasses import replace

import numpy as np
import pytest

from helpers.reducing import SCHEMA, people
from helpers.small import even
from stratsynth import Budget, Stratified, fit, open_table, plan, verify
from stratsynth.accounting.budget import PRICED, Currency
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.history import read_ledger
from stratsynth.accounting.joined import joined
from stratsynth.adapters import ClippedMean, Independent, Reductions
from stratsynth.errors import BudgetRefused, Unsupported
from stratsynth.questions import Choose, Distance

PURE = Budget(1, 0)
LOOSE = Budget(1, 1e-9)
TESTS = {"features": ["X"], "candidates": "thresholds", "number": 20}
SAMPLED = Reductions(method="sampling", **TESTS)
STEPS = Reductions(oracle="exponential", iterations=3, groups=["G"], constraints={"demographic_parity": 0.1}, **TESTS)
WAYS = {
    "clipped mean": ClippedMean(columns=["X"]),
    "sampling": SAMPLED,
    "sampling among directions, for two groups": Reductions(
        method="sampling", candidates="net", number=20, groups=["G"], objective="g_mean"
    ),
    "Frank-Wolfe by choices": STEPS,
}


def table(n=400, **settings):
    return open_table(people(n), schema=SCHEMA, declared_size=n, **settings)


def test_a_choice_costs_its_epsilon():
    scores = tuple(Distance(("G",), np.array([float(i), 0.0])) for i in range(3))
    for epsilon in (1e-3, 0.3, 2.0):
        question = Choose(scores, epsilon**2 / 8, pure=True)
        (charge,) = question.charges(SCHEMA, (), PRICED[0])
        assert charge.currency == Currency.PURE
        assert charge.amount == question.epsilon == pytest.approx(epsilon, rel=1e-12)
        assert charge.at(*PRICED) == 2 * charge.at(PRICED[0], PRICED[0])
        (many,) = joined([charge] * 3)
        assert Charge.from_dict(many.to_dict(), Currency.PURE) == many
        assert many.to_dict()["epsilon"] == 3 * charge.amount
    (rho,) = Choose(scores, 0.02).charges(SCHEMA, (), PRICED[0])
    assert (rho.amount, rho.currency) == (0.02, Currency.ZCDP)
    assert question.replayed() != Choose(scores, question.rho).replayed()


@pytest.mark.parametrize("way", WAYS)
def test_a_fit_in_pure_epsilon_states_delta_0_and_verifies(way, tmp_path):
    release = fit(WAYS[way], table(), PURE)
    stated = release.certificate
    assert stated["guarantee"]["currency"] == "pure"
    assert (stated["guarantee"]["epsilon"], stated["guarantee"]["delta"]) == (1, 0)
    spent = sum(charge["epsilon"] for charge in stated["charges"])
    assert spent == pytest.approx(1, rel=1e-6)
    assert spent <= 1
    assert stated["prices"]["replace"] <= 2
    release.save(tmp_path / "release")
    found = verify(tmp_path / "release")
    assert found.ok, found.findings
    assert any("at delta 0" in line for line in found.checked)


def test_half_of_the_price_that_a_choice_had_is_found(tmp_path):
    fit(SAMPLED, table(), PURE).save(tmp_path / "release")
    path = tmp_path / "release" / "certificate.json"
    stated = json.loads(path.read_text(encoding="utf-8"))
    stated["charges"][-1]["epsilon"] /= 2
    path.write_text(json.dumps(stated), encoding="utf-8")
    assert not verify(tmp_path / "release").ok


def test_strata_cost_what_one_does_and_a_plan_says_so():
    how = Stratified(WAYS["clipped mean"], ["G"], even(SCHEMA, "G"))
    found = plan(how, SCHEMA, PURE, declared_size=400)
    assert (found.epsilon, found.delta) == (1, 0)
    assert found.spent <= found.reserved <= 1
    stated = fit(how, table(), PURE).certificate
    assert sum(charge["epsilon"] for charge in stated["charges"]) == pytest.approx(2, rel=1e-6)
    assert stated["prices"]["add-remove"] <= 1


def test_noise_of_sampling_is_less_than_that_of_the_same_epsilon_in_rho():
    """At epsilon 1 a single choice in rho has less than half of the epsilon that it has in pure epsilon."""
    charged = {budget: fit(SAMPLED, table(), budget).certificate["charges"] for budget in (PURE, LOOSE)}
    pure, rho = (next(c["epsilon"] for c in charged[b] if c["kind"] == "choose") for b in (PURE, LOOSE))
    assert rho < pure / 2


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (Reductions(features=["X"]), "noisy gradients do not keep"),
        (Reductions(method="sampling"), "a pool lies around"),
        (Independent(), "spends rho"),
    ],
)
def test_what_is_not_pure_is_refused_with_the_remedy_and_costs_nothing(how, words, tmp_path):
    private = table(ledger=tmp_path / "people.ledger", ledger_epsilon=3)
    with pytest.raises(Unsupported, match=words):
        fit(how, private, PURE)
    assert not (tmp_path / "people.ledger").exists()


def in_file(path):
    return {"ledger": path / "people.ledger", "ledger_epsilon": 2.5}


def test_epsilons_are_added_to_those_of_fits_in_rho(tmp_path):
    private = table(**in_file(tmp_path))
    fit(Independent(), private, LOOSE)
    stated = fit(SAMPLED, private, PURE).certificate["ledger"]
    assert stated["spent_epsilon"] == pytest.approx(2, rel=1e-6)
    assert stated["spent_delta"] == 1e-9
    with pytest.raises(BudgetRefused, match=r"asked epsilon 1, remaining 0\.5"):
        fit(WAYS["clipped mean"], private, PURE)


def test_an_account_that_is_stated_at_delta_0_takes_fits_in_pure_epsilon_alone(tmp_path):
    private = table(**in_file(tmp_path))
    fit(SAMPLED, private, PURE)
    with pytest.raises(BudgetRefused, match="only fits in pure epsilon count"):
        fit(Independent(), private, LOOSE)
    stated = fit(WAYS["clipped mean"], private, PURE).certificate["ledger"]
    assert (stated["spent_epsilon"], stated["spent_delta"]) == (2, 0)
    shown = read_ledger(tmp_path / "people.ledger")
    assert (shown["spent_epsilon"], shown["left_epsilon"], shown["largest_epsilon"]) == (2, 0.5, 0.5)


@pytest.mark.parametrize("order", [(PURE, LOOSE), (LOOSE, PURE)])
def test_without_a_file_the_total_is_stated_at_the_delta_of_the_others(order):
    private = table()
    how = {PURE: SAMPLED, LOOSE: Independent()}
    for budget in order:
        stated = fit(how[budget], private, budget).certificate["ledger"]
    assert stated["spent_epsilon"] == pytest.approx(2, rel=1e-6)
    assert stated["spent_delta"] == 1e-9


def test_the_budget_of_delta_0_is_pure_and_no_other():
    assert PURE.pure().amount == 1
    assert PURE.truncation_delta == 0
    for spends in (PURE.zcdp, lambda: PURE.sampled(rate=0.1, steps=3)):
        with pytest.raises(Unsupported, match="delta = 0"):
            spends()
    assert replace(PURE, delta=-0.0).pure().amount == 1
