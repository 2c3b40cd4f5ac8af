"""Questions about everybody beside a mechanism's own: numbers within bins, tables by the columns that define strata.

A column that declares `places` has a noisy vector of the sums of its numbers' places, by bin, for that part of the
column's own share; one that declares `heaps`, noisy numbers of multiples by bin, for a tenth of it. A column's own
share is a third of the fit's amount (first question aside) over the number of columns, whatever the mechanism: what MST
pays for a table of one column. Everybody is asked, and no stratum. Where the declared size times epsilon, over the
largest row weight, is below ENOUGH for each twenty columns, noise would hide what is asked, and nothing is.

Strata measure few tables each, and other ones: a count by sex is known where every stratum of that sex has a table of
the column. With `by_tables`, a part of the fit's amount buys tables of all records: each column that defines strata by
each other column, and the strata's own columns together, at equal prices. So counts, shares and rates by one such
column have an answer in every release, and strata have a measured size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import IN_RHO, Allotment, Currency
from stratsynth.answers.tables import MOST_STRATA
from stratsynth.errors import Unsupported
from stratsynth.models.base import Returns
from stratsynth.questions.counts import table_sigma
from stratsynth.questions.sums.within_bins import WithinBins
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from stratsynth.accounting.budget import Neighbours
    from stratsynth.layout.layout import Layout
    from stratsynth.mechanisms.contract import Mechanism, Public
    from stratsynth.questions import Clique
    from stratsynth.schema import Schema


SHARE_OF_COLUMNS = 1 / 3
"""Part of a fit's amount that the columns' own shares are, together."""
HEAPS = 0.1
"""Part of a column's own share that its multiples cost."""
ENOUGH, PER = 5_000, 20
"""Least declared size times epsilon at which something is asked, for so many columns."""


@dataclass(frozen=True)
class BinSum:
    """One question about a column: places, or multiples."""

    column: str
    multiples: tuple[int, ...]
    """Declared multiples; none for places."""
    price: float
    """Price of one row: rho, or epsilon in pure."""
    noise: float
    """Standard deviation of the noise of each number: of records, or of a sum of places from -1 to 1."""
    currency: Currency = Currency.ZCDP

    @property
    def query(self) -> WithinBins:
        """`WithinBins`, the sum that `total` asks, of numbers within this column's bins, bounded in l1 (pure) or l2."""
        return WithinBins(self.column, self.multiples, "l1" if self.currency == Currency.PURE else "l2")

    def __str__(self) -> str:
        """Return words for a plan."""
        what = f"multiples of {', '.join(map(str, self.multiples))}" if self.multiples else "places within bins"
        price = f"{self.currency.unit} {self.price:.3g}"
        return f"{what} of {self.column} ({price}, noise {self.noise:,.3g}, a standard deviation)"

    def to_dict(self) -> dict[str, Any]:
        """Return {"column", "multiples", price under its currency's unit, "noise_sd"} as JSON values, for plans."""
        priced = {self.currency.unit: self.price, "noise_sd": self.noise}
        return {"column": self.column, "multiples": list(self.multiples), **priced}


@dataclass(frozen=True)
class BinSums:
    """Questions of a fit about numbers within bins, or the reason why there are none."""

    questions: tuple[BinSum, ...] = ()
    size: int | None = None
    """Declared number of records."""
    why_not: str = ""
    """Reason why nothing is asked; empty if something is."""

    def __str__(self) -> str:
        """Return a sentence for a plan."""
        if self.why_not:
            return f"nothing is asked of numbers within bins: {self.why_not}"
        return f"of everybody: {'; '.join(map(str, self.questions))}"

    def to_dict(self) -> dict[str, Any]:
        """Return {"asked": True, "questions": list of `BinSum.to_dict`}, or {"asked": False, "why": reason}."""
        if self.why_not:
            return {"asked": False, "why": self.why_not}
        return {"asked": True, "questions": [one.to_dict() for one in self.questions]}


def bin_sums(
    schema: Schema, size: int | None, allot: Allotment, neighbours: Neighbours, part: float = 1.0
) -> tuple[BinSum, ...]:
    """Return a tuple of `BinSum`, the questions about numbers within bins that a fit asks of everybody; () for none.

    Args:
        schema: All columns.
        size: The declared number of records; None if undeclared.
        allot: The fit's allotment.
        neighbours: The notion of neighbour by which questions are priced.
        part: The smallest part of the amount that a stratum has.
    """
    if why_no_bin_sums(schema, size, allot.promise.epsilon):
        return ()
    own = allot.amount * SHARE_OF_COLUMNS / len(schema.names) * part
    found = []
    for name, column in schema.columns.items():
        if isinstance(column, Numeric):
            asked = [((), column.places)] * bool(column.places) + [(column.heaps, HEAPS)] * bool(column.heaps)
            found += [
                _sum(schema, name, multiples, own * share, allot.currency, neighbours) for multiples, share in asked
            ]
    return tuple(found)


def why_no_bin_sums(schema: Schema, size: int | None, epsilon: float) -> str:
    """Return the reason why nothing is asked within the bins of a schema, by size and epsilon; empty if it is."""
    if size is None:
        return "no size is declared"
    weight = schema.row_weight.most / schema.row_weight.each
    least, found = ENOUGH * len(schema.names) / PER, size * epsilon / weight
    if found >= least:
        return ""
    over = " over the largest weight" if weight > 1 else ""
    return (
        f"declared size times epsilon{over} is {found:,.0f}, and of {len(schema.names)} columns {least:,.0f} is enough"
    )


def _sum(
    schema: Schema, name: str, multiples: tuple[float, ...], price: float, currency: Currency, neighbours: Neighbours
) -> BinSum:
    """Return the BinSum of a schema's column `name` and `multiples`, its noise by price, currency and neighbours."""
    bare = BinSum(name, tuple(map(int, multiples)), price, 0.0, currency)
    (block,) = bare.query.blocks(schema)
    moved = schema.row_weight.most * block.sensitivity(neighbours)
    noise = moved / math.sqrt(2 * price) if currency in IN_RHO else math.sqrt(2) * moved / price
    return BinSum(name, bare.multiples, price, noise, currency)


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


def check_by_tables(mechanism: Mechanism[Any], layout: Layout, currency: Currency) -> None:
    """Raise Unsupported, with the remedy, for a fit that cannot ask the tables by strata's columns that it declares.

    It draws no rows, spends in a `currency` other than zCDP, or has too many strata.
    """
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
