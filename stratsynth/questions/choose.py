"""`Choose`: one of several candidates, by the exponential mechanism.

Candidate i is drawn with probability proportional to exp(epsilon score_i / (2 D)), where D is the largest sensitivity
of any candidate; that costs epsilon, and rho = epsilon^2 / 8 since its privacy loss has range epsilon (Cesar and
Rogers 2021). Scores are descriptions: see `stratsynth.questions.scores`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.accounting.charges import Charge, alike
from stratsynth.errors import MechanismError
from stratsynth.noise import Entropy, Known, exponential_choice
from stratsynth.questions.base import Answer, Program, Question, check_positive
from stratsynth.questions.composite import Composite
from stratsynth.questions.counts import check_number
from stratsynth.questions.handler import Exact, Handler, Kept, Seen, Setting, Wanted
from stratsynth.questions.pairs import Pairs
from stratsynth.questions.scores import Distance, Peak, Score
from stratsynth.questions.total import Total
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.schema import Schema


@dataclass(frozen=True)
class Choose(Question):
    """The number of one candidate, drawn by its score. All candidates' scores are of one kind."""

    scores: tuple[Score, ...] | Pairs
    rho: float

    @property
    def judge(self) -> type[Any]:
        """What says of all candidates together what has to be known: the class of the first, or `Pairs`."""
        return Pairs if type(self.scores) is Pairs else type(self.scores[0])

    def spelled(self) -> Choose:
        """The same with every candidate written out."""
        return Choose(tuple(self.scores), self.rho)

    @property
    def epsilon(self) -> float:
        """What the choice costs as epsilon, rounded down: rho = epsilon^2 / 8."""
        return math.sqrt(8 * self.rho) * (1 - 1e-15)

    def check(self, schema: Schema) -> None:
        """At least one candidate, each with a sound score."""
        check_positive("choose: rho", self.rho)
        # by exact class: another could restate its own sensitivity
        if type(self.scores) is not Pairs:
            if type(self.scores) is not tuple or not self.scores:
                raise MechanismError("choose: there is no candidate, or candidates that are no tuple.")
            if set(map(type, self.scores)) not in ({Distance}, {Peak}, {Composite}):
                raise MechanismError("choose: the candidates' scores must all be Distance, all Peak, or all Composite.")
        self.judge.check_all(self.scores, schema)
        check_number("choose", self.judge.cells(self.scores, schema))

    @property
    def wanted(self) -> Wanted:
        """What has to be read for it: worked out anew each time, from the scores as they are checked."""
        found: Wanted = self.judge.wanted(self.scores)
        return found

    def sensitivity(self, schema: Schema) -> Mapping[Neighbours, float]:
        """The most that one step moves any candidate's score, relative to adding or removing a record."""
        step = {n: self.judge.most_moved(self.scores, schema, n) for n in PRICED}
        return {n: value / step[Neighbours.ADD_REMOVE] for n, value in step.items()}

    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """One charge; sensitivities are in units of the score's own."""
        sensitivity = alike(tuple(self.sensitivity(schema).items()))
        details = alike((("epsilon", self.epsilon), ("candidates", len(self.scores))))
        return (Charge(path, "choose", self.rho, sensitivity, details),)


def choose(scores: Sequence[Score], *, rho: float) -> Program[int]:
    """Ask for one candidate's number: `i = yield from choose(scores, rho=...)`."""
    answer = yield Choose(scores if type(scores) is Pairs else tuple(scores), float(rho))
    return cast("int", answer)


class ChooseHandler(Handler[Choose]):
    """Exact integer scores, and an exact draw by the exponential mechanism."""

    kind = Choose
    reads = frozenset({"tables"})

    def declared(self, question: Choose) -> frozenset[type[Question]]:
        """`Total` too where scores are of sums, which a backend of tables alone cannot read."""
        return frozenset({Choose, Total} if question.wanted.sums else {Choose})

    def wanted(self, question: Choose) -> Wanted:
        """What the scores are about."""
        return question.wanted

    def remembers(self, question: Choose, memory: Mapping[Any, Any]) -> bool:
        """Where pairs have been compared before."""
        return type(question.scores) is Pairs and question.scores.remembered(memory)

    def answer(self, question: Choose, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> int:
        """The candidate's number."""
        scores, reach = self._units(question, at, exact, memory)
        # epsilon buys a reach of one; in units of the integer scores it is spread over their reach
        known = memory.setdefault(Known, Known()) if type(question.scores) is Pairs else None
        return exponential_choice(scores, Fraction(question.epsilon) / reach, entropy, known)

    def _units(self, question: Choose, at: Setting, exact: Exact, memory: dict[Any, Any]) -> tuple[list[int], int]:
        found: tuple[list[int], int] = question.judge.units(question.scores, exact, at, memory)
        return found

    def simulate(
        self, question: Choose, at: Setting, path: StratumPath, rows: float, rng: Generator
    ) -> tuple[int, Seen]:
        """Any of them."""
        candidates = frozenset((clique, at.schema.cells(clique)) for clique in self.wanted(question).cliques)
        seen = Seen(path, "choose", (), sum(n for _, n in candidates), candidates)
        return int(rng.integers(len(question.scores))), seen

    def tv_error(self, question: Choose, at: Setting) -> float:
        """None: the draw is exact."""
        return 0.0

    def keep(self, answer: Answer) -> Kept:
        """The number."""
        return Kept(answer)

    def recall(self, kept: Kept) -> int:
        """The number."""
        return int(kept.facts)

    def replayed(self, question: Choose) -> Any:
        """The list of candidates, which the number is about; not what they are compared with."""
        return question.judge.candidates(question.scores), question.rho

    def unverified(self, question: Choose) -> str:
        """What any of the scores rests on."""
        if type(question.scores) is Pairs:
            return ""
        return next(filter(None, (score.unverified for score in question.scores)), "")

    def shape(self, answer: Answer) -> Any:
        """Nothing but that it is one."""
        return "a candidate"

    def cost(self, question: Choose, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """Rho, times the square of how far the scores moved, as a part of how far they may."""
        one, reach = self._units(question, at, here, {})
        two, _ = self._units(question, at, there, {})
        farthest = max(abs(a - b) for a, b in zip(one, two, strict=True))
        return Fraction(question.rho) * (Fraction(farthest) / reach) ** 2
