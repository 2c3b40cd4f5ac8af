"""Noisy descent from a recipe to predictions, as a user starts it."""

import json

import pandas as pd
import pytest

from helpers.command import complaint, stratsynth
from helpers.regressing import SCHEMA, people
from helpers.small import edit

pytestmark = pytest.mark.usefixtures("seeded_noise")

RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 800

[mechanism]
name = "fair_sgd"
target = "D"
features = ["G", "X", "C"]
groups = ["G"]
mitigation = "surrogate"
iterations = 10
sampling = 0.5

[budget]
epsilon = 2.0
delta = 1e-6
"""


@pytest.fixture
def folder(tmp_path):
    people(800).to_csv(tmp_path / "people.csv", index=False)
    SCHEMA.write_toml(tmp_path / "schema.toml")
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def test_from_a_plan_to_predictions(folder):
    planned = stratsynth("plan", "recipe.toml", cwd=folder)
    assert planned.returncode == 0, planned.stderr
    assert "10 steps, rate" in planned.stdout
    for arguments in (["fit", "recipe.toml", "-o", "release"], ["predict", "release", "people.csv", "-o", "said.csv"]):
        done = stratsynth(*arguments, cwd=folder)
        assert done.returncode == 0, done.stderr
    said = pd.read_csv(folder / "said.csv")
    assert (said.prediction == people(800).D).mean() > 0.6
    certificate = json.loads((folder / "release" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["mechanism"]["name"] == "fair_sgd"
    assert certificate["mechanism"]["settings"]["mitigation"] == "surrogate"
    page = (folder / "release" / "report.html").read_text(encoding="utf-8")
    assert "surrogates, gamma1 1, gamma2 1" in page
    verified = stratsynth("verify", "release", cwd=folder)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_network_is_planned_fitted_shown_and_verified(folder):
    edit(folder / "recipe.toml", 'groups = ["G"]', 'groups = ["G"]\nmodel = "network"\nhidden = 4')
    for arguments in (
        ["plan", "recipe.toml"],
        ["fit", "recipe.toml", "-o", "release"],
        ["verify", "release"],
        ["predict", "release", "people.csv", "-o", "said.csv"],
    ):
        done = stratsynth(*arguments, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    page = (folder / "release" / "report.html").read_text(encoding="utf-8")
    assert "network of 4 hidden units for D" in page
    assert "surrogates, gamma1 1, gamma2 1" in page
    said = pd.read_csv(folder / "said.csv")
    assert said[["probability=no", "probability=yes"]].sum(axis=1).to_numpy() == pytest.approx(1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"surrogate"', '"paper"', "clipping each row's gradient bounds nothing"),
        ('target = "D"', 'target = "Y"', "categorical"),
        ("sampling = 0.5", "sampling = 1.5", "sampling"),
        ("sampling = 0.5", 'sampling = 0.5\nmodel = "deep"', "network"),
        ("sampling = 0.5", 'sampling = 0.5\nmodel = "network"\nhidden = 0', "hidden"),
        ('groups = ["G"]', 'groups = ["Q"]', "not in the schema"),
    ],
)
def test_wrong_input_is_refused_in_one_line(folder, old, new, words):
    edit(folder / "recipe.toml", old, new)
    done = stratsynth("fit", "recipe.toml", "-o", "release", cwd=folder)
    assert words in complaint(done, 2)
