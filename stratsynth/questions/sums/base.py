"""Sums over rows: descriptions of one vector per row, with the clip that bounds it, and their exact values.

A sum is data: columns, and public numbers. Each row's vector is computed from that row alone, and a row that
cannot be read (a missing value, say) contributes zero. A block is a part of the vector with a clip and a price of its
own. `exact` gives the sum over some rows as integers, in units of clip / GRID.

Privacy needs two properties: a row's integer vector depends on that row alone, to the last bit; and its norm is at
most GRID. Both hold by construction:

- Floats are touched only one element at a time, by operations that IEEE 754 rounds correctly (+ - * / sqrt,
  rint, trunc, comparisons). So no result depends on a row's position, its neighbours, SIMD lanes or threads.
  A norm is added up one coordinate after another. exp is a public table of integers.
- The clipped vector is cut to integers towards zero, and its norm is checked again in exact integers; what
  fails that, or holds a NaN, contributes zero. So the bound does not rest on any float.
- Rows are added as integers: in int64 (2^30 a row, so 2^32 rows fit), or by float64 matrix products of
  integers. In those every product of one row is at most 2^30 and a piece has ROWS = 2^13 rows, so every
  partial sum, in any order, stays below 2^43 < 2^53 and is exact. (Logits: see `stratsynth.questions.sums.kernel`.)

The kinds are closed: a sum states its own sensitivity, so only classes of this package count, by their exact class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import Neighbours
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.admission import is_known
from stratsynth.questions.base import check_positive, fixed

if TYPE_CHECKING:
    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

Norm = Literal["l1", "l2"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
GRID = 2**30
"""Number of grid units in a block's clip: sums are integers in units of clip / GRID.

A row moves a sum by at most 2^30 units, so 2^32 rows stay within 64 bits; and noise worth adding is at least
millions of units wide, far above the width from which the discrete law is as good as the continuous one.
"""
ROWS = 1 << 13
"""Largest number of rows that are summed at a time."""
HUGE = 2.0**300
"""Bound of coordinates before clipping: its square does not overflow, and larger coordinates are clipped alike."""
MOST_COORDINATES = 2**24
"""Largest number of coordinates of a sum."""


@dataclass(frozen=True)
class Block:
    """A part of the summed vector, with a clip and a price of its own."""

    size: int
    clip: float
    """Largest norm of one row's contribution, in the norm that the noise is for; longer rows are scaled down."""
    exchange: float = 2.0
    """Largest movement of the sum under `replace`, in clips; 1 under `add-remove`."""

    def reach(self, neighbours: Neighbours) -> float:
        """Return a float: largest movement of the block's sum by a step of `neighbours`, in clips, at weight 1."""
        return 1.0 if neighbours == Neighbours.ADD_REMOVE else self.exchange

    def sensitivity(self, neighbours: Neighbours) -> float:
        """Return a float: largest movement of the block's sum by a step of `neighbours`, in its unit, at weight 1."""
        return self.clip * self.reach(neighbours)


class Sum(ABC):
    """A description of one vector per row, whose sum is asked for."""

    norm: Norm = "l2"
    """Norm in which the whole vector is clipped; pure epsilon needs `l1`."""
    unverified: ClassVar[str] = ""
    """Sentence for the reader if row-locality is a claim; empty if it holds by construction."""

    def __post_init__(self) -> None:
        """Keep read-only copies of arrays."""
        for field in fields(cast("Any", self)):
            object.__setattr__(self, field.name, fixed(getattr(self, field.name), "fiub"))

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Raise MechanismError on a sum that the schema does not allow to be computed; no row is read."""

    @abstractmethod
    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return the `Block`s of the summed vector in this schema, each with its size and clip, in order."""

    @abstractmethod
    def exact(self, rows: CodedRows, which: Which) -> list[NDArray[np.int64]]:
        """Return a list, an int64 array a block: exact sums over coded rows `which`, at most ROWS, in clip / GRID."""

    def each_row_adds_clip(self, schema: Schema) -> bool:
        """True if in this schema each row with a value adds exactly the clip, as in a count written as a sum."""
        return False

    def replayed(self) -> Any:
        """Return a plain part for the journal key, without numbers of earlier answers; by default the whole sum."""
        return self

    def counts_records(self, schema: Schema) -> bool:
        """True if in this schema the sum is one number to which every row adds exactly the clip: a count of records."""
        return False


Query = Sum
"""Name that mechanisms use for a sum."""


def check_query(what: str, query: Sum, schema: Schema) -> None:
    """Raise MechanismError on `what`: a `Sum` of unknown class, or unsound in the schema; Unsupported: too long."""
    if not (is_known(query) and isinstance(query, Sum)):
        raise MechanismError(f"{what}: {type(query).__name__} is not one of the known queries.")
    query.check(schema)
    size = sum(block.size for block in query.blocks(schema))
    if size > MOST_COORDINATES:
        raise Unsupported(f"{what}: a vector of {size:,} coordinates is too long; use fewer columns or bins.")


def check_clip(what: str, clip: float) -> None:
    """Raise MechanismError, opening with `what`: clip not positive, or its square or inverse beyond a float."""
    check_positive(f"{what}: clip", clip)
    if not 1e-100 < clip < 1e100:
        raise MechanismError(f"{what}: a clip of {clip:g} is out of all proportion; use a scale.")


def check_norm(what: str, norm: str) -> None:
    """Raise MechanismError, beginning with `what`, for a norm that is neither "l1" nor "l2"."""
    if norm not in ("l1", "l2"):
        raise MechanismError(f"{what}: there is no norm {norm!r}.")


@np.errstate(all="ignore")
def into_ball(vectors: Floats, radius: int | Ints, norm: Norm = "l2") -> Ints:
    """Return each column of `vectors`, scaled into a ball of an integer `radius` of at most GRID, in integers.

    `radius` is one for all or one a column, `norm` "l1" or "l2". Each column's norm is checked against its radius
    in integers; a column that fails the check twice, or has a NaN, is zero.
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
    """Return a boolean a column of `units`: is its `norm` at most its radius; |units| <= GRID + 1, radius <= GRID."""
    spent = np.zeros(units.shape[1], np.int64)
    for coordinate in units:
        spent += np.abs(coordinate) if norm == "l1" else coordinate * coordinate
        np.minimum(spent, 2**61, out=spent)  # more than any radius^2, and far from overflow
    return spent <= (radius if norm == "l1" else radius * radius)


def clipped(vectors: Floats, clip: float, norm: Norm) -> list[Ints]:
    """Return a list of one int array in clip / GRID: sum of the columns of `vectors`, each cut to `clip` in `norm`."""
    return [into_ball(vectors / float(clip) * GRID, GRID, norm).sum(axis=1)]
