"""INTERNAL: rows that a private and a public table have in common, counted as a fit reads them."""

import pandas as pd
import pytest

from helpers.priors import SCHEMA, people
from stratsynth.data.shared_rows import overlap
from stratsynth.errors import SchemaError
from stratsynth.schema import Categorical, Numeric, Schema

WIDE = Schema({**SCHEMA.columns, "AGE": Numeric(lower=0, upper=100, bins=100), "K": Categorical(levels=("x", "y"))})


def wide(rows, seed):
    frame = people(rows, seed)
    return frame.assign(AGE=[(7 * i + seed) % 100 for i in range(rows)], K=["x", "y"] * (rows // 2))


def test_rows_are_counted_as_often_as_both_have_them():
    one, other = pd.DataFrame({"K": ["x", "x", "y", "z"]}), pd.DataFrame({"K": ["y", "y", "x", None]})
    found = overlap(one, other, WIDE.restrict(["K"]))
    assert (found.private, found.public, found.shared, found.rare, found.rare_shared) == (3, 3, 2, 1, 0)
    assert not found.suspicious


@pytest.mark.parametrize("how", ["one fewer", "half", "one more", "renumbered"])
def test_a_table_that_is_nearly_the_private_one_is_seen(how, tmp_path):
    mine = wide(200, 1)
    other = {
        "one fewer": mine[1:],
        "half": mine[::2],
        "one more": pd.concat([mine, wide(2, 3)]),
        "renumbered": mine.assign(AGE=mine.AGE.astype(float)),
    }[how]
    mine.to_csv(tmp_path / "people.csv", index=False)
    other.to_parquet(tmp_path / "other.parquet", index=False)
    found = overlap(tmp_path / "people.csv", tmp_path / "other.parquet", WIDE)
    assert found.shared >= len(other) - 2
    assert found.suspicious
    assert "are these the same people" in str(found)


def test_other_people_are_not_suspected():
    found = overlap(wide(200, 1), wide(200, 2), WIDE)
    assert found.rare > 100
    assert not found.suspicious
    assert "same people" not in str(found)
    assert str(found).startswith("INTERNAL: of 200 rows")


def test_tables_without_a_common_column_cannot_be_compared():
    with pytest.raises(SchemaError, match="no column of the schema in common"):
        overlap(wide(10, 1)[["K"]], wide(10, 1)[["AGE"]], WIDE)
