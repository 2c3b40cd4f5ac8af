"""DP-FERMI from recipe to predictions, and what a recipe may get wrong."""

import json

import pandas as pd
import pytest

from helpers.command import complaint, run, stratsynth
from helpers.regressing import SCHEMA, people
from helpers.small import edit

RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 2000

[mechanism]
name = "fermi"
target = "D"
features = ["X", "C"]
groups = ["G"]
penalty = 2.0
criterion = "odds"
iterations = 40
batch = 500

[budget]
epsilon = 3.0
delta = 1e-6
ledger = "people.ledger"
ledger_epsilon = 4.0
"""


STRATA = """\
[strata]
by = ["G"]

[weights]
source = "public"
path = "shares.csv"
citation = "made up"

[budget]"""


def written(folder):
    people(2000).to_csv(folder / "people.csv", index=False)
    SCHEMA.write_toml(folder / "schema.toml")
    (folder / "shares.csv").write_text("G,share\na,0.8\nb,0.2\n", encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a release; no test changes it."""
    folder = written(tmp_path_factory.mktemp("fermi"))
    run(folder, "fit", "recipe.toml", "-o", "release")
    return folder


def test_a_plan_reads_nothing_and_says_how_it_descends(tmp_path):
    written(tmp_path).joinpath("people.csv").write_text("G,X,Z,C,Y,D\n", encoding="utf-8")
    assert "40 steps, rate" in run(tmp_path, "plan", "recipe.toml")


def test_predictions_need_no_sensitive_attribute(made):
    people(2000).drop(columns=["G", "D"]).to_csv(made / "without.csv", index=False)
    run(made, "predict", "release", "without.csv", "-o", "predictions.csv")
    found = pd.read_csv(made / "predictions.csv")
    assert list(found.columns) == ["row", "prediction", "probability=no", "probability=yes"]
    assert (found.prediction == people(2000).D).mean() > 0.6


def test_the_certificate_states_the_steps_and_their_rate(made):
    certificate = json.loads(run(made, "certificate", "release", "--json"))
    assert certificate["private"] is True
    assert certificate["mechanism"]["name"] == "fermi"
    assert certificate["guarantee"]["currency"] == "sampled"
    first, *steps = certificate["charges"]
    assert (first["kind"], first["rho"]) == ("usable", certificate["guarantee"]["first"])
    assert len(steps) == 40
    assert {charge["rate"] for charge in steps} == {0.25}
    assert "ok" in run(made, "verify", "release", "--ledger", "people.ledger").lower()


def test_the_report_names_the_penalty(made):
    page = (made / "release" / "report.html").read_text(encoding="utf-8")
    assert "2 x ERMI of predictions and G, given D" in page


def test_a_wanted_gap_from_recipe_to_report(tmp_path):
    """Its measured size, with noise and level, in the certificate, on the page and before anything else is printed."""
    recipe = written(tmp_path) / "recipe.toml"
    edit(recipe, "penalty = 2.0", "gap = 0.01")
    edit(recipe, "batch = 500\n", "")
    run(tmp_path, "fit", "recipe.toml", "-o", "release")
    (gap,) = json.loads(run(tmp_path, "certificate", "release", "--json"))["gaps"]
    assert (gap["criterion"], gap["wanted"], gap["level"], len(gap["multipliers"])) == ("odds", 0.01, 0.95, 2)
    assert gap["low"] <= gap["measured"] <= gap["high"]
    page = (tmp_path / "release" / "report.html").read_text(encoding="utf-8")
    assert "at most 0.01 between the rates at which G are predicted as yes, given D" in page
    assert f"{gap['measured']:.3f}, noise (standard deviation) {gap['noise']:.3f}" in page
    assert "ok" in run(tmp_path, "verify", "release", "--ledger", "people.ledger").lower()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('criterion = "odds"', 'criterion = "fair"', "criterion"),
        ('criterion = "odds"', 'protect = "sensitive"', 'protect = "all"'),
        ('groups = ["G"]', 'groups = ["H"]', "'H' is not in the schema"),
        ('groups = ["G"]', "groups = []", "penalty = 0"),
        ("penalty = 2.0", 'penalty = "much"', "penalty"),
        ("penalty = 2.0", "", "gap = 0.05"),
        ("penalty = 2.0", "penalty = 2.0\ngap = 0.1", "give one of them"),
        ("penalty = 2.0", "gap = 0.1", "leave sampling and batch out"),
        ("[budget]", STRATA, "everybody has the same G"),
    ],
)
def test_a_refusal_leaves_no_ledger(tmp_path, old, new, words):
    edit(written(tmp_path) / "recipe.toml", old, new)
    assert words in complaint(stratsynth("fit", "recipe.toml", cwd=tmp_path), 2)
    assert not (tmp_path / "people.ledger").exists()
