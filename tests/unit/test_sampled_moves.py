"""Cost of a move where steps are taken on Poisson samples: cheap only where strata of one split alone are asked."""

from functools import cache

import pytest

from helpers.small import SCHEMA
from stratsynth.accounting.budget import PRICED, Budget, Currency, Neighbours
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.accounting.prices import Worst, prices
from stratsynth.accounting.sampled import epsilon_sampled
from stratsynth.strata import Stratum, crossing

BUDGET = Budget(1, 1e-6)
RATE, STEPS = 0.3, 6
DELTA = BUDGET.delta - BUDGET.truncation_delta
SEX, GROUP = crossing(SCHEMA, ["SEX"]), crossing(SCHEMA, ["GROUP"])


@cache
def allot():
    """Priced when a test asks for it, and not in every process that only collects this one."""
    return BUDGET.sampled(rate=RATE, steps=STEPS)


def step(*path: Stratum) -> Charge:
    details = {"noise": allot().noise, "rate": RATE}
    return Charge(path, "total", 1.0, dict.fromkeys(PRICED, 1.0), details, Currency.SAMPLED)


def move(paths, worst=None):
    return prices(Spending(BUDGET.neighbours, [step(*path) for path in paths]), BUDGET, allot(), worst)["move"]


CHEAP, DEAR = Neighbours.ADD_REMOVE, Neighbours.REPLACE


def price(neighbours):
    """The steps of two strata, on what the notion says."""
    return epsilon_sampled(allot().noise, RATE, 2 * STEPS, DELTA, neighbours)


@pytest.mark.parametrize(
    ("paths", "worst", "notion"),
    [
        ([(s,) for s in SEX], None, CHEAP),
        ([(s,) for s in SEX] * 3, None, CHEAP),
        ([(s,) for s in SEX], Worst(1, only_strata=True), CHEAP),
        ([(s,) for s in SEX], Worst(1, only_strata=False), DEAR),
        ([(), *((s,) for s in SEX)], None, DEAR),
        ([(s, g) for s in SEX for g in GROUP], None, DEAR),
        ([*((s,) for s in SEX), *((s, g) for s in SEX for g in GROUP)], None, DEAR),
        ([*((s,) for s in SEX), *((g,) for g in GROUP)], None, DEAR),
        ([(Stratum((("GROUP", ("a", "b")),)),), *((g,) for g in GROUP)], None, DEAR),
    ],
)
def test_a_move_is_cheap_only_where_no_step_sees_an_exchange(paths, worst, notion):
    assert price(DEAR) > price(CHEAP)
    assert move(paths, worst) == price(notion)


def test_outer_strata_that_are_asked_too_see_whoever_moves_within_them_exchanged():
    """The price of two strata's steps alone is less than the outer steps come to."""
    outer = epsilon_sampled(allot().noise, RATE, STEPS, DELTA, Neighbours.REPLACE)
    inner = [(s, g) for s in SEX for g in GROUP]
    assert move([*((s,) for s in SEX), *inner]) > outer
