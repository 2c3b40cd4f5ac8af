"""The discrete Laplace: its digits to 80 digits, its draws against the law and against OpenDP."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from stratsynth.noise import laplace
from stratsynth.noise.bernoulli import decay
from stratsynth.noise.entropy import SYSTEM, Entropy
from stratsynth.noise.laplace import _geometric, _odds

Judge = Callable[..., float]
ACCEPT, REJECT = 1e-9, 1e-20


def pmf(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.exp(-np.abs(x) / scale) * np.tanh(0.5 / scale)


@pytest.mark.parametrize("scale", [0.1, 0.5, 1, 3.7, 20, Fraction(2000, 3)])
def test_draws_follow_the_law_and_no_other(scale: float | Fraction, chi_square: Judge):
    draws = laplace.sample(scale, 300_000)
    b = float(scale)
    assert chi_square(draws, pmf(b), b) > ACCEPT
    for factor in (0.7, 1.3):
        assert chi_square(laplace.sample(factor * b, 300_000), pmf(b), b) < (REJECT if b > 0.2 else 1e-3)


@pytest.mark.parametrize("scale", [0.8, 5.8, 60.0])
def test_same_law_as_opendp(scale: float, two_sample: Judge):
    dp = pytest.importorskip("opendp.prelude", reason="the reference, opendp, is not installed")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    size = 60_000
    theirs = np.array(dp.m.make_laplace(*space, scale=scale)([0] * size))
    assert two_sample(laplace.sample(scale, size), theirs, scale) > ACCEPT
    for factor in (0.7, 1.3):
        assert two_sample(laplace.sample(factor * scale, size), theirs, scale) < REJECT


@pytest.mark.parametrize("scale", [1e4, 1e9, 1e15])
def test_wide_draws_are_laplace_at_their_scale(scale: float):
    draws = laplace.sample(scale, 100_000) / scale
    assert stats.kstest(draws, stats.laplace.cdf).pvalue > ACCEPT
    for factor in (0.7, 1.3):
        assert stats.kstest(draws / factor, stats.laplace.cdf).pvalue < REJECT


@pytest.mark.parametrize("digits", [0, 1, 2, 5])
def test_the_number_of_digits_does_not_matter(digits: int):
    """With few digits the quotient does the work that is otherwise too rare to test."""
    scale, size = Fraction(3, 2), 100_000
    seen = np.bincount(np.minimum(_geometric(scale, digits, size, SYSTEM), 12), minlength=13)
    law = np.exp(-np.arange(13) / 1.5) * -np.expm1(-1 / 1.5)
    law[12] = np.exp(-12 / 1.5)
    assert stats.chisquare(seen, law * size).pvalue > ACCEPT


def test_digits_and_quotient_multiply_to_the_geometric_law():
    mpmath = pytest.importorskip("mpmath")
    scale, digits, bits = Fraction(7, 3), 6, 256
    with mpmath.workdps(70):
        r = mpmath.exp(-mpmath.mpf(3) / 7)
        for m in (0, 1, 5, 63, 64, 200):
            p = mpmath.mpf(1)
            for i in range(digits):
                one = mpmath.mpf(_odds(2**i / scale)(bits)[0]) / mpmath.mpf(2) ** bits
                p *= one if m >> i & 1 else 1 - one
            more = mpmath.mpf(decay(2**digits / scale)(bits)[0]) / mpmath.mpf(2) ** bits
            p *= more ** (m >> digits) * (1 - more)
            assert abs(p / ((1 - r) * r**m) - 1) < mpmath.mpf(10) ** -60


class Heads(Entropy):
    """Every coin comes up heads for a while, then tails."""

    private = False

    def __init__(self, heads: int) -> None:
        self.heads = heads

    def read(self, count: int) -> bytes:
        self.heads -= 1
        return bytes(count) if self.heads >= 0 else b"\xff" * count


def test_the_noise_is_unbounded_and_kept_modulo_two_to_the_64():
    # Heads are the word 0: 62 digits of one, and then a quotient of 2.
    drawn = _geometric(Fraction(2**62), 62, 1, Heads(62 + 2))
    assert int(drawn[0]) % 2**64 == 2**62 - 1 + 2 * 2**62
    # The answer 5 + 3 * 2^62 - 1, added in int64 unchecked, is right modulo 2^64.
    assert int((drawn + 5)[0]) % 2**64 == 5 + 3 * 2**62 - 1
