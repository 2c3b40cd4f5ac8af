"""The engine "spark" on a local cluster of two workers: the same releases as from memory, and what it refuses."""

import dataclasses
import datetime as dt
import decimal
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w

import stratsynth as ss
from helpers import small
from helpers.ledgers import kinds, without_account
from helpers.small import BUDGET, SCHEMA, SIZE
from helpers.spark import MARKS, MASTER, cluster, settings_of
from stratsynth import cli, progress
from stratsynth.adapters import AIM, MST, CoinPress, External, Independent
from stratsynth.data import spark, spark_progress, spark_source, spark_tasks
from stratsynth.data.fingerprint import fingerprint
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.data.spark_source import SparkSource
from stratsynth.errors import LedgerError, SchemaError, StratsynthError, Unsupported, UsageError
from stratsynth.evaluation import streamed_workload_error, workload_error
from stratsynth.noise import SeededEntropy
from stratsynth.recipes.recipe import Recipe
from stratsynth.schema import Unit
from stratsynth.schema.weight import RowWeight
from stratsynth.strata import Stratum
from stratsynth.testing.record import identical

pytestmark = MARKS
KEY = b"k" * 32
CANARY = "Eleonora-of-Ravenna"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def session(home):
    with cluster(home) as found:
        yield found


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


def frame_of(session, data, partitions=3):
    table = data if isinstance(data, pa.Table) else arrow(data)
    with spark_source.quiet():
        return session.createDataFrame(table).repartition(partitions)


TOSSED = "conv(substr(reflect('java.util.UUID', 'randomUUID'), 1, 1), 16, 10) % 9 AS AGE"
"""Ages that come out otherwise each time; Spark's own random numbers do not where rows come in the same order."""


def parquet(tmp_path, data=None, group=7):
    path = tmp_path / "people.parquet"
    pq.write_table(arrow(small.people().astype(str)) if data is None else data, path, row_group_size=group)
    return path


def folder(tmp_path, session):
    """Write partitions as Spark itself does."""
    path = tmp_path / "people"
    frame_of(session, small.people().astype(str)).write.partitionBy("SEX").parquet(str(path))
    return path


PUBLIC = ss.Weights.public(small.shares_frame(), citation="made up for testing")
HOW = {
    "independent": Independent,
    "mst in strata": lambda: ss.Stratified(MST(), ["SEX", "GROUP"], PUBLIC),
    "a merge": lambda: ss.Stratified(
        AIM(rounds=2), ["SEX", "GROUP"], PUBLIC, ss.Groups(merge={"GROUP": {"both": ["a", "b"]}})
    ),
    "private weights": lambda: ss.Stratified(Independent(), ["SEX"], ss.Weights.private(share=0.2)),
}
WHERE = ["file", "folder", "frame", "one partition", "more partitions than rows", "table"]


def held(where, tmp_path, session):
    if where == "file":
        return parquet(tmp_path)
    if where == "folder":
        return folder(tmp_path, session)
    parts = {"frame": 3, "one partition": 1, "more partitions than rows": 130, "table": 2}[where]
    frame = frame_of(session, small.people().astype(str), parts)
    if where != "table":
        return frame
    frame.createOrReplaceTempView("people")
    return SparkSource.table("people")


def opened(data, **more):
    return ss.open_table(data, schema=SCHEMA, declared_size=SIZE, **{"engine": "spark", **more})


@pytest.mark.parametrize(
    ("how", "where"),
    [*(("mst in strata", where) for where in WHERE), *((how, "frame") for how in HOW if how != "mst in strata")],
)
def test_releases_are_those_of_rows_in_memory(how, where, tmp_path, session):
    one, other = (
        ss.fit(HOW[how](), table, BUDGET, seed=1, entropy=SeededEntropy(1))
        for table in (opened(small.people().astype(str), engine="memory"), opened(held(where, tmp_path, session)))
    )
    assert one.measurements.equals(other.measurements)
    assert identical(one.model.state(), other.model.state())
    assert without_account(one) == without_account(other)


def counted(table, asked):
    return [found.tolist() for tables in table.backend.rows().counts(asked) for found in tables]


ODD = ss.Schema(
    {
        "D": ss.Numeric(lower=0, upper=10, edges=(0, 1.5, 4, 10), missing=True),
        "T": ss.Temporal(kind="date", lower="2024-01-01", upper="2024-12-31", bins=10, missing=True),
        "M": ss.Temporal(kind="datetime", lower="2024-01-01", upper="2024-12-31 23:59:59", bins=9, missing=True),
        "L": ss.Temporal(kind="datetime", lower="2024-01-01", upper="2024-12-31 23:59:59", bins=7, missing=True),
        "B": ss.Categorical(levels=("true", "false", "none"), outside="none"),
        "N": ss.Categorical(levels=("x", "none"), outside="none"),
        "F": ss.Numeric(lower=0, upper=1, edges=(0, 0.1, 0.5, 1), missing=True),
        "with.dot": ss.Categorical(levels=("1", "2")),
        "WITH.dot": ss.Categorical(levels=("3", "2")),
    }
)


def odd_rows():
    n, day = 60, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    moments = [None if i % 7 == 0 else day + dt.timedelta(hours=97 * i) for i in range(n)]
    return pa.table(
        {
            "D": pa.array([None if i % 5 == 0 else decimal.Decimal(i) / 4 for i in range(n)], pa.decimal128(9, 2)),
            "T": pa.array([None if m is None else m.date() for m in moments], pa.date32()),
            "M": pa.array(moments, pa.timestamp("us", "UTC")),
            "L": pa.array([None if m is None else m.replace(tzinfo=None) for m in moments], pa.timestamp("us")),
            "B": pa.array([None if i % 3 == 0 else i % 2 == 0 for i in range(n)], pa.bool_()),
            "N": pa.array([None] * n, pa.string()),
            "F": pa.array(
                [None if i % 4 == 0 else float("nan") if i % 9 == 0 else i / 60 for i in range(n)], pa.float32()
            ),
            "with.dot": pa.array([i % 2 + 1 for i in range(n)], pa.int16()),
            "WITH.dot": pa.array([str(i % 2 + 2) for i in range(n)], pa.string()),
        }
    )


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_decimals_moments_truth_values_and_nulls_are_read_as_in_memory(zone, tmp_path, session):
    """Whatever the session's time zone; names that differ in case or hold dots are columns of their own."""
    from pyspark.sql import functions

    asked = [((), [(name,) for name in ODD.names] + [("D", "M"), ("B", "F"), ("with.dot", "WITH.dot")])]
    session.conf.set("spark.sql.session.timeZone", zone)
    try:
        path, plain = tmp_path / "odd.parquet", tmp_path / "plain.parquet"
        pq.write_table(odd_rows(), path, row_group_size=9)
        pq.write_table(odd_rows().rename_columns([f"x{i}" for i in range(len(ODD.names))]), plain)
        frame = session.read.parquet(str(plain)).repartition(4)
        frame = frame.withColumn(f"x{ODD.names.index('N')}", functions.lit(None)).toDF(*ODD.names)
        assert [f.dataType.typeName() for f in frame.schema.fields][:6] == [
            "decimal",
            "date",
            "timestamp",
            "timestamp_ntz",
            "boolean",
            "void",
        ]
        tables = [
            ss.open_table(data, schema=ODD, engine=engine)
            for data, engine in ((path, "memory"), (path, "spark"), (frame, "auto"), (frame, "memory"))
        ]
        one, *others = (counted(table, asked) for table in tables)
    finally:
        session.conf.unset("spark.sql.session.timeZone")
    assert [found == one for found in others] == [True] * 3
    assert all(np.sum(table) > 0 for table in one)


def test_weights_of_rows_and_several_passes_give_the_tables_of_memory(tmp_path, session, monkeypatch):
    schema = dataclasses.replace(SCHEMA, row_weight=RowWeight(column="W", most=9))
    data = small.people().assign(W=np.arange(SIZE) % 14 - 2)
    paths = [(), (Stratum.of({"SEX": "1"}),), (Stratum.of({"SEX": "2", "GROUP": ["a", "b"]}),)]
    asked = [(path, [("AGE",), ("AGE", "WORK"), ("WORK",)]) for path in paths]
    wanted = counted(ss.open_table(data, schema=schema), asked)
    table = ss.open_table(frame_of(session, data), schema=schema)
    assert counted(table, asked) == wanted
    seen, proper = [], spark_source.collected
    monkeypatch.setattr(spark, "cells_at_once", lambda _: 10)
    monkeypatch.setattr(spark, "collected", lambda *given: seen.append(given[2]) or proper(*given))
    assert counted(table, asked) == wanted
    assert seen == [3, 9, 3 + 3, 9, 3 + 3, 9, 3]


def test_counting_has_a_line_with_the_tasks_it_has(session, monkeypatch):
    seen = []

    class Shown:
        def add_task(self, what, total):
            seen.append([what, total, 0])
            return seen[-1]

        def update(self, task, advance):
            task[2] += advance

        def remove_task(self, task):
            task.append("gone")

    monkeypatch.setattr(spark_progress, "LOOK", 0.01)
    table = opened(slow(frame_of(session, small.people().astype(str), 4)))
    token = progress._SHOWN.set(Shown())
    try:
        counted(table, [((), [("SEX",)])])
    finally:
        progress._SHOWN.reset(token)
    [[what, total, done, end]] = seen
    assert (what, total, end) == ("counting in Spark", 4, "gone")
    assert 1 <= done <= 7  # of tasks that shuffle and tasks that count, all but those that end last


def slow(frame):
    """The frame's rows, by tasks that take long enough to be seen."""

    def slowly(batches):
        import time

        time.sleep(0.5)
        yield from batches

    with spark_source.quiet():
        return frame.mapInArrow(slowly, frame.schema)


# Tasks that fail, and rows that change


def failing_once(frame, marks):
    """The frame's rows, by tasks of which one fails at its end when it is first tried, and leaves a mark then."""

    def spoiled(batches):
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        yield from batches
        if context.partitionId() == 1 and context.attemptNumber() == 0:
            Path(marks, f"stage-{context.stageId()}").touch()
            raise RuntimeError("this task fails once")

    return frame.mapInArrow(spoiled, frame.schema)


def test_a_task_that_is_tried_again_counts_once(tmp_path, session):
    frame = frame_of(session, small.people().astype(str), 4)
    with spark_source.quiet():
        table = opened(failing_once(frame, str(tmp_path)))
    asked = [((), [("SEX",), ("AGE", "WORK")])]
    assert counted(table, asked) == counted(opened(small.people().astype(str), engine="memory"), asked)
    assert table.backend.fingerprint(KEY) == opened(frame).backend.fingerprint(KEY)
    assert len(list(tmp_path.glob("stage-*"))) == 2  # in the count and in the fingerprint


def spoiled_later(frame, flag):
    """The frame's rows until a file appears; then every task fails."""

    def spoiled(batches):
        from pathlib import Path

        for batch in batches:
            if Path(flag).exists():
                raise RuntimeError("a value of a row")
            yield batch

    return frame.mapInArrow(spoiled, frame.schema)


def test_a_job_that_fails_after_the_charge_leaves_it_and_is_resumed_without_another(tmp_path, session, monkeypatch):
    flag, ledger, proper = tmp_path / "flag", tmp_path / "people.ledger", spark.Spark.rows
    frame = frame_of(session, small.people().astype(str))
    with spark_source.quiet():
        table = opened(spoiled_later(frame, str(flag)), ledger=ledger)
    monkeypatch.setattr(spark.Spark, "rows", lambda self, **how: flag.touch() or proper(self, **how))
    with pytest.raises(StratsynthError, match="could not be counted in Spark; the charge stands") as refused:
        ss.fit(Independent(), table, BUDGET)
    assert "a value of a row" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__
    assert kinds(ledger) == ["ledger", "reserve", "charge"]
    monkeypatch.undo()
    ss.fit(Independent(), opened(frame.repartition(2), ledger=ledger), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge", "done"]


KILLED = """
import sys
from pyspark.sql import SparkSession
from helpers.small import BUDGET, SCHEMA, SIZE
from stratsynth.adapters import Independent
import stratsynth as ss

path, ledger = sys.argv[1:]

def slowly(batches):
    import time
    time.sleep(60)
    yield from batches

session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = session.read.parquet(path)
table = ss.open_table(frame, schema=SCHEMA, declared_size=SIZE, ledger=ledger)
proper = type(table.backend).rows
source = table.source
type(table.backend).rows = lambda self, **how: proper(self.slow(), **how)
type(table.backend).slow = lambda self: type(self)(
    type(source)(frame.mapInArrow(slowly, frame.schema)), self.schema, self.session
)
ss.fit(Independent(), table, BUDGET)
"""


def test_a_driver_that_is_killed_in_a_pass_is_resumed_without_a_second_charge(tmp_path, session):
    """The charge is left behind, and nothing of the rows in the folders of Spark."""
    path, ledger, logs = parquet(tmp_path), tmp_path / "people.ledger", tmp_path / "logs"
    settings = {**os.environ, **settings_of(tmp_path / "spark"), "PYTHONPATH": str(Path(__file__).parents[1])}
    with logs.open("w", encoding="utf-8") as said:
        fit = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", KILLED, path, ledger], env=settings, stdout=said, stderr=said
        )
        until = time.monotonic() + 120
        while time.monotonic() < until and not (ledger.exists() and "charge" in kinds(ledger)):
            assert fit.poll() is None, logs.read_text(encoding="utf-8")
            time.sleep(0.2)
        time.sleep(3)  # into the pass
        fit.kill()
        fit.wait()
    assert kinds(ledger) == ["ledger", "reserve", "charge"]
    kept = [file for file in (tmp_path / "spark" / "local").rglob("*") if file.is_file()]
    assert [file for file in kept if b"zebra" in file.read_bytes()] == []
    ss.fit(Independent(), opened(session.read.parquet(str(path)), ledger=ledger), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge", "done"]


def test_an_engine_goes_on_where_another_was_interrupted(tmp_path, session, monkeypatch):
    """Files have one fingerprint whatever counts them."""
    path, ledger = parquet(tmp_path), tmp_path / "people.ledger"
    with monkeypatch.context() as patch:
        patch.setattr(spark, "collected", lambda *given: 1 / 0 if given[2:] else spark_source.collected(*given))
        with pytest.raises(StratsynthError, match="the charge stands"):
            ss.fit(Independent(), opened(path, ledger=ledger), BUDGET)
    ss.fit(Independent(), opened(path, ledger=ledger, engine="memory"), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge", "done"]


@pytest.mark.parametrize("where", ["file", "frame"])
def test_rows_that_change_after_the_reservation_are_refused(where, tmp_path, session, monkeypatch):
    path, ledger, proper = parquet(tmp_path), tmp_path / "people.ledger", spark.Spark.rows
    data = path if where == "file" else session.read.parquet(str(path))

    def late(self, **settings):
        parquet(tmp_path, arrow(small.people().astype(str).assign(AGE="1")))
        return proper(self, **settings)

    table = opened(data, ledger=ledger)
    monkeypatch.setattr(spark.Spark, "rows", late)
    with pytest.raises(LedgerError, match=r"changed or replaced|has other rows than when its fingerprint was taken"):
        ss.fit(Independent(), table, BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge"]


# Fingerprints


def mark(session, data, partitions=3, key=KEY):
    return fingerprint(SparkSource(frame_of(session, data, partitions)), key)


def test_a_frames_fingerprint_knows_rows_and_neither_order_nor_partitions(session):
    rows = pd.DataFrame({"A": ["x", "y", None, "y"], "B": [1.5, None, 2.0, None], "C": [1, 2, 3, 2]})
    plain = mark(session, rows)
    assert re.fullmatch("[0-9a-f]{64}", plain)
    assert plain == mark(session, rows.iloc[::-1], 1) == mark(session, rows[["C", "A", "B"]], 7)
    assert plain != mark(session, rows, key=b"x" * 32)
    changes = {
        "a row more": pd.concat([rows, rows.iloc[[1]]]),
        "a row fewer": rows.iloc[:3],
        "a pair more": pd.concat([rows, rows.iloc[[1, 1]]]),
        "another value": rows.assign(C=[1, 2, 3, 4]),
        "values exchanged between rows": rows.assign(C=[2, 1, 3, 2]),
        "another name": rows.rename(columns={"A": "D"}),
        "another type": rows.assign(C=rows["C"].astype("int32")),
        "null and value exchanged": rows.assign(A=["x", None, "y", "y"], B=[1.5, None, 2.0, None]),
    }
    assert [change for change, other in changes.items() if mark(session, other) == plain] == []


def test_lists_and_maps_are_not_looked_at(session):
    frame = frame_of(session, small.people())
    assert fingerprint(SparkSource(frame.selectExpr("*", "array(AGE) AS L", "map(1, AGE) AS M")), KEY) == fingerprint(
        SparkSource(frame), KEY
    )


def test_a_frame_that_comes_out_otherwise_each_time_is_refused(session):
    frame = frame_of(session, small.people().astype(str)).selectExpr("SEX", "GROUP", TOSSED, "WORK")
    with pytest.raises(LedgerError, match="must be written to a table or to Parquet files first"):
        ss.fit(Independent(), opened(frame), BUDGET)


def test_a_frame_in_memory_that_comes_out_otherwise_each_time_is_refused(tmp_path, session):
    """It is read into this process, and compared with its fingerprint there too."""
    rows, ledger = frame_of(session, small.people().astype(str)), tmp_path / "people.ledger"
    frame = rows.selectExpr("SEX", "GROUP", TOSSED, "WORK")
    with pytest.raises(LedgerError, match="has other rows than when its fingerprint was taken"):
        ss.fit(Independent(), opened(frame, engine="memory", ledger=ledger), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge"]
    ss.fit(Independent(), opened(rows, engine="memory"), BUDGET)


@pytest.mark.parametrize("engine", ["spark", "memory"])
def test_a_frame_without_rows_or_partitions_is_fitted_like_any_other(engine, tmp_path, session):
    """A refusal would tell that there is nobody."""
    rows = frame_of(session, small.people().astype(str))
    for place, empty in enumerate((session.createDataFrame([], rows.schema), rows.where("SEX = 'x'"))):
        ledger = tmp_path / f"{place}.ledger"
        ss.fit(Independent(), opened(empty, engine=engine, ledger=ledger), BUDGET)
        assert kinds(ledger) == ["ledger", "reserve", "charge", "done"]
        if engine == "spark":
            assert counted(opened(empty), [((), [("SEX",)])]) == [[0, 0]]
    table = opened(session.createDataFrame([], rows.schema))
    table.backend.fingerprint(KEY)
    table.source.check(table.backend.columns, ())  # as a pass over no partition says
    table.source.check(table.backend.columns, (0,))  # over partitions without a row
    with pytest.raises(LedgerError):
        table.source.check(table.backend.columns, (1, 2, 3))


@pytest.mark.parametrize("way", ["between", "during"])
def test_a_file_that_is_replaced_by_one_of_its_size_and_time_is_refused(way, tmp_path, session, monkeypatch):
    """Executors tell files by size and time; the driver, which took the fingerprint, by more, before and after."""
    path, ledger, proper = parquet(tmp_path), tmp_path / "people.ledger", spark_source.collected
    before = path.stat()

    def replaced():
        content = bytearray(path.read_bytes())
        path.unlink()
        path.write_bytes(content)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def late(frame, task, *cells):
        found = proper(frame, task, *cells)
        if cells and way == "during":
            replaced()
        return found

    monkeypatch.setattr(spark, "collected", late)
    table = opened(path, ledger=ledger)
    if way == "between":
        monkeypatch.setattr(type(table.backend), "rows", lambda self, **_: replaced() or spark.SparkRows(self))
    with pytest.raises(LedgerError, match="changed or replaced"):
        ss.fit(Independent(), table, BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge"]


def test_the_stamp_is_of_the_file_that_was_opened(tmp_path, session, monkeypatch):
    """And not of one that takes its place before executors are told."""
    path = parquet(tmp_path)
    table, mark = opened(path), spark_tasks.stamp(str(path))

    def late(sizes, most):
        parquet(tmp_path, arrow(small.people(3 * SIZE).astype(str)))
        return iter([tuple(range(len(sizes)))])

    with monkeypatch.context() as patch:
        patch.setattr(spark, "runs", late)
        (piece,) = table.backend.pieces()
    assert piece.stamp == mark != spark_tasks.stamp(str(path))


# Refusals


def test_what_spark_cannot_hold_is_refused_before_anything_is_charged(tmp_path, session):
    ledger, frame = tmp_path / "people.ledger", frame_of(session, small.people().astype(str).assign(PERSON="1"))
    units = dataclasses.replace(SCHEMA, unit=Unit(column="PERSON", max_rows=2))
    with pytest.raises(Unsupported, match="have no order"):
        ss.open_table(frame, schema=units)
    with pytest.raises(Unsupported, match="have no order"):
        ss.open_table(frame, schema=units, engine="memory")
    with pytest.raises(Unsupported, match="engine 'stream': these rows are held by the engine \"spark\""):
        opened(frame, engine="stream")
    with pytest.raises(Unsupported, match="Parquet files, not a frame in memory"):
        opened(small.people())
    small.people().to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(Unsupported, match=r"Parquet files, not people\.csv; write it as Parquet"):
        opened(tmp_path / "people.csv")
    with pytest.raises(SchemaError, match="column WORK must be in the data once, and is there nowhere"):
        opened(frame.drop("WORK"))
    with pytest.raises(SchemaError, match="column WORK must be in the data once, and is there more than once"):
        opened(frame.select("*", "WORK"))
    with pytest.raises(SchemaError, match="column WORK has type array; it must hold text"):
        opened(frame.selectExpr("SEX", "GROUP", "AGE", "array(WORK) AS WORK"))
    for how in (CoinPress(columns=["AGE"]), External(print, "nobody 1.0")):
        with pytest.raises(Unsupported, match=r'which these rows cannot answer; take engine = "memory"'):
            ss.fit(how, opened(frame, ledger=ledger), dataclasses.replace(BUDGET, neighbours="replace"))
    assert not ledger.exists()


def test_what_needs_sums_takes_a_frame_into_memory(session):
    table = opened(frame_of(session, small.people()), engine="memory")
    assert ss.fit(CoinPress(columns=["AGE"]), table, BUDGET) is not None


def test_a_table_that_spark_does_not_know_is_refused(session):
    with pytest.raises(UsageError, match=r"Spark cannot open a table 'census\.people'"):
        SparkSource.table("census.people")


def test_executors_without_the_package_are_refused_before_anything_is_charged(tmp_path, session, monkeypatch):
    ledger = tmp_path / "people.ledger"
    for module in (spark, spark_source):
        monkeypatch.setattr(module, "VERSION", "0.0.1")
    for data in (parquet(tmp_path), frame_of(session, small.people().astype(str))):
        with pytest.raises(UsageError, match="Spark's executors lack stratsynth"):
            ss.fit(Independent(), opened(data, ledger=ledger), BUDGET)
    assert kinds(ledger) == []


def test_files_that_executors_do_not_see_are_refused_before_anything_is_charged(tmp_path, session, monkeypatch):
    ledger = tmp_path / "people.ledger"
    monkeypatch.setattr(spark, "stamp", lambda _: (1, 1))
    with pytest.raises(UsageError, match="executors do not see the files as they are here"):
        ss.fit(Independent(), opened(parquet(tmp_path), ledger=ledger), BUDGET)
    assert kinds(ledger) == []


# Recipes and commands


def recipe(tmp_path, **data):
    SCHEMA.write_toml(tmp_path / "schema.toml")
    document = {
        "data": {"schema": "schema.toml", "declared_size": SIZE, "engine": "spark", **data},
        "mechanism": {"name": "mst"},
        "budget": {"epsilon": 1.0, "delta": 1e-9, "ledger": "people.ledger"},
        "release": {"directory": "release", "seed": 1},
    }
    (tmp_path / "recipe.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    return tmp_path / "recipe.toml"


def test_a_recipe_names_a_table(tmp_path, session):
    held("table", tmp_path, session)
    release = Recipe.read(recipe(tmp_path, table="people")).run(tmp_path / "release")
    assert len(pq.read_table(tmp_path / "release" / "synthetic.parquet")) == SIZE
    assert release.certificate["guarantee"]["epsilon"] == pytest.approx(1.0)
    with pytest.raises(UsageError, match="Spark cannot open a table 'persons'"):
        Recipe.read(recipe(tmp_path, table="persons")).run(tmp_path / "other")
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve", *["charge"] * 5, "done"]


def test_the_documented_command_fits_on_two_workers(tmp_path):
    """In a process of its own, with a session that `stratsynth` starts."""
    parquet(tmp_path)
    path = recipe(tmp_path, path="people.parquet")
    settings = {**settings_of(tmp_path / "spark"), "PYSPARK_SUBMIT_ARGS": f"--master {MASTER} pyspark-shell"}
    command = [sys.executable, "-P", "-m", "stratsynth", "fit", str(path)]
    made = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=300
    )
    assert made.returncode == 0, made.stderr
    logs = [path.read_text(encoding="utf-8") for path in tmp_path.glob("spark/home/work/app-*/*/stderr")]
    assert any("Finished task" in log for log in logs)  # in a worker's process, not in this one's
    assert (tmp_path / "release" / "certificate.json").is_file()


# Marginals of a release against rows in Spark


def test_marginals_are_scored_where_the_rows_are_and_nothing_else_is(tmp_path, session):
    frame = frame_of(session, small.people().astype(str))
    real, synthetic = parquet(tmp_path), tmp_path / "synthetic.parquet"
    pq.write_table(arrow(small.people(70).astype(str)), synthetic)
    one, other = (streamed_workload_error(data, synthetic, SCHEMA, 2, ["SEX", "GROUP"]) for data in (real, frame))
    pd.testing.assert_frame_equal(one, other)
    with pytest.raises(Unsupported, match="rows in Spark are not scored row by row"):
        workload_error(frame, synthetic, SCHEMA, 2)


@pytest.mark.parametrize("where", ["path", "table"])
def test_the_command_scores_marginals_against_the_rows_of_a_recipe(where, tmp_path, session, capsys, monkeypatch):
    real, seen, proper = parquet(tmp_path), [], spark.Spark.count
    monkeypatch.setattr(spark.Spark, "count", lambda self, *given: seen.append(self.source) or proper(self, *given))
    frame_of(session, small.people().astype(str)).createOrReplaceTempView("persons")
    pq.write_table(arrow(small.people(70).astype(str)), tmp_path / "made.parquet")
    path = recipe(tmp_path, **{where: "people.parquet" if where == "path" else "persons"})
    command = ["evaluate", "--real", str(path), "--synthetic", str(tmp_path / "made.parquet"), "--by", "SEX", "-k", "2"]
    assert cli.run([*command, "--marginals-only", "-o", str(tmp_path / "out")]) == 0, capsys.readouterr().err
    found = pd.read_parquet(tmp_path / "out" / "workload.parquet")
    expected = workload_error(real, tmp_path / "made.parquet", SCHEMA, 2, "SEX")
    np.testing.assert_allclose(found["value"], expected["value"], rtol=1e-12)
    assert {type(source).__name__ for source in seen} == {"ParquetSource" if where == "path" else "SparkSource"}
    assert cli.run([*command, "-o", str(tmp_path / "all")]) == (0 if where == "path" else 2)
    said = capsys.readouterr().err
    assert where == "path" or "evaluate --marginals-only" in said
    assert cli.run(["lens", str(path), "-o", str(tmp_path / "lens")]) == (0 if where == "path" else 2)
    if where == "path":
        assert cli.run(["schema", "draft", str(path), "-o", str(tmp_path / "draft.toml")]) == 0


# What the cluster keeps


def test_logs_and_working_files_hold_no_value_of_a_row(home, session, tmp_path, capfd):
    path = parquet(tmp_path, arrow(small.people().astype(str).assign(GROUP=CANARY)))
    for rows in (path, session.read.parquet(str(path))):
        ss.fit(MST(), opened(rows), BUDGET)
    kept = [path for path in home.rglob("*") if path.is_file()]
    assert any("events" in path.parts for path in kept)
    assert any(path.name == "stderr" for path in kept)
    assert [path for path in kept if CANARY.encode() in path.read_bytes()] == []
    shown = capfd.readouterr()
    assert CANARY not in shown.out + shown.err


def test_what_is_sent_to_executors_holds_no_key(session, tmp_path, monkeypatch):
    """Spark sends tasks by cloudpickle; they are made of the schema, the tables asked for, names and versions."""
    from pyspark import cloudpickle

    sent, proper = [], spark_source.collected
    monkeypatch.setattr(
        spark, "collected", lambda frame, task, *cells: sent.append(task) or proper(frame, task, *cells)
    )
    path = parquet(tmp_path)
    table = opened(path)
    table.backend.fingerprint(KEY)
    table.backend.rows().counts([((), [("SEX",)])])
    assert [type(task) for task in sent] == [spark_tasks.CheckFiles, spark_tasks.CountTables]
    assert not any(KEY in cloudpickle.dumps(task) for task in sent)


def test_what_spark_cannot_hand_over_is_told_without_a_value(session):
    frame = frame_of(session, small.people().astype(str)).selectExpr("SEX", f"raise_error('{CANARY}') AS AGE")
    with pytest.raises(StratsynthError, match="could not be read out of Spark") as caught:
        ss.Schema.draft(frame)
    assert CANARY not in str(caught.value)


def test_rows_are_drafted_and_read_in_memory_where_they_are_asked_so(session):
    found = load_rows(SCHEMA, open_source(frame_of(session, small.people()))).counts([((), [("SEX",)])])
    assert found[0][0].tolist() == [50, 50]
