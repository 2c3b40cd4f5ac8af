"""Mixture of strata's models by public weights: the row-drawing model of a stratified release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.models.base import Codes, Returns, State, TableModel, Where
from stratsynth.models.parts import opened, stored
from stratsynth.models.rules import Moved, draw_allowed
from stratsynth.progress import phase
from stratsynth.strata import Stratum

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.schema import Schema


def allot(n: int, weights: np.ndarray[Any, Any], rng: Generator) -> np.ndarray[Any, Any]:
    """Return an array of whole numbers, one per weight, that add up to n, each with expectation n * weight / sum.

    Systematic rounding: one uniform offset (by `rng`) on the cumulated weights, taken in random order, so that each
    part gets the floor or the ceiling of its expectation, without bias.
    """
    parts = np.flatnonzero(weights)  # weight 0 never gets a row
    order = parts[rng.permutation(parts.size)]
    due = np.cumsum(weights[order] / weights.sum()) * n
    due[-1] = n  # rounding in the cumulated sum must not cost or add a row
    marks = np.minimum(np.floor(due + rng.random()), n)
    marks[-1] = n
    counts = np.zeros(len(weights), dtype=np.int64)
    counts[order] = np.diff(marks, prepend=0).astype(np.int64)
    return counts


@dataclass(frozen=True)
class Mixture(TableModel):
    """Distribution of rows that draws a stratum by its weight, then a row of that stratum's model."""

    kind: ClassVar[str] = "mixture"
    schema: Schema
    """All columns; those that define the strata are constant in each part, or vary among merged levels."""
    parts: Mapping[Stratum, TableModel]
    weights: Mapping[Stratum, float]
    """Public shares of the strata, adding up to 1."""

    def _within(self, stratum: Stratum, where: Where) -> Where | None:
        """Return the condition `where` as left inside a stratum, in its codes.

        None if no row of it can meet the condition.
        """
        rest = {column: codes for column, codes in where.items() if column not in stratum.levels}
        for column, codes in stratum.codes(self.schema).items():
            if column not in where:
                continue
            allowed = frozenset(i for i, code in enumerate(codes) if code in where[column])
            if not allowed:
                return None
            if len(codes) > 1:
                rest[column] = allowed
        return rest

    def _masses(self, where: Where) -> dict[Stratum, tuple[float, Where]]:
        """Return {stratum: (its mass on `where`, the condition left inside it)} of the strata that can meet `where`."""
        masses = {}
        for stratum, part in self.parts.items():
            rest = self._within(stratum, where)
            if rest is not None:
                masses[stratum] = (self.weights[stratum] * part.mass(rest), rest)
        return masses

    def mass(self, where: Where) -> float:
        """Return the probability, 0 to 1, that a row meets the condition `where`: the parts' masses, weighted."""
        return float(sum(mass for mass, _ in self._masses(where).values()))

    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Draw n rows by `rng` that meet `where`, level numbers by column, in strata's order, numbers fairly rounded.

        Rows that break a structural rule are drawn again within their part, so shares stay unchanged.
        """
        return self.counted(n, rng, where or {}, Moved())

    def counted(self, n: int, rng: Generator, where: Where, moved: Moved) -> Codes:
        """Draw n rows by `rng` that meet `where`, level numbers by column; `moved` counts changes.

        MechanismError for none.
        """
        masses = self._masses(where)
        shares = np.array([mass for mass, _ in masses.values()])
        if n and not shares.sum() > 0:
            raise MechanismError("no row can meet this condition: its mass under the model is 0.")
        numbers = allot(n, shares, rng) if n else np.zeros(len(masses), dtype=np.int64)
        drawn: dict[str, list[np.ndarray[Any, Any]]] = {column: [] for column in self.schema.names}
        with phase("drawing rows", lambda: int(np.count_nonzero(numbers))) as done:
            for (stratum, (_, rest)), number in zip(masses.items(), numbers, strict=True):
                if number == 0:  # parts need not support n = 0
                    continue
                fixed = {*stratum.columns, *rest}
                draw = partial(self._draw, stratum, rng, rest)
                rows = draw_allowed(self.schema, int(number), rng, draw, fixed, moved.inside(stratum.label))
                for column, codes in rows.items():
                    drawn[column].append(codes)
                done()
        return {c: np.concatenate(d) if d else np.zeros(0, dtype=np.int64) for c, d in drawn.items()}

    def _draw(self, stratum: Stratum, rng: Generator, rest: Where, number: int, moved: Moved) -> Codes:
        """Draw `number` rows of `stratum` by `rng` under `rest`, with the columns that are constant in it.

        Levels are numbered as in the schema; `moved` counts rows that rules change.
        """
        rows = self.parts[stratum].counted(number, rng, rest, moved)
        own = {
            c: np.array(codes)[rows[c]] if len(codes) > 1 else np.full(number, codes[0], dtype=np.int64)
            for c, codes in stratum.codes(self.schema).items()
        }
        return {**rows, **own}

    def oneway(self, column: str) -> np.ndarray[Any, Any]:
        """Return an array of the probability of each level of a column: the parts' distributions, weighted."""
        shares = [self.weights[stratum] * self.inside(stratum, column) for stratum in self.parts]
        return np.asarray(np.sum(shares, axis=0), dtype=np.float64)

    def inside(self, stratum: Stratum, column: str) -> np.ndarray[Any, Any]:
        """Return a float array: each level of `column`, its probability within one stratum.

        The probability is 0 outside the stratum's own levels.
        """
        part = self.parts[stratum]
        if column not in stratum.levels:
            return part.oneway(column)
        found = np.zeros(self.schema.size(column))
        codes = stratum.codes(self.schema)[column]
        found[codes] = part.oneway(column) if len(codes) > 1 else 1.0
        return found

    def mixture(self) -> Mixture:
        """Return this model itself, as it is one of strata's models."""
        return self

    def state(self) -> State:
        """Return a `State`: the parts' states side by side, each with its weight and kind."""
        return stored(self.parts, lambda stratum: {"weight": self.weights[stratum], "kind": self.parts[stratum].kind})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Mixture:
        """Return the mixture, in a schema, of a stored state.

        ReleaseError unless the weights add up to 1 and all parts draw rows.
        """
        from stratsynth.models.files import restore  # restoring a part looks its kind up, mixtures included

        parts: dict[Stratum, TableModel] = {}
        weights: dict[Stratum, float] = {}
        for stratum, (facts, inside, own) in opened(schema, state).items():
            weight = float(facts["weight"])
            if not 0 <= weight <= 1:
                raise ReleaseError("model: a stratum's weight is not between 0 and 1.")
            part = restore(facts["kind"], inside, own)
            if part.returns != Returns.ROWS:
                raise ReleaseError("model: a stratum draws no rows.")
            parts[stratum], weights[stratum] = part.table_model(), weight
        if abs(sum(weights.values()) - 1) > 1e-9:
            raise ReleaseError("model: the strata's weights do not add up to 1.")
        return cls(schema, parts, weights)
