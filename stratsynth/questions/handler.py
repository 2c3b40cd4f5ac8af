"""How one kind of question is answered: what is read for it, with which noise, how the answer is kept and compared.

There is one handler for each kind, in the file of that kind, and one table of them, `stratsynth.driver.handlers`.
Handlers are the only code beside the backends that sees exact answers. Validation and price are the question's own
(`check`, `charges`): these two and everything here are what a new kind of question has to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import Neighbours
from stratsynth.errors import Unsupported
from stratsynth.questions.base import Answer, Clique, Question
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator

    from stratsynth.noise import Entropy
    from stratsynth.questions.counts import NoisyTable
    from stratsynth.questions.sums.base import Query
    from stratsynth.questions.sums.published import PublishedSum
    from stratsynth.schema import Schema

Q = TypeVar("Q", bound=Question)
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PublicColumns:
    """PublicColumns as they are, row by row."""

    size: int
    """The number of rows."""
    codes: Mapping[str, NDArray[Any]]
    """The level number of each row, one array a column."""
    numbers: Mapping[str, NDArray[np.float64]]
    """For numeric columns, the value within its bounds; NaN where there is none."""


class Rows(Protocol):
    """The reads that a backend must be able to do. Exact answers: nobody but the driver may call it."""

    def counts(self, asked: Sequence[tuple[StratumPath, Sequence[Clique]]]) -> list[list[Ints]]:
        """For each path, the exact contingency table of each clique, in one pass for all paths together."""

    def sums(self, asked: Sequence[tuple[StratumPath, Query, float]], entropy: Entropy) -> list[list[Ints]]:
        """For each path, query and rate, the exact sum of each block in units of its grid, every row counting 1.

        Handlers multiply by the weight of a row, where it cannot wrap around 64 bits unnoticed.
        A rate below 1 draws a fresh Poisson sample: a coin of its own for each row.
        """

    def columns(self, path: StratumPath, names: Sequence[str]) -> PublicColumns:
        """Some columns of all rows of a path, in the order of the rows: for `PublicRows` only."""

    def frame(self, path: StratumPath) -> pd.DataFrame:
        """All rows of a path, as level numbers: for third-party code only."""


@dataclass(frozen=True)
class Wanted:
    """What has to be read for a question."""

    cliques: Sequence[Clique] = ()
    """Contingency tables."""
    again: bool = False
    """Whether the same tables are likely to be wanted at a later moment, so that keeping them pays."""
    once: bool = False
    """Whether the handler remembers what later moments need of the tables, which are then wanted no more."""
    sums: Sequence[tuple[Query, float]] = ()
    """Clipped sums, each with the probability with which a row takes part."""
    columns: Sequence[str] = ()
    """PublicColumns of all rows."""
    frame: bool = False
    """The rows themselves."""


@dataclass(frozen=True)
class Exact:
    """What was read, in the order of `Wanted`. As private as the rows."""

    tables: Sequence[Ints] = field(default=(), repr=False)
    """The tables wanted."""
    sums: Sequence[Sequence[Ints]] = field(default=(), repr=False)
    """The sums wanted, each a list of numbers."""
    columns: PublicColumns | None = field(default=None, repr=False)
    """The columns wanted."""
    frame: pd.DataFrame | None = field(default=None, repr=False)
    """The rows themselves, where they are wanted."""


@dataclass(frozen=True)
class Setting:
    """Where a question is asked: everything but the question and the rows."""

    schema: Schema
    """The columns that vary at its path."""
    neighbours: Neighbours
    """What questions are priced for."""

    def __post_init__(self) -> None:
        """An attribute that changes is priced as a record exchanged, whoever asks."""
        object.__setattr__(self, "neighbours", self.neighbours.priced)


@dataclass(frozen=True)
class Seen:
    """One question of a simulated run, as a plan reports it."""

    path: StratumPath
    kind: str
    cliques: tuple[tuple[Clique, int, float], ...] = ()
    """For counts: columns, number of cells and sigma of each table."""
    cells: int = 0
    """The numbers it is about."""
    candidates: frozenset[tuple[Clique, int]] = frozenset()
    """For a choice among tables: their columns and number of cells."""


@dataclass
class Kept:
    """Parts of an answer in the journal: plain facts, and arrays by their place among the parts."""

    facts: Any
    arrays: list[NDArray[Any]] = field(default_factory=list)


class Handler(ABC, Generic[Q]):
    """Everything that is done with one kind of question, but for checking and pricing it."""

    kind: ClassVar[type[Question]]
    reads: ClassVar[frozenset[str]] = frozenset()
    """Which reads of a backend every question of this kind needs: `tables`, `sums`, `columns`, `frame`."""

    def declared(self, question: Q) -> frozenset[type[Question]]:
        """The kinds of questions that a mechanism must have in its `needs` to ask this one."""
        return frozenset({type(question)})

    def wanted(self, question: Q) -> Wanted:
        """What has to be read for a question; by default nothing."""
        return Wanted()

    def remembers(self, question: Q, memory: Mapping[Any, Any]) -> bool:
        """Whether `memory` is enough to answer by, so that nothing has to be read; by default it is not."""
        return False

    @abstractmethod
    def answer(self, question: Q, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> Answer:
        """The noisy answer. `memory` lasts as long as the rows of the path, and is as private."""

    @abstractmethod
    def tv_error(self, question: Q, at: Setting) -> float:
        """Total variation between the noise as sampled, tails cut off, and as priced; 0 where sampling is exact."""

    def simulate(self, question: Q, at: Setting, path: StratumPath, rows: float, rng: Generator) -> tuple[Answer, Seen]:
        """A made-up answer about this many evenly spread rows, and what a plan reports."""
        raise Unsupported(f"a plan cannot simulate {type(question).__name__}.")

    @abstractmethod
    def keep(self, answer: Answer) -> Kept | None:
        """An answer for the journal; None where it must not be kept, and so cannot be given again."""

    @abstractmethod
    def recall(self, kept: Kept) -> Answer:
        """The answer that `keep` was given."""

    def replayed(self, question: Q) -> Any:
        """What has to be the same for a kept answer to be given again, beside the path and the charges.

        Numbers that a program works out from earlier answers do not belong to it: another processor rounds them
        otherwise, and an interrupted fit could not go on there. A kept answer was paid for as the answer to the
        question of then, and giving it again is post-processing. By default the whole question.
        """
        return question

    def released(self, question: Q, schema: Schema, answer: Answer) -> Sequence[NoisyTable | PublishedSum]:
        """The tables and sums that the release publishes among its measurements; by default none."""
        return ()

    def records(self, question: Q, schema: Schema, answer: Answer) -> Sequence[tuple[float, float]]:
        """The numbers of all its records that the answer gives, each with the standard deviation of its noise."""
        return ()

    def unverified(self, question: Q) -> str:
        """What a reader must be told of a question whose privacy rests on somebody's word; empty otherwise."""
        return ""

    # For `stratsynth.testing`: what the contract compares on neighbouring tables.

    @abstractmethod
    def shape(self, answer: Answer) -> Any:
        """What may be known of an answer without its values: shapes, types, noise."""

    @abstractmethod
    def cost(self, question: Q, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """What telling two tables apart by this answer costs, in the fit's currency: at most what was charged."""

    def standard_noise(self, question: Q, at: Setting, exact: Exact, answer: Answer) -> list[NDArray[np.float64]]:
        """The noise that was added, in units of the noise that was declared; empty where it has no such unit."""
        return []


def frozen(values: Ints) -> Ints:
    """An answer cannot be written to: a journal and a mechanism may hold the same array."""
    values.flags.writeable = False
    return values


def squared(x: Ints, y: Ints) -> int:
    """The exact squared distance of two integer arrays."""
    return int(((x.astype(object) - y.astype(object)) ** 2).sum())
