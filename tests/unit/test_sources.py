"""Sources: every line of a CSV file stands alone, and the kinds of table that are taken and refused."""

from __future__ import annotations

import datetime as dt
import gzip
import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratsynth.data import csvlines
from stratsynth.data.sources import open_source
from stratsynth.data.writing import write_table
from stratsynth.errors import SchemaError, UsageError

LINE_BYTES = st.lists(
    st.sampled_from([b'"', b'""', b",", b"\r", b"\x00", b"\xff", b"\xc3", b"\xa9", b"a", b"1", b" ", b"\xef\xbb\xbf"])
).map(b"".join)
LINES = st.lists(LINE_BYTES, max_size=6).map(lambda lines: b"".join(line + b"\n" for line in lines))


def _rows(lines: bytes, width: int = 3) -> list[tuple[str | None, ...]]:
    blocks = csvlines.batches(io.BytesIO(lines), width, range(width))
    return [row for columns in blocks for row in zip(*(column.to_pylist() for column in columns), strict=True)]


def _alone(line: bytes, width: int = 3) -> list[tuple[str | None, ...]]:
    """Fields of one line, by the definition: no block, no vector."""
    line = line.removesuffix(b"\r")
    fields = csvlines.fields(line)
    if not line or fields is None or len(fields) != width:
        return []

    def text(field: bytes) -> str | None:
        try:
            return field.decode() or None
        except UnicodeDecodeError:
            return None

    return [tuple(text(field) for field in fields)]


@given(LINES, LINES)
def test_lines_read_together_are_lines_read_apart(a, b):
    assert _rows(a + b) == _rows(a) + _rows(b)


@given(LINES, st.integers(1, 9))
def test_lines_mean_what_each_means_alone_however_the_file_is_cut(lines, block):
    expected = [row for line in lines.split(b"\n") for row in _alone(line)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csvlines, "BLOCK", block)
        assert _rows(lines) == expected
        assert _rows(lines.removesuffix(b"\n")) == expected


@given(st.lists(st.lists(st.text(st.characters(codec="utf-8", exclude_characters='\n\r"')), min_size=3, max_size=3)))
def test_the_python_reader_would_agree_on_plain_lines(rows):
    """Without a quote, splitting at commas is what the csv module does."""
    import csv

    for row in rows:
        line = ",".join(row)
        assert [f.decode() for f in csvlines.fields(line.encode())] == (next(csv.reader([line]), None) or [""])


def test_a_stray_quote_costs_its_own_row_only():
    assert _rows(b'a,"b,c\nd,e,f\n"g",h""h,"i"\n') == [
        ("d", "e", "f"),
        ("g", 'h""h', "i"),
    ]


def test_short_long_blank_and_broken_lines():
    text = b'a\n\n\r\na,b,c,d\n,,\n"x\ry",b,c\n"x"\ry,b,c\nx\ry,b,c\n\xff,b,c\n"\xff",b,c\n,b,c\r\n'
    assert _rows(text) == [
        (None, None, None),
        ("x\ry", "b", "c"),
        ("x\ry", "b", "c"),
        (None, "b", "c"),
        (None, "b", "c"),
        (None, "b", "c"),
    ]


def test_a_line_too_long_to_be_one_is_left_out(monkeypatch):
    monkeypatch.setattr(csvlines, "MAX_LINE", 5)
    assert _rows(b"a,b,c\naa,b,c\n") == [("a", "b", "c")]


def test_csv_files(tmp_path):
    text = b'\xef\xbb\xbfA,"B,b",C\r\n1,"x, y",\r\n2,z,w'
    (tmp_path / "t.csv").write_bytes(text)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text))
    for name in ("t.csv", "t.csv.gz"):
        source = open_source(tmp_path / name)
        assert source.columns() == ("A", "B,b", "C")
        assert source.read(["C", "B,b"]).to_pydict() == {"C": [None, "w"], "B,b": ["x, y", "z"]}
        assert source.read(["A"]).schema.field("A").type == pa.string()


def test_columns_that_are_absent_or_twice(tmp_path):
    (tmp_path / "t.csv").write_text("A,B,B,C\n1,2,3,4\n")
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=["A", "B", "B", "C"])
    table = pa.table([[1], [2], [3], [4]], names=["A", "B", "B", "C"])
    for data in (str(tmp_path / "t.csv"), frame, table):
        source = open_source(data)
        assert source.read(["C", "A"]).num_columns == 2
        with pytest.raises(SchemaError, match=r"B .*more than once"):
            source.read(["B"])
        with pytest.raises(SchemaError, match=r"column AA .*nowhere"):
            source.read(["AA"])


def test_what_is_no_table_is_refused(tmp_path):
    for data in (tmp_path / "t.xlsx", 3, None, {"A": [1]}):
        with pytest.raises(UsageError, match=r"\.csv, \.csv\.gz, \.parquet, \.feather or \.arrow"):
            open_source(data)
    with pytest.raises(UsageError, match=r"absent\.csv: there is no such file"):
        open_source(tmp_path / "absent.csv")


@pytest.mark.parametrize("name", ["t.parquet", "t.csv.gz"])
def test_a_damaged_file_is_refused_without_quoting_it(tmp_path, name):
    (tmp_path / name).write_bytes(b"SECRET" * 10)
    source = open_source(tmp_path / name)
    for ask in (source.columns, lambda: source.read(["A"])):
        with pytest.raises(UsageError, match=name) as caught:
            ask()
        assert "SECRET" not in str(caught.value)


def test_a_file_cut_short_is_refused(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"A\n" + np.random.default_rng(0).bytes(9999))[:-20])
    with pytest.raises(UsageError, match="whole"):
        open_source(tmp_path / "t.csv.gz").read(["A"])


def test_pandas_columns_of_every_kind():
    moment = dt.datetime(2020, 1, 2, 3, 4)  # noqa: DTZ001
    frame = pd.DataFrame(
        {
            "object": pd.Series(
                [
                    1,
                    2.0,
                    0.1,
                    True,
                    "x",
                    b"y",
                    None,
                    np.nan,
                    Decimal("1.50"),
                    moment,
                    [1],
                    pd.Timestamp("2020-01-02"),
                    np.float32(0.1),
                    10**5000,
                ],
                dtype=object,
            ),
            "str": ["a", None] * 7,
            "string": pd.array(["a", None] * 7, "string"),
            "category": pd.Categorical(["b", None] * 7, categories=["a", "b"]),
            "int": range(14),
            "Int64": pd.array([1, None] * 7, "Int64"),
            "float": [0.5, np.nan] * 7,
            "bool": [True, False] * 7,
            "boolean": pd.array([True, None] * 7, "boolean"),
            "date": pd.to_datetime(["2020-01-02", None] * 7),
            "numbers": pd.Categorical([1, 2] * 7),
            "period": pd.period_range("2020", periods=14),
        }
    )
    read = open_source(frame).read(frame.columns).slice(0).to_pydict()
    assert read["object"] == [
        "1",
        "2",
        "0.1",
        "true",
        "x",
        "y",
        None,
        None,
        "1.50",
        "2020-01-02 03:04:00",
        None,
        "2020-01-02",
        "0.10000000149011612",
        None,
    ]
    firsts = {name: values[:2] for name, values in read.items()}
    assert firsts["str"] == firsts["string"] == ["a", None]
    assert firsts["category"] == ["b", None]
    assert firsts["int"] == [0, 1]
    assert firsts["Int64"] == [1, None]
    assert firsts["float"] == [0.5, None]
    assert firsts["bool"] == ["true", "false"]
    assert firsts["boolean"] == ["true", None]
    assert firsts["date"] == [dt.datetime(2020, 1, 2), None]  # noqa: DTZ001
    assert [str(x) for x in firsts["numbers"]] == ["1.0", "2.0"]
    assert firsts["period"] == [None, None]


def test_tables_are_written_whole_or_not_at_all(tmp_path):
    table = pa.table({"A": ["x", None, 'q"', "a,b"], "B": [1.5, None, 1e22, 0.1]})
    for name in ("t.csv", "t.parquet"):
        write_table(table, tmp_path / name)
        read = open_source(tmp_path / name).read(["A", "B"])
        assert read.column("A").to_pylist() == ["x", None, 'q"', "a,b"]
        assert [None if x is None else float(x) for x in read.column("B").to_pylist()] == [
            1.5,
            None,
            1e22,
            0.1,
        ]
    before = (tmp_path / "t.parquet").read_bytes()
    unwritable = pa.table({"A": pa.array([None], pa.month_day_nano_interval())})
    with pytest.raises(pa.ArrowException):
        write_table(unwritable, tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.parquet"]
    for name in ("t.txt", "absent/t.csv"):
        with pytest.raises(UsageError, match="t"):
            write_table(table, tmp_path / name)


def test_a_lone_column_keeps_its_nulls_in_csv(tmp_path):
    for values in (["x", None, "y"], [1, None, 2], [True, None, False]):
        write_table(pa.table({"A": values}), tmp_path / "t.csv")
        read = open_source(tmp_path / "t.csv").read(["A"]).column("A").to_pylist()
        assert read == [None if value is None else str(value).replace("T", "t").replace("F", "f") for value in values]


def test_plain_csv_has_no_quotes(tmp_path):
    write_table(pa.table({"A": ["x", None], "B": [1, 2]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == b"A,B\nx,1\n,2\n"


@pytest.mark.parametrize("name", ["x" * 5000 + ".csv", "x" * 300, "a\0b.csv", "a\0b"])
def test_names_that_no_file_can_have_are_refused(name):
    with pytest.raises(UsageError, match=r"no such file|is the file whole|data must be"):
        open_source(name)
