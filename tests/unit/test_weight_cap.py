"""Largest weight of a row from a public file: the least that cuts at most 1 % of its people."""

import tomllib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import small
from helpers.command import stratsynth
from stratsynth import fit, open_table
from stratsynth.errors import SchemaError, UsageError, WeightsError
from stratsynth.schema.weight import MOST, RowWeight
from stratsynth.weights.cap import LOST, least_cap, weight_cap


@given(st.lists(st.floats(0, 900), min_size=1, max_size=30).filter(lambda some: sum(some) > 0))
def test_it_is_the_least_that_loses_no_more(some):
    weights = np.array(some)
    cut = [(weights - cap).clip(min=0).sum() / weights.sum() for cap in range(1, MOST + 1)]
    assert least_cap(weights) == 1 + next(i for i, lost in enumerate(cut) if lost <= LOST)


def test_weights_beyond_what_a_schema_may_declare_are_cut_there():
    found = weight_cap(pd.DataFrame({"W": [5_000.0, 5_000.0]}), "W")
    assert (found.chosen, found.largest, found.people, found.records) == (MOST, 5_000, 10_000, 2)
    assert found.lost == pytest.approx(1 - MOST / 5_000)
    assert found.up_to(MOST) == MOST


def test_the_command_prints_a_line_for_the_schema(tmp_path):
    rows = pd.DataFrame({"W": [10, 20, 30, 400] * 50 + [900]})
    rows.to_csv(tmp_path / "last_year.csv", index=False)
    done = stratsynth("weights", "cap", "last_year.csv", "--weight", "W", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said, line = done.stdout.strip().rsplit("\n", 1)
    weight = tomllib.loads(line)["weight"]
    assert RowWeight(weight["max"], weight["column"], mean=weight["mean"]).column == "W"
    assert 400 <= weight["max"] < 900
    assert "people of last_year.csv are beyond it, and its largest weight is 900" in " ".join(said.split())


@pytest.mark.parametrize("values", [[1, None], [1, -1], [0, 0], ["many", "few"]])
def test_files_whose_weights_are_none_are_refused(values):
    with pytest.raises((WeightsError, SchemaError), match="W"):
        weight_cap(pd.DataFrame({"W": values}), "W")


def test_a_file_with_an_account_and_a_missing_column_are_refused(tmp_path):
    path = tmp_path / "people.csv"
    small.people().assign(W=3).to_csv(path, index=False)
    with pytest.raises(SchemaError, match="column V"):
        weight_cap(path, "V")
    assert weight_cap(path, "W").chosen == 3
    table = open_table(path, schema=small.SCHEMA, declared_size=100, ledger=tmp_path / "people.ledger")
    fit("independent", table, small.BUDGET)
    with pytest.raises(UsageError, match="has an account"):
        weight_cap(path, "W")
