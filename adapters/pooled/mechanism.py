"""Pooled: one model of everybody, then every stratum moves it where its own people differ.

A part of the budget fits the base mechanism on everybody, without the columns that define the strata. Then, under
parallel composition, every stratum starts from that model and spends the rest on a few marginals of its own, chosen as
in AIM: by the model's error there, less the noise that measuring would bring. Its model is the pooled one, moved no
farther than its own tables require, so a stratum too small to measure anything keeps the pooled distribution. At last
all that measured something are raked together, so that their mixture has everybody's tables, which are the less noisy
ones. Rows are drawn by the strata's public weights.

A graphical model (AIM, MST) is moved by new terms, GEM's network by training it on from its own parameters. Levels
merged in a stratum vary there and are missing from the pooled model: a graphical model takes them in, a network cannot,
so GEM refuses such strata.

The pooled model's share, and the number of marginals that a stratum measures, follow from public sizes. The people of
one stratum influence the models of the others: where that must not be, stratify plainly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from stratsynth.accounting.budget import IN_RHO
from stratsynth.adapters.pooled.raked import raked
from stratsynth.adapters.pooled.specialised import Specialised
from stratsynth.adapters.shared.learner import Learner, Poolable
from stratsynth.adapters.shared.rounds import MEASURE, down, usual_rounds
from stratsynth.errors import Unsupported, UsageError
from stratsynth.layout.budgets import StratumBudgets
from stratsynth.layout.layout import lay_out
from stratsynth.mechanisms import Mechanism, Public, make, once
from stratsynth.questions import Choose, Counts, Program, Question, Split, Work
from stratsynth.questions.counts import table_sigma
from stratsynth.settings import at
from stratsynth.strata.groups import Groups
from stratsynth.stratified import Groupwise, Stratified, drawn_by, known_shares
from stratsynth.weights import Weights

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget

FAST = 60
"""Divisor of the rounds: with share = "auto", everybody's model gets 1 - rounds / FAST of the budget. Where that pays
for many rounds, everybody is soon well known, and strata have more to learn. Rounds are those of everybody, or, where
everybody's model grows with its budget, of a person's stratum. Chosen on the excerpt by `scripts/bench pooled`."""
SHARES = (0.3, 0.7)
"""Smallest and largest share that "auto" gives everybody's model."""


@dataclass(frozen=True, kw_only=True)
class Pooled(Groupwise[Any]):
    """Fit `base` on everybody, then move its model in every stratum of `by`; combine by `weights`."""

    name: ClassVar[str] = "pooled"
    base: Mechanism[Any] | str | Mapping[str, Any] = field(default_factory=lambda: make("aim", {"model_cells": 2**16}))
    """Mechanism that is fitted on everybody: AIM, MST, GEM or another `Poolable`; or its name, alone or with
    settings."""
    by: Sequence[str]
    """Columns whose levels, fully crossed, are the strata: every combination exists, however few rows it has."""
    weights: Weights
    """Shares of the strata: the groups' proportions in the release are exactly these."""
    groups: Groups = field(default_factory=Groups)
    """Merges of levels, and the policy for small groups; by default every crossing is a stratum."""
    budgets: None = None
    """Not available: everybody pays for the pooled model alike."""
    share: float | Literal["auto"] = at("auto", least=0, most=1)
    """Fraction of the budget that fits everybody's model; "auto" takes it from public sizes. With 1, strata measure
    nothing and only draw rows by the weights; with 0 every stratum gets the base's own fit."""
    prior: float = at(20.0, least=0, most=1e6)
    """Weight of everybody's model as a stratum's prior, in records; GEM has no such prior, only its start."""

    def __post_init__(self) -> None:
        """Refuse settings out of range, bases that strata cannot go on from, and budgets by stratum; make a named base.

        Refused too are unsound groups, and private weights with share 1.
        """
        super().__post_init__()
        if isinstance(self.base, str | Mapping):
            settings: dict[str, Any] = {"name": self.base} if isinstance(self.base, str) else dict(self.base)
            object.__setattr__(self, "base", make(str(settings.pop("name", "")), settings))
        if isinstance(self.base, Mechanism) and self.base.takes_linked:
            raise Unsupported(
                "pooled: no model of two linked tables can be moved in strata, as its steps depend on one another: "
                "take the mechanism linked in strata, each fitted by itself, or without strata."
            )
        if not isinstance(self.base, Poolable) or self.base.takes_row_count:
            raise Unsupported(
                "pooled: the base is AIM, MST or GEM, or another mechanism that inherits Poolable and does not take "
                "the number of rows for public."
            )
        if isinstance(self.budgets, StratumBudgets):
            raise Unsupported("pooled: everybody pays for the pooled model alike; leave the strata's budgets out.")
        self.check_groups()
        if self.share == 1 and self.weights.asked:
            raise UsageError("pooled: share = 1 leaves nothing for private weights; take less, or public weights.")

    @property
    def inner(self) -> Poolable[Any]:
        """Mechanism of the base, typed as a `Poolable`: it is fitted to everybody, then to strata."""
        return cast("Poolable[Any]", self.base)  # __post_init__ made it one

    @property
    def needs(self) -> frozenset[type[Question]]:
        """Frozen set of classes of questions that a fit may ask: the base's, counts, choices, splits and work."""
        return self.inner.needs | {Counts, Choose, Split, Work}

    @property
    def adaptive(self) -> bool:
        """True always: strata choose by noisy answers which marginals they measure."""
        return True

    @property
    def borrows(self) -> bool:
        """True if there is a model of everybody, from which strata start."""
        return self.share != 0

    @property
    def only_strata(self) -> bool:
        """True if nothing is asked of everybody together: neither a pooled model nor private weights."""
        return self.share == 0 and not self.weights.asked

    @cached_property
    def plain(self) -> Stratified:
        """The `Stratified` without a pooled model: the base fitted in each stratum by itself."""
        return Stratified(self.inner, self.by, self.weights, self.groups)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the whole budget as a zCDP allotment (rho per row), by public facts.

        Refused is what the base, its unpooled fit or the strata refuse; Unsupported are a base not priced in zCDP, and
        merged levels that the base cannot tell apart unless all or none of the budget goes to the pooled fit.
        """
        asked = [self.inner.price(self._everybody(public), budget)] if self.share != 0 else []
        asked += [self.plain.price(public, budget)] if self.share != 1 else []
        if any(allot.currency not in IN_RHO for allot in asked):
            raise Unsupported(f"pooled: strata are counted in zCDP; {self.inner.name} spends otherwise.")
        layout = self.strata(public, budget)
        if 0 < self.part(public, budget.zcdp().rho, budget) < 1 and not self.inner.merges:
            for stratum in layout.strata:
                if any(len(some) > 1 for _, some in stratum.items):
                    raise Unsupported(
                        f"pooled: {self.inner.name} cannot tell apart the levels merged in {stratum.label}; "
                        "take aim or mst as the base, or share = 0 or 1."
                    )
        return budget.zcdp()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """Program on public facts, for the allotment, by `rng`: fits everybody, then strata; returns a model.

        It is that of everybody alone, or of strata alone, if the share is 1 or 0; else a mixture of strata.
        """
        if self.share == 0:
            return (yield from self.plain.steps(public, allot, rng))
        if self.share == 1:
            everybody = yield from self.inner.learned(self._everybody(public), allot, rng)
            return drawn_by(public.schema, self.strata(public, allot.promise), everybody.conditioned)
        # everybody first: strata start from that model, and spend the rest in parallel
        first, second = rng.spawn(2)
        pooled, rest = self._divide(public, allot)
        everybody = yield from self.inner.learned(self._everybody(public), pooled, first)
        public = self.sized(public, everybody.total, allot.promise)
        model = yield from self._specialised(everybody).steps(public, rest, second)
        # strata keep to public tables, which know nothing of each other
        return model if public.known else raked(model, everybody, self._noise(public, rest))

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[object]:
        """Program that asks a fit's questions on public facts, for the allotment, by `rng`; returns a model or None."""
        if self.share == 0:
            return (yield from self.plain.rehearsal(public, allot, rng))
        pooled, rest = self._divide(public, allot)
        yield from self.inner.rehearsal(self._everybody(public), pooled, rng)
        if self.share == 1:
            return None
        return (yield from self._specialised(None).rehearsal(public, rest, rng))

    def part(self, public: Public, rho: float, promise: Budget) -> float:
        """Return the fraction, 0 to 1, of `rho` for everybody's model: as set, or by public facts and the promise."""
        if self.share != "auto":
            return float(self.share)
        # few rounds: most goes to the pooled model, as strata could not measure much by themselves
        # with a prior, whose rows make up for everybody's budget, by everybody's rounds in any case
        growing = self.inner.grows and public.prior is None
        people = self._people(public, promise) if growing else public.size or 0
        rounds = usual_rounds(len(public.schema.names), people, rho)
        return min(max(1 - rounds / FAST, SHARES[0]), SHARES[1])

    def _people(self, public: Public, promise: Budget) -> float:
        """Return the size of the stratum that a person is in, on average, by public facts and the fit's budget."""
        return (public.size or 0) * sum(share**2 for share in self.strata(public, promise).shares.values())

    def _divide(self, public: Public, allot: Allotment) -> tuple[Allotment, Allotment]:
        """Return two Allotments by public facts, parts of `allot`: for everybody's model, and for the strata."""
        amount = down(Fraction(allot.amount) * Fraction(self.part(public, allot.amount, allot.promise)))
        return replace(allot, amount=amount), replace(allot, amount=down(Fraction(allot.amount) - Fraction(amount)))

    def _noise(self, public: Public, rest: Allotment) -> float:
        """Return the usual sigma of a stratum's table, for the strata's allotment, by public facts."""
        columns = len(public.schema.names) - len(self.by)
        rounds = usual_rounds(columns, self._people(public, rest.promise), rest.rho)
        return table_sigma(MEASURE * rest.rho / rounds, public.schema, public.neighbours)

    def _specialised(self, everybody: Learner[Any] | None) -> Stratified:
        """Return the `Stratified` of all strata, each going on from everybody's `Learner`, which is None in a plan."""
        return replace(self.plain, mechanism=Specialised(self.inner, everybody, self.prior))

    @once
    def _everybody(self, public: Public) -> Public:
        """Return the public facts of everybody: without the strata's columns, unless share = 1.

        Then the pooled model must tell strata apart; their shares, by which rows are drawn, are public tables if the
        base takes any.
        """
        if self.share == 1:
            if not self.inner.takes_known or set(self.by) == set(public.schema.names):
                return public
            groups = Groups(self.groups.merge, self.groups.bands)  # small ones are merged when rows are drawn
            layout = lay_out(public.schema, self.by, groups, self.weights, None, public.size, 1.0)
            return replace(public, known=(*public.known, *known_shares(public.schema, layout)))
        return public.without(self.by)
