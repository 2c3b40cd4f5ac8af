"""Clipped sums of numbers, asked beside what a mechanism asks: of whom, at what price, with what noise.

Where a numeric column declares `clip`, a part of the fit's amount buys noisy sums of

    min(x, clip) - middle,    middle = (lower + clip) / 2,

of everybody, and of each stratum that is large enough by its public size; the mechanism has the rest. A record moves a
sum by at most half the width of [lower, clip], and an exchanged one by all of it, times the largest row weight. Values
that are no quantities add nothing: the sum is of the records with a number, whose mean is middle + sum / their number.

Everybody and strata have half of the part each, as a record is in both; where no stratum is asked, everybody has it
all. Columns share a half equally. A stratum is asked if the noise of a sum alone leaves its mean within PRECISE of half
the width of [lower, clip] at 95 %, which says the same of every column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

from stratsynth.accounting.budget import Allotment, Budget, Currency, less
from stratsynth.errors import Unsupported
from stratsynth.mechanisms.contract import Mechanism, Public, once
from stratsynth.models.base import Returns
from stratsynth.questions import Columns, Program, Question, Split, Total, split, total
from stratsynth.questions.base import shared
from stratsynth.questions.sums.clipping import GRID
from stratsynth.schema import Numeric
from stratsynth.strata import within

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Neighbours
    from stratsynth.layout.layout import Layout
    from stratsynth.schema import Schema
    from stratsynth.strata import Stratum

SHARE = 0.05
"""Part of a fit's amount that clipped sums cost, where the columns with a `clip` declare none."""
PRECISE = 0.05
"""Half width of the mean of a stratum that is asked, at most, by the sum's noise alone: in half widths of [lower,
clip]."""
NORMAL_95 = NormalDist().inv_cdf(0.975)
PAID: Mapping[Currency, Callable[[Budget], Allotment]] = {Currency.ZCDP: Budget.zcdp, Currency.PURE: Budget.pure}
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
        """Sum of min(x, clip) - middle over records, in the column's own unit."""
        return Columns((self.column,), (self.middle,), (1.0,), self.half, raw=True)

    def to_dict(self) -> dict[str, Any]:
        """Return name and bounds as JSON values."""
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
    why_not: str = ""
    """Reason why none is asked; empty if they are."""

    @property
    def asked(self) -> bool:
        """True if sums are asked."""
        return not self.why_not

    def half_width(self, column: ClippedColumn) -> float | None:
        """Return half the width of everybody's mean at 95 %, by the sum's noise alone, if all have a number."""
        return None if self.size is None else NORMAL_95 * self.noise[""] * column.half / self.size

    def __str__(self) -> str:
        """Return a sentence for a plan."""
        if not self.asked:
            return f"no clipped sums are asked: {self.why_not}"
        unit = f"{self.currency.unit} {self.everybody:.3g} for everybody"
        if self.strata:
            least, most = (f"{price:.3g}" for price in (min(self.strata.values()), max(self.strata.values())))
            each = least if least == most else f"{least} to {most}"
            unit += f", {each} in each of {len(self.strata):,} strata that are large enough"
        columns = "; ".join(self._words(column) for column in self.columns)
        return f"for {100 * self.share:g} % of the budget ({unit}), for means: {columns}"

    def _words(self, column: ClippedColumn) -> str:
        noise, half = self.noise[""] * column.half, self.half_width(column)
        mean = "" if half is None else f", which leaves everybody's mean within {half:,.3g} (95 %, without other noise)"
        return f"sum of {column.column} up to {column.clip:,.10g}, give or take {noise:,.3g}{mean}"

    def to_dict(self) -> dict[str, Any]:
        """Return its figures as JSON values, as plans and certificates state them."""
        if not self.asked:
            return {"asked": False, "why": self.why_not}
        columns = [
            {**one.to_dict(), "noise_sd": self.noise[""] * one.half, "half_width": self.half_width(one)}
            for one in self.columns
        ]
        return {
            "asked": True, "share": self.share, self.currency.unit: self.everybody, "columns": columns,
            "strata": dict(self.strata), "declared": self.size, "precise": PRECISE,
        }  # fmt: skip


def clipped_columns(schema: Schema) -> tuple[ClippedColumn, ...]:
    """Return the schema's numeric columns that declare a clip and do not switch their sums off."""
    return tuple(
        ClippedColumn(name, float(column.lower), float(column.clip))
        for name, column in schema.columns.items()
        if isinstance(column, Numeric) and column.clip is not None and column.sums != 0
    )


def share_of(schema: Schema) -> float:
    """Return the part of a fit's amount for clipped sums: the largest that a column with a clip declares."""
    columns = [column for column in schema.columns.values() if isinstance(column, Numeric) and column.clip is not None]
    return max((SHARE if column.sums is None else column.sums for column in columns), default=0.0)


@dataclass(frozen=True)
class WithSums(Mechanism[Any]):
    """A mechanism for rows that has a part of its amount taken for clipped sums, and returns the same model."""

    mechanism: Mechanism[Any]
    """Mechanism that makes the rows."""

    @property
    def name(self) -> str:
        """Name of the mechanism inside."""
        return self.mechanism.name

    @property
    def needs(self) -> frozenset[type[Question]]:
        """Set of the question classes of the mechanism inside, and `Total`."""
        return self.mechanism.needs | {Total}

    returns: ClassVar[Returns] = Returns.ROWS

    @property
    def adaptive(self) -> bool:
        """True if the kinds or prices of the mechanism's own questions depend on answers."""
        return self.mechanism.adaptive

    @property
    def unprotected(self) -> tuple[str, ...]:
        """Names of the inner mechanism's disclosures without noise."""
        return self.mechanism.unprotected

    @property
    def takes_row_count(self) -> bool:
        """True if the mechanism inside takes the exact number of rows for public."""
        return self.mechanism.takes_row_count

    @property
    def takes_prior(self) -> bool:
        """True if the mechanism inside starts from a prior."""
        return self.mechanism.takes_prior

    @property
    def takes_known(self) -> bool:
        """True if the mechanism inside takes known tables for exact."""
        return self.mechanism.takes_known

    @property
    def public_rows_only(self) -> bool:
        """True if the mechanism inside is for rows declared public only."""
        return self.mechanism.public_rows_only

    @property
    def title(self) -> str:
        """Title of the mechanism inside, on pages and in ledgers."""
        return self.mechanism.title

    @property
    def fitted(self) -> Mechanism[Any]:
        """Mechanism that the certificate describes: the one that makes the rows."""
        return self.mechanism.fitted

    def relative(self, epsilon: float) -> WithSums:
        """Return a copy in which the inner mechanism's epsilons are fractions of `epsilon`."""
        return replace(self, mechanism=self.mechanism.relative(epsilon))

    def strata(self, public: Public, budget: Budget) -> Layout | None:
        """Return the inner mechanism's layout, of which it is no longer true that strata alone are asked."""
        layout = self.mechanism.strata(public, budget)
        if layout is None or not layout.only_strata:
            return layout
        return public.keep((id(layout), "everybody too"), lambda: (replace(layout, only_strata=False), layout))[0]

    def drawn(self, public: Public, budget: Budget) -> Layout | None:
        """Return the layout of the groups by whose shares the inner mechanism draws rows."""
        return self.mechanism.drawn(public, budget)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the inner mechanism's allotment, of which it gets what the sums leave."""
        return self.mechanism.price(public, budget)

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """Return a program that asks the sums, and then runs the inner mechanism's with the rest."""
        yield from self._sums(public, allot)
        return (yield from self.mechanism.steps(public, self._rest(public, allot), rng))

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """Return a program that asks the sums, and then the inner mechanism's rehearsal with the rest."""
        yield from self._sums(public, allot)
        return (yield from self.mechanism.rehearsal(public, self._rest(public, allot), rng))

    @once
    def sums(self, public: Public, allot: Allotment) -> ClippedSums:
        """Return prices and noise of the sums, and the strata that they are asked of."""
        columns, share = clipped_columns(public.schema), share_of(public.schema)
        layout, amount, budget = self.strata(public, allot.promise), share * allot.amount * DUST, allot.promise
        asked: dict[str, float] = {}
        parts = {} if layout is None or Split not in self.needs else parts_of(layout, budget, allot.currency)
        if parts and layout is not None and public.size is not None and not layout.families:
            asked = {
                stratum.label: amount / 2 * part
                for stratum, part in parts.items()
                if NORMAL_95 * self._noise(public, amount / 2 * part, allot.currency)
                <= PRECISE * public.size * layout.shares[stratum]
            }
        everybody = amount * min(parts.values(), default=1.0) / (2 if asked else 1)
        noise = {"": everybody, **asked}
        return ClippedSums(
            columns,
            share,
            allot.currency,
            everybody,
            asked,
            {label: self._noise(public, price, allot.currency) for label, price in noise.items()},
            public.size,
        )

    def _noise(self, public: Public, price: float, currency: Currency) -> float:
        """Return the standard deviation of the noise of one of the sums that cost `price`, in half widths."""
        columns = clipped_columns(public.schema)
        each = shared(price, (1.0,) * len(columns))[0]
        return noise_of(Total(columns[0].query, each, currency), public.schema, public.neighbours)

    def _rest(self, public: Public, allot: Allotment) -> Allotment:
        return replace(allot, amount=less(allot.amount, share_of(public.schema) * allot.amount))

    def _sums(self, public: Public, allot: Allotment) -> Program[None]:
        """Ask the sums of everybody, then those of all large strata at once."""
        sums, layout = self.sums(public, allot), self.strata(public, allot.promise)
        yield from _totals(public.schema, sums, sums.everybody)
        if sums.strata and layout is not None:
            large = [stratum for stratum in layout.strata if stratum.label in sums.strata]
            yield from split({s: _totals(within(public.schema, (s,)), sums, sums.strata[s.label]) for s in large})


def noise_of(question: Total, schema: Schema, neighbours: Neighbours) -> float:
    """Return the standard deviation of a sum's noise, in clips of its one block."""
    scale = question.scales(schema, neighbours)[0] / GRID
    return scale * 2**0.5 if question.currency == Currency.PURE else scale


def parts_of(layout: Layout, budget: Budget, currency: Currency) -> dict[Stratum, float]:
    """Return the part of the fit's amount that each stratum has: 1, or less where it has a budget of its own."""
    if not layout.own_budgets:
        return dict.fromkeys(layout.strata, 1.0)
    paid = PAID[currency]
    whole = paid(budget).amount
    own = {e: paid(replace(budget, epsilon=e)).amount / whole for e in set(layout.epsilons.values())}
    return {stratum: min(1.0, own[layout.epsilons[stratum]]) for stratum in layout.strata}


def _totals(schema: Schema, sums: ClippedSums, price: float) -> Program[None]:
    """Ask the sum of each column that varies here, one after another, for its part of the price."""
    for column, each in zip(sums.columns, shared(price, (1.0,) * len(sums.columns)), strict=True):
        if isinstance(schema.columns.get(column.column), Numeric):
            yield from (
                total(column.query, epsilon=each) if sums.currency == Currency.PURE else total(column.query, rho=each)
            )


def with_sums(mechanism: Mechanism[Any], public: Public, allot: Allotment) -> Mechanism[Any]:
    """Return the mechanism with the clipped sums of a schema's columns; itself where none are asked."""
    return mechanism if why_no_sums(mechanism, public.schema, allot) else WithSums(mechanism)


def without_sums(mechanism: Mechanism[Any]) -> Mechanism[Any]:
    """Return the mechanism inside, if this one asks clipped sums beside it; otherwise itself."""
    return mechanism.mechanism if isinstance(mechanism, WithSums) else mechanism


def why_no_sums(mechanism: Mechanism[Any], schema: Schema, allot: Allotment) -> str:
    """Return the reason why a fit asks no clipped sums; empty if it asks them."""
    if mechanism.returns != Returns.ROWS:
        return f"{mechanism.name} makes {mechanism.returns}, and asks what it needs itself"
    if not clipped_columns(schema) or not share_of(schema):
        return OFF
    if allot.currency not in PAID:
        return f"{mechanism.name} spends in {allot.currency}, in which no sum beside its own questions has a price"
    return ""


def check_sums_served(mechanism: Mechanism[Any], reads: Iterable[str]) -> None:
    """Refuse clipped sums of rows that a backend with these reads cannot add up.

    Raises:
        Unsupported: With the remedy, which is to switch them off.
    """
    if isinstance(mechanism, WithSums) and not Total.reads <= frozenset(reads):
        raise Unsupported(
            "the schema declares a clip, and these rows answer no clipped sums: set sums = 0 in each column with a "
            'clip, or take engine = "memory", which needs memory for all rows.'
        )


def clipped_sums(mechanism: Mechanism[Any], public: Public, allot: Allotment) -> ClippedSums | None:
    """Return the clipped sums of a fit, or the reason why it has none; None without a clip, and without rows."""
    if isinstance(mechanism, WithSums):
        return mechanism.sums(public, allot)
    declared = (isinstance(c, Numeric) and c.clip is not None for c in public.schema.columns.values())
    if not any(declared) or mechanism.returns != Returns.ROWS:
        return None
    return ClippedSums(why_not=why_no_sums(mechanism, public.schema, allot))
