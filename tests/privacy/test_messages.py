"""Messages about a data file, and the representation of a table, quote the schema and never the file."""

import dataclasses
import gzip
import os
import traceback

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import stratsynth as ss
from helpers import small
from stratsynth import cli
from stratsynth.data.backends import Memory
from stratsynth.data.feather import FeatherSource
from stratsynth.data.frames import ArrowSource, FrameSource
from stratsynth.data.load import load_rows
from stratsynth.data.sources import CsvSource, ParquetSource, open_source
from stratsynth.driver.answering import Answerer, Reader
from stratsynth.driver.private import PrivateAnswers
from stratsynth.errors import SchemaError, StratsynthError, UsageError
from stratsynth.evaluation.tables.encoded import EncodedRows
from stratsynth.noise import SeededEntropy
from stratsynth.questions.reading import Exact
from stratsynth.schema import Schema
from stratsynth.schema.encoding import encode
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.schema import Unit

CANARY = "canaryqx"
HEAD = "SEX,GROUP,AGE,WORK"
ROW = f"1,a,3,{CANARY}"


def strings(**columns):
    return pa.table({**{name: [f"{CANARY}{name}"] for name in ("SEX", "GROUP", "AGE", "WORK")}, **columns})


def typed(value):
    return strings(WORK=value)


def parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def feather(table):
    sink = pa.BufferOutputStream()
    pyarrow.feather.write_feather(table, sink)
    return sink.getvalue().to_pybytes()


def damaged(content):
    """Its first pages are no pages."""
    return content[:4] + b"\xff" * 60 + content[64:]


NESTED = pa.array([{CANARY: 1}])
FILES = {
    # header
    "no header": ("people.csv", f"{ROW}\n{ROW}\n"),
    "no header, near a column": ("people.csv", f"SEXX{CANARY},GROUP,AGE\n"),
    "bare returns": ("people.csv", f"{HEAD}\r{ROW}\r{ROW}\r"),
    "an open quote": ("people.csv", f'SEX,"GROUP{CANARY}\n{ROW}\n'),
    "a quote that closes early": ("people.csv", f'SEX,"GROUP"{CANARY}\n{ROW}\n'),
    "semicolons": ("people.csv", f"SEX;GROUP;AGE;WORK;{CANARY}\n{ROW}\n"),
    "tabs": ("people.csv", f"SEX\tGROUP\tAGE\tWORK\t{CANARY}\n{ROW}\n"),
    "twice": ("people.csv", f"SEX,SEX,GROUP,AGE,WORK,{CANARY}\n{ROW}\n"),
    "nothing": ("people.csv", ""),
    "blank lines": ("people.csv", "\n" * 9),
    "UTF-16": ("people.csv", f"{HEAD},{CANARY}\n{ROW}\n".encode("utf-16")),
    "Latin-1": ("people.csv", f"{HEAD[:-1]}\xe9{CANARY}\n{ROW}\n".encode("latin-1")),
    "binary": ("people.csv", bytes(range(256)) * 40 + CANARY.encode()),
    "null characters": ("people.csv", f"\0{CANARY}\0\n{ROW}\n"),
    "one long line": ("people.csv", CANARY * 2_100_000),
    "a name for an escape": ("people.csv", f"\x1b[31m{CANARY},{HEAD[4:]}\n{ROW}\n"),
    # compressed
    "not compressed": ("people.csv.gz", f"{HEAD}\n{ROW}\n"),
    "compressed and cut short": ("people.csv.gz", gzip.compress(f"{HEAD}\n{ROW * 9999}\n".encode(), 0)[:-400]),
    "compressed with a wrong sum": ("people.csv.gz", gzip.compress(f"{HEAD}\n{ROW}\n".encode())[:-8] + b"\0" * 8),
    "compressed, then not": ("people.csv.gz", gzip.compress(f"{HEAD}\n{ROW}\n".encode()) + CANARY.encode()),
    # Parquet
    "no Parquet": ("people.parquet", f"{HEAD}\n{ROW}\n"),
    "Parquet cut short": ("people.parquet", parquet(strings())[:-30]),
    "Parquet without its middle": ("people.parquet", parquet(strings())[:60] + parquet(strings())[-200:]),
    "Parquet, other columns": ("people.parquet", parquet(pa.table({f"SEX{CANARY}": ["1"]}))),
    "Parquet, lists": ("people.parquet", parquet(typed(pa.array([[CANARY]])))),
    "Parquet, parts": ("people.parquet", parquet(typed(NESTED))),
    "Parquet, maps": ("people.parquet", parquet(typed(pa.array([[(CANARY, 1)]], pa.map_(pa.string(), pa.int8()))))),
    "Parquet, damaged pages": ("people.parquet", damaged(parquet(strings()))),
    # Feather
    "no Feather": ("people.feather", f"{HEAD}\n{ROW}\n"),
    "Feather cut short": ("people.feather", feather(strings())[:-30]),
    "Feather, other columns": ("people.feather", feather(pa.table({f"SEX{CANARY}": ["1"]}))),
    "Feather, parts": ("people.feather", feather(typed(NESTED))),
    "Arrow stream, no end": ("people.arrow", feather(strings())[8:90]),
    # other files
    "another ending": ("people.xlsx", f"{HEAD}\n{ROW}\n"),
    "no ending": ("people", f"{HEAD}\n{ROW}\n"),
}
COMMANDS = {
    "fit": lambda data: ["fit", "recipe.toml", "-o", f"out-{data}"],
    "evaluate": lambda data: ["evaluate", "--real", data, "--synthetic", data, "--schema", "schema.toml", "-o", "e"],
}


@pytest.mark.parametrize("command", ["fit", "evaluate"])
@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_fails_is_not_quoted(kind, command, tmp_path, monkeypatch, capsys):
    name, content = FILES[kind]
    monkeypatch.chdir(tmp_path)
    recipe = small.write_recipe(tmp_path)
    (tmp_path / "people.csv").unlink()
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    small.edit(recipe, 'path = "people.csv"', f'path = "{name}"')
    code = cli.run(COMMANDS[command](name))
    said = capsys.readouterr()
    assert code != 0, said.out
    assert len(said.err.splitlines()) <= 2, said.err
    assert CANARY not in said.out + said.err
    assert "\x1b" not in said.err
    told = complaint(lambda: ss.open_table(name, schema="schema.toml"))
    assert told or command == "evaluate" or "charge stands" in said.err


def complaint(action):
    """Message of an action that fails, as somebody's log would keep it; empty if it does not."""
    try:
        action()
    except StratsynthError as error:
        told = "".join(traceback.format_exception(error)) + repr(error)
    else:
        return ""
    assert CANARY not in told
    return told


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_what_is_no_file_is_refused_in_words(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small.write_recipe(tmp_path)
    (tmp_path / "people.csv").unlink()
    os.mkfifo("people.csv")
    assert cli.run(COMMANDS[command]("people.csv")) == 2
    assert "people.csv is not a regular file" in capsys.readouterr().err


def test_frames_that_fail_are_not_quoted():
    frame = small.people().astype(object)
    for broken in (
        frame.rename(columns={"SEX": f"SEX{CANARY}"}),
        frame.assign(AGE=pd.Series([(CANARY,)] * len(frame)).astype("category").cat.add_categories([CANARY])),
        frame.assign(SEX=pd.Series(np.array([(1, 2)] * len(frame), [(CANARY, "i4"), ("b", "i4")]).tolist())),
        frame.assign(AGE=pd.arrays.IntervalArray.from_breaks(range(len(frame) + 1))),
        pd.DataFrame({CANARY: [1]}),
    ):
        complaint(lambda broken=broken: ss.fit(small.stratified(), small.table(broken), small.BUDGET))


def test_a_stream_that_fails_is_not_quoted():
    class Frame:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ValueError(CANARY)

    with pytest.raises(UsageError, match="the frame cannot be read") as caught:
        open_source(Frame())
    assert CANARY not in "".join(traceback.format_exception(caught.value))


SECRET, VALUE = "canaryREPR", 7203685477580714


@pytest.fixture
def people(tmp_path):
    """A table in every kind of source, with a column that the schema does not know."""
    frame = small.people().assign(canaryREPR=SECRET, WORK=SECRET)
    frame["AGE"] = VALUE
    frame = frame.astype(str)
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    frame.to_feather(tmp_path / "people.feather")
    table = pa.Table.from_pandas(frame)
    return {
        FrameSource: frame,
        ArrowSource: table,
        CsvSource: tmp_path / "people.csv",
        ParquetSource: tmp_path / "people.parquet",
        FeatherSource: tmp_path / "people.feather",
    }


def shown(thing):
    return f"{thing!r} {thing!s} {thing:} {[thing]}"


def test_no_source_backend_or_table_shows_a_row_or_a_column_of_the_data(people):
    for kind, data in people.items():
        source = open_source(data)
        assert type(source) is kind
        table = ss.open_table(data, schema=small.SCHEMA, declared_size=small.SIZE)
        for thing in (source, table, Memory(source, small.SCHEMA), table.backend):
            assert SECRET not in shown(thing)
            assert str(VALUE) not in shown(thing)
        assert kind.__name__ in repr(table)
        assert "SEX, GROUP, AGE, WORK" in repr(table)
        assert (getattr(source, "path", None) is None) == (kind in {FrameSource, ArrowSource})
        assert "people." in repr(table) or kind in {FrameSource, ArrowSource}


def test_nothing_that_holds_rows_shows_one(people):
    """Numbers of rows are private too."""
    source = open_source(people[FrameSource])
    rows = load_rows(small.SCHEMA, source)
    coded = encode(small.SCHEMA, source.read(small.SCHEMA.names), ["AGE"])
    path = CodedRows(small.SCHEMA, coded.codes, coded.numbers, 987654)
    frame = rows.frame(())
    exact = Exact([np.array([987654])], [[np.array([987654])]], frame)
    encoded = EncodedRows.read(people[FrameSource], small.SCHEMA)
    answerer = Answerer(rows, "add-remove", SeededEntropy(1))
    for thing in (
        rows,
        coded,
        path,
        exact,
        encoded,
        answerer,
        Reader(rows, SeededEntropy(1)),
        PrivateAnswers(lambda: rows, None, SeededEntropy(1)),
    ):
        assert "array" not in shown(thing).replace("uint8", "")
        assert "987654" not in shown(thing)
    for kind in (CodedRows, Exact, EncodedRows):
        hidden = {f.name for f in dataclasses.fields(kind) if not f.repr}
        assert hidden >= {"codes", "numbers"} & {f.name for f in dataclasses.fields(kind)}


def test_a_lack_is_told_by_the_schemas_name_and_how_to_see_the_header(tmp_path):
    (tmp_path / "people.csv").write_text(f"SX{CANARY},AGE\n1,2\n", encoding="utf-8")
    schema = Schema({"AGE": small.SCHEMA.columns["AGE"]}, unit=Unit(column="PERSON", max_rows=2))
    for known, name in ((small.SCHEMA, "SEX"), (schema, "PERSON")):
        with pytest.raises(SchemaError, match=rf"column {name} must be .*nowhere; `stratsynth schema check` shows"):
            ss.open_table(tmp_path / "people.csv", schema=known)
