"""Third-party synthesizers behind the interface of mechanisms: their claim is recorded, and stamped unverified.

The synthesizer is a function from level numbers to level numbers; it keeps its own privacy account, which this package
can neither check nor resume. The rows it draws at fitting are the release's model.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.errors import FewPeopleWarning, MechanismError, ReleaseError, Unsupported, UsageError
from stratsynth.mechanisms import Mechanism, Public
from stratsynth.models import Codes, Returns, State, TableModel, Where
from stratsynth.questions import Claim, Program, Question, Raw, raw
from stratsynth.schema.codec import decode, to_pandas
from stratsynth.schema.encoding import encode
from stratsynth.settings import at

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.schema import Schema

Synthesizer = Callable[["pd.DataFrame", dict[str, int], float, float, int], "pd.DataFrame"]
"""Function (level numbers, number of levels by column, epsilon, delta, rows to draw) -> level numbers of as many
rows."""


@dataclass(frozen=True)
class External(Mechanism["Drawn"]):
    """A function `synthesizer` as a mechanism, which is given the budget's epsilon and delta."""

    name: ClassVar[str] = "external"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Raw})
    returns: ClassVar[Returns] = Returns.ROWS
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    synthesizer: Synthesizer
    """Third-party function: a `Synthesizer`, or with `values` the function of `External.plain`."""
    by: str = ""
    """Author of the claim, such as a package and its version, for the certificate."""
    counts_rows: bool = True
    """True if the synthesizer treats the number of rows as public; False only if its documentation says otherwise."""
    rows: int | None = at(None, least=1)
    """Number of rows that are drawn at fitting; the declared size by default."""
    values: bool = False
    """True if the function maps a frame of values to another, and claims no privacy: see `External.plain`."""

    @classmethod
    def plain(cls, function: Callable[..., pd.DataFrame], *, rows: int | None = None) -> External:
        """Return an `External` of a function from a frame to a frame, for research on rows declared public.

        The function gets the rows as a release would show them: the schema's columns, order and types, numbers drawn
        within their bins. If its parameters include `epsilon`, `delta` or `rows` (the number of rows of a release), it
        gets these too. It returns a frame with equal columns and at least one row; values that the schema does not know
        are treated as the schema says. No privacy is claimed, so tables not declared public are refused.
        """
        by = f"{getattr(function, '__name__', 'a function')}, which claims nothing"
        return cls(function, by, counts_rows=False, rows=rows, values=True)

    def __post_init__(self) -> None:
        """Raise UsageError on a synthesizer that is no named function, a claim without `by`, settings out of range."""
        super().__post_init__()
        if not callable(self.synthesizer) or not hasattr(self.synthesizer, "__qualname__"):
            raise UsageError("external: the synthesizer must be a function, by whose name the ledger knows the fit.")
        if not isinstance(self.by, str) or not self.by:
            raise UsageError(
                "external: say by= whom the claim is, such as a package and its version. A function that claims no "
                "privacy, for public rows, is External.plain(function)."
            )

    @property
    def takes_row_count(self) -> bool:
        """True if the number of rows counts as public, by the setting `counts_rows`."""
        return self.counts_rows

    @property
    def public_rows_only(self) -> bool:
        """True for a function made by `plain`, which claims no privacy; False for a synthesizer."""
        return self.values

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the budget's epsilon as a claimed allotment, unverified; UsageError without `rows` or a public size.

        A schema without columns or with row weights, a claim that takes the row count as public under add-remove, and
        units of several rows are refused too.
        """
        if self.rows is None and public.size is None:
            raise UsageError("external: how many rows to draw? Give rows=, or declare a size.")
        if not public.schema.names:
            raise Unsupported("external: there are no columns left to synthesize in a stratum.")
        claim = self._claim(budget)
        Raw(claim).check(public.schema)
        claim.check(budget.neighbours, stratified=False)
        return budget.claimed()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Drawn]:
        """Program on public facts that gives the synthesizer all rows and `rng`, for the allotment; returns a `Drawn`.

        MechanismError if it fails, or if its result lacks columns or has columns of unequal lengths.
        """
        schema, budget = public.schema, replace(allot.promise.plain, epsilon=allot.amount)
        frame = yield from raw(self._claim(budget))
        number = self.rows or max(1, public.size or 0)  # a stratum without people still needs a row to draw from
        try:
            drawn = self._called(schema, frame, number, budget, rng)
        except Exception:  # noqa: BLE001 - whatever it is: even its class may depend on a private row
            raise MechanismError(
                f"{self.by} failed; the charge stands. What went wrong may tell of a private row and is not shown: try "
                "it on made-up rows."
            ) from None
        try:
            codes = {name: np.asarray(drawn[name]) for name in schema.names}
        except (LookupError, TypeError, ValueError):
            raise MechanismError(f"{self.by} must return a frame with every column.") from None
        model = Drawn.of(schema, codes)
        if self.values and not len(codes[schema.names[0]]):
            raise MechanismError("the function returned no row that the schema knows.")
        if self.values and 2 * len(codes[schema.names[0]]) < number:
            warnings.warn(
                f"{self.synthesizer.__name__} returned {len(codes[schema.names[0]]):,} rows that the schema knows, "
                f"where {number:,} were wanted: a release draws from these, each again and again.",
                FewPeopleWarning,
                stacklevel=2,
            )
        if not self.values and len(codes[schema.names[0]]) != number:
            raise MechanismError(f"{self.by} returned another number of rows than the {number} asked for.")
        return model

    def _called(self, schema: Schema, frame: pd.DataFrame, rows: int, budget: Budget, rng: Generator) -> Any:
        """Return {column: array of level numbers} of `rows` rows, made by the function from `frame`, level numbers too.

        It gets the schema's sizes, or values drawn by `rng`, and the budget's epsilon and delta.
        """
        if self.values:
            facts = {"epsilon": budget.epsilon, "delta": budget.delta, "rows": rows}
            return plainly(self.synthesizer, schema, frame, facts, rng)
        sizes = {name: schema.size(name) for name in schema.names}
        return self.synthesizer(frame, sizes, budget.epsilon, budget.delta, rows)

    def _claim(self, budget: Budget) -> Claim:
        return Claim(self.by, budget.epsilon, budget.delta, self.counts_rows)


def plainly(
    function: Callable[..., Any], schema: Schema, frame: pd.DataFrame, facts: dict[str, float], rng: Generator
) -> dict[str, NDArray[Any]]:
    """Call `function` on the values of `frame`, level numbers of a schema; return its rows, {column: level numbers}.

    These are arrays. Values are drawn by `rng`; it gets those keywords of `facts` that it takes. TypeError for a result
    that is no frame, or lacks a column.
    """
    import pyarrow as pa

    parameters = inspect.signature(function).parameters
    given = to_pandas(decode(schema, {name: frame[name].to_numpy() for name in schema.names}, rng))
    made = function(given, **{name: fact for name, fact in facts.items() if name in parameters})
    lacking = [name for name in schema.names if name not in getattr(made, "columns", ())]
    if lacking:
        raise TypeError(f"the function returned {type(made).__name__} without the column {lacking[0]}")
    coded = encode(schema, pa.Table.from_pandas(made[list(schema.names)], preserve_index=False))
    return {name: codes.astype(np.int64) for name, codes in coded.codes.items()}


@dataclass(frozen=True)
class Drawn(TableModel):
    """A table that was drawn once; more rows are drawn from it with replacement."""

    kind: ClassVar[str] = "drawn"
    schema: Schema
    codes: dict[str, NDArray[Any]] = field(repr=False)

    @classmethod
    def of(cls, schema: Schema, codes: dict[str, NDArray[Any]]) -> Drawn:
        """Return a `Drawn` that draws from the rows `codes`, {column of the schema: array of level numbers}.

        MechanismError for other columns, columns of unequal lengths, and numbers that are no levels.
        """
        clean: dict[str, NDArray[Any]] = {}
        for name in schema.names:
            column = codes[name]
            if column.ndim != 1 or column.dtype.kind not in "iu" or len(column) != len(codes[schema.names[0]]):
                raise MechanismError(f"the synthesizer's column {name} is not one level number a row.")
            if column.size and not 0 <= column.min() <= column.max() < schema.size(name):
                raise MechanismError(f"the synthesizer's column {name} holds numbers that are no levels.")
            clean[name] = column.astype(np.int64)
        return cls(schema, clean)

    def _match(self, where: Where) -> NDArray[np.bool_]:
        """Return a mask of the table's rows that meet `where`, {column: set of level numbers allowed}."""
        size = len(next(iter(self.codes.values()), ()))
        kept = np.ones(size, dtype=bool)
        for column, allowed in where.items():
            kept &= np.isin(self.codes[column], sorted(allowed))
        return kept

    def mass(self, where: Where) -> float:
        """Return the fraction of drawn rows that meet `where`, {column: set of level numbers allowed}.

        0 without rows.
        """
        kept = self._match(where)
        return float(kept.mean()) if kept.size else 0.0

    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Return `n` of the table's rows, {column: array of level numbers}, drawn by `rng`, that meet `where`.

        `where` maps columns to sets of level numbers; None is no condition. Drawn without replacement if there are as
        many; MechanismError if no row meets the condition.
        """
        rows = np.flatnonzero(self._match(where or {}))
        if n and not rows.size:
            raise MechanismError("no row can meet this condition: the drawn table has none.")
        picked = rng.permutation(rows)[:n] if n <= rows.size else rng.choice(rows, size=n)
        return {column: codes[picked] for column, codes in self.codes.items()}

    def state(self) -> State:
        """Return the model for a file, a `State`: an array of level numbers for each column, no facts."""
        return State({}, dict(self.codes))

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Drawn:
        """Return the `Drawn` model, in a schema, of a stored `State`, whose arrays are level numbers by column.

        ReleaseError for a damaged table.
        """
        try:
            return cls.of(schema, {name: np.asarray(state.arrays[name]) for name in schema.names})
        except (MechanismError, LookupError) as error:
            raise ReleaseError(f"model: the drawn table is damaged ({type(error).__name__}).") from None
