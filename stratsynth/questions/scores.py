"""Scores of candidates: what to count or sum, and what to compare it with, as data.

A mechanism describes its scores and cannot misstate a sensitivity: the core computes scores from the rows in exact
integers, and the bound on how far one record moves them from the same integers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
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

if TYPE_CHECKING:
    from stratsynth.schema import Schema

REFERENCE_UNIT = 2**16
"""Reference tables and offsets are taken to the nearest 1/65,536 of a count."""
WEIGHT_UNIT = 2**20
"""Weights are taken relative to the largest one, to about a millionth."""
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
