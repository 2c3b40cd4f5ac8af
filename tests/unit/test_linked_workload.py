"""Conditions, tables and order of drawing of linked fits follow from the declared schema, size and budget alone."""

import numpy as np
import pytest

from stratsynth.adapters import Linked
from stratsynth.adapters.linked.amounts import Amounts
from stratsynth.adapters.linked.mechanism import CHAIN, MODEL_CELLS
from stratsynth.adapters.linked.model import roles_of
from stratsynth.adapters.linked.workload import COUNTS, SMALL, own_columns, usual_workload
from stratsynth.census import acs, linked_schema
from stratsynth.mechanisms import Public

SCHEMA = acs.linked_schema(year=2024)


def step(slot, linked=None, **settings):
    linked = SCHEMA if linked is None else linked
    return Linked(**settings).step(Public(linked.counted, 5_000), slot, 0.01, 5_000)


def given(slot):
    return {name.removeprefix(f"{slot}.") for name in Linked().evidence(SCHEMA, slot)}


def test_a_row_is_not_given_what_other_columns_say():
    second, others = given("second"), given("others")
    assert {"NP", "N18", "SHR", "HHT", "R_AGEP", "R_MAR"} <= second
    assert not {"HINCP", "TYPEHUGQ", "BLD"} & second  # the parts of the sum; one level; many
    assert {"ST", "REM", "PREV", "HHT", "R_AGEP", "R_RAC1P"} <= others
    assert not {"NP", "N18", "SHR", "HINCP"} & others  # the state stands for them
    assert not {"R_MAR", "R_ESR", "R_PINCP"} & others  # which rules tie to the age


@pytest.mark.parametrize("linked", [SCHEMA, linked_schema()], ids=["survey", "simulated"])
@pytest.mark.parametrize("slot", ["parent", "second", "others", "rest"])
def test_tables_to_choose_from_have_a_column_of_the_row_and_few_cells(linked, slot):
    fitted, facts = step(slot, linked)
    own = own_columns(linked, slot)
    assert fitted.workload == usual_workload(linked, slot, facts.schema)
    assert len(set(fitted.workload)) == len(fitted.workload)
    for clique in fitted.workload:
        assert len(clique) == 2 or facts.schema.cells(clique) <= SMALL
        assert set(clique) <= set(facts.schema.names)
        assert slot == "parent" or not own.isdisjoint(clique)
    assert fitted.price(facts, _budget()).rho > 0  # AIM takes them


def test_triples_hold_the_second_row_to_the_first():
    triples = {frozenset(c) for c in step("second")[0].workload if len(c) == 3}
    assert {"second.HHT", "second.R_SEX", "second.SEX"} in triples
    assert {"second.NP", "second.N18", "second.ALL"} in triples
    assert not [c for c in step("others")[0].workload if len(c) > 2]


def test_counts_matter_more_in_the_step_of_parents_alone():
    assert step("parent")[0].weights == {"parent.NP": COUNTS, "parent.N18": COUNTS}
    assert step("second")[0].weights == {}


def test_settings_of_the_base_are_kept():
    assert Linked().inner.model_cells == MODEL_CELLS
    assert Linked(base={"name": "aim", "model_cells": 2**14}).inner.model_cells == 2**14
    listed = [["parent.NP", "parent.HHT"]]
    assert step("parent", base={"name": "aim", "workload": listed})[0].workload == listed


@pytest.mark.parametrize("rho", [0.015, 0.2])
def test_the_order_of_drawing_is_by_declared_size_and_budget(rho):
    border = CHAIN / rho**0.5
    for size, steps in ((border * 1.01, {"parent", "second", "others"}), (border * 0.99, {"parent", "rest"})):
        assert set(Linked().parts(Public(SCHEMA.counted, round(size)), rho)) == steps


def test_sums_are_spread_in_a_band_as_single_numbers_are():
    roles = roles_of(SCHEMA)
    column, total, n = roles.number("PINCP"), roles.parent.column("HINCP"), 200
    parent = {  # the first row has 22,000 and all of them 75,001 to 100,000: others have 60,001 to 78,000
        "SHR": np.full(n, 1 + roles.summed.ends.index(60_001.0)),
        "HINCP": np.full(n, total.breaks.index(75_001)),
        "R_PINCP": np.full(n, column.breaks.index(20_001)),
    }
    own, rest = np.full(n, 22_000.0), np.ones(n, dtype=int)

    def left(usual):
        first, others = Amounts(roles).shared(parent, own, rest, np.random.default_rng(0), usual)
        assert (first == own).all()
        assert others.min() >= 60_001
        assert others.max() <= 78_000
        return others

    usual = np.zeros(column.size)
    assert left(None).min() < 75_001
    assert left(usual).min() < 75_001  # no bin in reach has a share
    usual[column.breaks.index(75_001)] = 1.0
    assert left(usual).min() >= 75_001
    usual[column.breaks.index(60_001)] = 1.0
    assert 0.05 < (left(usual) >= 75_001).mean() < 0.3  # 3 of the 25 thousands of one bin, all of the other


def _budget():
    from stratsynth import Budget

    return Budget(epsilon=1, delta=1e-9)
