"""Common interface of models: what every mechanism returns, and the part for models that draw rows.

A release, its report, a plan and the study of its weights use these methods alone and know no kind of model. A method
that a model does not support is refused, and the refusal names those it supports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from stratsynth.errors import MechanismError, UsageError
from stratsynth.files.npz import State

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.models.mixture import Mixture
    from stratsynth.models.predictor import Predictor
    from stratsynth.models.rules import Moved
    from stratsynth.report.page import Section
    from stratsynth.schema import Schema
    from stratsynth.strata import Stratum, StratumPath
    from stratsynth.weights import Resolved

    MeasuredCounts = tuple[tuple[str, ...], NDArray[Any], float]
    """Columns of a measured table, its noisy counts, and their noise standard deviation."""

__all__ = ["Codes", "Model", "Returns", "State", "TableModel", "Where", "combine"]


class Returns(StrEnum):
    """Product of a release: what its model gives out."""

    ROWS = "rows"
    ESTIMATES = "estimates"
    PREDICTIONS = "predictions"
    TABLES = "tables"


_GIVES = {
    Returns.ROWS: ("draws rows", "draws no rows", "`sample`"),
    Returns.ESTIMATES: ("holds estimates", "holds no estimates", "`estimates()`, estimates.parquet"),
    Returns.PREDICTIONS: ("predicts", "does not predict", "`predict`"),
    Returns.TABLES: ("draws two linked tables", "draws no linked tables", "`sample_tables`"),
}
"""Product -> phrases of a refusal: that a release has it, that it has not, and how to get it."""

Codes = dict[str, "NDArray[np.integer[Any]]"]
"""Rows as level numbers: one array per column, indexing `schema.levels(column)`.

The arrays may have the smallest integer type that holds them: widen them before any arithmetic.
"""

Where = Mapping[str, frozenset[int]]
"""Condition on rows: column -> allowed level numbers; columns without an entry are free."""


class Model(ABC):
    """Result of a mechanism: stored, combined over strata, released, and shown to a reader through these methods.

    Every model declares `kind`, `returns`, `schema`, `state`, `from_state`, `combined`, and is registered by `kind`
    under the entry-point group `stratsynth.models`. `TableModel` draws rows, `Predictor` makes predictions; both define
    how strata are combined.
    """

    kind: ClassVar[str]
    """Name that a stored model's class is looked up by."""
    returns: ClassVar[Returns]
    """Product of a release of this model."""
    of_prior: ClassVar[bool] = False
    """True if the model is made of a prior's rows, which the certificate then has to name."""
    schema: Schema
    """Columns of the model, with their levels."""

    @abstractmethod
    def state(self) -> State:
        """Return a `State`: plain facts and arrays from which `from_state` makes an equal model."""

    @classmethod
    @abstractmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Return the model that a stored state describes.

        Args:
            schema: Schema of the stored model.
            state: Result of `state`, read from a file that may be damaged.

        Raises:
            ReleaseError: A state that `state` never returns.
        """

    @classmethod
    @abstractmethod
    def combined(cls, schema: Schema, parts: Mapping[Stratum, Any], weights: Resolved) -> Model:
        """Return one model of all records, from the strata's models and their weights.

        Args:
            schema: All columns, including those that define the strata.
            parts: Mapping from stratum to a model of the columns that vary in it. All return the same product.
            weights: `Resolved` shares of the strata in all records.
        """

    def rows_to_draw(self, asked: int | None, declared: int | None) -> int | None:
        """Return the number of synthetic rows that a release folder holds; None if it holds none.

        Args:
            asked: Number that the caller wants; None for the default.
            declared: Declared size of the table in records; None if unknown.

        Raises:
            UsageError: A number was asked for and the model draws no rows, or it draws rows and no number is known.
        """
        if asked is not None:
            raise UsageError(f"this release {_GIVES[self.returns][0]} and has no rows: leave rows out.")
        return None

    def product(self, rows: pa.Table | None) -> Mapping[str, pa.Table]:
        """Return the Arrow tables of a release folder, by file name without its ending; none by default.

        Args:
            rows: Synthetic rows, `rows_to_draw` of them; None if that is None.
        """
        return {}

    def table_model(self) -> TableModel:
        """Return this model if it draws rows; by default raise a UsageError with the release's use."""
        raise self._refused(Returns.ROWS)

    def estimates(self, level: float = 0.95) -> pd.DataFrame:
        """Return a frame of means with intervals of probability `level`; by default raise a UsageError."""
        raise self._refused(Returns.ESTIMATES)

    def linked_tables(
        self, n: int, rng: Generator, counted: MutableMapping[str, Any] | None = None, where: Where | None = None
    ) -> Mapping[str, pa.Table]:
        """Draw n parents and child rows by `rng`; return {name: Arrow table}, parents first; by default UsageError.

        What drawing had to give up is noted in the dict `counted`, as JSON values. Parents meet `where`, {column: set
        of codes}, of which this model serves what `linked_evidence` returns.
        """
        raise self._refused(Returns.TABLES)

    def linked_evidence(self, where: Where) -> Where:
        """Return the part of `where`, {column of parents: set of codes}, that `linked_tables` draws by; {} here.

        UsageError if the model gives no weight to such parents.
        """
        return {}

    def slot_model(self, slot: str) -> Model:
        """Return the model of the counted table called `slot`, of linked tables; by default this one."""
        return self

    def predictor(self) -> Predictor:
        """Return this model if it predicts; by default raise a UsageError with the release's use."""
        raise self._refused(Returns.PREDICTIONS)

    def mixture(self) -> Mixture:
        """Return this model if it mixes strata by weights that can be varied; by default raise a UsageError."""
        raise UsageError("weights: this release has no strata, so no result of it depends on weights.")

    def gaps(self) -> Sequence[Mapping[str, Any]]:
        """Return a list of dicts of JSON values, one a measured gap of decisions between groups; empty by default."""
        return ()

    def sections(self, named: Callable[[str], str]) -> Sequence[Section]:
        """Return Sections of a release's page that only this kind of model has; none by default.

        Args:
            named: Maps a group's label, empty for all records, to its name for readers.
        """
        return ()

    def foretell(self, path: StratumPath) -> str:
        """Return one line of a plan on the expected error in the group of this path; empty by default."""
        return ""

    def _refused(self, wanted: Returns) -> UsageError:
        """Return the UsageError that this model cannot give `wanted`, with what it gives and where."""
        gives, _, door = _GIVES[self.returns]
        both = self.returns == Returns.TABLES and wanted == Returns.ROWS
        return UsageError(f"this release {gives} and {'not one' if both else _GIVES[wanted][1]}: see {door}.")


class TableModel(Model):
    """Model that draws rows of its schema.

    Subclasses declare `mass` and `sample` too. Sampled rows may break structural rules: a release's caller redraws
    those that do, with `draw_allowed`.
    """

    returns: ClassVar[Returns] = Returns.ROWS

    @abstractmethod
    def mass(self, where: Where) -> float:
        """Return the probability, 0 to 1, that a row meets `where`, {column: set of level numbers}; 1 for {}."""

    @abstractmethod
    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Return n rows by `rng`, {column: array of codes}, that meet `where`, {column: set of codes}; None: any.

        The condition's mass is above 0.
        """

    @classmethod
    def combined(cls, schema: Schema, parts: Mapping[Stratum, Any], weights: Resolved) -> Model:
        """Return the mixture, in a schema, of the strata's models `parts`, of any kinds, by `Resolved` shares."""
        from stratsynth.models.mixture import Mixture

        return Mixture(schema, dict(parts), dict(weights.shares))

    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> TableModel:
        """Return the model of the rows whose columns have some levels; by default raise a MechanismError.

        Args:
            schema: Columns that vary among these rows, with the levels of the condition only.
            levels: Column of the condition -> list of its level numbers.
        """
        raise MechanismError(f"{self.kind}: this model does not say what it knows of a group.")

    def counted(self, n: int, rng: Generator, where: Where, moved: Moved) -> Codes:
        """Return n rows by `rng`, {column: array of codes}, that meet the condition `where`, {column: set of codes}.

        The numbers of rows that rules change are added to `moved`, a `Moved`.
        """
        return self.sample(n, rng, where)

    def redrawn(
        self, tables: Sequence[MeasuredCounts], rows: float, times: int, rng: Generator
    ) -> Sequence[TableModel]:
        """Return models as independent noise would have made them if this one, or its tables, were true.

        UsageError by default.

        Args:
            tables: Columns, noisy counts and noise standard deviation of every table that this model was fitted to.
            rows: Approximate number of rows counted in the tables.
            times: Number of models.
            rng: Source of the noise, which protects nobody: it is added to tables of the published model.
        """
        raise UsageError("samples: this model cannot be fitted again to other noise.")

    @classmethod
    def redrawn_mixed(
        cls, mixture: Mixture, tables: Sequence[MeasuredCounts], rows: float, times: int, rng: Generator
    ) -> Sequence[Mixture]:
        """Return mixtures as `redrawn` returns models, for one model split by groups; UsageError by default.

        The model of all records is fitted again and split again, so that groups share its noise as they did.

        Args:
            mixture: Models of the groups, all of this kind, with the public shares that mix them.
            tables: See `redrawn`; may contain columns that define the groups.
            rows: See `redrawn`; of all records.
            times: See `redrawn`.
            rng: See `redrawn`.
        """
        raise UsageError("samples: this model cannot be fitted again to other noise.")

    def oneway(self, column: str) -> NDArray[np.float64]:
        """Return an array of the probability of each level of a column, before rules redraw rows."""
        return np.array([self.mass({column: frozenset({code})}) for code in range(self.schema.size(column))])

    def rows_to_draw(self, asked: int | None, declared: int | None) -> int | None:
        """Return the number asked for, else the declared size; UsageError if both are None."""
        if asked is None and declared is None:
            raise UsageError("how many rows? Give rows=, or declare a size when opening the table.")
        return declared if asked is None else asked

    def product(self, rows: pa.Table | None) -> Mapping[str, pa.Table]:
        """Return {"synthetic": rows}, the tables of a release by name."""
        return {"synthetic": rows}

    def table_model(self) -> TableModel:
        """Return this model itself, as it draws rows."""
        return self


def combine(schema: Schema, parts: Mapping[Stratum, Model], weights: Resolved) -> Model:
    """Return one model of all records of a schema: `parts`, a mapping from stratum to model, by `Resolved` weights.

    Raises:
        MechanismError: A part that is no model, or models of different products.
    """
    for part in parts.values():
        if not isinstance(part, Model):
            raise MechanismError(f"{type(part).__name__} is no model that strata could be combined from.")
    kinds = {type(part): part.returns for part in parts.values()}
    if len(set(kinds.values())) != 1:
        raise MechanismError(f"models that return {' and '.join(sorted(set(kinds.values())))} cannot be combined.")
    return next(iter(kinds)).combined(schema, parts, weights)
