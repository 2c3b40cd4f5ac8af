"""Laplace means of paper 003: bounds with constants that hold, the shipped noise, and the experiment's words."""

import math

import numpy as np
import pandas as pd
import pytest

from stratsynth.adapters.means import clipped
from stratsynth.errors import UsageError
from stratsynth.mechanisms import make
from studies.means import bounds, laplace, pictures, reproduce
from studies.means.mixtures import draw
from studies.means.simulate import simulate
from studies.means.theory import NY_2018, best_log_sizes, worst_log_sizes
from studies.means.trials import stratified

SIZES = (900, 80, 20)


def test_equation_1_is_reached_by_the_noise_with_the_probability_that_it_states():
    """A Laplace variable is above log(1 / gamma) scales with probability gamma exactly."""
    (scale,) = bounds.scales([1000], 5, 0.5, 0.1)
    assert scale == pytest.approx(2 * (5 + math.sqrt(2 * math.log(2 * 1000 / 0.1))) / (1000 * 0.5))
    noise = np.random.default_rng(0).laplace(0, scale, 100_000)
    assert (np.abs(noise) > bounds.fresh(1000, 5, 0.5, 0.1)).mean() == pytest.approx(0.1, abs=0.005)


def test_the_half_width_is_that_of_the_mechanism():
    assert bounds.half_width(900, 0.05) == clipped.half_width(900, 0.05)


@pytest.mark.parametrize("sizes", [SIZES, (500, 500), (100,) * 10, (991, *(1,) * 9)])
@pytest.mark.parametrize("gamma", [0.01, 0.2])
def test_proposition_8_holds_with_its_constants(sizes, gamma):
    """The noise by simulation stays within it, and the bound for any sizes is not below."""
    noise = np.random.default_rng(1).laplace(0, bounds.scales(sizes, 3, 1, gamma), (20_000, len(sizes))).sum(axis=1)
    bound = bounds.stratified(sizes, 3, 1, gamma)
    assert (np.abs(noise) > bound).mean() <= gamma
    assert noise.std() == pytest.approx(bounds.spread(sizes, 3, 1, gamma), rel=0.05)
    assert bound <= bounds.stratified_at_worst(sum(sizes), len(sizes), 3, 1, gamma)


def test_equal_groups_are_the_worst_case_and_cost_the_root_of_their_number():
    at = (3.0, 1.0, 0.01)
    assert bounds.spread([100.0] * 9, *at) > bounds.spread([892.0, *[1.0] * 8], *at)
    ratio = bounds.spread([1e6] * 16, *at) / bounds.spread([16e6], *at)
    assert ratio == pytest.approx(4, rel=0.1)


def test_the_radius_keeps_its_factor_however_sparse_groups_are():
    """Against "for any setting of R": with a large R the example's groups cost nearly the root of nine."""
    sizes = [float(size) for size in NY_2018]
    ratios = [bounds.spread(sizes, r, 1, 0.01) / bounds.spread([sum(sizes)], r, 1, 0.01) for r in (0.0, 1000.0)]
    assert ratios[0] < 2.7
    assert ratios[1] == pytest.approx(3, abs=0.01)


@pytest.mark.parametrize(
    "wrong", [([], 1, 1, 0.1), ([5, 0], 1, 1, 0.1), ([5], -1, 1, 0.1), ([5], 1, 0, 0.1), ([5], 1, 1, 1)]
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(UsageError, match="bounds:"):
        bounds.scales(*wrong)


def test_the_shipped_mechanism_has_the_noise_of_the_formula():
    rng = np.random.default_rng(2)
    rows = draw(np.array(SIZES), np.zeros(3), rng)
    settings = {"columns": ["x"], "centre": {"x": 0}, "radius": {"x": 5}, "scale": {"x": 1}, "gamma": laplace.GAMMA}
    mean = make("clipped_mean", {**settings, "count": "declared", "variance": "bounded"})
    (one,) = simulate(mean, rows, laplace.BUDGET, rng, runs=1, declared=1000)
    assert one.noise[0] == pytest.approx(bounds.spread([1000.0], 5, 1, laplace.GAMMA), rel=1e-6)
    shares = np.array(SIZES) / 1000
    (strata,) = simulate(stratified(mean, rows, shares), rows, laplace.BUDGET, rng, runs=1, declared=1000)
    assert strata.noise[0] == pytest.approx(bounds.spread(list(SIZES), 5, 1, laplace.GAMMA), rel=1e-6)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    given = [g for g in laplace.settings() if g["radius"] == 3 and g["alpha"] in (0.13, np.inf)]
    return pd.DataFrame([row for g in given for row in laplace.experiment({**g, "n": 3000}, rng, 2)])


def test_stratifying_costs_the_mean_of_all_and_helps_groups(frame, tmp_path):
    means = frame.groupby(["k", "alpha", "method"])["error"].mean()
    assert means[27, np.inf, "stratified"] > 2 * means[27, np.inf, "fresh"]
    groups = frame.groupby("method")["group error"].mean()
    assert groups["stratified"] < groups["fresh, groups too"] < groups["fresh"]
    assert (frame["within"] == 1).mean() > 0.9
    laplace_words = laplace.summary(frame)
    assert "equal" in laplace_words
    assert "stratified / fresh" in laplace_words
    found = {figure.name: figure for figure in laplace.figures(frame)}
    (held,) = (figure for name, figure in found.items() if "within equation 1" in name)
    assert held.value > 90
    pictures.laplace_picture(frame, tmp_path / "laplace.png")
    assert (tmp_path / "laplace.png").stat().st_size > 1000


def test_figure_1_lies_between_its_ends(tmp_path):
    first = reproduce.figure_1(2000, 9)
    assert (first["worst"] == worst_log_sizes(2000, 9)).all()
    assert (first["best"] == best_log_sizes(2000, 9)).all()
    assert first["expected"].is_monotonic_increasing
    assert (first["expected"] <= first["expected, whole people"] + 1e-9).all()
    assert first["alpha"].tolist() == pytest.approx(np.arange(1, 21) / 20)
    assert reproduce.FIGURE_1 == {"n": 196_967, "k": 9}
    pictures.alpha_picture(first, tmp_path / "figure_1.png")
    assert (tmp_path / "figure_1.png").stat().st_size > 1000
