"""A regression from recipe to predictions, as a user starts it."""

import json

import numpy as np
import pandas as pd
import pytest

from helpers.command import complaint, run, stratsynth
from helpers.regressing import SCHEMA, people
from helpers.small import edit
from stratsynth import Release
from stratsynth.errors import UsageError

RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 800

[mechanism]
name = "group_regression"
target = "D"
features = ["G", "X", "C"]
groups = ["G"]
model = "logistic"
mode = "DPSE"
accounting = "parallel"
iterations = 10

[budget]
epsilon = 2.0
delta = 1e-6
ledger = "people.ledger"
ledger_epsilon = 4.0
"""


def written(folder):
    people(800).to_csv(folder / "people.csv", index=False)
    SCHEMA.write_toml(folder / "schema.toml")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a release; no test changes it."""
    folder = written(tmp_path_factory.mktemp("predict"))
    run(folder, "fit", "recipe.toml", "-o", "release")
    return folder


def test_a_plan_reads_nothing_and_says_how_it_descends(tmp_path):
    written(tmp_path).joinpath("people.csv").write_text("G,X,Z,C,Y,D\n", encoding="utf-8")
    assert "10 steps, rate" in run(tmp_path, "plan", "recipe.toml")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predictions_are_in_the_order_of_the_rows(made, ending):
    out = made / f"predictions.{ending}"
    assert "800 predictions" in run(made, "predict", "release", "people.csv", "-o", out)
    found = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert list(found.columns) == ["row", "prediction", "probability=no", "probability=yes"]
    assert found.row.tolist() == list(range(800))
    assert ((found.prediction == "yes") == (found["probability=yes"] > 0.5)).all()
    assert (found.prediction == people(800).D).mean() > 0.6


def test_columns_are_kept_as_they_stand(made):
    people(800).assign(number=[f"{i:04}" for i in range(800)]).to_csv(made / "numbered.csv", index=False)
    run(made, "predict", "release", "numbered.csv", "-o", "numbered_predicted.csv", "--keep", "number,C")
    found, plain = (pd.read_csv(made / f"{name}.csv", dtype=str) for name in ("numbered_predicted", "numbered"))
    assert list(found.columns) == ["number", "C", "prediction", "probability=no", "probability=yes"]
    pd.testing.assert_frame_equal(found[["number", "C"]], plain[["number", "C"]])
    people(3).assign(prediction="mine").to_csv(made / "named.csv", index=False)
    for data, column in (("numbered.csv", "nobody"), ("named.csv", "prediction")):
        done = stratsynth("predict", "release", data, "-o", "no.csv", "--keep", column, cwd=made)
        assert column in complaint(done, 2)
    people(3).assign(nested=[[1], [2], [3]]).to_parquet(made / "nested.parquet")
    done = stratsynth("predict", "release", "nested.parquet", "-o", "no.csv", "--keep", "nested", cwd=made)
    assert ".parquet" in complaint(done, 2)
    assert not (made / "no.csv").exists()


def test_numbers_of_rows_are_those_of_the_file_or_refused(made):
    """A line that is no record would move all that follow."""
    lines = people(4).to_csv(index=False).splitlines()
    lines[2] = lines[2] + ",more"
    (made / "broken.csv").write_text("\n".join(lines) + "\n")
    said = complaint(stratsynth("predict", "release", "broken.csv", "-o", "no.csv", cwd=made), 2)
    assert "no records" in said
    assert "3 predictions" in run(made, "predict", "release", "broken.csv", "-o", "yes.csv", "--keep", "C")


def test_large_numbers_of_a_frame_are_kept_exactly(made):
    release = Release.load(made / "release")
    large = 2**53 + np.arange(3)
    found = release.predictions(people(3).assign(number=large), keep=["number"])
    assert found.column("number").to_pylist() == large.tolist()
    for keep in ("number", None):
        with pytest.raises(UsageError, match="list of columns"):
            release.predictions(people(3).assign(number=large), keep=keep)


def test_the_certificate_says_what_was_asked(made):
    certificate = json.loads(run(made, "certificate", "release", "--json"))
    assert certificate["private"] is True
    assert certificate["strata"]["by"] == ["G"]
    assert certificate["mechanism"]["adaptive"] is True
    kinds = {charge["kind"] for charge in certificate["charges"]}
    assert kinds == {"usable", "counts", "total"}


def test_what_cannot_be_predicted_is_said_in_a_line(made, tmp_path):
    people(3).drop(columns="C").to_csv(tmp_path / "short.csv", index=False)
    assert "column C" in complaint(stratsynth("predict", made / "release", "short.csv", "-o", "p.csv", cwd=tmp_path), 2)
    people(3).assign(C="zebra").to_csv(tmp_path / "odd.csv", index=False)
    said = complaint(stratsynth("predict", made / "release", "odd.csv", "-o", "p.csv", cwd=tmp_path), 2)
    assert "zebra" not in said
    assert not (tmp_path / "p.csv").exists()


def test_a_refusal_leaves_no_ledger(tmp_path):
    edit(written(tmp_path) / "recipe.toml", 'accounting = "parallel"', 'accounting = "smooth"')
    assert "not private" in complaint(stratsynth("fit", "recipe.toml", cwd=tmp_path), 2)
    assert not (tmp_path / "people.ledger").exists()


def test_a_network_from_recipe_to_predictions(tmp_path):
    folder = written(tmp_path)
    edit(folder / "recipe.toml", 'model = "logistic"', 'model = "network"\nhidden = 8')
    assert "10 steps, rate 0.889" in run(folder, "plan", "recipe.toml")
    run(folder, "fit", "recipe.toml", "-o", "release")
    run(folder, "verify", "release")
    run(folder, "predict", "release", "people.csv", "-o", "predictions.csv")
    found = pd.read_csv(folder / "predictions.csv")
    assert list(found.columns) == ["row", "prediction", "probability=no", "probability=yes"]
    assert (found.prediction == people(800).D).mean() > 0.6


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('model = "logistic"', 'model = "network"\nhidden = 0', "hidden"),
        ('model = "logistic"', 'model = "network"\nhidden = "many"', "hidden"),
        ('model = "logistic"', 'model = "networks"', "model"),
        ('target = "D"', 'target = "Z"\nhidden = 2', "two levels"),
    ],
)
def test_a_network_that_cannot_be_is_refused_in_a_line_and_costs_nothing(tmp_path, old, new, words):
    edit(written(tmp_path) / "recipe.toml", old, new)
    assert words in complaint(stratsynth("fit", "recipe.toml", cwd=tmp_path), 2)
    assert not (tmp_path / "people.ledger").exists()
