"""Stratification: one mechanism for each declared group, under parallel composition.

Every stratum gets the whole allotment, because a record lies in one stratum only; the results are combined
by public weights. It is itself a mechanism, made of `split`: strata may be stratified again, or pooled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanism import Mechanism, Public
from stratsynth.models import Estimate, Mixture, mixture
from stratsynth.questions import Program, Question, split
from stratsynth.strata import crossing
from stratsynth.weights import Weights

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget


@dataclass(frozen=True)
class Stratified:
    """Fit `mechanism` in each stratum of `by`; combine by `weights`."""

    name: ClassVar[str] = "stratified"
    mechanism: Mechanism[Any]
    """What is fitted in each stratum. Without stratification, this alone is the vanilla mechanism."""
    by: Sequence[str]
    """Columns whose levels, fully crossed, are the strata: every combination exists, however few rows it has."""
    weights: Weights
    """The strata's public shares: what the groups' proportions in the release are, exactly."""

    def __post_init__(self) -> None:
        """Columns are kept as a tuple; a single name is a common slip."""
        if isinstance(self.by, str):
            raise UsageError(f'stratified: `by` is a list of columns; write ["{self.by}"].')
        if not isinstance(self.weights, Weights):
            raise UsageError("stratified: weights come from Weights.public(shares, citation=...).")
        if getattr(self.mechanism, "counts_rows", False):
            raise Unsupported(
                f"stratified: {self.mechanism.name} takes the number of rows for public, which inside strata would "
                "publish the size of every group. Fit it on the whole table."
            )
        object.__setattr__(self, "by", tuple(self.by))

    @property
    def needs(self) -> frozenset[type[Question]]:
        """What the inner mechanism needs."""
        return self.mechanism.needs

    def price(self, public: Public, budget: Budget) -> Allotment:
        """What the dearest stratum spends: a record is in one of them."""
        strata = crossing(public.schema, self.by)
        shares = self.weights.resolve(strata).shares
        prices = [self.mechanism.price(public.within(s, shares[s]), budget) for s in strata]
        return max(prices, key=lambda allot: allot.amount)

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Mixture | Estimate]:
        """All strata's programs in lock-step; streams of randomness are spawned, never shared."""
        strata = crossing(public.schema, self.by)
        shares = self.weights.resolve(strata).shares
        streams = rng.spawn(len(strata))
        programs = {
            stratum: self.mechanism.steps(public.within(stratum, shares[stratum]), allot, stream)
            for stratum, stream in zip(strata, streams, strict=True)
        }
        parts = yield from split(programs)
        return mixture(public.schema, parts, shares)
