"""Cost of many fits together, before the first of them is made."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stratsynth as ss
from helpers.fits import requested
from helpers.ledgers import BUDGET, interrupted, ladder, table
from stratsynth.accounting.history import coming, read_ledger
from stratsynth.accounting.standing import afford_all
from stratsynth.accounting.totals import afford
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.adapters import Independent
from stratsynth.errors import BudgetRefused, StratsynthError, UsageError


def requests(data, number, cap=2, budget=BUDGET):
    return [requested(Independent(), table(data, cap=cap), budget, seed=seed) for seed in range(number)]


def test_foreseeing_reserves_nothing_reads_nothing_and_says_what_fits_then_cost(data):
    outlook = coming(table(data, cap=2).ledger, requests(data, 3))
    assert not data.with_name("people.ledger").exists()
    assert (outlook.fits, outlook.cap_epsilon, outlook.left_epsilon) == (3, 2, 2)
    for seed in range(3):
        ss.fit(Independent(), table(data, cap=2), BUDGET, seed=seed)
    assert read_ledger(data.with_name("people.ledger"))["spent_epsilon"] == pytest.approx(outlook.after_epsilon)
    assert outlook.asked_epsilon == outlook.after_epsilon


def test_what_was_spent_before_counts(data):
    ss.fit(Independent(), table(data, cap=1.5), BUDGET)
    outlook = coming(table(data, cap=1.5).ledger, requests(data, 1, 1.5))
    assert outlook.spent_epsilon == pytest.approx(1)
    assert outlook.left_epsilon == pytest.approx(0.5)
    assert outlook.after_epsilon == pytest.approx(1.437142, abs=1e-6)  # goldens.json
    with pytest.raises(BudgetRefused, match=r"2 fits ask epsilon 1\.437.* remaining 0\.5 of 1\.5.* 0\.278393 too much"):
        coming(table(data, cap=1.5).ledger, requests(data, 2, 1.5))


def test_a_fit_that_was_interrupted_costs_nothing_more_and_one_that_is_done_costs_again(data):
    interrupted(data)
    mine = table(data).ledger
    assert coming(mine, [requested(ladder(), table(data), BUDGET)]).fits == 0
    ss.fit(ladder(), table(data), BUDGET)
    assert coming(mine, [requested(ladder(), table(data), BUDGET)]).fits == 1


def test_other_neighbours_and_another_cap_are_refused_as_a_fit_would(data):
    ss.fit(Independent(), table(data, cap=2), BUDGET)
    with pytest.raises(UsageError, match="set once"):
        coming(table(data, cap=3).ledger, requests(data, 1, 3))
    with pytest.raises(UsageError, match="cannot be added"):
        coming(table(data, cap=2).ledger, requests(data, 1, 2, ss.Budget(1, 1e-9, "replace")))


def test_a_damaged_ledger_foresees_nothing(data):
    ss.fit(Independent(), table(data, cap=2), BUDGET)
    path = data.with_name("people.ledger")
    path.write_bytes(path.read_bytes().replace(b'"epsilon":1', b'"epsilon":0', 1))
    with pytest.raises(StratsynthError, match="damaged"):
        coming(table(data, cap=2).ledger, requests(data, 1))


def test_what_a_fit_refuses_is_refused_when_it_is_requested(data):
    with pytest.raises(UsageError, match="seed"):
        requested(Independent(), table(data), BUDGET, seed=-1)
    with pytest.raises(UsageError, match="delta"):
        requested(Independent(), table(data), ss.Budget(1, 0.1))


EPSILONS = st.lists(st.floats(0.01, 3), max_size=5)


@settings(max_examples=40)
@given(EPSILONS, EPSILONS, st.floats(0.1, 6), st.booleans())
def test_all_are_afforded_together_exactly_when_they_are_one_by_one(made, new, cap, pure):
    """Costs only grow, so the last is refused if any is; pure epsilon adds up otherwise than rho."""

    def allots(epsilons):
        budgets = [ss.Budget(epsilon, 1e-9) for epsilon in epsilons]
        return [b.pure() if pure and i % 2 else b.zcdp() for i, b in enumerate(budgets)]

    reserved, asked = allots(made), allots(new)
    try:
        for i, one in enumerate(asked):
            afford(cap, [*reserved, *asked[:i]], one, 1e-9)
    except BudgetRefused:
        with pytest.raises(BudgetRefused):
            afford_all(cap, reserved, asked, 1e-9)
    else:
        outlook = afford_all(cap, reserved, asked, 1e-9)
        assert outlook.after_epsilon <= max(cap, outlook.spent_epsilon) * (1 + 1e-9)
        assert outlook.fits == len(asked)
        if not pure and asked:
            rho = sum(a.rho for a in (*reserved, *asked))
            assert outlook.after_epsilon == pytest.approx(epsilon_of(rho, 1e-9), rel=1e-4)


def test_a_delta_that_does_not_suffice_is_said(data):
    some = [ss.Budget(0.1, 1e-9).zcdp(), ss.Budget(0.1, 1e-9).claimed()]
    with pytest.raises(BudgetRefused, match="delta is used up"):
        afford_all(5.0, [], [*some, *some], 1e-9)
    without = afford_all(None, [], [*some, *some], 1e-9)
    assert without.after_epsilon < 1
    assert without.left_epsilon is None
    assert without.to_dict()["left_epsilon"] is None
