"""Mechanisms that choose round by round spend their budget to the last bit, and not a bit more."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.byhand import ByHand, frame_of, schema_of
from helpers.small import even
from stratsynth import Budget, Neighbours, Stratified, fit, open_table
from stratsynth.accounting.budget import PRICED, Currency
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.adapters import AIM, GEM
from stratsynth.questions import Work

LEVELS = {"a": 3, "b": 2, "c": 4, "e": 2}
SMALL = {
    "aim": lambda rounds: AIM(iterations=1, rounds=rounds),
    "gem": lambda rounds: GEM(components=8, latent=4, hidden=(8,), iterations=3, rounds=rounds),
}


@pytest.mark.parametrize("name", SMALL)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.floats(1e-5, 30),
    st.sampled_from(PRICED),
    st.sampled_from([None, 0, 30, 5000]),
    st.sampled_from([None, 1, 3, 20]),
    st.integers(0, 2**32),
)
@settings(max_examples=25)
def test_the_budget_is_spent_to_the_last_bit_and_not_a_bit_more(name, sizes, rho, neighbours, size, rounds, seed):
    schema = schema_of({f"c{i}": k for i, k in enumerate(sizes)})
    rng = np.random.default_rng(seed)
    rows = {column: rng.integers(schema.size(column), size=200) for column in schema.names}
    driver = ByHand(schema, rows, neighbours=neighbours, rng=rng)
    driver.run(SMALL[name](rounds), rho=rho, size=size)
    asked = [question for question in driver.asked if not isinstance(question, Work)]
    total = sum(Fraction(question.rho) for question in asked)
    assert Fraction(rho) - Fraction(math.ulp(asked[-1].rho)) <= total <= Fraction(rho)
    assert sum(Fraction(c.amount) for q in asked for c in q.charges(schema, (), neighbours)) <= Fraction(rho)


@pytest.mark.parametrize("neighbours", PRICED)
@pytest.mark.parametrize("by", [[], ["b", "e"]], ids=["vanilla", "stratified"])
@pytest.mark.parametrize("name", SMALL)
def test_a_release_is_charged_its_budget(name, by, neighbours):
    schema, budget, inner = schema_of(LEVELS), Budget(1, 1e-9, neighbours), SMALL[name](None)
    rng = np.random.default_rng(0)
    rows = frame_of({column: rng.integers(levels, size=2000) for column, levels in LEVELS.items()})
    table = open_table(rows, schema=schema, declared_size=2000)
    record = fit(Stratified(inner, by, even(schema, *by)) if by else inner, table, budget).certificate
    charges = [Charge.from_dict(charge, Currency.ZCDP) for charge in record["charges"]]
    reserved, spent = Fraction(record["guarantee"]["rho"]), Spending(neighbours, charges).spent()
    assert reserved == Fraction(budget.zcdp().rho)
    assert spent <= reserved
    if not by or neighbours == Neighbours.ADD_REMOVE:
        assert spent >= reserved * (1 - Fraction(1, 10**12))
