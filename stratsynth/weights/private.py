"""Shares from noisy counts of the confidential rows themselves, paid from the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stratsynth.schema import Schema
from stratsynth.strata import Stratum, impossible
from stratsynth.weights.resolved import Resolved, even
from stratsynth.weights.simplex import nearest

if TYPE_CHECKING:
    from stratsynth.questions import NoisyTable
    from stratsynth.weights.sources import Weights


@dataclass(frozen=True)
class Asked:
    """Counts that will be asked for, and what to plan with until then."""

    share: float
    """The part of the budget that they may cost."""
    prior: Weights | None
    """Public shares to plan with; even ones when not given."""

    @property
    def origins(self) -> tuple[Any, ...]:
        """The prior's."""
        return () if self.prior is None else self.prior.given.origins

    def columns(self, by: Sequence[str]) -> tuple[str, ...]:
        """All of them."""
        return tuple(by)

    def resolve(self, strata: Sequence[Stratum], schema: Schema | None) -> Resolved:
        """What to plan with: the prior, or all strata alike."""
        if self.prior is not None:
            return self.prior.resolve(strata, schema)
        return even(strata, schema)


def counted(table: NoisyTable, strata: Sequence[Stratum], schema: Schema) -> tuple[Resolved, float]:
    """The strata's shares by a noisy table of their columns, and the total that it counted.

    A stratum's count is the sum of its cells. Counts are moved to the nearest ones that are not below zero and
    have the same sum; where that sum is not above zero, nothing is known, and all strata are alike: no more is
    certain than of the shares of a sample of one. The noise is that of the counts before they were moved. Strata that
    the schema's rules forbid have no share, whatever was counted: that is noise, or rows that break a rule.
    """
    import numpy as np

    values = table.values.astype(np.float64)
    codes = [
        [[schema.index(c, level) for level in s.levels[c]] for c in table.clique] for s in strata
    ]  # fmt: skip
    forbidden = impossible(schema, strata)
    possible = [s for s in strata if s not in forbidden]
    noisy = np.array([values[np.ix_(*code)].sum() for code, s in zip(codes, strata, strict=True) if s not in forbidden])
    total = float(noisy.sum())
    if not total > 0:
        return replace(even(strata, schema), sampled=1.0, of_rows=True), 0.0
    found = nearest(noisy, total) / total
    shares = dict(zip(possible, (found / found.sum()).tolist(), strict=True))
    noise = {s: table.sigma * math.sqrt(s.size) / total for s in possible}
    nothing = dict.fromkeys(strata, 0.0)
    return Resolved(nothing | shares, noise=nothing | noise, of_rows=True), total
