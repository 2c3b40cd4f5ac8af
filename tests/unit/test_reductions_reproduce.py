"""The experiments on reductions: figures are of what they say, and our own mixing passes the counterexample."""

import numpy as np
import pandas as pd
import pytest

from benches import reductions as bench
from stratsynth.adapters.reductions.mixing import mixed
from studies.reductions import STUDY, curves, frank_wolfe, odds, reproduce, studies
from studies.reductions.odds import Outcome, outcome, simulated


class Quadratic:
    """The goal of the counterexample, as mixing wants it."""

    def smooth(self, losses):
        return frank_wolfe.value(losses)

    def gradient(self, losses):
        return frank_wolfe.gradient(losses)


@pytest.mark.parametrize("mixing", ["classic", "corrected"])
@pytest.mark.parametrize("start", range(3))
def test_where_the_papers_frank_wolfe_stays_ours_reaches_the_least(mixing, start):
    steps = 2_000 if mixing == "classic" else 6
    tables, weights = frank_wolfe.VERTICES[[start]], np.ones(1)
    for _ in range(steps):
        w = frank_wolfe.gradient(weights @ tables)
        tables = np.vstack([tables, frank_wolfe.VERTICES[(frank_wolfe.VERTICES @ w).argmin()]])
        weights = mixed(mixing, Quadratic(), tables, weights)
    assert frank_wolfe.value(weights @ tables) == pytest.approx(0.0080, abs=2e-5)
    assert frank_wolfe.run("paper", 10_000, start) == pytest.approx(0.250, abs=2e-3)


def test_the_least_value_and_the_true_method():
    assert frank_wolfe.least() == pytest.approx(0.008)
    assert max(frank_wolfe.run("true", 3_000, start) for start in range(3)) < 0.00802


def test_the_excess_falls_as_one_over_epsilon_n(monkeypatch):
    """The long form, with more candidates, is `scripts/bench predict --only reductions`."""
    monkeypatch.setattr(curves, "NUMBER", 1_000)
    table = curves.curve((100, 200, 400), 3, np.random.default_rng(1))
    assert abs(curves.slope(table) + 1) < 0.3
    bound = curves.beside_the_bound((400, 1_600), 40)
    assert (bound.lower_bound < bound.excess).all()
    assert (bound.excess < bound.upper_bound).all()
    assert curves.slope(bound) == pytest.approx(-1, abs=0.02)


def test_a_law_is_that_of_the_exponential_mechanism_by_hand():
    frame = pd.DataFrame({"X": [-0.5, 0.5, 0.5], "D": ["no", "yes", "no"]})
    law = curves.thresholds(frame, number=4)
    wrong = np.array([2, 1, 1, 2]) / 3  # x > -1: two; x > 1: one; x < -1: one; x < 1: two
    assert np.allclose(law.goals, wrong)
    power = np.exp(-law.epsilon * wrong * 3 / (2 * 0.5))
    assert np.allclose(law.chances, power / power.sum(), rtol=1e-6)


def quick(monkeypatch):
    """Few steps of everything."""
    monkeypatch.setattr(odds, "SETTINGS", {"iterations": 3, "inner_steps": 3, "start_steps": 10})
    monkeypatch.setattr(odds, "ITERATIONS", 2)


def test_outcomes_are_counted_by_group_and_truth():
    case = simulated(6, 0)
    test = pd.DataFrame({"D": ["yes", "yes", "no", "no"], "G": ["a", "b", "a", "b"]})
    found = outcome(case, test, np.array([1.0, 0.25, 0.5, 0.0]))
    assert found == Outcome(pytest.approx((0 + 0.75 + 0.5 + 0) / 4), pytest.approx(0.75))


def test_a_selected_test_has_the_level_and_power_that_are_said():
    level, power = studies._selected(studies._statistics(3_000, np.random.default_rng(0)), 20.0, "selected")
    assert level == pytest.approx(studies.LEVEL, abs=0.05)
    assert 0.4 < power < 0.8


@pytest.mark.slow
def test_the_command_writes_tables_pictures_and_words(tmp_path, monkeypatch, capsys):
    for name, few in (
        ("STEPS", (10, 50)),
        ("CURVE", (60, 120)),
        ("BOUND", (200, 400)),
        ("CELLS", 20),
        ("LEAST_SQUARES", (300, 600)),
        ("TESTS", (200,)),
        ("EPSILONS", (3.0,)),
        ("DIMENSIONS", (4, 8)),
        ("DRAWS", 5),
        ("CLASSES", (3,)),
        ("CLASS_ROWS", 300),
        ("LEARNED", (300,)),
        ("ROUNDS", (3,)),
    ):
        monkeypatch.setattr(reproduce, name, few)
    monkeypatch.setattr(curves, "NUMBER", 100)
    monkeypatch.setattr(studies, "CANDIDATES", 20)
    quick(monkeypatch)
    monkeypatch.setattr(reproduce, "simulated", lambda rows, seed: simulated(600, seed))
    assert STUDY.main(["--runs", "1", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    for words in (
        "Frank-Wolfe as the paper writes it ends at",
        "times the lower bound",
        "points of error",
        "Tests: with",
        "DP-oracle-learner",
    ):
        assert words in said
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"curves.png", *(f"{n}.csv" for n in reproduce.TITLES)}
    assert STUDY.main(["--runs", "1", "--out", str(tmp_path / "out")]) == 2
    assert STUDY.main(["--runs", "0"]) == 2


def test_the_benchmark_measures_what_it_says(monkeypatch):
    monkeypatch.setattr(bench, "FAIRLEARN_SEEDS", 1)
    quick(monkeypatch)
    monkeypatch.setattr(bench, "EPSILONS", (5.0,))
    figures = {figure.name: figure for figure in bench._compared(simulated(1_500, 0), 1)}
    free, fair = (
        figures[f"simulated people, epsilon 5, private, {k}: violation"].value
        for k in ("unconstrained", "equalized odds")
    )
    ratio = figures["simulated people, epsilon 5: equalized odds against unconstrained, violation, ratio"]
    assert ratio.value == pytest.approx(fair / free)
    assert ratio.reached == (ratio.value <= 0.5)
    assert bench._counterexample()[1].reached
    monkeypatch.setattr(bench, "INNER_STEPS", (2,))
    trained = [figure.name for figure in bench._trained(simulated(800, 0), 1)]
    assert trained == [
        f"simulated people, epsilon 1, 2 gradients a step, {rate} x the rate: {what}"
        for rate in ("1", "1.9")
        for what in ("error", "violation")
    ]
