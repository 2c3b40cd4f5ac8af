"""Quotients of linear functions of the counts, such as shares and means, and their differences, as Answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.answers import intervals
from stratsynth.answers.intervals import Answer, RatioOfSums
from stratsynth.answers.squares import Functions, Squares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """Linear functions of queries of one kind: one row per query and cell, all cells of the first query first."""

    numerator: Functions
    """Count of the rows in a cell; for a mean, sum of their numbers."""
    denominator: Functions
    """Count of the rows that a share, rate or mean is taken over; for a count, of all rows."""
    moments: tuple[Functions, Functions] | None = None
    """Sums of the numbers, and of their squares, as drawn within bins; None for shares."""

    def take(self, cells: NDArray[np.intp]) -> QueryBatch:
        """Return a `QueryBatch` of this one's functions for the `cells` with these indices, in their order."""
        moments = None if self.moments is None else (self.moments[0].take(cells), self.moments[1].take(cells))
        return QueryBatch(self.numerator.take(cells), self.denominator.take(cells), moments)


def quotient(squares: Squares, asked: QueryBatch) -> RatioOfSums:
    """Return `RatioOfSums`: numerator over denominator of each cell of a `QueryBatch`, with their noise.

    Both are estimated by the least squares, `squares`.
    """
    (a, one), (b, two) = squares.estimate(asked.numerator), squares.estimate(asked.denominator)
    first, second = (a, a) if asked.moments is None else (squares.estimate(part)[0] for part in asked.moments)
    r = np.divide(a, b, out=np.full_like(a, np.nan), where=b > 0)
    return RatioOfSums(
        a,
        b,
        variance(squares, asked.numerator, one),
        squares.covariance(asked.numerator, asked.denominator),
        variance(squares, asked.denominator, two),
        second - 2 * r * first + r**2 * b,
        share=asked.moments is None,
        most=squares.most(asked.denominator),
    )


def quotients(
    squares: Squares,
    asked: QueryBatch,
    level: float,
    effect: float,
    reference: NDArray[np.intp] | None = None,
    *,
    against: QueryBatch | None = None,
    one_total: bool = False,
) -> Answer:
    """Return the Answer on quotients of a batch of functions, or on their differences from those of other cells.

    Args:
        squares: Least squares of the release.
        asked: `QueryBatch` of numerators and denominators.
        level: Probability of each interval.
        effect: Largest factor by which units of several rows, or weights, widen the sampling variance.
        reference: Array of the index of the cell that each one is compared with; None for the quotients themselves.
        against: `QueryBatch` that a cell is compared with; those of `asked` by default.
        one_total: True if all cells are shares of one total, so that a row is in one of them only.
    """
    found = quotient(squares, asked)
    if reference is None:
        return found.answer(level, effect)
    compared = (asked if against is None else against).take(reference)
    other, same = quotient(squares, compared), (np.arange(len(reference)) == reference) & (against is None)
    b, r, s = found.b, found.value, other.value
    # the noise in a / b is that of (a - r b) / b, to first order
    between = (
        squares.covariance(asked.numerator, compared.numerator)
        - s * squares.covariance(asked.numerator, compared.denominator)
        - r * squares.covariance(asked.denominator, compared.numerator)
        + r * s * squares.covariance(asked.denominator, compared.denominator)
    ) / (b * other.b)
    together = -effect * np.maximum(r * s, 0.0) / b if one_total else np.zeros_like(r)
    noise, sampling = (found.variance, other.variance), (effect * found.sampling, effect * other.sampling)
    answers = found.answer(level, effect), other.answer(level, effect)
    return intervals.difference(*answers, same, correlations(between, together, noise, sampling))


def variance(squares: Squares, functions: Functions, known: NDArray[np.bool_]) -> Floats:
    """Return an array: each function's noise variance, in records squared, at least 0; NaN outside the mask `known`.

    By the least squares, `squares`.
    """
    return np.where(known, np.maximum(squares.covariance(functions, functions), 0.0), np.nan)


def correlations(
    between: Floats, together: Floats, noise: tuple[Floats, Floats], sampling: tuple[Floats, Floats]
) -> intervals.ErrorCorrelations:
    """Return `ErrorCorrelations`, by cell, of two estimates' errors: of noise, and of noise and sampling.

    Args:
        between: Array by cell: covariance of their noise.
        together: Array by cell: covariance of their sampling errors.
        noise: Pair of arrays, the variances of the noise of each.
        sampling: Pair of arrays, the variances of the sampling error of each.
    """

    def correlation(covariance: Floats, one: Floats, other: Floats) -> Floats:
        scale = np.sqrt(one * other)
        return np.clip(np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0), -1.0, 1.0)

    both = (a + np.maximum(b, 0.0) for a, b in zip(noise, sampling, strict=True))
    return intervals.ErrorCorrelations(correlation(between, *noise), correlation(between + together, *both))
