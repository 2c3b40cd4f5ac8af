"""cost(node) = own charges + for each split below it the maximum over its strata, in exact arithmetic."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.accounts import charge, priced, spent
from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.strata import Stratum, disjoint

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
M, F = Stratum.of({"SEX": "1"}), Stratum.of({"SEX": "2"})
A, B = Stratum.of({"GROUP": "a"}), Stratum.of({"GROUP": "b"})


def test_nothing_costs_nothing():
    assert spent() == 0


def test_charges_of_everybody_add_up():
    assert spent(charge(1), charge(2)) == 3


def test_a_split_costs_its_dearest_stratum():
    assert spent(charge(1, M), charge(5, F), charge(3, M)) == 5


def test_a_split_adds_to_what_is_above_it():
    assert spent(charge(1), charge(2, M), charge(3, F)) == 4


def test_nested_splits_cost_the_dearest_path():
    assert spent(charge(1), charge(2, M), charge(10, M, A), charge(11, M, B), charge(9, F), charge(3, F, A)) == 14


def test_the_dearest_path_need_not_pass_the_dearest_stratum_at_the_top():
    assert spent(charge(3, M), charge(1, F), charge(5, F, A)) == 6


def test_splits_by_different_columns_add_up():
    """A record is in a stratum of each."""
    assert spent(charge(2, M), charge(3, A)) == 5


def test_one_split_by_more_columns_is_another_split():
    assert spent(charge(2, M), charge(3, Stratum.of({"SEX": "2", "GROUP": "a"}))) == 5


def test_the_order_of_columns_does_not_make_another_split():
    one, other = Stratum.of({"SEX": "1", "GROUP": "a"}), Stratum.of({"GROUP": "b", "SEX": "1"})
    assert spent(charge(2, one), charge(3, other)) == 3


def test_the_same_stratum_asked_in_two_splits_pays_twice():
    one, again = Stratum.of({"SEX": "1", "GROUP": "a"}), Stratum.of({"GROUP": "a", "SEX": "1"})
    assert spent(charge(2, one), charge(3, again)) == 5


def test_a_group_and_a_merge_that_holds_it_are_two_splits():
    """Of the same columns, but a record may be in both."""
    both, other = Stratum.of({"GROUP": ("a", "b")}), Stratum.of({"GROUP": ("c", "d")})
    assert spent(charge(2, A), charge(3, both)) == 5
    assert spent(charge(2, A), charge(3, B), charge(4, both)) == 7
    assert spent(charge(2, A), charge(3, B), charge(1, A), charge(4, both)) == 7
    assert spent(charge(3, both), charge(4, other)) == 4
    assert spent(charge(3, both), charge(4, other), charge(2, A), charge(3, both)) == 8
    assert spent(charge(1, both), charge(2, both, A), charge(3, both, B)) == 4


LEVELS = st.sets(st.sampled_from("abcd"), min_size=1).map(lambda levels: Stratum.of({"GROUP": sorted(levels)}))


@given(st.lists(st.tuples(LEVELS, st.integers(1, 9)), max_size=8))
def test_no_record_pays_more_than_is_said(asked):
    """Whatever strata are asked, overlapping or not: the dearest record is covered, and disjoint ones exactly."""
    dearest = max((sum(r for s, r in asked if level in s.levels["GROUP"]) for level in "abcd"), default=0)
    said = spent(*(charge(r, s) for s, r in asked))
    assert said >= dearest
    strata = {s for s, _ in asked}
    if disjoint(strata):
        assert said == dearest


@given(st.lists(st.tuples(LEVELS, st.integers(1, 9)), max_size=8))
def test_withdrawing_from_overlapping_strata_leaves_no_cost(asked):
    spending = Spending(ADD, [charge(1)])
    spending.add([charge(r, s) for s, r in asked])
    spending.withdraw(1)
    assert spending.spent() == 1
    assert vars(spending._root) == vars(Spending(ADD, [charge(1)])._root), "not even an empty split"


def test_sums_are_exact():
    total = spent(*[charge(0.1)] * 10, charge(1e-30))
    assert total == 10 * Fraction(0.1) + Fraction(1e-30)
    assert isinstance(total, Fraction)


def test_under_replacement_one_record_may_leave_a_stratum_and_enter_another():
    sensitivity = {ADD: 1.0, REPLACE: 2.0}
    charges = [Charge((s,), "counts", r, sensitivity) for s, r in [(M, 4.0), (F, 2.0)]]
    assert spent(*charges, neighbours=REPLACE) == 4  # staying costs 4, moving 4/4 + 2/4
    thin = [Charge((s,), "counts", r, {ADD: 1.0, REPLACE: 1.0}) for s, r in [(M, 4.0), (F, 3.0)]]
    assert spent(*thin, neighbours=REPLACE) == 7  # moving costs both


@pytest.mark.parametrize("neighbours", PRICED)
def test_withdrawn_charges_leave_no_trace(neighbours):
    spending = Spending(neighbours, [charge(1), charge(2, M)])
    before = spending.spent()
    spending.add([charge(0.1, F), charge(7, M, A)])
    spending.withdraw(2)
    assert spending.spent() == before
    assert spending.charges == [charge(1), charge(2, M)]


def test_withdrawing_nothing_keeps_everything():
    spending = Spending(ADD, [charge(1)])
    spending.withdraw(1)
    assert spending.charges == [charge(1)]


def epsilons(**rhos):
    return {step.replace("_", "-"): pytest.approx(epsilon_of(rho, 1e-9), rel=1e-6) for step, rho in rhos.items()}


def test_a_move_costs_the_two_dearest_strata():
    strata = charge(0.3, M), charge(0.2, F)
    assert priced(*strata, reserved=0.3) == epsilons(add_remove=0.3, move=0.5, replace_within_group=0.6, replace=0.6)


def test_an_exchange_within_a_stratum_touches_no_other():
    """Leaving and entering cost 0.3 + 0.25; staying costs thrice the price of one stratum, but is no move."""
    strata = charge(0.3, M, replace=1.5), charge(0.25, F, replace=1.5)
    expected = epsilons(add_remove=0.3, move=0.55, replace_within_group=0.45, replace=0.55)
    assert priced(*strata, reserved=0.3) == expected


def test_charges_of_everybody_see_a_move_as_an_exchange():
    assert priced(charge(0.3, replace=4), reserved=0.3) == epsilons(
        add_remove=0.3, move=1.2, replace_within_group=1.2, replace=1.2
    )


def test_a_stratum_sees_a_move_inside_it_as_an_exchange():
    """The record stays in SEX 1, which pays for an exchange, and leaves one GROUP there for the other."""
    charges = charge(1, M), charge(0.5, M, A), charge(0.5, M, B)
    assert priced(*charges, reserved=1.5) == epsilons(add_remove=1.5, move=3, replace_within_group=3, replace=3)


def test_a_split_by_other_columns_sees_a_move_as_an_exchange():
    """A record that changes its GROUP stays in SEX 1, whose tables may count GROUP."""
    charges = charge(1, M), charge(0.1, F), charge(0.2, A), charge(0.2, B)
    prices = priced(*charges, reserved=1.2)
    assert prices["move"] >= epsilon_of(2 * 1 + 0.2 + 0.2, 1e-9) * (1 - 1e-8)
    assert prices["move"] <= prices["replace"]


def test_what_was_reserved_and_not_spent_is_priced_as_the_dearest_question():
    assert priced(charge(0.1), reserved=0.3) == epsilons(
        add_remove=0.3, move=1.0, replace_within_group=1.0, replace=1.0
    )


def test_prices_under_replacement():
    strata = charge(0.3, M), charge(0.3, F)
    prices = priced(*strata, reserved=0.3, neighbours=REPLACE)
    assert prices == epsilons(add_remove=0.15, move=0.3, replace_within_group=0.3, replace=0.3)


def test_a_charge_is_written_as_the_certificate_has_it():
    merged = charge(1, Stratum.of({"SEX": "1", "GROUP": ("a", "b")}, ("1", "both")))
    assert merged.to_dict()["path"] == [{"SEX": "1", "GROUP": "a|b"}]
    assert Charge.from_dict(merged.to_dict(), merged.currency) == merged
    record = Charge((M, A), "counts", 0.5, {ADD: 1.0, REPLACE: 2.0}, {"sigma": 3.0, "cliques": 1}).to_dict()
    assert record == {
        "path": [{"SEX": "1"}, {"GROUP": "a"}],
        "kind": "counts",
        "rho": 0.5,
        "sigma": 3.0,
        "cliques": 1,
        "sensitivity": {"add-remove": 1.0, "replace": 2.0},
    }
