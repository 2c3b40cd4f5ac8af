"""Private rows as sums see them, and whole vectors within a ball: what every exact sum is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.questions.queries import Norm
from stratsynth.questions.total import GRID

if TYPE_CHECKING:
    from stratsynth.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Which = slice | NDArray[np.intp]

ROWS = 1 << 13
"""Rows worked on at a time."""
HUGE = 2.0**300
"""Coordinates beyond this are taken as this: their squares do not overflow, and no clip keeps them apart."""


@dataclass(frozen=True, eq=False)
class PathRows:
    """The rows of one path, one array a column. Private, and never to leave the driver."""

    schema: Schema
    """The schema of the path."""
    codes: Mapping[str, NDArray[Any]] = field(repr=False)
    """The level of each row."""
    numbers: Mapping[str, Floats] = field(repr=False)
    """For numeric columns, the value within its bounds; NaN where there is none."""
    size: int = field(repr=False)
    """The number of rows."""
    weights: Ints | None = field(default=None, repr=False)
    """What each row counts, from 0 to the schema's largest weight, where a column says so; None: all the same."""
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """What has been worked out from these very rows, such as the features of a design."""

    def take(self, which: Which) -> PathRows:
        """Some of the rows."""
        size = len(range(self.size)[which]) if isinstance(which, slice) else len(which)
        codes = {name: column[which] for name, column in self.codes.items()}
        numbers = {name: column[which] for name, column in self.numbers.items()}
        return PathRows(self.schema, codes, numbers, size, None if self.weights is None else self.weights[which])


@np.errstate(all="ignore")
def into_ball(vectors: Floats, radius: int | Ints, norm: Norm = "l2") -> Ints:
    """Each column of `vectors`, scaled into a ball of a whole radius of at most GRID and cut to integers.

    That each column's norm is at most its radius is checked in integers; a column that fails the check twice,
    or holds a NaN, is zero.
    """
    vectors = np.clip(vectors, -HUGE, HUGE)
    length = np.zeros(vectors.shape[1])
    for coordinate in vectors:
        length += np.abs(coordinate) if norm == "l1" else coordinate * coordinate
    if norm == "l2":
        length = np.sqrt(length)
    # divided first: with one coordinate, vectors / length is exactly 1, and the result exactly the radius
    vectors = np.where(length > radius, vectors / length * radius, vectors)
    # whatever happened above: no NaN, and nothing that would overflow below
    units = np.clip(np.trunc(np.where(np.isnan(length), 0.0, vectors)), -GRID - 1, GRID + 1).astype(np.int64)
    fits = _within(units, radius, norm)
    if not fits.all():
        # A large coordinate was rounded up: (GRID, 5) has the length GRID in floats. One unit less is enough.
        units -= np.where(fits, 0, np.sign(units))
        units[:, ~_within(units, radius, norm)] = 0
    return units


def _within(units: Ints, radius: int | Ints, norm: Norm) -> NDArray[np.bool_]:
    """Whether each column's norm is at most its radius, exactly; for |units| <= GRID + 1 and radius <= GRID."""
    spent = np.zeros(units.shape[1], np.int64)
    for coordinate in units:
        spent += np.abs(coordinate) if norm == "l1" else coordinate * coordinate
        np.minimum(spent, 2**61, out=spent)  # more than any radius^2, and far from overflow
    return spent <= (radius if norm == "l1" else radius * radius)


def clipped(vectors: Floats, clip: float, norm: Norm) -> list[Ints]:
    """The one block of a query that clips whole vectors, given as columns in the query's own unit."""
    return [into_ball(vectors / float(clip) * GRID, GRID, norm).sum(axis=1)]
