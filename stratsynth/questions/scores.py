"""Scores of candidates as data: the tables or sums they are computed from, and the numbers compared with.

A mechanism describes its scores and cannot misstate a sensitivity: the core computes scores from the rows in exact
integers, and their sensitivities from the same integers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
"""Reference tables and offsets are rounded to 2^-16 of a record."""
WEIGHT_UNIT = 2**20
"""Weights are rounded to 2^-20 of the largest one."""
LARGEST = 2.0**42
"""Largest sum of a reference table: sums stay exact in 64 bits."""


class Score(ABC):
    """Score of one candidate of a choice, as a description from which the core computes it."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Raise MechanismError on a score that the schema does not allow to be computed; no row is read."""

    @classmethod
    def check_all(cls, scores: Sequence[Self], schema: Schema) -> None:
        """Call `check` with the schema on each of one choice's `scores`: MechanismError on unsound ones."""
        for score in scores:
            cls.check(score, schema)

    @abstractmethod
    def sensitivity(self, schema: Schema, neighbours: Neighbours) -> float:
        """Return the largest movement of the score by one step of `neighbours` in this schema, a float in its unit."""

    @classmethod
    def cells(cls, scores: Sequence[Self], schema: Schema) -> int:
        """Return an int: cells of all exact tables that the `scores` read, each clique of the schema counted once."""
        return sum(schema.cells(clique) for clique in set(cls.wanted(scores).cliques))

    @classmethod
    def most_moved(cls, scores: Sequence[Self], schema: Schema, neighbours: Neighbours) -> float:
        """Return a float: the largest sensitivity of all `scores` to one step of `neighbours` in this schema."""
        return max(score.sensitivity(schema, neighbours) for score in scores)

    @property
    def unverified(self) -> str:
        """Sentence for the certificate if privacy rests on an unproven claim; otherwise an empty text."""
        return ""

    @property
    @abstractmethod
    def candidate(self) -> Any:
        """Plain value that identifies the candidate when a journal is replayed; no number from an earlier answer."""

    @classmethod
    def candidates(cls, scores: Sequence[Self]) -> Any:
        """Return a list with each score's `candidate`, in order, which identifies them when a journal is replayed."""
        return [score.candidate for score in scores]

    @classmethod
    @abstractmethod
    def wanted(cls, scores: Sequence[Self]) -> Wanted:
        """Return a `Wanted`, which names the tables or sums that the scores of all candidates are computed from."""

    @classmethod
    @abstractmethod
    def units(cls, scores: Sequence[Self], exact: Exact, at: Setting, memory: dict[Any, Any]) -> tuple[list[int], int]:
        """Return (`scores` of `exact` at a Setting, exact ints; the most that a neighbouring step moves any).

        References, offsets, slopes and weights are public; they are rounded to integers first, and the bound is
        computed from the rounded ones. After that there is no rounding. `memory` is the cache of the path.
        """


@known
@dataclass(frozen=True, eq=False)
class Distance(Score, Digested):
    """weight x (distance between a clique's counts and a reference table - offset)."""

    clique: Clique
    reference: NDArray[np.float64]
    """Table that the counts are compared with, in records; of the clique's shape, and read-only."""
    weight: float = 1.0
    offset: float = 0.0
    """Number subtracted before weighting, in records: the expected noise, in AIM."""
    norm: Literal["l1", "largest"] = "l1"
    """Sum of the cells' absolute differences, or the largest of them."""

    def __post_init__(self) -> None:
        """Keep a read-only copy of the reference."""
        object.__setattr__(self, "reference", fixed(self.reference))

    def digested(self) -> str:
        """Return the text digest of all fields, reference included, as journals of 0.1.0 and 0.2.0 identify it."""
        return digest("distance", self.clique, self.reference, self.weight, self.offset, self.norm)

    @property
    def candidate(self) -> Any:
        """Identity of the candidate in a replayed journal: ("distance", clique, weight, norm).

        Reference and offset are left out, as they come from earlier answers.
        """
        return "distance", self.clique, self.weight, self.norm

    @classmethod
    def candidates(cls, scores: Sequence[Self]) -> str:
        """Return one text that lists the identity of each of the `scores`: hundreds are digested a round."""
        return repr([score.candidate for score in scores])

    @classmethod
    def cells(cls, scores: Sequence[Self], schema: Schema) -> int:
        """Return an int: cells of all `scores`' reference tables, each clique counted once; `schema` is unused."""
        return sum({score.clique: score.reference.size for score in scores}.values())

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: columns not in `schema`, norm, weight <= 0, misshapen or large reference."""
        check_clique("choose", self.clique, schema)
        check_positive("choose: a weight", self.weight)
        if self.norm not in ("l1", "largest"):
            raise MechanismError(f"choose: there is no norm {self.norm!r}.")
        # another type could wrap around in the exact arithmetic of scores
        if not is_plain(self.reference):
            raise MechanismError("choose: a reference must be a numpy array of float64.")
        if np.shape(self.reference) != schema.shape(self.clique):
            raise MechanismError(f"choose: the reference of {','.join(self.clique)} has not the clique's shape.")
        if not (np.abs(self.reference).sum() < LARGEST and abs(self.offset) < LARGEST):
            raise MechanismError(f"choose: the reference of {','.join(self.clique)} is not finite, or too large.")

    def reach(self, schema: Schema, neighbours: Neighbours) -> int:
        """Return the sensitivity of the distance in a schema to a step of `neighbours`, in whole records, with weight.

        A record more or fewer changes one cell by its weight. A record exchanged for another changes two cells: the
        sum of differences by at most twice the weight, the largest difference by at most one weight.
        """
        both = neighbours != Neighbours.ADD_REMOVE and self.norm == "l1"
        return schema.row_weight.most * (2 if both else 1)

    def sensitivity(self, schema: Schema, neighbours: Neighbours) -> float:
        """Return a float: weight x the distance's largest movement by a step of `neighbours`, in the schema."""
        return self.weight * self.reach(schema, neighbours)

    @classmethod
    def most_moved(cls, scores: Sequence[Self], schema: Schema, neighbours: Neighbours) -> float:
        """Return a float: the largest sensitivity in `schema` of all `scores` to a step of `neighbours`; one a kind."""
        return max(score.sensitivity(schema, neighbours) for score in _different(scores))

    @classmethod
    def wanted(cls, scores: Sequence[Self]) -> Wanted:
        """Return a `Wanted`: the table of each clique in `scores`, marked to be kept for later rounds."""
        return Wanted(cliques=[score.clique for score in scores], again=True)

    @classmethod
    def units(cls, scores: Sequence[Self], exact: Exact, at: Setting, memory: dict[Any, Any]) -> tuple[list[int], int]:
        """Return (`scores`, weight x (`exact` distance - offset), in 2^-36 of the top; reach); Setting; no memory."""
        heaviest = max(score.weight for score in scores)
        # Integers first: weights are rounded to 2^-20 of the largest, offsets and references to 2^-16 records.
        weights = {weight: max(1, round(weight / heaviest * WEIGHT_UNIT)) for weight in {s.weight for s in scores}}
        units = [
            weights[s.weight] * (s.away(table) - round(s.offset * REFERENCE_UNIT))
            for s, table in zip(scores, exact.tables, strict=True)
        ]
        reach = max(weights[s.weight] * s.reach(at.schema, at.neighbours) for s in _different(scores))
        return units, max(1, reach * REFERENCE_UNIT)

    def away(self, table: Ints) -> int:
        """Return the distance, in the score's norm, of an exact table and the reference, in units of 2^-16 records."""
        # Exact in int64: references below 2^42 records stay below 2^58 units.
        cells = np.abs(table * REFERENCE_UNIT - np.rint(self.reference * REFERENCE_UNIT).astype(np.int64))
        return int(cells.sum()) if self.norm == "l1" else int(cells.max(initial=0))


def _different(scores: Sequence[Distance]) -> Iterable[Distance]:
    """Return one score of each norm and weight, on which its sensitivity depends."""
    return {(score.norm, score.weight): score for score in scores}.values()
