"""A plan foresees what a fit will charge and how noisy it will be, from public facts alone."""

import json
import math
import re

import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from helpers.command import complaint, stratsynth
from stratsynth import Budget, Weights
from stratsynth.adapters import Independent, Pooled
from stratsynth.mechanisms import make
from stratsynth.planning import plan
from stratsynth.planning.page import percent
from stratsynth.planning.stratum import NOISE_SIZE

SCHEMA = ss.Schema(
    {
        "GROUP": ss.Categorical(levels=("big", "small", "none")),
        "AGE": ss.Numeric(lower=0, upper=99, integer=True, edges=(0, 20, 40, 60, 80, 100)),
        "WORK": ss.Categorical(levels=("N", "yes", "no"), not_applicable="N"),
    }
)
BUDGET = ss.Budget(1, 1e-9, first=0)  # all of it is for the tables that are foreseen here
SHARES = pd.DataFrame({"GROUP": ["big", "small", "none"], "share": [0.99, 0.01, 0.0]})
HOW = ss.Stratified(Independent(), ["GROUP"], ss.Weights.public(SHARES, citation="made up"))


def test_a_plan_charges_what_the_fit_charges():
    rows = pd.DataFrame({"GROUP": ["big"] * 300, "AGE": [30] * 300, "WORK": ["yes"] * 300})
    release = ss.fit(HOW, ss.open_table(rows, schema=SCHEMA, declared_size=10_000), BUDGET)
    foreseen = plan(HOW, SCHEMA, BUDGET, declared_size=10_000)
    charged = release.certificate["charges"]
    assert foreseen.spent == pytest.approx(max(c["rho"] for c in charged), rel=1e-12)
    assert foreseen.prices == release.certificate["prices"]
    assert {s.sigma for s in foreseen.strata} == {c["sigma"] for c in charged}


def test_expected_errors_are_those_of_the_definition():
    by = {s.stratum: s for s in plan(HOW, SCHEMA, BUDGET, declared_size=10_000).strata}
    sigma = math.sqrt(2) / math.sqrt(2 * BUDGET.zcdp().rho)  # two tables share rho
    assert by["big"].size == 9_900
    assert by["big"].sigma == pytest.approx(sigma)
    assert by["big"].oneway_error == pytest.approx(NOISE_SIZE * sigma * 4 / 9_900)  # 5 and 3 cells: the median is 4
    assert by["big"].twoway_error is None
    assert by["none"].oneway_error == math.inf
    assert all(s.epsilon == pytest.approx(1) for s in by.values())


def test_verdicts_get_worse_as_groups_get_smaller():
    words = [s.verdict.split(":")[0] for s in plan(HOW, SCHEMA, BUDGET, declared_size=10_000).strata]
    assert words == ["good", "poor", "noise"]


def test_without_strata_there_is_one_line_for_everybody():
    whole = plan(Independent(), SCHEMA, BUDGET, declared_size=10_000)
    assert [(s.stratum, s.size, s.tables) for s in whole.strata] == [("", 10_000, 3)]
    assert "all " in str(whole)


def test_the_simulated_noise_does_not_touch_global_state_and_repeats():
    assert plan(HOW, SCHEMA, BUDGET, declared_size=500) == plan(HOW, SCHEMA, BUDGET, declared_size=500)


@pytest.fixture
def recipe(tmp_path):
    SCHEMA.write_toml(tmp_path / "schema.toml")
    SHARES.to_csv(tmp_path / "shares.csv", index=False)
    text = """
    [data]
    path = "there/is/no/such/file.csv"
    schema = "schema.toml"
    declared_size = 10000
    [strata]
    by = ["GROUP"]
    [weights]
    source = "public"
    path = "shares.csv"
    citation = "made up"
    [mechanism]
    name = "independent"
    [budget]
    epsilon = 1
    delta = 1e-9
    """
    (tmp_path / "recipe.toml").write_text(text)
    return tmp_path / "recipe.toml"


def test_the_data_are_not_even_looked_for(recipe, tmp_path):
    done = stratsynth("plan", recipe, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [s["size"] for s in json.loads(done.stdout)["strata"]] == [9_900, 100, 0]


def test_json_is_json_even_for_an_empty_group(recipe, tmp_path):
    done = stratsynth("plan", recipe, "--json", cwd=tmp_path)
    assert "Infinity" not in done.stdout
    assert json.loads(done.stdout)["strata"][2]["oneway_error"] is None


def test_the_picture_is_drawn_once(recipe, tmp_path):
    assert stratsynth("plan", recipe, "--plot", "plan.png", cwd=tmp_path).returncode == 0
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert "exists already" in complaint(stratsynth("plan", recipe, "--plot", "plan.png", cwd=tmp_path), 2)
    assert "written as" in complaint(stratsynth("plan", recipe, "--plot", "plan.doc", cwd=tmp_path), 2)


def test_a_plan_needs_a_declared_size(recipe, tmp_path):
    recipe.write_text(recipe.read_text().replace("declared_size = 10000", ""))
    assert "declared_size" in complaint(stratsynth("plan", recipe, cwd=tmp_path), 2)


def test_a_plan_of_many_strata_lists_its_ends_and_counts_the_rest():
    levels = tuple(f"{number:03}" for number in range(300))
    schema = ss.Schema({"AREA": ss.Categorical(levels=levels), **SCHEMA.columns})
    shares = pd.DataFrame({"AREA": levels, "share": [(number + 1) / 45_150 for number in range(300)]})
    foreseen = plan(
        ss.Stratified(Independent(), ["AREA"], ss.Weights.public(shares, citation="made up")),
        schema,
        BUDGET,
        declared_size=10_000,
    )
    text = str(foreseen)
    assert len(text.splitlines()) < 100
    assert "... 240 strata between" in text
    assert {"299", "260", "019", "000"} <= {line.split()[0] for line in text.splitlines() if line}
    verdicts = text[text.index("strata  verdict") :].split("\n\n", maxsplit=1)[0].splitlines()[1:]
    assert sum(int(line.split()[0]) for line in verdicts) == 300
    assert len(foreseen.to_dict()["strata"]) == 300
    assert "260 more rows are not shown" in foreseen._repr_html_()


def test_an_error_of_everybodys_model_stands_in_brackets():
    """A stratum that measures no table of two columns has not a smaller error for that (agency 1.7)."""
    small_shares = pd.DataFrame({"SEX": ["1", "2"], "share": [0.97, 0.03]})
    how = Pooled(by=["SEX"], weights=Weights.public(small_shares, citation="made up"))
    found = plan(how, small.SCHEMA, Budget(1, 1e-9), declared_size=2_000)
    two = {s.stratum: s for s in found.strata}["2"]
    assert two.twoway_borrowed
    assert f"({percent(two.twoway_error)})" in str(found)
    assert "(in brackets)" in str(found)


@pytest.mark.parametrize("name", ["group_regression", "fermi", "fair_sgd"])
@pytest.mark.parametrize("clip", [None, 0.25])
def test_a_plan_of_a_descent_names_steps_and_clip(name, clip):
    settings = {"target": "GROUP", "features": ["AGE"], "clip": clip}
    settings |= {"model": "logistic"} if name == "group_regression" else {"groups": ["SEX"]}
    settings |= {"penalty": 1.0} if name == "fermi" else {}
    (line,) = plan(make(name, settings), small.SCHEMA, Budget(3, 1e-6), declared_size=2_000).strata
    found = re.match(r"(\d+) steps, rate [\d.e-]+, clip ([\d.]+); noise in a step's mean gradient", line.verdict)
    assert 30 <= int(found[1]) <= 300
    assert (float(found[2]) == 0.25) == (clip == 0.25)
