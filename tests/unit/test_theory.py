"""The theory of stratified means: the paper's numbers, its slips put right, and the laws by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratsynth.errors import UsageError
from studies.means import theory
from studies.means.theory import NY_2018, NY_2018_PEOPLE

N, K = NY_2018_PEOPLE, 9


def test_the_numbers_of_the_papers_example():
    assert theory.worst_log_sizes(N, K) == pytest.approx(89.94, abs=0.005)
    assert theory.best_log_sizes(N, K) == pytest.approx(20.19, abs=0.005)
    assert theory.expected_log_sizes(N, K, 0.13) == pytest.approx(40.00, abs=0.005)
    assert theory.expected_log_sizes_whole(N, K, 0.13) == pytest.approx(54.3, abs=0.05)


def test_the_papers_alpha_is_the_fit_by_moments():
    assert theory.alpha_by_moments(NY_2018) == pytest.approx(0.1294, abs=5e-5)


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


def test_many_draws_give_alpha_back():
    rng = np.random.default_rng(3)
    assert theory.alpha_by_moments(rng.dirichlet([0.3] * 200)) == pytest.approx(0.3, rel=0.5)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: theory.worst_log_sizes(5, 5),
        lambda: theory.expected_log_sizes(100, 1, 0.5),
        lambda: theory.expected_log_sizes(100, 3, 0),
        lambda: theory.alpha_by_moments([5, 5, 5]),
        lambda: theory.alpha_by_moments([5, 0]),
        lambda: theory.alpha_by_moments([5]),
        lambda: theory.log_sizes([]),
        lambda: theory.log_sizes([1, math.nan]),
        lambda: theory.log_sizes([-1, 2]),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(UsageError):
        wrong()
