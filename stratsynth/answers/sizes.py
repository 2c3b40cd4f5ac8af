"""Sizes of groups and of everybody, each by least squares over all tables, with the covariances of their noise.

A measured table adds up to a noisy number of the records that it counts. With a group's copies averaged, n_s of
variance v_s, and a copy Z of everybody's number, of variance V, least squares moves each group by
v_s (Z - sum n) / (V + sum v), and groups add up to everybody. See `stratsynth.answers.squares`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.answers.squares import Functions, Squares
from stratsynth.answers.tables import of_tables, read_tables
from stratsynth.errors import StratsynthError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.certificate import Certificate
    from stratsynth.models import Model
    from stratsynth.schema import Schema
    from stratsynth.schema.inside import Inside


@dataclass(frozen=True)
class SizeOfGroup:
    """Estimated number of records in a group."""

    value: float
    """Estimate in records; noise may bring it below 0."""
    variance: float
    """Variance of its noise, in records squared."""
    with_total: float
    """Covariance of its noise with that of everybody's number, in records squared."""

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise, in records."""
        return math.sqrt(self.variance)


@dataclass(frozen=True)
class SizeEstimates:
    """Estimated numbers of records: of everybody, and of each measured group, which add up where all are measured."""

    total: SizeOfGroup
    groups: Mapping[str, SizeOfGroup]
    """Size by label of the innermost stratum; groups that nothing measured are left out."""


def size_estimates(
    labels: Sequence[str],
    values: NDArray[np.float64],
    variances: NDArray[np.float64],
    pooled: tuple[float, float] | None,
) -> SizeEstimates | None:
    """Return `SizeEstimates`, least squares, of disjoint groups that together hold everybody; None without a total.

    Args:
        labels: The label of each group.
        values: Array of its measured number of records; anything where the variance is infinite.
        variances: Array of the noise variance of each; infinite for a group that was not measured.
        pooled: Pair of a separate measurement of everybody's number and its variance; None without one.
    """
    known = np.isfinite(variances)
    if pooled is None and not known.all():
        return None
    summed = float(variances[known].sum())
    if pooled is None:
        total, variance, shared = float(values.sum()), summed, variances
    elif known.all():
        over, apart = pooled[1] + summed, pooled[0] - float(values.sum())
        # the noise of a group and of everybody: v_s V / (V + sum v); of everybody: V sum v / (V + sum v)
        step = variances / over if over > 0 else np.zeros_like(variances)
        values, shared = values + step * apart, step * pooled[1]
        variances = variances - step * variances
        total, variance = float(values.sum()), float(shared.sum())
    else:
        (total, variance), shared = pooled, np.zeros_like(variances)
    found = {
        label: SizeOfGroup(float(values[i]), float(variances[i]), float(shared[i]))
        for i, label in enumerate(labels)
        if known[i] and label
    }
    return SizeEstimates(SizeOfGroup(total, variance, variance), found)


def squares_of(
    schema: Schema,
    certificate: Certificate,
    measurements: pa.Table,
    model: Callable[[], Model],
    laws: Mapping[str, Inside] | None = None,
) -> Squares | None:
    """Return the `Squares`, least squares over a release's tables; None without tables, and of strata that overlap.

    Args:
        schema: All columns of the release.
        certificate: The certificate, which names the strata.
        measurements: Every noisy answer, an Arrow table.
        model: Function that loads the release's model; called only if strata are split again.
        laws: `Inside` laws of numbers within bins, by column, where they are more than the schema's; None for none.
    """
    if not of_tables(measurements).num_rows:
        return None
    try:
        return Squares(read_tables(schema, certificate, measurements, model, laws))
    except StratsynthError:  # a record is in several strata, which cannot be added up
        return None


def sizes_by(squares: Squares) -> SizeEstimates | None:
    """Return `SizeEstimates` of strata and everybody by the least squares `squares`; None if tables give no total."""
    labels = [leaf.label for leaf in squares.tables.leaves]
    if squares.tables.across:
        return _sizes_across(squares, labels)
    values, variances, pooled = squares.totals
    return size_estimates(labels, values, variances, pooled)


def _sizes_across(squares: Squares, labels: Sequence[str]) -> SizeEstimates | None:
    """Return `SizeEstimates` of strata, called `labels`, by `squares`, whose tables of everybody count some together.

    None if the total is unknown.
    """
    number = len(labels)
    everybody, each = Functions(number, {}), Functions(number, {}, np.eye(number))
    (value, *_), (known, *_) = squares.estimate(everybody)
    if not known:
        return None
    values, there = squares.estimate(each)
    variances, shared = (squares.covariance(each, other) for other in (each, everybody))
    variance = float(squares.covariance(everybody, everybody)[0])
    groups = {
        label: SizeOfGroup(float(values[i]), float(variances[i]), float(shared[i]))
        for i, label in enumerate(labels)
        if there[i] and label
    }
    return SizeEstimates(SizeOfGroup(float(value), variance, variance), groups)
