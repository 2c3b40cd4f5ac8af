"""The benchmark of linear regressions: what it measures, on what rows, and what other libraries are handed."""

import numpy as np
import pandas as pd
import pytest

from benches import linear
from studies.data import problem


def small(rows=400):
    rng = np.random.default_rng(0)
    x, job = rng.uniform(0, 10, rows), rng.choice(["a", "b", "c"], rows)
    frame = pd.DataFrame({"X": x, "J": job, "S": rng.choice(["f", "m"], rows), "Y": 3 * x + 5 * (job == "b")})
    return problem("small", frame, {"X": (0, 10), "Y": (0, 40)}, ["J"], "Y", "S")


def test_every_method_is_measured_on_the_same_held_out_rows(monkeypatch):
    monkeypatch.delenv("STRATSYNTH_RIVALS", raising=False)
    figures = {figure.name: figure for figure in linear.compared(small(), 2, (20.0,))}
    names = ["least squares, not private", "group_regression", "adassp", "adassp, 10 rounds", "AdaSSP as published"]
    assert list(figures) == [f"small, epsilon 20: R^2, {name}" for name in names]
    best = figures["small, epsilon 20: R^2, least squares, not private"]
    assert best.value == pytest.approx(1)
    assert best.repetitions == 2
    assert all(figure.value <= best.value + 1e-9 for figure in figures.values())


def test_others_get_levels_by_number_and_how_many_there_are():
    made = small()
    columns, most = linear._columns(made)
    assert made.features == ["X", "J", "S"]
    assert most.tolist() == [0, 2, 1]
    assert np.abs(columns[:, 0]).max() <= 1
    assert set(columns[:, 1]) == {0, 1, 2}


def test_incomes_are_those_of_adults_within_bounds():
    made = linear.simulated()
    assert made.frame["PINCP"].between(0, 150_000).all()
    assert made.frame["AGEP"].min() >= 18
    assert len(made.frame) > 10_000
