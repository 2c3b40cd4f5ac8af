"""The strata of a fit, from all declarations: shares, merges, budgets, small groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stratsynth.errors import UsageError, WeightsError
from stratsynth.layout.budgets import StratumBudgets
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, crossing
from stratsynth.strata.groups import Groups, MergedGroup, alone, lacking, merge_small
from stratsynth.weights import Resolved, Weights


@dataclass(frozen=True)
class Layout:
    """The strata of a fit, with shares, epsilons and merged groups. All of it is public."""

    by: tuple[str, ...]
    """Columns whose levels, fully crossed, are the groups."""
    weights: Weights
    """Source of the strata's shares."""
    declared: Groups
    """Declared merges, and the policy for small groups."""
    groups: tuple[MergedGroup, ...]
    """Strata in order, each with the groups that were merged into it."""
    resolved: Resolved
    """Shares of the strata; with private weights, the ones to plan with."""
    epsilons: Mapping[Stratum, float]
    """Epsilon of each stratum, at most the fit's."""
    own_budgets: bool
    """True if strata have budgets of their own."""
    small: Mapping[Stratum, str]
    """Small strata, each with the reason; under "one-way" they get one-way tables only."""
    declared_shares: Mapping[Stratum, float] = field(default_factory=dict)
    """Shares of the declared groups, before small ones were merged."""
    only_strata: bool = False
    """True if no question is asked of all records together, and no stratum is divided again."""
    families: tuple[tuple[str, ...], ...] = ()
    """Columns of each split, if strata overlap: a record lies in one stratum of each, and its charges add up."""

    @cached_property
    def members(self) -> frozenset[Stratum]:
        """Set of all strata of the fit."""
        return frozenset(self.strata)

    @property
    def title(self) -> str:
        """Names of the columns that define strata, joined for titles, as `SEX x RAC1P`."""
        return " x ".join(self.by)

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """Tuple of all strata of the fit, in order."""
        return tuple(group.stratum for group in self.groups)

    @property
    def shares(self) -> Mapping[Stratum, float]:
        """Share of all records, from 0 to 1, by stratum; the sum is 1."""
        return self.resolved.shares

    def plainly(self, stratum: Stratum) -> bool:
        """True if the stratum is small and the declaration has small ones asked for one-way tables only."""
        return self.declared.small == "one-way" and stratum in self.small

    def merged(self) -> list[dict[str, Any]]:
        """Return a list, a dict a merged stratum: "stratum" (label), "levels" (column -> list), "why" (text)."""
        return [
            {
                "stratum": group.stratum.label,
                "levels": {column: list(levels) for column, levels in group.stratum.items},
                "why": group.why,
            }
            for group in self.groups
            if group.stratum.is_merge
        ]


def lay_out(
    schema: Schema,
    by: Sequence[str],
    groups: Groups,
    weights: Weights,
    budgets: StratumBudgets | None,
    size: int | None,
    epsilon: float,
) -> Layout:
    """Return the `Layout` of strata, crossed levels of the schema's columns `by`, for `size` records, None if unknown.

    `Groups` merge strata, `Weights` give shares, `StratumBudgets` epsilons; all have the fit's `epsilon` if None.
    UsageError for merges, budgets or shares that do not fit the strata, a threshold without a size or public shares.
    """
    base = crossing(schema, by, groups.together(schema, by))
    labels = {stratum.label for stratum in base}
    if len(labels) < len(base):
        raise UsageError("strata: two groups would have the same label; name merges by other words than levels.")
    resolved = weights.resolve(base, schema)
    epsilons = dict.fromkeys(base, epsilon) if budgets is None else budgets.resolve(base, epsilon)
    made, small = alone(base), dict[Stratum, str]()
    if groups.threshold is not None:
        if size is None:
            raise UsageError("strata: which groups are small is decided by public sizes; declare a size.")
        if not weights.given.informative:
            raise WeightsError(
                "weights: which groups are small is decided by public sizes, and private weights have none before "
                "they are asked; give them a public prior."
            )
        if weights.unprotected:
            raise WeightsError(
                f"weights: which groups are small is decided by public sizes, and these are not ({weights.worst}). "
                "Take public weights, or merge groups by name."
            )
        # noise covers the largest weight, so the size that counts is the group's total weight over that
        least = schema.row_weight.most / schema.row_weight.each
        sizes = {stratum: size * share / least for stratum, share in resolved.shares.items()}
        if groups.small == "merge":
            made = merge_small(base, groups.ladder(schema, by), sizes, epsilons, groups.threshold)
        small = {g.stratum: why for g in made if (why := lacking(g, sizes, epsilons, groups.threshold))}
    return Layout(
        by=tuple(by),
        weights=weights,
        declared=groups,
        groups=tuple(made),
        resolved=resolved.merged({group.stratum: group.members for group in made}),
        epsilons={group.stratum: group.epsilon(epsilons) for group in made},
        own_budgets=budgets is not None,
        small=small,
        declared_shares=resolved.shares,
    )
