"""One stratum's part of `Pooled`: a model of everybody, moved to where this stratum's people differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from stratsynth.adapters.aim import AIM
from stratsynth.adapters.engine import Graphical, Solution
from stratsynth.adapters.engine.condition import condition
from stratsynth.adapters.mst import MST
from stratsynth.adapters.shared.refits import Refits
from stratsynth.adapters.shared.rounds import MEASURE, adapt, affordable, usual_questions, usual_rounds
from stratsynth.adapters.shared.workload import Workload, closure

from stratsynth.mechanisms import Mechanism, Public
from stratsynth.models import Returns
from stratsynth.questions import Choose, Clique, Counts, Program, Question, Work
from stratsynth.questions.counts import table_sigma

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.schema import Schema

MOST_CELLS = 2**12
"""The most cells of a marginal that a stratum measures."""
ROOM = 2**14
"""How many numbers a stratum's tables may add to the pooled model's."""


@dataclass(frozen=True)
class GraphicalStart:
    """How `Pooled` uses AIM and MST."""

    merges: ClassVar[bool] = True
    base: AIM | MST
    prior: float

    def everybody(self, public: Public, allot: Allotment, rng: Generator) -> Program[Graphical]:
        """The base's own fit."""
        return self.base.steps(public, allot, rng)

    def stratum(self, pooled: Graphical | None) -> Specialised:
        """What every stratum does."""
        return Specialised(None if pooled is None else pooled.solution, self.base, self.prior)

    def given(self, pooled: Graphical, inside: Schema, levels: Mapping[str, Sequence[int]]) -> Graphical:
        """What everybody's model says of one stratum."""
        return Graphical.of(inside, condition(pooled.solution, levels))


@dataclass(frozen=True)
class Specialised(Mechanism[Graphical]):
    """Start from `pooled`, and measure what the stratum can afford to learn. Made by `Pooled` only."""

    name: ClassVar[str] = "specialised"
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Counts, Choose, Work})
    returns: ClassVar[Returns] = Returns.ROWS
    adaptive: ClassVar[bool] = True
    unprotected: ClassVar[tuple[str, ...]] = ()
    pooled: Solution | None = field(repr=False)
    """The model of everybody; None where only questions matter, as in a plan."""
    base: AIM | MST
    """What made it: its workload and its way of fitting hold here too."""
    prior: float

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Whatever it is given."""
        return budget.zcdp()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Graphical]:
        """Rounds of choosing and measuring, if there is anything to learn; otherwise the pooled model as it is."""
        schema, size = public.schema, public.size or 0
        worth, starters, rounds = self._foresee(public, allot.rho)
        room = max(self.pooled.tree.cells if self.pooled else 0, ROOM) + ROOM
        refits = Refits(schema, room, self.prior, size=size, base=self.pooled)
        yield from refits.begin()
        if starters:
            yield from adapt(
                refits, worth, people=float(size), rho=Fraction(allot.rho), rounds=rounds, neighbours=public.neighbours
            )
            yield from refits.fit(last=self.base.iterations)
        return refits.model

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[None]:
        """The questions of an ordinary stratum, without fits and with made-up choices."""
        _, starters, rounds = self._foresee(public, allot.rho)
        yield from usual_questions(public.schema, starters, rho=allot.rho, rounds=rounds, rng=rng)

    def _foresee(self, public: Public, rho: float) -> tuple[dict[Clique, float], dict[Clique, float], int]:
        """How much candidates matter, those of the first round, and how many rounds there are: public, all of it."""
        schema, size = public.schema, public.size or 0
        workload = (
            Workload(self.base.workload, self.base.weights) if isinstance(self.base, AIM) else Workload("all 2-way")
        )
        every = closure(workload.among(schema.names))
        worth = {c: weight for c, weight in every.items() if schema.cells(c) <= MOST_CELLS}
        rounds = usual_rounds(len(schema.names), size, rho)
        if not worth:
            return {}, {}, rounds
        sigma = table_sigma(MEASURE * rho / rounds, schema, public.neighbours)
        return worth, affordable(worth, {c: schema.cells(c) for c in worth}, sigma, size), rounds
