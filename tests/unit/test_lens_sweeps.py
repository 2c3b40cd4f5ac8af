"""Sweeps of the fairness lens over epsilon, clip and group size; Theorem 3; and data that a reader names by path."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratsynth import Categorical, Numeric, Schema
from stratsynth.errors import UsageError
from studies.lens import STUDY, beside, cases, experiments, sweeps, theorem
from studies.lens.losses import Linear, Logistic
from studies.lens.people import People
from studies.lens.step import Step, decompose


@pytest.fixture
def case(monkeypatch):
    """Simulated people whose trainings are short."""
    monkeypatch.setattr(cases, "ROWS", 400)
    monkeypatch.setattr(experiments, "STEPS", 8)
    return cases.simulated(np.random.default_rng(0))[2]


def two(rows, part, far, near, seed=0):
    """People of whom a part has targets `far` away from 0, and the others `near`."""
    rng = np.random.default_rng(seed)
    group = (np.arange(rows) >= round(part * rows)).astype(np.intp)
    x = np.column_stack([np.ones(rows), 0.3 * rng.normal(size=(rows, 2))])
    return People(x, np.where(group == 0, far, near) * (1 + 0.1 * rng.normal(size=rows)), group, ("a", "b"))


@given(st.floats(0.5, 0.98), st.floats(-0.5, 0.5), st.floats(1e-4, 0.3), st.integers(0, 9))
def test_where_the_condition_of_theorem_3_is_met_it_holds(part, near, clip, seed):
    people = two(100, part, 1.0, near, seed)
    found = theorem.compare(Linear(), people, np.zeros(3), clip, 1.0)
    assert (found.loc[found["met"], "apart"] > 0).all()
    assert (found["apart"] >= found["bound"] - 1e-12).all()
    assert found["lemma"].all()


def test_the_condition_is_met_by_a_large_group_of_long_gradients_and_a_small_clip():
    found = theorem.compare(Linear(), two(100, 0.95, 1.0, 0.0), np.zeros(3), 0.01, 1.0)
    assert list(found["met"]) == [True, False]
    left, right = found["left"][0], found["right"][0]
    assert left == pytest.approx(2 * 0.95**2 / 2, rel=0.1)  # the gradient of (z - y)^2 at 0 is about 2 y long
    assert right == pytest.approx(0.025, rel=0.2)


def test_its_parts_of_clipping_are_those_of_a_step_with_everybody():
    people = two(60, 0.7, 1.0, -0.5)
    found = theorem.compare(Logistic(), People(people.x, people.y > 0, people.group, ("a", "b")), np.ones(3), 0.2, 0.3)
    parts = decompose(Logistic(), People(people.x, people.y > 0, people.group, ("a", "b")), np.ones(3), Step(0.3, 0.2))
    assert found["apart"][0] == pytest.approx(parts["clipping"][0] - parts["clipping"][1])


def test_that_it_is_vacuous_is_said(case):
    found = experiments.theorem([case], np.random.default_rng(1))
    assert len(found) == 2 * 3 * 2 * 2  # models, looks, clips, ordered pairs
    said = theorem.words(found)
    assert "met by 0 of 24 ordered pairs" in said
    assert "the theorem is vacuous here" in said
    assert "Lemma 2 holds in 12 of 12" in said
    met = found.assign(met=True, apart=1.0)
    assert "24 of these are harmed more, as it says" in theorem.words(met)


def test_risk_shrinks_with_epsilon_as_the_noise_does(case):
    found = sweeps.by_epsilon([case], 200, np.random.default_rng(2))
    assert list(found["epsilon"].unique()) == list(sweeps.EPSILONS)
    noise = found.groupby("epsilon")["noise"].first()
    closed = found[found["group"] == "minority"].set_index("epsilon")["closed"]
    assert noise.is_monotonic_decreasing
    assert (closed / closed[1.0]).to_numpy() == pytest.approx(((noise / noise[1.0]) ** 2).to_numpy())


def test_parts_by_clip_add_up_and_a_wide_clip_cuts_nothing(case, monkeypatch):
    monkeypatch.setattr(sweeps, "CLIPS", (0.1, 100.0))
    found = sweeps.by_clip([case], 2, np.random.default_rng(3))
    assert found["excess"].to_numpy() == pytest.approx((found["clipping"] + found["noise"]).to_numpy())
    assert not found.loc[found["clip"] == 100.0, "clipping"].any()
    assert found.loc[found["clip"] == 0.1, "clipping"].any()


@pytest.mark.parametrize("ratio", sweeps.RATIOS)
def test_groups_are_brought_to_a_relative_size(ratio):
    people = two(600, 0.6, 1.0, 0.5)  # 360 and 240
    found = sweeps.resized(people, ratio, np.random.default_rng(4))
    first, second = found.counts
    assert second == pytest.approx(ratio * first, abs=1)
    assert first == 360 or second == 240
    assert found.labels == ("a", "b")
    assert set(found.y) <= set(people.y)


def test_words_follow_from_the_figures(case, monkeypatch):
    monkeypatch.setattr(sweeps, "FITTED_AT", (1.0,))
    rng = np.random.default_rng(5)
    found = {
        "epsilons": sweeps.by_epsilon([case], 20, rng),
        "clips": sweeps.by_clip([case], 2, rng),
        "ratios": sweeps.by_ratio([case], 2, rng),
        "budgets": fits(0.3, 0.1),
    }
    said = sweeps.words(found)
    assert len(said) == 6
    assert "of 1 cases (figure 8)" in said[0]
    assert "the gap's part of clipping is largest at C = " in said[1]
    assert "changes by more than a factor of 2 in" in said[3]
    assert said[4].startswith(
        "fair_sgd at epsilon 1, gamma1 and gamma2 of 1: the gap is narrower by more than chance in 1"
    )
    assert said[5].endswith(
        "global_adapt: the gap is narrower by more than chance in 0 of 1 cases, wider in 1 (figure 12)."
    )


def fits(none, surrogate):
    """Two fits of three ways, with these gaps and one of 0.5."""
    ways = dict(zip(sweeps.FITTED_WAYS, (none, surrogate, 0.5), strict=True))
    rows = [
        ("w", "logistic", way, repeat, group, 100, (gap + 1e-4 * repeat) * (group == "b"), 1.0)
        for way, gap in ways.items()
        for repeat in range(2)
        for group in ("a", "b", "everybody")
    ]
    return pd.DataFrame(rows, columns=["world", "model", "mitigation", "repeat", "group", "n", "excess", "epsilon"])


def test_one_way_is_fitted_at_the_epsilon_that_is_named(case, monkeypatch):
    spent = []
    prepare = experiments.prepare
    monkeypatch.setattr(experiments, "FITTED", {"iterations": 2, "clip": 0.2})
    monkeypatch.setattr(experiments, "prepare", lambda *given: spent.append(given[2].epsilon) or prepare(*given))
    found = experiments.mitigated(case, "logistic", 1, 3.0, ("none",))
    assert spent == [3.0]
    assert set(found["mitigation"]) == {"none"}
    assert np.isfinite(found["excess"]).all()


def test_output_perturbation_is_compared_with_descents_and_with_no_privacy(case, monkeypatch):
    monkeypatch.setattr(beside, "EPSILONS", (0.5, 10.0))
    monkeypatch.setattr(beside, "METHODS", {name: beside.METHODS[name] for name in beside.METHODS if name != "fermi"})
    found = beside.accuracies([case], 2, np.random.default_rng(8))
    assert len(found) == 2 * (1 + 2 * 2)
    assert (found["worst"] <= found["accuracy"]).all()
    lost = beside.lost(found)["lost"][case.name]
    assert lost["output_perturbation", 10.0] < 0.1
    assert abs(lost["group_regression", 10.0]) < 0.1
    plain = found[found["method"] == beside.PLAIN]
    mine = found[(found["method"] == "output_perturbation") & (found["epsilon"] == 0.5)]
    assert lost["output_perturbation", 0.5] == pytest.approx(plain["accuracy"].mean() - mine["accuracy"].mean())
    assert "in the mean case against a model without privacy" in beside.words(found)


SCHEMA = Schema(
    {
        "X": Numeric(lower=0, upper=10, bins=2),
        "G": Categorical(levels=("u", "v", "w")),
        "WELL": Categorical(levels=("no", "yes")),
    }
)


@pytest.fixture
def brought(tmp_path):
    """A file of a reader's, and its schema."""
    rng = np.random.default_rng(6)
    rows = {"X": rng.uniform(0, 10, 90), "G": rng.choice(["u", "v", "w"], 90), "WELL": rng.choice(["no", "yes"], 90)}
    pd.DataFrame(rows).to_csv(tmp_path / "wine.csv", index=False)
    SCHEMA.write_toml(tmp_path / "wine.toml")
    return tmp_path


def test_any_data_are_named_by_path(brought):
    other = cases.declared(brought / "wine.csv", brought / "wine.toml", "WELL", "G")
    (case,) = cases.brought(None, None, np.random.default_rng(7), [other])
    assert case.name == "wine by G"
    assert case.people.labels == ("u", "v", "w")
    assert case.people.x.shape == (90, 2)
    assert set(case.people.y) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "WELL"], "goes with --schema FILE, --target COLUMN and --by COLUMN"),
        (["--schema", "wine.toml", "--target", "X", "--by", "G"], "X is no categorical column of wine.toml"),
        (["--schema", "wine.toml", "--target", "G", "--by", "WELL"], "has 3 levels"),
        (["--schema", "wine.toml", "--target", "WELL", "--by", "WELL"], "groups are by another column"),
        (["--schema", "none.toml", "--target", "WELL", "--by", "G"], "there is no file none.toml"),
    ],
)
def test_data_without_what_they_need_are_refused_in_a_line(brought, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(brought)
    assert STUDY.main(["--data", "wine.csv", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_what_describes_data_is_refused_without_them(brought, monkeypatch):
    monkeypatch.chdir(brought)
    with pytest.raises(UsageError, match="--data"):
        cases.declared(brought / "wine.csv", None, "WELL", "G")
