"""Answers from private rows: charge, then read, then add noise.

The order is the guarantee. The charges of a batch are recorded, or all refused, before
the rows are touched for the first time; a failure after that leaves the charges standing. Answers are kept in
the account's journal before the program gets them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.accounting.exact import EXACT
from stratsynth.accounting.units import for_units
from stratsynth.driver import journal
from stratsynth.driver.answering import Answerer
from stratsynth.driver.lockstep import AnswerSource, Asked
from stratsynth.noise import Entropy
from stratsynth.questions import Answer, NoisyTable, PublicRows, Question, Split, Usable
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Rows
from stratsynth.questions.sums.published import MOST_SUMS, PublishedSum
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from stratsynth.accounting.account import FitAccount
    from stratsynth.accounting.budget import Budget
    from stratsynth.accounting.charges import Charge

Admits = Callable[[StratumPath, frozenset[type[Question]]], object]
"""Function that refuses kinds of questions and strata that a mechanism has not declared."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One released table or sum, with its path and the index of its question."""

    path: StratumPath
    question: int
    table: NoisyTable | PublishedSum


@dataclass(frozen=True, slots=True)
class Counted:
    """A noisy number of records in a paid answer, with the standard deviation of its noise."""

    path: StratumPath
    records: float
    noise_sd: float


def bill(asked: Sequence[Asked], budget: Budget) -> list[Charge]:
    """Return a list of `Charge` of questions `asked`, per unit of `budget`; Unsupported for protected public rows."""
    for a in asked:
        if type(a.question) is PublicRows:
            a.question.permit(budget)
    charges = [charge for a in asked for charge in a.question.charges(a.schema, a.path, budget.neighbours.priced)]
    return for_units(charges, budget) if budget.rows > 1 else charges


class PrivateAnswers(AnswerSource):
    """Answers from rows that are loaded after the first charge, and held nowhere else."""

    def __init__(
        self,
        load: Callable[[], Rows],
        account: FitAccount,
        entropy: Entropy,
        admits: Admits = lambda *_: None,
        answered: Callable[[], object] = lambda: None,
    ) -> None:
        """Take the account and the source of noise; nothing is read: `load` is called once, after the first charge.

        `admits` refuses kinds and strata that the mechanism has not declared; `answered` is called after each batch.
        """
        self._load = load
        self._account = account
        self._entropy = entropy
        self._admits = admits
        self._answered = answered
        self._answerer: Answerer | None = None
        self._batch = 0
        self._questions = 0
        self._summed = 0
        self.measurements: list[Measurement] = []
        self.counted: list[Counted] = []
        """Noisy numbers of records in the answers, for the certificate."""
        self.usable: NoisyTable | None = None
        """Answer to the fit's first question; None before it, or without one."""
        self.unverified: list[str] = []
        """Sentences for the certificate about claims that nobody has proven."""

    @property
    def exact(self) -> bool:
        """True if the fit spends in the currency `exact`."""
        return self._account.budget.accounting == EXACT

    def admit(self, asked: Asked) -> None:
        """Raise MechanismError if kind or stratum of `asked` is not declared, or it splits as rehearsals do."""
        super().admit(asked)
        if type(asked.question) is not Split:
            self._admits(asked.path, asked.question.needs())

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """Return a list of answers to a batch `asked`: charge, recall or read and add noise, journal, in this order."""
        # The numbers are those of docs/privacy.md, section 10.
        moment, self._batch = self._batch, self._batch + 1
        budget = self._account.budget
        charges = bill(asked, budget)
        distance = math.fsum(a.question.tv_error(Setting(a.schema, budget.neighbours)) for a in asked)
        key = journal.key(asked, charges) if self._account.by_shape else journal.exact_key(asked)
        # 1. Record the charges, or refuse all of them, before a row is touched.
        self._account.charge(moment, key, charges, distance)
        # 2. Journalled answers are given again; 3. otherwise rows are read and noise is added.
        state = self._account.recall(moment, key)
        answers = self._answer(asked) if state is None else journal.from_state(asked, state)
        # 4. Store the answers; 5. only then the programs get them.
        kept = journal.to_state(asked, answers) if state is None else None
        if kept is not None:
            self._account.store(moment, key, kept)
        self._note(asked, answers)
        self._answered()
        return answers

    def close(self) -> None:
        """Drop the rows from memory, and with them a scratch file that holds them."""
        self._answerer = None

    def _answer(self, asked: Sequence[Asked]) -> list[Answer]:
        if self._answerer is None:
            self._answerer = Answerer(self._load(), self._account.budget.neighbours, self._entropy)
        return self._answerer.answer(asked)

    def _note(self, asked: Sequence[Asked], answers: Sequence[Answer]) -> None:
        """Note tables, sums and numbers of records in the answers to questions `asked`, and sentences on claims."""
        for a, answer in zip(asked, answers, strict=True):
            self.usable = answer if type(a.question) is Usable else self.usable
            unchecked = a.question.unverified()
            if unchecked and unchecked not in self.unverified:
                self.unverified.append(unchecked)
            records = a.question.records(a.schema, answer)
            self.counted.extend(Counted(a.path, number, noise) for number, noise in records)
            for table in a.question.released(a.schema, answer):
                if isinstance(table, PublishedSum):
                    self._summed += table.values.size  # which depends on public shapes alone
                    if self._summed > MOST_SUMS:
                        continue
                self.measurements.append(Measurement(a.path, self._questions, table))
            self._questions += 1
