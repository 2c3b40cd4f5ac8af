"""What rounds of choosing and measuring teach: noisy tables, and the model that is fitted to them again and again."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine import Measured
from stratsynth.adapters.shared.fit_inputs import records
from stratsynth.adapters.shared.known import LAST_SURER, SURER, believed, doubted, doubts
from stratsynth.questions import Clique, Program

if TYPE_CHECKING:
    from stratsynth.mechanisms import Public
    from stratsynth.mechanisms.known import Known
    from stratsynth.schema import Schema

M = TypeVar("M")


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
