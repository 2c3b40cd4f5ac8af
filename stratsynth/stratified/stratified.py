"""Stratification: one mechanism for each declared group, under parallel composition.

Every stratum gets the whole allotment, or less where its own budget says so, because a record lies in one
stratum only; the results are combined by weights. It is itself a mechanism, made of `split`: strata may be
stratified again, or pooled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from stratsynth.accounting.budget import Currency, Neighbours, less
from stratsynth.errors import RecipeError, Unsupported, UsageError
from stratsynth.layout.budgets import StratumBudgets
from stratsynth.layout.layout import Layout
from stratsynth.mechanisms import Mechanism, Public, as_mechanism, load, make, once
from stratsynth.models import Returns, combine
from stratsynth.questions import Counts, Program, Question, Split, counts, split
from stratsynth.strata import Stratum
from stratsynth.strata.groups import Groups
from stratsynth.stratified.wrapper import Groupwise
from stratsynth.weights import Resolved, Weights
from stratsynth.weights.private import counted

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget

ONE_WAY = "independent"
"""Mechanism of small strata under the policy "one-way"."""


@dataclass(frozen=True)
class StratumInputs:
    """One stratum's mechanism with its facts and its allotment; the stratum's levels are not among them."""

    mechanism: Mechanism[Any]
    public: Public
    allot: Allotment
    made_up: float
    """Size (else share) used only to simulate answers in a rehearsal; programs never see it.

    With private weights it differs from the size that the program gets, which follows from a noisy answer.
    """


def equivalence_classes(given: Mapping[Stratum, StratumInputs]) -> dict[Stratum, list[Stratum]]:
    """Return {first stratum of a class: list of all of its strata}, of those with equal `StratumInputs` in `given`."""
    kinds: dict[Hashable, list[Stratum]] = {}
    for stratum, one in given.items():
        # all that a rehearsal depends on, made-up answers included
        known = id(one.mechanism), one.public, one.allot, one.made_up
        kinds.setdefault(known, []).append(stratum)
    return {kind[0]: kind for kind in kinds.values()}


@dataclass(frozen=True)
class Stratified(Groupwise[Any]):
    """One fit of `mechanism` in each stratum of `by`, under parallel composition, combined by `weights`."""

    name: ClassVar[str] = "stratified"
    mechanism: Mechanism[Any] | str
    """Mechanism fitted in each stratum, or its name. Without stratification, this alone is the vanilla mechanism."""
    by: Sequence[str]
    """Columns whose levels, fully crossed, are the strata: every combination exists, however few rows it has."""
    weights: Weights
    """Shares of the strata: the exact proportions of the groups in the release."""
    groups: Groups = field(default_factory=Groups)
    """Merges of levels, and the policy for small groups; by default every crossing is a stratum."""
    budgets: StratumBudgets | None = None
    """Strata that get less than the whole epsilon; None if all get the whole."""
    paid: float = field(default=0.0, repr=False, metadata={"digest": False, "describe": False})
    """Amount that each record pays for questions beside these, which strata with budgets of their own do not have; set
    by what asks them."""

    def __post_init__(self) -> None:
        """Refuse mechanisms that take the row count for public, and one-way groups unless rows are released.

        A named mechanism is made, columns are kept as a tuple; what `check_groups` refuses is refused too.
        """
        object.__setattr__(self, "mechanism", as_mechanism(self.mechanism, "stratified: "))
        self.check_groups()
        if self.inner.takes_row_count:
            raise Unsupported(
                f"stratified: {self.inner.name} takes the number of rows for public, which inside strata would "
                "publish the size of every group. Fit it on the whole table."
            )
        if self.groups.small == "one-way" and self.returns != Returns.ROWS:
            raise Unsupported(
                f"stratified: {self.inner.name} releases {self.returns}, which one-way tables of small groups "
                'cannot be combined with; take small = "merge" or "keep".'
            )

    @property
    def inner(self) -> Mechanism[Any]:
        """Mechanism that is fitted in each stratum: the setting `mechanism`."""
        return cast("Mechanism[Any]", self.mechanism)  # __post_init__ made it one

    @property
    def needs(self) -> frozenset[type[Question]]:
        """Set of the question classes of a fit: the inner mechanism's and `Split`.

        Also `Counts`, if weights are measured privately or small strata get one-way tables only.
        """
        own = {Counts} if self.weights.asked or self.groups.small == "one-way" else set()
        return self.inner.needs | {Split} | own

    @property
    def only_strata(self) -> bool:
        """True if no question goes to all records: no private weights, and the inner mechanism makes no strata."""
        return not self.weights.asked and Split not in self.inner.needs

    def relative(self, epsilon: float) -> Stratified:
        """Return a copy whose budgets of single strata are factors of `epsilon`; itself if it has none."""
        return self if self.budgets is None else replace(self, budgets=self.budgets.relative(epsilon))

    @property
    def adaptive(self) -> bool:
        """True if the inner mechanism's kinds or prices of questions depend on answers; nothing else does."""
        return self.inner.adaptive

    @property
    def fitted(self) -> Mechanism[Any]:
        """Mechanism that the certificate describes as fitted: the inner one, of each stratum."""
        return self.inner

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the largest allotment of any stratum for the budget, by public facts.

        Unsupported for currencies that are mixed or do not go with weights, budgets or neighbours; UsageError for a
        stratum with less than private weights cost.
        """
        if self.weights.asked and self.inner.takes_linked:
            raise Unsupported(
                "stratified: private weights are counts of one table, and these are two linked ones: take public "
                "shares of the parents, Weights.public(shares, citation=...)."
            )
        if public.known and self.inner.takes_linked:
            raise Unsupported(
                "stratified: a prior of two linked tables has no tables of single strata: fit without strata, or "
                "without the prior."
            )
        prices = self._prices(public, budget)
        dearest = max(prices.values(), key=lambda allot: allot.amount)
        currencies = {allot.currency for allot in prices.values()}
        if len(currencies) > 1:
            raise Unsupported(
                f"stratified: one-way tables are counted in zCDP; {self.inner.name} spends otherwise. "
                "Keep small groups, or merge them."
            )
        if self.weights.asked and dearest.currency != Currency.ZCDP:
            raise Unsupported(
                f"stratified: private weights are counted in zCDP; {self.inner.name} spends in {dearest.currency}. "
                "Take another source of weights."
            )
        if self.budgets is not None and dearest.currency == Currency.SAMPLED:
            raise Unsupported("stratified: steps on samples are alike in all strata; leave the strata's budgets out.")
        if self.budgets is not None and budget.neighbours != Neighbours.ADD_REMOVE:
            raise Unsupported(
                "stratified: a record that is exchanged may be in any two strata, so a budget of its own protects "
                'nobody more; use neighbours = "add-remove", or leave the strata\'s budgets out.'
            )
        if dearest.currency == Currency.SAMPLED and budget.neighbours == Neighbours.REPLACE:
            raise Unsupported(
                "stratified: a record that is exchanged may leave one stratum and enter another, and steps on samples "
                f'of both would be more than {self.inner.name} reserves; use neighbours = "add-remove", or fit '
                "everybody together."
            )
        asked = dearest.amount * self.weights.asked
        for stratum, allot in prices.items():
            if not allot.amount > asked:
                raise UsageError(
                    f"budgets: stratum {stratum.label} has less than the counts cost that everybody pays for private "
                    "weights; give it more, or the counts a smaller share."
                )
        return replace(dearest, promise=budget)

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """Return a program on public facts, for the allotment, of all strata in lock-step by `rng`; combines models."""
        given, weights = yield from self._stratum_inputs(public, allot)
        streams = rng.spawn(len(given))  # streams of randomness are spawned, never shared
        parts = yield from split(
            {
                s: one.mechanism.steps(one.public, one.allot, stream)
                for (s, one), stream in zip(given.items(), streams, strict=True)
            }
        )
        return combine(public.schema, parts, weights)

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """Return a program on public facts that rehearses strata for the allotment, by `rng`, and combines models.

        Its noise is shown. All use one seed, and one stratum stands for its equivalence class; strata within strata are
        rehearsed one by one.
        """
        given, weights = yield from self._stratum_inputs(public, allot)
        kinds = equivalence_classes(given) if not public.constant else {stratum: [stratum] for stratum in given}
        seed = rng.bit_generator.random_raw()
        programs = {
            s: one.mechanism.rehearsal(one.public, one.allot, np.random.default_rng(seed))
            for s, one in given.items()
            if s in kinds
        }
        parts = yield from split(programs, alike=kinds)
        if None in parts.values():
            return None
        first = {stratum: one for one, kind in kinds.items() for stratum in kind}
        return combine(public.schema, {stratum: parts[first[stratum]] for stratum in given}, weights)

    def _stratum_inputs(
        self, public: Public, allot: Allotment
    ) -> Program[tuple[Mapping[Stratum, StratumInputs], Resolved]]:
        """Program on public facts, allotment: asks private weights; gives ({stratum: `StratumInputs`}, `Resolved`)."""
        layout, size = self.strata(public, allot.promise), public.size
        weights, asked = layout.resolved, allot.amount * self.weights.asked
        if asked:  # before the split, so that everybody pays; what was decided above does not depend on it
            (table,) = yield from counts([tuple(self.by)], rho=asked)
            weights, total = counted(table, layout.strata, public.schema)
            public = self.sized(public, total, allot.promise)
        if self.budgets is None:
            left = replace(allot, amount=less(allot.amount, asked)) if asked else allot
            allots = dict.fromkeys(layout.strata, left)
        else:
            prices = self._prices(public, allot.promise)
            part, paid = allot.amount / max(price.amount for price in prices.values()), asked + self.paid
            allots = {s: replace(price, amount=less(price.amount * part, paid)) for s, price in prices.items()}
        inner, exact = self._inner(layout), self.weights.exact
        made_up = {s: share if size is None else round(size * share) for s, share in layout.shares.items()}
        return {
            s: StratumInputs(inner(s), public.within(s, weights.shares[s], exact=exact), allots[s], made_up[s])
            for s in layout.strata
        }, weights

    def _inner(self, layout: Layout) -> Callable[[Stratum], Mechanism[Any]]:
        """Return a function from a stratum of `layout` to its mechanism.

        Small strata have one-way counts, if that was declared for them.
        """
        if layout.declared.small != "one-way":
            return lambda _: self.inner
        plain = make(ONE_WAY, {})
        return lambda stratum: plain if stratum in layout.small else self.inner

    @once
    def _prices(self, public: Public, budget: Budget) -> dict[Stratum, Allotment]:
        """Return {stratum: `Allotment`} that its mechanism asks for its own epsilon, by public facts and budget."""
        layout = self.strata(public, budget)
        found: dict[Hashable, Allotment] = {}
        inner, exact = self._inner(layout), self.weights.exact
        prices = {}
        for stratum in layout.strata:
            how, epsilon = inner(stratum), layout.epsilons[stratum]
            inside = public.within(stratum, layout.shares[stratum], exact=exact)
            key = id(how), inside, epsilon
            if key not in found:
                found[key] = how.price(inside, replace(budget, epsilon=epsilon))
            prices[stratum] = found[key]
        return prices


def makes_strata(name: str) -> bool:
    """True if the registered mechanism of this name makes strata itself, as `pooled` does (a `Groupwise`)."""
    return issubclass(load(name), Groupwise)


def stratify(
    name: str,
    settings: Mapping[str, Any],
    by: Sequence[str],
    weights: Weights,
    groups: Groups,
    budgets: StratumBudgets | None = None,
) -> Mechanism[Any]:
    """Return the mechanism `name` in strata by `by`: by its own `settings` if it makes strata, else in a `Stratified`.

    `by` are columns; `settings` values by name; `weights`, `groups` and `StratumBudgets` those of the strata.
    RecipeError if the settings name one of them, too; Unsupported if the mechanism has no such field.
    """
    if not makes_strata(name):
        return Stratified(make(name, settings), by, weights, groups, budgets)
    declared = {"by": by, "weights": weights, "groups": groups, "budgets": budgets}
    said = [key for key in declared if key in settings]
    if said:
        raise RecipeError(f"mechanism: {name} gets `{said[0]}` from [strata], [weights] and [budget]; leave it out.")
    wanted = {key: value for key, value in declared.items() if value not in (None, Groups())}
    lacking = [key for key in wanted if key not in _fields(name)]
    if lacking:
        raise Unsupported(f"mechanism: {name} knows no {lacking[0]} of strata; leave them out.")
    return make(name, {**settings, **wanted})


def _fields(name: str) -> set[str]:
    return {field.name for field in fields(cast("Any", load(name))) if field.init}
