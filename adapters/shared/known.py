"""Public tables and sizes as a fit takes them in, beside what was measured.

What a published table says of a population is off, for the N people who are fitted, by their sampling at least: a cell
of share p by a variance of N p (1 - p). Paid answers show whether it is off by more, as figures of another year or of
other people are; then the table counts less, so that the model keeps to the people who were measured. Where the table
is of groups' shares, rows are drawn by these shares all the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.engine import Measured
from stratsynth.adapters.engine.structure import taken_in
from stratsynth.questions import Clique, NoisyTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.mechanisms import Public
    from stratsynth.mechanisms.known import Known

SURER, LAST_SURER = 4.0, 16.0
"""A public table counts as if its noise were at least that of any measured table over this, between rounds and in the
last fit. Where it counts for more, a fit of few steps creeps along it, and does not get to the others."""
CHANCE = 0.05
"""How probable it is at most that any of all answers that a right table is compared with takes trust from it: many
columns and rounds do not make it more. A smaller chance lets wrong tables pass where a stratum has few answers."""
FAR = 0.1
"""By what part of a mean cell a table may miss an answer, and be better than nothing all the same."""


def records(tables: Sequence[NoisyTable | Measured], size: int | None) -> float:
    """The number of records: the tables' sums, and the public size for what it is worth, a good guess.

    Each is weighted by its precision; a public size is taken to be right within a fifth, as old census figures
    are. At least one record.
    """
    weights = [1 / (table.values.size * table.sigma**2) for table in tables]
    values = [float(table.values.sum()) for table in tables]
    if size:
        weights.append(25 / size**2)
        values.append(float(size))
    return max(1.0, sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)) if weights else 1.0


def believed(
    known: Sequence[Known], measured: Sequence[Measured], total: float, surer: float = LAST_SURER
) -> list[Measured]:
    """Public tables as if they had been measured, in numbers of records.

    Args:
        known: What is public.
        measured: What was paid for, and judges it.
        total: The number of records.
        surer: `SURER` or `LAST_SURER`.
    """
    least = min((table.sigma for table in measured), default=0.0) / surer
    return [
        Measured(one.clique, total * one.shares, max(least, math.sqrt(_variance(one, measured, total))))
        for one in known
    ]


def _variance(known: Known, measured: Sequence[Measured], total: float) -> float:
    """By how much a cell is off, squared, the mean over all cells: what public facts say, or answers if that is more.

    An answer is compared in the columns that both have. Only one that is farther away than `farthest`, by sampling, the
    table's own errors and noise, says more. What noise is expected to make of the distance is taken off then. Cells
    that a fit leaves out were paid for too, and judge. A table that foretells an answer worse than even cells would,
    and is off by more than `FAR` of a mean cell, is infinitely off: it may be as wrong where no answer speaks, and
    nothing would correct it. One that is certain is never given up.
    """
    times = 1.0
    compared = [table for table in measured if not set(known.clique).isdisjoint(table.clique)]
    for table in compared:
        common = tuple(name for name in table.clique if name in known.clique)
        away = tuple(axis for axis, name in enumerate(table.clique) if name not in known.clique)
        answer, shares = table.values.sum(axis=away), known.table(common)
        noise = table.sigma**2 * table.values.size / answer.size
        variance = known.variance(common, total)
        far = float(((answer - total * shares) ** 2).sum())
        if far > farthest(shares, total, noise, variance, CHANCE / len(compared)):
            moved = far - noise * answer.size
            nothing = float(((answer - total / answer.size) ** 2).sum()) - noise * answer.size
            if moved > max(nothing, (FAR * total) ** 2 / answer.size) and not known.certain:
                return math.inf
            times = max(times, moved / answer.size / variance)
    return times * known.variance(known.clique, total)


def doubts(known: Sequence[Known], measured: Sequence[Measured], total: float) -> dict[frozenset[str], float]:
    """By how much a share is off beyond what public facts say, squared, by the columns of the table; 0 is left out.

    Of several tables of the same columns it is the most.
    """
    found: dict[frozenset[str], float] = {}
    for one in known:
        beyond = (_variance(one, measured, total) - one.variance(one.clique, total)) / max(total, 1.0) ** 2
        if beyond > 0:
            found[frozenset(one.clique)] = max(beyond, found.get(frozenset(one.clique), 0.0))
    return found


def doubted(known: Sequence[Known], off: Mapping[frozenset[str], float], names: Sequence[str]) -> tuple[Known, ...]:
    """A stratum's tables, by what answers about everybody say of the same columns: less sure, or left out.

    A stratum may ask nothing of a column. What everybody's shares are off by, its own are taken to be off by as well.

    Args:
        known: What public tables say of the stratum.
        off: What `doubts` found of everybody.
        names: The columns that everybody's tables have.
    """
    beyond = [off.get(frozenset(one.clique).intersection(names), 0.0) for one in known]
    return tuple(
        replace(one, error=math.sqrt(one.error**2 + more)) if more else one
        for one, more in zip(known, beyond, strict=True)
        if more < math.inf or one.certain
    )


def undisputed(known: Sequence[Known], measured: Sequence[Measured], total: float) -> list[Known]:
    """Those that no paid answer contradicts by more than sampling, their errors and noise explain."""
    return [one for one in known if _variance(one, measured, total) <= one.variance(one.clique, total)]


def held(
    known: Sequence[Known], sizes: tuple[tuple[str, int], ...], most: int, inside: Sequence[Clique] = ()
) -> tuple[Known, ...]:
    """Those that a graphical model of at most so many numbers takes in together; certain ones first, then in order.

    Args:
        known: What is public.
        sizes: The model's columns with their numbers of levels.
        most: The most numbers that the model may hold.
        inside: What the model holds already.
    """
    kept: list[Known] = []
    for one in sorted(known, key=lambda one: not one.certain):
        if taken_in(sizes, (*inside, *(other.clique for other in kept)), (one.clique,), most)[0]:
            kept.append(one)
    return tuple(kept)


def columns_by(public: Public, measured: Sequence[NoisyTable], total: float) -> tuple[NoisyTable, ...]:
    """Every column's table, by what was measured and what is public; as measured where nothing is public.

    Args:
        public: What is known.
        measured: The columns' tables that were paid for; of those of one column, the first takes in what is public.
        total: The number of records.
    """
    if not public.known:
        return tuple(measured)
    paid, found = [Measured.of(table) for table in measured], list(told_columns(public, measured, total))
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
    """The standard error of a share summed over all other columns."""
    return known.error * math.sqrt(known.shares.size / known.table(clique).size)


def told_columns(public: Public, measured: Sequence[NoisyTable], total: float) -> tuple[NoisyTable, ...]:
    """The columns that need not be measured, each by itself, as if it had been."""
    paid = [Measured.of(table) for table in measured]
    found = []
    for clique in public.schema.oneways:
        one = next((known for known in public.known if known.certain and known.tells(clique)), None)
        if one is not None:
            values = np.rint(total * one.table(clique)).astype(np.int64)
            found.append(NoisyTable(clique, values, math.sqrt(_variance(one, paid, total))))
    return tuple(found)


def farthest(shares: NDArray[Any], total: float, noise: float, variance: float, chance: float) -> float:
    """The squared distance, over all cells, of counts from N times the right shares that is passed with some chance.

    The counts of N people who are a sample have the covariance N (diag(p) - p p') besides what is independent in each
    cell. The distance is a sum of squares of normal numbers whose variances are the eigenvalues of the whole. Its
    quantile is taken from the chi-square, scaled and moved, that has the same mean, variance and skewness (Buckley and
    Eagleson 1988), all of which follow from traces. Where there is noise alone this is exact.

    Args:
        shares: The share of each cell; those of a noisy table may be below zero.
        total: N, the number of people.
        noise: The variance of a cell's noise.
        variance: The variance of a cell by sampling and by what else the shares may be off, the mean over all cells.
        chance: How probable it is that the distance is larger.
    """
    from scipy.special import chdtri

    share = np.clip(shares, 0, 1).ravel()
    alone = noise + variance - total * float((share * (1 - share)).mean())
    diagonal, square = alone + total * share, total * float(share @ share)  # the covariance, but for N p p'
    once, twice = (total * float(share**2 @ diagonal**power) for power in (1, 2))
    first = share.size * (noise + variance)
    second = max(float(diagonal @ diagonal) - 2 * once + square**2, first**2 / share.size)
    third = float(diagonal**2 @ diagonal) - 3 * twice + 3 * once * square - square**3
    # between one eigenvalue and equal ones, whatever is left of small differences of large numbers
    freedom = min(max(second**3 / max(third, 1e-9) ** 2, 1.0), float(share.size))
    limit: float = first + math.sqrt(second / freedom) * (float(chdtri(freedom, chance)) - freedom)
    return limit
