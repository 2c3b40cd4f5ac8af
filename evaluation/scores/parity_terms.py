"""INTERNAL. Terms of the parity error: a statistic's relative error in each group and for everybody."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratsynth.evaluation.scores.marginals import WorkloadError
from stratsynth.evaluation.tables import Array, Pair


@dataclass(frozen=True, eq=False)
class ParityTerms:
    """Terms of one statistic: arrays over the groups, then everybody."""

    real: Array
    """Statistic in the real rows; NaN if it has no value, or is a marginal."""
    synthetic: Array
    """Statistic in the release; NaN likewise."""
    variance: Array
    """Array (2, scopes): variances of these two; NaN below two rows, or for a marginal."""
    error: Array
    """Signed relative errors (absolute ones of marginals); NaN if undefined or lost."""
    spread: Array
    """Standard errors of `error`."""
    undefined: Array
    """Mask of scopes without a true value to compare with."""
    lost: Array
    """Mask of scopes with a true value and none in the release."""
    rows: Array
    """Array (2, scopes): number of rows with a value, real and synthetic."""
    influence: tuple[Array, Array]
    """Influence of each real and each synthetic row on the absolute error of its group."""
    influence_everybody: tuple[Array, Array]
    """Influence of each row on the absolute error of everybody."""


def mean_terms(pair: Pair, name: str, tau: float = 0.0) -> ParityTerms:
    """ParityTerms of the variable `name` in a Pair: relative error of its mean in each group and for everybody.

    `tau` is the least divisor.
    """
    values = [table.values(name) for table in pair.tables]
    sides = [_Side.of(pair, side, value) for side, value in enumerate(values)]
    truth, made = (side.mean for side in sides)
    below = np.abs(truth) < tau
    least = np.where(below, tau, np.abs(truth))
    undefined = np.isnan(truth) | (least == 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(undefined, np.nan, (made - truth) / least)
        # derivatives of (made - truth) / |truth| by truth and made; below tau the denominator is constant
        slopes = [np.where(below, -1.0, -made / truth) / least, 1 / least]
        spread = np.sqrt(slopes[0] ** 2 * sides[0].variance + slopes[1] ** 2 * sides[1].variance)
    steps = [np.nan_to_num(np.sign(error) * slope, posinf=0.0, neginf=0.0) for slope in slopes]
    rows = np.stack([side.rows for side in sides])
    # derivative for the group's own rows, and everybody's for all rows
    own = [step[group] * side.away for step, group, side in zip(steps, pair.members, sides, strict=True)]
    all_ = [step[-1] * side.away_everybody for step, side in zip(steps, sides, strict=True)]
    lost, variance = ~undefined & np.isnan(made), np.stack([side.variance for side in sides])
    return ParityTerms(
        truth, made, variance, error, spread, undefined, lost, rows, (own[0], own[1]), (all_[0], all_[1])
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """Means of one variable in one table: arrays over the groups, then everybody."""

    rows: Array
    """Number of rows with a value."""
    mean: Array
    variance: Array
    """Variances of the means; NaN if fewer than two rows have a value."""
    away: Array
    """Influence of each row on the mean of its group: (value - mean) / rows; 0 if it has no value.

    For rows with weights, weight x (value - mean) / sum of the weights.
    """
    away_everybody: Array

    @classmethod
    def of(cls, pair: Pair, side: int, values: Array) -> _Side:
        """Return a _Side, means by group of a Pair, then everybody, of the array `values`, one a row of a table.

        `side` is 0 for the real table, 1 for the synthetic one.
        """
        group, count = pair.members[side], len(pair.groups)
        known = ~np.isnan(values)
        weights = pair.tables[side].weights
        each = known.astype(float) if weights is None else known * weights
        values = np.where(known, values, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            rows = np.append(np.bincount(group, known, count), known.sum())
            mass = np.append(np.bincount(group, each, count), each.sum())
            mean = np.append(np.bincount(group, each * values, count), (each * values).sum()) / mass
            size = np.append(np.bincount(group, each * np.abs(values), count), (each * np.abs(values)).sum()) / mass
            mean = np.where(np.abs(mean) > 1e-12 * size, mean, mean * 0)  # rounding error of a sum of 0
            away = np.where(known, values - mean[group], 0.0), np.where(known, values - mean[-1], 0.0)
            squares = np.append(np.bincount(group, each * away[0] ** 2, count), (each * away[1] ** 2).sum())
            variance = np.where(mass > 1, squares / (mass * (mass - 1)), np.nan)
        least = np.where(mass > 0, mass, 1.0)
        parts = each * away[0] / least[group], each * away[1] / least[-1]
        return cls(rows, mean, variance, parts[0], parts[1])


def marginal_terms(pair: Pair, found: WorkloadError) -> ParityTerms:
    """ParityTerms of a Pair's marginals, which add up to 1: their mean L1 distance, in each group and for everybody.

    `found` is their WorkloadError.
    """
    error = 2 * found.mean()
    undefined = pair.counts[0] == 0
    nothing = np.full(error.shape, np.nan)
    scale = 2 / len(found.cliques)
    pulls, wholes = [], []
    for side in (0, 1):
        group, pull, weights = pair.members[side], scale * found.influence[side], pair.tables[side].weights
        each, size = 1.0 if weights is None else weights, np.where(pair.mass[side] > 0, pair.mass[side], 1)
        pulls.append(each * (pull - (np.bincount(group, each * pull, len(size)) / size)[group]) / size[group])
        whole, all_ = scale * found.influence_everybody[side], max(float(pair.mass[side].sum()), 1e-300)
        wholes.append(each * (whole - (each * whole).sum() / all_) / all_ if len(whole) else whole)
    # a distance rises with the real share and falls with the synthetic one
    return ParityTerms(
        nothing,
        nothing,
        np.stack([nothing, nothing]),
        error,
        2 * found.mean_errors(pair),
        undefined,
        ~undefined & np.isnan(error),
        pair.counts,
        (pulls[0], -pulls[1]),
        (wholes[0], -wholes[1]),
    )
