import math

import numpy as np
import pytest

from stratsynth import Budget
from stratsynth.accounting.budget import Neighbours
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.errors import UsageError

NOT_A_NUMBER = [math.nan, math.inf, -math.inf, None, "1", True, [1], 1 + 0j]
BAD_EPSILON = [*NOT_A_NUMBER, 0, -0.0, -1, 1e40, 800, 10**400]
BAD_DELTA = [*NOT_A_NUMBER, -1e-9, 1, 2, 1e-320]


@pytest.mark.parametrize("value", BAD_EPSILON, ids=lambda value: repr(value)[:12])
def test_a_bad_epsilon_is_refused(value):
    with pytest.raises(UsageError, match="epsilon"):
        Budget(value, 1e-9)


@pytest.mark.parametrize("value", BAD_DELTA, ids=lambda value: repr(value)[:12])
def test_a_bad_delta_is_refused(value):
    with pytest.raises(UsageError, match="delta"):
        Budget(1, value)


def test_there_is_no_default_delta():
    with pytest.raises(TypeError):
        Budget(1)


@pytest.mark.parametrize("value", ["substitution", "", None, 1])
def test_unknown_neighbours_are_refused(value):
    with pytest.raises(UsageError, match="neighbours"):
        Budget(1, 1e-9, value)


def test_neighbours_may_be_spelt_out():
    assert Budget(1, 1e-9, "replace").neighbours is Neighbours.REPLACE


def test_numbers_of_numpy_and_whole_numbers_are_taken():
    assert Budget(np.float64(1), 1e-9).zcdp() == Budget(1, 1e-9).zcdp()


def test_part_of_delta_is_set_aside_for_the_samplers_tails():
    budget = Budget(1, 1e-9)
    assert 0 < budget.truncation_delta <= 1e-15
    assert epsilon_of(budget.zcdp().rho, budget.delta - budget.truncation_delta) <= 1


def test_a_mechanism_cannot_allot_itself_more_than_the_budget():
    from dataclasses import replace

    from stratsynth.accounting.budget import Allotment, Currency
    from stratsynth.accounting.prices import check_allotment
    from stratsynth.errors import MechanismError

    budget = Budget(1, 1e-6)
    sampled = budget.sampled(rate=0.1, steps=5)
    for sound in (budget.zcdp(), budget.pure(), budget.claimed(), sampled, replace(budget.zcdp(), amount=1e-9)):
        check_allotment(sound, budget)
    for wrong in (
        replace(budget.zcdp(), amount=budget.zcdp().amount * 1.01),
        replace(budget.pure(), amount=1.01),
        replace(budget.zcdp(), amount=float("nan")),
        replace(budget.zcdp(), promise=Budget(2, 1e-6)),
        Budget(2, 1e-6).zcdp(),
        replace(sampled, noise=sampled.noise * 0.9),
        replace(sampled, rate=0.2),
        replace(sampled, amount=6.0),
        Allotment(Currency.SAMPLED, 5.0, budget),
    ):
        with pytest.raises(MechanismError, match="within the budget"):
            check_allotment(wrong, budget)
