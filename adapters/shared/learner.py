"""Models that are refitted in rounds of choosing and measuring, and mechanisms whose model strata start from.

A `Learner` has noisy tables, and the model that is fitted to them again and again. A `Poolable` mechanism returns its
learner for `Pooled`, whose strata start from it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine import MeasuredTable
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
"""Largest number of cells of a marginal that a stratum measures."""


@dataclass(kw_only=True)
class Learner(ABC, Generic[M]):
    """The tables so far and the model fitted to them; every fit starts where the one before ended."""

    schema: Schema
    """Columns of the model."""
    size: int | None = None
    """Public number of records; None where it is unknown."""
    settled: float | None = None
    """Number of records estimated once for all fits; None to improve it with each new table."""
    tables: list[MeasuredTable] = field(default_factory=list)
    """Measured tables, in order."""
    published: tuple[Known, ...] = ()
    """Public tables."""
    _doubts: tuple[int, dict[frozenset[str], float]] | None = field(default=None, init=False, repr=False)
    """Cached result of `doubts`, with the number of tables it is based on."""

    @property
    def total(self) -> float:
        """Number of records, at least 1: `settled`, or an estimate from the tables and the public size."""
        return records(self.tables, self.size) if self.settled is None else self.settled

    def taken_in(self, *, last: bool) -> list[MeasuredTable]:
        """Return a list of the `MeasuredTable`s that a fit takes: public ones not refuted, then measured ones.

        `last` is True for the last fit, False between rounds; it decides how sure public tables may be.
        """
        public = believed(self.published, self.tables, self.total, LAST_SURER if last else SURER)
        return [*(table for table in public if table.sigma < math.inf), *self.tables]

    def published_in(self, public: Public) -> tuple[Known, ...]:
        """Return a tuple of `Known` tables of a stratum's public facts: less sure, or none, where answers doubt them.

        These are answers about everybody.
        """
        if not self.published or not public.known:
            return public.known
        if self._doubts is None or self._doubts[0] != len(self.tables):
            self._doubts = len(self.tables), doubts(self.published, self.tables, self.total)
        return doubted(public.known, self._doubts[1], self.schema.names)

    @property
    @abstractmethod
    def model(self) -> M:
        """Model of the last fit, to be released or gone on from."""

    @abstractmethod
    def fit(self, *, last: bool = False) -> Program[None]:
        """Program that fits the model to all tables: few steps between two rounds, to the end after the `last` one."""

    @abstractmethod
    def marginals(self, cliques: Sequence[Clique]) -> Sequence[NDArray[np.floating[Any]]]:
        """Return a sequence of arrays, one a clique: its cells' probabilities under the last fit, axes in its order."""

    def expected(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """Return a list of arrays, one a clique: its cells' expected counts, in records, under the last fit."""
        return [np.asarray(table * self.total, np.float64) for table in self.marginals(cliques)]

    def fitting(self, cliques: Mapping[Clique, float]) -> dict[Clique, float]:
        """Return the dict of those candidates in `cliques`, {clique: weight}, that the model can take in; here all.

        Others would make it too large.
        """
        return dict(cliques)

    @abstractmethod
    def stratum(self, public: Public, prior: float) -> Program[Learner[M]]:
        """Program that returns the learner of a stratum with the facts `public`, started from this learner's model.

        That model weighs as much as `prior` records in its fits; a learner without such a pull, as GEM's, only starts
        from it.
        """

    @abstractmethod
    def conditioned(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> M:
        """Return the model of the last fit with allowed levels alone, in the columns of `schema`, with no others.

        `levels` maps columns to lists of the level numbers allowed; a column that it lacks keeps all.
        """


class Poolable(Mechanism[M]):
    """A mechanism that strata can go on from; it declares `merges`, `learned` and `candidates` instead of `steps`."""

    grows: ClassVar[bool] = False
    """True if the model grows with its budget, as by rounds, so that everybody's is worth more of it in `Pooled`."""

    @property
    @abstractmethod
    def merges(self) -> bool:
        """True if strata may merge levels, so that a column varies in them that everybody's model lacks."""

    @abstractmethod
    def learned(self, public: Public, allot: Allotment, rng: Generator) -> Program[Learner[M]]:
        """Return a program on public facts, for the allotment, by `rng`: it ends with the learner strata start from."""

    @abstractmethod
    def candidates(self, public: Public, rho: float) -> Mapping[Clique, float]:
        """Return {clique: weight} of the tables that a stratum may measure with `rho`, by public facts.

        A clique is a tuple of columns' names.
        """

    def stratum_rounds(self, usual: int) -> int:
        """Return a stratum's number of rounds; `usual`, the one by public sizes, unless a subclass has its own."""
        return usual

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[M]:
        """Program on public facts, of `learned` for the allotment, by `rng`; returns the learner's model."""
        return (yield from self.learned(public, allot, rng)).model

    @once
    def foresee(self, public: Public, rho: float) -> tuple[Mapping[Clique, float], Mapping[Clique, float], int]:
        """Return ({clique: weight} of a stratum's candidates, {clique: weight} of those affordable at `rho`, rounds).

        The last is a number. All follow from public facts. If no candidate is affordable, the stratum measures nothing
        and keeps everybody's model.
        """
        schema, size = public.schema, public.size or 0
        every, cells = _small(schema, tuple(self.candidates(public, rho).items()))
        rounds = self.stratum_rounds(usual_rounds(len(schema.names), size, rho))
        # noise scale of a table at the price of one round
        sigma = table_sigma(MEASURE * rho / rounds, schema, public.neighbours)
        return every, worth_measuring(every, cells, sigma, size), rounds


@lru_cache(maxsize=8)
def _small(
    schema: Schema, candidates: tuple[tuple[Clique, float], ...]
) -> tuple[Mapping[Clique, float], Mapping[Clique, int]]:
    """Return ({clique: weight} of candidates of at most `MOST_CELLS` cells in a schema, {clique: cells} of all).

    `candidates` are (clique, weight) pairs.
    """
    cells = cells_of(schema, tuple(clique for clique, _ in candidates))
    return {clique: weight for clique, weight in candidates if cells[clique] <= MOST_CELLS}, cells
