"""Promises of the codec that hold for every schema and every table."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import strategies
from stratsynth.data.sources import open_source
from stratsynth.data.writing import write_table
from stratsynth.schema import Numeric, Schema
from stratsynth.schema.codec import decode, to_pandas
from stratsynth.schema.encoding import encode
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.text import number


def _same(coded: CodedRows, codes: dict[str, list[int]]) -> bool:
    return all(coded.codes[name].tolist() == list(codes[name]) for name in codes)


@given(strategies.schemas())
def test_a_schema_comes_back_from_its_toml(schema: Schema) -> None:
    """Nothing is lost in the file, and its hash says so too."""
    back = Schema.from_toml_text(schema.to_toml())
    assert (back.names, back.columns) == (schema.names, schema.columns)
    assert (back.rules, back.unit, back.origin, back.reviewed_by) == (
        schema.rules,
        schema.unit,
        schema.origin,
        schema.reviewed_by,
    )
    assert back.sha256 == schema.sha256


@given(st.data())
def test_codes_come_back_from_the_table_they_make(data: st.DataObject) -> None:
    """Rows as an Arrow table, as a pandas frame, as a CSV file and as a Parquet file."""
    schema = data.draw(strategies.schemas(lossless=True))
    codes = data.draw(strategies.codes(schema))
    table = decode(schema, codes, np.random.default_rng(0))
    assert _same(encode(schema, table), codes)
    if any(abs(number(level) or 0) >= 2**53 for name in schema.names for level in schema.levels(name)):
        return  # frames keep whole numbers as reals
    frame = to_pandas(table)
    assert _same(encode(schema, open_source(frame).read(schema.names)), codes)
    objects = frame.astype(object)
    assert _same(encode(schema, open_source(objects).read(schema.names)), codes)
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("csv", "parquet"):
            path = Path(folder) / f"people.{ending}"
            write_table(table, path)
            assert _same(encode(schema, open_source(path).read(schema.names)), codes)


@given(st.data())
def test_a_synthetic_table_has_the_types_the_schema_says(data: st.DataObject) -> None:
    """The types do not depend on the rows: no row, and pandas, give the same."""
    schema = data.draw(strategies.schemas())
    table = decode(schema, data.draw(strategies.codes(schema)), np.random.default_rng(0))
    empty = decode(schema, {name: [] for name in schema.names}, np.random.default_rng(0))
    assert table.schema.equals(empty.schema, check_metadata=True)
    names = {
        "string": "string",
        "category": "dictionary<values=string, indices=int32, ordered=0>",
        "int64": "int64",
        "float64": "double",
        "bool": "bool",
    }
    for name, column in schema.columns.items():
        assert str(table.schema.field(name).type) == names[str(column.dtype)]
        field = table.schema.field(name)
        assert field.nullable or table.column(name).null_count == 0
    kinds = to_pandas(table).dtypes
    for name, kind in to_pandas(empty).dtypes.items():
        assert kinds[name] == kind
        if schema.columns[name].dtype == "category":
            assert tuple(kind.categories) == schema.columns[name].levels


@given(st.data())
def test_numbers_are_drawn_within_their_bin_and_the_bounds(data: st.DataObject) -> None:
    """Whatever the generator gives, also at the ends."""
    column = data.draw(strategies.numerics(lossless=True).filter(lambda c: c.dtype != "string"))
    schema = Schema({"x": column})
    codes = data.draw(st.lists(st.integers(0, len(column.extents) - 1), min_size=1, max_size=9))
    drawn = decode(schema, {"x": codes}, np.random.default_rng(data.draw(st.integers(0, 99)))).column("x").to_pylist()
    for code, value in zip(codes, drawn, strict=True):
        assert column.breaks[code] <= value
        assert value < column.breaks[code + 1] or value == column.upper == column.breaks[-1]
        assert column.lower <= value <= column.upper
        assert not column.integer or value == int(value)


@given(st.data())
def test_a_rows_codes_depend_on_that_row_alone(data: st.DataObject) -> None:
    """Every table can be read, and reading it row by row gives the same, left-out rows included."""
    schema = data.draw(strategies.schemas())
    table = data.draw(strategies.tables(schema))
    reals = [name for name, column in schema.columns.items() if isinstance(column, Numeric)]
    whole = encode(schema, table, reals)
    rows = [encode(schema, table.slice(i, 1), reals) for i in range(table.num_rows)]
    assert whole.size == sum(row.size for row in rows)
    for name in schema.names:
        alone = [code for row in rows for code in row.codes[name].tolist()]
        assert whole.codes[name].tolist() == alone
        assert all(code < schema.size(name) for code in alone)
    for name in reals:
        np.testing.assert_array_equal(whole.numbers[name], [x for row in rows for x in row.numbers[name]])
        column = schema.columns[name]
        real = whole.numbers[name]
        assert ((column.lower <= real) & (real <= column.upper) | np.isnan(real)).all()
        assert (np.isnan(real) == (whole.codes[name] >= len(column.extents))).all()


WIDE = Numeric(lower=-1e308, upper=1e308, bins=1, missing=True)


@given(st.lists(st.from_regex(r"[ ]?[+-]?[0-9]{0,20}(\.[0-9]{0,35})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)))
def test_the_fast_reading_of_numbers_is_the_slow_one(texts: list[str]) -> None:
    """Arrow's parser and Python's agree to the last bit on every spelling."""
    read = encode(Schema({"x": WIDE}), pa.table({"x": pa.array(texts, pa.string())}), ["x"]).numbers["x"]
    slow = [np.nan if (x := number(text)) is None else min(max(x, -1e308), 1e308) for text in texts]
    np.testing.assert_array_equal(read, np.array(slow, float))


@given(st.data())
def test_objects_in_a_frame_are_read_one_by_one(data: st.DataObject) -> None:
    """Objects of any class give the same whole and in parts, and nothing is asked of them."""

    class Canary:
        def __str__(self) -> str:
            raise AssertionError

    plain = st.one_of(
        st.none(),
        st.text(max_size=3),
        st.just("\ud800"),
        st.binary(max_size=3),
        st.integers(),
        st.floats(),
        st.booleans(),
        st.decimals(),
        st.dates(),
        st.datetimes(),
        st.times(),
        st.timedeltas(),
        st.sampled_from(
            [
                pd.NA,
                pd.NaT,
                np.float32(0.1),
                np.int8(3),
                np.True_,
                np.str_("a"),
                [1],
                np.datetime64("2020-01-01"),
                np.datetime64("NaT", "s"),
                np.datetime64(2**62, "s"),
                10**5000,
                np.bytes_(b"\xff"),
                bytearray(b"a"),
                pa.scalar("a"),
                Canary(),
            ]
        ),
    )
    values = data.draw(st.lists(plain, max_size=6))
    whole = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    read = open_source(whole).read(["x"]).column("x").to_pylist()
    parts = [open_source(whole.iloc[i : i + 1]).read(["x"]).column("x").to_pylist()[0] for i in range(len(values))]
    assert read == parts
