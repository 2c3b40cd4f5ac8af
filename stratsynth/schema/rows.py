"""Encoded rows of one schema: one array of codes per column, and numbers of numeric columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema.schema import Schema

Which = slice | np.ndarray[Any, np.dtype[Any]]
"""A selection of rows: a slice, their indices, or a mask."""


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows as codes. Private ones never leave the driver, so a representation shows the schema alone."""

    schema: Schema
    """Columns and their levels."""
    codes: Mapping[str, NDArray[Any]] = field(repr=False)
    """Code of each row, by column, in the smallest of uint8, uint16 and uint32 that holds them."""
    numbers: Mapping[str, NDArray[np.float64]] = field(repr=False)
    """Value of each row within its bounds, NaN if it has none, for the numeric columns that were asked for."""
    size: int = field(repr=False)
    """Number of rows."""
    weights: NDArray[Any] | None = field(default=None, repr=False)
    """Weight of each row, from 0 to the schema's largest; None if every row counts 1."""
    outside: NDArray[np.int64] | None = field(default=None, repr=False, kw_only=True)
    """Weight of these rows, then by column that of values outside the schema, rows that were left out included; None if
    these are not all rows, or nobody counted."""
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, init=False)
    """Results computed from these rows, such as the features of a design; as private as they are."""

    def take(self, which: Which) -> Self:
        """Return new coded rows, those of these at `which`, a slice, mask or array of row numbers, in its order."""
        if isinstance(which, slice):
            size = len(range(self.size)[which])
        else:
            size = int(which.sum()) if which.dtype == np.bool_ else len(which)
        return replace(self.mapped(lambda array: array[which], size), outside=None)

    def mapped(self, change: Callable[[NDArray[Any]], NDArray[Any]], size: int) -> Self:
        """Return `size` coded rows whose arrays (codes, numbers, weights) are `change` of the ones here, each alone."""
        return replace(
            self,
            codes={name: change(column) for name, column in self.codes.items()},
            numbers={name: change(column) for name, column in self.numbers.items()},
            size=size,
            weights=None if self.weights is None else change(self.weights),
        )
