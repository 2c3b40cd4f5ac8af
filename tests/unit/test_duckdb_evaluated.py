"""Releases and schemas judged against rows in a DuckDB database: as against the same rows in a file, or refused."""

import dataclasses
import json
import shutil

import pandas as pd
import pytest

import stratsynth as ss
from benches import scale, scale_duckdb
from helpers import regressing, small
from helpers.command import complaint, stratsynth
from helpers.ledgers import kinds
from stratsynth import census
from stratsynth.adapters import GroupRegression
from stratsynth.data import duckdb_source
from stratsynth.data.draft import check
from stratsynth.data.sources import open_source
from stratsynth.errors import SchemaError, StratsynthError, Unsupported, UsageError
from stratsynth.evaluation import (
    evaluate,
    evaluate_predictions,
    raw_values,
    streamed_workload_error,
    workload_error,
)
from stratsynth.evaluation.tables import EncodedRows
from stratsynth.schema import Unit
from stratsynth.schema.weight import RowWeight

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed; scripts/test --with duckdb installs it")
pytestmark = pytest.mark.duckdb
SCHEMA, ROWS = small.SCHEMA, 600
SELECT = 'SELECT SEX, "GROUP", AGE, WORK FROM people'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """People in a CSV file and in a database, others as a release's rows, and a schema."""
    place = tmp_path_factory.mktemp("judged")
    small.write_recipe(place)
    people = small.people(ROWS).astype(str)
    people.to_csv(place / "people.csv", index=False)
    small.people(400).astype(str).query("AGE < '7'").to_parquet(place / "made.parquet")
    with duckdb.connect(str(place / "people.duckdb")) as connection:
        connection.register("given", people)
        connection.execute("CREATE TABLE people AS SELECT *, AGE::INTEGER % 3 AS W FROM given")
        connection.execute("CREATE TABLE others AS SELECT * FROM given LIMIT 200")
    small.edit(place / "recipe.toml", 'path = "people.csv"', 'path = "people.duckdb"\ntable = "people"')
    return place


def judged(*more, out, **instead):
    given = {"real": "people.duckdb", "synthetic": "made.parquet", "schema": "schema.toml", "by": "SEX"} | instead
    options = [part for name, value in given.items() if value is not None for part in (f"--{name}", value)]
    return ["evaluate", *options, "-k", "2", "-o", out, *more]


def frames(folder):
    return {path.stem: pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}


# The commands


@pytest.mark.parametrize("way", ["a table", "a query", "a recipe"])
@pytest.mark.parametrize("only", [(), ("--marginals-only",)], ids=["all scores", "marginals"])
def test_a_release_is_scored_as_against_a_file(way, only, folder, tmp_path):
    given = {
        "a table": {"table": "people"},
        "a query": {"query": SELECT},
        "a recipe": {"real": "recipe.toml", "schema": None},
    }[way]
    done = stratsynth(*judged(*only, out=tmp_path / "there", **given), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "INTERNAL" in done.stdout
    plain = stratsynth(*judged(*only, out=tmp_path / "plain", real="people.csv"), cwd=folder)
    assert plain.returncode == 0, plain.stderr
    there, expected = frames(tmp_path / "there"), frames(tmp_path / "plain")
    assert list(there) == list(expected)
    for name, frame in there.items():
        pd.testing.assert_frame_equal(frame, expected[name])
    assert (folder / "people.duckdb.accounts").exists() is False  # nothing was charged


def test_wrong_requests_are_refused_in_a_line(folder, tmp_path):
    for more, instead, says in (
        ((), {}, "either table"),
        ((), {"table": "peeple"}, "no table 'peeple'"),
        ((), {"query": "SELECT * FROM people LIMIT 9"}, "does more than choose"),
        ((), {"table": "people", "query": SELECT}, "not both"),
        ((), {"real": "recipe.toml", "table": "people"}, "name the table or the query in its section"),
        ((), {"real": "none.duckdb", "table": "people"}, "no such file"),
        ((), {"real": "none.toml"}, "there is no recipe"),
        ((), {"table": "people", "schema": None}, "with --schema"),
        (("--marginals-only",), {"query": "SELECT SEX FROM people"}, "column GROUP must be in the data once"),
        (("--marginals-only", "--holdout", "recipe.toml"), {"table": "people"}, "--holdout needs the rows"),
    ):
        done = stratsynth(*judged(*more, out=tmp_path / "never", **instead), cwd=folder)
        assert says in complaint(done, 2)
        assert not (tmp_path / "never").exists()


def test_a_recipe_is_a_hold_out_and_the_lens_and_a_comparison_read_a_database(folder, tmp_path):
    small.write_recipe(tmp_path)
    for name in ("people.duckdb", "made.parquet"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    recipe = (folder / "recipe.toml").read_text(encoding="utf-8").replace('"independent"', '"mst"')
    (tmp_path / "recipe.toml").write_text(recipe, encoding="utf-8")
    (tmp_path / "held.toml").write_text(recipe.replace('table = "people"', 'table = "others"'), encoding="utf-8")
    more = ("--holdout", "held.toml", "--target", "WORK", "--positive", "yes")
    done = stratsynth(*judged(*more, out="out", table="people"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "evaluation.json").read_text())["facts"]["holdout_rows"] == 200
    done = stratsynth("lens", "recipe.toml", "--repeats", "2", "-o", "lens", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "grid.toml").write_text(
        recipe.replace("[budget]", '[budget]\nledger = "people.ledger"') + "\n[compare]\nseeds = 2\nk = 2\n"
        'holdout = "held.toml"\ntarget = "WORK"\npositive = ["yes"]\nmodels = ["linear"]\n',
        encoding="utf-8",
    )
    done = stratsynth("compare", "grid.toml", "--workers", "2", "-o", "compared", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert kinds(tmp_path / "people.ledger").count("done") == len(
        pd.read_csv(tmp_path / "compared" / "comparison.csv")
        .query("seed > 0")[["mechanism", "stratification", "seed"]]
        .drop_duplicates()
    )


def test_a_schema_is_drafted_and_checked(folder, tmp_path):
    for way, given in (
        ("table", ("people.duckdb", "--table", "others")),
        ("query", ("people.duckdb", "--query", 'SELECT SEX, "GROUP", AGE, WORK FROM others')),
        ("file", ("people.csv",)),
    ):
        done = stratsynth("schema", "draft", *given, "-o", tmp_path / f"{way}.toml", cwd=folder)
        assert done.returncode == 0, done.stderr
    drafts = [ss.Schema.load(tmp_path / f"{way}.toml") for way in ("table", "query")]
    assert drafts[0] == drafts[1]
    assert drafts[0].names == SCHEMA.names
    checks = [
        json.loads(stratsynth("schema", "check", *given, "--schema", "schema.toml", "--json", cwd=folder).stdout)
        for given in (("people.duckdb", "--table", "people"), ("recipe.toml",), ("people.csv",))
    ]
    lost = checks[2].pop("lines_left_out")
    assert not any(lost.values())
    assert checks[0] == checks[1] == checks[2]
    for given, says in (
        (("people.duckdb",), "either table"),
        (("people.duckdb", "--table", "none"), "no table 'none'"),
        (("people.csv", "--table", "people"), "Is it a DuckDB database"),
        (("recipe.toml", "--query", SELECT), "section [data]"),
    ):
        assert says in complaint(stratsynth("schema", "draft", *given, "-o", tmp_path / "no.toml", cwd=folder), 2)
        assert not (tmp_path / "no.toml").exists()


# From Python


def test_functions_take_a_database(folder):
    real, plain, made = (
        ss.database(folder / "people.duckdb", table="people"),
        folder / "people.csv",
        folder / "made.parquet",
    )
    for score in (workload_error, streamed_workload_error, raw_values):
        pd.testing.assert_frame_equal(
            *(
                score(data, made, SCHEMA) if score is raw_values else score(data, made, SCHEMA, 2)
                for data in (real, plain)
            )
        )
    assert evaluate(real, made, SCHEMA, "SEX", k=2, apart=False).facts["real_rows"] == ROWS
    assert ss.Schema.draft(ss.database(folder / "people.duckdb", table="others")).names == SCHEMA.names
    with pytest.raises(UsageError, match="no such file"):
        ss.database("none.duckdb", table="people")
    with pytest.raises(UsageError, match="the database must be a path"):
        ss.database(7, table="people")


def test_synthesize_takes_a_database(folder, tmp_path):
    rows = ss.database(folder / "people.duckdb", query=SELECT)
    with pytest.warns(ss.errors.NotPrivateWarning):
        public = ss.synthesize(rows, epsilon=1, schema=SCHEMA, public=True, by=["SEX"], mechanism="independent")
    assert public.declared_size == ROWS
    private = ss.synthesize(
        rows, epsilon=1, schema=SCHEMA, declared_size=ROWS, mechanism="independent", ledger=tmp_path / "people.ledger"
    )
    assert len(private.sample(10)) == 10
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve", "charge", "done"]


def test_weights_of_rows_count_in_marginals_as_in_scores_of_rows_and_so_do_all_rows_of_a_unit(folder):
    real, made = ss.database(folder / "people.duckdb", table="people"), folder / "made.parquet"
    units = dataclasses.replace(SCHEMA, unit=Unit(column="PERSON", max_rows=1))
    plain = streamed_workload_error(real, made, SCHEMA, 2, ["SEX"])
    pd.testing.assert_frame_equal(streamed_workload_error(real, made, units, 2, ["SEX"]), plain)
    schema = dataclasses.replace(SCHEMA, row_weight=RowWeight(2, "W"))
    rows, counts = (score(real, made, schema, 2, ["SEX"]) for score in (workload_error, streamed_workload_error))
    assert counts["value"].tolist() == pytest.approx(rows["value"].tolist(), rel=1e-12)
    assert counts[["n", "n_synthetic", "status"]].equals(rows[["n", "n_synthetic", "status"]])
    assert counts["value"].tolist() != pytest.approx(plain["value"].tolist())


def test_what_rows_without_an_order_cannot_answer_is_refused(folder):
    real = ss.database(folder / "people.duckdb", table="people")
    with pytest.raises(Unsupported, match="predictions are told apart by their place"):
        evaluate_predictions(real, ["yes"] * ROWS, SCHEMA, "WORK", positive="yes")
    for engine in ("memory", "stream"):
        with pytest.raises(Unsupported, match='held by engine = "duckdb"'):
            streamed_workload_error(real, folder / "made.parquet", SCHEMA, engine=engine)
    with pytest.raises(UsageError, match="there is no 'duck'"):
        streamed_workload_error(real, folder / "made.parquet", SCHEMA, engine="duck")


def test_a_release_that_predicts_is_scored_on_rows_as_they_are_read(tmp_path):
    """However they come: rows of another order are other rows for predictions that were written down before."""
    frame = regressing.people(800)
    regressing.SCHEMA.write_toml(tmp_path / "schema.toml")
    frame.to_parquet(tmp_path / "people.parquet")
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.register("given", frame)
        connection.execute("CREATE TABLE people AS SELECT * FROM given ORDER BY X")
    table = ss.open_table(frame, schema=regressing.SCHEMA, declared_size=800)
    how = GroupRegression(target="D", model="logistic", features=["X", "G"])
    release = ss.fit(how, table, ss.Budget(epsilon=5, delta=1e-6))
    release.save(tmp_path / "release")
    release.predictions(frame).to_pandas().to_csv(tmp_path / "predicted.csv", index=False)
    command = ("evaluate", "--schema", "schema.toml", "--target", "D", "--by", "G")
    there = ("--real", "people.duckdb", "--table", "people")
    for out, given in (("there", there), ("plain", ("--real", "people.parquet"))):
        done = stratsynth(*command, *given, "--predictions", "release", "-o", out, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    keys = ["table", "metric", "scope", "G", "value", "n"]
    found, expected = (frames(tmp_path / out)["rates"][keys] for out in ("there", "plain"))
    pd.testing.assert_frame_equal(found, expected)
    for more in (("--predictions", "predicted.csv"), ("--predictions", "release", "--beside", "b=predicted.csv")):
        done = stratsynth(*command, *there, *more, "-o", "no", cwd=tmp_path)
        assert "name a release that predicts" in complaint(done, 2)


def test_rows_of_a_database_are_predicted_beside_what_tells_them_apart(tmp_path):
    frame = regressing.people(800).assign(number=range(800))
    table = ss.open_table(frame, schema=regressing.SCHEMA, declared_size=800)
    how = GroupRegression(target="D", model="logistic", features=["X", "G"])
    release = ss.fit(how, table, ss.Budget(epsilon=5, delta=1e-6))
    release.save(tmp_path / "release")
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.register("given", frame)
        connection.execute("CREATE TABLE people AS SELECT * FROM given ORDER BY X")
    select = 'SELECT number, X, "G" FROM people'
    command = ("predict", "release", "people.duckdb", "--query", select, "-o", "p.csv")
    assert "have no order" in complaint(stratsynth(*command, cwd=tmp_path), 2)
    done = stratsynth(*command, "--keep", "number", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(tmp_path / "p.csv").sort_values("number")
    assert found["prediction"].tolist() == release.predict(frame).tolist()
    with pytest.raises(UsageError, match="have no order"):
        release.predict(ss.database(tmp_path / "people.duckdb", table="people"))


def test_public_totals_of_a_database_are_those_of_a_file(folder, tmp_path):
    for name in ("people.csv", "people.duckdb", "schema.toml"):
        shutil.copy(folder / name, tmp_path)
    rest = ("--schema", "schema.toml", "--by", "SEX,GROUP", "-o")
    for out, given in (("file.csv", ("people.csv",)), ("database.csv", ("people.duckdb", "--table", "people"))):
        done = stratsynth("weights", "shares", *given, *rest, out, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "file.csv").read_bytes() == (tmp_path / "database.csv").read_bytes()
    done = stratsynth("weights", "shares", "people.duckdb", *rest, "no.csv", cwd=tmp_path)
    assert "table" in complaint(done, 2)
    (tmp_path / "people.ledger").touch()
    done = stratsynth("weights", "shares", *given, *rest, "no.csv", cwd=tmp_path)
    assert "has an account" in complaint(done, 2)


def test_rows_that_do_not_fit_into_memory_are_refused_where_they_must(folder, monkeypatch):
    real = ss.database(folder / "people.duckdb", table="people")
    monkeypatch.setattr(duckdb_source, "MOST_BYTES", 1000)
    monkeypatch.setattr("stratsynth.evaluation.tables.encoded.MOST_BYTES", 1000)
    monkeypatch.setattr("stratsynth.data.sources.BATCH", 100)
    for read in (
        lambda: ss.Schema.draft(real),
        lambda: check(SCHEMA, real),
        lambda: raw_values(real, real, SCHEMA),
        lambda: EncodedRows.read(real, SCHEMA),
    ):
        with pytest.raises(Unsupported, match=r"selects fewer rows|--marginals-only"):
            read()
    assert streamed_workload_error(real, real, SCHEMA, 2)["value"].tolist() == [0.0]


def test_what_goes_wrong_while_counting_speaks_of_no_charge(folder, monkeypatch):
    real = ss.database(folder / "people.duckdb", table="people")
    monkeypatch.setattr(duckdb_source.DuckDBSource, "batches", lambda *_: iter([1]))
    with pytest.raises(StratsynthError, match="evaluation: the rows could not be read") as caught:
        streamed_workload_error(real, folder / "made.parquet", SCHEMA)
    assert "charge" not in str(caught.value)
    with pytest.raises(SchemaError, match="column AGE"):
        streamed_workload_error(
            open_source(folder / "made.parquet"),
            ss.database(folder / "people.duckdb", query='SELECT SEX, "GROUP" FROM people'),
            SCHEMA,
        )


# The benchmark


def test_the_benchmark_counts_both_ways(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", census.make(500))
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    found = list(scale_duckdb.counting(path))
    assert len(found) == 2 + 2 * len(scale_duckdb.TABLES)
    assert {figure.unit for figure in found} == {"s of processors"}
    assert all(figure.value >= 0 for figure in found)


@pytest.mark.slow
def test_the_benchmark_fits_both_ways_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    found = scale.run([2_000], "duckdb")
    assert [figure.name.split(", ")[-1] for figure in found if "end to end" in figure.name] == [
        "engine stream",
        "engine duckdb",
    ]
    assert sum("scored from counts" in figure.name for figure in found) == 1
    assert list(tmp_path.iterdir()) == []
