"""Prices and noise of the questions, and the malformed ones, which are refused before anything is charged."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.small import SCHEMA
from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.errors import MechanismError, SchemaError, Unsupported
from stratsynth.questions import Counts, Split, counts
from stratsynth.questions.counts import MAX_CELLS, TABLE_SENSITIVITY
from stratsynth.schema import Categorical, Schema
from stratsynth.strata import Stratum

SEX, GROUP = ("SEX",), ("GROUP",)
rhos = st.floats(1e-9, 1e3)
weightings = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8)


@given(rhos, weightings)
def test_shares_add_up_to_rho_and_never_above(rho, weights):
    asked = Counts((SEX,) * len(weights), rho, tuple(weights))
    total = sum(map(Fraction, asked.shares))
    assert total <= Fraction(rho)
    assert total >= Fraction(rho) * Fraction(1 - 1e-12)


@given(rhos, st.integers(1, 300), st.sampled_from(PRICED))
def test_charges_never_pass_the_rho_asked_for(rho, cliques, neighbours):
    charged = Counts((SEX,) * cliques, rho).charges(SCHEMA, (), neighbours)
    assert sum(Fraction(c.amount) for c in charged) <= Fraction(rho)


def test_shares_are_in_proportion_to_weights():
    assert Counts((SEX, GROUP), 4.0, (1.0, 3.0)).shares == pytest.approx([1, 3], rel=1e-12)
    assert Counts((SEX, GROUP), 4.0).shares == pytest.approx([2, 2], rel=1e-12)


@given(rhos, weightings, st.sampled_from(PRICED))
def test_noise_is_rounded_up_so_that_each_share_pays_for_it(rho, weights, neighbours):
    """rho >= D^2 / (2 sigma^2), in exact arithmetic, where D^2 is 1 or 2."""
    asked = Counts((SEX,) * len(weights), rho, tuple(weights))
    squared = {Neighbours.ADD_REMOVE: 1, Neighbours.REPLACE: 2}[neighbours]
    for share, sigma in zip(asked.shares, asked.sigmas(SCHEMA, neighbours), strict=True):
        assert Fraction(share) >= squared / (2 * Fraction(sigma) ** 2)
        assert sigma == pytest.approx(math.sqrt(squared / (2 * share)), rel=1e-12)


@given(rhos, weightings, st.sampled_from(PRICED))
def test_charges_can_be_recomputed_from_what_they_state(rho, weights, neighbours):
    charged = Counts((SEX,) * len(weights), rho, tuple(weights)).charges(SCHEMA, (), neighbours)
    assert sum(c.details["cliques"] for c in charged) == len(weights)
    for c in charged:
        squared = Fraction(c.sensitivity[neighbours]) ** 2
        assert Fraction(c.amount) >= squared / (2 * Fraction(c.details["sigma"]) ** 2) * (1 - Fraction(1, 10**14))
        assert c.sensitivity[Neighbours.REPLACE] >= c.sensitivity[Neighbours.ADD_REMOVE] * math.sqrt(2) * (1 - 1e-15)


def test_tables_of_equal_noise_are_one_charge():
    path = (Stratum.of({"WORK": "yes"}),)
    (charge,) = Counts((SEX, GROUP), 1.0).charges(SCHEMA, path, Neighbours.ADD_REMOVE)
    assert charge.path == path
    assert charge.details["cliques"] == 2
    assert charge.sensitivity[Neighbours.ADD_REMOVE] == pytest.approx(math.sqrt(2))
    assert len(Counts((SEX, GROUP), 1.0, (1.0, 2.0)).charges(SCHEMA, path, Neighbours.ADD_REMOVE)) == 2


def test_one_record_moves_one_cell_and_an_exchange_two():
    assert {Neighbours.ADD_REMOVE: 1.0, Neighbours.REPLACE: math.sqrt(2)} == TABLE_SENSITIVITY


BAD_COUNTS = {
    "no clique": ((), 1.0, None),
    "an empty clique": (((),), 1.0, None),
    "a clique that is a text": (("SEX",), 1.0, None),
    "a clique that is a list": ((["SEX"],), 1.0, None),
    "a column twice": ((("SEX", "SEX"),), 1.0, None),
    "an unknown column": ((("NOBODY",),), 1.0, None),
    "rho 0": ((SEX,), 0.0, None),
    "rho below 0": ((SEX,), -1.0, None),
    "rho nan": ((SEX,), math.nan, None),
    "rho infinite": ((SEX,), math.inf, None),
    "rho a text": ((SEX,), "1", None),
    "rho true": ((SEX,), True, None),
    "rho so small that noise overflows": ((SEX, GROUP), 5e-324, None),
    "a weight too few": ((SEX, GROUP), 1.0, (1.0,)),
    "no weight at all": ((SEX,), 1.0, ()),
    "a weight of 0": ((SEX, GROUP), 1.0, (1.0, 0.0)),
    "a weight below 0": ((SEX, GROUP), 1.0, (2.0, -1.0)),
    "a weight nan": ((SEX, GROUP), 1.0, (1.0, math.nan)),
    "weights that overflow": ((SEX, GROUP), 1.0, (1e308, 1e308)),
    "weights too far apart": ((SEX, GROUP), 1.0, (1e-320, 1e300)),
}


@pytest.mark.parametrize("case", BAD_COUNTS)
def test_malformed_counts_are_refused(case):
    with pytest.raises(MechanismError):
        Counts(*BAD_COUNTS[case]).check(SCHEMA)


def test_a_column_that_the_stratum_holds_constant_is_refused():
    with pytest.raises(MechanismError, match="SEX"):
        Counts((SEX,), 1.0).check(SCHEMA.without(["SEX"]))


def test_too_many_cells_are_refused_from_the_schema_alone():
    wide = Schema({name: Categorical(levels=tuple(map(str, range(1000)))) for name in "abc"})
    assert wide.cells("abc") > MAX_CELLS
    with pytest.raises(Unsupported, match="cells"):
        Counts((("a", "b", "c"),), 1.0).check(wide)
    with pytest.raises(Unsupported, match="cells"):  # all cliques together
        Counts((("a", "b"),) * 135, 1.0).check(wide)


def nothing():
    yield from ()


BAD_SPLITS = {
    "no stratum": [],
    "strata of different columns": [{"SEX": "1"}, {"GROUP": "a"}],
    "columns in another order": [{"SEX": "1", "GROUP": "a"}, {"GROUP": "b", "SEX": "1"}],
    "an unknown column": [{"NOBODY": "1"}],
    "a stratum of nothing": [{}],
    "a group and a merge that holds it": [{"GROUP": "a"}, {"GROUP": ("a", "b")}],
    "merges that share a level": [{"WORK": ("N", "yes")}, {"WORK": ("yes", "no")}],
    "boxes that share a cell": [{"SEX": ("1", "2"), "GROUP": "a"}, {"SEX": "1", "GROUP": ("a", "b")}],
    "levels out of order": [{"WORK": ("no", "yes")}],
    "a level twice": [{"WORK": ("yes", "yes")}],
    "no level": [{"WORK": ()}],
}


@pytest.mark.parametrize("case", BAD_SPLITS)
def test_malformed_splits_are_refused(case):
    with pytest.raises(MechanismError):
        Split({Stratum.of(levels): nothing() for levels in BAD_SPLITS[case]}).check(SCHEMA)


def test_an_unknown_level_is_refused():
    with pytest.raises((MechanismError, SchemaError), match="9"):
        Split({Stratum.of({"SEX": "9"}): nothing()}).check(SCHEMA)


def test_a_split_of_disjoint_merges_is_sound():
    boxes = [{"SEX": ("1", "2"), "GROUP": "a"}, {"SEX": "1", "GROUP": "b"}, {"SEX": "2", "GROUP": "b"}]
    Split({Stratum.of(levels): nothing() for levels in boxes}).check(SCHEMA)


def test_a_level_that_holds_what_joins_levels_is_refused():
    schema = Schema({"A": Categorical(levels=("x|y", "x", "y"))})
    with pytest.raises(MechanismError, match=r"\|"):
        Split({Stratum.of({"A": "x|y"}): nothing()}).check(schema)


def test_splits_cost_nothing_themselves():
    assert Split({Stratum.of({"SEX": "1"}): nothing()}).charges(SCHEMA, (), Neighbours.ADD_REMOVE) == ()


def test_counts_takes_numbers_of_numpy_and_lists():
    asked = counts([SEX, GROUP], rho=np.float32(1), weights=np.array([1, 2])).send(None)
    assert asked == Counts((SEX, GROUP), 1.0, (1.0, 2.0))
    asked.check(SCHEMA)
