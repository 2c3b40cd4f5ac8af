"""A prepared fit: the facts, amounts and questions that public knowledge decides, before anything is read.

A plan, a fit and its certificate share one `Prepared`, so that strata, weights, candidates and prices are computed
once for all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Budget
from stratsynth.accounting.prices import DEAREST, Worst
from stratsynth.accounting.units import protecting
from stratsynth.checks import check_integer, is_number, quoted_value
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms.banding import CountedBands, banded
from stratsynth.mechanisms.contract import Mechanism, Public
from stratsynth.mechanisms.first import OFF, FirstQuestion, first_question
from stratsynth.mechanisms.nesting import CountedCodeList, settle
from stratsynth.mechanisms.prior_rows import MappedPrior, PriorSource
from stratsynth.mechanisms.registry import as_mechanism
from stratsynth.mechanisms.terms import Terms
from stratsynth.mechanisms.with_sums import Beside, stated_beside, with_sums, without_sums
from stratsynth.questions import Question
from stratsynth.questions.admission import kinds
from stratsynth.schema import Nested, Schema
from stratsynth.schema.counted_tables import CountedTables
from stratsynth.schema.rules import check_rules
from stratsynth.weights import Weights

if TYPE_CHECKING:
    from stratsynth.layout.layout import Layout


GIVEN = ("public_columns", "row_count")
"""Entries of `unprotected` under neighbours that differ in an attribute."""


@dataclass(frozen=True, eq=False)
class Prepared(Terms):
    """The terms of one fit, with the facts that it starts from and that its certificate states."""

    code_lists: tuple[CountedCodeList, ...] = ()
    """Levels at which code lists are counted."""
    bands: tuple[CountedBands, ...] = ()
    """Bands in which smooth numbers are counted."""
    prior: MappedPrior | None = None
    """Prior that the fit starts from, as the certificate names it; None without a prior."""
    first: FirstQuestion = FirstQuestion(why_not=OFF)  # noqa: RUF009 - frozen
    """First question of the fit, or why it has none."""

    def __post_init__(self) -> None:
        """Refuse terms that do not hold, and facts that no certificate would name, however made.

        Such facts are public rows or tables of no prior, and shares for drawing. Shares reach a mechanism through one
        that wraps it, after this check.
        """
        super().__post_init__()
        rows, tables = (None, ()) if self.prior is None else (self.prior.rows, self.prior.tables)
        if (self.public.prior is not None and self.public.prior is not rows) or any(
            not any(known is table for table in tables) for known in self.public.known
        ):
            raise UsageError(
                "this is prepared with public rows or tables that its certificate would not name: have it prepared by "
                "`prepare`, with a Prior, and give shares by Weighted(mechanism, weights)."
            )
        if self.drawn is None and any(
            type(each).drawn is not Mechanism.drawn and each.drawn(self.public, self.budget) is not None
            for each in wrapped_by(self.mechanism)
        ):
            raise Unsupported(
                f"{self.mechanism.name} draws rows by shares of groups and does not say so: its certificate could not "
                "name them. A mechanism that wraps another forwards its `drawn` too."
            )

    def without_first(self) -> Prepared:
        """Return the fit without a first question, all of whose amount is the mechanism's."""
        budget = self.budget.plain
        if (self.code_lists or self.bands) and self.prior is None:  # they may be others with more of the budget
            schema = self.declared or self.public.schema
            return prepare(self.mechanism, schema, dataclasses.replace(budget, first=0), self.public.size)
        return dataclasses.replace(
            self, budget=budget, allot=self.mechanism.price(self.public, budget), first=FirstQuestion(why_not=OFF)
        )

    @cached_property
    def beside(self) -> Beside:
        """`Beside`: sums and tables that are asked beside the mechanism's own questions."""
        return stated_beside(self.mechanism, self.public, self.allot)

    @cached_property
    def lacking(self) -> tuple[str, ...]:
        """Tuple of labels of the strata in which the prior has no rows of its own; () without strata or prior rows."""
        layout = self.strata
        if self.public.prior is None or layout is None:
            return ()
        exact = layout.weights.exact
        inside = {s: self.public.within(s, layout.shares[s], exact=exact).prior for s in layout.strata}
        return tuple(s.label for s, rows in inside.items() if rows is not None and rows.lacking)

    @property
    def prior_stated(self) -> dict[str, Any] | None:
        """Dict for the certificate about the prior, which names strata that it has no rows of; None without it."""
        if self.prior is None:
            return None
        return {**self.prior.stated, **({"without_groups": list(self.lacking)} if self.lacking else {})}

    @cached_property
    def drawn(self) -> Layout | None:
        """Layout of the groups by whose shares rows are drawn, strata or not; None without such shares."""
        return self.mechanism.drawn(self.public, self.budget)

    @property
    def unprotected(self) -> list[str]:
        """List of names of all disclosures without noise, public columns among them, taken by the mechanism or not."""
        names = [] if self.public.size is None else ["declared_size"]
        given = GIVEN if self.budget.public else ()
        return list(dict.fromkeys([*names, *given, *self.mechanism.unprotected]))

    @cached_property
    def worst(self) -> Worst | None:
        """Worst-case course of an adaptive fit; None if kinds and prices of questions are fixed in advance."""
        if not self.mechanism.adaptive:
            return None
        currency = self.allot.currency
        factor = max((kind.dearest[currency] for kind in self.mechanism.needs), default=DEAREST[currency])
        return Worst(factor, only_strata=self.strata is not None and self.strata.only_strata)


def prepare(
    mechanism: Mechanism[Any] | str,
    schema: Schema,
    budget: Budget,
    declared_size: int | None,
    prior: PriorSource | None = None,
) -> Prepared:
    """Return the `Prepared` fit that public facts decide; refuse everything that can be refused without data.

    Args:
        mechanism: The mechanism to be fitted, or its name.
        schema: The public schema.
        budget: The budget of the fit.
        declared_size: The number of records, if it is public.
        prior: `PriorSource` of public rows that the fit starts from; they are mapped to the schema here.

    Raises:
        UsageError: No `Mechanism` or name of one, no `Schema` or no `Budget`, with the remedy; or a prior that
            has no place in the schema.
        Unsupported: A schema, size or budget that the mechanism cannot serve.
    """
    mechanism = without_sums(as_mechanism(mechanism))
    if not isinstance(schema, Schema):
        raise UsageError(
            f"a Schema is wanted: table.schema, or Schema.load('schema.toml'); not {quoted_value(schema)}."
        )
    check_linked(mechanism, schema)
    check_budget(budget)
    check_integer("declared_size", declared_size, 1, 2**53, optional=True)
    check_rules(schema)
    budget = protecting(budget, schema)
    check_delta(budget, declared_size)
    if prior is not None and type(prior) not in PriorSource.__subclasses__():
        raise UsageError(
            f"prior: a Prior is wanted, such as Prior.public(data, citation=...) or Prior.release(folder), not "
            f"{quoted_value(prior)}."
        )
    if prior is not None and not mechanism.takes_prior:
        raise Unsupported(
            f"{mechanism.title} does not start from a prior; take aim, mst, gem, pooled or independent, or leave the "
            "prior out."
        )

    def facts(schema: Schema) -> tuple[Public, MappedPrior | None]:
        found = None if prior is None else prior.in_schema(schema)
        rows, tables = (None, ()) if found is None else (found.rows, found.tables)
        if not mechanism.takes_known:
            if any(not table.of_rows for table in tables):
                raise Unsupported(
                    f"{mechanism.title} starts from a prior's rows and takes no published tables: leave these out."
                )
            tables = ()
        return Public(schema, declared_size, budget.neighbours.priced, prior=rows, known=tables), found

    public, found = facts(schema)
    budget, allot, first = first_question(mechanism, public, budget)
    lists: tuple[CountedCodeList, ...] = ()
    if any(isinstance(column, Nested) for column in schema.columns.values()):
        counted, lists = settle(mechanism, public, budget, allot)
        if counted is not schema:
            public, found = facts(counted)
    counted, bands = banded(mechanism, public, budget, allot)
    if counted is not public.schema:
        public, found = facts(counted)
    declared = None if public.schema is schema else schema
    allot = allot if declared is None else mechanism.price(public, budget)
    how = with_sums(mechanism, public, allot)
    return Prepared(how, public, budget, allot, declared, lists, bands, found, first)


def check_linked(mechanism: Mechanism[Any], schema: Schema) -> None:
    """Raise Unsupported for a schema of two linked tables and a mechanism for one table, or the reverse."""
    linked = isinstance(schema, CountedTables)
    if linked and not mechanism.takes_linked:
        raise Unsupported(
            f"{mechanism.title} fits one table, and these are two linked ones: take the mechanism linked, which fits "
            "both by aim or mst."
        )
    if mechanism.takes_linked and not linked:
        raise Unsupported(
            f"{mechanism.title} fits two linked tables, and this is one: open both by open_tables(parent, child, "
            "schema=...), or take another mechanism."
        )


def check_budget(budget: object) -> None:
    """Raise UsageError for anything but a `Budget`; the message takes a number for an epsilon."""
    if not isinstance(budget, Budget):
        epsilon = f"{budget:g}" if is_number(budget) else "1"
        raise UsageError(
            f"the budget must be a Budget, not {quoted_value(budget)}; write Budget(epsilon={epsilon}, delta=1e-9)."
        )


def check_delta(budget: Budget, declared_size: int | None) -> None:
    """Raise UsageError for a budget's delta >= 1 / `declared_size`, which would allow releasing a record.

    Without a declared size (None) nothing is refused.
    """
    if declared_size is not None and budget.delta >= 1 / declared_size:
        raise UsageError(
            f"budget: delta {budget.delta:g} is not below 1/{declared_size}, one over the declared size: "
            "it would allow releasing a record outright. 1e-9 is usual."
        )


def check_served(name: str, needs: Iterable[type[Question]], reads: Iterable[str], *, database: bool = False) -> None:
    """Refuse mechanism `name` if a kind of question it `needs` reads more than a backend's `reads` name, with a remedy.

    `needs` are classes of questions; `reads` are names, of `tables`, `sums`, `columns` and `frame`; a `database` has
    another remedy.

    Raises:
        Unsupported: With the names of the kinds that such rows cannot answer; rows in memory answer all kinds.
    """
    known, able = set(kinds()), frozenset(reads)
    missing = sorted({kind for kind in needs if kind not in known or not kind.reads <= able}, key=lambda k: k.__name__)
    if missing:
        how = 'write the rows to a Parquet file, and take engine = "memory"' if database else 'take engine = "memory"'
        remedy = f"; {how}, which needs memory for all of them" if known.issuperset(missing) else ""
        named = ", ".join(kind.__name__ for kind in missing)
        raise Unsupported(f"{name} needs {named}, which these rows cannot answer{remedy}.")


def wrapped_by(mechanism: Mechanism[Any]) -> Iterator[Mechanism[Any]]:
    """Yield every mechanism that is a setting of this one, and those that are settings of them in turn."""
    settings: Any = mechanism
    for field in dataclasses.fields(settings) if dataclasses.is_dataclass(settings) else ():
        value = getattr(settings, field.name)
        if isinstance(value, Mechanism):
            yield value
            yield from wrapped_by(value)


def origins_of(mechanism: Mechanism[Any], layout: Layout | None) -> Iterator[Any]:
    """Yield the files, frames and tables of all weights: `layout`'s, if any, the mechanism's, and of those it wraps."""
    if layout is not None:
        yield from layout.weights.given.origins
    settings: Any = mechanism
    for field in dataclasses.fields(settings) if dataclasses.is_dataclass(settings) else ():
        value = getattr(settings, field.name)
        if isinstance(value, Weights):
            yield from value.given.origins
        elif isinstance(value, Mechanism):
            yield from origins_of(value, None)
