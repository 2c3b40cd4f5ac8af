"""The base of all questions: one class a kind, in a file of its own, says everything that is done with that kind.

A question is a frozen dataclass. It checks itself against the schema and says what it costs, without a row; it says
what has to be read for it, adds the noise to what was read, and says how its answer is simulated, kept and compared.
Its methods beside the backends' are the only code that sees exact answers, and it is known by its exact class: a class
derived from one could restate its sensitivity. What a program asks is copied before it is checked (`admission`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.prices import DEAREST
from stratsynth.checks import number
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.reading import Clique, Exact, Ints, Wanted
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from numpy.random import Generator as Randomness

    from stratsynth.noise import Entropy
    from stratsynth.questions.counts import NoisyTable
    from stratsynth.questions.sums.published import PublishedSum
    from stratsynth.schema import Schema

R = TypeVar("R")

Answer = Any
"""The object that a program is sent; the helpers `counts`, `choose`, `total`, `split` and `work` give it its type."""

Program = Generator["Question", Answer, R]
"""A mechanism at work: yields questions, is sent answers, returns a result."""


@dataclass(frozen=True)
class Setting:
    """Where a question is asked: everything but the question and the rows."""

    schema: Schema
    """The columns that vary at its path."""
    neighbours: Neighbours
    """The neighbours that questions are priced for."""

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


class Question(ABC):
    """One kind of question."""

    dearest: ClassVar[Mapping[Currency, int]] = DEAREST
    """By currency, the largest price factor under replace-one; by default that of a sensitivity that doubles."""
    reads: ClassVar[frozenset[str]] = frozenset()
    """The reads of a backend that every question of this kind needs: `tables`, `sums`, `columns`, `frame`."""

    # Before a row is read: public facts alone.

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Refuse what cannot be answered, from the schema alone and before anything is charged.

        Raises:
            MechanismError: A malformed question.
            Unsupported: A sound question that is too large.
        """

    @abstractmethod
    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """The charges that the ledger records when this is asked at a path whose rows have this schema."""

    def needs(self) -> frozenset[type[Question]]:
        """The kinds of questions that a mechanism must declare to ask this one."""
        return frozenset({type(self)})

    def wanted(self) -> Wanted:
        """The reads that answer it; by default none."""
        return Wanted()

    @abstractmethod
    def tv_error(self, at: Setting) -> float:
        """Total variation between the noise as sampled, tails cut off, and as priced; 0 where sampling is exact."""

    def unverified(self) -> str:
        """A sentence for the reader where privacy rests on somebody's word; empty otherwise."""
        return ""

    def replayed(self) -> Any:
        """The part of it that has to be equal for a kept answer to be given again, beside the path and the charges.

        Numbers that a program works out from earlier answers do not belong to it: another processor rounds them
        otherwise, and an interrupted fit could not go on there. A kept answer was paid for as the answer to the
        question of then, and giving it again is post-processing. By default the whole question.
        """
        return self

    def spelled(self) -> Any:
        """All of it, for the journals of 0.1.0 and 0.2.0, which know questions by every number."""
        return self

    # With exact answers, inside the driver.

    def remembers(self, memory: Mapping[Any, Any]) -> bool:
        """True if `memory` is enough to answer by, so that nothing has to be read; by default it is not."""
        return False

    @abstractmethod
    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> Answer:
        """The noisy answer. `memory` lasts as long as the rows of the path, and is as private."""

    # Answers afterwards: for plans, the journal and the release.

    def simulate(self, at: Setting, path: StratumPath, rows: float, rng: Randomness) -> tuple[Answer, Seen]:
        """A made-up answer about this many evenly spread rows, and a plan's report of it."""
        raise Unsupported(f"a plan cannot simulate {type(self).__name__}.")

    @classmethod
    @abstractmethod
    def keep(cls, answer: Answer) -> Kept | None:
        """An answer for the journal; None where it must not be kept, and so cannot be given again."""

    @classmethod
    @abstractmethod
    def recall(cls, kept: Kept) -> Answer:
        """The answer that `keep` was given."""

    def released(self, schema: Schema, answer: Answer) -> Sequence[NoisyTable | PublishedSum]:
        """The tables and sums that the release publishes among its measurements; by default none."""
        return ()

    def records(self, schema: Schema, answer: Answer) -> Sequence[tuple[float, float]]:
        """The numbers of all its records that the answer gives, each with the standard deviation of its noise."""
        return ()

    # For `stratsynth.testing`: the contract compares these on neighbouring tables.

    @classmethod
    @abstractmethod
    def shape(cls, answer: Answer) -> Any:
        """The public part of an answer: shapes, types, noise; no value."""

    @abstractmethod
    def cost(self, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """The cost of telling two tables apart by this answer, in the fit's currency: at most what was charged."""

    def standard_noise(self, at: Setting, exact: Exact, answer: Answer) -> list[NDArray[np.float64]]:
        """The noise that was added, in units of the noise that was declared; empty where it has no such unit."""
        return []


class Unkept(Question):
    """The kinds whose answers are neither kept nor compared, and have no noise of ours."""

    def tv_error(self, at: Setting) -> float:
        """Zero."""
        return 0.0

    @classmethod
    def keep(cls, answer: Answer) -> None:
        """Nothing."""

    @classmethod
    def recall(cls, kept: Kept) -> Answer:
        """Never: nothing was kept."""
        raise cls.refusal()

    @classmethod
    def shape(cls, answer: Answer) -> Any:
        """Never: an answer's public part is not known."""
        raise cls.refusal()

    def cost(self, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """Never: such an answer has no price of ours."""
        raise self.refusal()

    @classmethod
    def refusal(cls) -> Unsupported:
        """The refusal to keep or to compare an answer of this kind."""
        return Unsupported(f"{cls.__name__.lower()}: its answers are neither kept nor compared.")


def read_only(arrays: Iterable[NDArray[Any]]) -> None:
    """Make the arrays of an answer such that nobody can write to them: a journal and a mechanism may hold the same."""
    for array in arrays:
        array.flags.writeable = False


def squared(x: Ints, y: Ints) -> int:
    """The exact squared distance of two integer arrays."""
    return int(((x.astype(object) - y.astype(object)) ** 2).sum())


def fixed(values: Any, kinds: str = "fiu") -> Any:
    """A plain array of these kinds as one that nobody can write to; anything else as it is, for the check to refuse."""
    if type(values) is not np.ndarray or values.dtype.kind not in kinds:
        return values
    base: Any = values.base
    if type(base) is bytes and values.flags.c_contiguous and len(base) == values.nbytes:
        return np.ndarray(values.shape, values.dtype, base)  # the form is new, and the contents cannot change
    return np.ndarray(values.shape, values.dtype, values.tobytes())  # bytes can never be made writeable


def is_plain(values: Any) -> bool:
    """True for numpy's own array of float64: a subclass could hide values from checks, as masks do."""
    return type(values) is np.ndarray and values.dtype == np.float64


def is_plain_tuple(values: object, *kinds: type) -> bool:
    """True for a tuple of such items, by exact class.

    One of another class could hold one thing where it is checked and priced, and another where it is read.
    """
    return type(values) is tuple and all(type(value) in kinds for value in values)


def check_clique(what: str, clique: Clique, schema: Schema) -> None:
    """A clique is a tuple of different columns that vary where it is asked."""
    if not is_plain_tuple(clique, str, np.str_) or not clique or len(set(clique)) < len(clique):
        raise MechanismError(f"{what}: {clique!r} is not a tuple of different columns.")
    unknown = [column for column in clique if column not in schema.columns]
    if unknown:
        raise MechanismError(f"{what}: column {unknown[0]!r} is not in the schema, or is constant in this stratum.")


def check_positive(what: str, value: float) -> None:
    """A price, a clip or a weight is a positive, finite number."""
    number(what, value, above=0, error=MechanismError)


def shared(amount: float, weights: tuple[float, ...]) -> list[float]:
    """An amount split by weights; the parts add up to at most the amount."""
    if len(weights) == 1:
        return [amount]
    total = math.fsum(weights) * (1 + 1e-15)
    return [amount * (w / total) for w in weights]


def check_weights(what: str, weights: tuple[float, ...] | None, number: int) -> None:
    """One positive weight for each part, if weights are given."""
    if weights is None:
        return
    if type(weights) is not tuple or len(weights) != number:
        raise MechanismError(f"{what}: {len(weights)} weights for {number} parts.")
    for weight in weights:
        check_positive(f"{what}: a weight", weight)
        if not 1e-100 < weight < 1e100:
            raise MechanismError(f"{what}: a weight of {weight:g} is out of all proportion.")
