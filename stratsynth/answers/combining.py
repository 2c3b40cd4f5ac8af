"""Combine estimates from several synthetic tables into one, with an interval for noise and sampling.

Each of m tables is drawn from a model fitted to noise of its own, so the variance b of the m estimates contains the
effect of that noise. The variance that an analyst's own software states is that of a sample as large as the synthetic
table; for the private rows it is `size` times as large, if the table has `size` times as many rows. The mean of the
estimates has the error variance

    T = (1 + 1/m) b + size x (mean of the stated variances)

in the manner of Rubin's rules for synthetic data. b includes the variance of drawing the rows, so that T is a little
too large, the less so the larger the tables. Student's distribution has (m - 1) (T / ((1 + 1/m) b))^2 degrees of
freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stratsynth.checks import number
from stratsynth.errors import UsageError


@dataclass(frozen=True)
class Combined:
    """One combined estimate with its standard deviations and interval."""

    estimate: float
    """Mean of the tables' estimates."""
    noise_sd: float
    """Standard deviation due to noise and drawing of rows: sqrt((1 + 1/m) b)."""
    sd: float
    """Standard deviation sqrt(T): noise, drawing and the sampling error of the private rows."""
    low: float
    """Lower end of the interval for a population of which the private rows would be a simple random sample."""
    high: float
    """Upper end of that interval."""
    freedom: float
    """Degrees of freedom of Student's distribution; infinite if all estimates are equal."""


def combine(
    estimates: Sequence[float], variances: Sequence[float], *, size: float = 1.0, level: float = 0.95
) -> Combined:
    """Return `Combined`, mean and interval of estimates of one number, one from each table of `Release.samples`.

    The interval is for the number as it is in the release's model. It excludes the model's own error: columns that no
    measured table holds together are independent in the tables.

    Args:
        estimates: One for each table.
        variances: Squared standard errors, as software states them for each table.
        size: Rows of a synthetic table divided by rows of the private one.
        level: Probability with which the interval holds, in (0, 1).

    Returns:
        Mean of the estimates with its interval.

    Raises:
        UsageError: Fewer than two tables, or numbers that are not finite.
    """
    from scipy.stats import t

    q, u = np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if q.ndim != 1 or q.shape != u.shape or len(q) < 2:
        raise UsageError("combine: give one estimate and one variance for each of at least two tables.")
    if not (np.isfinite(q).all() and np.isfinite(u).all() and (u >= 0).all()):
        raise UsageError("combine: estimates are finite numbers, and variances are not below 0.")
    number("combine: size", size, above=0)
    number("combine: the level", level, above=0, below=1, hint="; 0.95 is usual")
    # (1 + 1/m) b
    noise = (1 + 1 / len(q)) * float(q.var(ddof=1))
    total = noise + size * float(u.mean())
    freedom = (len(q) - 1) * (total / noise) ** 2 if noise > 0 else math.inf
    half = float(t.ppf((1 + level) / 2, freedom)) * math.sqrt(total)
    mean = float(q.mean())
    return Combined(mean, math.sqrt(noise), math.sqrt(total), mean - half, mean + half, freedom)
