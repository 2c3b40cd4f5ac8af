"""Lower bounds on privacy loss from the scores of two samples: pure functions.

Scores s0 come from one table, s1 from its neighbour. A fixed threshold t turns them into a test that says "neighbour"
when a score is at least t. Its error rates are

    F = P(s0 >= t)    false positives,        N = P(s1 < t)    false negatives.

Privacy bounds every test's error rates from below, whatever the score: so any score and any threshold that was fixed
before the scores were drawn give a valid lower bound on the privacy parameters. The likelihood ratio gives the best
one. F and N are replaced by upper confidence bounds (Clopper and Pearson 1934), each at half of alpha, so that a
statement below is wrong with probability at most alpha.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

DIGITS = 9
"""Digits after the point that scores are rounded to, so that an audit does not detect floating-point errors."""


class AuditErrors(NamedTuple):
    """Numbers of errors of a test, or arrays of such numbers."""

    positives: Any
    """False positives: runs on the first table classified as the neighbour's."""
    negatives: Any
    """False negatives: runs on the neighbour classified as the first table's."""
    runs: int
    """Number of runs on each table."""


def rounded(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Array like `scores`, an array, rounded to `DIGITS` digits after the point."""
    found: NDArray[np.float64] = np.round(scores, DIGITS)
    return found


def jittered(scores: NDArray[np.float64], spacing: float, rng: Generator) -> NDArray[np.float64]:
    """Array like `scores`, an array, plus uniform noise by `rng` as wide as `spacing`, that of the lattice they lie on.

    Integer answers give scores on a lattice, where thresholds reach few error rates. The jitter makes it a randomised
    test; it is independent of the data, so it can only lower the bound.
    """
    return scores + spacing * (rng.random(scores.shape) - 0.5)


def errors(scores0: NDArray[np.float64], scores1: NDArray[np.float64], threshold: float) -> AuditErrors:
    """Return AuditErrors, the counts of errors of the test `score >= threshold`, and the number of runs a table.

    `scores0` is an array of the runs' scores on the first table, `scores1` on its neighbour; ValueError for arrays of
    different sizes.
    """
    if scores0.shape != scores1.shape:
        raise ValueError("both tables need the same number of runs")
    at = round(threshold, DIGITS)
    return AuditErrors(int((rounded(scores0) >= at).sum()), int((rounded(scores1) < at).sum()), scores0.size)


def upper(count: Any, runs: int, alpha: float) -> Any:
    """One-sided Clopper-Pearson bound: the largest p with at most `count` of `runs` successes at probability alpha.

    The true p is above it with probability at most alpha. It solves P(Binomial(runs, p) <= count) = alpha, so it is the
    (1 - alpha)-quantile of Beta(count + 1, runs - count), and 1 when count = runs.
    """
    count = np.asarray(count, dtype=np.float64)
    found = np.where(count < runs, special.betaincinv(count + 1, np.maximum(runs - count, 0.5), 1 - alpha), 1.0)
    return found[()]


def mu_of(positive: Any, negative: Any) -> Any:
    """Lower bound on mu of Gaussian DP from error rates F (`positive`), N (`negative`): z(1 - F) - z(N), z normal.

    Rates are numbers, or arrays, which give an array. mu-GDP (Dong, Roth and Su 2019) says that telling the tables
    apart is no easier than telling N(0, 1) from N(mu, 1).
    """
    return np.maximum(0.0, -special.ndtri(positive) - special.ndtri(negative))


def root_of_rho(positive: Any, negative: Any) -> Any:
    """Lower bound on sqrt(2 rho) from error rates F (`positive`), N (`negative`), by the divergence of outcomes.

    rho-zCDP (Bun and Steinke 2016) bounds the Renyi divergence of order a by rho a; at order 1 the Kullback-Leibler
    divergence by rho, in both directions, and a test's outcome has no larger divergence. For Gaussian noise sqrt(2 rho)
    is mu, and a test of small mu shows sqrt(2 / pi) of it.
    """
    positive, power = np.asarray(positive, np.float64), 1 - np.asarray(negative, np.float64)
    # both directions of the divergence are bounded by rho, so the larger one gives the better bound
    both = np.maximum(_divergence(power, positive), _divergence(positive, power))
    return np.where(power > positive, np.sqrt(2 * both), 0.0)[()]


def _divergence(p: Any, q: Any) -> Any:
    """Kullback-Leibler divergence of the Bernoulli distribution of probability p from that of q; numbers or arrays."""
    return special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)


def epsilon_of_errors(positive: Any, negative: Any, delta: float) -> Any:
    """Lower bound on epsilon at `delta` from error rates F (`positive`), N (`negative`): log((1 - N - delta) / F).

    Rates are numbers, or arrays, which give an array. From 1 - N = P(s1 >= t) <= exp(epsilon) P(s0 >= t) + delta.
    """
    power = np.maximum(1 - np.asarray(negative) - delta, 0.0)
    with np.errstate(divide="ignore"):
        return np.maximum(0.0, np.log(power / positive))
