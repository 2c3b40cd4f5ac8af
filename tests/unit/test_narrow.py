"""Columns narrowed to some of their levels: names, order and bounds stay."""

from hypothesis import example, given
from hypothesis import strategies as st

from strategies import columns
from stratsynth.schema import Categorical, Numeric
from stratsynth.strata.strata import narrow


@given(st.data(), columns().filter(lambda column: column.size > 1))
def test_the_levels_kept_are_those_of_the_column_in_its_order(data, column):
    levels = data.draw(st.sets(st.sampled_from(column.all_levels), min_size=2))
    assert narrow(column, levels).all_levels == tuple(level for level in column.all_levels if level in levels)


@given(columns().filter(lambda column: column.size > 1))
@example(Numeric(lower=0, upper=2**53, bins=1, integer=True, spikes=(2**53,)))
def test_all_levels_are_the_column_itself(column):
    assert narrow(column, column.all_levels).all_levels == column.all_levels


AGE = Numeric(lower=0, upper=9, edges=(0, 3, 6, 10), integer=True, missing=True, not_applicable="N")


def test_bins_side_by_side_stay_numbers_with_closer_bounds():
    band = narrow(AGE, ["3-5", "6-9"])
    assert (band.lower, band.upper, band.edges, band.missing, band.not_applicable) == (3, 9, (3, 6, 10), False, None)
    assert narrow(AGE, ["0-2", "missing", "N"]).all_levels == ("0-2", "N", "missing")


def test_a_bin_of_a_real_column_keeps_its_open_end():
    real = Numeric(lower=0, upper=1, edges=(0, 0.25, 0.5, 1))
    assert narrow(real, ["[0,0.25)", "[0.25,0.5)"]).all_levels == ("[0,0.25)", "[0.25,0.5)")


def test_bins_with_a_gap_and_single_numbers_are_categories():
    assert isinstance(narrow(AGE, ["0-2", "6-9"]), Categorical)
    assert isinstance(narrow(Numeric(lower=0, upper=3, integer=True, missing=True), ["2", "missing"]), Categorical)


def test_what_outside_values_become_is_kept_where_it_is_a_level():
    column = Categorical(levels=("a", "b", "c"), outside="missing", not_applicable="c")
    assert narrow(column, ["a", "missing"]).outside == "missing"
    assert narrow(column, ["a", "b"]).outside is None
    assert narrow(column, ["a", "b"]).not_applicable is None
