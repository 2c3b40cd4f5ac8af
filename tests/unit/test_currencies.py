"""A fit spends in one currency, fixed before its first question, and keeps to what it has reserved."""

import json
from pathlib import Path

import numpy as np
import pytest

from stratsynth.accounting.account import Request
from stratsynth.accounting.budget import Allotment, Budget, Currency, Neighbours
from stratsynth.accounting.prices import prices
from stratsynth.accounting.process import ProcessLedger
from stratsynth.accounting.sampled import epsilon_sampled, least_noise
from stratsynth.accounting.totals import total as all_fits
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.driver.lockstep import run
from stratsynth.driver.private import PrivateAnswers
from stratsynth.driver.rows import StoredRows
from stratsynth.errors import BudgetRefused, Unsupported, UsageError
from stratsynth.noise import SystemEntropy
from stratsynth.questions import Claim, Columns, counts, raw, split, total
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.schema.rows import CodedRows
from stratsynth.strata import crossing

GOLDENS = json.loads((Path(__file__).parents[1] / "golden" / "goldens.json").read_text())
BUDGET = Budget(1, 1e-6)
SCHEMA = Schema({"SEX": Categorical(levels=("1", "2")), "AGE": Numeric(lower=0, upper=90, integer=True)})
MEAN = Columns(("AGE",), (40.0,), (10.0,), clip=2.0, norm="l1")


def answering(allot, budget=BUDGET):
    account = ProcessLedger().open(Request("", "test", budget, allot, 0))
    rng = np.random.default_rng(0)
    codes = {"SEX": rng.integers(0, 2, 50).astype(np.uint8), "AGE": rng.integers(0, 91, 50).astype(np.uint8)}
    rows = StoredRows([CodedRows(SCHEMA, codes, {"AGE": codes["AGE"].astype(float)}, 50)])
    return account, PrivateAnswers(lambda: rows, account, SystemEntropy())


def ask(allot, program, budget=BUDGET):
    account, answers = answering(allot, budget)
    return account, run(program, SCHEMA, answers)


def steps(number, noise, rate):
    for _ in range(number):
        (last,) = yield from total(MEAN, noise=noise, rate=rate)
    return last


@pytest.mark.parametrize("golden", GOLDENS["poisson_gaussian_pld"], ids=str)
def test_sampled_steps_cost_what_the_reference_says(golden):
    found = epsilon_sampled(golden["noise_multiplier"], golden["rate"], golden["steps"], golden["delta"])
    assert found == pytest.approx(golden["epsilon"], rel=2e-6)


def test_the_least_noise_keeps_to_the_budget_and_hardly_less_would_not():
    noise = least_noise(BUDGET, rate=0.05, steps=100)
    delta = BUDGET.delta - BUDGET.truncation_delta
    assert epsilon_sampled(noise, 0.05, 100, delta) <= 1 < epsilon_sampled(noise * 0.999, 0.05, 100, delta)


def test_a_sampled_fit_takes_the_steps_it_reserved_and_no_more():
    allot = BUDGET.sampled(rate=0.1, steps=5)
    account, last = ask(allot, steps(5, allot.noise, 0.1))
    assert account.spending.spent() == 5
    assert last.sigma == pytest.approx(allot.noise * MEAN.clip)
    with pytest.raises(BudgetRefused, match="steps"):
        ask(allot, steps(6, allot.noise, 0.1))


@pytest.mark.parametrize(("noise", "rate"), [(0.5, 0.1), (1, 0.2)])
def test_a_sampled_fit_keeps_its_noise_and_rate(noise, rate):
    allot = BUDGET.sampled(rate=0.1, steps=5)
    with pytest.raises(Unsupported, match="reserved"):
        ask(allot, steps(1, allot.noise * noise, rate))


def test_a_sampled_move_is_two_strata_s_steps():
    allot = BUDGET.sampled(rate=0.1, steps=3)

    def program():
        return (yield from split({s: steps(3, allot.noise, 0.1) for s in crossing(SCHEMA, ["SEX"])}))

    account, _ = ask(allot, program())
    assert account.spending.spent() == 3
    found = prices(account.spending, BUDGET, allot)
    delta = BUDGET.delta - BUDGET.truncation_delta
    assert found["add-remove"] <= 1
    assert found["move"] == epsilon_sampled(allot.noise, 0.1, 6, delta)
    assert found["replace"] == max(found["move"], epsilon_sampled(allot.noise, 0.1, 3, delta, Neighbours.REPLACE))


def test_pure_epsilon_adds_up_as_such():
    allot = BUDGET.pure()

    def program(parts):
        for part in parts:
            (last,) = yield from total(MEAN, epsilon=part)
        return last

    account, last = ask(allot, program([0.25, 0.75]))
    assert account.spending.spent() == 1
    assert prices(account.spending, BUDGET, allot) == {
        "add-remove": 1,
        "move": 2,
        "replace-within-group": 2,
        "replace": 2,
    }
    assert last.sigma == pytest.approx(np.sqrt(2) * MEAN.clip / 0.75)
    with pytest.raises(BudgetRefused, match="epsilon"):
        ask(allot, program([0.25, 0.75, 1e-3]))


def test_a_pure_fit_under_replacement_gets_twice_the_noise():
    budget = Budget(1, 1e-6, Neighbours.REPLACE)

    def program():
        return (yield from total(MEAN, epsilon=1.0))

    _, (last,) = ask(budget.pure(), program(), budget)
    assert last.sigma == pytest.approx(2 * np.sqrt(2) * MEAN.clip)


@pytest.mark.parametrize("allot", [BUDGET.pure(), BUDGET.zcdp()], ids=["pure", "zcdp"])
def test_a_question_in_another_currency_is_refused_unread(allot):
    def program():
        if allot.currency == Currency.PURE:
            yield from counts(SCHEMA.oneways, rho=1e-6)
        else:
            yield from total(MEAN, epsilon=1e-3)

    account, answers = answering(allot)
    with pytest.raises(Unsupported, match=str(allot.currency)):
        run(program(), SCHEMA, answers)
    assert account.spending.charges == []


def test_fits_in_different_currencies_add_up_as_epsilon_and_delta():
    small = Budget(0.5, 1e-7)
    rho = Allotment(Currency.ZCDP, 0.01, small)
    steps_ = Allotment(Currency.SAMPLED, 10, small, 2.0, 0.1)
    left = 1e-6 - 1e-7 - 2 * small.truncation_delta
    assert all_fits([rho, rho], 1e-6) == pytest.approx(epsilon_of(0.02, 1e-6 - 2 * small.truncation_delta))
    assert all_fits([rho, small.pure(), steps_, rho], 1e-6) == pytest.approx(epsilon_of(0.02, left) + 1.0)
    assert all_fits([small.pure(), small.pure()], 1e-9) == 1.0
    assert all_fits([steps_] * 10, 1e-6) == pytest.approx(5.0)
    assert all_fits([steps_] * 11, 1e-6) == float("inf")


@pytest.mark.parametrize(("rate", "number"), [(0, 5), (1.5, 5), (0.1, 0), (0.1, 2.5), (float("nan"), 5)])
def test_nonsense_is_refused(rate, number):
    with pytest.raises(UsageError, match="sampled"):
        BUDGET.sampled(rate=rate, steps=number)


def test_a_sampled_move_where_everybody_is_asked_too_is_priced_as_an_exchange():
    """Whoever moves is exchanged in the steps asked of everybody: twice the sensitivity, not twice the steps."""
    allot = BUDGET.sampled(rate=0.3, steps=20)

    def program():
        yield from steps(19, allot.noise, 0.3)
        return (yield from split({s: steps(1, allot.noise, 0.3) for s in crossing(SCHEMA, ["SEX"])}))

    account, _ = ask(allot, program())
    delta = BUDGET.delta - BUDGET.truncation_delta
    everybody = epsilon_sampled(allot.noise, 0.3, 19, delta, Neighbours.REPLACE)
    assert prices(account.spending, BUDGET, allot)["move"] > everybody


def test_claims_keep_to_their_delta_along_a_path_and_not_across_strata():
    def program(number, delta):
        for _ in range(number):
            frame = yield from raw(Claim("somebody 1.0", BUDGET.epsilon / 2, delta, counts_rows=False))
        return frame

    def each(delta):
        return (yield from split({s: program(1, delta) for s in crossing(SCHEMA, ["SEX"])}))

    ask(BUDGET.claimed(), program(2, BUDGET.delta / 2))
    ask(BUDGET.claimed(), each(BUDGET.delta))
    with pytest.raises(BudgetRefused, match="delta"):
        ask(BUDGET.claimed(), program(2, BUDGET.delta))
