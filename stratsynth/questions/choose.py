"""`Choose`: one of several candidates, by the exponential mechanism.

Scores are descriptions, not functions: what to count or sum, and what to compare it with. The core computes
them from the rows in exact integers and derives how far one record can move them, so a mechanism cannot
misstate a sensitivity. Candidate i is drawn with probability proportional to exp(epsilon score_i / (2 D)),
where D is the largest sensitivity of any candidate; that costs epsilon, and rho = epsilon^2 / 8 since its
privacy loss has range epsilon (Cesar and Rogers 2021).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast

from stratsynth.accounting.budget import Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.digest import digest
from stratsynth.errors import MechanismError
from stratsynth.questions.base import Clique, Program, check_clique, check_positive
from stratsynth.questions.counts import check_cells
from stratsynth.questions.queries import Query, check_query
from stratsynth.strata import Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

REFERENCE_UNIT = 2**16
"""Reference tables and offsets are taken to the nearest 1/65,536 of a count."""
WEIGHT_UNIT = 2**20
"""Weights are taken relative to the largest one, to about a millionth."""
_LARGEST = 2.0**42
"""What a reference table may add up to: sums stay exact in 64 bits."""


@dataclass(frozen=True, eq=False)
class Distance:
    """weight x (distance between a clique's counts and a reference table, less an offset)."""

    clique: Clique
    reference: NDArray[np.float64]
    """What to compare the counts with, in records; of the clique's shape."""
    weight: float = 1.0
    offset: float = 0.0
    """Subtracted before weighting: the expected noise, in AIM."""
    norm: Literal["l1", "largest"] = "l1"
    """The sum of the cells' absolute differences, or the largest of them."""

    @cached_property
    def digest(self) -> str:
        """Its own digest, computed once: a candidate is asked about again and again."""
        return digest("distance", self.clique, self.reference, self.weight, self.offset, self.norm)

    def check(self, schema: Schema) -> None:
        """A reference of the right shape and size, a positive weight."""
        import numpy as np

        check_clique("choose", self.clique, schema)
        check_positive("choose: a weight", self.weight)
        if self.norm not in ("l1", "largest"):
            raise MechanismError(f"choose: there is no norm {self.norm!r}.")
        # in another type, its size could wrap around, and with it the exact arithmetic of scores
        if not isinstance(self.reference, np.ndarray) or self.reference.dtype != np.float64:
            raise MechanismError("choose: a reference must be a numpy array of float64.")
        if np.shape(self.reference) != schema.shape(self.clique):
            raise MechanismError(f"choose: the reference of {','.join(self.clique)} has not the clique's shape.")
        if not (np.abs(self.reference).sum() < _LARGEST and abs(self.offset) < _LARGEST):
            raise MechanismError(f"choose: the reference of {','.join(self.clique)} is not finite, or too large.")

    def reach(self, neighbours: Neighbours) -> int:
        """How far one neighbouring step can move the distance, in records.

        A record more or fewer changes one cell by one. A record exchanged for another changes two cells by
        one each: twice the sum, but the largest cell still moves by no more than one.
        """
        return 2 if neighbours == Neighbours.REPLACE and self.norm == "l1" else 1


@dataclass(frozen=True, eq=False)
class Peak:
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

    def check(self, schema: Schema) -> None:
        """Finite slopes and offsets of matching shapes."""
        import numpy as np

        check_query("choose", self.query, schema)
        size = sum(block.size for block in self.query.blocks(schema))
        if np.ndim(self.slopes) != 2 or np.shape(self.slopes)[1] != size or not np.shape(self.slopes)[0]:
            raise MechanismError(f"choose: slopes must be a table of {size} columns.")
        if np.shape(self.offsets) != np.shape(self.slopes)[:1]:
            raise MechanismError("choose: one offset for each row of slopes.")
        if not (np.isfinite(self.slopes).all() and np.isfinite(self.offsets).all() and np.any(self.slopes)):
            raise MechanismError("choose: slopes and offsets must be finite, and not all slopes 0.")
        if self.sign not in (1, -1):
            raise MechanismError("choose: sign is 1 or -1.")


Score = Distance | Peak


@dataclass(frozen=True)
class Choose:
    """The number of one candidate, drawn by its score. All candidates' scores are of one kind."""

    scores: tuple[Score, ...]
    rho: float

    @property
    def epsilon(self) -> float:
        """What the choice costs as epsilon, rounded down: rho = epsilon^2 / 8."""
        return math.sqrt(8 * self.rho) * (1 - 1e-15)

    def check(self, schema: Schema) -> None:
        """At least one candidate, each with a sound score."""
        if not self.scores:
            raise MechanismError("choose: there is no candidate.")
        check_positive("choose: rho", self.rho)
        if {type(score) for score in self.scores} not in ({Distance}, {Peak}):
            raise MechanismError("choose: the candidates' scores must all be Distance, or all be Peak.")
        for score in self.scores:
            score.check(schema)
        cliques = {score.clique for score in self.scores if isinstance(score, Distance)}
        check_cells("choose", list(cliques), schema)

    def sensitivity(self, schema: Schema) -> Mapping[Neighbours, float]:
        """The most that one step moves any candidate's score, relative to adding or removing a record."""
        step = {n: max(_reach(score, schema, n) for score in self.scores) for n in Neighbours}
        return {n: value / step[Neighbours.ADD_REMOVE] for n, value in step.items()}

    def charges(self, schema: Schema, path: Path, neighbours: Neighbours) -> tuple[Charge, ...]:  # noqa: ARG002
        """One charge; sensitivities are in units of the score's own."""
        sensitivity = self.sensitivity(schema)
        return (
            Charge(path, "choose", self.rho, sensitivity, {"epsilon": self.epsilon, "candidates": len(self.scores)}),
        )


def _reach(score: Score, schema: Schema, neighbours: Neighbours) -> float:
    if isinstance(score, Distance):
        return score.weight * score.reach(neighbours)
    return _peak(score, schema, neighbours)


def _peak(score: Peak, schema: Schema, neighbours: Neighbours) -> float:
    import numpy as np

    blocks, start, reach = score.query.blocks(schema), 0, 0.0
    lengths = np.zeros(np.shape(score.slopes)[0])
    for block in blocks:
        part = np.asarray(score.slopes)[:, start : start + block.size]
        lengths += np.sqrt((part**2).sum(axis=1)) * block.sensitivity(neighbours)
        start += block.size
    return float(max(reach, lengths.max()))


def choose(scores: Sequence[Score], *, rho: float) -> Program[int]:
    """Ask for one candidate's number: `i = yield from choose(scores, rho=...)`."""
    answer = yield Choose(tuple(scores), float(rho))
    return cast("int", answer)
