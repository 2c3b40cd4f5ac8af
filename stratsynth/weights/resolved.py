"""Shares matched to strata: what every source of weights comes down to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from stratsynth.schema import Schema
from stratsynth.strata import Stratum

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


class Given(Protocol):
    """What a source hands in, and how shares come out of it."""

    def columns(self, by: Sequence[str]) -> tuple[str, ...]:
        """Which of the strata's columns it knows."""

    def resolve(self, strata: Sequence[Stratum], schema: Schema | None) -> Resolved:
        """The share of each stratum of a full crossing."""
