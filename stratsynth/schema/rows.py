"""Rows of one schema as level numbers, one array a column, with the numbers behind those of numeric columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema.schema import Schema

Which = slice | np.ndarray[Any, np.dtype[Any]]
"""Some rows of several: a slice, their numbers, or a mask."""


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows as codes. Those of a private table never leave the driver, so nothing of them is shown but the schema."""

    schema: Schema
    """The columns and their levels."""
    codes: Mapping[str, NDArray[Any]] = field(repr=False)
    """For each column, the level number of each row, in the smallest of uint8, uint16 and uint32 that holds them."""
    numbers: Mapping[str, NDArray[np.float64]] = field(repr=False)
    """For the numeric columns that were asked for, each value within its bounds; NaN where there is none."""
    size: int = field(repr=False)
    """The number of rows."""
    weights: NDArray[Any] | None = field(default=None, repr=False)
    """The weight of each row, from 0 to the schema's largest; None where every row counts alike."""
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, init=False)
    """Results worked out from these very rows, such as the features of a design."""

    def take(self, which: Which) -> Self:
        """Some of the rows, in the order of `which`."""
        if isinstance(which, slice):
            size = len(range(self.size)[which])
        else:
            size = int(which.sum()) if which.dtype == np.bool_ else len(which)
        return replace(
            self,
            codes={name: column[which] for name, column in self.codes.items()},
            numbers={name: column[which] for name, column in self.numbers.items()},
            size=size,
            weights=None if self.weights is None else self.weights[which],
        )
