"""The contract of a source of weights: one class says all that other code has to know of it.

A new source is a file here with such a class, and a constructor and a place in the list of `weights/sources.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from stratsynth.checks import check_citation
from stratsynth.errors import WeightsError
from stratsynth.schema import Schema
from stratsynth.strata import Stratum
from stratsynth.weights.resolved import Resolved

if TYPE_CHECKING:
    from stratsynth.weights.sources import Place, Weights


class Basis(ABC):
    """The figures that shares are worked out from: a table, a sample, or other weights."""

    @property
    @abstractmethod
    def origins(self) -> tuple[Any, ...]:
        """The files, frames and tables that it was read from: none of them may be the private table."""

    @abstractmethod
    def columns(self, by: Sequence[str]) -> tuple[str, ...]:
        """The strata's columns that it knows."""

    @abstractmethod
    def resolve(self, strata: Sequence[Stratum], schema: Schema | None) -> Resolved:
        """The share of each stratum of a full crossing."""

    @property
    def parts(self) -> tuple[Weights, ...]:
        """The weights that it is made of, or planned by."""
        return ()

    @property
    def asked(self) -> float:
        """The part of the budget that answers about the confidential rows cost; 0 where none is asked."""
        return 0.0

    @property
    def informative(self) -> bool:
        """True where sizes are known before anything is asked."""
        return True


@dataclass(frozen=True)
class Key:
    """One key of a recipe's section [weights]."""

    kind: Any
    """The type of its value."""
    help: str
    """Its meaning, for messages and for the reference."""
    needed: bool = False
    """True where the source cannot do without it."""


PATH = Key(str, "a CSV file with the strata's columns and `share` or `count`", needed=True)
CITATION = Key(str, "where the shares were published")


class ShareSource(ABC):
    """One source of weights, by its name. Where a class declares nothing, the pessimistic default holds."""

    name: ClassVar[str]
    """The name in recipes, in certificates, and in `Weights.source`."""
    words: ClassVar[str]
    """The origin of the groups' shares, as a page says it."""
    keys: ClassVar[Mapping[str, Key]]
    """The keys of a recipe's section [weights]."""
    rank: ClassVar[int] = 3
    """Distance of the figures from public ones: 0 for published ones, 3 for confidential ones without noise."""
    exact: ClassVar[bool] = False
    """True where the shares are taken for exact: neither sample nor noise is behind them."""
    known: ClassVar[bool] = False
    """True where a fit without strata may take the shares as public before anything is asked."""
    of_rows: ClassVar[bool] = False
    """True where the shares are those of the very rows that are fitted."""
    raked: ClassVar[bool] = False
    """True where the figures may be a margin of raked weights."""
    countable: ClassVar[bool] = False
    """True where rows are behind the shares, so that those of any columns can be counted."""
    samples: ClassVar[bool] = False
    """True where intervals from `Release.samples` were found to hold with it."""
    discloses: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """For each name under `unprotected` that only this source lists: what it is about, and a sentence."""

    @abstractmethod
    def read(self, section: Mapping[str, Any], place: Place) -> Weights:
        """The weights that a section of a recipe describes; its keys have been checked."""

    def grade(self, weights: Weights) -> tuple[int, str]:
        """The rank of these weights, and their name as the worst part of others."""
        return self.rank, self.name

    def stated(self, weights: Weights) -> dict[str, Any]:
        """Further entries of the certificate, beside source and citation."""
        return {}

    def made(self, citation: str, given: Basis, unprotected: tuple[str, ...] = ()) -> Weights:
        """Weights of this source."""
        from stratsynth.weights.sources import Weights  # which lists all sources

        return Weights(self.name, citation, given, unprotected)


def is_weights(value: object) -> bool:
    """True for weights; anything may be handed in for them."""
    from stratsynth.weights.sources import Weights

    return isinstance(value, Weights)


def cited(citation: str) -> str:
    """A citation that names a source."""
    return check_citation("weights", citation, error=WeightsError)


def is_text(citation: object) -> bool:
    """True for a citation that has any words."""
    return isinstance(citation, str) and bool(citation.strip())
