"""`stratsynth means` and its neighbours, as a statistician starts them."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from helpers.command import complaint, python, run, stratsynth
from helpers.laboratory import environment
from helpers.small import edit
from stratsynth import Schema, census, cli
from stratsynth.schema import Unit
from stratsynth.schema.weight import RowWeight

RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 3000

[strata]
by = ["SEX"]

[weights]
source = "public"
path = "shares.csv"
citation = "the built-in census, simulated"

[mechanism]
name = "coinpress"
columns = ["AGEP", "WKHP"]
scale = { AGEP = 23, WKHP = 13 }

[budget]
epsilon = 1.0
delta = 1e-9
ledger = "people.ledger"
ledger_epsilon = 1.5

[release]
csv = true
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder in which the command has run once; no test changes what it made."""
    folder = tmp_path_factory.mktemp("means")
    census.make(3000).to_csv(folder / "people.csv", index=False)
    census.schema().write_toml(folder / "schema.toml")
    census.shares(("SEX",)).to_csv(folder / "shares.csv", index=False)
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    folder.joinpath("first.txt").write_text(run(folder, "means", "recipe.toml"), encoding="utf-8")
    return folder


def spent(folder):
    return json.loads(run(folder, "ledger", "show", "people.ledger", "--json"))["spent_epsilon"]


def test_the_first_run_spends_and_the_others_read(made):
    first = (made / "first.txt").read_text(encoding="utf-8")
    assert "budget was spent" in first
    assert "INTERNAL" not in first
    again = run(made, "means", "recipe.toml")
    assert "nothing was spent" in again
    assert again.split("\n\nThe")[0].splitlines()[:12] == first.splitlines()[:12]
    assert spent(made) == pytest.approx(1)


def test_the_table_is_the_released_one(made):
    shown = json.loads(run(made, "means", "recipe.toml", "--json"))["means"]
    released = pd.read_parquet(made / "release" / "estimates.parquet")
    assert [row["value"] for row in shown] == released["value"].tolist()
    assert [row["stratum"] for row in shown] == ["", "", "1", "1", "2", "2"]
    assert pd.read_csv(made / "release" / "estimates.csv")["value"].tolist() == pytest.approx(released["value"])


def test_true_means_are_stamped_and_stay_out_of_the_release(made):
    text = run(made, "means", "recipe.toml", "--internal", "--plot", "internal.png")
    assert text.startswith("INTERNAL")
    assert (made / "internal.png").stat().st_size > 5000
    people = census.make(3000)
    shown = json.loads(run(made, "means", "recipe.toml", "--internal", "--json"))
    assert shown["internal"]
    for row in shown["means"]:
        mine = people if not row["stratum"] else people[people["SEX"] == row["stratum"]]
        assert row["true"] == pytest.approx(mine[row["column"]].mean())
    error = complaint(stratsynth("means", "recipe.toml", "--internal", "--plot", "release/x.png", cwd=made), 2)
    assert "release" in error
    assert not (made / "release" / "x.png").exists()
    assert "true" not in pd.read_csv(made / "release" / "estimates.csv").columns


def test_the_plan_foresees_the_noise(made):
    text = run(made, "plan", "recipe.toml")
    foreseen = [line for line in text.splitlines() if "noise in means" in line]
    assert len(foreseen) == 2
    (row,) = [
        row
        for row in json.loads(run(made, "means", "recipe.toml", "--json"))["means"]
        if (row["stratum"], row["column"]) == ("1", "AGEP")
    ]
    noise = float(foreseen[0].split("AGEP ")[1].split(",")[0])
    assert 0.5 < noise / row["noise"] < 2


def test_a_release_of_estimates_draws_no_rows(made):
    error = complaint(stratsynth("sample", "release", "-n", "5", "-o", "x.csv", cwd=made), 2)
    assert "estimates" in error
    assert "coinpress" in run(made, "certificate", "release")


@pytest.fixture
def refused(made, tmp_path, monkeypatch, capsys):
    """Message of the command on an edited recipe, in this process; nothing may be spent."""
    monkeypatch.chdir(tmp_path)
    return partial(complaint_of, made, tmp_path, capsys)


def complaint_of(made, tmp_path, capsys, *arguments, old=None, new=None):
    for name in ("people.csv", "schema.toml", "shares.csv"):
        (tmp_path / name).symlink_to(made / name)
    (tmp_path / "release").symlink_to(made / "release")
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    if old is not None:
        edit(tmp_path / "recipe.toml", old, new)
    assert cli.run(["means", "recipe.toml", *arguments]) == 2
    assert not (tmp_path / "people.ledger").exists()
    error = capsys.readouterr().err
    assert 1 <= len(error.splitlines()) <= 2
    return error


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('"coinpress"', '"clipped_mean"', "another recipe"),
        ("epsilon = 1.0", "epsilon = 0.5", "another recipe"),
        ("WKHP = 13", "WKHP = 14", "another recipe"),
        ('name = "coinpress"\ncolumns = ["AGEP", "WKHP"]\nscale = { AGEP = 23, WKHP = 13 }', 'name = "mst"', "rows"),
        ("[budget]", "joint = 3\n[budget]", "joint"),
    ],
)
def test_a_recipe_that_is_refused(refused, old, new, match):
    assert match in refused(old=old, new=new)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [(["--level", "1"], "level"), (["--plot", "x.txt"], ".png"), (["--plot", "people.csv/x.png"], "folder")],
)
def test_arguments_that_are_refused(refused, arguments, match):
    assert match in refused(*arguments)


def test_a_column_that_is_none_spends_nothing(refused):
    assert "ZEBRA" in refused("-o", "new", old='"AGEP", "WKHP"]', new='"AGEP", "WKHP", "ZEBRA"]')


@pytest.mark.slow
def test_the_papers_experiments_run(tmp_path):
    code = "import sys; from studies.means import STUDY; sys.exit(STUDY.main(sys.argv[1:]))"
    beside = {"cwd": tmp_path, "env": environment()}
    done = python(code, "--runs", "1", "--workers", "1", "--out", "out", "--json", **beside)
    assert done.returncode == 0, done.stderr
    figures = {figure["name"]: figure["value"] for figure in json.loads(done.stdout)}
    assert figures["theory, New York 2018: saving by expectation"] == pytest.approx(71.6, abs=0.05)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "census.csv",
        "census.png",
        "figure_1.csv",
        "figure_1.png",
        "laplace.csv",
        "laplace.png",
        "mixtures.csv",
        "mixtures.png",
    ]
    census_ = pd.read_csv(tmp_path / "out" / "census.csv")
    assert {"pooled", "stratified", "public-stratified", "plain", "plain, public"} == set(census_["method"])
    assert (census_.loc[census_["method"] == "plain", "error"] < 1e-9).all()
    assert "exists" in complaint(python(code, "--out", "out", **beside), 2)
    assert "no file" in complaint(python(code, "--acs", "nowhere.parquet", **beside), 2)
    (tmp_path / "bad.csv").write_text("SEX\n1\n")
    assert "RAC1P" in complaint(python(code, "--acs", "bad.csv", **beside), 2)


def test_merged_groups_and_several_rows_a_person(tmp_path):
    """Merges keep their names in the release; true means are of the rows that were kept, by the same groups."""
    people = census.make(3000).assign(PERSON=np.repeat(np.arange(1000), 3))
    people.to_csv(tmp_path / "people.csv", index=False)
    Schema(census.schema().columns, unit=Unit(column="PERSON", max_rows=2)).write_toml(tmp_path / "schema.toml")
    census.shares(("RAC1P",)).to_csv(tmp_path / "shares.csv", index=False)
    merge = 'by = ["RAC1P"]\nmerge = { RAC1P = { others = ["2", "3", "4", "5", "6", "7", "8", "9"] } }'
    (tmp_path / "recipe.toml").write_text(RECIPE.replace('by = ["SEX"]', merge), encoding="utf-8")
    run(tmp_path, "means", "recipe.toml")
    shown = json.loads(run(tmp_path, "means", "recipe.toml", "--internal", "--json"))["means"]
    found = {(row["stratum"], row["column"]): row for row in shown}
    assert {stratum for stratum, _ in found} == {"", "1", "others"}
    kept = people[people.index % 3 < 2]
    for label, rows in (("", kept), ("1", kept[kept["RAC1P"] == "1"]), ("others", kept[kept["RAC1P"] != "1"])):
        row = found[label, "AGEP"]
        assert row["true"] == pytest.approx(rows["AGEP"].astype(float).mean())
        assert row["conservative"]
        assert row["size"] == pytest.approx(len(rows), abs=6 * row["size_noise"] + 1)
    for old, new in (("others", "rest"), ('"8", "9"', '"8"'), ("simulated", "made up")):
        text = (tmp_path / "recipe.toml").read_text(encoding="utf-8")
        (tmp_path / "other.toml").write_text(text.replace(old, new), encoding="utf-8")
        assert "another recipe" in complaint(stratsynth("means", "other.toml", cwd=tmp_path), 2)


def test_true_means_count_rows_as_the_release_does(tmp_path):
    """The true means beside the private ones are weighted too if a column has rows' weights."""
    people = census.make(3000)
    people["W"] = np.where(people["AGEP"].astype(float) > 60, 5, 1)
    people.to_csv(tmp_path / "people.csv", index=False)
    Schema(census.schema().columns, row_weight=RowWeight(5, "W")).write_toml(tmp_path / "schema.toml")
    census.shares(("SEX",)).to_csv(tmp_path / "shares.csv", index=False)
    (tmp_path / "recipe.toml").write_text(
        RECIPE.replace("declared_size = 3000", f"declared_size = {people['W'].sum()}"), encoding="utf-8"
    )
    run(tmp_path, "means", "recipe.toml")
    shown = json.loads(run(tmp_path, "means", "recipe.toml", "--internal", "--json"))["means"]
    found = {(row["stratum"], row["column"]): row["true"] for row in shown}
    for label, rows in (("", people), ("1", people[people["SEX"] == "1"])):
        assert found[label, "AGEP"] == pytest.approx(np.average(rows["AGEP"].astype(float), weights=rows["W"]))
