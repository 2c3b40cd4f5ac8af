"""Weighted rows of a prior and of a mechanism's own model, as a table model: rows as often as their weights say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.adapters.tilted.blocks import counted
from stratsynth.adapters.tilted.rounding import rounded
from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.models import Codes, State, TableModel, Where

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.questions import Clique
    from stratsynth.report.page import Section
    from stratsynth.schema import Schema


@dataclass(frozen=True, eq=False)
class TiltedRows(TableModel):
    """A distribution on the rows of a prior, and on rows drawn from the mechanism's own model."""

    kind: ClassVar[str] = "tilted_rows"
    of_prior: ClassVar[bool] = True
    schema: Schema
    codes: Mapping[str, NDArray[np.integer[Any]]]
    """Level number of each row, by column. A prior is public, and a mechanism's own model is made of paid answers, so
    these rows may be stored."""
    weights: NDArray[np.float64]
    """Weight of each row; they add up to 1."""
    total: float = 1.0
    """Number of records that the noisy tables imply, or the public one."""
    off: Mapping[str, float] | None = None
    """Total variation distance, by column, between the prior's shares and the model's."""
    made: float = 0.0
    """Total weight of the rows that are not the prior's."""

    def marginals(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """Return a list of arrays, one a clique: probabilities of its cells, axes in its order.

        All share the work.
        """
        return counted(self.codes, {name: self.schema.size(name) for name in self.schema.names}, self.weights, cliques)

    def marginal(self, columns: Clique) -> NDArray[np.float64]:
        """Return an array, the probabilities of the cells of the table of `columns`, axes in that order."""
        return self.marginals([columns])[0]

    def oneway(self, column: str) -> NDArray[np.float64]:
        """Return the probabilities of one column's levels, an array that adds up to 1."""
        return self.marginal((column,))

    def mass(self, where: Where) -> float:
        """Return the total weight, 0 to 1, of the rows that meet `where`: column -> level numbers allowed."""
        return min(1.0, float(self._met(where).sum()))

    def _met(self, where: Where) -> NDArray[np.float64]:
        """Return an array of the rows' weights, 0 for those that do not meet `where`: column -> level numbers."""
        weights = self.weights
        for column, allowed in where.items():
            inside = np.zeros(self.schema.size(column), dtype=bool)
            inside[sorted(allowed)] = True
            weights = weights * inside[self.codes[column]]
        return weights

    def heaviest(self, part: float) -> TiltedRows:
        """Return the `TiltedRows` without the lightest rows, whose weights add up to at most `part`; renormalised."""
        ordered = np.sort(self.weights)
        first = int(np.searchsorted(np.cumsum(ordered), part))
        kept = self.weights >= (ordered[first] if first < ordered.size else 0.0)
        if kept.all():
            return self
        codes = {name: code[kept] for name, code in self.codes.items()}
        return TiltedRows(self.schema, codes, self.weights[kept] / self.weights[kept].sum(), self.total)

    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Return `n` rows, codes by column, that meet `where`, rounded at random by `rng`.

        The condition maps columns to level numbers, None is none; MechanismError for one of probability 0.
        """
        weights = self._met(where or {})
        if n and not weights.sum() > 0:
            raise MechanismError("no row can meet this condition: its mass under the model is 0.")
        rows = rounded(self.codes, weights, n, rng)
        return {column: code[rows] for column, code in self.codes.items()}

    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> TiltedRows:
        """Return the `TiltedRows` with allowed levels alone, in the columns of `schema`, which has no others.

        `levels` is column -> numbers of the levels allowed; a column it lacks keeps all. If no row has them, all stay,
        with these levels in turn.
        """
        places = {}
        weights = self.weights
        for column, some in levels.items():
            place = np.full(self.schema.size(column), -1)
            place[list(some)] = np.arange(len(some))
            places[column] = place[self.codes[column]]
            weights = weights * (places[column] >= 0)
        kept = np.flatnonzero(weights) if weights.sum() > 0 else np.arange(weights.size)
        weights = weights[kept] if weights.sum() > 0 else self.weights
        codes: dict[str, NDArray[np.integer[Any]]] = {}
        for name in schema.names:
            if name in places:
                found = places[name][kept]
                found = np.where(found >= 0, found, np.arange(kept.size) % schema.size(name))
                codes[name] = found.astype(np.min_scalar_type(schema.size(name) - 1))
            else:
                codes[name] = self.codes[name][kept]
        return TiltedRows(schema, codes, weights / weights.sum(), self.total)

    def sections(self, named: Callable[[str], str]) -> Sequence[Section]:
        """Return the page's section on the prior's distance by column, in a tuple, empty if not known.

        `named` is not used.
        """
        from stratsynth.adapters.tilted.page import prior_section

        return () if self.off is None else (prior_section(self.off, self.made),)

    def state(self) -> State:
        """Return the model for a file, a `State`: arrays (weights, level numbers) and facts (total, off, made).

        The arrays' names are "weights" and "column " before a column's name.
        """
        facts = {"total": self.total, "off": None if self.off is None else dict(self.off), "made": self.made}
        return State(facts, {"weights": self.weights, **{f"column {n}": self.codes[n] for n in self.schema.names}})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> TiltedRows:
        """Return the `TiltedRows`, in a schema, of a stored `State`: rows and weights are arrays, figures facts.

        ReleaseError for any that are out of range.
        """
        weights = np.asarray(state.arrays["weights"])
        sound = weights.dtype == np.float64 and weights.ndim == 1 and (weights >= 0).all() and (weights <= 1).all()
        if not sound or abs(weights.sum() - 1) > 1e-9:
            raise ReleaseError("model: the stored weights are damaged.")
        codes = {name: np.asarray(state.arrays[f"column {name}"]) for name in schema.names}
        for name, code in codes.items():
            if code.dtype.kind != "u" or code.shape != weights.shape or int(code.max(initial=0)) >= schema.size(name):
                raise ReleaseError(f"model: the stored levels of {name} are damaged.")
        total, off = float(state.facts["total"]), state.facts["off"]
        made = float(state.facts["made"])
        figures = [total, made, *(map(float, off.values()) if off is not None else ())]
        if not all(0 <= figure < math.inf for figure in figures):
            raise ReleaseError("model: the stored figures are damaged.")
        off = off if off is None else {str(k): float(v) for k, v in off.items()}
        return cls(schema, codes, weights, total, off, made)
