"""Fitted mixture of products as a `TableModel`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine.drawing import Draws
from stratsynth.adapters.gem.layout import LogitBlocks, Reals, marginals
from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.models import Codes, State, TableModel, Where
from stratsynth.models.mixture import allot
from stratsynth.questions import Clique, NoisyTable
from stratsynth.weights.simplex import nearest

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.schema import Schema


@dataclass(frozen=True, eq=False)
class ProductMixture(TableModel):
    """Distribution of rows: a weighted mixture of components, within each of which columns are independent."""

    kind: ClassVar[str] = "product_mixture"
    schema: Schema
    weights: NDArray[np.float64]
    """Weights of the components; they add up to 1."""
    tables: Mapping[str, NDArray[np.float64]]
    """Probabilities of each column's levels: components x levels."""
    total: float = 1.0
    """Number of records that the noisy tables imply, or the public one; probabilities do not depend on it."""

    @classmethod
    def of(cls, schema: Schema, layout: LogitBlocks, odds: Reals, total: float) -> ProductMixture:
        """Return a `ProductMixture` in a schema, for `total` records, of equal weights, by the array `odds`.

        That is levels x components; the levels are in the order of the `LogitBlocks`.
        """
        tables = {}
        for name in schema.names:
            table = np.maximum(odds[layout.block[name]].T.astype(np.float64), 0)
            tables[name] = np.ascontiguousarray(table / table.sum(axis=1, keepdims=True))
        number = odds.shape[1]
        return cls(schema, np.full(number, 1 / number), tables, total)

    @classmethod
    def independent(cls, schema: Schema, ones: Sequence[NoisyTable], total: float) -> ProductMixture:
        """Return a `ProductMixture` of one component for `total` records, by a schema's one-column noisy tables `ones`.

        A column's deviation from uniform is shrunk by the share of it that noise explains, as a Wiener filter does, so
        that a small stratum is not drawn from the levels that noise favours.
        """
        tables = {}
        for name in schema.names:
            mine = [table for table in ones if table.clique == (name,)]
            # inverse-variance mean of the column's tables
            precision, size = sum(1 / table.sigma**2 for table in mine), schema.size(name)
            mean = sum((table.values / table.sigma**2 for table in mine), np.zeros(size)) / precision
            uneven = mean - mean.mean()
            seen = float((uneven**2).sum())
            uneven *= max(0.0, 1 - (size - 1) / precision / seen) if seen else 0.0
            odds = nearest(1 / size + uneven / total, 1)
            tables[name] = (odds / odds.sum())[None, :]
        return cls(schema, np.ones(1), tables, total)

    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> ProductMixture:
        """Return the `ProductMixture` with allowed levels alone, in the columns of `schema`, which has no others.

        `levels` maps columns to lists of the level numbers allowed; a column that it lacks keeps all. If the condition
        has probability 0, components keep their weights.
        """
        weights = self._weighed({column: frozenset(some) for column, some in levels.items()})
        weights = weights / weights.sum() if weights.sum() > 0 else self.weights
        tables = {}
        for name in schema.names:
            table = self.tables[name][:, list(levels.get(name, range(schema.size(name))))]
            mass = table.sum(axis=1, keepdims=True)
            tables[name] = np.divide(table, mass, out=np.full_like(table, 1 / table.shape[1]), where=mass > 0)
        return ProductMixture(schema, weights, tables, self.total)

    @cached_property
    def _layout(self) -> LogitBlocks:
        return LogitBlocks(tuple((name, self.schema.size(name)) for name in self.schema.names))

    @cached_property
    def _odds(self) -> NDArray[np.float64]:
        """Array of the probabilities of all columns' levels, one column after another: levels x components."""
        return np.ascontiguousarray(np.concatenate([self.tables[name] for name in self.schema.names], axis=1).T)

    def marginal(self, columns: Clique) -> Reals:
        """Return the array of the probabilities of the cells of `columns`, axes in that order."""
        return self.marginals([columns])[0]

    def oneway(self, column: str) -> NDArray[np.float64]:
        """Return the probabilities of one column's levels, an array that adds up to 1."""
        return np.asarray(self.marginal((column,)), np.float64)

    def marginals(self, cliques: Sequence[Clique]) -> list[Reals]:
        """Return a list of the cliques' arrays of probabilities, axes in a clique's order.

        Adjacent cliques that differ in the last column share work.
        """
        return marginals(self._layout, self._odds, self.weights, cliques)

    def _weighed(self, where: Where) -> NDArray[np.float64]:
        """Return an array, one a component: its weight times the probability of `where` in it.

        `where` maps columns to sets of level numbers allowed.
        """
        weights = self.weights.copy()
        for column, allowed in where.items():
            weights *= self.tables[column][:, sorted(allowed)].sum(axis=1)
        return weights

    def mass(self, where: Where) -> float:
        """Return the probability, 0 to 1, of `where`, {column: set of level numbers allowed}; 1 for none."""
        return min(1.0, float(self._weighed(where).sum())) if where else 1.0

    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Return `n` rows drawn by `rng`, {column: array of level numbers}, that meet `where`.

        `where` maps columns to sets of level numbers; None is no condition. MechanismError if it has mass 0.
        """
        condition = where or {}
        weights = self._weighed(condition)
        if n and not weights.sum() > 0:
            raise MechanismError("no row can meet this condition: its mass under the model is 0.")
        # components by randomised rounding of their weights, then columns independently
        numbers = allot(n, weights, rng) if n else np.zeros(weights.size, dtype=np.int64)
        component = np.repeat(np.arange(weights.size), numbers)
        rows: Codes = {}
        draws = Draws(n, rng)
        for column in self.schema.names:
            table = self.tables[column]
            if column in condition:
                allowed = np.zeros(table.shape[1])
                allowed[sorted(condition[column])] = 1
                table = table * allowed
            rows[column] = draws.draw(table, component)
        return rows

    def state(self) -> State:
        """Return the model for a file, a `State`: arrays (weights, a table for each column) and the fact `total`.

        The arrays' names are "weights" and "column " before a column's name.
        """
        arrays: dict[str, NDArray[Any]] = {f"column {name}": table for name, table in self.tables.items()}
        return State({"total": self.total}, {"weights": self.weights, **arrays})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> ProductMixture:
        """Return the `ProductMixture` over the schema of a stored `State`.

        ReleaseError for arrays or a total that are unsound.
        """
        weights = np.asarray(state.arrays["weights"])
        if not _distributions(weights[None, :], (1, weights.size)):
            raise ReleaseError("model: the stored weights are damaged.")
        tables = {}
        for column in schema.names:
            tables[column] = np.asarray(state.arrays[f"column {column}"])
            if not _distributions(tables[column], (weights.size, schema.size(column))):
                raise ReleaseError(f"model: the stored distributions of {column} are damaged.")
        total = float(state.facts["total"])
        if not 0 <= total < math.inf:
            raise ReleaseError("model: the stored number of records is damaged.")
        return cls(schema, weights, tables, total)


def _distributions(lines: NDArray[Any], shape: tuple[int, ...]) -> bool:
    """Return True if the array `lines` has this shape, in doubles, and each line adds up to 1; False if empty."""
    if lines.dtype != np.float64 or lines.shape != shape or not lines.size:
        return False
    return bool((lines >= 0).all() and (lines <= 1).all() and (np.abs(lines.sum(axis=1) - 1) < 1e-9).all())
