"""A mixture that is fitted again and again, as noisy tables come in; each fit starts where the last one ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from stratsynth.adapters.engine import Measured
from stratsynth.adapters.gem.fit import TRAINER, Training, one_thread
from stratsynth.adapters.gem.layout import Layout, Reals
from stratsynth.adapters.gem.model import ProductMixture
from stratsynth.adapters.gem.network import Source

from stratsynth.questions import Clique, NoisyTable, Program, work

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.schema import Schema


@dataclass
class Learner:
    """The tables so far, and the parameters fitted to them."""

    schema: Schema
    source: Source
    iterations: int
    """The most steps of a fit; it stops when the misfit is what noise alone would make."""
    rate: float
    point: Reals
    """The parameters: of a start, of another fit that this one goes on from, then of the last fit."""
    tables: list[Measured] = field(default_factory=list)
    total: float = 1.0
    """The number of records."""

    def fit(self, times: int = 1, faster: float = 1.0) -> Program[None]:
        """Fit all tables, with so many times the usual steps at most, the first so many times as large."""
        steps, rate = times * self.iterations, faster * self.rate
        problem = Training(self.source, self.point, tuple(self.tables), self.total, steps, rate)
        trained = yield from work(TRAINER, problem)
        self.point = trained.point

    def marginals(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """What the model that was fitted last says of some columns, in records."""
        with one_thread():
            return [np.asarray(table * self.total, np.float64) for table in self.model.marginals(cliques)]

    @property
    def model(self) -> ProductMixture:
        """The model that was fitted last."""
        odds, _ = self.source.forward(self.point)
        return ProductMixture.of(self.schema, self.source.layout, odds, self.total)


@dataclass(frozen=True, eq=False)
class Learned:
    """What a fit made: its model, and the learner to go on from, if there was anything to train."""

    model: ProductMixture
    learner: Learner | None

    @property
    def total(self) -> float:
        """The number of records."""
        return self.model.total


def logits(layout: Layout, ones: Sequence[NoisyTable]) -> Reals:
    """Where every component starts: the columns' own noisy distributions, no level below a noise's worth."""
    found = np.zeros(layout.rows)
    for table in ones:
        odds = np.maximum(table.values, max(0.5, 0.5 * table.sigma))
        found[layout.block[table.clique[0]]] = np.log(odds / odds.sum())
    return found


def start(source: Source, rng: Generator, ones: Sequence[NoisyTable]) -> Reals:
    """Parameters to start from."""
    return source.first(rng, logits(source.layout, ones))
