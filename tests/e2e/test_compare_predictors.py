"""`stratsynth compare` with private predictors beside tables: audited on the hold-out, refused before any charge."""

import json

import pandas as pd
import pytest

from helpers import small
from stratsynth import Schema, cli
from stratsynth.accounting.history import read_ledger

COMPARE = """
[compare]
mechanisms = ["independent", { label = "direct one", name = "group_regression", model = "logistic", target = "YES", groups = ["GROUP"] }]
stratifications = [[], ["GROUP"]]
seeds = 2
k = 2
holdout = "others.csv"
target = "YES"
models = ["linear"]
"""  # noqa: E501 - a table in line


def people(rows):
    frame = small.people(rows)
    return frame.assign(WORK="N", YES=["no" if a < 4 else "yes" for a in frame["AGE"]])


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = small.write_recipe(tmp_path)
    from stratsynth import Categorical

    Schema({**small.SCHEMA.columns, "YES": Categorical(levels=("no", "yes"))}).write_toml("schema.toml")
    people(100).to_csv("people.csv", index=False)
    people(61).to_csv("others.csv", index=False)
    small.edit(path, 'by = ["SEX", "GROUP"]', 'by = ["GROUP"]')
    (tmp_path / "shares.csv").write_text("GROUP,share\na,0.7\nb,0.3\n", encoding="utf-8")
    small.edit(path, "declared_size = 100", "declared_size = 100\npublic = true")
    path.write_text(path.read_text(encoding="utf-8") + COMPARE, encoding="utf-8")
    return path


def test_a_predictor_stands_beside_tables_on_one_page(recipe, capsys):
    assert cli.run(["compare", "recipe.toml", "-o", "roads"]) == 0
    said = capsys.readouterr().out
    assert "Roads to a prediction, audited on the hold-out" in said
    frame = pd.read_parquet("roads/comparison.parquet")
    direct = frame[frame["stratification"] == "direct"]
    assert set(direct["mechanism"]) == {"direct one"}
    assert {m.partition(":")[2] for m in direct["metric"]} == {"direct"}
    assert len(direct[(direct["metric"] == "accuracy:direct") & (direct["scope"] == "everybody")]) == 2
    assert {m for m in frame["metric"] if m.startswith("accuracy:")} == {
        "accuracy:linear",
        "accuracy:constant",
        "accuracy:direct",
    }
    held = direct[(direct["metric"] == "accuracy:direct") & (direct["scope"] == "everybody")]["n"]
    assert set(held) == set(frame[frame["metric"] == "accuracy:linear"].query("scope == 'everybody'")["n"])
    assert held.max() < 62  # those held out, and not the 100 that were fitted
    found = pd.read_parquet("roads/roads.parquet")
    assert set(found["kind"]) == {"vanilla table", "stratified table", "direct"}
    pairs = pd.read_csv("roads/paired.csv")
    assert not (pairs["first_mechanism"].eq("direct one") & pairs["metric"].eq("workload_error")).any()
    page = (recipe.parent / "roads" / "report.html").read_text(encoding="utf-8")
    assert "Which road to a prediction" in page
    assert json.loads((recipe.parent / "roads" / "comparison.json").read_text(encoding="utf-8"))["cells"] == 6


def test_linear_regressions_are_roads_to_a_number(recipe):
    """Ours and AdaSSP beside a table with a model trained on it."""
    small.edit(recipe, 'model = "logistic", target = "YES"', 'target = "AGE"')
    small.edit(recipe, 'groups = ["GROUP"] }', 'groups = ["GROUP"] }, { name = "adassp", target = "AGE", rounds = 2 }')
    small.edit(recipe, 'stratifications = [[], ["GROUP"]]', "stratifications = [[]]")
    small.edit(recipe, 'target = "YES"\nmodels', 'target = "AGE"\nmodels')
    assert cli.run(["compare", "recipe.toml", "-o", "roads"]) == 0
    frame = pd.read_parquet("roads/comparison.parquet")
    errors = frame[(frame["metric"] == "mean_absolute_error:direct") & (frame["scope"] == "everybody")]
    assert {name.partition(" ")[0] for name in errors["mechanism"]} == {"adassp", "direct"}
    assert len(errors) == 4
    assert errors["value"].between(0, 9).all()


def test_on_private_data_a_predictor_is_charged_like_a_table(recipe):
    small.edit(recipe, "public = true", "public = false")
    small.edit(recipe, "delta = 1e-9", 'delta = 1e-9\nledger = "people.ledger"\nledger_epsilon = 20.0')
    assert cli.run(["compare", "recipe.toml", "-o", "roads"]) == 0
    assert len(read_ledger(recipe.parent / "people.ledger")["fits"]) == 6
    assert (recipe.parent / "roads" / "INTERNAL.txt").exists()


REFUSED = {
    "no hold-out": (
        'holdout = "others.csv"\ntarget = "YES"\nmodels = ["linear"]\n',
        "",
        "direct one predicts: name the",
    ),
    "another target": ('"logistic", target = "YES"', '"logistic", target = "SEX"', "direct one predicts SEX, and YES"),
    "no target": ('"logistic", target = "YES"', '"logistic"', "direct one names no target, and YES is audited"),
    "nothing else": ('["independent", {', "[{", "every mechanism predicts"),
    "an unknown model": ('models = ["linear"]', 'models = ["linaer"]', "there is no 'linaer'"),
    "no model": ('models = ["linear"]', "models = []", "models is empty"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_before_anything_is_written(recipe, capsys, case):
    old, new, words = REFUSED[case]
    small.edit(recipe, old, new)
    assert cli.run(["compare", "recipe.toml", "-o", "roads"]) == 2
    assert words in capsys.readouterr().err
    assert not (recipe.parent / "roads").exists()
