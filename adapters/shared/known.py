"""Public tables and sizes in a fit, beside measured tables.

A published table of a population differs from the N people fitted at least by sampling: in a cell of share p by a
variance of N p (1 - p). Paid answers may show a larger difference, as figures of another year or of other people have;
the table's weight then falls, so that the model keeps to the people who were measured. If the table is of groups'
shares, rows are drawn by these shares all the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.engine import MeasuredTable
from stratsynth.adapters.engine.structure import taken_in
from stratsynth.questions import Clique, NoisyTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.mechanisms import Public
    from stratsynth.mechanisms.known import Known

SURER, LAST_SURER = 4.0, 16.0
"""Ratio of the smallest sigma among measured tables to the smallest sigma a public table may have, between rounds and
in the last fit. With more weight, a fit of few steps follows the public table alone."""
CHANCE = 0.05
"""Largest probability that any of all answers compared with a right table lowers its weight, however many columns and
rounds there are. A smaller one lets wrong tables pass where a stratum has few answers."""
FAR = 0.1
"""Error of a table's prediction, as a fraction of the mean cell, up to which the table is always kept."""


def records(tables: Sequence[NoisyTable | MeasuredTable], size: int | None) -> float:
    """Return the number of records, at least 1: the precision-weighted mean of the tables' sums and the public `size`.

    None is no public size. One has a standard error of a fifth of itself, as old census figures do.
    """
    weights = [1 / (table.values.size * table.sigma**2) for table in tables]
    values = [float(table.values.sum()) for table in tables]
    if size:
        weights.append(25 / size**2)
        values.append(float(size))
    return max(1.0, sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)) if weights else 1.0


def believed(
    known: Sequence[Known], measured: Sequence[MeasuredTable], total: float, surer: float = LAST_SURER
) -> list[MeasuredTable]:
    """Return a list of the public tables as `MeasuredTable`s, in records; refuted ones have an infinite sigma.

    Args:
        known: The public tables.
        measured: The measured tables, which judge them.
        total: The number of records.
        surer: `SURER` or `LAST_SURER`.
    """
    least = min((table.sigma for table in measured), default=0.0) / surer
    return [
        MeasuredTable(one.clique, total * one.shares, max(least, math.sqrt(_variance(one, measured, total))))
        for one in known
    ]


def _variance(known: Known, measured: Sequence[MeasuredTable], total: float) -> float:
    """Return the variance of the table `known`'s cell, in squared records of `total`; more if answers disagree.

    An answer, one of the tables `measured`, is compared in the columns that both have. Only one farther away than
    `farthest`, by sampling, the table's own errors and noise, raises the variance; the noise's expected part of the
    distance is subtracted then. Cells that a fit leaves out were paid for too, and judge. A table that predicts an
    answer worse than uniform cells would, and is off by more than `FAR` of a mean cell, gets infinity: it may be as
    wrong where no answer speaks, and nothing would correct it. A certain table never does.
    """
    times = 1.0
    compared = [table for table in measured if not set(known.clique).isdisjoint(table.clique)]
    for table in compared:
        common = tuple(name for name in table.clique if name in known.clique)
        away = tuple(axis for axis, name in enumerate(table.clique) if name not in known.clique)
        answer, shares = table.values.sum(axis=away), known.table(common)
        # noise variance of a cell summed over the other columns
        noise = table.sigma**2 * table.values.size / answer.size
        variance = known.variance(common, total)
        far = float(((answer - total * shares) ** 2).sum())
        if far > farthest(shares, total, noise, variance, CHANCE / len(compared)):
            moved = far - noise * answer.size
            # the distance of uniform cells, for comparison
            nothing = float(((answer - total / answer.size) ** 2).sum()) - noise * answer.size
            if moved > max(nothing, (FAR * total) ** 2 / answer.size) and not known.certain:
                return math.inf
            times = max(times, moved / answer.size / variance)
    return times * known.variance(known.clique, total)


def doubts(known: Sequence[Known], measured: Sequence[MeasuredTable], total: float) -> dict[frozenset[str], float]:
    """Return {frozen set of a table's columns: variance of a share} of `known` tables that answers contradict.

    Answers are in `measured`, each a `MeasuredTable`. The variance is what the contradiction adds to the public table's
    own variance, for `total` records. {} if none is contradicted.
    """
    found: dict[frozenset[str], float] = {}
    for one in known:
        beyond = (_variance(one, measured, total) - one.variance(one.clique, total)) / max(total, 1.0) ** 2
        if beyond > 0:
            found[frozenset(one.clique)] = max(beyond, found.get(frozenset(one.clique), 0.0))
    return found


def doubted(known: Sequence[Known], off: Mapping[frozenset[str], float], names: Sequence[str]) -> tuple[Known, ...]:
    """Return a tuple of a stratum's `Known` tables, with a larger error or left out by everybody's answers.

    A stratum may measure nothing of a column; its own shares are then taken to be as far off as everybody's.

    Args:
        known: The public tables of the stratum.
        off: The result of `doubts` for everybody, a mapping.
        names: The columns of everybody's tables.
    """
    beyond = [off.get(frozenset(one.clique).intersection(names), 0.0) for one in known]
    return tuple(
        replace(one, error=math.sqrt(one.error**2 + more)) if more else one
        for one, more in zip(known, beyond, strict=True)
        if more < math.inf or one.certain
    )


def undisputed(known: Sequence[Known], measured: Sequence[MeasuredTable], total: float) -> list[Known]:
    """Return the list of `Known` tables that no `MeasuredTable`, of `total` records, contradicts beyond chance."""
    return [one for one in known if _variance(one, measured, total) <= one.variance(one.clique, total)]


def within_size(
    known: Sequence[Known], sizes: tuple[tuple[str, int], ...], most: int, inside: Sequence[Clique] = ()
) -> tuple[Known, ...]:
    """Return a tuple of the tables that a model of at most `most` cells can contain; certain ones first, in order.

    Args:
        known: The public tables.
        sizes: Pairs of each column of the model and its number of levels.
        most: The largest number of cells of the graphical model.
        inside: Cliques already in the model.
    """
    kept: list[Known] = []
    for one in sorted(known, key=lambda one: not one.certain):
        if taken_in(sizes, (*inside, *(other.clique for other in kept)), (one.clique,), most)[0]:
            kept.append(one)
    return tuple(kept)


def columns_by(public: Public, measured: Sequence[NoisyTable], total: float) -> tuple[NoisyTable, ...]:
    """Return a tuple of `NoisyTable`s of the columns, measured and public ones averaged, `told_columns` first.

    The average is by precision; without public tables the measured ones are returned as they are.

    Args:
        public: Public facts of the fit.
        measured: The columns' measured tables; of several of one column, the first is averaged with the public ones.
        total: The number of records.
    """
    if not public.known:
        return tuple(measured)
    paid, found = [MeasuredTable.of(table) for table in measured], list(told_columns(public, measured, total))
    seen: set[Clique] = set()
    for table in measured:
        values, precision = table.values / table.sigma**2, 1 / table.sigma**2
        others = () if table.clique in seen else public.known
        seen.add(table.clique)
        for one in (one for one in others if not one.certain and one.tells(table.clique)):
            alone = replace(one, clique=table.clique, shares=one.table(table.clique), error=_error(one, table.clique))
            variance = _variance(alone, paid, total)
            values = values + total * alone.shares / variance
            precision += 1 / variance
        whole = np.rint(values / precision).astype(np.int64)
        found.append(table if precision == 1 / table.sigma**2 else NoisyTable(table.clique, whole, precision**-0.5))
    return tuple(found)


def _error(known: Known, clique: Clique) -> float:
    """Return the standard error of a share in the public table `known` summed down to `clique`."""
    return known.error * math.sqrt(known.shares.size / known.table(clique).size)


def told_columns(public: Public, measured: Sequence[NoisyTable], total: float) -> tuple[NoisyTable, ...]:
    """Return a tuple of `NoisyTable`s of the columns that a certain public table tells, so that none need be asked.

    Their values are the public shares times `total` records; sigma is larger where tables `measured` so far disagree.
    """
    paid = [MeasuredTable.of(table) for table in measured]
    found = []
    for clique in public.schema.oneways:
        one = next((known for known in public.known if known.certain and known.tells(clique)), None)
        if one is not None:
            values = np.rint(total * one.table(clique)).astype(np.int64)
            found.append(NoisyTable(clique, values, math.sqrt(_variance(one, paid, total))))
    return tuple(found)


def farthest(shares: NDArray[Any], total: float, noise: float, variance: float, chance: float) -> float:
    """Return the squared distance of counts from N x the right shares that is exceeded with probability `chance`.

    The counts of N people who are a sample have the covariance N (diag(p) - p p') besides independent errors in each
    cell. The distance is a sum of squares of normal numbers whose variances are the eigenvalues of the whole. Its
    quantile is taken from the chi-square, scaled and moved, that has equal mean, variance and skewness (Buckley and
    Eagleson 1988), all of which follow from traces. With independent errors alone this is exact.

    Args:
        shares: The share of each cell; those of a noisy table may be below zero.
        total: N, the number of people.
        noise: The variance of a cell's noise.
        variance: The variance of a cell by sampling and by other errors of the shares, the mean over all cells.
        chance: The probability that the distance is larger.
    """
    from scipy.special import chdtri

    share = np.clip(shares, 0, 1).ravel()
    alone = noise + variance - total * float((share * (1 - share)).mean())
    diagonal, square = alone + total * share, total * float(share @ share)  # covariance, without N p p'
    once, twice = (total * float(share**2 @ diagonal**power) for power in (1, 2))
    # first three cumulants of the distance, up to constant factors: traces of powers of the covariance
    first = share.size * (noise + variance)
    second = max(float(diagonal @ diagonal) - 2 * once + square**2, first**2 / share.size)
    third = float(diagonal**2 @ diagonal) - 3 * twice + 3 * once * square - square**3
    # degrees of freedom lie between 1 (one eigenvalue) and the number of cells (equal ones), despite cancellation
    freedom = min(max(second**3 / max(third, 1e-9) ** 2, 1.0), float(share.size))
    limit: float = first + math.sqrt(second / freedom) * (float(chdtri(freedom, chance)) - freedom)
    return limit
