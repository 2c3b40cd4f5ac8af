"""Clipped sums of numbers, asked beside what a mechanism asks: of whom, at what price, with what noise.

Where a numeric column declares `clip`, a part of the fit's amount buys noisy sums of

    min(x, clip) - middle,    middle = (lower + clip) / 2,

of everybody and of the strata; the mechanism has the rest. A record moves a sum by at most half the width of [lower,
clip], and an exchanged one by all of it, times the largest row weight. Values that are no quantities add nothing: the
sum is of the records with a number, whose mean is middle + sum / their number.

Everybody and strata have half of the part each, as a record is in both; where no stratum is asked, everybody has it
all. Columns share a half equally. Strata are asked if one is large enough by its public size: if the noise of a sum
alone leaves its mean within PRECISE of half the width of [lower, clip] at 95 %, which says the same of every column.
Small ones cost nothing more, and without them the mean of a larger group would not be known.

A mean needs the number of records with a number too. Where strata start from a model of everybody they may measure no
table of the column, so that COUNTED of their half buys one, of each column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import IN_RHO, Allotment, Budget, Currency
from stratsynth.questions import Columns, Program, Total, counts, total
from stratsynth.questions.base import shared
from stratsynth.questions.sums.clipping import GRID
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from stratsynth.layout.layout import Layout
    from stratsynth.mechanisms.contract import Public
    from stratsynth.schema import Schema
    from stratsynth.strata import Stratum

SHARE = 0.05
"""Part of a fit's amount that clipped sums cost, where the columns with a `clip` declare none."""
PRECISE = 0.05
"""Half width of the mean of a stratum that is asked, at most, by the sum's noise alone: in half widths of [lower,
clip]."""
COUNTED = 0.5
"""Part of the price of a stratum's sums that buys tables of their columns, where a mechanism's strata may lack them:
noise of the sum and of the number of records then weigh alike in a mean that is small beside the clip."""
NORMAL_95 = NormalDist().inv_cdf(0.975)
PAID: Mapping[Currency, Callable[[Budget], Allotment]] = {
    **dict.fromkeys(IN_RHO, Budget.zcdp),
    Currency.PURE: Budget.pure,
}
"""Allotment of a budget, by the currencies in which sums are asked."""
OFF = "switched off: sums = 0 in the schema"
DUST = 1 - 1e-12
"""Factor on what sums cost, by which roundings of parts stay within the whole."""


@dataclass(frozen=True)
class ClippedColumn:
    """A numeric column of which clipped sums are asked."""

    column: str
    lower: float
    clip: float

    @property
    def middle(self) -> float:
        """Number in the middle of [lower, clip], which is taken off each value."""
        return (self.lower + self.clip) / 2

    @property
    def half(self) -> float:
        """Half the width of [lower, clip]: largest amount by which one record of weight 1 moves the sum."""
        return (self.clip - self.lower) / 2

    @property
    def query(self) -> Columns:
        """`Columns`, the query of the sum of min(x, clip) - middle over records, in the column's own unit."""
        return Columns((self.column,), (self.middle,), (1.0,), self.half, raw=True)

    def to_dict(self) -> dict[str, Any]:
        """Return {"column", "lower", "clip", "middle"}: the column's name and its bounds, as JSON values."""
        return {"column": self.column, "lower": self.lower, "clip": self.clip, "middle": self.middle}


@dataclass(frozen=True)
class ClippedSums:
    """The clipped sums of a fit as public facts decide them."""

    columns: tuple[ClippedColumn, ...] = ()
    """Columns that declare a clip, and whose sums are not switched off."""
    share: float = 0.0
    """Part of the fit's amount, first question aside, that all sums cost together."""
    currency: Currency = Currency.ZCDP
    everybody: float = 0.0
    """Price of all sums of everybody: rho, or epsilon in pure."""
    strata: Mapping[str, float] = field(default_factory=dict)
    """Price of all sums of a stratum, by the label of each stratum that is asked."""
    noise: Mapping[str, float] = field(default_factory=dict)
    """Standard deviation of a sum's noise, in half widths of [lower, clip], by stratum; "" for everybody."""
    size: int | None = None
    """Declared number of records; None if unknown."""
    counted: float = 0.0
    """Part of a stratum's price that buys a table of each column there; 0 where the mechanism's own tables count."""
    why_not: str = ""
    """Reason why none is asked; empty if they are."""

    @property
    def asked(self) -> bool:
        """True if the fit asks clipped sums: there is no reason why not."""
        return not self.why_not

    @property
    def of_strata(self) -> float:
        """Part of a stratum's amount that its own sums cost."""
        return self.share / 2 if self.strata else 0.0

    def half_width(self, column: ClippedColumn) -> float | None:
        """Return half the 95 % width of everybody's mean of a `ClippedColumn`, by the sum's noise; None if no size."""
        return None if self.size is None else NORMAL_95 * self.noise[""] * column.half / self.size

    def __str__(self) -> str:
        """Return a sentence for a plan."""
        if not self.asked:
            return f"no clipped sums are asked: {self.why_not}"
        unit = f"{self.currency.unit} {self.everybody:.3g} for everybody"
        if self.strata:
            least, most = (f"{price:.3g}" for price in (min(self.strata.values()), max(self.strata.values())))
            each = least if least == most else f"{least} to {most}"
            strata = "1 stratum" if len(self.strata) == 1 else f"{len(self.strata):,} strata"
            unit += f", {each} in each of {strata}{', half of it for tables of these columns' if self.counted else ''}"
        columns = "; ".join(self._words(column) for column in self.columns)
        return f"for {100 * self.share:g} % of the budget ({unit}), for means: {columns}"

    def _words(self, column: ClippedColumn) -> str:
        """Return words for a plan on the sum of a `ClippedColumn`: clip, noise, and the mean's half width if known."""
        noise, half = self.noise[""] * column.half, self.half_width(column)
        mean = (
            "" if half is None else f", which leaves everybody's mean within {_plain(half)} (95 %, without other noise)"
        )
        return f"sum of {column.column} up to {column.clip:,.10g}, noise {_plain(noise)} (a standard deviation){mean}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: {"asked": False, "why": text}, or "asked", "share", price, "columns", "strata", sizes."""
        if not self.asked:
            return {"asked": False, "why": self.why_not}
        columns = [
            {**one.to_dict(), "noise_sd": self.noise[""] * one.half, "half_width": self.half_width(one)}
            for one in self.columns
        ]
        asked = {"asked": True, "share": self.share, self.currency.unit: self.everybody, "columns": columns}
        counted = {"counted": self.counted} if self.counted else {}
        return {**asked, "strata": dict(self.strata), "declared": self.size, "precise": PRECISE, **counted}


def clipped_columns(schema: Schema) -> tuple[ClippedColumn, ...]:
    """Return a tuple, a `ClippedColumn` for each of a schema's numeric columns with a clip, unless its sums are off."""
    return tuple(
        ClippedColumn(name, float(column.lower), float(column.clip))
        for name, column in schema.columns.items()
        if isinstance(column, Numeric) and column.clip is not None and column.sums != 0
    )


def share_of(schema: Schema) -> float:
    """Return the part of a fit's amount for clipped sums: the largest that a column of the schema declares, or 0."""
    columns = [column for column in schema.columns.values() if isinstance(column, Numeric) and column.clip is not None]
    return max((SHARE if column.sums is None else column.sums for column in columns), default=0.0)


def clipped_sums(
    public: Public, allot: Allotment, layout: Layout | None, parts: Mapping[Stratum, float], counted: float = 0.0
) -> ClippedSums:
    """Return `ClippedSums`: prices and noise of a fit's clipped sums, and the strata that they are asked of.

    Args:
        public: The facts about all records.
        allot: The fit's allotment.
        layout: The strata; None without any.
        parts: Mapping from stratum to its part of the amount; empty where no stratum may be asked.
        counted: The part of a stratum's price that buys tables of the columns.
    """
    columns, share, currency = clipped_columns(public.schema), share_of(public.schema), allot.currency
    amount, asked = share * allot.amount * DUST, dict[str, float]()

    def noise(price: float) -> float:
        question = Total(columns[0].query, shared(price, (1.0,) * len(columns))[0], currency)
        scale = question.scales(public.schema, public.neighbours)[0] / GRID
        return scale * 2**0.5 if currency == Currency.PURE else scale

    if layout is not None and public.size is not None and not layout.families:
        prices = {stratum: amount / 2 * part for stratum, part in parts.items()}
        if any(
            NORMAL_95 * noise(price * (1 - counted)) <= PRECISE * public.size * layout.shares[stratum]
            for stratum, price in prices.items()
        ):
            asked = {stratum.label: price for stratum, price in prices.items()}
    everybody = amount * min(parts.values(), default=1.0) / (2 if asked else 1)
    known = {"": noise(everybody), **{label: noise(price * (1 - counted)) for label, price in asked.items()}}
    return ClippedSums(columns, share, currency, everybody, asked, known, public.size, counted if asked else 0.0)


def parts_of(layout: Layout, budget: Budget, currency: Currency) -> dict[Stratum, float]:
    """Return a dict from stratum of `layout` to its part of the amount of `budget` in `currency`.

    A part is 1, or less beside a stratum with a larger budget.
    """
    if not layout.own_budgets:
        return dict.fromkeys(layout.strata, 1.0)
    own = {e: PAID[currency](replace(budget, epsilon=e)).amount for e in set(layout.epsilons.values())}
    return {stratum: own[layout.epsilons[stratum]] / max(own.values()) for stratum in layout.strata}


def ask_stratum(schema: Schema, sums: ClippedSums, price: float) -> Program[None]:
    """Program that asks a stratum's `ClippedSums` for `price`, part of it for tables of columns that vary in `schema`.

    It returns None.
    """
    yield from ask_totals(schema, sums, price * (1 - sums.counted))
    cliques = [(each.column,) for each in sums.columns if isinstance(schema.columns.get(each.column), Numeric)]
    if sums.counted and cliques:
        yield from counts(cliques, rho=price * sums.counted * len(cliques) / len(sums.columns))


def ask_totals(schema: Schema, sums: ClippedSums, price: float) -> Program[None]:
    """Program that asks the sum of each column of `ClippedSums` that varies in `schema`, for its part of `price`.

    It returns None.
    """
    for column, each in zip(sums.columns, shared(price, (1.0,) * len(sums.columns)), strict=True):
        if isinstance(schema.columns.get(column.column), Numeric):
            yield from (
                total(column.query, epsilon=each) if sums.currency == Currency.PURE else total(column.query, rho=each)
            )


def _plain(value: float) -> str:
    """Return the text of a number `value` for readers: to three digits, and whole from 1,000 on."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
