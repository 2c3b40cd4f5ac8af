"""One estimate out of several synthetic tables, with an interval for noise and sampling.

Each of m tables is drawn from a model that was fitted to noise of its own, so the variance b of the m estimates
carries what noise does to them. The variance that an analyst's own software states is that of a sample as large as the
synthetic table; as that of the private rows it is `size` times as large, if the table has `size` times as many rows.
The error of the mean of the estimates has the variance

    T = (1 + 1/m) b + size x (mean of the stated variances)

in the manner of Rubin's rules for synthetic data. b holds what drawing the rows adds as well, so that T is a little too
large, the less so the larger the tables. Student's distribution has (m - 1) (T / ((1 + 1/m) b))^2 degrees of freedom.
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
    """An estimate, and what is known of its error."""

    estimate: float
    """The mean over the tables."""
    noise_sd: float
    """The standard deviation of what noise and drawing do to it."""
    sd: float
    """The same with the sampling error of the private rows."""
    low: float
    """The lower end of the interval for the population that the private rows are a random sample of."""
    high: float
    """The upper end."""
    freedom: float
    """The degrees of freedom of Student's distribution."""


def combine(
    estimates: Sequence[float], variances: Sequence[float], *, size: float = 1.0, level: float = 0.95
) -> Combined:
    """Estimates of one number from each of the tables of `Release.samples`, as one.

    It is for the number as it is in the release's model. What the model leaves out is in no interval: an association of
    columns that no measured table holds together is none in the tables.

    Args:
        estimates: One a table.
        variances: The squares of their standard errors, as software states them for each table.
        size: How many times as many rows a table has as the private one.
        level: With what probability the interval holds.

    Returns:
        The mean with its interval.

    Raises:
        UsageError: Fewer than two tables, or numbers that are none.
    """
    from scipy.stats import t

    q, u = np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if q.ndim != 1 or q.shape != u.shape or len(q) < 2:
        raise UsageError("combine: give one estimate and one variance for each of at least two tables.")
    if not (np.isfinite(q).all() and np.isfinite(u).all() and (u >= 0).all()):
        raise UsageError("combine: estimates are finite numbers, and variances are not below 0.")
    number("combine: size", size, above=0)
    number("combine: the level", level, above=0, below=1, hint="; 0.95 is usual")
    noise = (1 + 1 / len(q)) * float(q.var(ddof=1))
    total = noise + size * float(u.mean())
    freedom = (len(q) - 1) * (total / noise) ** 2 if noise > 0 else math.inf
    half = float(t.ppf((1 + level) / 2, freedom)) * math.sqrt(total)
    mean = float(q.mean())
    return Combined(mean, math.sqrt(noise), math.sqrt(total), mean - half, mean + half, freedom)
