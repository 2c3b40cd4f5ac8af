"""The contract of a source of weights, and its result: shares matched to strata.

Its class has everything that other code needs of a source.

A new source is a file here with such a class, and a constructor and a place in the list of `weights/sources.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from stratsynth.errors import WeightsError
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, impossible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.weights.design import DesignError
    from stratsynth.weights.sources import Place, Weights


Range = tuple[float, float]
"""Lower and upper bound of a share."""


@dataclass(frozen=True)
class Resolved:
    """Shares matched to strata, scaled to add up to 1."""

    shares: Mapping[Stratum, float]
    total: float = 1.0
    """Sum of the source's shares before scaling."""
    ranges: Mapping[Stratum, Range] | None = None
    """Bounds of the shares, if the source has some or is a sample; else None."""
    sampled: float | None = None
    """Size of the sample behind the shares, in people (effective number if weighted); None without a sample."""
    noise: Mapping[Stratum, float] | None = None
    """Standard deviation of each noisy count, as a part of the total; None for other sources."""
    of_rows: bool = False
    """True if the shares are of the very rows that are fitted: their composition is then sampling error."""
    counted_in: float | None = None
    """Number of records (effective number if weighted) in which the shares were counted; None if unknown."""
    removed: float = 0.0
    """Part of the source's total in strata where no row can be, before it was taken away."""
    errors: Mapping[Stratum, float] | None = None
    """Standard error of each share by the source's own sample, as published figures state it; None if they do not."""
    replicates: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    """Array (strata, replicates), in the order of `shares`: the shares by each replicate weight of the source's survey;
    None where it has none."""
    cited: str = ""
    """Citation of the source."""

    @property
    def design(self) -> DesignError | None:
        """`DesignError` of the shares by replicate weights or, where there are none, standard errors; None if unknown.

        Replicate weights are not asked of private rows. Raked shares are raked anew by each replicate of their sources.
        """
        import numpy as np

        from stratsynth.weights.design import BY_ERRORS, BY_REPLICATES, DesignError

        if self.errors is None and self.replicates is None:
            return None
        by = BY_ERRORS if self.replicates is None else BY_REPLICATES
        shares = np.array([*self.shares.values()])
        return DesignError(
            f"{by} of {self.cited}" if self.cited else by,
            np.array([(self.errors or {}).get(stratum, 0.0) for stratum in self.shares]),
            None if self.replicates is None else self.replicates - shares[:, None],
        )

    @property
    def effective_records(self) -> float | None:
        """Records of a simple random sample with these standard errors; None without them, or if all are 0."""
        if self.errors is None or not (variance := math.fsum(error**2 for error in self.errors.values())) > 0:
            return None
        return math.fsum(share * (1 - share) for share in self.shares.values()) / variance

    @property
    def covariance(self) -> NDArray[np.float64] | None:
        """Array (strata, strata), the covariance of the shares' errors; None where they are exact or taken for exact.

        Public figures are taken for exact, and so are raked ones: the design error that some state is `design`.
        """
        from stratsynth.models.intervals import noisy_shares_covariance, sampled_shares_covariance

        shares = list(self.shares.values())
        if self.sampled is not None:
            return sampled_shares_covariance(shares, self.sampled)
        if self.noise is not None:
            return noisy_shares_covariance(shares, [self.noise[stratum] for stratum in self.shares])
        return None

    def without(self, strata: AbstractSet[Stratum]) -> Resolved:
        """Return a copy with share 0 for the set `strata`, where no row can be, the other shares scaled to add up to 1.

        Raises:
            WeightsError: No share is left.
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
        errors = self.errors
        if errors is not None:
            errors = {s: 0.0 if s in strata else error / left for s, error in errors.items()}
        replicates = self.replicates
        if replicates is not None:
            import numpy as np

            kept = replicates * np.array([[stratum not in strata] for stratum in self.shares])
            replicates = kept / kept.sum(axis=0)
        whole = self.removed + (1 - left)
        return replace(
            self, shares=shares, ranges=ranges, noise=noise, errors=errors, replicates=replicates, removed=whole
        )

    def merged(self, groups: Mapping[Stratum, Sequence[Stratum]]) -> Resolved:
        """Return a copy by merged groups: `groups` maps each to its strata, whose shares, bounds and errors add up."""
        shares = {group: math.fsum(self.shares[s] for s in members) for group, members in groups.items()}
        noise, errors = self.noise, self.errors
        if noise is not None:
            noise = {group: math.hypot(*(noise[s] for s in members)) for group, members in groups.items()}
        if errors is not None:
            errors = {group: math.hypot(*(errors[s] for s in members)) for group, members in groups.items()}
        replicates = self.replicates
        if replicates is not None:
            import numpy as np

            place = {stratum: i for i, stratum in enumerate(self.shares)}
            sums = [replicates[[place[s] for s in members]].sum(axis=0) for members in groups.values()]
            replicates = np.array(sums)
        whole = replace(self, shares=shares, noise=noise, errors=errors, replicates=replicates)
        if self.ranges is None:
            return whole
        both = {group: [self.ranges[s] for s in members] for group, members in groups.items()}
        ends = {g: (math.fsum(a for a, _ in r), min(1.0, math.fsum(b for _, b in r))) for g, r in both.items()}
        return replace(whole, ranges=ends)


def even(strata: Sequence[Stratum], schema: Schema | None) -> Resolved:
    """Return `Resolved`, equal shares of all `strata` in which the schema's rules (None: none) allow a row; else 0."""
    whole = Resolved(dict.fromkeys(strata, 1 / len(strata)))
    return whole if schema is None else replace(whole.without(impossible(schema, strata)), removed=0.0)


class Basis(ABC):
    """Figures from which shares are computed: a table, a sample, or other weights."""

    @property
    @abstractmethod
    def origins(self) -> tuple[Any, ...]:
        """Tuple of files, frames and tables that these were read from: none may be the private table."""

    @abstractmethod
    def columns(self, by: Sequence[str]) -> tuple[str, ...]:
        """Return a tuple of those names in `by` that are columns of these figures, in the order of `by`."""

    @abstractmethod
    def resolve(self, strata: Sequence[Stratum], schema: Schema | None) -> Resolved:
        """Return the `Resolved` shares, sum 1, of `strata`, a full crossing; some kinds need the schema, else None."""

    @property
    def parts(self) -> tuple[Weights, ...]:
        """Tuple of the weights that these are made of, or planned by; empty by default."""
        return ()

    @property
    def asked(self) -> float:
        """Part of the budget, from 0 to 1, that answers about the confidential rows cost; 0 if none is asked."""
        return 0.0

    @property
    def informative(self) -> bool:
        """True if shares are known before anything is asked; True by default."""
        return True


@dataclass(frozen=True)
class Key:
    """One key of a recipe's section [weights]."""

    kind: Any
    """Type of the value."""
    help: str
    """Meaning, for messages and the reference."""
    needed: bool = False
    """True if the source requires the key."""


PATH = Key(str, "a CSV file with the strata's columns and `share` or `count`", needed=True)
CITATION = Key(str, "where the shares were published")


class ShareSource(ABC):
    """One source of weights, by name. Where a class declares nothing, the pessimistic default holds."""

    name: ClassVar[str]
    """Name in recipes, certificates and `Weights.source`."""
    words: ClassVar[str]
    """Origin of the groups' shares, as pages state it."""
    keys: ClassVar[Mapping[str, Key]]
    """Keys of a recipe's section [weights] with this source."""
    rank: ClassVar[int] = 3
    """Distance of the figures from public ones: 0 for published ones, 3 for confidential ones without noise."""
    exact: ClassVar[bool] = False
    """True if the shares are taken for exact: neither a sample nor noise is behind them."""
    known: ClassVar[bool] = False
    """True if a fit without strata may take the shares as public, before anything is asked."""
    of_rows: ClassVar[bool] = False
    """True if the shares are those of the very rows that are fitted."""
    raked: ClassVar[bool] = False
    """True if the figures may be a margin of raked weights."""
    countable: ClassVar[bool] = False
    """True if rows are behind the shares, so that those of any columns can be counted."""
    published: ClassVar[bool] = True
    """False if the citation describes how the shares are made, so that there is nothing to look up."""
    samples: ClassVar[bool] = False
    """True if intervals from `Release.samples` were found to hold with the source."""
    discloses: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Subject and sentence of each name under `unprotected` that only this source lists."""

    @abstractmethod
    def read(self, section: Mapping[str, Any], place: Place) -> Weights:
        """Return the `Weights` that a recipe's `section`, a mapping with checked keys, describes.

        `place` has its folder.
        """

    def grade(self, weights: Weights) -> tuple[int, str]:
        """Return (rank, name) of weights of this source, 0 public to 3 confidential, to find the least public."""
        return self.rank, self.name

    def stated(self, weights: Weights) -> dict[str, Any]:
        """Return a dict of certificate entries on weights of this source, beside source and citation; {} by default."""
        return {}

    def made(self, citation: str, given: Basis, unprotected: tuple[str, ...] = ()) -> Weights:
        """Return `Weights` of this source: citation, a `Basis` of figures, and names of what is `unprotected`."""
        from stratsynth.weights.sources import Weights  # which lists all sources

        return Weights(self.name, citation, given, unprotected)


def is_weights(value: object) -> bool:
    """True if `value`, of any class, is a `Weights` object."""
    from stratsynth.weights.sources import Weights

    return isinstance(value, Weights)


def is_text(citation: object) -> bool:
    """True if `citation`, of any class, is a text that is not blank."""
    return isinstance(citation, str) and bool(citation.strip())
