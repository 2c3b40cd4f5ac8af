"""`compare` in Python with mechanisms of one's own, and the pairs that are asked for."""

import json
from pathlib import Path

import pandas as pd
import pytest

from helpers import small
from stratsynth import Weights, cli, evaluation
from stratsynth.adapters import MST, External, Pooled
from stratsynth.errors import MechanismError, RecipeError, UsageError

COMPARE = """
[compare]
mechanisms = ["independent"]
stratifications = [[], ["SEX"]]
epsilons = [2]
seeds = 5
k = 2
metrics = ["workload_error"]
pairs = [["mine by SEX", "independent by SEX"], ["mine, vanilla", "independent, vanilla"]]
"""


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = small.write_recipe(tmp_path)
    small.edit(path, "declared_size = 100", "declared_size = 100\npublic = true")
    path.write_text(path.read_text(encoding="utf-8") + COMPARE, encoding="utf-8")
    return path


def mine(df):
    """The real rows: nothing is closer."""
    return df


def kept():
    return {path.name for path in Path("out/cells").glob("*.parquet")}


def test_a_function_and_a_mechanism_stand_beside_those_of_the_recipe(recipe):
    own = {
        "mine": External.plain(mine),
        "my mst": MST(),
        "my pooled": Pooled(
            base="mst", by=["SEX", "GROUP"], weights=Weights.public(small.shares_frame(), citation="made up")
        ),
    }
    seen = []
    frame = evaluation.compare(recipe, "out", mechanisms=own, workers=2, tick=lambda *done: seen.append(done))
    settings = frame[["mechanism", "stratification"]].drop_duplicates()
    found = {tuple(row) for row in settings.to_numpy() if row[1] != "(baseline)"}
    both = {(m, s) for m in ("independent", "mine", "my mst") for s in ("vanilla", "SEX")}
    assert found == both | {("my pooled", "SEX x GROUP")}
    assert seen[-1] == (36, 36)
    errors = frame[(frame["scope"] == "everybody") & (frame["stratification"] == "vanilla")]
    error = errors.groupby("mechanism")["value"].mean()
    assert error["mine"] < 0.2 < error["independent"]
    tests = pd.read_csv("out/paired.csv")
    assert len(tests[tests["scope"] == "everybody"]) == 2
    verdicts = tests[(tests["scope"] == "everybody") & (tests["first_stratification"] == "vanilla")]["verdict"]
    assert verdicts.tolist() == ["mine, vanilla is better"]
    facts = json.loads(Path("out/comparison.json").read_text(encoding="utf-8"))
    assert facts["mechanisms"]["mine"]["synthesizer"] == "mine"
    assert facts["pairs"][0] == ["mine by SEX", "independent by SEX"]
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "Which differences are beyond chance" in page
    assert "mine, vanilla − independent, vanilla" in page
    assert "<span>better</span>" in page
    before = kept()
    evaluation.compare(recipe, "out", mechanisms=own)
    assert kept() == before
    with pytest.raises(UsageError, match="another comparison"):  # another function of that name
        evaluation.compare(recipe, "out", mechanisms={**own, "mine": External.plain(lambda df: df.iloc[:9])})


def test_a_failure_is_told_with_its_setting_and_its_cause(recipe):
    def fails(df):
        raise ValueError("no such luck")

    with pytest.raises(MechanismError, match="compare: mine, vanilla: ValueError: no such luck"):
        evaluation.compare(recipe, "out", mechanisms={"mine": External.plain(fails)})


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"mine": mine}, r"is a function; .* External.plain\(function\)"),
        ({"mine": MST}, "is a class"),
        ({"independent": MST()}, "has a mechanism independent too"),
        ({"(mine)": MST()}, "bracket"),
        ({"other": MST()}, "there is no setting 'mine by SEX'"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line_before_anything_is_fitted(recipe, own, said):
    with pytest.raises((UsageError, RecipeError), match=said):
        evaluation.compare(recipe, "out", mechanisms=own)
    assert not Path("out").exists()


@pytest.mark.parametrize("pairs", ["3", '["mst"]', '[["a", "a"]]', '[["a", "b", "c"]]', "[3]"])
def test_pairs_are_two_settings_of_the_grid(recipe, capsys, pairs):
    text = recipe.read_text(encoding="utf-8")
    start = text.index("pairs = ")
    recipe.write_text(f"{text[:start]}pairs = {pairs}\n", encoding="utf-8")
    assert cli.run(["compare", str(recipe), "-o", "out"]) == 2
    assert "pairs" in capsys.readouterr().err


def test_what_models_learn_and_how_equally_is_in_the_page(recipe):
    small.people(60).to_csv("others.csv", index=False)
    text = recipe.read_text(encoding="utf-8")
    text = text.replace('metrics = ["workload_error"]', 'holdout = "others.csv"\ntarget = "WORK"\npositive = ["yes"]')
    text = text.replace("seeds = 5", "seeds = 2")
    start = text.index("pairs = ")
    recipe.write_text(text[:start], encoding="utf-8")
    frame = evaluation.compare(recipe, "out")
    assert {"auc:boosting", "f1:forest", "accuracy:linear"} <= set(frame["metric"])
    page = Path("out/report.html").read_text(encoding="utf-8")
    for what in (
        "What the releases are good for",
        "Area under the ROC curve",
        "F1 of the positives",
        "How equal the predictions are",
        "Demographic parity difference",
        "Parity error of the means",
        "p (Holm)",
        "real rows, not private",
        "2 repetitions are too few",
    ):
        assert what in page, what
    assert set(pd.read_csv("out/paired.csv")["verdict"].dropna()) == set()
