"""Scores by a sum over rows: the largest of some affine functions of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import Neighbours
from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import Setting, fixed, is_plain
from stratsynth.questions.reading import Exact, Wanted
from stratsynth.questions.scores import Score
from stratsynth.questions.sums.base import GRID, Query, check_query

if TYPE_CHECKING:
    from stratsynth.schema import Schema

_SLOPE_UNIT = 2**30
"""Slopes are rounded to 2^-30 of the largest."""


@known
@dataclass(frozen=True, eq=False)
class Peak(Score):
    """sign x the largest of some affine functions of a sum over rows: max over j of (slopes_j . sum + offsets_j).

    With one row of slopes it is linear; with several, any convex piecewise linear function, such as a loss
    plus a multiple of max(0, violation). The query clips each row, so that one row moves the sum by at most
    its clip, and the maximum by at most the clip times the longest slope.
    """

    query: Query
    """Clipped per-row vectors that are summed; all its blocks side by side."""
    slopes: NDArray[np.float64]
    """One row for each affine function, one column for each coordinate of the sum."""
    offsets: NDArray[np.float64]
    sign: Literal[1, -1] = 1
    """1, or -1 to prefer small values, as of a loss."""

    def __post_init__(self) -> None:
        """Keep read-only copies of slopes and offsets."""
        object.__setattr__(self, "slopes", fixed(self.slopes))
        object.__setattr__(self, "offsets", fixed(self.offsets))

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: query unsound in `schema`, slopes or offsets not finite, misshapen, all 0."""
        check_query("choose", self.query, schema)
        if not (is_plain(self.slopes) and is_plain(self.offsets)):
            raise MechanismError("choose: slopes and offsets must be numpy arrays of float64.")
        size = sum(block.size for block in self.query.blocks(schema))
        if np.ndim(self.slopes) != 2 or np.shape(self.slopes)[1] != size or not np.shape(self.slopes)[0]:
            raise MechanismError(f"choose: slopes must be a table of {size} columns.")
        if np.shape(self.offsets) != np.shape(self.slopes)[:1]:
            raise MechanismError("choose: one offset for each row of slopes.")
        if not (np.isfinite(self.slopes).all() and np.isfinite(self.offsets).all() and np.any(self.slopes)):
            raise MechanismError("choose: slopes and offsets must be finite, and not all slopes 0.")
        if type(self.sign) is not int or self.sign not in (1, -1):
            raise MechanismError("choose: sign is 1 or -1.")

    @property
    def candidate(self) -> Any:
        """Tuple that identifies it in a journal: the query's replayed part, the shape of the slopes, and the sign."""
        return "peak", self.query.replayed(), np.shape(self.slopes), self.sign

    def sensitivity(self, schema: Schema, neighbours: Neighbours) -> float:
        """Return a float: largest over j of the sum over a schema's blocks of |slopes_j| x sensitivity (neighbours)."""
        # Cauchy and Schwarz, block by block: length of the slopes x sensitivity of the block.
        start, lengths = 0, np.zeros(np.shape(self.slopes)[0])
        for block in self.query.blocks(schema):
            part = np.asarray(self.slopes)[:, start : start + block.size]
            lengths += np.sqrt((part**2).sum(axis=1)) * block.sensitivity(neighbours)
            start += block.size
        return schema.row_weight.most * float(lengths.max())

    @property
    def unverified(self) -> str:
        """Sentence of the query if it is only claimed that a row's vector depends on that row alone; else empty."""
        return self.query.unverified

    @classmethod
    def wanted(cls, scores: Sequence[Self]) -> Wanted:
        """Return a `Wanted`: the sum of each of the `scores`' queries over all rows, in the candidates' order."""
        return Wanted(sums=[(score.query, 1.0) for score in scores])

    @classmethod
    def units(cls, scores: Sequence[Self], exact: Exact, at: Setting, memory: dict[Any, Any]) -> tuple[list[int], int]:
        """Return (`scores` of `exact` sums at a Setting, ints in a public unit; int sensitivity in it); no `memory`."""
        worth = [score.grid(at.schema) for score in scores]
        # One public unit for all candidates, in which the largest slope is 2^30.
        unit = max(float(np.abs(score.slopes * w).max()) for score, w in zip(scores, worth, strict=True)) / _SLOPE_UNIT
        units, reach = [], 1
        for score, w, blocks in zip(scores, worth, exact.sums, strict=True):
            slopes = [[int(x) for x in row] for row in np.rint(score.slopes * w / unit)]
            offsets = [round(Fraction(float(o)) / Fraction(unit)) for o in score.offsets]
            total = [int(x) * at.schema.row_weight.each for block in blocks for x in block]
            values = (
                sum(a * s for a, s in zip(row, total, strict=True)) + o for row, o in zip(slopes, offsets, strict=True)
            )
            units.append(score.sign * max(values))
            reach = max(reach, *(score.steps(row, at) for row in slopes))
        return units, reach

    def grid(self, schema: Schema) -> NDArray[np.float64]:
        """Return a float array: clip / GRID, value of an integer unit, for each coordinate of the sum in `schema`."""
        return np.concatenate([np.full(b.size, b.clip / GRID) for b in self.query.blocks(schema)])

    def steps(self, slopes: Sequence[int], at: Setting) -> int:
        """Return the largest movement of (ints `slopes` . sum) by one record at a Setting, an int in grid units, up."""
        start, moved = 0, 0
        for block in self.query.blocks(at.schema):
            part = slopes[start : start + block.size]
            start += block.size
            # an L1 clip is an L2 clip too; isqrt rounds down, hence the 1
            length = math.isqrt(sum(a * a for a in part)) + 1
            moved += math.ceil(length * GRID * at.schema.row_weight.most * Fraction(block.reach(at.neighbours)))
        return moved
