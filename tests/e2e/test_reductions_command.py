"""A classifier with constraints on groups, from recipe to predictions, as a user starts it."""

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
declared_size = 800

[mechanism]
name = "reductions"
target = "D"
features = ["G", "X", "C"]
groups = ["G"]
constraints = { equalized_odds = 0.1, bounded_loss = { a = 0.4 } }
iterations = 5
inner_steps = 4
start_steps = 10

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
    folder = written(tmp_path_factory.mktemp("reductions"))
    run(folder, "fit", "recipe.toml", "-o", "release")
    return folder


def test_a_plan_reads_nothing_and_says_the_steps(tmp_path):
    written(tmp_path).joinpath("people.csv").write_text("G,X,Z,C,Y,D\n", encoding="utf-8")
    said = run(tmp_path, "plan", "recipe.toml")
    assert "5 steps of Frank-Wolfe, 4 noisy gradients each" in " ".join(said.split())


def test_the_same_seed_predicts_the_same(made):
    for name in ("one.csv", "two.csv"):
        assert "800 predictions" in run(made, "predict", "release", "people.csv", "-o", name, "--seed", "3")
    one, two = (pd.read_csv(made / name) for name in ("one.csv", "two.csv"))
    assert list(one.columns) == ["row", "prediction", "probability=no", "probability=yes"]
    assert one.equals(two)
    certain = one["probability=yes"].isin([0.0, 1.0])
    assert ((one.prediction == "yes") == (one["probability=yes"] == 1))[certain].all()


def changed(folder, old, new):
    recipe = folder / "recipe.toml"
    recipe.write_text(recipe.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_losses_of_probabilities_by_a_recipe(tmp_path):
    bounds = 'bounded_log_loss = { a = 1.5, "b|yes" = 2.0 }'
    changed(written(tmp_path), "bounded_loss = { a = 0.4 } }", bounds + ' }\nobjective = "worst_squared_loss"')
    run(tmp_path, "fit", "recipe.toml", "-o", "release")
    assert pd.read_parquet(tmp_path / "release" / "goals.parquet").name.tolist() == [
        "worst_squared_loss",
        "equalized_odds",
        "bounded_log_loss",
    ]
    run(tmp_path, "predict", "release", "people.csv", "-o", "told.csv", "--seed", "3")
    assert pd.read_csv(tmp_path / "told.csv").mean_probability.between(0, 1).all()
    run(tmp_path, "verify", "release")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('method = "sampling"\nobjective = "log_loss"', 'use method = "frank_wolfe"'),
        ('objective = "cross_entropy"', "log_loss"),
        ("loss_clip = -1", "loss_clip"),
    ],
)
def test_wrong_losses_are_refused_in_two_lines_before_any_charge(tmp_path, setting, words):
    changed(written(tmp_path), "iterations = 5", setting)
    said = complaint(stratsynth("fit", "recipe.toml", "-o", "release", cwd=tmp_path), 2)
    assert words in said
    assert not (tmp_path / "release").exists()
    assert not (tmp_path / "people.ledger").exists()


def test_without_a_seed_the_refusal_names_two_remedies(made):
    said = complaint(stratsynth("predict", "release", "people.csv", "-o", "never.csv", cwd=made), 2)
    assert "--seed" in said
    assert "deterministic" in said
    assert not (made / "never.csv").exists()


def test_a_release_that_predicts_by_chance_is_evaluated_with_a_seed(made):
    asked = ["--real", "people.csv", "--schema", "schema.toml", "--by", "G", "--target", "D", "--seed", "4"]
    run(made, "evaluate", *asked, "--predictions", "release", "-o", "scores")
    assert "INTERNAL" in (made / "scores" / "report.html").read_text(encoding="utf-8")


def test_the_certificate_and_the_release_hold_the_statement(made):
    certificate = json.loads(run(made, "certificate", "release", "--json"))
    assert certificate["mechanism"]["settings"]["constraints"] == {"equalized_odds": 0.1, "bounded_loss": {"a": 0.4}}
    assert {charge["kind"] for charge in certificate["charges"]} == {"usable", "counts", "total"}
    assert pd.read_parquet(made / "release" / "goals.parquet").name.tolist() == [
        "error",
        "equalized_odds",
        "bounded_loss",
    ]
    assert "holds" in run(made, "verify", "release", "--ledger", "people.ledger")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("equalized_odds = 0.1", "equalized_odds = -0.1", "no classifier could keep"),
        ("{ a = 0.4 }", "{ z = 0.4 }", "'z', which is not a group"),
        ('groups = ["G"]', "groups = []", "at least two"),
        ('target = "D"', 'target = "Y"', "group_regression"),
        ("iterations = 5", "iterations = 0", "iterations"),
    ],
)
def test_what_cannot_be_leaves_no_ledger(tmp_path, old, new, words):
    edit(written(tmp_path) / "recipe.toml", old, new)
    assert words in complaint(stratsynth("fit", "recipe.toml", cwd=tmp_path), 2)
    assert not (tmp_path / "people.ledger").exists()
