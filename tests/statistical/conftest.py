"""Judgement of the noise tests: chi-square tests that must accept the right law and reject its neighbours."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

Pmf = Callable[[np.ndarray], np.ndarray]


def _chi_square(draws: np.ndarray, pmf: Pmf, spread: float) -> float:
    """The p-value of draws against a law on the integers, over bins that expect at least 20 draws."""
    reach = math.ceil(12 * spread) + 4
    law = pmf(np.arange(-reach, reach + 1))
    width = max(1, round(spread / 10))
    edges = np.arange(0, law.size, width)
    expected = np.add.reduceat(law, edges) * draws.size
    inside = np.clip(draws + reach, 0, law.size - 1)
    observed = np.bincount(inside // width, minlength=edges.size)
    big = expected >= 20
    # What is left over goes into one bin, together with whatever lies beyond reach.
    o = np.append(observed[big], observed[~big].sum())
    e = np.append(expected[big], max(expected[~big].sum(), draws.size - expected[big].sum(), 1e-9))
    if e[-1] < 5:
        o, e = np.append(o[:-2], o[-2:].sum()), np.append(e[:-2], e[-2:].sum())
    statistic = ((o - e) ** 2 / e).sum()
    return float(stats.chi2.sf(statistic, max(1, e.size - 1)))


def _two_sample(a: np.ndarray, b: np.ndarray, spread: float) -> float:
    """The p-value of two samples of one size coming from one law."""
    width = max(1, round(spread / 10))
    lo = min(a.min(), b.min())
    x, y = ((v - lo) // width for v in (a, b))
    size = int(max(x.max(), y.max())) + 1
    table = np.array([np.bincount(v, minlength=size) for v in (x, y)])
    rare = table.sum(axis=0) < 40
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return float(stats.chi2_contingency(table, correction=False).pvalue)


@pytest.fixture
def chi_square() -> Callable[[np.ndarray, Pmf, float], float]:
    return _chi_square


@pytest.fixture
def two_sample() -> Callable[[np.ndarray, np.ndarray, float], float]:
    return _two_sample
