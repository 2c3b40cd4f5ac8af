"""Terms of a fit: the questions it may ask, the strata it may ask of, and the largest cost of each record.

The driver relies on them: a certificate's prices cover no question and no stratum that is not declared here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stratsynth.accounting import units
from stratsynth.accounting.budget import IN_RHO, Allotment, Budget, Currency, Neighbours
from stratsynth.accounting.prices import check_allotment
from stratsynth.errors import MechanismError, Unsupported, UsageError
from stratsynth.questions import PublicRows, Question, Split, Usable
from stratsynth.schema import Schema
from stratsynth.schema.nested import is_counted
from stratsynth.strata import Stratum, StratumPath, label

if TYPE_CHECKING:
    from stratsynth.layout.layout import Layout
    from stratsynth.mechanisms.contract import Mechanism, Public


@dataclass(frozen=True, eq=False)
class Terms:
    """A mechanism with the facts, the budget and the allotment of one fit."""

    mechanism: Mechanism[Any]
    public: Public
    budget: Budget
    """Budget with the schema's privacy unit, as `protecting` made it."""
    allot: Allotment
    """Amount that the mechanism may spend on one row."""
    declared: Schema | None = None
    """Schema as declared, if the fit counts its code lists in groups; None if it is `public.schema`."""

    def __post_init__(self) -> None:
        """Refuse an allotment beyond the budget, another schema, and strata without a layout, however made."""
        check_allotment(self.allot, self.budget)
        if self.declared is not None and not is_counted(self.declared, self.public.schema):
            raise UsageError("this is prepared for rows that are read by another schema than the declared one.")
        if self.budget != units.protecting(self.budget, self.public.schema):
            raise UsageError("this is prepared with a budget that does not protect what the schema says is protected.")
        self._check_attribute()
        self._check_exact()
        if Split in self.mechanism.needs and self.strata is None:
            raise Unsupported(
                f"{self.mechanism.name} asks by strata and declares none: its certificate could not say which. A "
                "mechanism that wraps another forwards its `strata`, `unprotected` and `adaptive` too."
            )

    def _check_attribute(self) -> None:
        """Raise Unsupported for public rows under neighbours other than `attribute`; under it, for protected strata."""
        if self.budget.neighbours != Neighbours.ATTRIBUTE:
            if PublicRows in self.mechanism.needs:
                raise Unsupported(
                    f"{self.mechanism.name} takes public columns as they are, which neighbours = "
                    f'"{self.budget.neighbours}" protects. Set neighbours = "attribute", and public = true in the '
                    "schema for the columns that need no protection."
                )
            return
        strata = () if self.strata is None else self.strata.strata
        for name in dict.fromkeys(name for stratum in strata for name in stratum.columns):
            if name not in self.budget.public:
                raise Unsupported(
                    f'{self.mechanism.name}: with neighbours = "attribute" strata are of public columns, and {name} is '
                    "not public: take other strata, or none."
                )

    def _check_exact(self) -> None:
        """Raise Unsupported under accounting = "exact" for a fit that may ask more than Gaussian tables and sums."""
        priced = (kind for kind in self.mechanism.needs if kind.exactly is Question.exactly)
        other = sorted(kind.__name__ for kind in priced if not hasattr(kind, "currency"))
        if self.budget.accounting == Currency.EXACT and (other or self.allot.currency != Currency.EXACT):
            asks = f"asks {', '.join(other)}" if other else f"spends in {self.allot.currency}"
            raise Unsupported(
                f'budget: accounting = "exact" is for Gaussian tables and sums, and {self.mechanism.name} {asks}. '
                "Leave it out, or take a mechanism such as independent, fixed or group_regression."
            )

    @cached_property
    def strata(self) -> Layout | None:
        """Layout of the strata that the mechanism declares; None if it asks of all records alone."""
        return self.mechanism.strata(self.public, self.budget)

    @cached_property
    def caps(self) -> dict[Stratum, float]:
        """Mapping, stratum of own, lower budget -> a unit's largest cost in the fit's currency; or Unsupported."""
        layout = self.strata
        if layout is None or not layout.own_budgets:
            return {}
        make = {**dict.fromkeys(IN_RHO, Budget.zcdp), Currency.PURE: Budget.pure, Currency.CLAIMED: Budget.claimed}
        currency = self.allot.currency
        if currency not in make:
            raise Unsupported(f"{self.mechanism.name}: strata have no budgets of their own in {currency}.")
        own = {s: replace(self.budget.plain, epsilon=e) for s, e in layout.epsilons.items() if e < self.budget.epsilon}
        return {stratum: units.per_unit(make[currency](budget)).amount for stratum, budget in own.items()}

    def admit(self, path: StratumPath, kinds: frozenset[type[Question]]) -> None:
        """Raise MechanismError if one of `kinds`, classes of questions, is not declared, or asking strata at `path`.

        The first question is the fit's own: its account grants it once, before the rest is reserved.
        """
        if self.budget.first and not path and kinds == {Usable}:
            return
        if self.budget.neighbours == Neighbours.ATTRIBUTE:
            for name in (name for stratum in path for name in stratum.columns if name not in self.budget.public):
                raise MechanismError(f"{self.mechanism.name} asks strata of {name}, which is not public.")
        for kind in kinds - self.mechanism.needs:
            raise MechanismError(f"{self.mechanism.name} asks {kind.__name__}, which it does not declare in `needs`.")
        layout = self.strata
        if layout is not None and layout.only_strata and len(path) != 1:
            where = f"strata within {label(path[:1])}" if path else "everybody"
            raise MechanismError(f"{self.mechanism.name} asks {where}, and declares that it asks strata alone.")
        declared = layout.members if layout is not None else frozenset()
        if path and (path[0] not in declared or Split not in self.mechanism.needs):
            raise MechanismError(
                f"{self.mechanism.name} asks stratum {label(path)}, which it does not declare in `strata`. A "
                "mechanism that wraps another forwards its `strata`, `unprotected` and `adaptive` too."
            )
