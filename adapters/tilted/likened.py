"""What a stratum borrows from the others is made like what it has.

A stratum of a hundred people has too few prior rows to say how its columns hang together, but enough to say what share
each level has. So the rows that it borrows are tilted towards its own rows' shares of every level: everybody's
dependence between columns, with the stratum's own margins. All of it follows from public rows and, where everybody's
model has weighted these anew, from paid answers: nothing is charged for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.tilted.blocks import columns_counted
from stratsynth.adapters.tilted.fit import Aim, Tilt

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

STEPS = 25
"""The most steps of the fit."""
WORTH = 10.0
"""How many times the people count whom a column's shares leave to everybody's rows, which are right about much that no
column alone tells."""
ONE_LEVEL = 1e-9
"""The variance of shares below which all rows have one level, up to the last bits of sums."""
MOST_WORTH = 1_000.0
"""The most people whom everybody's rows are taken for."""


def likened(
    schema: Schema, codes: Mapping[str, NDArray[np.integer[Any]]], base: NDArray[np.float64], lent: NDArray[np.bool_],
    people: float,
) -> Tilt | None:  # fmt: skip
    """The problem whose solution is the borrowed rows' weights, which add up to one; None where nothing is to be done.

    Args:
        schema: The stratum's.
        codes: Its rows, its own and borrowed ones.
        base: Their weights, adding up to one.
        lent: Which are borrowed.
        people: How many people all of them stand for.
    """
    own = base[~lent] * people
    count = float(own.sum())
    if not count > 0 or not base[lent].sum() > 0:
        return None
    start = base[lent] / base[lent].sum()
    sizes = {name: schema.size(name) for name in schema.names}
    theirs, rows = ({name: codes[name][which] for name in schema.names} for which in (~lent, lent))
    aims = []
    (counts,) = columns_counted(theirs, sizes, schema.names, own)
    (shared,) = columns_counted(rows, sizes, schema.names, start)
    for name, values, others in zip(schema.names, counts, shared, strict=True):
        worth = _worth(values, others)
        shares = (values + worth * others) / (count + worth)
        variance = float((shares * (1 - shares)).mean())
        if variance > ONE_LEVEL:
            aims.append(Aim((name,), values, math.sqrt(worth * count * variance)))
    return Tilt(rows, sizes, start, tuple(aims), count, np.zeros(0), STEPS)


def _worth(values: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """For how many people's word everybody's rows count in a column: fewer, the farther a stratum is from everybody.

    A stratum whose shares are those of n people drawn from everybody's differs from these by chance alone. What it
    differs by beyond that is the variance of strata; everybody's shares are worth as many people as would vary so much.
    """
    count = values.sum()
    chance = float((others * (1 - others)).sum())
    beyond = max(0.0, float(((values / count - others) ** 2).sum()) - chance / count)
    return 1 / (1 / MOST_WORTH + beyond / (WORTH * chance)) if chance > 0 else MOST_WORTH
