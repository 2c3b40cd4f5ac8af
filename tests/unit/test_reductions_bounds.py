"""Formulas of paper 002 that the experiments print, and the learner that it compares with."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.adapters.reductions.oracles import thresholds
from studies.reductions import bounds, claims, confusion, curves, learner

seeds = st.integers(0, 2**32)


def slope(f):
    """Exponent of alpha in a formula, where alpha is small."""
    return math.log(f(1e-6) / f(2e-6)) / math.log(2)


def test_figure_two_by_its_formulas():
    table = confusion.figure_two(5)
    even = table[table["matrix"] == "balanced"]
    for name in ("G-mean", "H-mean", "H-mean as printed"):
        assert even[name].to_numpy() == pytest.approx(1 / even["classes"])
    assert (table["H-mean"] <= table["G-mean"] + 1e-12).all()
    two = np.array([[0.4, 0.1], [0.2, 0.3]])
    assert confusion.g_mean(two) == pytest.approx(math.sqrt(0.8 * 0.6))
    assert confusion.h_mean(two) == pytest.approx(2 / (1 / 0.8 + 1 / 0.6))
    assert confusion.h_mean(two, printed=True) == pytest.approx(2 / (0.6 / 0.4 + 0.4 / 0.3))
    uneven = confusion.unbalanced(3).ravel()
    assert uneven[1:] / uneven[:-1] == pytest.approx(1 / 3)
    assert uneven.sum() == pytest.approx(1)


def test_sample_sizes_grow_with_the_orders_that_follow_from_the_proofs():
    assert bounds.multiplier(0.1, 4) == pytest.approx(21)
    assert bounds.oracle_size(2.0, 0.5, 4, 5, 0.1) == pytest.approx(16 * (6 * math.log(3) + math.log(10)))
    assert slope(lambda a: bounds.sampling_size(1, a, 4, 5)) == pytest.approx(2, abs=1e-3)
    assert slope(lambda a: bounds.steps_needed(a, 4)) == pytest.approx(4, abs=1e-3)
    # the logarithm of T beside it
    assert slope(lambda a: bounds.linear_size(1, 1e-6, a, 4, 5)) == pytest.approx(4, abs=0.1)
    ratio = bounds.linear_size(1, 1e-6, 0.1, 4, 5) / bounds.linear_size(1, 1e-6, 0.1, 4, 5, zcdp=True)
    assert ratio == pytest.approx(4.6, abs=0.1)


def test_exponential_sampling_keeps_what_its_sample_size_promises(monkeypatch):
    """By its exact law, whose records move the goal by less than the theorem allows for."""
    monkeypatch.setattr(curves, "NUMBER", 200)
    alpha, g = 0.3, bounds.multiplier(0.3, 2)
    epsilon = curves.thresholds(curves.people(50, np.random.default_rng(0))).epsilon
    n = math.ceil(bounds.candidates_size(epsilon, alpha, 2, 200))
    law = curves.thresholds(
        curves.people(n, np.random.default_rng(1)), constraints={"false_positive_rate": 0.2}, multiplier=g
    )
    assert law.chances[law.goals > law.goals.min() + alpha].sum() <= bounds.MISSED


@given(seeds)
def test_what_a_direction_misses_is_the_papers_difference(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(20, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    c = rng.normal(size=4)
    c /= np.linalg.norm(c)
    best = x.sum(axis=0) / np.linalg.norm(x.sum(axis=0))
    assert bounds.missed(c, x.sum(axis=0), 20) == pytest.approx((x @ best).mean() - (x @ c).mean())


def test_noise_on_the_sum_reaches_the_orders_of_the_lower_bounds():
    table = bounds.beside_the_orders((8, 32, 128), 0.5, 1e-6, 1_000, 100)
    for _, each in table.groupby("privacy"):
        assert each["in orders"].max() < 1.5 * each["in orders"].min()
        assert each["in orders"].between(0.1, 2).all()


def test_counts_of_a_game_are_those_of_counting():
    frame, thetas = learner.people(200, np.random.default_rng(0)), thresholds(6)
    game = learner.Game.of(frame, thetas)
    for theta, counts, error, gaps in zip(thetas, game.counts, game.errors, game.gaps, strict=True):
        said, yes = theta[0] + theta[1] * frame["X"] > 0, frame["D"] == "yes"
        assert error == pytest.approx((said != yes).mean())
        rates = [[said[(frame["G"] == g) & (yes == y)].mean() for y in (False, True)] for g in "ab"]
        assert gaps == pytest.approx(np.subtract(rates[1], rates[0]))
        assert counts.sum() == 200
    weights = np.full(6, 1 / 6)
    assert game.outcome(weights) == pytest.approx((game.errors.mean(), np.abs(game.gaps.mean(axis=0)).max()))


def test_its_candidates_are_those_of_the_mechanism():
    assert np.array_equal(learner.candidates(), thresholds(learner.CANDIDATES))


def test_without_noise_the_learner_comes_near_the_bound_and_with_it_pays_in_error():
    game = learner.Game.of(learner.people(4_000, np.random.default_rng(1)), thresholds(40))
    free = game.outcome(learner.learned(game, 400, math.inf, np.random.default_rng(0)))
    least = game.errors.argmin()
    assert free[1] <= learner.SLACK + 0.02 < abs(game.gaps[least]).max()
    noisy = game.outcome(
        learner.learned(game, 400, learner.epsilon_each(0.1, 400, zcdp=False), np.random.default_rng(0))
    )
    assert noisy[0] > free[0]


@pytest.mark.parametrize("steps", [10, 100, 1_000])
def test_the_learners_rounds_cost_no_more_than_their_epsilon(steps):
    each, number = learner.epsilon_each(1.0, steps, zcdp=False), 2 * steps
    spent = each * math.sqrt(2 * number * -math.log(learner.DELTA)) + number * each * math.expm1(each)
    assert spent <= 1
    each = learner.epsilon_each(1.0, steps, zcdp=True)
    assert epsilon_of(steps * each**2 * (1 / 8 + 1 / 2), learner.DELTA) == pytest.approx(1)


def test_a_pick_is_drawn_by_how_far_one_record_moves_its_cost():
    """The costs of all candidates move by numbers that lie no further apart than twice what is divided by."""
    thetas, frame = thresholds(20), learner.people(100, np.random.default_rng(3))
    game = learner.Game.of(frame, thetas)
    moved = (1 / game.sizes.sum() + learner.BOUND / game.sizes.min()) / 2
    for row in range(20):
        more = learner.Game.of(pd.concat([frame, frame.iloc[[row]]]), thetas)
        step = (more.counts - game.counts) / 1.0
        for k in range(4):
            multipliers = np.zeros(4)
            multipliers[k] = learner.BOUND
            errors = (step[:, :, 0, 1] + step[:, :, 1, 0]).sum(axis=1) / game.sizes.sum()
            rates = step[..., 1] / game.sizes
            gaps = rates[:, 1] - rates[:, 0]
            change = errors + np.concatenate([gaps, -gaps], axis=1) @ multipliers
            assert np.ptp(change) <= 2 * moved * (1 + 1e-12)


def test_figures_have_their_sentences():
    sizes, orders = bounds.sizes((0.1, 0.05), 4, 5, 1.0, 1e-6), bounds.beside_the_orders((4, 8), 1.0, 1e-6, 100, 3)
    names = ("error", "g_mean", "not private", "not private, balanced")
    by = pd.DataFrame([{"classes": 3, "objective": n, "error": 0.1 + i, "G-mean": i / 4} for i, n in enumerate(names)])
    ways = ("DP-oracle-learner, T = 3", "DP-oracle-learner, zCDP, T = 3", "without privacy, T = 3", "reductions, 20")
    learnt = pd.DataFrame([{"rows": 300, "method": n, "error": 0.2, "violation": i / 8} for i, n in enumerate(ways)])
    said = " ".join(
        [*claims.of_bounds(sizes, orders), *claims.of_classes(confusion.figure_two(3), by), *claims.of_learner(learnt)]
    )
    for words in (
        "2^4.0 times as many, where the paper says 2^3",
        "both orders are reached",
        "from 0.000 to 0.250 for +100.0 points of error",
        "without privacy has 0.500, with balanced weights 0.750",
        "a violation of 0.000 at an error of 0.200, in zCDP 0.125",
        "same candidates 0.375",
    ):
        assert words in said
