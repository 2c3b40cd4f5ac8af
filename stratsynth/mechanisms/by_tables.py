"""Tables of everybody by each column that defines strata, asked beside what a mechanism asks: which, at what price.

Strata measure few tables each, and other ones: a count by sex is known where every stratum of that sex has a table of
the column. With `by_tables`, a part of the fit's amount buys tables of all records: each column that defines strata by
each other column, and the strata's own columns together, at equal prices. So counts, shares and rates by one such
column have an answer in every release, and strata have a measured size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Currency
from stratsynth.answers.tables import MOST_STRATA
from stratsynth.errors import Unsupported
from stratsynth.models.base import Returns
from stratsynth.questions.counts import table_sigma

if TYPE_CHECKING:
    from stratsynth.accounting.budget import Allotment
    from stratsynth.layout.layout import Layout
    from stratsynth.mechanisms.contract import Mechanism, Public
    from stratsynth.questions import Clique
    from stratsynth.schema import Schema


@dataclass(frozen=True)
class ByTables:
    """The tables of everybody that a fit asks by the columns of its strata."""

    by: tuple[str, ...]
    """Columns that define strata."""
    cliques: tuple[Clique, ...]
    """Columns of each table."""
    share: float
    """Part of the fit's amount, first question aside, that they cost together."""
    rho: float
    """Price of all of them, of one row."""
    noise: float
    """Standard deviation of the noise of each cell, in records."""

    def __str__(self) -> str:
        """Return a sentence for a plan."""
        by = self.by[0] if len(self.by) == 1 else f"each of {', '.join(self.by)}"
        return (
            f"for {100 * self.share:g} % of the budget (rho {self.rho:.3g}): {len(self.cliques)} tables of everybody, "
            f"of {by} and each other column, noise {self.noise:,.3g} records in a cell (a standard deviation)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return {"share", "rho", "tables", "noise_sd"} of these tables, numbers for plans and certificates."""
        return {"share": self.share, "rho": self.rho, "tables": len(self.cliques), "noise_sd": self.noise}


def by_cliques(schema: Schema, by: tuple[str, ...]) -> tuple[Clique, ...]:
    """Return a tuple of cliques, the tables of everybody: all of `by`, and each with each other column of `schema`."""
    others = [name for name in schema.names if name not in by]
    return (*([by] if len(by) > 1 else []), *((name, other) for name in by for other in others))


def by_tables(public: Public, allot: Allotment, layout: Layout, least: float) -> ByTables | None:
    """Return `ByTables`, the tables by the columns of a fit's strata, with price and noise; None for none wanted.

    Args:
        public: The facts about all records.
        allot: The fit's allotment.
        layout: The strata, which say what part of the amount the tables cost.
        least: The smallest part of the amount that a stratum has.
    """
    share, cliques = layout.declared.by_tables, by_cliques(public.schema, layout.by)
    if not share or not cliques:
        return None
    rho = share * allot.amount * least
    noise = table_sigma(rho / len(cliques), public.schema, public.neighbours)
    return ByTables(layout.by, cliques, share, rho, noise)


def check_by_tables(mechanism: Mechanism[Any], layout: Layout | None, currency: Currency) -> bool:
    """Return True if a fit asks tables by its strata's columns; False without a layout, or if it does not declare them.

    Raises:
        Unsupported: A mechanism that draws no rows, a currency other than zCDP, or too many strata; with the remedy.
    """
    if layout is None or not layout.declared.by_tables:
        return False
    if mechanism.returns != Returns.ROWS:
        raise Unsupported(
            f"strata: by_tables are asked beside rows, and {mechanism.fitted.name} releases {mechanism.returns}; leave "
            "it out."
        )
    if currency != Currency.ZCDP:
        raise Unsupported(
            f"strata: by_tables are counted in zCDP, and {mechanism.fitted.name} spends in {currency}; leave it out."
        )
    if len(layout.strata) > MOST_STRATA:
        raise Unsupported(
            f"strata: by_tables are combined with at most {MOST_STRATA:,} strata, and there are "
            f"{len(layout.strata):,}; merge groups, or leave by_tables out."
        )
    return True
