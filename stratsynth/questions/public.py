"""Rows without noise: `PublicRows`, the columns that the schema names public, and `Raw`, all rows for third-party code.

`Raw` records a claim, and nothing is checked. `PublicRows` is allowed if the budget's neighbours are `attribute`, and
nowhere else. Such neighbours are two tables of the same records in the same order, equal in every public column, so the
answer is the same on both: it costs nothing and needs no noise, and the number of rows is public with it. That rests on
three conditions:

- Which rows there are must not depend on a protected value: `check` refuses a schema in which one could leave its row
  out (`outside`, `missing`). A public value may.
- Inside a stratum the rows are public only if the columns that define it are: `stratsynth.strata.within` takes the
  flag from all columns of other strata.
- The order of the answer is that of the rows; a split keeps it within each of its strata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from stratsynth.accounting.budget import PRICED, Budget, Currency, Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.noise import Entropy
from stratsynth.questions.admission import known
from stratsynth.questions.base import (
    Answer,
    Kept,
    Program,
    Question,
    Seen,
    Setting,
    Unkept,
    check_clique,
    check_positive,
    read_only,
)
from stratsynth.questions.reading import Exact, PublicColumns, Wanted
from stratsynth.schema import Numeric
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator

    from stratsynth.schema import Schema

MOST_SIMULATED = 2**15
"""Largest number of rows that a plan makes up."""
FAR = Fraction(10**9)
"""Cost of two tables that differ in a public column: more than any budget."""


@known
@dataclass(frozen=True)
class PublicRows(Question):
    """Public columns of all rows of a path."""

    reads: ClassVar[frozenset[str]] = frozenset({"columns"})
    columns: tuple[str, ...]

    def check(self, schema: Schema) -> None:
        """Raise Unsupported if columns are not public, or a protected value in `schema` may leave its row out."""
        check_clique("public rows", self.columns, schema)
        for name in self.columns:
            if not schema.column(name).public:
                raise Unsupported(
                    f"public rows: column {name} is not public here. Declare public = true in the schema, if it needs "
                    "no protection; inside strata of a column that is not public, none is."
                )
        for name, column in schema.columns.items():
            if not column.public and not column.admits_all:
                key = "missing = true" if isinstance(column, Numeric) else 'outside = "missing", or one of its levels'
                raise Unsupported(
                    f"public rows: a value of {name} that the schema does not know leaves its row out, and the public "
                    f"rows would show it. Declare {key}."
                )

    def permit(self, budget: Budget) -> None:
        """Raise Unsupported unless the budget is for `attribute` neighbours and names all these columns public."""
        if budget.neighbours != Neighbours.ATTRIBUTE or not set(self.columns) <= set(budget.public):
            raise Unsupported(
                'public rows are handed out where the budget has neighbours = "attribute" and the schema names the '
                "columns public; this budget protects them."
            )

    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """Return no `Charge`, () for any schema, path, neighbours: neighbouring tables agree here, so it is free."""
        return ()

    def wanted(self) -> Wanted:
        """Return a `Wanted`, which names the columns of `columns`, to be read in all rows."""
        return Wanted(columns=self.columns)

    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> PublicColumns:
        """Return `exact`'s `PublicColumns`, read-only; no Setting, entropy, memory; MechanismError if other columns."""
        if exact.columns is None or set(exact.columns.codes) != set(self.columns):
            raise MechanismError("public rows: other columns were read than were asked for.")
        read_only((*exact.columns.codes.values(), *exact.columns.numbers.values()))
        return exact.columns

    def tv_error(self, at: Setting) -> float:
        """Return 0.0, `at` any Setting: total variation between sampled and priced noise; there is no noise."""
        return 0.0

    def simulate(self, at: Setting, path: StratumPath, rows: float, rng: Generator) -> tuple[PublicColumns, Seen]:
        """Return (`PublicColumns` of about `rows` rows at a Setting, drawn evenly by `rng`; a `Seen` at `path`)."""
        size, schema = min(max(round(rows), 1), MOST_SIMULATED), at.schema
        codes = {name: rng.integers(schema.size(name), size=size) for name in self.columns}
        numbers = {}
        for name in self.columns:
            column = schema.column(name)
            if isinstance(column, Numeric):
                codes[name] = rng.integers(len(column.extents), size=size)
                numbers[name] = np.array([low for low, _ in column.extents], np.float64)[codes[name]]
        return PublicColumns(size, codes, numbers), Seen(path, "public rows")

    @classmethod
    def keep(cls, answer: Answer) -> Kept:
        """Return the `Kept` parts of the answer: number of rows and column names as facts, and all its arrays."""
        parts = [answer.codes, answer.numbers]
        return Kept(
            {"size": answer.size, "codes": list(answer.codes), "numbers": list(answer.numbers)},
            [array for part in parts for array in part.values()],
        )

    @classmethod
    def recall(cls, kept: Kept) -> PublicColumns:
        """Return the `PublicColumns` from the `Kept` parts that `keep` made."""
        names = kept.facts["codes"]
        codes = dict(zip(names, kept.arrays, strict=False))
        return PublicColumns(
            kept.facts["size"], codes, dict(zip(kept.facts["numbers"], kept.arrays[len(names) :], strict=True))
        )

    @classmethod
    def shape(cls, answer: Answer) -> Any:
        """Return (number of rows, every value to the last bit) of an answer: all is equal on neighbouring tables."""
        return answer.size, _plain(answer)

    def cost(self, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """Return Fraction 0 if two `Exact` have equal public rows, in order; else FAR; any Setting and answer."""
        return Fraction(0) if _plain(here.columns) == _plain(there.columns) else FAR


def public_rows(columns: Sequence[str]) -> Program[PublicColumns]:
    """Ask for `PublicColumns`, exact values of public columns in all rows: `rows = yield from public_rows(columns)`."""
    answer = yield PublicRows(tuple(columns))
    return cast("PublicColumns", answer)


def _plain(columns: PublicColumns | None) -> Any:
    """Return a list, (`codes` or `numbers`, column, dtype, bytes) of each array of `PublicColumns`; None for None."""
    if columns is None:
        return None
    parts = (("codes", columns.codes), ("numbers", columns.numbers))
    return [(what, name, array.dtype.str, array.tobytes()) for what, part in parts for name, array in part.items()]


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
