"""Largest weight of a row, chosen from a public file such as last year's: no private record decides it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import WeightsError
from stratsynth.schema.weight import MOST

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOST = 0.01
"""Largest part of the public file's people beyond the largest weight that is chosen from it."""


@dataclass(frozen=True)
class WeightCap:
    """Facts of the weights in a public file."""

    records: int
    people: int
    """Sum of the weights."""
    largest: int
    chosen: int
    """Smallest weight beyond which are at most LOST of the people, and at most what a schema may declare."""
    lost: float
    """Part of the people beyond it."""

    @classmethod
    def of(cls, weights: NDArray[np.float64]) -> WeightCap:
        """Return the `WeightCap` of `weights`, an array by row of finite numbers, at least 0 and not all 0."""
        chosen = least_cap(weights)
        lost = float((weights - chosen).clip(min=0).sum() / weights.sum())
        return cls(weights.size, int(np.rint(weights).sum()), int(weights.max()), chosen, lost)

    @property
    def mean(self) -> float:
        """Mean weight of a record: people over records."""
        return self.people / self.records

    def up_to(self, most: int) -> float:
        """Return the mean weight, a number of six digits, or `most`, a schema's largest weight, if that is less."""
        return min(float(f"{self.mean:.6g}"), float(most))

    def line(self, column: str) -> str:
        """Return text, a schema file's line `weight = {...}`, by which rows count by the weights in `column`."""
        return f'weight = {{ column = "{column}", max = {self.chosen}, mean = {self.up_to(self.chosen):g} }}'

    def words(self, name: str) -> str:
        """Return sentences, one text, on how largest weight and mean came from the file called `name`."""
        return (
            f"Weights count up to {self.chosen:,}: {100 * self.lost:.2g} % of the {self.people:,} people of {name} are "
            f"beyond it, and its largest weight is {self.largest:,}. They are {self.records:,} records there: mean "
            f"{self.mean:.4g}."
        )


def least_cap(weights: NDArray[np.float64]) -> int:
    """Return the smallest int, up to MOST, beyond which are at most LOST of the people, by row `weights`; or MOST.

    People are the sum of `weights`, an array.
    """
    low, high = 1, MOST
    while low < high:
        middle = (low + high) // 2
        if (weights - middle).clip(min=0).sum() <= LOST * weights.sum():
            high = middle
        else:
            low = middle + 1
    return low


def weight_cap(data: Any, column: str) -> WeightCap:
    """Return the `WeightCap` of the weights in `column` of public rows `data`: a path, a frame, Arrow table or source.

    Raises:
        UsageError: A file that has an account; a WeightsError for weights that are missing or no numbers.
    """
    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.data.sources import open_source
    from stratsynth.schema import Numeric
    from stratsynth.schema.encoding import locate
    from stratsynth.schema.values import check_type, floats

    if isinstance(data, str | Path):
        check_public_inputs(declared=[Path(data)])
    source = open_source(data)
    locate([column], source.columns())
    values = source.read([column]).column(column)
    check_type(column, values.type)
    weights, _ = floats(Numeric(lower=0, upper=1, bins=1), values)
    if not weights.size or not np.isfinite(weights).all() or not (weights >= 0).all() or not weights.sum() > 0:
        raise WeightsError(f"weights: some records have no weight, or one below 0, in the column {column}.")
    return WeightCap.of(weights)
