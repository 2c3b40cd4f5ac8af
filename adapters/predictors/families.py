"""Groups of a regression: one family of them, or several that overlap.

A family is the crossing of some columns, and a record lies in one of its groups. With several families it lies in a
group of each: the price of one family's groups is their maximum, and the families' prices add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from stratsynth.adapters.shared.settings import check_columns
from stratsynth.errors import Unsupported, UsageError
from stratsynth.layout.layout import Layout, lay_out
from stratsynth.strata import crossing
from stratsynth.strata.groups import Groups
from stratsynth.weights import Resolved, Weights

if TYPE_CHECKING:
    from stratsynth.adapters.predictors.mechanism import GroupRegression
    from stratsynth.mechanisms import Public
    from stratsynth.strata import Stratum

MOST_CELLS = 2**24
"""Largest number of crossings of all families' columns, each of which has a weight in the common gradient."""


@dataclass(frozen=True)
class Families:
    """Groups with their sizes, published or still to be counted; without families, one group of everybody."""

    layouts: tuple[Layout, ...]
    """Layout of each family."""

    @cached_property
    def groups(self) -> tuple[Stratum, ...]:
        """Tuple of the groups, `Stratum`s, of all families, one family after another; empty for one of everybody."""
        return tuple(group for layout in self.layouts for group in layout.strata)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Tuple of the groups' labels: their levels, after their columns' names if there are several families."""
        if len(self.layouts) < 2:
            return tuple(group.label for group in self.groups)
        return tuple(f"{'|'.join(group.columns)}={group.label}" for group in self.groups)

    @property
    def columns(self) -> tuple[str, ...]:
        """Tuple of the names of columns that define groups in any family, each once."""
        return tuple(dict.fromkeys(column for layout in self.layouts for column in layout.by))

    @property
    def declared(self) -> Layout | None:
        """Layout of all groups for the certificate; None without groups. Of several families it lists each."""
        if len(self.layouts) < 2:
            return self.layouts[0] if self.layouts else None
        first = self.layouts[0]
        return replace(
            first,
            by=self.columns,
            groups=tuple(group for layout in self.layouts for group in layout.groups),
            resolved=Resolved({s: share for layout in self.layouts for s, share in layout.shares.items()}),
            epsilons={s: epsilon for layout in self.layouts for s, epsilon in layout.epsilons.items()},
            families=tuple(layout.by for layout in self.layouts),
        )


def families_of(settings: GroupRegression, public: Public) -> Families:
    """Return the `Families` of groups that `GroupRegression` settings declare, less columns of one level in `public`.

    Unsupported for unknown columns, or crossings above `MOST_CELLS` under `combined`; UsageError for `sizes` that name
    other groups or not all.
    """
    schema, who = public.schema, settings.name
    check_columns(who, (*settings.features, *settings.group_columns), public)
    varying = [tuple(name for name in family if name not in public.constant) for family in settings.families]
    families = [family for family in dict.fromkeys(varying) if family]
    columns = tuple(dict.fromkeys(name for family in families for name in family))
    if settings.accounting == "combined" and columns and schema.cells(columns) > MOST_CELLS:
        raise Unsupported(
            f"{who}: the groups' columns have {schema.cells(columns):,} crossings, too many for one weight each; take "
            'fewer families, or accounting = "parallel".'
        )
    asked = Weights.private(share=settings.count_share)
    plain = Families(tuple(_laid_out(public, family, asked) for family in families))
    if not settings.sizes or not families:
        return plain
    for label in settings.sizes:
        if label not in plain.labels:
            known = ", ".join(plain.labels[:5])
            raise UsageError(f"{who}: sizes names {label!r}, which is not a group; groups are {known}.")
    lacking = [label for label in plain.labels if label not in settings.sizes]
    if lacking:
        raise UsageError(f"{who}: sizes lacks {lacking[0]}; name every group.")
    sizes = dict(zip(plain.groups, (settings.sizes[label] for label in plain.labels), strict=True))
    return Families(
        tuple(_laid_out(public, family, _published(settings, public, family, sizes)) for family in families)
    )


def _published(
    settings: GroupRegression, public: Public, family: Sequence[str], sizes: dict[Stratum, float]
) -> Weights:
    """Return the `Weights`, public shares of the groups of a family, which is the columns `family`.

    They follow from `sizes`, {group's Stratum: number of records}, with the citation of the `GroupRegression` settings.
    """
    table = [{**group.to_dict(), "count": sizes[group]} for group in crossing(public.schema, family)]
    return Weights.public(pd.DataFrame(table), citation=settings.sizes_citation)


def _laid_out(public: Public, family: Sequence[str], weights: Weights) -> Layout:
    """Return the Layout of the groups of the columns `family` in the public schema, by `weights`, their shares."""
    return lay_out(public.schema, family, Groups(), weights, None, public.size, 1.0)
