"""Trade-off curves on public data: measures by hand, columns as fits alone, the baseline, and the words."""

import math

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from stratsynth.adapters.fermi.ermi import ermi
from stratsynth.errors import UsageError
from stratsynth.evaluation.fermi import pareto, picture, summary, tradeoff, violations
from stratsynth.evaluation.fermi.columns import CurveFit, fitted, multiplier
from stratsynth.evaluation.fermi.postprocessed import derived, noisy_counts
from stratsynth.evaluation.fermi.violations import gaps
from stratsynth.mechanisms import make
from studies import data
from studies.fermi import STUDY
from studies.fermi.optimum import Objective, minimisers
from studies.fermi.reproduce import claims, papers_noise, reproduce, words

FEW = {"iterations": 60, "sampling": 0.5}
PROBLEM = data.correlated(2000, 0, 2.0)


def curve(**settings):
    return curve_of(PROBLEM, data.correlated(2000, 1, 2.0), **{"seeds": 2, **settings})


def curve_of(train, test, **settings):
    usual = {
        "public": True,
        "target": "Y",
        "groups": ["S"],
        "penalties": [0.0, 1.0, 5.0],
        "epsilons": [3.0],
        "delta": 1e-6,
        "seeds": 1,
        "settings": FEW,
    }
    return tradeoff(train.frame, test.frame, train.schema, **{**usual, **settings})


def test_measures_by_hand():
    truth = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    said = np.array([0, 1, 1, 1, 0, 0, 0, 1])
    group = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    found = violations(truth, said, group)
    assert found["error"] == 2 / 8
    assert found["parity"] == found["demographic_parity_difference"] == pytest.approx(3 / 4 - 1 / 4)
    assert found["odds"] == found["equalized_odds_difference"] == pytest.approx(1 / 2)
    assert found["ermi"] == pytest.approx(((3 - 1) / 8) ** 2 / (1 / 2 * 1 / 2))


def test_measures_of_several_classes_and_groups():
    rng = np.random.default_rng(0)
    truth, said, group = (rng.integers(3, size=900) for _ in range(3))
    rates = np.array([[(said[group == g] == c).mean() for c in range(3)] for g in range(3)])
    assert violations(truth, said, group)["parity"] == pytest.approx(np.ptp(rates, axis=0).max())


def test_what_cannot_be_measured_is_not_0():
    truth, said, group = np.array([1, 1, 1]), np.array([1, 1, 0]), np.array([0, 0, 0])
    assert math.isnan(violations(truth, said, group)["parity"])


def test_curves_are_for_rows_that_are_declared_public():
    with pytest.raises(UsageError, match="public=True"):
        curve(public=False)


def test_a_curve_is_one_tidy_frame_with_bands_a_front_and_a_picture(tmp_path):
    frame = curve(epsilons=[3.0, math.inf])
    assert len(frame) == 3 * 2 * 2 + 5 * 2 * 2
    assert set(frame["method"]) == {"fermi", "post-processing"}
    table = summary(frame)
    fermi = table[(table["method"] == "fermi") & (table["epsilon"] == math.inf)]
    assert fermi["violation"].is_monotonic_decreasing
    assert fermi["violation"].iloc[-1] < 0.6 * fermi["violation"].iloc[0]
    assert (table["error_low"] <= table["error"]).all()
    assert pareto(table).any()
    picture(table, tmp_path / "curve.png", "a curve")
    assert (tmp_path / "curve.png").stat().st_size > 1000


def many_classes(rows, seed):
    """Nine classes around centres that each of five groups has moved its own way."""
    rng = np.random.default_rng(seed)
    centres, moved = (np.random.default_rng(i).normal(size=(n, 6)) for i, n in ((0, 9), (1, 5)))
    group, label = rng.choice(5, rows, p=[0.4, 0.3, 0.15, 0.1, 0.05]), rng.integers(9, size=rows)
    x = centres[label] + 0.6 * moved[group] + 0.7 * rng.normal(size=(rows, 6))
    frame = pd.DataFrame(np.clip(x / 4, -1, 1), columns=[f"X{i}" for i in range(6)])
    frame["S"], frame["Y"] = [f"g{g}" for g in group], [f"y{y}" for y in label]
    return data.problem("many", frame, {f"X{i}": (-1, 1) for i in range(6)}, (), "Y", "S")


def test_nine_classes_and_five_groups():
    train, test = many_classes(6000, 0), many_classes(6000, 5)
    frame = curve_of(
        train, test, penalties=[0.0, 10.0], settings={"iterations": 400, "sampling": 0.15, "clip": 5.0, "momentum": 0.8}
    )
    plain, fair = frame["ermi"]
    assert fair < 0.65 * plain
    assert frame["error"].max() < 0.5  # of 8/9 by guessing
    assert set(frame["method"]) == {"fermi"}  # post-processing is for two classes


def test_the_front_is_of_those_that_none_beats():
    table = pd.DataFrame(
        {
            "method": "fermi",
            "epsilon": 1.0,
            "error": [0.1, 0.2, 0.2, 0.3],
            "violation": [0.3, 0.2, 0.25, 0.2],
        }
    )
    assert pareto(table).tolist() == [True, True, False, False]


def test_results_are_the_same_each_time():
    few = {"seeds": 1, "penalties": [1.0], "baseline": False}
    assert curve(**few).equals(curve(**few))
    assert not curve(**few).equals(curve(**few, seed=9))


@pytest.mark.usefixtures("seeded_noise")
def test_a_column_has_the_noise_of_a_fit_of_its_own():
    """The law of one column is that of a private fit: means and spreads of a coefficient agree."""
    settings = {"target": "Y", "groups": ["S"], "features": ["X0"], "iterations": 30, "sampling": 0.5, "penalty": 1.0}
    columns = [CurveFit(1.0, 0.3, s) for s in range(100)]
    models = fitted(PROBLEM.frame, PROBLEM.schema, columns, delta=1e-6, settings=settings)
    beside = np.array([model.theta[1] for model in models])
    table = ss.open_table(PROBLEM.frame, schema=PROBLEM.schema, declared_size=2000)
    alone = np.array(
        [ss.fit(make("fermi", settings), table, ss.Budget(0.3, 1e-6), seed=i).model.theta[1] for i in range(40)]
    )
    assert abs(beside.mean() - alone.mean()) < 5 * beside.std() / 40**0.5
    assert 0.6 < alone.std() / beside.std() < 1.6
    assert multiplier(math.inf, 1e-6, 0.5, 30) == 0


@pytest.mark.parametrize("criterion", ["parity", "odds"])
def test_post_processing_keeps_to_its_tolerance_and_is_optimal_at_both_ends(criterion):
    rng = np.random.default_rng(1)
    counts = rng.integers(50, 500, (3, 2, 2)).astype(float) + np.eye(2) * 600
    for tolerance in (0.0, 0.05):
        chances = derived(counts, criterion, tolerance)
        for part in [counts.sum(axis=2)] if criterion == "parity" else [counts[:, :, y] for y in (0, 1)]:
            rates = (chances * part).sum(axis=1) / part.sum(axis=1)
            assert np.ptp(rates) <= tolerance + 1e-7
    free = derived(counts, criterion, 1.0)
    assert np.allclose(free, counts.argmax(axis=2))  # what was said is said


def test_its_counts_are_noisy():
    said = truth = group = np.zeros(100, np.intp)
    rng = np.random.default_rng(0)
    drawn = np.array([noisy_counts(said, truth, group, 1.0, rng)[0, 0, 0] for _ in range(2000)])
    p = 1 - np.exp(-1)
    assert drawn.mean() == pytest.approx(100, abs=0.2)
    assert drawn.var() == pytest.approx(2 * (1 - p) / p**2, rel=0.15)  # discrete Laplace


@pytest.mark.slow
def test_the_reproduction_prints_tables_and_words(tmp_path, monkeypatch):
    monkeypatch.setattr("studies.fermi.reproduce.EPSILONS", (0.5, 1.0))
    monkeypatch.setattr("studies.fermi.reproduce.claims", lambda: "claims")
    small = data.correlated(1200, 0)
    found = reproduce([small], seeds=1, iterations=20)
    found.write(tmp_path / "out")
    text = found.text
    assert "equation 10" in text
    assert "equation 11" in text
    assert text.count("What this run says") == 2
    assert "correlated: 1,200 rows; Y is predicted; groups of S: " in text
    assert "lambda 8: from epsilon 0.5 to 1 the error goes from" in text
    for other in ("Lagrangian dual", "fermi, gap", "fair_sgd", "reductions"):
        assert f"below that of {other} by more than" in text
    assert (tmp_path / "out" / "correlated_parity.png").exists()
    assert len(pd.read_csv(tmp_path / "out" / "fermi.csv")) == 2 * (6 + 5 + 4 + 4 + 2 + 4) * 2


def test_the_papers_noise_pays_for_less_than_it_claims():
    assert papers_noise(1.0) == (pytest.approx(0.849, abs=1e-3), pytest.approx(1.223, abs=1e-3))
    assert "both together 1.22" in claims([1.0])


def test_wrong_files_are_refused_in_a_line(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert STUDY.main(["--adult", str(tmp_path / "x.csv")]) == 2
    assert "not the Adult data" in capsys.readouterr().err
    assert STUDY.main(["--seeds", "0"]) == 2


def test_words_say_where_the_curve_lies_above():
    base = {"criterion": "parity", "epsilon": 1.0, "seed": 0}
    frame = pd.DataFrame(
        [
            {**base, "method": "fermi", "penalty": 1.0, "error": 0.2, "parity": 0.1},
            {**base, "method": "fermi", "penalty": 2.0, "error": 0.3, "parity": 0.05},
            {**base, "method": "post-processing", "penalty": 0.0, "error": 0.25, "parity": 0.0},
            {**base, "method": "post-processing", "penalty": 0.2, "error": 0.2, "parity": 0.2},
        ]
    )
    assert "above it at 1 (lambda 2)" in words(frame)
    assert "at 1 of 2 penalties" in words(frame)


@pytest.mark.parametrize("given", [1, 2])
def test_the_exact_objective_is_the_loss_and_the_penalty_with_its_gradient(given):
    rng = np.random.default_rng(0)
    x, y, group = rng.normal(size=(300, 4)), rng.integers(2, size=300), rng.integers(3, size=300)
    cell = group if given == 1 else 3 * y + group
    weights = np.array([0.3, 0.9])[:given]
    objective, theta = Objective(x, y, cell, weights, 3, 1.7), rng.normal(size=4)
    value, gradient = objective(theta)
    chances = 1 / (1 + np.exp(-x @ theta))
    f = np.stack([1 - chances, chances], axis=1)
    loss = -np.log(f[np.arange(300), y]).mean()
    parts = [y == c for c in (0, 1)] if given == 2 else [np.full(300, True)]
    penalty = sum(
        weight * ermi(np.array([f[part & (group == g)].sum(axis=0) for g in range(3)]))
        for weight, part in zip(weights, parts, strict=True)
    )
    assert value == pytest.approx(loss + 1.7 * penalty, rel=1e-12)
    step = 1e-6 * np.eye(4)
    numeric = [(objective(theta + one)[0] - objective(theta - one)[0]) / 2e-6 for one in step]
    assert gradient == pytest.approx(numeric, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("criterion", "weights"), [("parity", "alike"), ("odds", "alike"), ("odds", "shares")])
def test_a_fit_without_noise_and_clip_comes_near_the_exact_minimiser(criterion, weights):
    rare = PROBLEM.frame[(PROBLEM.frame.Y == "no") | (PROBLEM.frame.index % 4 == 0)]
    settings = {
        "target": "Y",
        "groups": ["S"],
        "criterion": criterion,
        "odds_weights": weights,
        "clip": 100.0,
        "iterations": 800,
        "sampling": 1.0,
        "tail": 0.1,
    }
    (best,) = minimisers(rare, PROBLEM.schema, [2.0], settings=settings)
    (model,) = fitted(rare, PROBLEM.schema, [CurveFit(2.0, math.inf, 0)], delta=1e-6, settings=settings)
    assert np.abs(model.theta - best.theta).max() < 0.05
    (other,) = minimisers(rare, PROBLEM.schema, [2.0], settings={**settings, "criterion": "odds"} | OTHER[weights])
    assert np.abs(other.theta - best.theta).max() > 0.1


OTHER = {"alike": {"odds_weights": "shares"}, "shares": {"odds_weights": "alike"}}


@pytest.mark.parametrize("settings", [{"network": "mlp"}, {"groups": ["Y"], "target": "T"}])
def test_the_exact_minimiser_is_of_logistic_models(settings):
    frame = PROBLEM.frame.assign(T=np.arange(len(PROBLEM.frame)) % 3).astype({"T": str})
    schema = ss.Schema({**PROBLEM.schema.columns, "T": ss.Categorical(levels=("0", "1", "2"))})
    with pytest.raises(UsageError, match="two classes"):
        minimisers(frame, schema, [1.0], settings={"target": "Y", "groups": ["S"], **settings})


def test_gaps_are_of_the_last_class_by_true_class():
    truth, group = np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 1, 1, 0, 0, 1, 1])
    said = np.array([0, 1, 0, 0, 1, 1, 1, 0])
    assert gaps(truth, said, group) == [0.5, 0.5]
