"""What rounds of choosing and measuring teach, and the mechanisms whose learner strata can go on from.

A `Learner` holds noisy tables, and the model that is fitted to them again and again. A `Poolable` mechanism hands its
learner on: `Pooled` takes it as its base.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine import Measured
from stratsynth.adapters.shared.known import LAST_SURER, SURER, believed, doubted, doubts, records
from stratsynth.adapters.shared.rounds import MEASURE, usual_rounds, worth_measuring
from stratsynth.adapters.shared.workload import cells_of
from stratsynth.mechanisms import Mechanism, Public, once
from stratsynth.questions import Clique, Program
from stratsynth.questions.counts import table_sigma

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment
    from stratsynth.mechanisms.known import Known
    from stratsynth.schema import Schema

M = TypeVar("M")
MOST_CELLS = 2**12
"""The most cells of a marginal that a stratum measures."""


@dataclass(kw_only=True)
class Learner(ABC, Generic[M]):
    """The tables so far and the model fitted to them; every fit starts where the one before ended."""

    schema: Schema
    """The columns of the model."""
    size: int | None = None
    """The public number of records; None where it is unknown."""
    settled: float | None = None
    """The number of records where it is estimated once for all fits; None where each new table improves it."""
    tables: list[Measured] = field(default_factory=list)
    """What was measured, in order."""
    published: tuple[Known, ...] = ()
    """What is public already."""
    _doubts: tuple[int, dict[frozenset[str], float]] | None = field(default=None, init=False, repr=False)
    """What so many tables say against what is public, once a stratum has asked."""

    @property
    def total(self) -> float:
        """The number of records, as far as it is known."""
        return records(self.tables, self.size) if self.settled is None else self.settled

    def taken_in(self, *, last: bool) -> list[Measured]:
        """All tables that a fit is to meet, between rounds or the last one: public ones, then those measured."""
        public = believed(self.published, self.tables, self.total, LAST_SURER if last else SURER)
        return [*(table for table in public if table.sigma < math.inf), *self.tables]

    def published_in(self, public: Public) -> tuple[Known, ...]:
        """The published tables of a stratum, by what everybody's answers, which are here, say of such tables."""
        if not self.published or not public.known:
            return public.known
        if self._doubts is None or self._doubts[0] != len(self.tables):
            self._doubts = len(self.tables), doubts(self.published, self.tables, self.total)
        return doubted(public.known, self._doubts[1], self.schema.names)

    @property
    @abstractmethod
    def model(self) -> M:
        """The model that was fitted last."""

    @abstractmethod
    def fit(self, *, last: bool = False) -> Program[None]:
        """Fit the tables: with few steps between two rounds, to the end after the last one."""

    @abstractmethod
    def marginals(self, cliques: Sequence[Clique]) -> Sequence[NDArray[np.floating[Any]]]:
        """The probabilities of some columns' cells in the model that was fitted last."""

    def expected(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """The expected counts of some columns' cells, in records."""
        return [np.asarray(table * self.total, np.float64) for table in self.marginals(cliques)]

    def fitting(self, cliques: Mapping[Clique, float]) -> dict[Clique, float]:
        """Those of some candidates whose tables the model could take in without growing too large; by default all."""
        return dict(cliques)

    @abstractmethod
    def stratum(self, public: Public, prior: float) -> Program[Learner[M]]:
        """A learner without tables that starts in one stratum from this model, worth `prior` records where it can."""

    @abstractmethod
    def given(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> M:
        """What the model says of a stratum with this schema: the rows whose columns have these levels."""


class Poolable(Mechanism[M]):
    """To be declared beside what every mechanism declares, in place of `steps`: `merges`, `learned`, `candidates`."""

    @property
    @abstractmethod
    def merges(self) -> bool:
        """Whether strata may merge levels, so that a column varies in them which everybody's model lacks."""

    @abstractmethod
    def learned(self, public: Public, allot: Allotment, rng: Generator) -> Program[Learner[M]]:
        """The program of `steps`, which returns its model with what strata need in order to go on from it."""

    @abstractmethod
    def candidates(self, public: Public, rho: float) -> Mapping[Clique, float]:
        """What a stratum may measure with this much zCDP to move everybody's model, and how much each matters."""

    def stratum_rounds(self, usual: int) -> int:
        """Into how many rounds a stratum divides its budget; `usual` is what public sizes say."""
        return usual

    @property
    def pools(self) -> bool:
        """Whether strata can go on from the model that these settings make."""
        return True

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[M]:
        """The fit alone."""
        return (yield from self.learned(public, allot, rng)).model

    @once
    def foresee(self, public: Public, rho: float) -> tuple[Mapping[Clique, float], Mapping[Clique, float], int]:
        """A stratum's candidates, those that its first round can afford, and its number of rounds: from public facts.

        Where no round is affordable, the stratum measures nothing and keeps everybody's model.
        """
        schema, size = public.schema, public.size or 0
        every, cells = _small(schema, tuple(self.candidates(public, rho).items()))
        rounds = self.stratum_rounds(usual_rounds(len(schema.names), size, rho))
        sigma = table_sigma(MEASURE * rho / rounds, schema, public.neighbours)
        return every, worth_measuring(every, cells, sigma, size), rounds


@lru_cache(maxsize=8)
def _small(
    schema: Schema, candidates: tuple[tuple[Clique, float], ...]
) -> tuple[Mapping[Clique, float], Mapping[Clique, int]]:
    """What strata may measure of some candidates, and the cells of each: one object for strata of all sizes."""
    cells = cells_of(schema, tuple(clique for clique, _ in candidates))
    return {clique: weight for clique, weight in candidates if cells[clique] <= MOST_CELLS}, cells
