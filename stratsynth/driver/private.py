"""Answering from private rows: charge, then read, then add noise.

The order is the guarantee. Charges of everything that is asked together are recorded, or all refused, before
the rows are touched for the first time; a failure after that leaves the charge standing. Answers are kept in
the account's journal before anybody sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.accounting.units import for_units
from stratsynth.digest import digest
from stratsynth.driver.answers import from_state, to_state
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.noisy import Answerer, distance
from stratsynth.driver.rows import Rows
from stratsynth.errors import Unsupported
from stratsynth.noise import Entropy
from stratsynth.questions import Answer, Choose, Counts, NoisyTable, Peak, Question, Raw, RowVectors, Split, Total, Work
from stratsynth.strata import Path

if TYPE_CHECKING:
    from stratsynth.accounting.account import Account

SERVED: frozenset[type[Question]] = frozenset({Counts, Choose, Total, Raw, Split, Work})
"""The questions that rows in memory can answer."""


@dataclass(frozen=True)
class Measurement:
    """One released table, with where and in which question it was asked."""

    path: Path
    question: int
    table: NoisyTable


class PrivateAnswers:
    """Answers from rows that are loaded when the first charge has been made, and held nowhere else."""

    def __init__(self, load: Callable[[], Rows], account: Account, entropy: Entropy) -> None:
        """`load` makes the rows; it is called at most once, after the first charge."""
        self._load = load
        self._account = account
        self._entropy = entropy
        self._answerer: Answerer | None = None
        self._moment = 0
        self._questions = 0
        self.measurements: list[Measurement] = []
        self.unverified: list[str] = []
        """What in the certificate nobody has checked."""

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """Answer everything that was asked at one moment."""
        moment, self._moment = self._moment, self._moment + 1
        for a in asked:
            if type(a.question) not in SERVED:
                raise Unsupported(f"these rows cannot answer {type(a.question).__name__}.")
        neighbours = self._account.budget.neighbours
        name = digest([(a.path, a.question) for a in asked])
        charges = [charge for a in asked for charge in a.question.charges(a.schema, a.path, neighbours)]
        charges = for_units(charges, self._account.budget)
        self._account.charge(moment, name, charges, distance(asked, neighbours))
        state = self._account.recall(moment, name)
        if state is not None:
            answers = from_state(state)
        else:
            answers = self._answer(asked)
            if not any(isinstance(a.question, Raw) for a in asked):  # rows are kept nowhere
                self._account.store(moment, name, to_state(answers))
        self._keep(asked, answers)
        return answers

    def _answer(self, asked: Sequence[Asked]) -> list[Answer]:
        if self._answerer is None:
            self._answerer = Answerer(self._load(), self._account.budget.neighbours, self._entropy)
        return self._answerer.answer(asked)

    def _keep(self, asked: Sequence[Asked], answers: Sequence[Answer]) -> None:
        """Tables are part of the release."""
        for a, answer in zip(asked, answers, strict=True):
            unchecked = _unverified(a.question)
            if unchecked and unchecked not in self.unverified:
                self.unverified.append(unchecked)
            if isinstance(a.question, Counts):
                self.measurements.extend(Measurement(a.path, self._questions, table) for table in answer)
            self._questions += 1


def _unverified(question: Question) -> str:
    """What a reader must be told of a question whose privacy rests on somebody's word."""
    if isinstance(question, Raw):
        return f"{question.claim.by}: its own claim of epsilon {question.claim.epsilon:g}"
    queries = [question.query] if isinstance(question, Total) else []
    if isinstance(question, Choose):
        queries = [score.query for score in question.scores if isinstance(score, Peak)]
    if any(isinstance(query, RowVectors) for query in queries):
        return "row vectors by a function that was tested for row-locality, not proven"
    return ""
