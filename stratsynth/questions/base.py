"""What every question is: something that can be checked, and priced, without a row."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.prices import DEAREST
from stratsynth.checks import number
from stratsynth.errors import MechanismError
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from stratsynth.schema import Schema

R = TypeVar("R")
Clique = tuple[str, ...]
"""Columns that are counted together, in the order of the table's axes."""


class Question(ABC):
    """One kind of question: a frozen dataclass that checks itself against the schema, and says what it will cost.

    How rows answer it, and with which noise, says its handler; see `stratsynth.questions.handler`.
    """

    dearest: ClassVar[Mapping[Currency, int]] = DEAREST
    """By currency, the largest price factor under replace-one; by default that of a sensitivity that doubles."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Refuse what cannot be answered, from the schema alone and before anything is charged.

        Raises:
            MechanismError: What is malformed.
            Unsupported: What is sound, and too large.
        """

    @abstractmethod
    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """What the ledger records when this is asked at a path whose rows have this schema."""


Answer = Any
"""What a program is sent; the helpers `counts`, `choose`, `total`, `split` and `work` give it its type."""

Program = Generator[Question, Answer, R]
"""A mechanism at work: yields questions, is sent answers, returns a result."""


def fixed(values: Any, kinds: str = "fiu") -> Any:
    """A plain array of these kinds as one that nobody can write to; anything else as it is, for the check to refuse.

    What is checked before the charge is then what is used after it.
    """
    import numpy as np

    if type(values) is not np.ndarray or values.dtype.kind not in kinds:
        return values
    return np.ndarray(values.shape, values.dtype, values.tobytes())  # bytes can never be made writeable


def is_plain(values: Any) -> bool:
    """Whether this is numpy's own array of float64: a subclass could hide values from checks, as masks do."""
    import numpy as np

    return type(values) is np.ndarray and values.dtype == np.float64


def check_unwritten(thing: object) -> None:
    """Refuse an object that holds more than its fields: a method that is written into it would replace its class's.

    Objects are known by their exact class, whose methods check, price and read them. It is frozen, but a program that
    holds it can write into it all the same.
    """
    kind = type(thing)
    if is_dataclass(kind) and not vars(thing).keys() <= _names(kind):
        raise MechanismError(f"{type(thing).__name__}: something was written into it that is none of its fields.")


@lru_cache(maxsize=256)
def _names(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


def is_plain_tuple(values: object, *kinds: type) -> bool:
    """Whether this is a tuple of such items, by exact class.

    One of another class could hold one thing where it is checked and priced, and another where it is read.
    """
    return type(values) is tuple and all(type(value) in kinds for value in values)


def check_clique(what: str, clique: Clique, schema: Schema) -> None:
    """A clique is a tuple of different columns that vary where it is asked."""
    import numpy as np

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
