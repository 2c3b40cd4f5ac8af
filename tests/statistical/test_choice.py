"""Choices and coins: frequencies against their exact probabilities."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from stratsynth.noise import exponential_choice, poisson_coins

ACCEPT, REJECT = 1e-9, 1e-20


def p_value(scores: Sequence[int], drawn_at: float, judged_at: float, size: int = 30_000) -> float:
    seen = np.bincount([exponential_choice(scores, drawn_at) for _ in range(size)], minlength=len(scores))
    law = np.exp(judged_at * (np.array(scores) - max(scores)) / 2)
    return float(stats.chisquare(seen, law / law.sum() * size).pvalue)


@pytest.mark.parametrize("scores", [[0, 1, 2, 3, 4], [-7, -7, -7], [10**9, 10**9 + 2, 10**9 + 3], [5, 0, 5, 2, 2, 4]])
def test_choices_have_exponential_probabilities(scores: list[int]):
    assert p_value(scores, 0.9, 0.9) > ACCEPT


def test_the_factor_one_half_is_there():
    assert p_value([0, 1, 2, 3, 4], 1.0, 2.0) < REJECT
    assert p_value([0, 1, 2, 3, 4], 1.0, 0.5) < REJECT


def test_a_fraction_is_taken_exactly():
    assert p_value([0, 2, 4], Fraction(2, 3), 2 / 3) > ACCEPT


@pytest.mark.parametrize("rate", [0.5, 1 / 3, 0.01, 1 - 1 / 300, Fraction(2, 7)])
def test_coins_have_their_rate(rate: float | Fraction):
    size = 1_000_000
    heads = int(poisson_coins(size, rate).sum())
    p = float(rate)
    assert stats.binomtest(heads, size, p).pvalue > ACCEPT
    assert stats.binomtest(heads, size, 0.7 * p).pvalue < REJECT


def test_batches_of_coins_are_binomial():
    size, rate, batches = 200, 0.1, 20_000
    sizes = poisson_coins(size * batches, rate).reshape(batches, size).sum(axis=1)
    dispersion = ((sizes - size * rate) ** 2).sum() / (size * rate * (1 - rate))
    assert 7 > (dispersion - batches) / (2 * batches) ** 0.5 > -7
    fixed = np.full(batches, size * rate)  # negative control: batches of one size are no Poisson sample
    assert (((fixed - size * rate) ** 2).sum() - batches) / (2 * batches) ** 0.5 < -50
