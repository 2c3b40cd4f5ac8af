"""GEM as a base of `Pooled`: in a stratum, everybody's network, trained on to where this stratum's people differ.

Training is short and starts from everybody's parameters: that is what keeps a stratum near what it has not measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from stratsynth.adapters.engine import Measured
from stratsynth.adapters.gem.learner import Learned, Learner
from stratsynth.adapters.gem.mechanism import GEM
from stratsynth.adapters.gem.model import ProductMixture
from stratsynth.adapters.shared.given import records
from stratsynth.adapters.shared.rounds import MEASURE, adapt, affordable, usual_questions, usual_rounds

from stratsynth.mechanisms import Mechanism, Public
from stratsynth.models import Returns
from stratsynth.questions import Choose, Clique, Counts, NoisyTable, Program, Question, Work
from stratsynth.questions.counts import table_sigma

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.schema import Schema

MOST_CELLS = 2**12
"""The most cells of a marginal that a stratum measures."""
LAST = 4
"""How many times longer than in a round the last training may be: a stratum's few tables must not undo the rest."""


@dataclass(frozen=True)
class NetworkStart:
    """How `Pooled` uses GEM."""

    merges: ClassVar[bool] = False
    base: GEM

    def everybody(self, public: Public, allot: Allotment, rng: Generator) -> Program[Learned]:
        """GEM's own fit. Where it stopped at columns, strata start from a network around these."""
        found = yield from self.base.learned(public, allot, rng)
        if found.learner is not None or not public.schema.names:
            return found
        ones = [NoisyTable(c, _counts(found.model, c, found.total), 1.0) for c in public.schema.oneways]
        return replace(found, learner=self.base.learner(public.schema, ones, found.total, rng))

    def stratum(self, pooled: Learned | None) -> Moved:
        """What every stratum does."""
        return Moved(pooled, self.base)

    def given(self, pooled: Learned, inside: Schema, levels: Mapping[str, Sequence[int]]) -> ProductMixture:
        """What everybody's model says of one stratum."""
        return pooled.model.given(inside, levels)


@dataclass(frozen=True)
class Moved(Mechanism[ProductMixture]):
    """Start from `pooled`, and measure what the stratum can afford to learn. Made by `Pooled` only."""

    name: ClassVar[str] = "moved"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Counts, Choose, Work})
    returns: ClassVar[Returns] = Returns.ROWS
    adaptive: ClassVar[bool] = True
    unprotected: ClassVar[tuple[str, ...]] = ()
    pooled: Learned | None = field(repr=False)
    """The model of everybody; None where only questions matter, as in a plan."""
    base: GEM
    """What made it: its workload and its way of training hold here too."""

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Whatever it is given."""
        return budget.zcdp()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[ProductMixture]:
        """Rounds of choosing and measuring, if there is anything to learn; otherwise the pooled model as it is."""
        if self.pooled is None:
            raise AssertionError("a plan's mechanism cannot be fitted")
        worth, starters, rounds = self._foresee(public, allot.rho)
        size, learner = public.size or 0, self.pooled.learner
        if not starters or learner is None:
            return replace(self.pooled.model, schema=public.schema, total=float(max(size, 1)))
        refits = _Refits(replace(learner, schema=public.schema, tables=[]), size)
        yield from adapt(
            refits, worth, people=float(size), rho=Fraction(allot.rho), rounds=rounds, neighbours=public.neighbours
        )
        yield from refits.fit(LAST)
        return refits.model

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[None]:
        """The questions of an ordinary stratum, without fits and with made-up choices."""
        _, starters, rounds = self._foresee(public, allot.rho)
        yield from usual_questions(public.schema, starters, rho=allot.rho, rounds=rounds, rng=rng)

    def _foresee(self, public: Public, rho: float) -> tuple[dict[Clique, float], dict[Clique, float], int]:
        """How much candidates matter, those of the first round, and how many rounds there are: public, all of it."""
        schema, size = public.schema, public.size or 0
        if not schema.names:
            return {}, {}, 0
        widest = 1 if self.base.small(public, rho, size) else len(schema.names)
        worth = {
            clique: weight for clique, weight in self.base.worth(public, fewest=1).items()
            if len(clique) <= widest and schema.cells(clique) <= MOST_CELLS
        }  # fmt: skip
        rounds = self.base.rounds or usual_rounds(len(schema.names), size, rho)
        sigma = table_sigma(MEASURE * rho / rounds, schema, public.neighbours)
        return worth, affordable(worth, {c: schema.cells(c) for c in worth}, sigma, size), rounds


@dataclass
class _Refits:
    """A learner as rounds use it."""

    learner: Learner
    size: int
    tables: list[NoisyTable] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.learner.total = self.total

    @property
    def schema(self) -> Schema:
        return self.learner.schema

    @property
    def total(self) -> float:
        return records(self.tables, self.size)

    @property
    def model(self) -> ProductMixture:
        return self.learner.model

    def marginals(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        return [table / self.learner.total for table in self.learner.marginals(cliques)]

    def fitting(self, cliques: Mapping[Clique, float]) -> dict[Clique, float]:
        return dict(cliques)

    def fit(self, times: int = 1) -> Program[None]:
        """Train on what was measured, from where the last training ended."""
        self.learner.total = self.total
        self.learner.tables = [Measured.of(table) for table in self.tables]
        yield from self.learner.fit(times)


def _counts(model: ProductMixture, clique: Clique, total: float) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = np.rint(np.asarray(model.marginal(clique)) * total).astype(np.int64)
    return counts
