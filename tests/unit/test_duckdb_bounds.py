"""One record of a database never decides whether a fit succeeds, and different rows have different fingerprints."""

import itertools

import pytest

import stratsynth as ss
from helpers.ledgers import kinds
from helpers.small import BUDGET, SCHEMA, SIZE, people
from stratsynth.adapters import Independent
from stratsynth.data import duckdb_source
from stratsynth.data.duckdb_source import DuckDBSource
from stratsynth.data.fingerprint import fingerprint
from stratsynth.data.sources import open_source
from stratsynth.data.stream import Stream
from stratsynth.errors import LedgerError, StratsynthError, UsageError

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed; scripts/test --with duckdb installs it")
pytestmark = pytest.mark.duckdb

KEY = b"k" * 32


def made(path, *statements):
    with duckdb.connect(str(path)) as connection:
        connection.register("given", people().astype(str))
        for statement in statements or ("CREATE TABLE people AS SELECT * FROM given",):
            connection.execute(statement)
    return path


def found(path, query):
    with DuckDBSource(path, None, query).connected() as (connection, chosen):
        return connection.execute(chosen.select).fetchall()


GROWING = {
    "replace": "replace(r, 'a', r)",
    "regexp_replace": "regexp_replace(r, 'a', r, 'g')",
    "what was found, again and again": f"regexp_replace(r, '.*', '{chr(92)}0' || r)",
    "many times what was found": f"regexp_replace(r, '.*', '{(chr(92) + '0') * 6}')",
    "lpad": "lpad(r, CAST(n AS INTEGER), 'x')",
    "rpad": "rpad(r, n, 'x')",
    "lpad by an expression": "lpad(r, 9 * 9, 'x')",
    "lpad far": "lpad(r, 99999, 'x')",
    "twice and twice": "replace(replace(r, 'a', 'aaaaaaaaaaaa'), 'a', 'aaaaaaaaaaaa')",
    "many joined": " || ".join(["r"] * 20),
    "many joined at once": f"concat({', '.join(['r'] * 20)})",
    "all but a number": f"length(replace({' || '.join(['r'] * 9)}, 'a', 'bbbb'))",
    "in a condition": f"CASE WHEN {' || '.join(['r'] * 20)} = 'a' THEN 'a' END",
    "wide letters": f"upper(lower({' || '.join(['r'] * 5)}))",
    "lists": "CAST(r AS VARCHAR[])",
    "a column of lists": "len(l)",
    "a repetition": "repeat(r, 1000000)",
    "a format": "printf('%1000000d', n)",
}


@pytest.mark.parametrize("what", GROWING)
def test_an_expression_that_a_record_may_lengthen_is_refused(what, tmp_path):
    path = made(tmp_path / "t.duckdb", "CREATE TABLE t AS SELECT 'a' AS r, 3 AS n, ['a'] AS l")
    for query in (f"SELECT {GROWING[what]} AS a FROM t", f"SELECT r FROM t WHERE {GROWING[what]} = 'x'"):  # noqa: S608
        with pytest.raises(UsageError, match=r"^query: "):
            open_source(path, query=query)


def test_expressions_of_bounded_length_are_run(tmp_path):
    path = made(tmp_path / "t.duckdb", "CREATE TABLE t AS SELECT 'ab' AS r, 3 AS n, DATE '2024-01-02' AS d")
    query = (
        "SELECT lpad(r, 5, '0'), r || '-' || n, concat(r, n, d), replace(r, 'a', 'xyz'), translate(r, 'a', 'é'), "
        "regexp_replace(r, '(a)', '\\1\\1'), upper(trim(r)), coalesce(r, 'none'), year(d) + n, CAST(n AS VARCHAR), "
        "CASE WHEN r = 'ab' THEN 'x' ELSE r END FROM t p WHERE p.r LIKE 'a%' AND r || r IN ('abab', 'x')"
    )
    assert found(path, query) == [("000ab", "ab-3", "ab32024-01-02", "xyzb", "éb", "aab", "AB", "ab", 2027, "3", "x")]


@pytest.mark.parametrize("expression", ["lpad(r, n, 'x')", "random()", "upper(r)"])
def test_a_column_that_the_database_computes_is_refused(expression, tmp_path):
    path = made(
        tmp_path / "t.duckdb", f"CREATE TABLE t (r VARCHAR, n INTEGER, a VARCHAR GENERATED ALWAYS AS ({expression}))"
    )
    for names in ({"table": "t"}, {"query": "SELECT r FROM t"}, {"query": "SELECT a FROM t"}):
        with pytest.raises(UsageError, match=r"its column a is computed by an expression"):
            open_source(path, **names)


def test_a_long_value_is_null_and_its_row_like_any_other(tmp_path):
    columns = "repeat('x', {0}) AS r, CAST(repeat('x', {0}) AS BLOB) AS b, CAST(repeat('7', {0}) AS JSON) AS j"
    path = made(tmp_path / "t.duckdb", f"CREATE TABLE t AS SELECT {columns.format(4000)}")
    made(path, f"INSERT INTO t SELECT {columns.format(4001)}")
    for names in ({"table": "t"}, {"query": "SELECT * FROM t"}, {"query": "SELECT r, b, j FROM t WHERE true"}):
        rows = open_source(path, **names).read(("r", "b", "j")).to_pylist()
        assert sorted([value and len(value) for value in row.values()] for row in rows if row["r"]) == [[4000] * 3]
        assert [row for row in rows if not row["r"]] == [{"r": None, "b": None, "j": None}]
    lengths = found(path, "SELECT length(r || 'y') FROM t WHERE r IS NOT NULL OR true")
    assert sorted(lengths, key=str) == [(4001,), (None,)]


@pytest.mark.parametrize("kind", ["VARCHAR", "BLOB"])
def test_a_very_long_value_outside_the_schema_stops_no_fit(kind, tmp_path, monkeypatch):
    """Reading it takes twice its length: the fingerprint is taken with more memory where it must be."""
    monkeypatch.setattr(duckdb_source, "MEMORY", 64)
    monkeypatch.setattr(duckdb_source, "AMPLE", 90)
    path = made(
        tmp_path / "people.duckdb",
        "CREATE TABLE people AS SELECT * FROM given",
        f"ALTER TABLE people ADD COLUMN note {kind}",
        f"UPDATE people SET note = CAST(repeat('x', 40000000) AS {kind}) WHERE rowid = 3",  # noqa: S608 - a constant
    )
    ss.fit(Independent(), ss.open_table(path, schema=SCHEMA, declared_size=SIZE, table="people"), BUDGET)


ROWS = ("(NULL)", "('')", "('-')", "(chr(30))", "('0:')", "('a')", "('1:a')", "(chr(31))")
PAIRS = ("('1' || chr(31) || '2', 'x')", "('1', '2' || chr(31) || 'x')", "('1', '2')", "('12', NULL)", "('1', NULL)",
         "(NULL, '1')", "('1:1', '')", "('', '1:1')", "('-', NULL)", "(NULL, '-')",
         "(repeat('x', 1000), 'y')", "('#' || md5(repeat('x', 1000)), 'y')")  # fmt: skip


@pytest.mark.parametrize("rows", [ROWS, PAIRS])
def test_different_rows_have_different_fingerprints(rows, tmp_path):
    names = "a" if rows is ROWS else "a, b"
    path = made(
        tmp_path / "t.duckdb",
        *(f"CREATE TABLE t{i} AS SELECT * FROM (VALUES {row}) v({names})" for i, row in enumerate(rows)),  # noqa: S608
    )
    marks = [fingerprint(DuckDBSource(path, f"t{i}"), KEY) for i in range(len(rows))]
    assert len(set(marks)) == len(rows)


def test_both_halves_of_a_rows_hash_count(tmp_path):
    path = made(tmp_path / "t.duckdb", "CREATE TABLE t AS SELECT 'a' AS a")
    source = DuckDBSource(path, "t")
    with source.open() as file:
        [content] = source.contents(file)
    names, rows, low, high = eval(content)  # noqa: S307 - ours
    assert (names, rows) == (("a",), 1)
    assert 0 < int(low) < 2**64 > int(high) > 0
    assert int(low) != int(high)


OLD = "699034a31184ec0f325d3bfbaeb701b44e0e21bc5f55605188c149812a094e9d"


def test_the_fingerprint_of_earlier_versions_is_still_known(tmp_path):
    path = made(
        tmp_path / "t.duckdb",
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', NULL), (2, NULL, 'x'), (2, '', chr(30))) v(a, b, c)",
    )
    assert DuckDBSource(path, "t").older_fingerprint(KEY) == OLD != fingerprint(DuckDBSource(path, "t"), KEY)


def test_a_ledger_of_an_earlier_version_goes_on_with_its_database(tmp_path, monkeypatch):
    """It knows the table by the fingerprint of before, and an interrupted fit is charged once."""
    path, ledger = made(tmp_path / "people.duckdb"), tmp_path / "people.ledger"

    def opened():
        return ss.open_table(path, schema=SCHEMA, declared_size=SIZE, table="people", ledger=ledger)

    with monkeypatch.context() as patch:
        patch.setattr(Stream, "fingerprint", lambda self, key: self.source.older_fingerprint(key))
        patch.setattr(Stream, "rows", lambda *_, **__: (_ for _ in ()).throw(StratsynthError("interrupted")))
        with pytest.raises(StratsynthError, match="interrupted"):
            ss.fit(Independent(), opened(), BUDGET)
    ss.fit(Independent(), opened(), BUDGET)
    ss.fit(Independent(), opened(), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge", "done", "reserve", "charge", "done"]
    made(path, "UPDATE people SET SEX = '2' WHERE rowid = 0")
    with pytest.raises(LedgerError, match="belongs to other data"):
        ss.fit(Independent(), opened(), BUDGET)
    assert len(set(itertools.chain(kinds(ledger)))) == 4
