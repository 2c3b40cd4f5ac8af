"""Public tables as a fit takes them in, beside what was measured.

What a published table says of a population is off, for the N people who are fitted, by their sampling at least: a cell
of share p by a variance of N p (1 - p). Paid answers show whether it is off by more, as figures of another year or of
other people are; then the table counts less, so that the model keeps to the people who were measured. Where the table
is of groups' shares, rows are drawn by these shares all the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from stratsynth.adapters.engine import Measured

from stratsynth.questions import NoisyTable

if TYPE_CHECKING:
    from stratsynth.mechanisms import Public
    from stratsynth.mechanisms.known import Known

SURE = 5.0
"""By how many standard deviations of its noise an answer must disagree before a public table counts less."""


def believed(known: Sequence[Known], measured: Sequence[Measured], total: float) -> list[Measured]:
    """Public tables as if they had been measured, in numbers of records.

    Args:
        known: What is public.
        measured: What was paid for, and judges it.
        total: The number of records.
    """
    return [
        Measured(one.clique, total * one.shares, math.sqrt(_variance(one, measured, total)), one.counted)
        for one in known
    ]


def _variance(known: Known, measured: Sequence[Measured], total: float) -> float:
    """By how much a cell is off, squared, the mean over all cells: what public facts say, or answers if that is more.

    An answer is compared in the columns that both have. What noise is expected to make of the distance is taken off;
    where the rest is less than `SURE` standard deviations of it, noise may have made it. Cells that a fit leaves out
    were paid for too, and judge.
    """
    times = 1.0
    for table in measured:
        common = tuple(name for name in table.clique if name in known.clique)
        if not common:
            continue
        away = tuple(axis for axis, name in enumerate(table.clique) if name not in known.clique)
        answer, shares = table.values.sum(axis=away), known.table(common)
        noise = table.sigma**2 * table.values.size / answer.size
        moved = float(((answer - total * shares) ** 2).sum()) - noise * answer.size
        if moved > SURE * noise * math.sqrt(2 * answer.size):
            times = max(times, moved / answer.size / known.variance(common, total))
    return times * known.variance(known.clique, total)


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
