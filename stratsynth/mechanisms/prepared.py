"""A fit as far as public facts decide it: what may be known, spent and asked. Worked out once, before anything is read.

A plan, a fit and its certificate hold the same `Prepared`, so that strata, weights, candidates and prices are worked
out once for all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stratsynth.accounting import units
from stratsynth.accounting.budget import Budget
from stratsynth.accounting.prices import DEAREST, Worst
from stratsynth.checks import is_number, said, whole
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms.contract import Mechanism, Public
from stratsynth.mechanisms.nesting import CodeList, settle
from stratsynth.mechanisms.prior_rows import Found, PriorSource
from stratsynth.mechanisms.registry import as_mechanism
from stratsynth.mechanisms.terms import Terms
from stratsynth.schema import Nested, Schema
from stratsynth.schema.feasible import check_rules
from stratsynth.weights import Weights

if TYPE_CHECKING:
    from stratsynth.layout.layout import Layout


GIVEN = ("public_columns", "row_count")
"""What is not protected where neighbours differ in an attribute, as certificates list it."""


@dataclass(frozen=True, eq=False)
class Prepared(Terms):
    """The terms of one fit, with the facts that it starts from and that its certificate states."""

    code_lists: tuple[CodeList, ...] = ()
    """At which level code lists are counted."""
    prior: Found | None = None
    """What the fit starts from, as the certificate names it."""

    def __post_init__(self) -> None:
        """Refuse terms that do not hold, and what no certificate would name, however made.

        That is public rows and tables of no prior, and shares rows are drawn by. Shares are told to a mechanism by
        another that wraps it, after this.
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

    @cached_property
    def lacking(self) -> tuple[str, ...]:
        """The strata of which the prior has no rows, by their labels."""
        layout = self.strata
        if self.public.prior is None or layout is None:
            return ()
        exact = layout.weights.exact
        inside = {s: self.public.within(s, layout.shares[s], exact=exact).prior for s in layout.strata}
        return tuple(s.label for s, rows in inside.items() if rows is not None and rows.lacking)

    @property
    def prior_stated(self) -> dict[str, Any] | None:
        """What the certificate says of the prior, if there is one."""
        if self.prior is None:
            return None
        return {**self.prior.stated, **({"without_groups": list(self.lacking)} if self.lacking else {})}

    @cached_property
    def drawn(self) -> Layout | None:
        """The groups by whose shares rows are drawn, strata or not; None where nothing is said of any."""
        return self.mechanism.drawn(self.public, self.budget)

    @property
    def unprotected(self) -> list[str]:
        """All that is disclosed without noise; the public columns whether or not the mechanism takes them."""
        names = [] if self.public.size is None else ["declared_size"]
        given = GIVEN if self.budget.public else ()
        return list(dict.fromkeys([*names, *given, *self.mechanism.unprotected]))

    @cached_property
    def worst(self) -> Worst | None:
        """How a fit could have been dearest; None where kinds and prices of questions are fixed in advance."""
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
    """Everything that public facts decide of a fit; refuses all that can be refused without data.

    Args:
        mechanism: What is fitted, or its name.
        schema: The public schema.
        budget: What the fit may spend.
        declared_size: The number of records, if it is public.
        prior: Public rows that the fit starts from; they are mapped to the schema here.

    Raises:
        UsageError: What is no `Mechanism` and no name of one, no `Schema` or no `Budget`, with the remedy; a prior that
            has no place in the schema.
        Unsupported: What the mechanism cannot do for this schema, size or budget.
    """
    mechanism = as_mechanism(mechanism)
    if not isinstance(schema, Schema):
        raise UsageError(f"a Schema is wanted: table.schema, or Schema.load('schema.toml'); not {said(schema)}.")
    check_budget(budget)
    whole("declared_size", declared_size, 1, 2**53, optional=True)
    check_rules(schema)
    budget = units.protecting(budget, schema)
    check_delta(budget, declared_size)
    if prior is not None and type(prior) not in PriorSource.__subclasses__():
        raise UsageError(
            f"prior: a Prior is wanted, such as Prior.public(data, citation=...) or Prior.release(folder), not "
            f"{said(prior)}."
        )
    if prior is not None and not mechanism.takes_prior:
        raise Unsupported(
            f"{mechanism.title} does not start from a prior; take aim, mst, gem, pooled or independent, or leave the "
            "prior out."
        )

    def facts(schema: Schema) -> tuple[Public, Found | None]:
        found = None if prior is None else prior.found(schema)
        rows, tables = (None, ()) if found is None else (found.rows, found.tables)
        if not mechanism.takes_known:
            if any(not table.of_rows for table in tables):
                raise Unsupported(
                    f"{mechanism.title} starts from a prior's rows and takes no published tables: leave these out."
                )
            tables = ()
        return Public(schema, declared_size, budget.neighbours.priced, prior=rows, known=tables), found

    public, found = facts(schema)
    allot = mechanism.price(public, budget)
    if not any(isinstance(column, Nested) for column in schema.columns.values()):
        return Prepared(mechanism, public, budget, allot, prior=found)
    counted, lists = settle(mechanism, public, budget, allot)
    if counted is schema:
        return Prepared(mechanism, public, budget, allot, code_lists=lists, prior=found)
    public, found = facts(counted)
    return Prepared(mechanism, public, budget, mechanism.price(public, budget), schema, lists, found)


def check_budget(budget: object) -> None:
    """Refuse what is no budget; a number is taken for the epsilon of one."""
    if not isinstance(budget, Budget):
        epsilon = f"{budget:g}" if is_number(budget) else "1"
        raise UsageError(
            f"the budget must be a Budget, not {said(budget)}; write Budget(epsilon={epsilon}, delta=1e-9)."
        )


def check_delta(budget: Budget, declared_size: int | None) -> None:
    """Refuse a delta that would allow releasing a record outright."""
    if declared_size is not None and budget.delta >= 1 / declared_size:
        raise UsageError(
            f"budget: delta {budget.delta:g} is not below 1/{declared_size}, one over the declared size: "
            "it would allow releasing a record outright. 1e-9 is usual."
        )


def wrapped_by(mechanism: Mechanism[Any]) -> Iterator[Mechanism[Any]]:
    """The mechanisms among the settings of one, and among theirs."""
    settings: Any = mechanism
    for field in dataclasses.fields(settings) if dataclasses.is_dataclass(settings) else ():
        value = getattr(settings, field.name)
        if isinstance(value, Mechanism):
            yield value
            yield from wrapped_by(value)


def origins_of(mechanism: Mechanism[Any], layout: Layout | None) -> Iterator[Any]:
    """What the weights of a mechanism were read from: of its own, of those it wraps, and of the strata it declares."""
    if layout is not None:
        yield from layout.weights.given.origins
    settings: Any = mechanism
    for field in dataclasses.fields(settings) if dataclasses.is_dataclass(settings) else ():
        value = getattr(settings, field.name)
        if isinstance(value, Weights):
            yield from value.given.origins
        elif isinstance(value, Mechanism):
            yield from origins_of(value, None)
