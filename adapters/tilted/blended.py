"""Blend of a mechanism's own model and of a prior's rows, each with its share of the release."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.adapters.tilted.model import TiltedRows
from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.models import Codes, State, TableModel, Where
from stratsynth.models.files import restore
from stratsynth.models.mixture import allot

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.questions import Clique
    from stratsynth.report.page import Section
    from stratsynth.schema import Schema


@dataclass(frozen=True, eq=False)
class Blended(TableModel):
    """Distribution that draws a row of the mechanism's own model by chance `kept`, else one of the prior's rows."""

    kind: ClassVar[str] = "blended"
    of_prior: ClassVar[bool] = True
    schema: Schema
    own: Any
    """The mechanism's own model, a `TableModel` with `marginals`."""
    tilted: TiltedRows
    """The prior's rows with their weights."""
    kept: float
    """Share of the own model, 0 to 1."""

    @property
    def total(self) -> float:
        """Number of records that the noisy tables imply, or the public one."""
        return self.tilted.total

    @property
    def off(self) -> Mapping[str, float] | None:
        """Total variation distance, by column, between the prior's shares and those of its reweighted rows."""
        return self.tilted.off

    @property
    def made(self) -> float:
        """Share of the rows that are not the prior's, 0 to 1."""
        return self.kept + (1 - self.kept) * self.tilted.made

    def marginals(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """Return a list of arrays, one a clique: probabilities of its cells, axes in its order."""
        return blended(self.kept, self.own.marginals(cliques), self.tilted.marginals(cliques))

    def marginal(self, columns: Clique) -> NDArray[np.float64]:
        """Return an array, the probabilities of the cells of the table of `columns`, axes in that order."""
        return self.marginals([columns])[0]

    def oneway(self, column: str) -> NDArray[np.float64]:
        """Return the probabilities of one column's levels, an array that adds up to 1."""
        return self.marginal((column,))

    def _masses(self, where: Where) -> tuple[float, float]:
        """Return (mass of the own model, mass of the prior's rows) on the condition `where`, shares included."""
        return self.kept * self.own.mass(where), (1 - self.kept) * self.tilted.mass(where)

    def mass(self, where: Where) -> float:
        """Return the probability, 0 to 1, of the condition `where`: column -> level numbers allowed."""
        return min(1.0, sum(self._masses(where)))

    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Return `n` rows, codes by column, that meet `where`, in random order by `rng`; numbers fairly rounded.

        The condition maps columns to level numbers, None is none; MechanismError for one of probability 0.
        """
        masses = np.array(self._masses(where or {}))
        if n and not masses.sum() > 0:
            raise MechanismError("no row can meet this condition: its mass under the model is 0.")
        numbers = allot(n, masses, rng) if n else np.zeros(2, dtype=np.int64)
        parts = [
            model.sample(int(number), rng, where)
            for model, number in zip((self.own, self.tilted), numbers, strict=True)
            if number
        ]
        order = rng.permutation(n)
        return {
            name: np.concatenate([part[name] for part in parts])[order] if parts else np.zeros(0, dtype=np.int64)
            for name in self.schema.names
        }

    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> TableModel:
        """Return the model with allowed levels alone, in the columns of `schema`, which has no others.

        `levels` is column -> numbers of the levels allowed; a column it lacks keeps all.
        """
        own, tilted = self._masses({name: frozenset(some) for name, some in levels.items()})
        kept = own / (own + tilted) if own + tilted > 0 else self.kept
        return of(schema, self.own.conditioned(schema, levels), self.tilted.conditioned(schema, levels), kept)

    def sections(self, named: Callable[[str], str]) -> Sequence[Section]:
        """Return the own model's sections of the page, by `named`, and that on the prior."""
        from stratsynth.adapters.tilted.page import prior_section

        own = tuple(self.own.sections(named))
        return own if self.off is None else (*own, prior_section(self.off, self.made))

    def state(self) -> State:
        """Return the `State` for a file: both models' states side by side, arrays' names prefixed, and `kept`."""
        parts = {"own": self.own.state(), "tilted": self.tilted.state()}
        facts = [
            {"kind": model.kind, "facts": dict(state.facts)}
            for model, state in zip((self.own, self.tilted), parts.values(), strict=True)
        ]
        arrays = {f"{part}/{name}": array for part, state in parts.items() for name, array in state.arrays.items()}
        return State({"kept": self.kept, "parts": facts}, arrays)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Blended:
        """Return the `Blended`, in a schema, of a stored `State`; ReleaseError for a damaged one."""
        kept, (first, second) = float(state.facts["kept"]), state.facts["parts"]
        # a share that is no number, or parts of other kinds, could not have been stored
        if not 0 <= kept <= 1 or first["kind"] == cls.kind or second["kind"] != TiltedRows.kind:
            raise ReleaseError("model: the stored blend is damaged.")
        own, tilted = (
            restore(one["kind"], schema, State(one["facts"], _under(part, state)))
            for part, one in (("own", first), ("tilted", second))
        )
        if not isinstance(own, TableModel) or not isinstance(tilted, TiltedRows) or not hasattr(own, "marginals"):
            raise ReleaseError("model: the stored blend is damaged.")
        return cls(schema, own, tilted, kept)


LEAST = 0.02
"""Smallest share of either model that is kept beside the other."""


def of(schema: Schema, own: Any, tilted: TiltedRows, kept: float) -> TableModel:
    """Return the `Blended` of both models in a schema; one of them alone if the other's share is below `LEAST`.

    `kept` is the share of `own`.
    """
    if not math.isfinite(kept) or kept > 1 - LEAST:
        alone: TableModel = own
        return alone
    return tilted if kept < LEAST else Blended(schema, own, tilted, kept)


def blended(
    kept: float, own: Sequence[NDArray[np.floating[Any]]], tilted: Sequence[NDArray[np.floating[Any]]]
) -> list[NDArray[np.float64]]:
    """Return a list of arrays: those of `own` with the weight `kept`, plus those of `tilted` with the rest."""
    return [
        np.asarray(kept * one + (1 - kept) * other, dtype=np.float64) for one, other in zip(own, tilted, strict=True)
    ]


def _under(part: str, state: State) -> dict[str, NDArray[Any]]:
    """Return {name: array} of the arrays of a state whose names begin with `part` and a slash, without these."""
    first = f"{part}/"
    return {name.removeprefix(first): array for name, array in state.arrays.items() if name.startswith(first)}
