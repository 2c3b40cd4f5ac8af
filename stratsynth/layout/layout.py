"""The strata of a fit as they come out of everything that is declared: shares, merges, budgets, small groups."""

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
    """Who is in which stratum, why, and what each gets. Public, all of it."""

    by: tuple[str, ...]
    """The columns whose levels, fully crossed, are the groups."""
    weights: Weights
    """Where the strata's shares come from."""
    declared: Groups
    """The merges, and what becomes of small groups."""
    groups: tuple[MergedGroup, ...]
    """The strata in order, with the groups that were merged into them."""
    resolved: Resolved
    """Their shares; with private weights, those to plan with."""
    epsilons: Mapping[Stratum, float]
    """The epsilon of each stratum, at most the fit's."""
    own_budgets: bool
    """Whether strata have budgets of their own."""
    small: Mapping[Stratum, str]
    """The strata that are small, with what they lack. Under "one-way" they get one-way tables only."""
    declared_shares: Mapping[Stratum, float] = field(default_factory=dict)
    """The shares of the groups as they were before any was merged because it is small."""
    only_strata: bool = False
    """Whether everybody together is asked nothing, and no stratum is divided again."""
    families: tuple[tuple[str, ...], ...] = ()
    """The columns of each split, where strata overlap: a record lies in one of each, and pays for all of them."""

    @cached_property
    def members(self) -> frozenset[Stratum]:
        """The strata as a set."""
        return frozenset(self.strata)

    @property
    def title(self) -> str:
        """Their columns: `SEX x RAC1P`."""
        return " x ".join(self.by)

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """The strata in order."""
        return tuple(group.stratum for group in self.groups)

    @property
    def shares(self) -> Mapping[Stratum, float]:
        """Their shares of all records."""
        return self.resolved.shares

    def plainly(self, stratum: Stratum) -> bool:
        """Whether a stratum is asked for one-way tables only."""
        return self.declared.small == "one-way" and stratum in self.small

    def merged(self) -> list[dict[str, Any]]:
        """The strata that are merges: their label, what they are made of, and why."""
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
    """The strata of some columns. Nothing here has seen a row.

    Raises:
        UsageError: Merges, budgets or shares that do not fit the strata.
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
        # noise covers the largest weight, so that a group of weighted rows is as large as its total over that
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
