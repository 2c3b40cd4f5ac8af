"""Asking for Spark where there is none, or in a way that makes no sense: refused with the remedy, before any charge."""

import sys

import pytest
import tomli_w

import stratsynth as ss
from helpers import small
from helpers.small import BUDGET, SCHEMA, SIZE
from stratsynth.adapters import AIM, MST, Independent
from stratsynth.data import spark_source
from stratsynth.data.spark_source import JAVA, SparkSource, before, cells_at_once, spark_session
from stratsynth.data.spark_tasks import NOT_HERE, OTHER_VERSION
from stratsynth.driver.rows import StoredRows
from stratsynth.errors import RecipeError, StratsynthError, Unsupported, UsageError
from stratsynth.evaluation.comparisons.grid import Grid
from stratsynth.planning import plan
from stratsynth.recipes.recipe import Recipe

CANARY = "Eleonora-of-Ravenna"


def test_without_pyspark_the_extra_is_named(tmp_path, monkeypatch):
    small.people().astype(str).to_parquet(tmp_path / "people.parquet")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    ledger = tmp_path / "people.ledger"
    with pytest.raises(Unsupported, match=r'pip install "\.\[spark\]"'):
        ss.open_table(tmp_path / "people.parquet", schema=SCHEMA, engine="spark", ledger=ledger)
    assert not ledger.exists()
    ss.open_table(tmp_path / "people.parquet", schema=SCHEMA)  # nothing else needs it


@pytest.mark.spark
@pytest.mark.parametrize("home", [None, "nowhere"])
def test_without_java_it_is_named(home, tmp_path, monkeypatch):
    pytest.importorskip("pyspark", reason="PySpark is not installed; scripts/test --with spark installs it")
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda _: None))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / home))
    with pytest.raises(UsageError, match="Java 17 or newer") as refused:
        spark_session()
    assert str(refused.value) == JAVA


def test_spark_connect_is_refused():
    connected = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    with pytest.raises(Unsupported, match="another process, which would see exact tables"):
        SparkSource(connected)


def recipe(tmp_path, **data):
    SCHEMA.write_toml(tmp_path / "schema.toml")
    document = {
        "data": {"schema": "schema.toml", "declared_size": SIZE, **data},
        "mechanism": {"name": "mst"},
        "budget": {"epsilon": 1.0, "delta": 1e-9},
    }
    (tmp_path / "recipe.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    return Recipe.read(tmp_path / "recipe.toml")


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ({}, "path is missing"),
        ({"engine": "spark"}, "path is missing"),
        ({"table": "people"}, 'path is missing; only a table of Spark, with engine = "spark"'),
        ({"table": "people", "path": "people.parquet", "engine": "spark"}, "without path"),
        ({"table": 3, "engine": "spark"}, "table"),
        ({"path": "people.parquet", "engine": "sprak"}, "'sprak'.*spark"),
    ],
)
def test_a_recipe_whose_rows_are_nowhere_or_in_two_places_is_refused(data, match, tmp_path):
    with pytest.raises(UsageError, match=match) as refused:
        recipe(tmp_path, **data)
    assert isinstance(refused.value, RecipeError) or "engine" in match or "sprak" in match


def test_a_recipe_names_a_table_and_is_planned_without_spark(tmp_path):
    found = recipe(tmp_path, table="census.people", engine="spark")
    assert found.data.name == "census.people"
    text = str(plan(found.how(), found.schema(), found.budget(), declared_size=SIZE, engine=found.data.engine))
    assert "engine spark: 2 passes over the rows where they lie, and one for their fingerprint" in text
    one = str(plan("independent", SCHEMA, BUDGET, declared_size=SIZE, engine="spark"))
    assert "engine spark: 1 pass over the rows where they lie" in one


PUBLIC = ss.Weights.public(small.shares_frame(), citation="made up for testing")
HOW = {
    "independent": Independent,
    "mst": MST,
    "aim": lambda: AIM(rounds=3),
    "in strata": lambda: ss.Stratified(MST(), ["SEX", "GROUP"], PUBLIC),
    "private weights": lambda: ss.Stratified(Independent(), ["SEX"], ss.Weights.private(share=0.2)),
}


@pytest.mark.parametrize("how", HOW)
def test_a_plan_foretells_the_passes_of_a_fit(how, monkeypatch):
    """Rows are read as often as they are asked for tables; all strata's are counted in one pass."""
    made, proper = [], StoredRows.counts
    monkeypatch.setattr("stratsynth.driver.answering.StoredRows", type(None))  # whose strata are counted one by one
    monkeypatch.setattr(
        StoredRows, "counts", lambda self, asked: made.append(any(c for _, c in asked)) or proper(self, asked)
    )
    ss.fit(HOW[how](), ss.open_table(small.people(), schema=SCHEMA, declared_size=SIZE), BUDGET)
    foretold = plan(HOW[how](), SCHEMA, BUDGET, declared_size=SIZE, engine="spark").rows
    if HOW[how]().adaptive:  # how often it asks depends on noisy answers
        assert sum(made) / 2 <= foretold.passes <= 2 * sum(made)
    else:
        assert foretold.passes == sum(made)


@pytest.mark.parametrize(
    ("said", "kind", "match"),
    [
        (f"PythonException: {OTHER_VERSION}", UsageError, "executors lack stratsynth"),
        ("ModuleNotFoundError: No module named 'stratsynth'", UsageError, "executors lack stratsynth"),
        (f"PythonException: {NOT_HERE}", UsageError, "under the same path"),
        (f"[CAST_INVALID_INPUT] The value '{CANARY}' cannot be cast", StratsynthError, "could not be read in Spark;"),
    ],
)
def test_what_spark_says_is_told_in_words_of_ours(said, kind, match):
    found = before(ValueError(said))
    assert str(found) == str(before(KeyError(said)))  # even the class may depend on a row
    assert type(found) is kind
    with pytest.raises(kind, match=match):
        raise found
    assert CANARY not in str(found)


class Context:
    """A session of Spark, as far as sizes go."""

    def __init__(self, cores, most):
        self.sparkContext = self
        self.defaultParallelism = cores
        self.most = most

    def getConf(self):  # noqa: N802 - Spark's name
        return {} if self.most is None else {"spark.driver.maxResultSize": self.most}


@pytest.mark.parametrize(
    ("cores", "most", "cells"),
    [
        (2, None, spark_source.MOST_CELLS),
        (2, "0", spark_source.MOST_CELLS),
        (1, "64m", 2**21),
        (1, "65536k", 2**21),
        (16, "1g", 2**21),
        (500, "1G", 67_108),
        (500, "1b", 1),
        (4, "64", 1),
    ],
)
def test_partial_tables_of_all_tasks_fit_into_what_spark_lets_through(cores, most, cells):
    assert cells_at_once(Context(cores, most)) == cells


def test_a_comparison_of_a_table_in_spark_is_refused_before_it_is_begun(tmp_path):
    with pytest.raises(Unsupported, match=r"row by row.*name a file by `path`"):
        Grid.read(recipe(tmp_path, table="people", engine="spark"))
