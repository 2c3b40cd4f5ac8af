"""The discrete Gaussian: its law to 80 digits against the stated error, its draws against two references."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from stratsynth.noise import gaussian
from stratsynth.noise.gaussian import _blocks, _split
from stratsynth.noise.table import SamplerTable

Judge = Callable[..., float]
ACCEPT, REJECT = 1e-9, 1e-20
mpmath = pytest.importorskip("mpmath")


def pmf(sigma: float) -> Callable[[np.ndarray], np.ndarray]:
    def law(x: np.ndarray) -> np.ndarray:
        w = np.exp(-(x.astype(float) ** 2) / (2 * sigma**2))
        return w / w.sum()

    return law


def probabilities(table: SamplerTable) -> list[int]:
    """Probability of each value by the table, in units of 2^-128, exactly."""
    borders = [(int(h) << 64) | int(c) for h, c in zip(table.high, table.low, strict=True)]
    return [b - a for a, b in zip([0, *borders], [*borders, 1 << 128], strict=True)]


def weights(sigma: float, last: int, shift: int = 0) -> list[object]:
    """exp(-(2^shift y)^2 / (2 sigma^2)) for y = 0, ..., last, by mpmath."""
    return [mpmath.exp(-(mpmath.mpf(y << shift) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for y in range(last + 1)]


@pytest.mark.parametrize("sigma", [1e-3, 0.05, 0.1, 0.3, 0.77, 1.0, 5.778694740, 60.0, 1000.1])
def test_table_law_is_within_the_stated_error(sigma: float):
    with mpmath.workdps(80):
        table = gaussian._table(sigma)
        half = weights(sigma, int(16 * sigma) + 4)
        total = 2 * mpmath.fsum(half) - 1
        given = {table.first + j: p for j, p in enumerate(probabilities(table)) if p}
        reach = range(-len(half) + 1, len(half))
        assert set(given) <= set(reach)
        distance = mpmath.fsum(abs(mpmath.mpf(given.get(x, 0)) / 2**128 - half[abs(x)] / total) for x in reach) / 2
        assert distance <= gaussian.tv_error(sigma) < 1e-33


@pytest.mark.parametrize("sigma", [1500.25, 1024.0])
def test_wide_law_is_within_the_stated_error(sigma: float):
    shift, s = _split(sigma)
    assert shift == 1
    with mpmath.workdps(60):
        # x = 2y + r has the table's share of y times exp(-(x^2 - (2y)^2) / (2 sigma^2)).
        given = probabilities(_blocks(s).table)
        true = weights(sigma, 2 * len(given) + 4000)
        mass = [given[x // 2] * true[x] / true[x - x % 2] for x in range(2 * len(given))]
        whole, total = 2 * mpmath.fsum(mass) - mass[0], 2 * mpmath.fsum(true) - true[0]
        distance = mpmath.fsum(abs(m / whole - w / total) for m, w in zip(mass, true, strict=False))
        distance += mpmath.fsum(true[len(mass) :]) / total
        assert distance <= gaussian.tv_error(sigma) < 1e-33


@pytest.mark.parametrize("sigma", [512.0, 700.3, 1023.999])
def test_sure_acceptance_never_exceeds_the_true_probability(sigma: float):
    sure = _blocks(sigma).sure
    y = np.arange(len(sure))
    lowest = np.exp(-(2 * y + 1) / (2 * sigma**2)) * 65536
    assert (sure <= lowest - 0.5).all()
    assert (sure[:-1] >= lowest[:-1] - 2.5).all()


@pytest.mark.parametrize("sigma", [0.4, 0.8, 5.8, 60.0, 900.0, 1030.0, 2000.0])
def test_draws_follow_the_law_and_no_other(sigma: float, chi_square: Judge):
    draws = gaussian.sample(sigma, 400_000)
    assert chi_square(draws, pmf(sigma), sigma) > ACCEPT
    for factor in (0.7, 1.3):
        assert chi_square(draws, pmf(factor * sigma), factor * sigma) < REJECT
        assert chi_square(gaussian.sample(factor * sigma, 400_000), pmf(sigma), sigma) < REJECT


@pytest.mark.parametrize("sigma", [0.8, 5.8, 60.0])
def test_same_law_as_opendp(sigma: float, two_sample: Judge):
    dp = pytest.importorskip("opendp.prelude", reason="the reference, opendp, is not installed")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    size = 60_000
    theirs = np.array(dp.m.make_gaussian(*space, scale=sigma)([0] * size))
    assert two_sample(gaussian.sample(sigma, size), theirs, sigma) > ACCEPT
    for factor in (0.7, 1.3):
        assert two_sample(gaussian.sample(factor * sigma, size), theirs, sigma) < REJECT


@pytest.mark.parametrize("sigma", [1024.0, 1e4, 123_456.789, 1e6, 1e9, 1e12])
def test_wide_draws_are_normal_at_their_scale(sigma: float):
    draws = gaussian.sample(sigma, 200_000) / sigma
    assert stats.kstest(draws, stats.norm.cdf).pvalue > ACCEPT
    for factor in (0.7, 1.3):
        assert stats.kstest(draws / factor, stats.norm.cdf).pvalue < REJECT
    n = draws.size
    assert abs(draws.mean()) < 6.5 / n**0.5
    assert abs((draws**2).mean() - 1) < 6.5 * (2 / n) ** 0.5
    assert abs((draws**3).mean()) < 6.5 * (15 / n) ** 0.5
    assert abs((draws**4).mean() - 3) < 6.5 * (96 / n) ** 0.5


@pytest.mark.parametrize("sigma", [1e6, 1e12])
def test_wide_draws_have_uniform_low_digits(sigma: float):
    draws = gaussian.sample(sigma, 200_000)
    for modulus in (2, 7, 64, 1000):
        assert stats.chisquare(np.bincount(draws % modulus, minlength=modulus)).pvalue > ACCEPT


def test_draws_are_independent_of_their_neighbours():
    for sigma in (5.8, 1e6):
        x = gaussian.sample(sigma, 400_000) / sigma
        for lag in (1, 2, 4, 1 << 15, 1 << 16):
            assert abs((x[lag:] * x[:-lag]).mean()) < 6.5 / (x.size - lag) ** 0.5
