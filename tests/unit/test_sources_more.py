"""Sources beyond CSV, Parquet and pandas; and columns of very many levels."""

import gzip
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from stratsynth import open_table
from stratsynth.data.frames import ArrowSource
from stratsynth.data.sources import open_source
from stratsynth.errors import SchemaError, UsageError
from stratsynth.schema import Categorical, Schema
from stratsynth.schema.codec import decode
from stratsynth.schema.encoding import encode
from stratsynth.schema.typed import figure
from stratsynth.strata.strata import narrow

TABLE = pa.table({"A": ["x", None, "y"], "B": [1, 2, 3], "C": [0.5, None, 1.5]})
SCHEMA = Schema({"B": Categorical(levels=("1", "2", "3")), "A": Categorical(levels=("x", "y"), outside="y")})


class Frame:
    """A frame of a library that is not imported here, as polars' is."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_a_frame_that_hands_out_an_arrow_stream_is_read():
    source = open_source(Frame(TABLE))
    assert isinstance(source, ArrowSource)
    assert source.read(["B", "A"]).equals(TABLE.select(["B", "A"]))
    coded = encode(SCHEMA, open_source(Frame(TABLE)).read(SCHEMA.names))
    assert coded.codes["A"].tolist() == [0, 1, 1]


def test_texts_as_polars_holds_them_are_texts():
    views = pa.table({"A": TABLE["A"].cast(pa.string_view()), "B": TABLE["B"].cast(pa.uint32())})
    coded = encode(SCHEMA, open_source(Frame(views)).read(SCHEMA.names))
    assert (coded.codes["A"].tolist(), coded.codes["B"].tolist()) == ([0, 1, 1], [0, 1, 2])


def test_a_frame_of_lists_is_refused_when_it_is_opened():
    with pytest.raises(SchemaError, match="column A has type list"):
        open_table(Frame(pa.table({"A": [[1]], "B": [1]})), schema=SCHEMA)


@pytest.mark.parametrize("name", ["t.feather", "t.arrow", "T.FEATHER"])
@pytest.mark.parametrize("how", ["lz4", "zstd", None, "stream"])
def test_feather_and_arrow_files(name, how, tmp_path):
    table = TABLE.append_column("D", TABLE["A"].dictionary_encode())
    with (tmp_path / name).open("wb") as file:
        make = pa.ipc.new_stream if how == "stream" else pa.ipc.new_file
        options = pa.ipc.IpcWriteOptions(compression=None if how == "stream" else how)
        with make(file, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=2)
    source = open_source(str(tmp_path / name))
    assert source.columns() == ("A", "B", "C", "D")
    assert source.types() == table.schema
    for columns in (["C", "A"], ["D"], ["A", "B", "C", "D"]):
        assert source.read(columns).equals(table.select(columns))
    with pytest.raises(SchemaError, match=r"column E .*nowhere"):
        source.read(["E"])


def test_two_columns_of_a_name_in_a_feather_file(tmp_path):
    table = pa.table([["x"], ["y"], ["z"]], names=["A", "B", "B"])
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    source = open_source(tmp_path / "t.arrow")
    assert source.read(["A"]).to_pydict() == {"A": ["x"]}
    with pytest.raises(SchemaError, match="more than once"):
        source.read(["B"])


@pytest.mark.parametrize(
    "damage", [b"", b"ARROW1", b"ARROW1\0\0" + b"x" * 99, b"\xff\xff\xff\xff" + b"x" * 99, b"SECRET"]
)
def test_a_damaged_arrow_file_is_refused_without_quoting_it(damage, tmp_path):
    (tmp_path / "t.arrow").write_bytes(damage)
    with pytest.raises(UsageError, match=r"t\.arrow: cannot be read") as caught:
        open_source(tmp_path / "t.arrow").columns()
    assert "SECRET" not in str(caught.value)


def test_names_that_are_no_unicode_are_refused(tmp_path):
    with pa.ipc.new_file(tmp_path / "t.arrow", pa.schema({"NAME": pa.string()})):
        pass
    (tmp_path / "t.arrow").write_bytes((tmp_path / "t.arrow").read_bytes().replace(b"NAME", b"NA\xffE"))
    with pytest.raises(UsageError, match=r"t\.arrow: cannot be read"):
        open_source(tmp_path / "t.arrow").columns()


@pytest.mark.parametrize("spelt", ["1_0", "١", "nan", "inf", "", "0x1", True, None, "1e999"])
def test_figures_of_small_tables_are_numbers(spelt):
    assert np.isnan(figure(spelt))
    assert [figure(x) for x in ("0.5", " 1e-1 ", 2, np.float64(0.25), "-0")] == [0.5, 0.1, 2, 0.25, 0]


def test_a_packed_file_is_known_by_its_content(tmp_path):
    (tmp_path / "t.csv").write_bytes(gzip.compress(b"A,B\nx,1\n"))
    assert open_source(tmp_path / "t.csv").read(["B"]).to_pydict() == {"B": ["1"]}
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"A,B\nx,1\n"))
    with pytest.raises(UsageError, match=r"\.csv\.gz, \.parquet"):
        open_source(tmp_path / "t.gz")


def test_columns_of_very_many_levels_take_no_time():
    start = time.process_time()
    levels = tuple(str(i) for i in range(60_000))
    for dtype in ("int64", "string"):
        schema = Schema({"a": Categorical(levels=levels, outside="missing", dtype=dtype)})
        table = decode(schema, {"a": np.arange(60_001)}, np.random.default_rng(0))
        assert table.column("a").null_count == 1
        assert str(table.column("a")[7].as_py()) == "7"
        assert narrow(schema.columns["a"], levels[:30_000]).size == 30_000
    assert time.process_time() - start < 4


def test_a_level_called_missing_is_a_level_and_an_added_one_is_null():
    own = Categorical(levels=("x", "missing"), outside="missing")
    added = Categorical(levels=("x", "y"), outside="missing")
    assert (own.values, added.values) == (("x", "missing"), ("x", "y", None))
    assert narrow(own, ["missing", "x"]).levels == ("x", "missing")
    assert narrow(added, ["missing", "x"]).levels == ("x",)


@pytest.mark.parametrize("spelt", ["1_000", "١٠٠٠", "１０００", "1 000", "1,000", "0x3e8", "1e3_0", "²"])
def test_numbers_have_western_digits_and_nothing_between(spelt):
    schema = Schema({"a": Categorical(levels=("1000", "1"), outside="missing")})
    for column in (pa.table({"a": [spelt]}), pd.DataFrame({"a": [spelt]})):
        assert encode(schema, open_source(column).read(["a"])).codes["a"].tolist() == [2]


@pytest.mark.parametrize("wrong", [[0, 1, 3, 2**31 - 1], [0, 2**30, 3, 6], [0, 3, 1, 6], [-(2**30), 1, 3, 6]])
def test_offsets_that_point_beyond_the_file_are_refused_before_they_are_followed(wrong, tmp_path):
    """Arrow's own reader follows them."""
    with pa.ipc.new_file(tmp_path / "t.arrow", pa.schema({"A": pa.string()})) as writer:
        writer.write_table(pa.table({"A": ["x", "yy", "zzz"]}))
    content, offsets = (tmp_path / "t.arrow").read_bytes(), np.array([0, 1, 3, 6], np.int32).tobytes()
    assert content.count(offsets) == 1
    (tmp_path / "t.arrow").write_bytes(content.replace(offsets, np.array(wrong, np.int32).tobytes()))
    with pytest.raises(UsageError, match=r"t\.arrow: cannot be read"):
        open_source(tmp_path / "t.arrow").read(["A"])
