"""Objectives, constraints, smoothing and penalties: values, gradients, constants, and Lemma 4.1 of paper 002."""

import itertools
import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples
from stratsynth.adapters import Reductions
from stratsynth.adapters.reductions.functions import GeometricMean, HarmonicMean, Largest, Spread
from stratsynth.adapters.reductions.goals import (
    CONSTRAINTS,
    FS,
    MEANS,
    Goal,
    ObjectiveName,
    Part,
    measured_by,
    penalty,
)
from stratsynth.adapters.reductions.mixing import mixed
from stratsynth.adapters.reductions.rates import LOSSES, Sizes
from stratsynth.adapters.reductions.smoothing import Smoothing, onto_simplex

FUNCTIONS = [Largest(), Spread(0.7), HarmonicMean(), GeometricMean(0.1)]
SMOOTH = [Smoothing("moreau", 0.1), Smoothing("softmax", 0.1)]
seeds = st.integers(0, 2**32)
functions = st.sampled_from(FUNCTIONS)


def differences(f, x, step=1e-6):
    return np.array([(f(x + e) - f(x - e)) / (2 * step) for e in np.eye(len(x)) * step])


@given(functions, seeds)
def test_no_function_moves_by_more_than_its_lipschitz_constant(f, seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 6))
    x, y = rng.random((2, size)) ** rng.integers(1, 5)
    assert abs(f.value(x) - f.value(y)) <= f.lipschitz(size) * np.linalg.norm(x - y) * (1 + 1e-9)
    assert np.linalg.norm(f.gradient(x, SMOOTH[seed % 2])) <= f.lipschitz(size) * (1 + 1e-9)


def test_lipschitz_constants_are_no_larger_than_need_be():
    """Each is nearly reached somewhere, but for that of the geometric mean of more than two."""
    near = [(Largest(), [0.1, 0.9]), (Spread(0.0), [0.1, 0.5, 0.9]), (HarmonicMean(), [1e-6, 1.0])]
    for f, z in near:
        found = np.linalg.norm(f.gradient(np.array(z), Smoothing("none")))
        assert found == pytest.approx(f.lipschitz(len(z)), rel=1e-3)


@given(functions, seeds)
def test_a_function_is_convex_or_concave_as_it_says(f, seed):
    rng = np.random.default_rng(seed)
    x, y, share = *rng.random((2, 4)), rng.random()
    middle, chord = f.value(share * x + (1 - share) * y), share * f.value(x) + (1 - share) * f.value(y)
    assert (middle <= chord + 1e-9) if f.curved == "convex" else (middle >= chord - 1e-9)


@pytest.mark.parametrize("smoothing", SMOOTH)
@given(functions, seeds)
def test_smooth_stand_ins_have_the_gradients_that_are_said(smoothing, f, seed):
    z = np.random.default_rng(seed).uniform(0.1, 0.9, 4)
    assert np.allclose(f.gradient(z, smoothing), differences(lambda x: f.smooth(x, smoothing), z), atol=1e-4)


@pytest.mark.parametrize("smoothing", SMOOTH)
@given(seeds)
def test_smoothing_is_close_and_its_gradient_is_one_over_the_width_lipschitz(smoothing, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 5)) / 5
    value, slope = smoothing.maximum(x)
    assert -1e-12 <= value - x.max() <= smoothing.width * math.log(5)
    assert slope.min() >= 0
    assert slope.sum() == pytest.approx(1)
    far = np.linalg.norm(slope - smoothing.maximum(y)[1])
    assert far <= np.linalg.norm(x - y) / smoothing.width * (1 + 1e-9)
    for a, b in zip(x, y, strict=True):
        assert abs(smoothing.hinge(a)[1] - smoothing.hinge(b)[1]) <= abs(a - b) / smoothing.width * (1 + 1e-9)
        assert abs(smoothing.hinge(a)[0] - max(0, a)) <= smoothing.width
        assert abs(smoothing.absolute(np.array([a]))[0][0] - abs(a)) <= smoothing.width


@given(seeds)
def test_the_nearest_probability_vector(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=4)
    p = onto_simplex(z)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1)
    others = rng.dirichlet(np.ones(4), 50)
    assert (np.linalg.norm(others - z, axis=1) >= np.linalg.norm(p - z) - 1e-12).all()


def made_up(seed, groups=3, measures=("squared", "log")):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(50, 400, (groups, 2)).astype(float)
    return Sizes(tuple("abcdef"[:groups]), numbers, measures=measures, clip=4.0, levels=("no", "yes"))


def counts_of(sizes, rng):
    """Counts, and sums of losses in clips, that some classifier may have."""
    second = np.floor(rng.random(sizes.numbers.shape) * sizes.numbers)
    counts = np.stack([sizes.numbers - second, second], axis=-1)
    sums = rng.random((len(sizes.measures), *sizes.numbers.shape)) * sizes.numbers
    return np.concatenate([counts.ravel(), sums.ravel()])


@given(seeds)
def test_rates_are_those_of_counting(seed):
    sizes, rng = made_up(seed), np.random.default_rng(seed)
    counts = counts_of(sizes, rng)
    n = counts[:12].reshape(3, 2, 2)
    for g in range(3):
        wrong, second = n[g, 0, 1] + n[g, 1, 0], n[g, :, 1].sum()
        hand = [wrong / n[g].sum(), second / n[g].sum(), n[g, 0, 1] / n[g, 0].sum(), n[g, 1, 0] / n[g, 1].sum()]
        assert np.allclose([sizes.rate(loss, g, counts) for loss in LOSSES], hand)
    assert sizes.rate("error", None, counts) == pytest.approx((n[:, 0, 1].sum() + n[:, 1, 0].sum()) / n.sum())


@given(seeds, st.sampled_from(LOSSES))
def test_one_record_moves_a_rate_by_half_of_one_over_its_denominator(seed, loss):
    sizes = made_up(seed)
    for g in (None, 1):
        smallest = sizes.numbers[sizes.cells(loss, g)].sum()
        assert np.abs(sizes.row(loss, g)).max() == pytest.approx(0.5 / smallest)


@given(seeds, st.sampled_from(["squared", "log"]))
def test_mean_losses_are_sums_over_numbers(seed, measure):
    sizes, rng = made_up(seed), np.random.default_rng(seed)
    counts, clip = counts_of(sizes, rng), {"squared": 1.0, "log": 4.0}[measure]
    sums = clip * dict(zip(("squared", "log"), counts[12:].reshape(2, 3, 2), strict=True))[measure]
    for g in range(3):
        n = sizes.numbers[g]
        hand = [sums[g].sum() / n.sum(), sums[g, 0] / n[0], sums[g, 1] / n[1]]
        found = [sizes.rate(f"{measure}_loss{label}", g, counts) for label in ("", "_first", "_second")]
        assert np.allclose(found, hand)
        assert np.abs(sizes.row(f"{measure}_loss_second", g)).max() == pytest.approx(clip / n[1])
    everybody = sums.sum() / sizes.numbers.sum()
    assert sizes.rate(f"{measure}_loss", None, counts) == pytest.approx(everybody)
    assert not sizes.row(f"{measure}_loss", 0)[:12].any()


def test_slopes_of_losses_count_as_costs_of_wrong_predictions():
    """Per unit of loss; those of counts stay, and no label is flipped where none was."""
    sizes = made_up(0, 1)
    found = sizes.costs(np.array([0, 0.5, 0.25, 0, 3.0, 5.0, 8.0, 12.0]))
    assert found.tolist() == [[[0, 0.5 + 3 + 2], [0.25 + 5 + 3, 0]]]
    assert sizes.right.tolist() == [sizes.numbers[0, 0], 0, 0, sizes.numbers[0, 1], 0, 0, 0, 0]


def f_measures(r):
    """F1 of either level."""
    (a, b), (p, q) = r["numbers"].sum(axis=0), r["all"]
    right, wrong = np.array([a * (1 - p), b * (1 - q)]), a * p + b * q
    return 2 * right / (2 * right + wrong)


MEASURED = {
    "equalized_odds": lambda r: max(np.ptp(r["false_positive"]), np.ptp(r["false_negative"])),
    "demographic_parity": lambda r: np.ptp(r["selection"]),
    "true_positive_parity": lambda r: np.ptp(r["false_negative"]),
    "false_positive_parity": lambda r: np.ptp(r["false_positive"]),
    "error_parity": lambda r: np.ptp(r["error"]),
    "bounded_loss": lambda r: max(r["error"]),
    "bounded_squared_loss": lambda r: max(r["squared_loss"]),
    "bounded_log_loss": lambda r: max(r["log_loss"]),
    "gini": lambda r: (
        np.abs(np.subtract.outer(*[1 - np.array(r["error"])] * 2)).sum()
        / (2 * len(r["error"]) * (1 - np.array(r["error"])).sum())
    ),
    "h_mean": lambda r: 2 / (1 / (1 - r["all"][0]) + 1 / (1 - r["all"][1])),
    "g_mean": lambda r: math.sqrt((1.05 - r["all"][0]) * (1.05 - r["all"][1])) - 0.05,
    "micro_f": lambda r: f_measures(r)[1],
    "worst_f": lambda r: min(f_measures(r)),
    "false_positive_rate": lambda r: r["all"][0],
    "false_negative_rate": lambda r: r["all"][1],
}


@pytest.mark.parametrize("name", CONSTRAINTS)
@given(seed=seeds, bound=st.floats(0.05, 0.95))
def test_a_constraint_is_what_its_name_says_and_holds_when_it_does(name, seed, bound):
    sizes, rng = made_up(seed), np.random.default_rng(seed)
    counts = counts_of(sizes, rng)
    by_group = {loss: [sizes.rate(loss, g, counts) for g in range(3)] for loss in sizes.losses}
    everybody = [sizes.rate(loss, None, counts) for loss in ("false_positive", "false_negative")]
    truth = MEASURED[name]({**by_group, "all": everybody, "numbers": sizes.numbers})
    goal = Reductions(groups=["G"], constraints={name: bound}).goal(sizes)
    (part,) = goal.constraints
    assert part.measure(counts) == pytest.approx(truth, abs=1e-9)
    holds = truth >= bound if name in (*MEANS, *FS) else truth <= bound
    if abs(truth - bound) > 1e-9:
        assert (part.value(counts) <= 0) == holds


@pytest.mark.parametrize("objective", get_args(ObjectiveName))
@pytest.mark.parametrize("smoothing", ["moreau", "softmax"])
@given(seed=seeds)
@examples(20)
def test_the_goals_gradient_is_that_of_its_smooth_value(objective, smoothing, seed):
    sizes, rng = made_up(seed, 2), np.random.default_rng(seed)
    how = Reductions(
        groups=["G"],
        objective=objective,
        smoothing=smoothing,
        smoothness=0.2,
        multiplier=3.0,
        constraints={
            "equalized_odds": 0.1,
            "gini": 0.02,
            "h_mean": 0.9,
            "bounded_loss": {"b": 0.2, "a|no": 0.3},
            "bounded_log_loss": {"a": 1.5, "b|yes": 1.0},
            "bounded_squared_loss": 0.4,
        },
    )
    goal, counts = how.goal(sizes), counts_of(sizes, rng) * 0.9 + 3
    found = goal.gradient(counts) * sizes.total
    assert np.allclose(found, differences(goal.smooth, counts, 1e-3) * sizes.total, atol=1e-2 * np.abs(found).max())


@given(seeds, st.sampled_from([name for name in get_args(ObjectiveName) if not measured_by(name)]))
def test_a_goal_as_a_score_is_the_goal(seed, objective):
    sizes, rng = made_up(seed, 2, ()), np.random.default_rng(seed)
    constraints = {"equalized_odds": 0.1, "gini": 0.02, "h_mean": 0.9, "g_mean": 0.8, "bounded_loss": 0.2}
    goal = Reductions(groups=["G"], objective=objective, constraints=constraints).goal(sizes)
    counts = counts_of(sizes, rng)
    score = sum(term.value([int(x) for x in counts]) for term in goal.terms())
    assert float(score) == pytest.approx(goal.value(counts), abs=1e-6)


def random_part(rng, convex, size):
    rows = int(rng.integers(1, 4))
    if convex:
        return Part("f", Largest(), rng.normal(size=(rows, size)), rng.normal(size=rows) / 4)
    return Part("f", HarmonicMean(), np.eye(size), np.zeros(size), -1, 1.0)


@given(seeds)
def test_lemma_4_1_whoever_nearly_minimises_h_nearly_solves_the_constrained_problem(seed):
    """On any finite set that holds a point which keeps to the constraint."""
    rng = np.random.default_rng(seed)
    size, alpha, steep = int(rng.integers(1, 4)), float(rng.uniform(0.01, 1)), float(rng.uniform(0.1, 50))
    f, g = random_part(rng, seed % 3 > 0, size), random_part(rng, True, size)
    points = rng.random((60, size))
    feasible = [x for x in points if g.value(x) <= 0]
    if not feasible:
        return
    goal = Goal(f, (g,), steep, Smoothing())
    best, bound = min(map(goal.value, points)), min(f.value(x) for x in feasible)
    inner = f.function.lipschitz(len(f.slopes)) * np.linalg.norm(f.slopes, 2)
    for x in points:
        if goal.value(x) <= best + alpha:
            assert f.value(x) <= bound + alpha + 1e-9
            assert g.value(x) <= (alpha + inner * math.sqrt(size)) / steep + 1e-9


def test_the_penalty_is_that_of_corollary_4_2():
    sizes = made_up(0)
    part = Reductions(groups=["G"]).goal(sizes).objective
    assert penalty(part, 0.05) == pytest.approx((0.05 + 1) / 0.05)
    worst = Reductions(groups=["G"], objective="worst_error").goal(sizes).objective
    assert penalty(worst, 0.1) == pytest.approx((0.1 + math.sqrt(3)) / 0.1)
    worst = Reductions(groups=["G"], objective="worst_log_loss").goal(sizes).objective
    assert penalty(worst, 0.1) == pytest.approx((0.1 + 4 * math.sqrt(3)) / 0.1)


@given(seeds, st.sampled_from(get_args(ObjectiveName)))
def test_lemma_4_1_covers_the_range_of_every_objective(seed, objective):
    """L_f c sqrt(K) bounds the distance of two classifiers' objectives."""
    sizes, rng = made_up(seed), np.random.default_rng(seed)
    part = Reductions(groups=["G"], objective=objective).goal(sizes).objective
    one, other = (part.value(counts_of(sizes, rng)) for _ in range(2))
    assert abs(one - other) <= 0.1 * penalty(part, 0.1) - 0.1


def test_groups_of_too_few_records_are_named_and_left_out():
    numbers = np.array([[200.0, 100.0], [150.0, 2.0], [80.0, 60.0]])
    sizes = Sizes(("a", "b", "c"), numbers, 0.0, 10.0)
    goal = Reductions(groups=["G"], constraints={"equalized_odds": 0.1, "error_parity": 0.1}).goal(sizes)
    assert goal.lacking == (("equalized_odds", "b"),)
    noisy = Sizes(("a", "b", "c"), numbers, 40.0, 10.0)  # 60 records are not told from none by noise of 40
    assert Reductions(groups=["G"], constraints={"true_positive_parity": 0.1}).goal(noisy).lacking == (
        ("true_positive_parity", "a"),
        ("true_positive_parity", "b"),
        ("true_positive_parity", "c"),
    )
    assert not Reductions(groups=["G"], constraints={"true_positive_parity": 0.1}).goal(noisy).constraints


def test_corrected_weights_are_no_worse_than_classic_ones_or_than_any_on_a_grid():
    sizes, rng = made_up(1, 2), np.random.default_rng(1)
    goal = Reductions(groups=["G"], constraints={"equalized_odds": 0.02}).goal(sizes)
    tables = np.array([counts_of(sizes, rng) for _ in range(3)])
    weights = np.zeros(0)
    for t in range(1, 4):
        weights = mixed("corrected", goal, tables[:t], weights)
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1)
    grid = [np.array([a, b, 40 - a - b]) / 40 for a, b in itertools.product(range(41), repeat=2) if a + b <= 40]
    assert goal.smooth(weights @ tables) <= min(goal.smooth(w @ tables) for w in grid) + 1e-6


def test_classic_weights_are_two_over_t_plus_two():
    sizes = made_up(1, 2)
    goal, tables, weights = Reductions(groups=["G"]).goal(sizes), np.zeros((4, 16)), np.zeros(0)
    for t in range(1, 5):
        weights = mixed("classic", goal, tables[:t], weights)
    assert np.allclose(weights, [2 / 20, 4 / 20, 6 / 20, 8 / 20])
