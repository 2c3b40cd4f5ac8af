"""Scores of candidates: what to count or sum, and what to compare it with, as data.

A mechanism describes its scores and cannot misstate a sensitivity: the core computes scores from the rows in exact
integers, and the bound on how far one record moves them from the same integers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import Neighbours
from stratsynth.digest import Digested, digest
from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import Setting, check_clique, check_positive, fixed, is_plain
from stratsynth.questions.reading import Clique, Exact, Ints, Wanted
from stratsynth.questions.sums.base import Query, check_query
from stratsynth.questions.sums.clipping import GRID

if TYPE_CHECKING:
    from stratsynth.schema import Schema

REFERENCE_UNIT = 2**16
"""Reference tables and offsets are taken to the nearest 1/65,536 of a count."""
WEIGHT_UNIT = 2**20
"""Weights are taken relative to the largest one, to about a millionth."""
_SLOPE_UNIT = 2**30
"""Slopes are taken relative to the largest, to about a billionth."""
LARGEST = 2.0**42
"""The largest sum of a reference table: sums stay exact in 64 bits."""


class Score(ABC):
    """The score of one candidate of a choice, as a description from which the core computes it."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Refuse what cannot be computed, from the schema alone."""

    @classmethod
    def check_all(cls, scores: Sequence[Self], schema: Schema) -> None:
        """Check all candidates of one choice."""
        for score in scores:
            cls.check(score, schema)

    @abstractmethod
    def moved(self, schema: Schema, neighbours: Neighbours) -> float:
        """The most that one neighbouring step can move the score, in its own unit."""

    @classmethod
    def cells(cls, scores: Sequence[Self], schema: Schema) -> int:
        """The number of cells of all tables that have to be read, each once."""
        return sum(schema.cells(clique) for clique in set(cls.wanted(scores).cliques))

    @classmethod
    def most_moved(cls, scores: Sequence[Self], schema: Schema, neighbours: Neighbours) -> float:
        """The most that one neighbouring step can move any of the scores."""
        return max(score.moved(schema, neighbours) for score in scores)

    @property
    def unverified(self) -> str:
        """A sentence for the reader where privacy rests on somebody's word; empty otherwise."""
        return ""

    @property
    @abstractmethod
    def candidate(self) -> Any:
        """Which candidate it is, without the numbers that are worked out from earlier answers."""

    @classmethod
    def candidates(cls, scores: Sequence[Self]) -> Any:
        """Which candidates they are, in order."""
        return [score.candidate for score in scores]

    @classmethod
    @abstractmethod
    def wanted(cls, scores: Sequence[Self]) -> Wanted:
        """The reads that the scores of all candidates need."""

    @classmethod
    @abstractmethod
    def units(cls, scores: Sequence[Self], exact: Exact, at: Setting, memory: dict[Any, Any]) -> tuple[list[int], int]:
        """All candidates' scores as exact integers, and the most that one neighbouring step can move any of them.

        References, offsets, slopes and weights are public numbers; they are rounded to integers first, and the bound
        is computed from the rounded ones. After that there is no rounding at all.
        """


@known
@dataclass(frozen=True, eq=False)
class Distance(Score, Digested):
    """weight x (distance between a clique's counts and a reference table, less an offset)."""

    clique: Clique
    reference: NDArray[np.float64]
    """The table that the counts are compared with, in records; of the clique's shape, and read-only."""
    weight: float = 1.0
    offset: float = 0.0
    """Subtracted before weighting: the expected noise, in AIM."""
    norm: Literal["l1", "largest"] = "l1"
    """The sum of the cells' absolute differences, or the largest of them."""

    def __post_init__(self) -> None:
        """Keep a copy of the reference that nobody can change."""
        object.__setattr__(self, "reference", fixed(self.reference))

    def digested(self) -> str:
        """The digest of all its parts, as journals of 0.1.0 and 0.2.0 have it."""
        return digest("distance", self.clique, self.reference, self.weight, self.offset, self.norm)

    @property
    def candidate(self) -> Any:
        """The clique, its weight and the norm."""
        return "distance", self.clique, self.weight, self.norm

    @classmethod
    def candidates(cls, scores: Sequence[Self]) -> str:
        """As Python writes texts and numbers, exactly: there are hundreds in every round of every stratum."""
        return repr([score.candidate for score in scores])

    @classmethod
    def cells(cls, scores: Sequence[Self], schema: Schema) -> int:
        """The number of cells of all references, each clique once."""
        return sum({score.clique: score.reference.size for score in scores}.values())

    def check(self, schema: Schema) -> None:
        """A reference of the right shape and size, a positive weight."""
        check_clique("choose", self.clique, schema)
        check_positive("choose: a weight", self.weight)
        if self.norm not in ("l1", "largest"):
            raise MechanismError(f"choose: there is no norm {self.norm!r}.")
        # in another type, its size could wrap around, and with it the exact arithmetic of scores
        if not is_plain(self.reference):
            raise MechanismError("choose: a reference must be a numpy array of float64.")
        if np.shape(self.reference) != schema.shape(self.clique):
            raise MechanismError(f"choose: the reference of {','.join(self.clique)} has not the clique's shape.")
        if not (np.abs(self.reference).sum() < LARGEST and abs(self.offset) < LARGEST):
            raise MechanismError(f"choose: the reference of {','.join(self.clique)} is not finite, or too large.")

    def reach(self, schema: Schema, neighbours: Neighbours) -> int:
        """The most that one neighbouring step can move the distance, in records.

        A record more or fewer changes one cell by its weight. A record exchanged for another changes two cells:
        twice the sum, but the largest cell still moves by no more than one weight.
        """
        both = neighbours != Neighbours.ADD_REMOVE and self.norm == "l1"
        return schema.row_weight.most * (2 if both else 1)

    def moved(self, schema: Schema, neighbours: Neighbours) -> float:
        """The reach, weighted."""
        return self.weight * self.reach(schema, neighbours)

    @classmethod
    def most_moved(cls, scores: Sequence[Self], schema: Schema, neighbours: Neighbours) -> float:
        """Largest movement of the heaviest score of each norm."""
        return max(score.moved(schema, neighbours) for score in _heaviest(scores).values())

    @classmethod
    def wanted(cls, scores: Sequence[Self]) -> Wanted:
        """Each candidate's table, which later rounds are likely to ask for again."""
        return Wanted(cliques=[score.clique for score in scores], again=True)

    @classmethod
    def units(cls, scores: Sequence[Self], exact: Exact, at: Setting, memory: dict[Any, Any]) -> tuple[list[int], int]:
        """Score = weight x (distance - offset), weights in units of the heaviest."""
        heaviest = max(score.weight for score in scores)
        weights = {weight: max(1, round(weight / heaviest * WEIGHT_UNIT)) for weight in {s.weight for s in scores}}
        units = [
            weights[s.weight] * (s.away(table) - round(s.offset * REFERENCE_UNIT))
            for s, table in zip(scores, exact.tables, strict=True)
        ]
        # the heaviest of each norm moves farthest
        reach = max(weights[s.weight] * s.reach(at.schema, at.neighbours) for s in _heaviest(scores).values())
        return units, max(1, reach * REFERENCE_UNIT)

    def away(self, table: Ints) -> int:
        """The distance between a table and the reference, in units of 1/65,536 of a record."""
        cells = np.abs(table * REFERENCE_UNIT - np.rint(self.reference * REFERENCE_UNIT).astype(np.int64))
        return int(cells.sum()) if self.norm == "l1" else int(cells.max(initial=0))


def _heaviest(scores: Sequence[Distance]) -> dict[str, Distance]:
    """The score with the largest weight, of each norm."""
    found: dict[str, Distance] = {}
    for (norm, _), score in sorted({(s.norm, s.weight): s for s in scores}.items(), key=itemgetter(0)):
        found[norm] = score
    return found


@known
@dataclass(frozen=True, eq=False)
class Peak(Score):
    """sign x the largest of some affine functions of a sum over rows: max over j of (slopes_j . sum + offsets_j).

    With one row of slopes it is linear; with several, any convex piecewise linear function, such as a loss
    plus a multiple of max(0, violation). The query clips each row, so that one row moves the sum by at most
    its clip, and the maximum by at most the clip times the longest slope.
    """

    query: Query
    """The clipped per-row vectors that are summed; all its blocks side by side."""
    slopes: NDArray[np.float64]
    """One row for each affine function, one column for each coordinate of the sum."""
    offsets: NDArray[np.float64]
    sign: Literal[1, -1] = 1
    """-1 prefers small values, as of a loss."""

    def __post_init__(self) -> None:
        """Keep copies of slopes and offsets that nobody can change."""
        object.__setattr__(self, "slopes", fixed(self.slopes))
        object.__setattr__(self, "offsets", fixed(self.offsets))

    def check(self, schema: Schema) -> None:
        """Finite slopes and offsets of matching shapes."""
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
        """The query's part, and how many affine functions there are."""
        return "peak", self.query.replayed(), np.shape(self.slopes), self.sign

    def moved(self, schema: Schema, neighbours: Neighbours) -> float:
        """The sum over blocks of the longest slopes times the block's sensitivity."""
        start, lengths = 0, np.zeros(np.shape(self.slopes)[0])
        for block in self.query.blocks(schema):
            part = np.asarray(self.slopes)[:, start : start + block.size]
            lengths += np.sqrt((part**2).sum(axis=1)) * block.sensitivity(neighbours)
            start += block.size
        return schema.row_weight.most * float(lengths.max())

    @property
    def unverified(self) -> str:
        """The query's."""
        return self.query.unverified

    @classmethod
    def wanted(cls, scores: Sequence[Self]) -> Wanted:
        """Each candidate's sum, over all rows."""
        return Wanted(sums=[(score.query, 1.0) for score in scores])

    @classmethod
    def units(cls, scores: Sequence[Self], exact: Exact, at: Setting, memory: dict[Any, Any]) -> tuple[list[int], int]:
        """Score = sign x max over j of slopes_j . sum + offsets_j, slopes and offsets in one public unit."""
        worth = [score.grid(at.schema) for score in scores]
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
        """The worth of one grid unit of each coordinate of the sum."""
        return np.concatenate([np.full(b.size, b.clip / GRID) for b in self.query.blocks(schema)])

    def steps(self, slopes: Sequence[int], at: Setting) -> int:
        """The most that one step moves slopes . sum, rounded up: the clip, in units, times the length of the slopes."""
        start, moved = 0, 0
        for block in self.query.blocks(at.schema):
            part = slopes[start : start + block.size]
            start += block.size
            # an L1 clip is an L2 clip too; isqrt rounds down, hence the 1
            length = math.isqrt(sum(a * a for a in part)) + 1
            moved += math.ceil(length * GRID * at.schema.row_weight.most * Fraction(block.reach(at.neighbours)))
        return moved
