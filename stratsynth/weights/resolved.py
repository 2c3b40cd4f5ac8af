"""Shares matched to strata: what every source of weights comes down to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stratsynth.errors import WeightsError
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, impossible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
