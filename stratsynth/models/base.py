"""The one interface of models: what every mechanism returns, and what those add that draw rows.

A release, its report, a plan and the study of its weights use these methods alone and know of no kind of model. What a
model does not give out it refuses, and the refusal names what it does give out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
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

__all__ = ["Codes", "Model", "Returns", "State", "TableModel", "Where", "combine"]


class Returns(StrEnum):
    """What a release is for: what a mechanism returns, and its model gives out."""

    ROWS = "rows"
    ESTIMATES = "estimates"
    PREDICTIONS = "predictions"


_GIVES = {
    Returns.ROWS: ("draws rows", "draws no rows", "`sample`"),
    Returns.ESTIMATES: ("holds estimates", "holds no estimates", "`estimates()`, estimates.parquet"),
    Returns.PREDICTIONS: ("predicts", "does not predict", "`predict`"),
}
"""How a refusal says that a release gives something out, that it does not, and how to get at it."""

Codes = dict[str, "NDArray[np.integer[Any]]"]
"""Rows as level numbers: one array a column, indexing `schema.levels(column)`.

They may be of the smallest type that holds them: widen them before any arithmetic."""

Where = Mapping[str, frozenset[int]]
"""A condition on rows: for some columns, the level numbers allowed."""


class Model(ABC):
    """What a mechanism returns: how it is stored, combined over strata, released, and shown to a reader.

    To be declared by every model: `kind`, `returns`, `schema`, `state`, `from_state`, `combined`. Registered by `kind`
    under the entry-point group `stratsynth.models`. Rows are drawn by a `TableModel`, predictions made by a
    `Predictor`; both say how they are combined.
    """

    kind: ClassVar[str]
    """The name its stored form is found by."""
    returns: ClassVar[Returns]
    """What a release of it is for."""
    of_prior: ClassVar[bool] = False
    """Whether it is made of the rows of a prior, which the certificate then has to name."""
    schema: Schema
    """The columns that it knows."""

    @abstractmethod
    def state(self) -> State:
        """What `from_state` needs to make an equal model: plain facts, and arrays."""

    @classmethod
    @abstractmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """The model that gave this state.

        Args:
            schema: The schema that the model had.
            state: What `state` returned, read from a file that may be damaged.

        Raises:
            ReleaseError: The state is not one that `state` returns.
        """

    @classmethod
    @abstractmethod
    def combined(cls, schema: Schema, parts: Mapping[Stratum, Any], weights: Resolved) -> Model:
        """The strata's models as one of everybody.

        Args:
            schema: All columns, those that define the strata among them.
            parts: Each stratum's model, of the columns that vary in it. All return the same.
            weights: The strata's shares of all records.
        """

    def rows_to_draw(self, asked: int | None, declared: int | None) -> int | None:
        """How many synthetic rows a release folder holds; None where it holds none.

        Args:
            asked: The number that the caller wants; None when nothing was said.
            declared: The declared size of the table; None when unknown.

        Raises:
            UsageError: A number was asked for and there are no rows, or there are rows and no number is known.
        """
        if asked is not None:
            raise UsageError(f"this release {_GIVES[self.returns][0]} and has no rows: leave rows out.")
        return None

    def product(self, rows: pa.Table | None) -> Mapping[str, pa.Table]:
        """The tables of a release folder, by the names of their files without ending.

        Args:
            rows: Synthetic rows, as many as `rows_to_draw` says; None where that is None.
        """
        return {}

    def table_model(self) -> TableModel:
        """This model, if it draws rows; a refusal by default."""
        raise self._refused(Returns.ROWS)

    def estimates(self, level: float = 0.95) -> pd.DataFrame:
        """The estimates with intervals that hold with probability `level`; a refusal by default."""
        raise self._refused(Returns.ESTIMATES)

    def predictor(self) -> Predictor:
        """This model, if it predicts; a refusal by default."""
        raise self._refused(Returns.PREDICTIONS)

    def mixture(self) -> Mixture:
        """This model, if it mixes strata by weights that can be varied; a refusal by default."""
        raise UsageError("weights: this release has no strata, so no result of it depends on weights.")

    def sections(self, named: Callable[[str], str]) -> Sequence[Section]:
        """The chapters that a release's report has of this model alone, beside those that every report has.

        Args:
            named: Gives a group's label, empty for everybody, its name for readers.
        """
        return ()

    def foretell(self, path: StratumPath) -> str:
        """One line for a plan: the error to expect in a group, of a model fitted to simulated answers; or nothing."""
        return ""

    def _refused(self, wanted: Returns) -> UsageError:
        gives, _, door = _GIVES[self.returns]
        return UsageError(f"this release {gives} and {_GIVES[wanted][1]}: see {door}.")


class TableModel(Model):
    """Draws rows of its schema.

    To be declared beside what every model declares: `mass` and `sample`. Rows may break structural rules: whoever
    draws for a release replaces those that do.
    """

    returns: ClassVar[Returns] = Returns.ROWS

    @abstractmethod
    def mass(self, where: Where) -> float:
        """The probability that a row meets a condition; 1 for an empty one."""

    @abstractmethod
    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Exactly n rows that meet the condition, whose mass must be positive."""

    @classmethod
    def combined(cls, schema: Schema, parts: Mapping[Stratum, Any], weights: Resolved) -> Model:
        """A mixture: whatever draws rows can be mixed with whatever else does."""
        from stratsynth.models.mixture import Mixture

        return Mixture(schema, dict(parts), dict(weights.shares))

    def given(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> TableModel:
        """What it says of the rows whose columns have some levels; a refusal by default.

        Args:
            schema: The columns that vary among these rows, merged ones with the merged levels alone.
            levels: For each column of the condition, the numbers of its levels.
        """
        raise MechanismError(f"{self.kind}: this model does not say what it knows of a group.")

    def counted(self, n: int, rng: Generator, where: Where, moved: Moved) -> Codes:
        """As `sample`; a model made of strata counts in `moved` what the rules moved in each."""
        return self.sample(n, rng, where)

    def redrawn(
        self, tables: Sequence[tuple[tuple[str, ...], float]], rows: float, times: int, rng: Generator
    ) -> Sequence[TableModel]:
        """Models as other noise would have made them, if this one were the truth; a refusal by default.

        Args:
            tables: The columns and the sigma of every table that this model was fitted to.
            rows: About how many rows were counted in them.
            times: How many models.
            rng: Of the noise, which protects nobody: it is drawn around what is published.
        """
        raise UsageError("samples: this model cannot be fitted again to other noise.")

    @classmethod
    def redrawn_mixed(
        cls, mixture: Mixture, tables: Sequence[tuple[tuple[str, ...], float]], rows: float, times: int, rng: Generator
    ) -> Sequence[Mixture]:
        """As `redrawn`, of one model of everybody that was taken apart by groups; a refusal by default.

        Everybody's model is fitted again and taken apart again, so that noise is common to all groups as it was.

        Args:
            mixture: The groups' models, all of this kind, and the public shares they are mixed by.
            tables: As for `redrawn`; the columns of the groups may be among theirs.
            rows: As for `redrawn`, of everybody.
            times: As for `redrawn`.
            rng: As for `redrawn`.
        """
        raise UsageError("samples: this model cannot be fitted again to other noise.")

    def oneway(self, column: str) -> NDArray[np.float64]:
        """The probability of each level of a column, before structural rules have rows drawn again."""
        return np.array([self.mass({column: frozenset({code})}) for code in range(self.schema.size(column))])

    def rows_to_draw(self, asked: int | None, declared: int | None) -> int | None:
        """The number asked for, else the declared size."""
        if asked is None and declared is None:
            raise UsageError("how many rows? Give rows=, or declare a size when opening the table.")
        return declared if asked is None else asked

    def product(self, rows: pa.Table | None) -> Mapping[str, pa.Table]:
        """The synthetic rows."""
        return {"synthetic": rows}

    def table_model(self) -> TableModel:
        """Itself."""
        return self


def combine(schema: Schema, parts: Mapping[Stratum, Model], weights: Resolved) -> Model:
    """The strata's models as one of everybody, by their weights.

    Raises:
        MechanismError: What is no model, and models that return different things.
    """
    for part in parts.values():
        if not isinstance(part, Model):
            raise MechanismError(f"{type(part).__name__} is no model that strata could be combined from.")
    kinds = {type(part): part.returns for part in parts.values()}
    if len(set(kinds.values())) != 1:
        raise MechanismError(f"models that return {' and '.join(sorted(set(kinds.values())))} cannot be combined.")
    return next(iter(kinds)).combined(schema, parts, weights)
