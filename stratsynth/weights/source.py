"""The contract of a source of weights, and what all of them come down to: shares matched to strata.

One class says all that other code has to know of a source.

A new source is a file here with such a class, and a constructor and a place in the list of `weights/sources.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from stratsynth.errors import WeightsError
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, impossible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.weights.sources import Place, Weights


Range = tuple[float, float]
"""The least and the most that a share may be."""


@dataclass(frozen=True)
class Resolved:
    """Shares matched to strata, scaled to add up to one."""

    shares: Mapping[Stratum, float]
    total: float = 1.0
    """What the given shares added up to before they were scaled."""
    ranges: Mapping[Stratum, Range] | None = None
    """Where the shares may lie, if the source says so or is a sample; None where it says nothing."""
    sampled: float | None = None
    """The size of the sample behind the shares, in people; None where there is no sample."""
    noise: Mapping[Stratum, float] | None = None
    """For noisy counts, the standard deviation of each count's noise, as a part of the total; None for others."""
    of_rows: bool = False
    """Whether they are shares of the very rows that are fitted: their composition is then sampling error."""
    removed: float = 0.0
    """What the source gave to strata that no row can be in, as a part of the total, before that was taken away."""

    @property
    def covariance(self) -> NDArray[np.float64] | None:
        """That of the shares' errors, in the order of the strata; None where they are exact, or taken for it.

        Public figures are taken for exact, and so are raked ones: what a sample that was raked upon adds to their
        error is not known here.
        """
        from stratsynth.models.intervals import noisy_shares_covariance, sampled_shares_covariance

        shares = list(self.shares.values())
        if self.sampled is not None:
            return sampled_shares_covariance(shares, self.sampled)
        if self.noise is not None:
            return noisy_shares_covariance(shares, [self.noise[stratum] for stratum in self.shares])
        return None

    def without(self, strata: AbstractSet[Stratum]) -> Resolved:
        """No share for strata that no row can be in, and those of all others scaled to add up to one.

        Raises:
            WeightsError: Where nothing is left.
        """
        if not strata:
            return self
        left = math.fsum(share for s, share in self.shares.items() if s not in strata)
        if not left > 0:
            raise WeightsError(
                "weights: the schema's rules forbid every group that has a share; correct the rules or the shares."
            )
        shares = {s: 0.0 if s in strata else share / left for s, share in self.shares.items()}
        ranges, noise = self.ranges, self.noise
        if ranges is not None:
            ranges = {s: (0.0, 0.0) if s in strata else (a / left, min(1.0, b / left)) for s, (a, b) in ranges.items()}
        if noise is not None:
            noise = {s: 0.0 if s in strata else sd / left for s, sd in noise.items()}
        return replace(self, shares=shares, ranges=ranges, noise=noise, removed=self.removed + (1 - left))

    def merged(self, groups: Mapping[Stratum, Sequence[Stratum]]) -> Resolved:
        """The shares of groups of strata: sums. Their bounds add up too, which is wide, and never too narrow."""
        shares = {group: math.fsum(self.shares[s] for s in members) for group, members in groups.items()}
        noise = self.noise
        if noise is not None:
            noise = {group: math.hypot(*(noise[s] for s in members)) for group, members in groups.items()}
        if self.ranges is None:
            return replace(self, shares=shares, noise=noise)
        both = {group: [self.ranges[s] for s in members] for group, members in groups.items()}
        ends = {g: (math.fsum(a for a, _ in r), min(1.0, math.fsum(b for _, b in r))) for g, r in both.items()}
        return replace(self, shares=shares, ranges=ends, noise=noise)


def even(strata: Sequence[Stratum], schema: Schema | None) -> Resolved:
    """The same share for every stratum that some row can be in."""
    whole = Resolved(dict.fromkeys(strata, 1 / len(strata)))
    return whole if schema is None else replace(whole.without(impossible(schema, strata)), removed=0.0)


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
    published: ClassVar[bool] = True
    """False where the citation tells how the shares are made, and there is nothing to look up."""
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


def is_text(citation: object) -> bool:
    """True for a citation that has any words."""
    return isinstance(citation, str) and bool(citation.strip())
