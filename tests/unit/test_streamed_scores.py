"""Scores of files larger than memory: from counts, the same as from rows; or a refusal with the remedy."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from helpers import small
from stratsynth import census, cli
from stratsynth.data.sources import ParquetSource
from stratsynth.errors import SchemaError, StratsynthError, Unsupported, UsageError
from stratsynth.evaluation import streamed_workload_error, workload_error
from stratsynth.evaluation.comparisons.cells import CellRunner
from stratsynth.evaluation.comparisons.grid import Grid
from stratsynth.evaluation.evaluations.marginals_only import MarginalScores
from stratsynth.evaluation.tables import EncodedRows, encoded
from stratsynth.recipes.recipe import Recipe
from stratsynth.report import html, text
from stratsynth.schema import Unit
from stratsynth.schema.weight import RowWeight

SCHEMA = census.schema().restrict(("SEX", "RAC1P", "AGEP", "MAR", "PINCP"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    census.make(2_000).to_parquet(folder / "real.parquet")
    (folder / "made").mkdir()
    for i in range(3):
        census.make(500, seed=1, offset=500 * i).to_parquet(folder / "made" / f"part-{i}.parquet")
    return folder / "real.parquet", folder / "made"


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("by", [None, "SEX", ["SEX", "RAC1P"]])
def test_values_are_those_of_the_rows(k, by, files):
    plain = workload_error(*files, SCHEMA, k, by, most=1_000)
    found = streamed_workload_error(*files, SCHEMA, k, by)
    assert list(found.columns) == list(plain.columns)
    same = [name for name in found.columns if name not in {"value", "low", "high"}]
    pd.testing.assert_frame_equal(found[same], plain[same])
    np.testing.assert_allclose(found["value"], plain["value"], rtol=1e-12)
    assert found[["low", "high"]].isna().all(axis=None)
    assert found.attrs["stamp"] == plain.attrs["stamp"]


def test_groups_without_rows_have_no_score(tmp_path):
    small.people(30).to_csv(tmp_path / "real.csv", index=False)
    small.people(30).query("SEX == '1'").to_csv(tmp_path / "made.csv", index=False)
    plain, found = (
        score(tmp_path / "real.csv", tmp_path / "made.csv", small.SCHEMA, 2, ["SEX", "GROUP"])
        for score in (workload_error, streamed_workload_error)
    )
    assert found["status"].tolist() == plain["status"].tolist()
    np.testing.assert_allclose(found["value"], plain["value"], rtol=1e-12)
    assert found["value"].isna().sum() == 2


def test_too_many_rows_are_refused_with_the_remedy(files, monkeypatch):
    monkeypatch.setattr(encoded, "MOST_BYTES", 10_000)
    with pytest.raises(
        Unsupported,
        match=r"Score a sample of them; or marginals from counts, by `stratsynth evaluate --marginals-only`",
    ):
        EncodedRows.read(files[0], SCHEMA)


def test_a_comparison_of_too_many_rows_is_refused_before_a_fit_is_charged(tmp_path, monkeypatch):
    """Leave only fits of a grid, as when it has grown."""
    path = small.write_recipe(tmp_path)
    small.edit(path, "[budget]", '[budget]\nledger = "people.ledger"')
    path.write_text(path.read_text(encoding="utf-8") + "\n[compare]\nseeds = 2\n", encoding="utf-8")
    grid = Grid.read(Recipe.read(path))
    monkeypatch.setattr(encoded, "MOST_BYTES", 10)
    with pytest.raises(Unsupported, match="not scored row by row"):
        CellRunner(grid).fit(next(iter(grid.cells())), tmp_path / "cell.parquet")
    assert not (tmp_path / "people.ledger").exists()
    monkeypatch.undo()
    CellRunner(grid).fit(next(iter(grid.cells())), tmp_path / "cell.parquet")
    assert (tmp_path / "cell.parquet").exists()


def test_reading_by_parts_changes_nothing(files, monkeypatch):
    whole = EncodedRows.read(files[1], SCHEMA)
    monkeypatch.setattr("stratsynth.data.sources.BATCH", 77)
    parts = EncodedRows.read(files[1], SCHEMA)
    assert (parts.rows, parts.left_out) == (whole.rows, whole.left_out)
    for name in SCHEMA.names:
        assert parts.codes[name].dtype == whole.codes[name].dtype
        np.testing.assert_array_equal(parts.codes[name], whole.codes[name])


def test_rows_with_weights_and_units_are_counted_as_in_scores_of_rows(files, tmp_path):
    real = pd.read_parquet(files[0])
    real.assign(W=np.arange(len(real)) % 5, PERSON="1").to_parquet(tmp_path / "real.parquet")
    weighed = dataclasses.replace(SCHEMA, row_weight=RowWeight(4, "W"))
    units = dataclasses.replace(SCHEMA, unit=Unit(column="PERSON", max_rows=1))
    for schema in (weighed, units):
        plain = workload_error(tmp_path / "real.parquet", files[1], schema, 2, "SEX")
        found = streamed_workload_error(tmp_path / "real.parquet", files[1], schema, 2, "SEX")
        np.testing.assert_allclose(found["value"], plain["value"], rtol=1e-12)
        assert found[["n", "n_synthetic", "status"]].equals(plain[["n", "n_synthetic", "status"]])
    scores = MarginalScores.of(tmp_path / "real.parquet", files[1], weighed, None, k=1, cliques=9)
    assert scores.facts["row_weight"] == "W"
    for render in (html.render, text.render):
        assert "Real rows count as their W" in render(scores.page("these rows", None))


def test_what_cannot_be_read_is_told_without_a_word_of_charges(files, tmp_path, monkeypatch):
    pd.read_parquet(files[0]).drop(columns="SEX").to_parquet(tmp_path / "real.parquet")
    with pytest.raises(SchemaError, match="column SEX must be in the data once"):
        streamed_workload_error(tmp_path / "real.parquet", files[1], SCHEMA)
    monkeypatch.setattr(ParquetSource, "batches", lambda *_: iter([1]))
    with pytest.raises(StratsynthError, match=r"^evaluation: the rows could not be read or counted"):
        streamed_workload_error(*files, SCHEMA)


def test_k_beyond_the_columns_is_refused(files):
    with pytest.raises(UsageError, match="k must be from 1 to the 5 columns"):
        streamed_workload_error(*files, SCHEMA, 6)


def test_the_command_writes_internal_files_and_refuses_what_needs_rows(files, tmp_path, capsys):
    SCHEMA.write_toml(tmp_path / "schema.toml")
    real, made = map(str, files)
    settings = ["--real", real, "--synthetic", made, "--schema", str(tmp_path / "schema.toml"), "--by", "SEX,RAC1P"]
    command = ["evaluate", *settings, "--marginals-only", "-k", "2"]
    assert cli.run([*command, "--area", "SEX", "-o", str(tmp_path / "out")]) == 2
    assert "--area needs the rows" in capsys.readouterr().err
    assert cli.run([*command, "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "INTERNAL" in said
    assert "no intervals, baselines" in said
    frame = pd.read_parquet(tmp_path / "out" / "workload.parquet")
    expected = workload_error(*files, SCHEMA, 2, ["SEX", "RAC1P"])
    np.testing.assert_allclose(frame["value"], expected["value"], rtol=1e-12)
    assert set(frame["stamp"]) == {"INTERNAL"}
    assert "INTERNAL" in (tmp_path / "out" / "report.html").read_text()
    assert cli.run([*command, "--json", "-o", str(tmp_path / "other")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["facts"]["real_rows"], document["facts"]["synthetic_rows"]) == (2_000, 1_500)
    assert len(document["workload"]) == 19


def test_the_rows_may_be_those_of_a_recipe(files, tmp_path, capsys):
    recipe = small.write_recipe(tmp_path)
    small.people(60).to_parquet(tmp_path / "made.parquet")
    command = ["evaluate", "--synthetic", str(tmp_path / "made.parquet"), "--marginals-only", "-k", "2"]
    assert cli.run([*command, "--real", str(recipe), "-o", str(tmp_path / "out")]) == 0
    frame = pd.read_parquet(tmp_path / "out" / "workload.parquet")
    expected = workload_error(tmp_path / "people.csv", tmp_path / "made.parquet", small.SCHEMA, 2)
    np.testing.assert_allclose(frame["value"], expected["value"], rtol=1e-12)
    capsys.readouterr()
    for real, more, says in (
        (recipe, ["--table", "people"], "in its section [data]"),
        (tmp_path / "none.toml", [], "there is no recipe"),
        (tmp_path / "people.csv", [], "name the schema of both tables with --schema"),
        (tmp_path / "schema.toml", [], "there is no section [format]"),
    ):
        assert cli.run([*command, "--real", str(real), *more, "-o", str(tmp_path / "no")]) == 2
        assert says in capsys.readouterr().err
        assert not (tmp_path / "no").exists()
