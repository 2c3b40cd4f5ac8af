"""Mechanism that learns to predict, and its model, in one file, as a third-party package would hold them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stratsynth.mechanisms import Mechanism
from stratsynth.models import Predictor, Returns, State
from stratsynth.questions import Counts, counts
from stratsynth.report.page import Column, Figure, Section, Table


@dataclass(frozen=True)
class Guesses(Predictor):
    """The commonest level of `target` for each level of `feature`, by noisy counts."""

    kind: ClassVar[str] = "guesses"
    schema: object
    target: str
    feature: str
    table: np.ndarray
    """Noisy counts, the feature's levels first."""

    @property
    def inputs(self):
        return (self.feature,)

    def predict(self, rows):
        return np.array(self.schema.levels(self.target))[self.table.argmax(axis=1)[rows[self.feature]]]

    def state(self):
        return State({"target": self.target, "feature": self.feature}, {"table": self.table})

    @classmethod
    def from_state(cls, schema, state):
        return cls(schema, state.facts["target"], state.facts["feature"], state.arrays["table"])

    def sections(self, named):
        heads = [Column(self.feature, "text"), *(Column(level) for level in self.schema.levels(self.target))]
        lines = zip(self.schema.levels(self.feature), self.table, strict=True)
        table = Table("Counts as released.", heads, [[level, *line] for level, line in lines])
        return [
            Section("guesses", "What is guessed", facts=[("Target", self.target)], figures=[Figure("", table=table)])
        ]

    def foretell(self, path):
        return f"guesses from about {self.table.sum():,.0f} records"


@dataclass(frozen=True)
class Guesser(Mechanism[Guesses]):
    """Spends everything on one table."""

    name: ClassVar[str] = "guesser"
    needs: ClassVar = frozenset({Counts})
    returns: ClassVar = Returns.PREDICTIONS
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar = ()
    target: str = "WORK"
    feature: str = "AGE"

    def price(self, public, budget):
        return budget.zcdp()

    def steps(self, public, allot, rng):
        (table,) = yield from counts([(self.feature, self.target)], rho=allot.rho)
        return Guesses(public.schema, self.target, self.feature, np.asarray(table.values, dtype=np.int64))
