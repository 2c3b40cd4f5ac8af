"""INTERNAL. Rows as learners see them: numbers, a target and a group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class People:
    """Rows with groups and classes."""

    x: Floats
    """Features, one line a row; a constant is one of them where it is wanted."""
    y: Floats
    """Target: 0 or 1 for classes, any number for `Linear`."""
    group: NDArray[np.intp]
    """Number of each row's group."""
    labels: tuple[str, ...]
    """Names of the groups; each has a row, or its scores are not a number."""

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.y)

    @cached_property
    def counts(self) -> Floats:
        """Number of rows of each group."""
        return np.bincount(self.group, minlength=len(self.labels)).astype(np.float64)

    def means(self, values: Floats) -> Floats:
        """Return the mean of each group, one line a group and a last one for everybody; `values` has a line a row."""
        values = np.asarray(values, np.float64)
        here = np.zeros((len(self.labels), *values.shape[1:]))
        for k in range(len(self.labels)):
            rows = values[self.group == k]
            here[k] = rows.mean(axis=0) if len(rows) else np.nan
        return np.concatenate([here, values.mean(axis=0, keepdims=True)])

    def of(self, group: int) -> People:
        """The rows of one group; all rows for the number of groups."""
        if group == len(self.labels):
            return self
        here = self.group == group
        return People(self.x[here], self.y[here], self.group[here], self.labels)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The groups and everybody, in the order of `means`."""
        return (*self.labels, "everybody")
