"""The base of all questions: one class for each kind, with everything that is done with it in one file.

A question is a frozen dataclass. Without a row, it checks itself against the schema and states its charges and
reads; it adds the noise to the exact answer, and defines how its answer is simulated, kept and compared.
Its methods and the backends' are the only code that sees exact answers. It is identified by its exact class: a class
derived from one could restate its sensitivity. What a program asks is copied before it is checked (`admission`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from stratsynth.accounting.budget import IN_RHO, Currency, Neighbours
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
"""Object that a program is sent; the helpers `counts`, `choose`, `total`, `split` and `work` give it its type."""

Program = Generator["Question", Answer, R]
"""A mechanism in progress: a generator that yields questions, is sent answers, and returns a result."""


@dataclass(frozen=True)
class Setting:
    """Place of a question: the schema and the neighbours at its path."""

    schema: Schema
    """Columns that vary at the path."""
    neighbours: Neighbours
    """Notion of neighbour whose sensitivities are used for noise and price."""

    def __post_init__(self) -> None:
        """Replace `attribute` by `replace`, whose sensitivities and prices hold for it."""
        object.__setattr__(self, "neighbours", self.neighbours.priced)


@dataclass(frozen=True)
class Seen:
    """One question of a simulated run, as a plan reports it."""

    path: StratumPath
    kind: str
    cliques: tuple[tuple[Clique, int, float], ...] = ()
    """Columns, number of cells and sigma of each table, of a question for counts."""
    cells: int = 0
    """Number of cells or coordinates that are read."""
    candidates: frozenset[tuple[Clique, int]] = frozenset()
    """Columns and number of cells of each candidate table, of a choice."""


@dataclass
class Kept:
    """Parts of an answer in the journal: plain facts, and arrays by their index."""

    facts: Any
    arrays: list[NDArray[Any]] = field(default_factory=list)


class Question(ABC):
    """One kind of question."""

    dearest: ClassVar[Mapping[Currency, int]] = DEAREST
    """Largest ratio of the price under replace-one to that under add-remove, by currency; by default, sensitivity
    doubles."""
    reads: ClassVar[frozenset[str]] = frozenset()
    """Reads of a backend that every question of this kind needs, of `tables`, `sums`, `columns` and `frame`."""

    # Before a row is read: public facts alone.

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Refuse a question that the schema does not allow to be answered, before anything is charged.

        Raises:
            MechanismError: A malformed question.
            Unsupported: A sound question that is too large.
        """

    def exactly(self) -> Question:
        """Return the question with noise that the exact curve of Gaussian noise prices; Unsupported for other noise."""
        if getattr(self, "currency", None) not in IN_RHO:
            raise Unsupported(f'budget: accounting = "exact" does not price this {type(self).__name__}; leave it out.')
        return replace(self, currency=Currency.EXACT)  # type: ignore[type-var]

    @abstractmethod
    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """Return a tuple of each `Charge` that it makes at a path with this schema, per row, for `neighbours`."""

    def needs(self) -> frozenset[type[Question]]:
        """Return the question classes that a mechanism must list in `needs` to ask this one; by default its own."""
        return frozenset({type(self)})

    def wanted(self) -> Wanted:
        """Return a `Wanted`, which names the tables, sums and columns to be read for the answer; by default none."""
        return Wanted()

    @abstractmethod
    def tv_error(self, at: Setting) -> float:
        """Return the total variation, a float, of sampled and priced noise at a Setting, over all draws; 0 if exact."""

    def unverified(self) -> str:
        """Return a sentence for the certificate if privacy rests on an unproven claim; otherwise an empty text."""
        return ""

    def replayed(self) -> Any:
        """Return the part that must be equal for a journalled answer to be given again, beside path and charges.

        Numbers that a program computed from earlier answers are not part of it: another processor rounds them
        differently, and an interrupted fit could not be resumed there. A journalled answer was paid for when it was
        drawn, and giving it again is post-processing. By default the whole question.
        """
        return self

    def spelled(self) -> Any:
        """Return an equal question with every number written out, to digest for journal keys of 0.1.0 and 0.2.0."""
        return self

    # With exact answers, inside the driver.

    def remembers(self, memory: Mapping[Any, Any]) -> bool:
        """True if `memory`, the results kept for its path, suffices for the answer without a read; False by default."""
        return False

    @abstractmethod
    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> Answer:
        """Return `exact` reads plus noise by `entropy`, at a Setting; `memory`: a path's cache, as private as rows."""

    # Answers afterwards: for plans, the journal and the release.

    def simulate(self, at: Setting, path: StratumPath, rows: float, rng: Randomness) -> tuple[Answer, Seen]:
        """Return (answer by `rng` to `rows` even rows, `at` a Setting; a plan's `Seen` at `path`); else Unsupported."""
        raise Unsupported(f"a plan cannot simulate {type(self).__name__}.")

    @classmethod
    @abstractmethod
    def keep(cls, answer: Answer) -> Kept | None:
        """Return an answer's facts and arrays for the journal; None if it must not be kept, and so is not replayed."""

    @classmethod
    @abstractmethod
    def recall(cls, kept: Kept) -> Answer:
        """Return the answer, equal to the one that `keep` was given, from the `Kept` parts that the journal stored."""

    def released(self, schema: Schema, answer: Answer) -> Sequence[NoisyTable | PublishedSum]:
        """Return a release's noisy tables and sums of an `answer` by `schema`; by default none, ()."""
        return ()

    def records(self, schema: Schema, answer: Answer) -> Sequence[tuple[float, float]]:
        """Return (noisy number of records, its noise's deviation) pairs of an `answer` by `schema`; by default ()."""
        return ()

    # For `stratsynth.testing`: the contract compares these on neighbouring tables.

    @classmethod
    @abstractmethod
    def shape(cls, answer: Answer) -> Any:
        """Return the public part of an answer as plain values: shapes, types, noise scales; nothing from rows."""

    @abstractmethod
    def cost(self, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """Return the price, a Fraction, at a Setting, of telling exact reads `here` from `there` by this answer."""

    def standard_noise(self, at: Setting, exact: Exact, answer: Answer) -> list[NDArray[np.float64]]:
        """Return a list of arrays: (`answer` - `exact`) / declared noise scale, `at` a Setting; [] without a scale."""
        return []


class Unkept(Question):
    """Base of kinds whose answers are neither kept nor compared, and have no noise of this package."""

    def tv_error(self, at: Setting) -> float:
        """Return 0.0, `at` any Setting: total variation, sampled to priced noise; none is drawn here."""
        return 0.0

    @classmethod
    def keep(cls, answer: Answer) -> None:
        """Return None in place of the parts for the journal: the answer is not kept."""

    @classmethod
    def recall(cls, kept: Kept) -> Answer:
        """Raise Unsupported always: no answer of this kind was kept."""
        raise cls.refusal()

    @classmethod
    def shape(cls, answer: Answer) -> Any:
        """Raise Unsupported always: the public part of such an answer is not known."""
        raise cls.refusal()

    def cost(self, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """Raise Unsupported at any Setting, for any `Exact` reads `here`, `there`, and `answer`: there is no price."""
        raise self.refusal()

    @classmethod
    def refusal(cls) -> Unsupported:
        """Return, without raising it, the Unsupported error that refuses to keep or to compare answers of this kind."""
        return Unsupported(f"{cls.__name__.lower()}: its answers are neither kept nor compared.")


def read_only(arrays: Iterable[NDArray[Any]]) -> None:
    """Make the arrays of an answer read-only: a journal and a mechanism may hold the same ones."""
    for array in arrays:
        array.flags.writeable = False


def squared(x: Ints, y: Ints) -> int:
    """Return the sum of squared differences of integer arrays `x`, `y` of one length, as an unlimited Python int."""
    return int(((x.astype(object) - y.astype(object)) ** 2).sum())


def fixed(values: Any, kinds: str = "fiu") -> Any:
    """Return a read-only copy of a plain array whose dtype is of `kinds`, as "fiu"; other values as they are."""
    if type(values) is not np.ndarray or values.dtype.kind not in kinds:
        return values
    base: Any = values.base
    if type(base) is bytes and values.flags.c_contiguous and len(base) == values.nbytes:
        return np.ndarray(values.shape, values.dtype, base)  # a new view, of contents that cannot change
    return np.ndarray(values.shape, values.dtype, values.tobytes())  # bytes can never be made writeable


def is_plain(values: Any) -> bool:
    """True for a plain numpy array of float64: a subclass could hide values from checks, as masks do."""
    return type(values) is np.ndarray and values.dtype == np.float64


def is_plain_tuple(values: object, *kinds: type) -> bool:
    """True if `values` is a tuple whose items each have one of the exact classes `kinds`.

    A derived class could have one value when it is checked and priced, and another when it is read.
    """
    return type(values) is tuple and all(type(value) in kinds for value in values)


def check_clique(what: str, clique: Clique, schema: Schema) -> None:
    """Raise MechanismError on `what` unless `clique` is a non-empty tuple of different columns of the schema."""
    if not is_plain_tuple(clique, str, np.str_) or not clique or len(set(clique)) < len(clique):
        raise MechanismError(f"{what}: {clique!r} is not a tuple of different columns.")
    unknown = [column for column in clique if column not in schema.columns]
    if unknown:
        raise MechanismError(f"{what}: column {unknown[0]!r} is not in the schema, or is constant in this stratum.")


def check_positive(what: str, value: float) -> None:
    """Raise MechanismError, beginning with `what`, for a value that is not a positive, finite number."""
    number(what, value, above=0, error=MechanismError)


def shared(amount: float, weights: tuple[float, ...]) -> list[float]:
    """Return a list: `amount` split in proportion to `weights`; its parts add up to at most that, rounding included."""
    if len(weights) == 1:
        return [amount]
    total = math.fsum(weights) * (1 + 1e-15)
    return [amount * (w / total) for w in weights]


def check_weights(what: str, weights: tuple[float, ...] | None, number: int) -> None:
    """Raise MechanismError on `what` unless `weights` is None or a tuple of `number` numbers in (1e-100, 1e100)."""
    if weights is None:
        return
    if type(weights) is not tuple or len(weights) != number:
        raise MechanismError(f"{what}: {len(weights)} weights for {number} parts.")
    for weight in weights:
        check_positive(f"{what}: a weight", weight)
        if not 1e-100 < weight < 1e100:
            raise MechanismError(f"{what}: a weight of {weight:g} is out of all proportion.")
