"""Cost of a step by three ways of counting, and refusal of those that are not private."""

import math

import pytest

from helpers.regressing import SCHEMA, exactly, people
from stratsynth import Budget
from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.accounting.charges import Spending
from stratsynth.adapters import GroupRegression
from stratsynth.adapters.predictors.accounting import UNSOUND, cost, divided
from stratsynth.errors import UsageError
from stratsynth.planning.foresee import plan
from stratsynth.questions import Total


def test_five_equal_groups_cost_all_a_fifth_and_a_twenty_fifth():
    mu, weights = 0.8, [0.1] * 5
    rhos = [mu / 5] * 5
    assert cost("paper", rhos, weights) == pytest.approx(mu, rel=1e-15)
    assert cost("parallel", rhos, weights) == mu / 5
    assert cost("combined", rhos, weights) == pytest.approx(mu / 25, rel=1e-15)


def test_combined_is_the_price_of_one_gaussian_on_the_weighted_sum():
    rhos, weights, clip = [0.1, 0.3], [0.5, 2.0], 1.7
    variance = sum(v**2 * clip**2 / (2 * rho) for v, rho in zip(weights, rhos, strict=True))
    worst = max((v * clip) ** 2 / (2 * variance) for v in weights)
    assert cost("combined", rhos, weights) == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize(("accounting", "together"), [("paper", math.fsum), ("parallel", max)])
def test_a_divided_budget_is_never_exceeded(accounting, together):
    found = divided(accounting, 0.7, [0.2, 0.5, 0.3])
    assert together(found) == pytest.approx(0.7)
    assert together(found) < 0.7
    assert found[1] / found[0] == pytest.approx(2.5)


@pytest.mark.parametrize("accounting", UNSOUND)
def test_what_is_not_private_is_refused_with_the_reason(accounting):
    with pytest.raises(UsageError, match="is not private"):
        GroupRegression(accounting=accounting)


def spent(accounting, mode="DPNoSE", groups=("G",), **more):
    how = GroupRegression(
        target="Y",
        groups=groups,
        mode=mode,
        accounting=accounting,
        iterations=5,
        features=["X"],
        sizes={"a": 160, "b": 40},
        sizes_citation="made up",
        **more,
    )
    budget = Budget(1, 1e-9)
    _, asked = exactly(how, people(200), budget=budget)
    charges = [charge for _, each in asked for charge in each]
    return float(Spending(Neighbours.ADD_REMOVE, charges).spent()) / budget.zcdp().amount, asked


def test_the_ledger_records_what_was_asked_whatever_divided_the_budget():
    """Under `paper` two groups get half each, and a record pays for its own."""
    assert spent("parallel")[0] == pytest.approx(1, rel=1e-6)
    assert spent("combined")[0] == pytest.approx(1, rel=1e-6)
    assert spent("paper")[0] == pytest.approx(1 / 2, rel=1e-6)


@pytest.mark.parametrize("mode", ["DPSE", "DPNoSE"])
@pytest.mark.parametrize("accounting", ["paper", "parallel"])
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_no_way_of_counting_spends_more_than_the_fit_has(accounting, mode, model):
    target = "Y" if model == "linear" else "D"
    how = GroupRegression(
        target=target, groups=["G"], mode=mode, accounting=accounting, model=model, iterations=3, stage_one=0.3
    )
    budget = Budget(1, 1e-9)
    _, asked = exactly(how, people(100), budget=budget)
    charges = [charge for _, each in asked for charge in each]
    assert float(Spending(Neighbours.ADD_REMOVE, charges).spent()) <= budget.zcdp().amount


def test_combined_asks_everybody_once_a_step_and_the_others_each_group():
    assert [a.path for a, _ in spent("combined", objective="balanced")[1]] == [()] * 5
    paths = [a.path for a, _ in spent("parallel")[1]]
    assert len(paths) == 10
    assert all(len(path) == 1 for path in paths)


def test_noise_under_replace_is_for_exchanged_records():
    how = GroupRegression(target="Y", features=["X"], iterations=2)
    found = {}
    for notion in PRICED:
        _, asked = exactly(how, people(50), budget=Budget(1, 1e-9, notion))
        found[notion] = asked[0][1][0].details["sigma"]
        assert isinstance(asked[0][0].question, Total)
    assert found[Neighbours.REPLACE] == pytest.approx(2 * found[Neighbours.ADD_REMOVE])


def test_a_plan_charges_what_the_fit_will_and_says_how_it_descends():
    found = plan(
        GroupRegression(target="Y", groups=["G"], accounting="parallel", iterations=4),
        SCHEMA,
        Budget(1, 1e-9),
        declared_size=1000,
    )
    assert found.spent == pytest.approx(found.reserved, rel=1e-6)
    assert found.spent <= found.reserved
    assert all("4 steps, rate" in stratum.verdict for stratum in found.strata)
