"""The codec's policy, value by value, and what it refuses."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from stratsynth.errors import SchemaError
from stratsynth.schema import Categorical, Numeric, Schema, values
from stratsynth.schema.codec import decode, to_pandas
from stratsynth.schema.encoding import encode, smallest

LEFT_OUT = None


def _code(column, value, kind=None):
    coded = encode(Schema({"x": column}), pa.table({"x": pa.array([value], kind)}))
    return coded.codes["x"][0] if coded.size else LEFT_OUT


SEX = Categorical(levels=("1", "2", "N"))
TRUTH = Categorical(levels=("False", "True"))


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        (SEX, "2", 1),
        (SEX, b"2", 1),
        (SEX, " 2", 1),
        (SEX, "2.0", 1),
        (SEX, "n", LEFT_OUT),
        (SEX, 2, 1),
        (SEX, 2.0, 1),
        (SEX, 2.5, LEFT_OUT),
        (SEX, Decimal("2.00"), 1),
        (SEX, True, 0),
        (SEX, None, LEFT_OUT),
        (SEX, b"\xff", LEFT_OUT),
        (SEX, "2\x00", LEFT_OUT),
        (TRUTH, True, 1),
        (TRUTH, "true", 1),
        (TRUTH, "TRUE", 1),
        (TRUTH, 0, 0),
        (TRUTH, "yes", LEFT_OUT),
        (Categorical(levels=("01", "1")), "01", 0),
        (Categorical(levels=("01", "1")), 1, 1),
        (Categorical(levels=("01", "1")), "1.0", LEFT_OUT),  # two levels have that value
        (Categorical(levels=("01", "2")), 1, 0),
        (Categorical(levels=("9007199254740992",)), 9007199254740993, LEFT_OUT),  # equal as floats only
        (Categorical(levels=("a",), outside="missing"), "b", 1),
        (Categorical(levels=("a", "z"), outside="z"), "b", 1),
        (Categorical(levels=("a", "z"), outside="z"), None, 1),
        (Categorical(levels=("nan",)), float("nan"), LEFT_OUT),
        (Categorical(levels=("2020-01-02",)), dt.date(2020, 1, 2), 0),
        (Categorical(levels=("2020-01-02",)), dt.datetime(2020, 1, 2), 0),  # noqa: DTZ001
        (Categorical(levels=("-0", "0")), -0.0, 1),  # one number, whichever zero a reader meets first
    ],
)
def test_which_level_a_value_is(column, value, code):
    assert _code(column, value) == code


AGE = Numeric(lower=0, upper=95, integer=True, edges=(0, 5, 90, 96), missing=True, not_applicable="N")
STRICT = Numeric(lower=0, upper=10, edges=(0, 5, 10))
OUT = Numeric(lower=0, upper=10, edges=(0, 5, 10), outside="missing")


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        (AGE, "4", 0),
        (AGE, "5", 1),
        (AGE, "-3", 0),
        (AGE, "1e300", 2),
        (AGE, 10**18, 2),
        (AGE, "N", 3),
        (AGE, " N", 4),
        (AGE, "", 4),
        (AGE, None, 4),
        (AGE, "inf", 4),
        (AGE, float("inf"), 4),
        (AGE, float("nan"), 4),
        (AGE, "1e999", 4),
        (AGE, "1_0", 4),
        (AGE, True, 0),
        (AGE, Decimal("5.00"), 1),
        (STRICT, 10, 1),
        (STRICT, 4.999999999999999, 0),
        (STRICT, 11, 1),
        (STRICT, None, LEFT_OUT),
        (STRICT, "x", LEFT_OUT),
        (OUT, 10.000001, 2),
        (OUT, -5e-324, 2),
        (OUT, 10, 1),
        (Numeric(lower=0, upper=10, bins=1, not_applicable="99"), 99, 1),
        (Numeric(lower=0, upper=10, bins=1, not_applicable="99"), "99.0", 1),
        (Numeric(lower=0, upper=10, bins=1, not_applicable="99"), 98, 0),
    ],
)
def test_which_bin_a_value_is_in(column, value, code):
    assert _code(column, value) == code


def test_numbers_are_clipped_and_nan_where_there_is_none():
    coded = encode(Schema({"AGE": AGE}), pa.table({"AGE": ["-3", "200", "N", None, "12.5"]}), ["AGE"])
    np.testing.assert_array_equal(coded.numbers["AGE"], [0, 95, np.nan, np.nan, 12.5])


def test_a_row_that_is_left_out_is_gone_from_every_column():
    schema = Schema({"SEX": SEX, "AGE": AGE})
    coded = encode(schema, pa.table({"AGE": [1, 50, 95], "SEX": ["1", "x", "2"], "more": [[1]] * 3}), ["AGE"])
    assert coded.size == 2
    assert coded.codes["AGE"].tolist() == [0, 2]
    assert coded.numbers["AGE"].tolist() == [1, 95]


def test_codes_take_the_smallest_room():
    assert [smallest(n).name for n in (1, 256, 257, 65536, 65537)] == [
        "uint8",
        "uint8",
        "uint16",
        "uint16",
        "uint32",
    ]
    wide = Categorical(levels=tuple(map(str, range(300))))
    assert encode(Schema({"x": wide}), pa.table({"x": [299]})).codes["x"].dtype == np.uint16


def test_what_has_no_single_values_is_refused():
    for nested in ([[1]], [{"a": 1}]):
        with pytest.raises(SchemaError, match="column x has type"):
            encode(Schema({"x": SEX}), pa.table({"x": nested}))
    with pytest.raises(SchemaError, match="column x has type"):
        encode(Schema({"x": SEX}), pa.table({"x": pa.array([], pa.list_(pa.int8()))}))


def test_what_is_asked_wrongly_is_refused():
    schema = Schema({"SEX": SEX})
    with pytest.raises(SchemaError, match=r"column SEX .*nowhere"):
        encode(schema, pa.table({"SEXX": ["1"]}))
    with pytest.raises(SchemaError, match="once"):
        encode(schema, pa.table([["1"], ["1"]], names=["SEX", "SEX"]))
    with pytest.raises(SchemaError, match="not numeric"):
        encode(schema, pa.table({"SEX": ["1"]}), ["SEX"])
    for codes in ({}, {"SEX": [3]}, {"SEX": [-1]}):
        with pytest.raises(SchemaError, match="codes"):
            decode(schema, codes, np.random.default_rng(0))


def test_long_texts_are_dropped_before_they_are_worked_on():
    assert values.hashable(pa.array(["x" * 4001, "x" * 4000])).to_pylist() == [None, b"x" * 4000]


def test_a_long_text_in_a_dictionary_is_never_spelt_out():
    huge = pa.array(["x" * 1_000_000, "2"])
    indices = pa.array([0] * 5000 + [1], pa.int32())
    table = pa.table({"x": pa.DictionaryArray.from_arrays(indices, huge)})  # 5 GB, were it spelt out
    assert encode(Schema({"x": SEX}), table).codes["x"].tolist() == [1]


def test_rows_in_several_chunks_and_slices_keep_their_order(monkeypatch):
    monkeypatch.setattr("stratsynth.schema.values.SLICE", 2)
    data = pa.chunked_array([["1", "2", "N"], [], ["2", "1", "1", "N"]])
    assert encode(Schema({"x": SEX}), pa.table({"x": data})).codes["x"].tolist() == [0, 1, 2, 1, 0, 0, 2]


def test_a_synthetic_table_keeps_labels_and_pandas_types():
    schema = Schema(
        {
            "c": Categorical(levels=("1", "2"), labels={"1": "One"}, dtype="category", outside="missing"),
            "i": Categorical(levels=("1", "2"), dtype="int64", outside="missing"),
            "j": Categorical(levels=("1", "2"), dtype="int64"),
            "b": Categorical(levels=("0", "1"), dtype="bool"),
            "n": Numeric(lower=0, upper=9, bins=1, not_applicable="N", dtype="float64"),
            "s": Numeric(lower=0, upper=0.5, bins=1, not_applicable="N", missing=True),
        }
    )
    codes = {"c": [0, 2, 0], "i": [0, 2, 1], "j": [0, 1, 1], "b": [0, 1, 1], "n": [0, 1, 1], "s": [0, 1, 2]}
    table = decode(schema, codes, np.random.default_rng(0))
    assert table.schema.field("c").metadata == {b"labels": b'{"1": "One"}'}
    assert table.column("n").null_count == 2
    assert table.column("s").to_pylist()[1:] == ["N", None]
    frame = to_pandas(table)
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert kinds == {"c": "category", "i": "Int64", "j": "int64", "b": "bool", "n": "float64", "s": "str"}
    assert frame["c"].cat.categories.tolist() == ["1", "2"]
    assert frame["c"].isna().tolist() == [False, True, False]
    assert isinstance(frame, pd.DataFrame)


def test_draws_are_uniform_within_the_bin_and_the_bounds():
    schema = Schema({"x": Numeric(lower=2, upper=9, integer=True, edges=(0, 5, 20))})
    drawn = decode(schema, {"x": [0] * 3000 + [1] * 5000}, np.random.default_rng(7)).column("x").to_numpy()
    counts = np.bincount(drawn, minlength=10)[2:]
    assert len(counts) == 8
    assert abs(counts - 1000).max() < 160  # five standard deviations


def test_draws_between_the_largest_numbers_do_not_overflow():
    schema = Schema({"x": Numeric(lower=-1.7e308, upper=1.7e308, bins=1)})
    drawn = decode(schema, {"x": [0] * 100}, np.random.default_rng(0)).column("x").to_numpy()
    assert np.isfinite(drawn).all()
    assert len(set(drawn.tolist())) == 100


def test_the_same_seed_draws_the_same_table():
    schema = Schema({"x": Numeric(lower=0, upper=1)})
    draw = lambda seed: decode(schema, {"x": [3] * 5}, np.random.default_rng(seed))  # noqa: E731
    assert draw(1).equals(draw(1))
    assert not draw(1).equals(draw(2))


@pytest.mark.parametrize("null", [pa.array([None, "1", "x"]), pa.array([float("nan"), 1.0, 7.0])])
def test_null_does_not_apply_where_that_is_a_level(null):
    column = Categorical(levels=("N", "1"), not_applicable="N")
    assert encode(Schema({"A": column}), pa.table({"A": null})).codes["A"].tolist() == [0, 1]
    other = Categorical(levels=("N", "1"), not_applicable="N", outside="missing")
    assert encode(Schema({"A": other}), pa.table({"A": null})).codes["A"].tolist() == [2, 1, 2]
