"""The accounting against published reference values."""

import json
import math
from decimal import Decimal, localcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stratsynth as ss
from helpers import recompute, small
from helpers.accounts import scaled
from stratsynth.accounting.budget import Budget
from stratsynth.accounting.zcdp import epsilon_of, rho_of
from stratsynth.adapters import Independent

GOLDENS = json.loads(Path(__file__).with_name("goldens.json").read_text(encoding="utf-8"))
PRICES = GOLDENS["prices_of_(1,1e-9)_zcdp"]

epsilons = st.floats(1e-3, 50)
deltas = st.floats(1e-30, 1e-2)


def near(value):
    return pytest.approx(value, rel=GOLDENS["tolerance"])


@pytest.mark.parametrize("golden", GOLDENS["zcdp_rho_to_epsilon"], ids=str)
def test_epsilon_of_rho(golden):
    assert epsilon_of(golden["rho"], golden["delta"]) == near(golden["epsilon"])


@pytest.mark.parametrize("golden", GOLDENS["zcdp_epsilon_to_rho"], ids=str)
def test_rho_of_epsilon(golden):
    rho = rho_of(golden["epsilon"], golden["delta"])
    assert rho == near(golden["rho"])
    assert 1 / math.sqrt(2 * rho) == near(golden["sigma_for_one_query"])


def test_no_rho_costs_nothing():
    assert epsilon_of(0, 1e-9) == 0


@given(epsilons, deltas)
def test_rho_of_never_overshoots_in_floating_point(epsilon, delta):
    assert epsilon_of(rho_of(epsilon, delta), delta) <= epsilon


@given(epsilons, deltas)
def test_rho_of_never_overshoots_in_exact_arithmetic(epsilon, delta):
    """Every order gives a valid bound, so that one order with fifty digits is proof enough."""
    rho = rho_of(epsilon, delta)
    low, high = -20.0, 40.0
    for _ in range(300):  # the best order
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if bound(rho, delta, a) < bound(rho, delta, b) else (a, high)
    with localcontext(prec=50):
        order = 1 + Decimal(low).exp()
        rest = (1 / Decimal(delta)).ln() + (order - 1) * (1 - 1 / order).ln() - order.ln()
        assert Decimal(rho) * order + rest / (order - 1) <= Decimal(epsilon)


def bound(rho, delta, t):
    a = 1 + math.exp(t)
    return rho * a + (math.log(1 / delta) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1)


@given(epsilons, deltas)
def test_rho_of_wastes_nothing(epsilon, delta):
    assert epsilon_of(rho_of(epsilon, delta) * (1 + 1e-9), delta) > epsilon * (1 - 1e-12)


@given(st.floats(1e-6, 30), deltas, st.floats(1.01, 10))
def test_epsilon_rises_with_rho_and_falls_with_delta(rho, delta, factor):
    assert epsilon_of(rho * factor, delta) >= epsilon_of(rho, delta)
    assert epsilon_of(rho, delta * factor) <= epsilon_of(rho, delta)


@given(st.floats(1e-6, 30), deltas)
def test_epsilon_of_agrees_with_a_plain_search_over_orders(rho, delta):
    assert epsilon_of(rho, delta) == pytest.approx(recompute.epsilon(rho, delta), rel=1e-7)


def test_the_three_prices_of_a_stratified_fit():
    prices = small.small_release().certificate["prices"]
    assert prices["add-remove"] == near(PRICES["add_remove"])
    assert prices["move"] == near(PRICES["move_between_strata_2rho"])
    assert prices["replace"] == near(PRICES["move_between_strata_2rho"])  # counts: twice rho, no more


def test_what_was_not_spent_is_priced_at_the_dearest():
    class Thrifty(Independent):
        def steps(self, public, allot, rng):
            return Independent.steps(self, public, scaled(allot, 0.5), rng)

    prices = ss.fit(Thrifty(), small.table(), small.BUDGET).certificate["prices"]
    assert prices["add-remove"] == near(1)
    half = rho_of(1, 1e-9) / 2
    assert prices["replace"] == pytest.approx(epsilon_of(2 * half + 4 * half, 1e-9), rel=1e-5)


def test_several_fits_on_one_table_add_up_in_rho():
    table = small.table()
    spent = [ss.fit(Independent(), table, small.BUDGET).certificate["ledger"]["spent_epsilon"] for _ in range(5)]
    assert spent[0] == near(1)
    assert spent[1] == near(PRICES["two_fits"])
    assert spent[2] == near(PRICES["three_fits"])
    assert spent[4] == near(PRICES["five_fits"])


def test_a_budget_at_one_delta_is_not_the_same_budget_at_another():
    rho = Budget(1, 1e-5).zcdp().rho
    assert epsilon_of(rho, 1e-9) == near(PRICES["rho_for_(1,1e-5)_at_1e-9"])
