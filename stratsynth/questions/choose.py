"""`Choose`: one of several candidates, by the exponential mechanism.

Candidate i is drawn with probability proportional to exp(epsilon score_i / (2 D)), where D is the largest sensitivity
of any candidate; that costs epsilon, and rho = epsilon^2 / 8 since its privacy loss has range epsilon (Cesar and
Rogers 2021). Scores are descriptions: see `stratsynth.questions.scores`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

from stratsynth.accounting.budget import PRICED, Currency, Neighbours
from stratsynth.accounting.charges import Charge, interned
from stratsynth.errors import MechanismError
from stratsynth.noise import Entropy, WeightCache, exponential_choice
from stratsynth.questions.admission import known
from stratsynth.questions.base import Answer, Kept, Program, Question, Seen, Setting, check_positive
from stratsynth.questions.composite import Composite
from stratsynth.questions.counts import check_number
from stratsynth.questions.pairs import Pairs
from stratsynth.questions.peak import Peak
from stratsynth.questions.reading import Exact, Wanted
from stratsynth.questions.scores import Distance, Score
from stratsynth.questions.total import Total
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.schema import Schema


@known
@dataclass(frozen=True)
class Choose(Question):
    """Index of one candidate, drawn by the exponential mechanism. All candidates' scores are of one kind."""

    reads: ClassVar[frozenset[str]] = frozenset({"tables"})
    scores: tuple[Score, ...] | Pairs
    rho: float
    """rho of the draw, which fits in pure epsilon pay as `epsilon`."""
    pure: bool = field(default=False, metadata={"digest": False})

    @property
    def judge(self) -> type[Any]:
        """Class whose methods check, read and score all candidates: that of the first score, or `Pairs`."""
        return Pairs if isinstance(self.scores, Pairs) else type(self.scores[0])

    def spelled(self) -> Choose:
        """Return an equal choice whose `scores` are a tuple with one score object per candidate, also for `Pairs`."""
        return Choose(tuple(self.scores), self.rho, self.pure)

    @property
    def epsilon(self) -> float:
        """Pure-DP epsilon of the exponential mechanism that costs this rho: sqrt(8 rho), rounded down."""
        return math.sqrt(8 * self.rho) * (1 - 1e-15)

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: rho <= 0, no scores, ones unsound in `schema` or of mixed kinds; Unsupported: large."""
        check_positive("choose: rho", self.rho)
        # by exact class: another could restate its own sensitivity
        if type(self.scores) is not Pairs:
            if type(self.scores) is not tuple or not self.scores:
                raise MechanismError("choose: there is no candidate, or candidates that are no tuple.")
            if set(map(type, self.scores)) not in ({Distance}, {Peak}, {Composite}):
                raise MechanismError("choose: the candidates' scores must all be Distance, all Peak, or all Composite.")
        self.judge.check_all(self.scores, schema)
        check_number("choose", self.judge.cells(self.scores, schema))

    def sensitivity(self, schema: Schema) -> Mapping[Neighbours, float]:
        """Return {notion of neighbour: largest movement of a score in `schema`, in units of add-remove's}."""
        # Relative to add-remove, since prices depend on ratios alone.
        step = {n: self.judge.most_moved(self.scores, schema, n) for n in PRICED}
        return {n: value / step[Neighbours.ADD_REMOVE] for n, value in step.items()}

    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """Return (`Charge`,) of rho or epsilon at `path`: sensitivities by `schema` for each of PRICED neighbours."""
        sensitivity = interned(tuple(self.sensitivity(schema).items()))
        details = (("epsilon", self.epsilon), ("candidates", len(self.scores)))
        if self.pure:  # whose price is epsilon itself
            return (Charge(path, "choose", self.epsilon, sensitivity, interned(details[1:]), Currency.PURE),)
        return (Charge(path, "choose", self.rho, sensitivity, interned(details)),)

    def needs(self) -> frozenset[type[Question]]:
        """Return the set of `Choose`, and `Total` if scores are of sums, which a backend of tables cannot read."""
        return frozenset({Choose, Total} if self.wanted().sums else {Choose})

    def wanted(self) -> Wanted:
        """Return a `Wanted`, which names the tables or sums of all candidates that the scores are computed from."""
        return self.judge.wanted(self.scores)  # type: ignore[no-any-return] # a class, or Pairs in its place

    def remembers(self, memory: Mapping[Any, Any]) -> bool:
        """True if `scores` are `Pairs`, and `memory` has the distance of each from an earlier choice at this path."""
        return type(self.scores) is Pairs and self.scores.remembered(memory)

    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> int:
        """Return candidate i, by `entropy`, `exact`, Setting and `memory`: P(i) ~ exp(epsilon score_i / 2 reach)."""
        scores, reach = self.judge.units(self.scores, exact, at, memory)
        # epsilon is the price for a sensitivity of 1; in units of the integer scores it is divided by their sensitivity
        known = memory.setdefault(WeightCache, WeightCache()) if type(self.scores) is Pairs else None
        return exponential_choice(scores, Fraction(self.epsilon) / reach, entropy, known)

    def simulate(self, at: Setting, path: StratumPath, rows: float, rng: Generator) -> tuple[int, Seen]:
        """Return (candidate's index, even by `rng`; `Seen` at `path`: cliques, cells) at a Setting, for any `rows`."""
        candidates = frozenset((clique, at.schema.cells(clique)) for clique in self.wanted().cliques)
        seen = Seen(path, "choose", (), sum(n for _, n in candidates), candidates)
        return int(rng.integers(len(self.scores))), seen

    def tv_error(self, at: Setting) -> float:
        """Return 0.0, `at` any Setting: total variation of drawn and stated distribution; the draw is exact."""
        return 0.0

    @classmethod
    def keep(cls, answer: Answer) -> Kept:
        """Return the `Kept` parts of an answer for the journal: the candidate's index as the one fact, and no array."""
        return Kept(answer)

    @classmethod
    def recall(cls, kept: Kept) -> int:
        """Return the candidate's index, an int, from the `Kept` parts that `keep` made."""
        return int(kept.facts)

    def replayed(self) -> Any:
        """Return the candidates' identities for the journal key, without numbers that come from earlier answers."""
        return self.judge.candidates(self.scores), self.rho, *(("pure",) if self.pure else ())

    def unverified(self) -> str:
        """Return the first sentence about an unproven claim among the scores; empty if none, and for `Pairs`."""
        if type(self.scores) is Pairs:
            return ""
        return next(filter(None, (score.unverified for score in self.scores)), "")

    @classmethod
    def shape(cls, answer: Answer) -> Any:
        """Return the text `a candidate` for every answer: the candidate's index is the secret part."""
        return "a candidate"

    def cost(self, at: Setting, here: Exact, there: Exact, answer: Answer) -> Fraction:
        """Return rho r^2 or epsilon r, a Fraction, r: two `Exact`'s largest step / reach at a Setting; any answer."""
        one, reach = self.judge.units(self.scores, here, at, {})
        two, _ = self.judge.units(self.scores, there, at, {})
        farthest = max(abs(a - b) for a, b in zip(one, two, strict=True))
        return Fraction(self.epsilon if self.pure else self.rho) * Fraction(farthest, reach) ** (1 if self.pure else 2)


def choose(scores: Sequence[Score] | Pairs, *, rho: float = 0.0, epsilon: float = 0.0) -> Program[int]:
    """Ask, by `yield from`, for one candidate's index in `scores` (or `Pairs`), drawn for `rho` or `epsilon`."""
    answer = yield Choose(scores if type(scores) is Pairs else tuple(scores), float(rho or epsilon**2 / 8), epsilon > 0)
    return cast("int", answer)
