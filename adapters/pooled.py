"""Pooled: one model of everybody, then every stratum moves it where its own people differ.

A part of the budget fits the base mechanism on everybody, without the columns that define the strata. Then,
under parallel composition, every stratum starts from that model and spends the rest on a few marginals of its
own, chosen as in AIM: by how wrong the model is there, less the noise that measuring would bring. Its model is
the pooled one, moved no farther than its own tables say, so a stratum too small to measure anything keeps the
pooled distribution. Rows are drawn by the strata's public weights.

A graphical model (AIM, MST) is moved by new terms, GEM's network by training it on from its own parameters.
Levels merged in a stratum vary there and are missing from the pooled model: a graphical model takes them in, a
network cannot, so GEM refuses such strata.

How much goes into the pooled model, and how many marginals a stratum measures, follows from public sizes. The
people of one stratum influence what is known of the others: where that must not be, stratify plainly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast

from stratsynth.adapters.aim import AIM
from stratsynth.adapters.gem import GEM
from stratsynth.adapters.gem.moved import NetworkStart
from stratsynth.adapters.mst import MST
from stratsynth.adapters.shared.rounds import down, usual_rounds
from stratsynth.adapters.specialised import GraphicalStart

from stratsynth.checks import number
from stratsynth.errors import Unsupported, UsageError
from stratsynth.layout.budgets import StratumBudgets
from stratsynth.mechanisms import Mechanism, Public, make
from stratsynth.models import Mixture
from stratsynth.questions import Choose, Counts, Program, Question, Split, Work
from stratsynth.strata.groups import Groups
from stratsynth.stratified import Groupwise, Stratified
from stratsynth.weights import Weights

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.schema import Schema

FAST = 60
"""The pooled model's share falls by one over this with every usual round: where many rounds can be paid, everybody
together is soon well known, and strata have more to learn. Chosen on the excerpt by `scripts/bench pooled`."""
SHARES = (0.3, 0.7)
"""The least and the most of it."""


class Start(Protocol):
    """What `Pooled` needs of a base: its model of everybody, and how strata go on from it."""

    merges: ClassVar[bool]
    """Whether strata may merge levels, so that a column varies in them that everybody's model lacks."""

    def everybody(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """Fit everybody."""

    def stratum(self, pooled: Any) -> Mechanism[Any]:
        """What moves everybody's model in one stratum; for a plan, None takes its place."""

    def given(self, pooled: Any, inside: Schema, levels: Mapping[str, Sequence[int]]) -> Any:
        """What everybody's model, strata's columns included, says of a stratum of these levels."""


@dataclass(frozen=True, kw_only=True)
class Pooled(Groupwise[Any]):
    """Fit `base` on everybody, then move its model in every stratum of `by`; combine by `weights`."""

    name: ClassVar[str] = "pooled"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Counts, Choose, Split, Work})
    base: Mechanism[Any] | str | Mapping[str, Any] = field(default_factory=lambda: AIM(model_cells=2**16))
    """What is fitted on everybody: AIM, MST or GEM, or the name of one, or a table of its name and settings."""
    by: Sequence[str]
    """Columns whose levels, fully crossed, are the strata: every combination exists, however few rows it has."""
    weights: Weights
    """The strata's shares: what the groups' proportions in the release are, exactly."""
    groups: Groups = field(default_factory=Groups)
    """Merges of levels, and what becomes of small groups; every crossing is a stratum when nothing is said."""
    budgets: None = None
    """Not available: everybody pays for the pooled model alike."""
    share: float | Literal["auto"] = "auto"
    """The part of the budget that fits the pooled model, by public sizes when "auto". 1 moves nothing and only draws
    rows by the weights; 0 is the base, plainly stratified."""
    prior: float = 20.0
    """How many records a graphical model of everybody is worth in every stratum; a network is only where they start."""

    def __post_init__(self) -> None:
        """Settings that make sense; a base given by name is made."""
        if isinstance(self.base, str | Mapping):
            settings: dict[str, Any] = {"name": self.base} if isinstance(self.base, str) else dict(self.base)
            object.__setattr__(self, "base", make(str(settings.pop("name", "")), settings))
        if not isinstance(self.base, AIM | MST | GEM) or getattr(self.base, "engine", "numpy") != "numpy":
            raise Unsupported('pooled: the base is AIM or MST, with engine = "numpy", or GEM.')
        if isinstance(self.budgets, StratumBudgets):
            raise Unsupported("pooled: everybody pays for the pooled model alike; leave the strata's budgets out.")
        self.check_groups()
        if self.share != "auto":
            number("pooled: share", self.share, least=0, most=1, hint=', or "auto"')
        number("pooled: prior", self.prior, least=0, most=1e6)
        if self.share == 1 and self.weights.asked:
            raise UsageError("pooled: share = 1 leaves nothing for private weights; take less, or public weights.")

    @property
    def inner(self) -> AIM | MST | GEM:
        """What strata start from."""
        return self.base  # type: ignore[return-value]  # __post_init__ made it one

    @property
    def adaptive(self) -> bool:
        """Always: strata choose what they measure."""
        return True

    @property
    def only_strata(self) -> bool:
        """Only where nothing is fitted on everybody."""
        return self.share == 0 and not self.weights.asked

    @property
    def _start(self) -> Start:
        """How strata start from a model of this base's kind."""
        if isinstance(self.inner, GEM):
            return NetworkStart(self.inner)
        return GraphicalStart(self.inner, self.prior)

    @property
    def plain(self) -> Stratified:
        """The same strata without a pooled model."""
        return Stratified(self.inner, self.by, self.weights, self.groups)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """The whole budget; refuses what the base, the strata or the weights refuse."""
        if self.share != 0:
            self.inner.price(self._everybody(public), budget)
        if self.share != 1:
            self.plain.price(public, budget)
        layout = self.strata(public, budget)
        if 0 < self.part(public, budget.zcdp().rho) < 1 and not self._start.merges:
            for stratum in layout.strata:
                if any(len(some) > 1 for _, some in stratum.items):
                    raise Unsupported(
                        f"pooled: {self.inner.name} cannot tell apart the levels merged in {stratum.label}; "
                        "take aim or mst as the base, or share = 0 or 1."
                    )
        return budget.zcdp()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Mixture]:
        """Everybody first, then all strata in lock-step."""
        if self.share == 0:
            return cast("Mixture", (yield from self.plain.steps(public, allot, rng)))
        start = self._start
        if self.share == 1:
            return self._drawn_by_weights(public, allot, (yield from start.everybody(public, allot, rng)))
        first, second = rng.spawn(2)
        pooled, rest = self._divide(public, allot)
        model = yield from start.everybody(self._everybody(public), pooled, first)
        strata = replace(self.plain, mechanism=start.stratum(model))
        public = public if public.size is not None else replace(public, size=round(model.total))
        return cast("Mixture", (yield from strata.steps(public, rest, second)))

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[object]:
        """The questions of an ordinary fit, without its fits: what a plan goes by."""
        if self.share == 0:
            return (yield from self.plain.rehearsal(public, allot, rng))
        pooled, rest = self._divide(public, allot)
        yield from self.inner.rehearsal(self._everybody(public), pooled, rng)
        if self.share == 1:
            return None
        strata = replace(self.plain, mechanism=self._start.stratum(None))
        return (yield from strata.rehearsal(public, rest, rng))

    def part(self, public: Public, rho: float) -> float:
        """The share of the pooled model, by public facts."""
        if self.share != "auto":
            return float(self.share)
        rounds = usual_rounds(len(public.schema.names), public.size or 0, rho)
        return min(max(1 - rounds / FAST, SHARES[0]), SHARES[1])

    def _divide(self, public: Public, allot: Allotment) -> tuple[Allotment, Allotment]:
        """What the pooled model may spend, and what is left for strata; together no more than there is."""
        amount = down(Fraction(allot.amount) * Fraction(self.part(public, allot.amount)))
        return replace(allot, amount=amount), replace(allot, amount=down(Fraction(allot.amount) - Fraction(amount)))

    def _everybody(self, public: Public) -> Public:
        """What is known of everybody. The strata's columns are left out, unless nothing else will tell them apart."""
        if self.share == 1:
            return public
        return replace(public, schema=public.schema.without(self.by), constant=public.constant.union(self.by))

    def _drawn_by_weights(self, public: Public, allot: Allotment, model: Any) -> Mixture:
        layout, schema = self.strata(public, allot.promise), public.schema
        parts = {}
        for stratum in layout.strata:
            levels = {column: [schema.index(column, level) for level in some] for column, some in stratum.items}
            inside = public.within(stratum, layout.shares[stratum]).schema
            parts[stratum] = self._start.given(model, inside, levels)
        return Mixture(schema, parts, layout.shares)
