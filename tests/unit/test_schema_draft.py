"""Drafts and checks: what they guess and count, and the stamps they carry."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pytest

from stratsynth.data.draft import check, draft, refuse_release_folder
from stratsynth.data.sources import open_source
from stratsynth.errors import SchemaError, UsageError
from stratsynth.schema import Categorical, Numeric, Schema


def _draft(table: object) -> Schema:
    return Schema.from_toml_text(draft(open_source(table)))


def test_a_draft_is_stamped_and_cannot_be_used_unreviewed():
    text = draft(open_source(pa.table({"A": ["x"]})))
    assert text.startswith("# INTERNAL:")
    assert "reviewed_by" in text.split("format")[0]
    assert text.count("# REVIEW") == 1
    schema = Schema.from_toml_text(text)
    assert schema.origin == "private data"
    with pytest.raises(SchemaError, match="review"):
        schema.ready()


def test_what_a_draft_guesses():
    n = 200
    schema = _draft(
        pa.table(
            {
                "few": [str(i % 3) for i in range(n)],
                "int": [i % 10 for i in range(n)],
                "age": [13 + i % 80 for i in range(n)],
                "money": ["N" if i % 9 == 0 else f"{i * 371}.0" for i in range(n)],
                "real": [None, *(i / 1000 for i in range(1, n))],
                "whole": [None, *(float(i % 4) for i in range(1, n))],
                "code": [f"{i:05d}" for i in range(n)],
                "flag": [True, False] * (n // 2),
                "cat": pa.array(["b", "a"] * (n // 2)).dictionary_encode(),
                "a b": ["x"] * n,
            }
        )
    )
    columns = schema.columns
    assert columns["few"] == Categorical(levels=("0", "1", "2"))
    assert columns["int"] == Categorical(levels=tuple("0123456789"), dtype="int64")
    assert columns["age"] == Numeric(lower=10, upper=95, integer=True)
    assert columns["money"].not_applicable == "N"
    assert columns["money"].integer
    assert columns["real"] == Numeric(lower=0, upper=0.2, missing=True)
    assert columns["whole"] == Categorical(levels=("0", "1", "2", "3"), dtype="float64", outside="missing")
    assert columns["code"].size == n
    assert columns["flag"] == Categorical(levels=("false", "true"), dtype="bool")
    assert columns["cat"] == Categorical(levels=("a", "b"), dtype="category")
    assert schema.names[-1] == "a b"


@pytest.mark.parametrize("values", [[0.5], [-1e308, 1e308], [1e-300], [2**53, *range(40)], [1e300, 1.0000001e300]])
def test_bounds_are_rounded_outward(values):
    column = _draft(pa.table({"x": [float(v) for v in values]})).columns["x"]
    if isinstance(column, Numeric):
        assert column.lower <= min(values)
        assert column.upper >= max(values)
    else:
        assert column.size == len(values)


def test_what_cannot_be_drafted_is_named_in_a_comment():
    table = pa.table(
        {"id": [f"p{i}" for i in range(1001)], "A": ["x"] * 1001, "none": pa.nulls(1001), "l": [[1]] * 1001}
    )
    text = draft(open_source(table))
    for name in ("id", "none", "l"):
        assert f"# REVIEW: column '{name}' is left out" in text
    assert "p17" not in text
    assert Schema.from_toml_text(text).names == ("A",)
    with pytest.raises(SchemaError, match="no column"):
        draft(open_source(table.select(["id"])))


def test_a_draft_admits_every_row_it_was_made_from():
    frame = pd.DataFrame({"A": ["x", None, "y"], "B": [1.5, 2.5, None], "C": pd.array([1, None, 3], "Int64")})
    found = check(_draft(frame), open_source(frame))
    assert (found.rows, found.left_out) == (3, 0)
    assert all(column.outside == column.clipped == 0 for column in found.columns.values())


def test_a_check_counts_what_does_not_fit():
    schema = Schema(
        {
            "A": Categorical(levels=("x", "y", "z")),
            "B": Numeric(lower=0, upper=10, bins=2, missing=True, not_applicable="N"),
            "C": Numeric(lower=0, upper=10, bins=2, outside="missing"),
        }
    )
    table = pa.table({"A": ["x", "q", None, "x"], "B": ["11", "-1", "N", "word"], "C": ["11", "5", None, "word"]})
    found = check(schema, open_source(table)).to_dict()
    assert json.loads(json.dumps(found)) == {
        "INTERNAL": True,
        "rows": 4,
        "left_out": 2,
        "columns": {
            "A": {"outside": 1, "clipped": 0, "missing": 1, "unseen": ["y", "z"]},
            "B": {"outside": 1, "clipped": 2, "missing": 0, "unseen": []},
            "C": {"outside": 2, "clipped": 0, "missing": 1, "unseen": ["[0,5)"]},
        },
    }


def test_internal_output_stays_out_of_releases(tmp_path):
    release = tmp_path / "release"
    (release / "model").mkdir(parents=True)
    refuse_release_folder(release / "x.toml")
    (release / "certificate.json").write_text("{}")
    for path in (release, release / "x.toml", release / "model" / "deep" / "x.toml"):
        with pytest.raises(UsageError, match="INTERNAL"):
            refuse_release_folder(path)
    refuse_release_folder(tmp_path / "x.toml")
