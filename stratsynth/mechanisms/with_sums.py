"""A mechanism for rows with questions beside its own: clipped sums, places within bins, multiples, tables by strata.

The wrapping program asks them first, of everybody and, of clipped sums, of the strata; then it runs the mechanism's
program with what they leave of the amount, and returns its model. So charges, strata side by side,
journal, resumption, plan and rehearsal are those of any program.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from stratsynth.accounting.budget import Allotment, Budget, Currency, less
from stratsynth.errors import Unsupported
from stratsynth.mechanisms.bin_sums import (
    BinSum,
    BinSums,
    ByTables,
    bin_sums,
    by_tables,
    check_by_tables,
    why_no_bin_sums,
)
from stratsynth.mechanisms.clipped_sums import (
    COUNTED,
    OFF,
    PAID,
    ClippedSums,
    ask_stratum,
    ask_totals,
    clipped_columns,
    clipped_sums,
    parts_of,
    share_of,
)
from stratsynth.mechanisms.contract import Mechanism, Public, once
from stratsynth.models.base import Returns
from stratsynth.questions import Counts, Program, Question, Split, Total, counts, split, total
from stratsynth.schema import Numeric
from stratsynth.strata import within

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.layout.layout import Layout
    from stratsynth.strata import Stratum


@dataclass(frozen=True)
class WithSums(Mechanism[Any]):
    """A mechanism for rows that has a part of its amount taken for sums of numbers, and returns the same model."""

    mechanism: Mechanism[Any]
    """Mechanism that makes the rows."""

    @property
    def name(self) -> str:
        """Name of the mechanism that is wrapped, such as "aim"."""
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
        """Tuple of names of the inner mechanism's disclosures without noise."""
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
        """Return the inner layout by public facts and budget, marked as asking more than strata; None without any."""
        layout = self.mechanism.strata(public, budget)
        if layout is None or not layout.only_strata:
            return layout
        return public.keep((id(layout), "everybody too"), lambda: (replace(layout, only_strata=False), layout))[0]

    def drawn(self, public: Public, budget: Budget) -> Layout | None:
        """Return the inner layout, by public facts and budget, of groups by whose shares rows are drawn; or None."""
        return self.mechanism.drawn(public, budget)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the inner mechanism's allotment for public facts and budget, of which it gets what the sums leave."""
        return self.mechanism.price(public, budget)

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """Return a program on public facts: asks the allotment's sums, then runs the inner mechanism by `rng`."""
        yield from self._ask(public, allot)
        mechanism, rest = self._rest(public, allot)
        return (yield from mechanism.steps(public, rest, rng))

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """Return a program on public facts: asks the allotment's sums, then rehearses the inner mechanism by `rng`."""
        yield from self._ask(public, allot)
        mechanism, rest = self._rest(public, allot)
        return (yield from mechanism.rehearsal(public, rest, rng))

    @once
    def sums(self, public: Public, allot: Allotment) -> ClippedSums | None:
        """Return the `ClippedSums` that `allot` pays by the facts `public`; None if no column asks for sums."""
        if not clipped_columns(public.schema):
            return None
        counted = COUNTED if self.mechanism.borrows else 0.0
        return clipped_sums(public, allot, self.strata(public, allot.promise), self._parts(public, allot), counted)

    @once
    def bin_sums(self, public: Public, allot: Allotment) -> tuple[BinSum, ...]:
        """Return a tuple of `BinSum`, questions within bins that the allotment pays by public facts; () for none."""
        least = min(self._parts(public, allot).values(), default=1.0)
        return bin_sums(public.schema, public.size, allot, public.neighbours, least)

    def _parts(self, public: Public, allot: Allotment) -> dict[Stratum, float]:
        """Return {stratum: its part, up to 1, of the allotment's amount}, by public facts; {} if none is asked."""
        layout = self.strata(public, allot.promise)
        return {} if layout is None or Split not in self.needs else parts_of(layout, allot.promise, allot.currency)

    def tables(self, public: Public, allot: Allotment) -> ByTables | None:
        """Return the `ByTables` of everybody by strata's columns, by public facts and the allotment; here None."""
        return None

    def _rest(self, public: Public, allot: Allotment) -> tuple[Mechanism[Any], Allotment]:
        """Return (mechanism inside, its `Allotment`: `allot` less what a record pays beside it, by public facts).

        Strata with budgets of their own have theirs, less their own sums and what everybody pays.
        """
        layout, tables, sums = self.strata(public, allot.promise), self.tables(public, allot), self.sums(public, allot)
        paid = [*(one.price for one in self.bin_sums(public, allot)), 0.0 if tables is None else tables.rho]
        if layout is not None and layout.own_budgets:
            strata, everybody = (0.0, 0.0) if sums is None else (sums.of_strata * allot.amount, sums.everybody)
            wrapped: Mechanism[Any] = replace(cast("Any", self.mechanism), paid=math.fsum([*paid, everybody]))
            return wrapped, replace(allot, amount=less(allot.amount, strata))
        clipped = share_of(public.schema) * allot.amount if sums is not None else 0.0
        return self.mechanism, replace(allot, amount=less(less(allot.amount, clipped), math.fsum(paid)))

    def _ask(self, public: Public, allot: Allotment) -> Program[None]:
        """Program that asks, on public facts, all that the allotment pays: sums, bins, tables, sums of strata.

        It returns None.
        """
        sums, layout = self.sums(public, allot), self.strata(public, allot.promise)
        if sums is not None:
            yield from ask_totals(public.schema, sums, sums.everybody)
        for one in self.bin_sums(public, allot):
            pure = allot.currency == Currency.PURE
            yield from total(one.query, epsilon=one.price) if pure else total(one.query, rho=one.price)
        if (tables := self.tables(public, allot)) is not None:
            yield from counts(tables.cliques, rho=tables.rho)
        if sums is not None and sums.strata and layout is not None:
            each = sums.strata
            yield from split({s: ask_stratum(within(public.schema, (s,)), sums, each[s.label]) for s in layout.strata})


@dataclass(frozen=True)
class WithTables(WithSums):
    """A mechanism for rows with tables of everybody by the strata's columns beside its questions, and with sums."""

    share: float
    """Part of the fit's amount that the tables cost."""
    sums_too: bool
    """True if sums are asked as well."""

    @property
    def needs(self) -> frozenset[type[Question]]:
        """Set of the question classes of the mechanism inside, `Counts`, and `Total` if sums are asked as well."""
        return self.mechanism.needs | ({Counts, Total} if self.sums_too else {Counts})

    @once
    def tables(self, public: Public, allot: Allotment) -> ByTables | None:
        """Return `ByTables` by strata's columns that the allotment pays by public facts; None without strata."""
        layout, least = self.strata(public, allot.promise), min(self._parts(public, allot).values(), default=1.0)
        return None if layout is None else by_tables(public, allot, layout, least)


def with_sums(mechanism: Mechanism[Any], public: Public, allot: Allotment) -> Mechanism[Any]:
    """Return the mechanism, for `public` and the allotment, wrapped to ask the sums and tables that are declared, too.

    Itself where none are asked, it draws no rows, or they have no price in its currency.

    Raises:
        Unsupported: Tables by the strata's columns that have no price.
    """
    layout = mechanism.strata(public, allot.promise)
    share = 0.0 if layout is None else layout.declared.by_tables
    if layout is not None and share:
        check_by_tables(mechanism, layout, allot.currency)
    if mechanism.returns != Returns.ROWS or allot.currency not in PAID:
        return mechanism
    numeric = [column for column in public.schema.columns.values() if isinstance(column, Numeric)]
    inside = any(column.places or column.heaps for column in numeric)
    sums = inside and not why_no_bin_sums(public.schema, public.size, allot.promise.epsilon)
    sums |= any(column.clip is not None and column.sums != 0 for column in numeric)
    if share:
        return WithTables(mechanism, share, sums)
    return WithSums(mechanism) if sums else mechanism


def without_sums(mechanism: Mechanism[Any]) -> Mechanism[Any]:
    """Return the mechanism inside, if this one asks sums beside it; otherwise itself."""
    return mechanism.mechanism if isinstance(mechanism, WithSums) else mechanism


class Beside(NamedTuple):
    """Questions that a fit asks beside its mechanism's own; of sums that are declared and not asked, the reason."""

    sums: ClippedSums | None
    """Clipped sums; None for a fit without rows, and where no column declares a clip."""
    bin_sums: BinSums | None
    """Questions about numbers within bins; None for a fit without rows, and where no column declares any."""
    by_tables: ByTables | None
    """Tables of everybody by the strata's columns; None without any."""


def stated_beside(mechanism: Mechanism[Any], public: Public, allot: Allotment) -> Beside:
    """Return `Beside`, what `mechanism`, perhaps one `with_sums`, asks beside, on the facts `public` for `allot`."""
    asks, sums, within_bins = mechanism if isinstance(mechanism, WithSums) else None, None, None
    rows = mechanism.returns == Returns.ROWS
    numeric = [column for column in public.schema.columns.values() if isinstance(column, Numeric)]
    paid = allot.currency in PAID
    why = "" if paid else f"{mechanism.name} spends in {allot.currency}, in which no sum beside its own has a price"
    if rows and any(column.clip is not None for column in numeric):
        sums = (asks and asks.sums(public, allot)) or ClippedSums(why_not=why or OFF)
    if rows and any(column.places or column.heaps for column in numeric):
        asked = () if asks is None else asks.bin_sums(public, allot)
        unasked = why or why_no_bin_sums(public.schema, public.size, allot.promise.epsilon)
        within_bins = BinSums(asked, public.size) if asked else BinSums(why_not=unasked)
    return Beside(sums, within_bins, None if asks is None else asks.tables(public, allot))


def check_sums_served(mechanism: Mechanism[Any], reads: Iterable[str]) -> None:
    """Refuse sums of rows that `mechanism` asks if a backend's `reads`, a list of names, lack those that they need.

    Raises:
        Unsupported: With the remedy, which is to switch them off.
    """
    if isinstance(mechanism, WithSums) and Total in mechanism.needs and not Total.reads <= frozenset(reads):
        raise Unsupported(
            "the schema declares clip, places or heaps, and these rows answer no sums: set sums = 0 in each column "
            'with a clip, and leave places and heaps out, or take engine = "memory", which needs memory for all rows.'
        )
