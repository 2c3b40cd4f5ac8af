"""Mechanisms that `Pooled` takes as its base: strata can go on from the model that they fit to everybody."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from stratsynth.adapters.shared.learner import Learner, M
from stratsynth.adapters.shared.rounds import MEASURE, usual_rounds, worth_measuring
from stratsynth.adapters.shared.workload import cells_of
from stratsynth.mechanisms import Mechanism, Public, once
from stratsynth.questions import Clique, Program
from stratsynth.questions.counts import table_sigma

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment
    from stratsynth.schema import Schema

MOST_CELLS = 2**12
"""The most cells of a marginal that a stratum measures."""


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
