"""What a move costs where steps are taken on Poisson samples: cheap only where strata of one split alone are asked."""

import pytest

from helpers.small import SCHEMA
from stratsynth.accounting.budget import PRICED, Budget, Currency, Neighbours
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.accounting.prices import Worst, prices
from stratsynth.accounting.sampled import epsilon_sampled
from stratsynth.strata import Stratum, crossing

BUDGET = Budget(1, 1e-6)
RATE, STEPS = 0.3, 6
ALLOT = BUDGET.sampled(rate=RATE, steps=STEPS)
DELTA = BUDGET.delta - BUDGET.truncation_delta
SEX, GROUP = crossing(SCHEMA, ["SEX"]), crossing(SCHEMA, ["GROUP"])


def step(*path: Stratum) -> Charge:
    details = {"noise": ALLOT.noise, "rate": RATE}
    return Charge(path, "total", 1.0, dict.fromkeys(PRICED, 1.0), details, Currency.SAMPLED)


def move(paths, worst=None):
    return prices(Spending(BUDGET.neighbours, [step(*path) for path in paths]), BUDGET, ALLOT, worst)["move"]


CHEAP = epsilon_sampled(ALLOT.noise, RATE, 2 * STEPS, DELTA)
DEAR = epsilon_sampled(ALLOT.noise, RATE, 2 * STEPS, DELTA, Neighbours.REPLACE)


@pytest.mark.parametrize(
    ("paths", "worst", "price"),
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
def test_a_move_is_cheap_only_where_no_step_sees_an_exchange(paths, worst, price):
    assert DEAR > CHEAP
    assert move(paths, worst) == price


def test_outer_strata_that_are_asked_too_see_whoever_moves_within_them_exchanged():
    """What the price of two strata's steps alone would have said is less than the outer steps come to."""
    outer = epsilon_sampled(ALLOT.noise, RATE, STEPS, DELTA, Neighbours.REPLACE)
    inner = [(s, g) for s in SEX for g in GROUP]
    assert move([*((s,) for s in SEX), *inner]) > outer
