"""A mixture that is refitted as noisy tables come in; each fit starts where the last one ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.gem.fit import TRAINER, Training
from stratsynth.adapters.gem.layout import Reals
from stratsynth.adapters.gem.model import ProductMixture
from stratsynth.adapters.gem.network import Parametrisation
from stratsynth.adapters.shared.learner import Learner
from stratsynth.driver.solving import one_thread
from stratsynth.questions import Clique, NoisyTable, Program, work

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.mechanisms import Public
    from stratsynth.schema import Schema

LAST = 20
"""Ratio of the last training's largest number of steps to `iterations`."""
FASTER = 3.0
"""Ratio of the last training's learning rate to `rate`."""
LAST_IN_STRATUM = 4
"""`LAST` in a stratum of `Pooled`, at the rate of a round: its few tables must not undo everybody's training."""


@dataclass(kw_only=True)
class MixtureLearner(Learner[ProductMixture]):
    """Learner of a product mixture, for GEM and its strata."""

    source: Parametrisation
    """Map from parameters to probabilities."""
    iterations: int
    """Largest number of training steps in a round; training stops earlier when noise alone would explain the misfit."""
    rate: float
    """Learning rate in a round."""
    point: Reals
    """Parameters after the last training; before the first one, the start parameters."""
    longest: int = LAST
    """Ratio of the last training's largest number of steps to `iterations`."""
    faster: float = FASTER
    """Ratio of the last training's learning rate to `rate`."""
    known: ProductMixture | None = None
    """Cached model, or one that is not the parameters'; None after a training."""

    @property
    def model(self) -> ProductMixture:
        """The `ProductMixture` of the last training, or of the start parameters; cached."""
        if self.known is None:
            self.known = self._generated()
        return self.known

    def _generated(self) -> ProductMixture:
        odds, _ = self.source.forward(self.point)
        return ProductMixture.of(self.schema, self.source.layout, odds, self.total)

    def fit(self, *, last: bool = False) -> Program[None]:
        """Program that trains the parameters on all tables, for a round's steps; returns nothing.

        With `last`, a flag, for `longest` times as many.
        """
        times, faster = (self.longest, self.faster) if last else (1, 1.0)
        steps, rate = times * self.iterations, faster * self.rate
        problem = Training(self.source, self.point, tuple(self.taken_in(last=last)), self.total, steps, rate)
        self.point, self.known = (yield from work(TRAINER, problem)), None

    def expected(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """Return a list, for each clique the array of its cells' expected counts, in records, by the parameters."""
        with one_thread("blas"):  # matrices too small for more threads, which would wait for each other
            return [np.asarray(table * self.total, np.float64) for table in self._generated().marginals(cliques)]

    def marginals(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """Return a list, for each clique the array of its cells' probabilities: expected counts over the total."""
        return [table / self.total for table in self.expected(cliques)]

    def stratum(self, public: Public, prior: float) -> Program[MixtureLearner]:
        """Program that returns a stratum's `MixtureLearner`, by its public facts, starting at these parameters.

        It asks nothing; `prior` is not used.
        """
        model = replace(self.model, schema=public.schema, total=float(max(public.size or 0, 1)))
        yield from ()  # nothing has to be fitted before a stratum starts
        return replace(
            self,
            schema=public.schema,
            size=public.size,
            settled=None,
            tables=[],
            longest=LAST_IN_STRATUM,
            faster=1.0,
            known=model,
            published=self.published_in(public),
        )

    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> ProductMixture:
        """Return the `ProductMixture` of rows with allowed levels alone, in the columns of `schema`, with no others.

        `levels` maps columns to lists of the level numbers allowed; a column that it lacks keeps all.
        """
        return self.model.conditioned(schema, levels)


def start(source: Parametrisation, rng: Generator, ones: Sequence[NoisyTable]) -> Reals:
    """Return a flat array, start parameters of the `Parametrisation`, with probabilities near those of `ones`.

    `ones` are noisy tables of one column each; a count below half a sigma, or below 0.5, is taken as that. Chance is by
    `rng`.
    """
    logits = np.zeros(source.layout.rows)
    for table in ones:
        odds = np.maximum(table.values, max(0.5, 0.5 * table.sigma))
        logits[source.layout.block[table.clique[0]]] = np.log(odds / odds.sum())
    return source.first(rng, logits)
