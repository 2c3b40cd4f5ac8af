"""Sums over rows: descriptions of one vector a row, with the clip that bounds it, and their exact values.

A sum is data: which columns, which public numbers. Each row's vector is worked out from that row alone, and a row that
cannot be read (a missing value, say) contributes zero. A block is a part of the vector with a clip and a price of its
own. `exact` gives the sum over some rows as integers, in units of clip / GRID.

Privacy needs two things of it: a row's integer vector depends on that row alone, to the last bit; and its norm is at
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

from stratsynth.accounting.budget import Neighbours
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.admission import is_known
from stratsynth.questions.base import check_positive, fixed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

Norm = Literal["l1", "l2"]
MOST_COORDINATES = 2**24
"""The longest vector that can be summed."""


@dataclass(frozen=True)
class Block:
    """A part of the summed vector."""

    size: int
    clip: float
    """The most that one row can contribute, in the norm that the noise is for; larger rows are scaled down."""
    exchange: float = 2.0
    """The most that a sum can move when one row is exchanged for another, in clips."""

    def reach(self, neighbours: Neighbours) -> float:
        """The most that one neighbouring step can move this block's sum, in clips."""
        return 1.0 if neighbours == Neighbours.ADD_REMOVE else self.exchange

    def sensitivity(self, neighbours: Neighbours) -> float:
        """The most that one neighbouring step can move this block's sum, in the sum's own unit."""
        return self.clip * self.reach(neighbours)


class Sum(ABC):
    """A description of one vector a row."""

    norm: Norm = "l2"
    """The norm in which the whole vector is clipped; pure epsilon needs `l1`."""
    unverified: ClassVar[str] = ""
    """Empty where row-locality holds by construction; otherwise a reader is told."""

    def __post_init__(self) -> None:
        """Keep copies of arrays that nobody can change."""
        for field in fields(cast("Any", self)):
            object.__setattr__(self, field.name, fixed(getattr(self, field.name), "fiub"))

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Refuse what cannot be computed, from the schema alone."""

    @abstractmethod
    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """The parts of the vector, in order."""

    @abstractmethod
    def exact(self, rows: CodedRows, which: Which) -> list[NDArray[np.int64]]:
        """The exact sum of each block over some rows, in units of clip / GRID; `which` picks at most ROWS of them."""

    def each_row_adds_clip(self, schema: Schema) -> bool:
        """True if each row that has a value contributes exactly the clip, as in a count written as a sum."""
        return False

    def replayed(self) -> Any:
        """The part of it that has to be equal for a kept sum to be given again: see `Question.replayed`."""
        return self

    def counts_records(self, schema: Schema) -> bool:
        """True for one number to which every row adds exactly the clip."""
        return False


Query = Sum
"""The name that mechanisms use."""


def check_query(what: str, query: Sum, schema: Schema) -> None:
    """One of the known queries, by its exact class: another could restate its own sensitivity."""
    if not (is_known(query) and isinstance(query, Sum)):
        raise MechanismError(f"{what}: {type(query).__name__} is not one of the known queries.")
    query.check(schema)
    size = sum(block.size for block in query.blocks(schema))
    if size > MOST_COORDINATES:
        raise Unsupported(f"{what}: a vector of {size:,} coordinates is too long; use fewer columns or bins.")


def check_clip(what: str, clip: float) -> None:
    """A positive number that can be squared, and divided by, without leaving the range of floats."""
    check_positive(f"{what}: clip", clip)
    if not 1e-100 < clip < 1e100:
        raise MechanismError(f"{what}: a clip of {clip:g} is out of all proportion; use a scale.")


def check_norm(what: str, norm: str) -> None:
    """L1 or L2."""
    if norm not in ("l1", "l2"):
        raise MechanismError(f"{what}: there is no norm {norm!r}.")
