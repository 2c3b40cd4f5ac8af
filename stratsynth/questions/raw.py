"""`Raw`: the rows themselves, for third-party code only. What it claims is recorded, and nothing is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never, cast

from stratsynth.accounting.budget import PRICED, Currency, Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.noise import Entropy
from stratsynth.questions.base import Answer, Program, Question, check_positive
from stratsynth.questions.handler import Exact, Handler, Kept, Setting, Wanted
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema


@dataclass(frozen=True)
class Claim:
    """What third-party code says of its own privacy."""

    by: str
    """Who says so: package and version."""
    epsilon: float
    delta: float
    counts_rows: bool
    """Whether it takes the number of rows for public, as most synthesizers do. Then its promise is about
    exchanging one record for another, and it says nothing of a stratum, whose number of rows is private."""

    def check(self, neighbours: Neighbours, *, stratified: bool) -> None:
        """Refuse a use that the claim does not cover."""
        if not self.counts_rows:
            return
        if stratified:
            raise Unsupported(
                f"{self.by} takes the number of rows for public; inside strata that would publish the size of "
                "every group. Fit it on the whole table."
            )
        if neighbours == Neighbours.ADD_REMOVE:
            raise Unsupported(
                f"{self.by} takes the number of rows for public, so it cannot promise {neighbours}; "
                'set neighbours = "replace".'
            )


@dataclass(frozen=True)
class Raw(Question):
    """All rows of a path as a pandas frame of level numbers, for code that keeps its own account."""

    claim: Claim

    def check(self, schema: Schema) -> None:
        """A claim of a positive epsilon, by somebody."""
        check_positive("raw: the claimed epsilon", self.claim.epsilon)
        if not 0 <= self.claim.delta < 1:
            raise MechanismError("raw: the claimed delta must be at least 0 and below 1.")
        if not self.claim.by:
            raise MechanismError("raw: a claim needs its author, such as a package and its version.")
        if schema.row_weight.column is not None:
            raise Unsupported(
                f"raw: {self.claim.by} knows nothing of the rows' weights in {schema.row_weight.column}, and would "
                "count every row once. Take a mechanism that asks for counts, such as mst, or leave `weight` out of "
                "the schema."
            )

    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """The claim, as it stands."""
        self.claim.check(neighbours, stratified=bool(path))
        details = {"claimed_by": self.claim.by, "delta": self.claim.delta}
        unknown = dict.fromkeys(PRICED, 1.0)
        return (Charge(path, "raw", self.claim.epsilon, unknown, details, Currency.CLAIMED),)


def raw(claim: Claim) -> Program[pd.DataFrame]:
    """Ask for the rows: `frame = yield from raw(claim)`."""
    answer = yield Raw(claim)
    return cast("pd.DataFrame", answer)


class RawHandler(Handler[Raw]):
    """The rows go to code that nobody here has checked, and are kept nowhere."""

    kind = Raw
    reads = frozenset({"frame"})

    def wanted(self, question: Raw) -> Wanted:
        """All rows."""
        return Wanted(frame=True)

    def answer(
        self, question: Raw, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]
    ) -> pd.DataFrame | None:
        """As they are."""
        return exact.frame

    def tv_error(self, question: Raw, at: Setting) -> float:
        """None of ours: what noise there is, is the claim's."""
        return 0.0

    def keep(self, answer: Answer) -> None:
        """Never."""

    def recall(self, kept: Kept) -> Never:
        """Nothing was kept."""
        raise self._incomparable()

    def shape(self, answer: Answer) -> Never:
        """Nobody's to know."""
        raise self._incomparable()

    def cost(self, question: Raw, at: Setting, here: Exact, there: Exact, answer: Answer) -> Never:
        """What others do with rows has no price here."""
        raise self._incomparable()

    def _incomparable(self) -> Unsupported:
        return Unsupported("raw: rows that third-party code is handed are neither kept nor compared.")

    def unverified(self, question: Raw) -> str:
        """Whose claim it is."""
        return f"{question.claim.by}: its own claim of epsilon {question.claim.epsilon:g}"
