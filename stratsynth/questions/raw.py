"""`Raw`: the rows themselves, for third-party code only. Its claim is recorded, and nothing is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from stratsynth.accounting.budget import PRICED, Currency, Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.noise import Entropy
from stratsynth.questions.admission import known
from stratsynth.questions.base import Program, Setting, Unkept, check_positive
from stratsynth.questions.reading import Exact, Wanted
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema


@known
@dataclass(frozen=True)
class Claim:
    """Guarantee that third-party code claims for itself."""

    by: str
    """Author of the claim: package and version."""
    epsilon: float
    delta: float
    counts_rows: bool
    """True if it takes the number of rows for public, as most synthesizers do. Its claim is then about exchanging one
    record for another, and does not cover a stratum, whose number of rows is private."""

    def check(self, neighbours: Neighbours, *, stratified: bool) -> None:
        """Raise Unsupported if the claim makes row counts public and is `stratified` or `neighbours` are add-remove."""
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


@known
@dataclass(frozen=True)
class Raw(Unkept):
    """All rows of a path as a pandas frame of codes, for code that keeps its own account."""

    reads: ClassVar[frozenset[str]] = frozenset({"frame"})
    claim: Claim

    def check(self, schema: Schema) -> None:
        """Raise MechanismError on claims without author, epsilon or delta; Unsupported if `schema` has weights."""
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
        """Return (`Charge`,) at `path`, claimed epsilon, any schema; Unsupported if not valid for `neighbours`."""
        self.claim.check(neighbours, stratified=bool(path))
        details = {"claimed_by": self.claim.by, "delta": self.claim.delta}
        unknown = dict.fromkeys(PRICED, 1.0)
        return (Charge(path, "raw", self.claim.epsilon, unknown, details, Currency.CLAIMED),)

    def wanted(self) -> Wanted:
        """Return a `Wanted`, which says that all rows are to be read, as a frame."""
        return Wanted(frame=True)

    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> pd.DataFrame | None:
        """Return `exact`'s rows, a pandas frame of codes, or None; Setting, `entropy` and `memory` are not used."""
        return exact.frame

    def unverified(self) -> str:
        """Return a phrase for the certificate: the author of the claim, and the epsilon that it claims."""
        return f"{self.claim.by}: its own claim of epsilon {self.claim.epsilon:g}"


def raw(claim: Claim) -> Program[pd.DataFrame]:
    """Ask for the exact rows, a frame of level numbers, under a claim: `frame = yield from raw(claim)`."""
    answer = yield Raw(claim)
    return cast("pd.DataFrame", answer)
