"""The account of one fit refuses before anything is read, and says what was asked and what is left."""

from fractions import Fraction

import pytest

from helpers.accounts import BUDGET, Account, charge
from stratsynth.errors import BudgetRefused, Unsupported
from stratsynth.strata import Stratum


def test_the_whole_allotment_can_be_spent_to_the_last_bit():
    account = Account()
    account.charge([charge(0.75)])
    account.charge([charge(0.25)])
    with pytest.raises(BudgetRefused):
        account.charge([charge(1e-300)])


def test_a_refusal_says_asked_remaining_and_short():
    account = Account()
    account.charge([charge(0.75)])
    with pytest.raises(BudgetRefused, match=r"asked rho 0\.5, remaining 0\.25, short of 0\.25"):
        account.charge([charge(0.5)])


def test_a_refusal_charges_nothing():
    account = Account()
    with pytest.raises(BudgetRefused):
        account.charge([charge(0.5), charge(0.75)])
    assert account.spending.charges == []
    account.charge([charge(1.0)])
    assert account.spending.spent() == 1


def test_charges_are_judged_together():
    """Disjoint strata fit where the same charges in a row do not."""
    account = Account()
    account.charge([charge(1.0, Stratum.of({"SEX": level})) for level in "123"])
    assert account.spending.spent() == Fraction(1)


def test_tails_beyond_what_was_set_aside_are_refused_and_cost_nothing():
    account = Account()
    with pytest.raises(Unsupported, match="delta"):
        account.charge([charge(0.5)], distance=BUDGET.truncation_delta)
    assert account.spending.charges == []


def test_tails_add_up_over_questions():
    account = Account()
    part = BUDGET.truncation_delta / 3.8  # half of what (1 + e) times the distance may come to, and a bit less
    account.charge([charge(0.1)], distance=part / 2)
    account.charge([charge(0.1)], distance=part / 2)
    with pytest.raises(Unsupported):
        account.charge([charge(0.1)], distance=part / 2)


def test_tails_that_are_not_a_number_are_refused():
    with pytest.raises(Unsupported):
        Account().charge([charge(0.1)], distance=float("nan"))


def test_a_refused_question_does_not_use_up_its_tails():
    account = Account()
    part = BUDGET.truncation_delta / 4
    with pytest.raises(BudgetRefused):
        account.charge([charge(2.0)], distance=part)
    account.charge([charge(1.0)], distance=part)
