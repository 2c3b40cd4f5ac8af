"""The interface of models: what every mechanism returns, and what those add that draw rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from stratsynth.files.npz import State

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.strata import Stratum
    from stratsynth.weights import Resolved

__all__ = ["Codes", "Model", "Returns", "State", "TableModel", "Where"]


class Returns(StrEnum):
    """What a release is for: what a mechanism returns, and its model gives out."""

    ROWS = "rows"
    ESTIMATES = "estimates"
    PREDICTIONS = "predictions"


Codes = dict[str, "NDArray[np.integer[Any]]"]
"""Rows as level numbers: one array a column, indexing `schema.levels(column)`."""

Where = Mapping[str, frozenset[int]]
"""A condition on rows: for some columns, the level numbers allowed."""


class Model(ABC):
    """What a mechanism returns: how it is stored, combined over strata, and what it gives out.

    Registered by `kind` under the entry-point group `stratsynth.models`.
    """

    kind: ClassVar[str]
    """The name its stored form is found by."""
    returns: ClassVar[Returns]
    """What a release of it is for."""
    schema: Schema
    """The columns that it knows."""

    @abstractmethod
    def state(self) -> State:
        """What `from_state` needs to make an equal model."""

    @classmethod
    @abstractmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """The model that gave this state; raises ReleaseError when it is damaged."""

    @classmethod
    @abstractmethod
    def combined(cls, schema: Schema, parts: Mapping[Stratum, Any], weights: Resolved) -> Model:
        """The strata's models, which all return the same, as one of everybody."""


class TableModel(Model):
    """Draws rows of its schema."""

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

    def oneway(self, column: str) -> NDArray[np.float64]:
        """The probability of each level of a column, before structural rules have rows drawn again."""
        return np.array([self.mass({column: frozenset({code})}) for code in range(self.schema.size(column))])
