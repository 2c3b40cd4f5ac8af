"""Intervals of mixed noise, and the variance of weighted means, against simulation."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stratsynth.errors import UsageError
from stratsynth.models.intervals import (
    half_width,
    noisy_shares_covariance,
    sampled_shares_covariance,
    weighted_variance,
)

LEVELS = [0.5, 0.9, 0.95, 0.99, 0.999999]


@pytest.mark.parametrize("level", LEVELS)
def test_a_normal_error(level):
    assert half_width(4.0, 0.0, level) == pytest.approx(2 * stats.norm.ppf((1 + level) / 2), rel=1e-9)


@pytest.mark.parametrize("level", LEVELS)
def test_a_laplace_error(level):
    variance = 2 * 0.7**2
    assert half_width(variance, 3 * variance**2, level) == pytest.approx(-0.7 * math.log(1 - level), rel=1e-6)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.floats(0.01, 0.9999))
def test_a_sum_of_both_has_the_level_it_claims(normal, scale, level):
    """By numerical integration over the Laplace part."""
    from scipy.integrate import quad

    width = half_width(normal**2 + 2 * scale**2, 12 * scale**4, level)

    def missed(u):  # the normal part's chance to leave the interval, at a Laplace part of size u scale
        out = stats.norm.sf((width - scale * u) / normal) + stats.norm.sf((width + scale * u) / normal)
        return math.exp(-u) * out

    turns = [(width + step * normal) / scale for step in (-9, -2, 0, 2, 9)]
    ends = [0.0, *(min(max(turn, 0.0), 60.0) for turn in turns), 60.0]
    miss = sum(quad(missed, low, high)[0] for low, high in pairwise(ends))
    assert miss == pytest.approx(1 - level, abs=2e-4)


def test_three_laplace_errors_and_a_normal_one():
    rng = np.random.default_rng(0)
    error = rng.laplace(scale=[1, 0.8, 0.3], size=(400_000, 3)).sum(axis=1) + rng.normal(scale=0.5, size=400_000)
    variance = 2 * (1 + 0.64 + 0.09) + 0.25
    fourth = 12 * (1 + 0.8**4 + 0.3**4)
    for level in (0.8, 0.9, 0.95, 0.99):
        assert (np.abs(error) < half_width(variance, fourth, level)).mean() == pytest.approx(level, abs=0.004)


@given(st.floats(0, 1e300), st.floats(0, 1e300), st.floats(0.001, 0.999))
def test_any_two_numbers_give_an_interval(variance, fourth, level):
    assert half_width(variance, fourth, level) >= 0


def test_no_error_and_unknown_error():
    assert half_width(0, 0, 0.95) == 0
    assert half_width(math.inf, 0, 0.95) == math.inf
    for level in (0, 1, -1, math.nan):
        with pytest.raises(UsageError):
            half_width(1, 0, level)


def test_the_variance_of_a_weighted_mean_is_exact():
    rng = np.random.default_rng(1)
    means, variances, shares = np.array([1.0, 5.0, -2.0]), np.array([0.5, 2.0, 1.0]), np.array([0.6, 0.3, 0.1])
    root = rng.normal(scale=0.05, size=(3, 3))
    covariance = root @ root.T
    w = rng.multivariate_normal(shares, covariance, size=1_000_000)
    m = rng.normal(means, np.sqrt(variances), size=(1_000_000, 3))
    assert (w * m).sum(axis=1).var() == pytest.approx(weighted_variance(means, variances, shares, covariance), rel=0.01)


def test_exact_shares_leave_the_groups_variances():
    assert weighted_variance([3, 4], [1, 2], [0.5, 0.5], np.zeros((2, 2))) == pytest.approx(0.75)


def test_the_covariance_of_shares_counted_in_a_sample():
    shares, n = np.array([0.7, 0.2, 0.1]), 500
    drawn = np.random.default_rng(2).multinomial(n, shares, size=200_000) / n
    assert np.allclose(np.cov(drawn.T), sampled_shares_covariance(shares, n), atol=3e-6)


def test_the_covariance_of_noisy_shares():
    counts, sigma = np.array([7000.0, 2000.0, 1000.0]), np.array([10.0, 10.0, 30.0])
    noisy = counts + np.random.default_rng(3).normal(scale=sigma, size=(200_000, 3))
    drawn = noisy / noisy.sum(axis=1, keepdims=True)
    found = noisy_shares_covariance(counts, sigma)
    assert np.allclose(np.cov(drawn.T), found, atol=0.02 * found.max())
    assert np.allclose(found.sum(axis=0), 0, atol=1e-18)
    assert np.array_equal(noisy_shares_covariance(counts, 10.0), noisy_shares_covariance(counts, [10.0] * 3))
