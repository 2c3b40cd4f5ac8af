"""Replicate weights of a public survey file, for the design error of totals and shares that are counted in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.errors import WeightsError
from stratsynth.schema import Numeric
from stratsynth.schema.values import floats
from stratsynth.weights.design import REPLICATES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stratsynth.data.sources import Source

REPLICATED = ("PWGTP", "WGTP")
"""Weights of the American Community Survey's persons and households: their replicates' variance is by successive
differences. Weights of other surveys may have replicates of another method."""
_ANY = Numeric(lower=-99_999, upper=99_999, bins=1)
"""Replicate weights may be below 0."""


def replicate_weights(source: Source, weight: str) -> Iterator[NDArray[np.float64]] | None:
    """Return an iterator over 80 arrays by row, the replicates of the weights in column `weight` of a public source.

    None where it lacks one, or the weight is not one of `REPLICATED`.

    Raises:
        WeightsError: Some record has no number there, or a replicate's weights do not add up to more than 0.
    """
    names = [f"{weight}{i}" for i in range(1, REPLICATES + 1)]
    have = source.columns()
    if weight not in REPLICATED or not all(have.count(name) == 1 for name in names):
        return None
    return _read(source, names)


def _read(source: Source, names: list[str]) -> Iterator[NDArray[np.float64]]:
    """Yield an array of weights by row for each of the columns `names` of a source; WeightsError for unusable ones."""
    table = source.read(names)
    for name in names:
        weights, _ = floats(_ANY, table.column(name))
        if not np.isfinite(weights).all() or not weights.sum() > 0:
            raise WeightsError(f"weights: some records have no replicate weight in the column {name}.")
        yield weights
