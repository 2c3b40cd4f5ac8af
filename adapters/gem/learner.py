"""A mixture that is fitted again and again, as noisy tables come in; each fit starts where the last one ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.gem.fit import TRAINER, Training
from stratsynth.adapters.gem.layout import Reals
from stratsynth.adapters.gem.model import ProductMixture
from stratsynth.adapters.gem.network import Source
from stratsynth.adapters.shared.learner import Learner
from stratsynth.driver.solving import one_thread
from stratsynth.questions import Clique, NoisyTable, Program, work

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.mechanisms import Public
    from stratsynth.schema import Schema

LAST = 20
"""The last training's most steps: this many times `iterations`."""
FASTER = 3.0
"""The last training's learning rate: this many times `rate`."""
LAST_IN_STRATUM = 4
"""`LAST` in a stratum of `Pooled`, at the rate of a round: its few tables must not undo everybody's training."""


@dataclass(kw_only=True)
class MixtureLearner(Learner[ProductMixture]):
    """As GEM and its strata use it."""

    source: Source
    """What makes probabilities of parameters."""
    iterations: int
    """The most training steps in a round; training stops earlier when noise alone would explain the misfit."""
    rate: float
    """The learning rate in a round."""
    point: Reals
    """The parameters where the last training ended; before the first one, those it starts from."""
    longest: int = LAST
    """The most steps of the last training are this many times `iterations`."""
    faster: float = FASTER
    """The learning rate of the last training is this many times `rate`."""
    known: ProductMixture | None = None
    """The model, where it is not that of the parameters or has been worked out; a training makes it unknown."""

    @property
    def model(self) -> ProductMixture:
        """The model that was fitted last."""
        if self.known is None:
            self.known = self._generated()
        return self.known

    def _generated(self) -> ProductMixture:
        odds, _ = self.source.forward(self.point)
        return ProductMixture.of(self.schema, self.source.layout, odds, self.total)

    def fit(self, *, last: bool = False) -> Program[None]:
        """Train: the generator between rounds, for longer after the last one."""
        times, faster = (self.longest, self.faster) if last else (1, 1.0)
        steps, rate = times * self.iterations, faster * self.rate
        problem = Training(self.source, self.point, tuple(self.taken_in(last=last)), self.total, steps, rate)
        self.point, self.known = (yield from work(TRAINER, problem)), None

    def expected(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """The expected counts of some columns' cells, in records."""
        with one_thread("blas"):  # matrices too small for more threads, which would wait for each other
            return [np.asarray(table * self.total, np.float64) for table in self._generated().marginals(cliques)]

    def marginals(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """The probabilities of some columns' cells, rounded as the questions of an interrupted fit have them."""
        return [table / self.total for table in self.expected(cliques)]

    def stratum(self, public: Public, prior: float) -> Program[MixtureLearner]:
        """One that starts from these parameters; training is short, which keeps it near what it has not measured."""
        model = replace(self.model, schema=public.schema, total=float(max(public.size or 0, 1)))
        yield from ()  # nothing has to be fitted before a stratum starts
        return replace(
            self, schema=public.schema, size=public.size, settled=None, tables=[], longest=LAST_IN_STRATUM, faster=1.0,
            known=model, published=self.published_in(public),
        )  # fmt: skip

    def given(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> ProductMixture:
        """The model conditioned on these levels."""
        return self.model.given(schema, levels)


def start(source: Source, rng: Generator, ones: Sequence[NoisyTable]) -> Reals:
    """Parameters to start from: the columns' own noisy distributions, no level below half a standard deviation."""
    logits = np.zeros(source.layout.rows)
    for table in ones:
        odds = np.maximum(table.values, max(0.5, 0.5 * table.sigma))
        logits[source.layout.block[table.clique[0]]] = np.log(odds / odds.sum())
    return source.first(rng, logits)
