"""`stratsynth lens` as a user starts it: what it writes and says, and what it refuses."""

import json

import pandas as pd
import pytest

from helpers.command import complaint, stratsynth
from helpers.small import edit
from stratsynth import census

RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 600

[mechanism]
name = "independent"

[budget]
epsilon = 1.0
delta = 1e-6
ledger = "people.ledger"
ledger_epsilon = 2.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lens")
    schema = census.schema().restrict(("SEX", "MAR", "DIS"))
    census.make(600)[list(schema.names)].to_csv(folder / "people.csv", index=False)
    schema.write_toml(folder / "schema.toml")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    done = stratsynth("lens", "recipe.toml", "--by", "SEX", "--repeats", "2", "-o", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout, encoding="utf-8")
    return folder


def test_it_says_who_loses_what_and_is_internal(folder):
    said = (folder / "said.txt").read_text(encoding="utf-8")
    assert said.startswith("INTERNAL")
    assert "Rounding: the group's number of rows" in said
    assert "No part of the loss is due to schema or rules." in said
    frame = pd.read_csv(folder / "out" / "lens.csv")
    assert set(frame["stamp"]) == {"INTERNAL"}
    assert len(frame) == 2 * 3  # tables of one and of two columns, two groups and everybody
    assert frame[["schema", "weights", "misfit", "noise", "rules", "rounding", "sampling"]].sum(
        axis=1
    ).to_numpy() == pytest.approx(frame["value"].to_numpy())
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "What each group loses, and to what" in page
    assert "In each group, tables of 2 columns" in page


def test_nothing_is_charged_and_nothing_is_a_release(folder):
    assert not (folder / "people.ledger").exists()
    assert not (folder / "out" / "certificate.json").exists()


def test_json_for_programs(folder, tmp_path):
    done = stratsynth("lens", "recipe.toml", "--repeats", "2", "-o", str(tmp_path / "out"), "--json", cwd=folder)
    document = json.loads(done.stdout)
    assert document["INTERNAL"]
    assert [row["scope"] for row in document["lens"]] == ["everybody"] * 2


def test_an_evaluation_shows_what_caused_its_error(folder, tmp_path):
    made = stratsynth("fit", "recipe.toml", "-o", str(tmp_path / "release"), cwd=folder)
    assert made.returncode == 0, made.stderr
    usual = ("evaluate", "--real", "people.csv", "--schema", "schema.toml", "--by", "SEX", "-k", "1")
    release = ("--synthetic", str(tmp_path / "release"))
    done = stratsynth(*usual, *release, "--recipe", "recipe.toml", "-o", str(tmp_path / "out"), cwd=folder)
    assert done.returncode == 0, done.stderr
    frame = pd.read_csv(tmp_path / "out" / "lens.csv")
    workload = pd.read_csv(tmp_path / "out" / "workload.csv")
    mine = frame[(frame["columns"] == 1) & (frame["scope"] == "everybody")].iloc[0]
    every = ["schema", "weights", "misfit", "noise", "rules", "rounding", "sampling"]
    assert sum(mine[part] for part in every) == pytest.approx(mine["value"])
    assert "What caused the error" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert {"table", "value"} <= {*workload.columns}
    plain = stratsynth(*usual, *release, "-o", str(tmp_path / "plain"), cwd=folder)
    assert plain.returncode == 0, plain.stderr
    assert not (tmp_path / "plain" / "lens.csv").exists()
    table = ("--synthetic", str(tmp_path / "release" / "synthetic.parquet"), "--recipe", "recipe.toml")
    assert "folder" in complaint(stratsynth(*usual, *table, "-o", str(tmp_path / "no"), cwd=folder), 2)
    census.make(300)[["SEX", "MAR", "DIS"]].to_csv(tmp_path / "others.csv", index=False)
    others = ("evaluate", "--real", str(tmp_path / "others.csv"), "--schema", "schema.toml", "--by", "SEX", "-k", "1")
    said = stratsynth(*others, *release, "--recipe", "recipe.toml", "-o", str(tmp_path / "no"), cwd=folder)
    assert "other rows than those compared with" in complaint(said, 2)
    edit(folder / "recipe.toml", "epsilon = 1.0", "epsilon = 0.5")
    said = complaint(stratsynth(*usual, *release, "--recipe", "recipe.toml", "-o", str(tmp_path / "no"), cwd=folder), 2)
    assert "name that of the release" in said
    edit(folder / "recipe.toml", "epsilon = 0.5", "epsilon = 1.0")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.toml", "-o", "new"], "there is no recipe"),
        (["recipe.toml", "-o", "out"], "exists already"),
        (["recipe.toml", "-o", "new", "--on", "people.csv"], "for predictors"),
        (["recipe.toml", "-o", "new", "--target", "SEX"], "for predictors"),
        (["recipe.toml", "-o", "new", "--by", "RACE"], "no column 'RACE'"),
        (["out", "-o", "new"], "evaluate --recipe"),
    ],
)
def test_wrong_input_is_refused_in_a_line(folder, arguments, words):
    assert words in complaint(stratsynth("lens", *arguments, cwd=folder), 2)
    assert not (folder / "new").exists()
