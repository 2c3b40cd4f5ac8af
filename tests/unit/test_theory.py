"""The theory of stratified means: the paper's numbers, its slips put right, and the laws by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stratsynth.evaluation.means import theory
from stratsynth.evaluation.means.theory import NY_2018, NY_2018_PEOPLE

from stratsynth.errors import UsageError

N, K = NY_2018_PEOPLE, 9


def test_the_numbers_of_the_papers_example():
    assert theory.worst_log_sizes(N, K) == pytest.approx(89.94, abs=0.005)
    assert theory.best_log_sizes(N, K) == pytest.approx(20.19, abs=0.005)
    assert theory.expected_log_sizes(N, K, 0.13) == pytest.approx(40.00, abs=0.005)
    assert theory.expected_log_sizes_whole(N, K, 0.13) == pytest.approx(54.3, abs=0.05)


def test_the_papers_alpha_is_the_fit_by_moments():
    assert theory.alpha_by_moments(NY_2018) == pytest.approx(0.1294, abs=5e-5)


@pytest.mark.parametrize("split", [(37, 37), (70, 4), (73, 1)])
def test_the_likelihood_says_something_else(split):
    """The two smallest groups have 74 people; however they share them, the estimate is nowhere near 0.13."""
    assert 0.2 < theory.alpha_by_likelihood([*NY_2018[:7], *split]) < 0.28


def test_the_three_readings_of_eighty_per_cent():
    found = theory.savings(NY_2018, n=N, alpha=0.13)
    assert found.expected == pytest.approx(0.716, abs=0.0005)
    assert found.actual == pytest.approx(0.31, abs=0.005)
    assert found.whole == pytest.approx(0.51, abs=0.005)


@pytest.mark.parametrize("alpha", [0.12, 0.125, 0.13])
def test_seventy_to_eighty_two_per_cent_whatever_alpha_was_meant(alpha):
    assert 0.70 <= theory.savings(NY_2018, n=N, alpha=alpha).expected <= 0.82


def test_theorem_9_is_an_equality_of_n_g():
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([0.4] * 5, size=200_000)
    sums = np.log(1000 * shares).sum(axis=1)
    error = sums.std() / math.sqrt(len(sums))
    assert sums.mean() == pytest.approx(theory.expected_log_sizes(1000, 5, 0.4), abs=5 * error)


def test_the_expectation_for_whole_people():
    rng = np.random.default_rng(2)
    sizes = np.maximum(np.rint(1000 * rng.dirichlet([0.2] * 5, size=100_000)), 1)
    sums = np.log(sizes).sum(axis=1)
    error = sums.std() / math.sqrt(len(sums))
    assert sums.mean() == pytest.approx(theory.expected_log_sizes_whole(1000, 5, 0.2), abs=5 * error)


@given(st.floats(0.05, 5), st.integers(2, 20))
def test_moments_find_the_alpha_they_came_from(alpha, k):
    """Shares of two kinds with the wanted sum of squares."""
    second = (1 + alpha) / (1 + k * alpha)
    step = math.sqrt((second - 1 / k) * k / (k - 1))  # one share above the rest
    rest = (1 - step) / k
    assert theory.alpha_by_moments([rest + step, *[rest] * (k - 1)]) == pytest.approx(alpha, rel=1e-6)


def test_the_likelihood_is_greatest_where_it_says():
    from scipy.stats import dirichlet

    shares = np.array(NY_2018) / sum(NY_2018)
    alpha = theory.alpha_by_likelihood(NY_2018)
    here, near = (dirichlet.logpdf(shares, [a] * K) for a in (alpha, alpha * 1.01))
    assert here > near
    assert here > dirichlet.logpdf(shares, [alpha * 0.99] * K)


def test_many_draws_give_alpha_back():
    rng = np.random.default_rng(3)
    draws = rng.dirichlet([0.3] * 200)
    assert theory.alpha_by_likelihood(np.maximum(draws, 1e-300)) == pytest.approx(0.3, rel=0.2)
    assert theory.alpha_by_moments(draws) == pytest.approx(0.3, rel=0.5)


@given(st.lists(st.integers(2, 10**6), min_size=1, max_size=30), st.floats(0, 50), st.floats(0.001, 0.2))
def test_the_bound_of_proposition_8_covers_the_noise(sizes, radius, gamma):
    """Deviation times log(1/gamma), up to the constant 2 sqrt(2) that its O hides."""
    n, k = sum(sizes), len(sizes)
    noise = theory.laplace_deviation(sizes, radius, 1, gamma) * math.log(1 / gamma)
    if n > k:
        assert noise <= 2 * math.sqrt(2) * theory.stratified_bound(n, k, radius, 1, gamma) * (1 + 1e-9)


def test_the_noise_by_simulation():
    sizes, radius, epsilon, gamma = np.array([900, 90, 10]), 3.0, 0.5, 0.01
    scale = 2 * (radius + np.sqrt(np.log(sizes / gamma))) / (sizes * epsilon)
    noise = np.random.default_rng(4).laplace(scale=scale, size=(200_000, 3)) @ (sizes / sizes.sum())
    assert noise.std() == pytest.approx(theory.laplace_deviation(sizes, radius, epsilon, gamma), rel=0.01)


def test_a_large_radius_costs_root_k_however_sparse_the_groups_are():
    """The claim of the paper that the saving holds for any R is wrong: here sparsity saves next to nothing."""
    equal, sparse = [1000] * 9, [8992, *[1] * 8]
    dear = [theory.laplace_deviation(sizes, 1000, 1, 0.01) for sizes in (equal, sparse)]
    cheap = [theory.laplace_deviation(sizes, 0, 1, 0.01) for sizes in (equal, sparse)]
    assert dear[1] > 0.99 * dear[0]
    assert cheap[1] < 0.75 * cheap[0]


def test_one_group_is_the_plain_mean():
    assert theory.stratified_bound(1000, 1, 2, 1, 0.1) == theory.pooled_bound(1000, 2, 1, 0.1)
    assert theory.stratified_bound(10**6, 100, 10**6, 1, 0.1) == pytest.approx(
        10 * theory.pooled_bound(10**6, 10**6, 1, 0.1), rel=1e-4
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: theory.worst_log_sizes(5, 5),
        lambda: theory.expected_log_sizes(100, 1, 0.5),
        lambda: theory.expected_log_sizes(100, 3, 0),
        lambda: theory.alpha_by_moments([5, 5, 5]),
        lambda: theory.alpha_by_moments([5, 0]),
        lambda: theory.alpha_by_moments([5]),
        lambda: theory.alpha_by_likelihood([5, 0]),
        lambda: theory.alpha_by_likelihood([5, 5]),
        lambda: theory.log_sizes([]),
        lambda: theory.log_sizes([1, math.nan]),
        lambda: theory.log_sizes([-1, 2]),
        lambda: theory.laplace_deviation([10], -1, 1, 0.1),
        lambda: theory.stratified_bound(10, 2, 1, 0, 0.1),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(UsageError):
        wrong()
