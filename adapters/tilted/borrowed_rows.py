"""Reweighting of rows that a stratum borrows from others, towards the distribution of its own rows.

A stratum of a hundred people has too few prior rows to estimate dependence between columns, but enough to estimate each
level's share. Its borrowed rows are therefore tilted towards its own rows' shares of every level: everybody's
dependence between columns, with the stratum's own margins. Inputs are public rows and, where everybody's model has
reweighted these, paid answers, so nothing is charged.
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
"""Largest number of steps of the fit."""
WORTH = 10.0
"""Factor on the number of people that everybody's rows count for in a column: they carry dependence that no single
column shows."""
ONE_LEVEL = 1e-9
"""Variance of shares below which all rows have one level, up to rounding of sums."""
MOST_WORTH = 1_000.0
"""Largest number of people that everybody's rows count for."""


def reweighted(
    schema: Schema,
    codes: Mapping[str, NDArray[np.integer[Any]]],
    base: NDArray[np.float64],
    lent: NDArray[np.bool_],
    people: float,
) -> Tilt | None:
    """Return the `Tilt` whose solution is the borrowed rows' weights, which add up to 1; None if either kind has none.

    Args:
        schema: The stratum's schema.
        codes: Level numbers of its rows, own and borrowed ones, by column.
        base: Their weights, adding up to 1.
        lent: Mask of the borrowed rows.
        people: Number of people that all these rows stand for.
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
        # posterior mean of the shares, with everybody's as a prior of `worth` people
        shares = (values + worth * others) / (count + worth)
        variance = float((shares * (1 - shares)).mean())
        if variance > ONE_LEVEL:
            # sigma^2 = count x mean p (1 - p), the sampling variance of own counts; trust = worth
            aims.append(Aim((name,), values, math.sqrt(worth * count * variance)))
    return Tilt(rows, sizes, start, tuple(aims), count, np.zeros(0), STEPS)


def _worth(values: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Return a number of people, at most `MOST_WORTH`, that everybody's shares of a column's levels, `others`, count.

    `values` are the stratum's own counts. A stratum whose shares are those of n people drawn from everybody's differs
    from these by chance alone. The rest of its squared distance is the variance between strata; everybody's shares are
    worth a sample of equal variance.
    """
    count = values.sum()
    chance = float((others * (1 - others)).sum())
    beyond = max(0.0, float(((values / count - others) ** 2).sum()) - chance / count)
    return 1 / (1 / MOST_WORTH + beyond / (WORTH * chance)) if chance > 0 else MOST_WORTH
