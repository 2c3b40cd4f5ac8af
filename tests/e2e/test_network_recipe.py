"""A network from recipe to predictions, where PyTorch is installed; elsewhere the refusal."""

import importlib.util
import json

import pandas as pd
import pytest

from helpers.command import complaint, stratsynth
from helpers.regressing import SCHEMA, people

RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 1000

[mechanism]
name = "fermi"
target = "D"
features = ["X", "C"]
groups = ["G"]
penalty = 1.0
network = "mlp"
hidden = [6]
iterations = 20
batch = 300

[budget]
epsilon = 3.0
delta = 1e-6
ledger = "people.ledger"
ledger_epsilon = 4.0
"""
HERE = importlib.util.find_spec("torch") is not None


def written(folder):
    people(1000).to_csv(folder / "people.csv", index=False)
    SCHEMA.write_toml(folder / "schema.toml")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return folder


@pytest.mark.skipif(HERE, reason="PyTorch is installed")
def test_without_the_extra_a_fit_and_a_plan_are_refused_and_nothing_is_charged(tmp_path):
    for command in (["fit", "recipe.toml", "-o", "release"], ["plan", "recipe.toml"]):
        assert 'pip install ".[torch]"' in complaint(stratsynth(*command, cwd=written(tmp_path)), 2)
    assert not (tmp_path / "people.ledger").exists()


@pytest.mark.torch
@pytest.mark.skipif(not HERE, reason="PyTorch is not installed; scripts/test --with torch installs it")
def test_a_network_is_planned_fitted_verified_and_predicts(tmp_path):
    written(tmp_path)

    def run(*arguments):
        done = stratsynth(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "20 steps, rate" in run("plan", "recipe.toml")
    run("fit", "recipe.toml", "-o", "release")
    certificate = json.loads(run("certificate", "release", "--json"))
    assert len(certificate["charges"]) == 20
    assert "not proven" in certificate["unverified"][0]
    assert "UNVERIFIED" in (tmp_path / "release" / "report.html").read_text(encoding="utf-8")
    run("predict", "release", "people.csv", "-o", "predictions.csv")
    found = pd.read_csv(tmp_path / "predictions.csv")
    assert list(found.columns) == ["row", "prediction", "probability=no", "probability=yes"]
    assert "ok" in run("verify", "release", "--ledger", "people.ledger").lower()
    (tmp_path / "people.csv").write_text("X,C\n0.5,zebra\n", encoding="utf-8")
    assert "does not admit" in complaint(stratsynth("predict", "release", "people.csv", "-o", "p.csv", cwd=tmp_path), 2)
