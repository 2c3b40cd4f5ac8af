"""One stratum's part of `Pooled`: a model of everybody, moved to where this stratum's people differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from stratsynth.adapters.shared.learner import Learner, Poolable
from stratsynth.adapters.shared.rounds import adapt, usual_questions
from stratsynth.mechanisms import Mechanism, Public
from stratsynth.models import Returns
from stratsynth.questions import Choose, Counts, Program, Question, Work

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget


@dataclass(frozen=True)
class Specialised(Mechanism[Any]):
    """One stratum's fit: start from everybody's model, measure what the stratum can afford. Made by `Pooled` only."""

    name: ClassVar[str] = "specialised"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Counts, Choose, Work})
    adaptive: ClassVar[bool] = True
    unprotected: ClassVar[tuple[str, ...]] = ()
    base: Poolable[Any]
    """Mechanism that fitted everybody; its candidates and number of rounds hold for the stratum."""
    everybody: Learner[Any] | None = field(repr=False)
    """The model of everybody; None where only questions matter, as in a plan."""
    prior: float
    """The weight of the fit's pull towards everybody's model, in records, where the base's fit has such a pull."""

    @property
    def returns(self) -> Returns:
        """Kind of the model, which is that of the base mechanism."""
        return self.base.returns

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the whole budget as a zCDP allotment, rho per row of epsilon and delta, whatever the public facts."""
        return budget.zcdp()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """Program of a stratum's rounds for the allotment on public facts, without `rng`; returns its model."""
        if self.everybody is None:
            raise AssertionError("a plan's mechanism cannot be fitted")
        # everybody's model is post-processing of answers already paid, so starting from it is free
        learner = yield from self.everybody.stratum(public, self.prior)
        every, starters, rounds = self.base.foresee(public, allot.rho)
        if starters:
            yield from adapt(
                learner,
                every,
                people=float(public.size or 0),
                rho=Fraction(allot.rho),
                rounds=rounds,
                neighbours=public.neighbours,
            )
        if starters or learner.published:
            yield from learner.fit(last=True)
        return learner.model

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[None]:
        """Program that asks a stratum's usual questions for the allotment, by public facts and `rng`; no result."""
        _, starters, rounds = self.base.foresee(public, allot.rho)
        yield from usual_questions(public.schema, starters, rho=Fraction(allot.rho), rounds=rounds, rng=rng)
