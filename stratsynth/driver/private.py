"""Answers from private rows: charge, then read, then add noise.

The order is the guarantee. The charges of a batch are recorded, or all refused, before
the rows are touched for the first time; a failure after that leaves the charges standing. Answers are kept in
the account's journal before the program gets them: under the key of their batch, in a form of their own on disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from stratsynth.accounting.exact import EXACT
from stratsynth.accounting.units import for_units
from stratsynth.digest import Prehashed, digest
from stratsynth.driver.answering import Answerer
from stratsynth.driver.lockstep import AnswerSource, Asked
from stratsynth.files.npz import State
from stratsynth.noise import Entropy
from stratsynth.questions import NoisyTable, PublicRows, Question, Split, Usable
from stratsynth.questions.base import Answer, Kept, Setting
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
        key = journal_key(asked, charges) if self._account.by_shape else exact_key(asked)
        # 1. Record the charges, or refuse all of them, before a row is touched.
        self._account.charge(moment, key, charges, distance)
        # 2. Journalled answers are given again; 3. otherwise rows are read and noise is added.
        state = self._account.recall(moment, key)
        answers = self._answer(asked) if state is None else from_state(asked, state)
        # 4. Store the answers; 5. only then the programs get them.
        kept = to_state(asked, answers) if state is None else None
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
        """Note, in this object, tables, sums, numbers and claims of `answers`, one for each `Asked` of `asked`."""
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


def journal_key(asked: Sequence[Asked], charges: Sequence[Charge]) -> str:
    """Return the journal key, a text: digest of a batch's questions `asked`, by public shape, and of their `charges`.

    An answer that was charged and journalled is given again to a question of equal shape in the same batch. It was
    paid for when it was drawn, so giving it again is post-processing, whatever the program compares it with. One
    that was charged and never journalled has been seen by nobody: the present question is answered under that charge,
    whose amount and sensitivities are equal. Amounts are compared exactly; numbers that follow from earlier
    answers, which another processor rounds differently, to nine digits.
    """
    kinds = [(_hashed(a.path, _names(a.path))[0], type(a.question).__name__, a.question.replayed()) for a in asked]
    stated = [
        _rounded({**charge.to_dict(), "path": _hashed(charge.path, _names(charge.path))[1]}) for charge in charges
    ]
    return digest(kinds, stated, [c.amount for c in charges])


def exact_key(asked: Sequence[Asked]) -> str:
    """Return a batch's journal key as 0.1.0 and 0.2.0 had it: a digest, text, of paths and numbers in `asked`."""
    return digest([(a.path, a.question.spelled()) for a in asked])


def to_state(asked: Sequence[Asked], answers: Sequence[Answer]) -> State | None:
    """Return `answers`, one for each `Asked` of `asked`, as a `State` for the journal; None if one must not be kept."""
    kept = [a.question.keep(answer) for a, answer in zip(asked, answers, strict=True)]
    if any(one is None for one in kept):
        return None
    parts = [one for one in kept if one is not None]
    arrays = {f"{i}/{j}": array for i, one in enumerate(parts) for j, array in enumerate(one.arrays)}
    return State([one.facts for one in parts], arrays)


def from_state(asked: Sequence[Asked], state: State) -> list[Answer]:
    """Return a list of answers, one an `Asked` of `asked`, from the `State` into which `to_state` put them."""
    arrays: list[list[tuple[int, str]]] = [[] for _ in state.facts]
    for name in state.arrays:
        i, j = name.split("/")
        arrays[int(i)].append((int(j), name))
    return [
        a.question.recall(Kept(facts, [state.arrays[name] for _, name in sorted(arrays[i])]))
        for i, (a, facts) in enumerate(zip(asked, state.facts, strict=True))
    ]


def _names(path: StratumPath) -> tuple[tuple[str, ...], ...]:
    """Return a tuple, for each stratum of a path, of its names, a tuple of texts, in which equal strata may differ."""
    return tuple(stratum.names for stratum in path)


@lru_cache(maxsize=2**15)  # every stratum asks at every moment
def _hashed(path: StratumPath, _: tuple[tuple[str, ...], ...]) -> tuple[Prehashed, Prehashed]:
    """Return two `Prehashed`, cached, `_` as key: of `path`, and of its strata as dicts, as charges state them."""
    return Prehashed(path), Prehashed([stratum.to_dict() for stratum in path])


def _rounded(value: object) -> object:
    """Return a copy of nested plain values in which each float is a text of nine digits."""
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return f"{value:.9g}" if isinstance(value, float) else value
