"""Shares matched to strata: what every source of weights comes down to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stratsynth.schema import Schema
from stratsynth.strata import Stratum

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

    def merged(self, groups: Mapping[Stratum, Sequence[Stratum]]) -> Resolved:
        """The shares of groups of strata: sums. Their bounds add up too, which is wide, and never too narrow."""
        shares = {group: math.fsum(self.shares[s] for s in members) for group, members in groups.items()}
        if self.ranges is None:
            return Resolved(shares, self.total)
        both = {group: [self.ranges[s] for s in members] for group, members in groups.items()}
        ends = {g: (math.fsum(a for a, _ in r), min(1.0, math.fsum(b for _, b in r))) for g, r in both.items()}
        return Resolved(shares, self.total, ends)


class Given(Protocol):
    """What a source hands in, and how shares come out of it."""

    def columns(self, by: Sequence[str]) -> tuple[str, ...]:
        """Which of the strata's columns it knows."""

    def resolve(self, strata: Sequence[Stratum], schema: Schema | None) -> Resolved:
        """The share of each stratum of a full crossing."""
