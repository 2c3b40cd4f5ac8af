"""The interface of a table model, and its stored form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

from stratsynth.files.npz import State

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

__all__ = ["Codes", "State", "TableModel", "Where"]

Codes = dict[str, "NDArray[np.integer[Any]]"]
"""Rows as level numbers: one array a column, indexing `schema.levels(column)`."""

Where = Mapping[str, frozenset[int]]
"""A condition on rows: for some columns, the level numbers allowed."""


@runtime_checkable
class TableModel(Protocol):
    """Draws rows of a schema. Registered by `kind` under the entry-point group `stratsynth.models`."""

    kind: ClassVar[str]
    """The name its stored form is found by."""
    schema: Schema
    """The columns it draws."""

    def mass(self, where: Where) -> float:
        """The probability that a row meets a condition; 1 for an empty one."""

    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Exactly n rows that meet the condition, whose mass must be positive."""

    def state(self) -> State:
        """What `from_state` needs to make an equal model."""

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """The model that gave this state; raises ReleaseError when it is damaged."""
