"""Rows in a DuckDB database: answers as from memory, queries of one row's values, a connection that only reads."""

import dataclasses
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
import stratsynth as ss
from helpers import small
from helpers.command import complaint, python, stratsynth
from helpers.ledgers import kinds, without_account
from helpers.small import BUDGET, SCHEMA, SIZE
from stratsynth.adapters import AIM, MST, CoinPress, External, Independent
from stratsynth.data import duckdb_source, load
from stratsynth.data.duckdb_source import DuckDBSource
from stratsynth.data.fingerprint import fingerprint
from stratsynth.data.sources import open_source
from stratsynth.data.stream import Stream
from stratsynth.errors import LedgerError, SchemaError, StratsynthError, Unsupported, UsageError
from stratsynth.files.scratch import Scratch
from stratsynth.noise import SeededEntropy
from stratsynth.schema import Unit
from stratsynth.schema.encoding import check_source
from stratsynth.testing.record import identical
from stratsynth.weights.totals import write_totals

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed; scripts/test --with duckdb installs it")
pytestmark = pytest.mark.duckdb

KEY = b"k" * 32
HOW = {
    "independent": Independent,
    "mst in strata": lambda: ss.Stratified(
        MST(), ["SEX", "GROUP"], ss.Weights.public(small.shares_frame(), citation="made up for testing")
    ),
    "a merge": lambda: ss.Stratified(
        AIM(rounds=2),
        ["SEX", "GROUP"],
        ss.Weights.public(small.shares_frame(), citation="made up for testing"),
        ss.Groups(merge={"GROUP": {"both": ["a", "b"]}}),
    ),
    "sums in strata": lambda: ss.Stratified(CoinPress(columns=["AGE"]), ["SEX"], small.even(SCHEMA, "SEX")),
}


def run(path, *statements):
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def written(folder, frame=None):
    """A database with a table of people, one of others, and a view."""
    path, frame = folder / "people.duckdb", small.people().astype(str) if frame is None else frame
    with duckdb.connect(str(path)) as connection:
        connection.register("given", frame)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
        connection.execute("CREATE TABLE IF NOT EXISTS others AS SELECT 1 AS SEX")
        connection.execute("CREATE VIEW IF NOT EXISTS seen AS SELECT * FROM people LIMIT 3")
        connection.execute("CREATE MACRO IF NOT EXISTS twice(x) AS 2 * x")
    return path


def opened(path, table="people", **settings):
    query = settings.get("query")
    return ss.open_table(path, schema=SCHEMA, declared_size=SIZE, table=None if query else table, **settings)


@pytest.fixture(autouse=True)
def short_batches(monkeypatch):
    monkeypatch.setattr("stratsynth.data.sources.BATCH", 13)


# Answers


@pytest.mark.parametrize("how", HOW)
def test_releases_are_those_of_rows_in_memory(how, tmp_path):
    frame = small.people().astype(str)
    plain = ss.open_table(frame, schema=SCHEMA, declared_size=SIZE)
    one, other = (
        ss.fit(HOW[how](), table, BUDGET, seed=1, entropy=SeededEntropy(1))
        for table in (plain, opened(written(tmp_path)))
    )
    assert one.measurements.equals(other.measurements)
    assert identical(one.model.state(), other.model.state())
    assert without_account(one) == without_account(other)


@given(draw=st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_column_of_every_table_is_read_the_same(draw, tmp_path_factory):
    schema = draw.draw(strategies.schemas().filter(lambda schema: isinstance(schema.unit, str)))
    table = draw.draw(strategies.tables(schema))
    path = tmp_path_factory.mktemp("t") / "t.duckdb"
    try:
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE t AS SELECT * FROM given")
    except (duckdb.Error, pa.ArrowException):  # types and names that DuckDB does not know
        return
    source = open_source(path, "t")
    try:
        check_source(schema, source.columns(), source.types())
    except SchemaError:  # lengths of time, which DuckDB keeps as months, days and seconds
        return
    plain = load.load_rows(schema, open_source(table))
    stored = load.load_rows(schema, source, Scratch())
    for name in schema.names:
        there = np.concatenate([part.codes[name] for part in stored._parts])
        np.testing.assert_array_equal(plain._parts[0].codes[name], there)
    for name, numbers in plain._parts[0].numbers.items():
        np.testing.assert_array_equal(numbers, np.concatenate([part.numbers[name] for part in stored._parts]))


# Queries


def counts(path, query, columns=("SEX",)):
    source = open_source(path, query=query)
    return [t.tolist() for t in load.load_rows(SCHEMA, source, Scratch()).counts([((), [columns])])[0]]


def test_a_query_selects_renames_and_chooses(tmp_path):
    path = written(tmp_path, small.people().astype(str).rename(columns={"SEX": "sex code"}))
    run(path, 'ALTER TABLE people RENAME COLUMN "GROUP" TO "group"')
    query = 'SELECT "sex code" AS SEX, "group" AS "GROUP", trim(AGE) AS AGE, WORK FROM people p'
    assert counts(path, query) == [[50, 50]]
    assert counts(path, f"{query} WHERE p.\"sex code\" IN ('1') AND NOT p.AGE LIKE '1%'") == [
        [sum(i % 2 == 0 and not str((7 * i) % 12).startswith("1") for i in range(SIZE)), 0]
    ]


def test_a_row_that_an_expression_fails_on_is_null_there_and_fails_no_other(tmp_path):
    path = written(tmp_path)
    columns = 'SELECT SEX, "GROUP", AGE, '
    assert counts(path, f"{columns} CAST(WORK AS INTEGER) AS WORK FROM people", ("WORK",)) == [[0, 0, SIZE]]
    run(path, "UPDATE people SET WORK = '4' WHERE WORK = 'zebra'")
    as_text = "CASE CAST(WORK AS INTEGER) WHEN 4 THEN 'yes' ELSE 'N' END"
    fours = sum(i % 4 == 3 for i in range(SIZE))
    assert counts(path, f"{columns} {as_text} AS WORK FROM people", ("WORK",)) == [[0, fours, SIZE - fours]]
    assert counts(path, "SELECT * FROM people WHERE CAST(WORK AS INTEGER) = 4") == [[0, fours]]
    assert counts(path, "SELECT * FROM people WHERE SEX = '2' OR CAST(WORK AS INTEGER) = 4") == [[0, fours]]


def test_a_condition_that_is_no_truth_value_on_one_row_fails_no_other(tmp_path):
    path = written(tmp_path)
    run(path, "UPDATE people SET WORK = 'zebra' WHERE rowid = 0", "UPDATE people SET WORK = 'true' WHERE rowid > 0")
    whole = sum(counts(path, "SELECT * FROM people WHERE SEX IS NOT NULL")[0])
    assert sum(counts(path, "SELECT * FROM people WHERE WORK")[0]) == whole - 1
    told = "CASE WHEN WORK = 'zebra' THEN 'x' ELSE 'true' END"
    assert sum(counts(path, f"SELECT * FROM people WHERE {told}")[0]) == whole - 1  # noqa: S608 - a constant


def test_a_conversion_that_stands_twice_in_an_expression_fails_no_other_row(tmp_path):
    """An optimiser would work it out once, where nothing tries it."""
    path = written(tmp_path)
    run(path, "UPDATE people SET AGE = 'x' WHERE rowid = 0")
    band = "CASE WHEN CAST(AGE AS INT) < 5 THEN 'a' WHEN CAST(AGE AS INT) < 9 THEN 'b' ELSE 'c' END"
    query = f"SELECT {band} AS AGE FROM people"  # noqa: S608 - a constant
    with DuckDBSource(path, None, query).connected() as (connection, chosen):
        found = [value for (value,) in connection.execute(chosen.select).fetchall()]
    assert found.count(None) == 1
    assert set(found) == {None, "a", "b", "c"}


@pytest.mark.parametrize(
    "macro", ["Trim(x) AS 'z'", "MD5_number_lower(x) AS 0", "duckdb_functions() AS TABLE SELECT 1"]
)
def test_a_macro_of_a_functions_name_is_refused(macro, tmp_path):
    path = written(tmp_path)
    run(path, f"CREATE MACRO {macro}")
    with pytest.raises(UsageError, match="a macro of a function's own name"):
        opened(path)


REFUSED = {
    "two": "SELECT 1; SELECT 2",
    "no statement": "hello",
    "insert": "INSERT INTO people SELECT * FROM people",
    "copy": "COPY people TO 'out.csv'",
    "attach": "ATTACH 'other.duckdb'",
    "a setting": "SET threads = 1",
    "pragma": "PRAGMA database_list",
    "explain": "EXPLAIN SELECT * FROM people",
    "describe": "DESCRIBE people",
    "a join": "SELECT people.* FROM people, others",
    "a proper join": "SELECT people.* FROM people JOIN others ON people.SEX = others.SEX",
    "union": "SELECT * FROM people UNION ALL SELECT * FROM people",
    "with": "WITH p AS (SELECT * FROM people) SELECT * FROM p",
    "a subquery below": "SELECT * FROM (SELECT * FROM people)",
    "a subquery": "SELECT * FROM people WHERE AGE = (SELECT max(AGE) FROM people)",
    "exists": "SELECT * FROM people p WHERE EXISTS (SELECT 1 FROM others)",
    "in a subquery": "SELECT * FROM people WHERE SEX IN (SELECT SEX FROM others)",
    "aggregate": "SELECT count(*) AS SEX FROM people",
    "group": "SELECT SEX FROM people GROUP BY SEX",
    "group by all": "SELECT SEX FROM people GROUP BY ALL",
    "distinct": "SELECT DISTINCT * FROM people",
    "limit": "SELECT * FROM people LIMIT 9",
    "order": "SELECT * FROM people ORDER BY AGE",
    "sample": "SELECT * FROM people USING SAMPLE 9",
    "a sampled table": "SELECT * FROM people TABLESAMPLE 10%",
    "qualify": "SELECT * FROM people QUALIFY 1 = 1",
    "window": "SELECT *, row_number() OVER () AS n FROM people",
    "window of a sum": "SELECT *, count(*) OVER () AS n FROM people",
    "unnest": "SELECT *, unnest([1, 2]) FROM people",
    "random": "SELECT * FROM people WHERE random() < 0.5",
    "now": "SELECT *, now() AS t FROM people",
    "a word that is a time": "SELECT *, current_date AS t FROM people",
    "the number of a row": "SELECT *, rowid FROM people",
    "a setting's value": "SELECT *, current_setting('threads') AS t FROM people",
    "a macro": "SELECT *, twice(2) AS t FROM people",
    "lambda": "SELECT *, list_transform([1], x -> x + 1) AS l FROM people",
    "columns": "SELECT COLUMNS('A.*') FROM people",
    "replace": "SELECT * REPLACE (1 AS SEX) FROM people",
    "a star in a function": "SELECT coalesce(*COLUMNS(*)) AS SEX FROM people",
    "a view": "SELECT * FROM seen",
    "a file": "SELECT * FROM '/etc/passwd'",
    "a file by function": "SELECT * FROM read_csv('/etc/passwd')",
    "a file's text": "SELECT * FROM read_text('/etc/passwd')",
    "a list of values": "VALUES (1)",
    "no table": "SELECT 1 AS SEX",
    "another table": "SELECT * FROM peple",
    "the catalogue": "SELECT * FROM duckdb_tables",
    "the schema of facts": "SELECT * FROM information_schema.tables",
    "a variable": "SELECT * FROM frame",
    "another column": "SELECT SXE FROM people",
    "types that do not fit": "SELECT AGE + DATE '2020-01-01' + INTERVAL 1 DAY AS AGE FROM people",
    "filter": "SELECT sum(1) FILTER (WHERE true) AS SEX FROM people",
    "a parameter": "SELECT ? AS SEX FROM people",
    "summarize": "SUMMARIZE people",
    "pivot": "PIVOT people ON SEX",
    "how a column is stored": "SELECT *, vector_type(SEX) AS v FROM people",
    "a plan, with what it knows of all rows": "SELECT *, json_serialize_plan('SELECT * FROM people') AS p FROM people",
    "the time since": "SELECT *, age(DATE '2020-01-01') AS a FROM people",
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_query_that_is_more_than_one_row_at_a_time_is_refused_before_anything_is_charged(what, tmp_path):
    path, ledger, frame = written(tmp_path), tmp_path / "people.ledger", small.people()
    with pytest.raises(UsageError, match="query: "):
        opened(path, query=REFUSED[what], ledger=ledger)
    assert frame is not None
    assert not ledger.exists()
    assert not (tmp_path / "out.csv").exists()


@given(text=st.text(max_size=30))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_a_query_or_refused(text, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    path = folder / "people.duckdb"
    if not path.exists():
        written(folder)
    with pytest.raises(UsageError):
        open_source(path, query=text)
    with pytest.raises(UsageError):
        open_source(path, query=f"SELECT * FROM people LIMIT {text}")  # noqa: S608 - to be refused
    with pytest.raises(UsageError):
        open_source(path, table=text)


# The connection


def test_nothing_can_be_written_loaded_or_reached(tmp_path):
    path = written(tmp_path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    with open_source(path, "people").connected() as (connection, _):
        for statement in (
            "CREATE TABLE t (a INTEGER)",
            "INSERT INTO others VALUES (2)",
            "DROP TABLE others",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET threads = 1",
            "SET enable_external_access = true",
            "COPY others TO 'x.csv'",
            "ATTACH 'x.duckdb'",
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM 'https://example.org/x.csv'",
            "EXPORT DATABASE 'x'",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(statement).fetchall()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["people.duckdb"]


def test_the_account_hangs_on_the_database_and_a_fit_is_charged_once(tmp_path, monkeypatch):
    path, ledger = written(tmp_path), tmp_path / "people.ledger"
    with monkeypatch.context() as patch:
        patch.setattr(Stream, "rows", lambda *_, **__: (_ for _ in ()).throw(StratsynthError("interrupted")))
        with pytest.raises(StratsynthError):
            ss.fit(Independent(), opened(path, ledger=ledger), BUDGET)
    ss.fit(Independent(), opened(path, ledger=ledger), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge", "done"]
    assert (tmp_path / "people.duckdb.accounts").exists()
    ss.fit(Independent(), opened(path, query="SELECT * FROM people WHERE SEX = '1'", ledger=ledger), BUDGET)
    with pytest.raises(UsageError, match="has an account already"):
        opened(path)
    with pytest.raises(UsageError, match="so it is not public"):
        opened(path, public=True)


# The fingerprint


def mark(path, table="people", key=KEY, **given):
    return fingerprint(open_source(path, None if given else table, **given), key)


def test_a_fingerprint_is_of_the_rows_whatever_their_order(tmp_path):
    path = written(tmp_path)
    first = mark(path)
    assert first == mark(path) != mark(path, key=b"x" * 32)
    assert first == mark(path, query="SELECT SEX FROM people WHERE AGE = '3'")
    run(path, "INSERT INTO others VALUES (7)", "CREATE TABLE again AS SELECT * FROM people ORDER BY AGE, SEX")
    assert first == mark(path) == mark(path, "again")


NOTICED = {
    "a row more": ["INSERT INTO people SELECT * FROM people LIMIT 1"],
    "a row fewer": ["DELETE FROM people WHERE rowid = 7"],
    "another value": ["UPDATE people SET WORK = 'no' WHERE rowid = 0"],
    "null for a text": ["UPDATE people SET WORK = NULL WHERE rowid = 0"],
    "nothing for a text": ["UPDATE people SET WORK = '' WHERE rowid = 0"],
    "values exchanged between rows": [
        "UPDATE people SET WORK = 'no' WHERE rowid = 0",
        "UPDATE people SET WORK = 'yes' WHERE rowid = 1",
    ],
    "values exchanged between columns": ['UPDATE people SET SEX = "GROUP", "GROUP" = SEX'],
    "two rows twice for one": [
        "DELETE FROM people WHERE rowid = 0",
        "INSERT INTO people SELECT * FROM people WHERE rowid = 1",
    ],
    "another name of a column": ["ALTER TABLE people RENAME WORK TO JOB"],
    "a column more": ["ALTER TABLE people ADD COLUMN X INTEGER"],
}


@pytest.mark.parametrize("change", NOTICED)
def test_a_fingerprint_notices(change, tmp_path):
    path = written(tmp_path)
    before = mark(path)
    run(path, "DROP VIEW seen", *NOTICED[change])
    assert before != mark(path)


def test_null_and_an_empty_text_are_not_the_same(tmp_path):
    path = written(tmp_path)
    run(path, "UPDATE people SET WORK = NULL WHERE rowid = 0")
    before = mark(path)
    run(path, "UPDATE people SET WORK = '' WHERE rowid = 0")
    assert before != mark(path)


ZONED = """
import sys
from pathlib import Path
from stratsynth.data.duckdb_source import DuckDBSource
from stratsynth.data.fingerprint import fingerprint

path = Path(sys.argv[1])
query = "SELECT date_part('hour', T) AS HOUR, CAST(T AS VARCHAR) AS TEXT, T FROM moments"
with DuckDBSource(path, None, query).connected() as (connection, chosen):
    print(connection.sql(chosen.select).to_arrow_table())
print(fingerprint(DuckDBSource(path, "moments"), b"k" * 32))
"""


def test_moments_are_the_same_whatever_the_time_zone_of_the_process(tmp_path):
    path, said = tmp_path / "people.duckdb", []
    run(path, "CREATE TABLE moments AS SELECT TIMESTAMPTZ '2024-07-01 12:00:00+00' AS T")
    for zone in ("America/New_York", "Asia/Tokyo"):
        done = python(ZONED, path, cwd=tmp_path, env={**os.environ, "TZ": zone})
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert "2024-07-01 12:00:00+00" in said[0]
    assert said[0] == said[1]


FAILING = ("CAST('x' AS INTEGER), 1", "error('zebra'), 1", "9223372036854775807 + 1, 1", "1 // list_max([x]) FROM t")


def test_what_fails_on_a_row_is_told_in_the_same_words_whatever_it_is(tmp_path, monkeypatch):
    """Before a charge too: even the class of an error may depend on a single row."""
    source, proper, said, classes = open_source(written(tmp_path), "people"), duckdb_source.select, set(), set()
    for failing in FAILING:
        with pytest.raises(duckdb.Error) as caught:
            duckdb.sql(f"SELECT {failing}").fetchall()
        classes.add(type(caught.value))
        patched = lambda what, table, how=failing: f"SELECT {how}" if "count" in what else proper(what, table)  # noqa: E731
        monkeypatch.setattr(duckdb_source, "select", patched)
        with pytest.raises(UsageError, match="DuckDB cannot read it") as caught:
            fingerprint(source, KEY)
        said.add(str(caught.value))
    assert len(said) == 1 < len(classes)


def test_another_ledgers_rows_are_refused(tmp_path):
    path, ledger = written(tmp_path), tmp_path / "people.ledger"
    ss.fit(Independent(), opened(path, ledger=ledger), BUDGET)
    run(path, "DELETE FROM people WHERE rowid = 7")
    with pytest.raises(LedgerError):
        ss.fit(Independent(), opened(path, ledger=ledger), BUDGET)


@pytest.mark.parametrize("way", ["written", "replaced", "logged"])
def test_a_database_that_changes_after_the_reservation_is_refused(way, tmp_path, monkeypatch):
    path, ledger, read = written(tmp_path), tmp_path / "people.ledger", Stream.rows

    def late(self, **settings):
        if way == "written":
            run(path, "DELETE FROM people WHERE rowid = 7")
        elif way == "replaced":
            (tmp_path / "copy").write_bytes(path.read_bytes())
            (tmp_path / "copy").rename(path)
        else:
            (tmp_path / "people.duckdb.wal").write_bytes(b"something")
        return read(self, **settings)

    monkeypatch.setattr(Stream, "rows", late)
    with pytest.raises(StratsynthError, match=r"changed or replaced|could not be read"):
        ss.fit(Independent(), opened(path, ledger=ledger), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge"]


@pytest.mark.parametrize("name", ["people", "main", "temp", "memory", "a.b", 'it\'s "odd"'])
def test_a_table_is_that_of_its_schema_whatever_database_and_schemas_are_called(name, tmp_path):
    """Names of two parts may be of a schema, or of the database, which is called like its file."""
    path = tmp_path / f"{name}.duckdb"
    with duckdb.connect(str(path)) as connection:
        [(own,)] = connection.execute("SELECT current_database()").fetchall()
        whole = '"' + own.replace('"', '""') + '"'
        for rows, schema in enumerate(("main", "people", "temp"), start=1):
            if schema != "main":
                connection.execute(f'CREATE SCHEMA {whole}."{schema}"')
            connection.execute(f'CREATE TABLE {whole}."{schema}".people AS SELECT i AS SEX FROM range({rows}) r(i)')  # noqa: S608
    for rows, schema in enumerate(("main", "people", "temp"), start=1):
        for names in ({"table": f"{schema}.people"}, {"query": f"SELECT p.SEX FROM {schema}.people p"}):  # noqa: S608
            source = DuckDBSource(path, **names)
            assert source.read(("SEX",)).num_rows == rows
            assert source.parts_to_read() == 1
            fingerprint(source, KEY)


# Several connections of one program


def test_a_database_is_read_while_it_is_read(tmp_path):
    path = written(tmp_path)
    people, others = open_source(path, "people"), open_source(path, "others")
    alone = people.types(), fingerprint(people, KEY)
    with people.connected():
        assert (people.types(), fingerprint(people, KEY)) == alone
        assert others.read(("SEX",)).num_rows == 1
    begun = people.batches(people.columns())
    first = next(begun).num_rows
    assert others.read(("SEX",)).num_rows == 1  # as where an exception is kept, with the reading that it ended
    ss.fit(Independent(), opened(path), BUDGET)
    assert first + sum(batch.num_rows for batch in begun) == SIZE


def test_threads_read_a_database_together(tmp_path):
    path = written(tmp_path)
    alone, start = mark(path), threading.Barrier(4)

    def read(table):
        start.wait()
        return {(mark(path, table), open_source(path, table).read(("SEX",)).num_rows) for _ in range(5)}

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(read, ["people", "others"] * 2))
    assert found[0] == found[2] == {(alone, SIZE)}
    assert found[1] == found[3] == {(mark(path, "others"), 1)}


@pytest.mark.parametrize("order", [0, 1])
def test_every_connection_is_locked_and_of_one_time_zone(order, tmp_path):
    source = open_source(written(tmp_path), "people")
    with source.connected() as (one, _), source.connected() as (other, _):
        connection = (one, other)[order]
        assert connection.execute("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
        for statement in (
            "SET TimeZone = 'Asia/Tokyo'",
            "SET GLOBAL TimeZone = 'Asia/Tokyo'",
            "RESET TimeZone",
            "SET lock_configuration = false",
            "SET threads = 1",
            "SET memory_limit = '9GB'",
        ):
            with pytest.raises(duckdb.Error, match="locked"):
                connection.execute(statement)


def test_a_database_that_keeps_no_settings_is_refused(tmp_path, monkeypatch):
    source = open_source(written(tmp_path), "people")
    for last in (("SET GLOBAL TimeZone = 'UTC'",), ("SET GLOBAL TimeZone = 'Asia/Tokyo'", duckdb_source._LAST[1])):
        monkeypatch.setattr(duckdb_source, "_LAST", last)
        with pytest.raises(Unsupported, match="does not keep its settings"):
            source.types()


def test_what_took_the_place_of_a_database_is_not_read_from_the_old_one(tmp_path):
    """DuckDB gives a second connection of one path what the first one opened."""
    path = written(tmp_path)
    begun = open_source(path, "people").batches(("SEX",))
    next(begun)
    (tmp_path / "new").mkdir()
    written(tmp_path / "new", small.people().astype(str)[:7]).rename(path)
    with pytest.raises(UsageError, match="open nowhere else, not in this program either"):
        open_source(path, "people")
    begun.close()
    assert open_source(path, "people").read(("SEX",)).num_rows == 7


# Refusals


def test_what_names_no_rows_is_refused(tmp_path):
    path = written(tmp_path)
    for names, match in (
        ({}, "either table"),
        ({"table": "people", "query": "SELECT * FROM people"}, "not both"),
        ({"table": "peeple"}, "no table 'peeple'.*people"),
        ({"table": "seen"}, "is a view"),
        ({"table": ""}, "table is a text"),
        ({"table": 7}, "table is a text"),
        ({"query": b"SELECT"}, "query is a text"),
    ):
        with pytest.raises(UsageError, match=match):
            ss.open_table(path, schema=SCHEMA, **names)
    with pytest.raises(UsageError, match="path of a database, not with"):
        ss.open_table(small.people(), schema=SCHEMA, table="people")
    with pytest.raises(SchemaError, match="column WORK"):
        ss.open_table(path, schema=SCHEMA, query='SELECT SEX, "GROUP", AGE FROM people')
    with pytest.raises(UsageError, match="no such file"):
        ss.open_table(tmp_path / "none.duckdb", schema=SCHEMA, table="people")
    (tmp_path / "text.duckdb").write_text("no database, in spite of its name" * 500)
    with pytest.raises(UsageError, match="Is it a DuckDB database"):
        ss.open_table(tmp_path / "text.duckdb", schema=SCHEMA, table="people")


def test_a_table_in_two_schemas_is_named_with_its_own(tmp_path):
    path = written(tmp_path)
    run(path, "CREATE SCHEMA old", "CREATE TABLE old.people AS SELECT * FROM people LIMIT 7")
    with pytest.raises(UsageError, match=r"several schemas: main\.people, old\.people"):
        opened(path)
    assert opened(path, "old.people").backend.rows().counts([((), [("SEX",)])])[0][0].sum() == 7
    assert counts(path, "SELECT * FROM old.people")[0] == [4, 3]


def test_engines_of_other_rows_are_refused(tmp_path):
    path, ledger = written(tmp_path), tmp_path / "people.ledger"
    for engine in ("memory", "stream"):
        with pytest.raises(Unsupported, match='held by engine = "duckdb"'):
            opened(path, engine=engine)
    small.people().to_parquet(tmp_path / "people.parquet")
    with pytest.raises(Unsupported, match="name the file of the database"):
        ss.open_table(tmp_path / "people.parquet", schema=SCHEMA, engine="duckdb")
    run(path, "ALTER TABLE people ADD COLUMN PERSON INTEGER")
    units = dataclasses.replace(SCHEMA, unit=Unit(column="PERSON", max_rows=2))
    with pytest.raises(Unsupported, match="have no order"):
        ss.open_table(path, schema=units, table="people")
    budget = dataclasses.replace(BUDGET, neighbours="replace")
    with pytest.raises(Unsupported, match="write the rows to a Parquet file"):
        ss.fit(External(print, "nobody 1.0"), opened(path, ledger=ledger), budget)
    assert not ledger.exists()


def test_a_database_in_use_is_refused(tmp_path):
    path = written(tmp_path)
    with duckdb.connect(str(path)), pytest.raises(UsageError, match="open nowhere else"):
        opened(path)
    (tmp_path / "people.duckdb.wal").touch()
    with pytest.raises(UsageError, match="run CHECKPOINT"):
        opened(path)


def test_the_command_reads_a_database(tmp_path):
    recipe = small.write_recipe(tmp_path)
    written(tmp_path)
    small.edit(recipe, 'path = "people.csv"', 'path = "people.duckdb"\ntable = "people"\nengine = "duckdb"')
    plan = stratsynth("plan", recipe, "--json", cwd=tmp_path)
    assert plan.returncode == 0, plan.stderr
    assert "duckdb" in json.dumps(json.loads(plan.stdout))
    done = stratsynth("fit", recipe, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert stratsynth("verify", tmp_path / "release", cwd=tmp_path).returncode == 0
    small.edit(recipe, 'table = "people"', 'query = "SELECT * FROM people LIMIT 9"')
    assert "does more than choose" in complaint(stratsynth("fit", recipe, "-o", "again", cwd=tmp_path), 2)
    small.edit(recipe, 'query = "SELECT * FROM people LIMIT 9"', "")
    assert "either table" in complaint(stratsynth("plan", recipe, cwd=tmp_path), 2)


@pytest.mark.parametrize("asked", [{"table": "people"}, {"query": "SELECT * FROM people"}], ids=["table", "query"])
def test_totals_are_not_written_of_a_copy_of_rows_that_have_an_account(tmp_path, asked):
    """Shares of the private rows would be their exact counts, whatever database they were copied into."""
    frame = pd.concat([small.people(), small.people().assign(AGE=3)]).astype(str)
    frame.to_csv(tmp_path / "private.csv", index=False)
    table = ss.open_table(tmp_path / "private.csv", schema=SCHEMA, declared_size=200, ledger=tmp_path / "p.ledger")
    ss.fit("independent", table, BUDGET)
    SCHEMA.write_toml(tmp_path / "schema.toml")
    path, out = written(tmp_path, frame[::-1]), tmp_path / "shares.csv"
    with pytest.raises(UsageError, match=r"people\.duckdb has the rows of private\.csv, which has an account"):
        write_totals(path, tmp_path / "schema.toml", ["SEX"], None, out, **asked)
    assert not out.exists()
    path.unlink()
    other = written(tmp_path, small.people(90).astype(str))
    assert write_totals(other, tmp_path / "schema.toml", ["SEX"], None, out, **asked) == (90, 2)
