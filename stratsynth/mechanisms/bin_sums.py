"""Questions about where numbers lie within their bins: of which columns they are asked, at what price, with what noise.

A column that declares `places` has a noisy vector of the sums of its numbers' places, by bin, for that part of the
column's own share; one that declares `heaps`, noisy numbers of multiples by bin, for a tenth of it. A column's own
share is a third of the fit's amount (first question aside) over the number of columns, whatever the mechanism: what MST
pays for a table of one column. Everybody is asked, and no stratum. Where the declared size times epsilon, over the
largest row weight, is below ENOUGH for each twenty columns, noise would hide what is asked, and nothing is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import IN_RHO, Allotment, Currency
from stratsynth.questions.sums.within_bins import WithinBins
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from stratsynth.accounting.budget import Neighbours
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


def declares_bin_sums(schema: Schema) -> bool:
    """True if a numeric column of the schema declares places or heaps, about which sums within bins are asked."""
    return any(isinstance(c, Numeric) and bool(c.places or c.heaps) for c in schema.columns.values())


def bin_sums(
    schema: Schema, size: int | None, allot: Allotment, neighbours: Neighbours, part: float = 1.0
) -> tuple[BinSum, ...]:
    """Return a tuple of `BinSum`, the questions about numbers within bins that a fit asks of everybody; () for none.

    Args:
        schema: All columns.
        size: The declared number of records.
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
    """Return the BinSum of a schema's column `name` and its multiples, with noise by price, currency, neighbours."""
    bare = BinSum(name, tuple(map(int, multiples)), price, 0.0, currency)
    (block,) = bare.query.blocks(schema)
    moved = schema.row_weight.most * block.sensitivity(neighbours)
    noise = moved / math.sqrt(2 * price) if currency in IN_RHO else math.sqrt(2) * moved / price
    return BinSum(name, bare.multiples, price, noise, currency)
