"""Answering from private rows: charge, then read, then add noise.

The order is the guarantee. Charges of everything that is asked together are recorded, or all refused, before
the rows are touched for the first time; a failure after that leaves the charge standing. Answers are kept in
the account's journal before anybody sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from stratsynth.accounting.charges import Charge
from stratsynth.accounting.units import for_units
from stratsynth.digest import Said, digest
from stratsynth.driver.answering import Answerer, tv_error
from stratsynth.driver.handlers import handler
from stratsynth.driver.lockstep import Asked
from stratsynth.files.npz import State
from stratsynth.noise import Entropy
from stratsynth.questions import Answer, Choose, NoisyTable, PublicRows
from stratsynth.questions.handler import Kept, Rows
from stratsynth.questions.sums.published import MOST_SUMS, PublishedSum
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from stratsynth.accounting.account import Account
    from stratsynth.accounting.budget import Budget


@dataclass(frozen=True, slots=True)
class Measurement:
    """One released table or sum, with where and in which question it was asked."""

    path: StratumPath
    question: int
    table: NoisyTable | PublishedSum


@dataclass(frozen=True, slots=True)
class Counted:
    """A number of records that a paid answer gives, with the standard deviation of its noise."""

    path: StratumPath
    records: float
    noise_sd: float


class PrivateAnswers:
    """Answers from rows that are loaded when the first charge has been made, and held nowhere else."""

    def __init__(self, load: Callable[[], Rows], account: Account, entropy: Entropy) -> None:
        """`load` makes the rows; it is called at most once, after the first charge."""
        self._load = load
        self._account = account
        self._entropy = entropy
        self._answerer: Answerer | None = None
        self._batch = 0
        self._questions = 0
        self._summed = 0
        self.measurements: list[Measurement] = []
        self.counted: list[Counted] = []
        """The numbers of records that the answers give."""
        self.unverified: list[str] = []
        """Sentences for the certificate about what rests on somebody's word."""

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """Answer everything that was asked at one moment."""
        moment, self._batch = self._batch, self._batch + 1
        check_again(asked)
        name, charges, distance = invoice(asked, self._account.budget)
        if not self._account.by_shape:
            name = exactly(asked)
        self._account.charge(moment, name, charges, distance)
        state = self._account.recall(moment, name)
        answers = self._answer(asked) if state is None else from_state(asked, state)
        kept = to_state(asked, answers) if state is None else None
        if kept is not None:
            self._account.store(moment, name, kept)
        self._note(asked, answers)
        return answers

    def close(self) -> None:
        """Let go of the rows: a scratch file ends with them."""
        self._answerer = None

    def _answer(self, asked: Sequence[Asked]) -> list[Answer]:
        if self._answerer is None:
            self._answerer = Answerer(self._load(), self._account.budget.neighbours, self._entropy)
        return self._answerer.answer(asked)

    def _note(self, asked: Sequence[Asked], answers: Sequence[Answer]) -> None:
        """Keep what the release publishes: tables, and what rests on somebody's word."""
        for a, answer in zip(asked, answers, strict=True):
            unchecked = handler(a.question).unverified(a.question)
            if unchecked and unchecked not in self.unverified:
                self.unverified.append(unchecked)
            records = handler(a.question).records(a.question, a.schema, answer)
            self.counted.extend(Counted(a.path, number, noise) for number, noise in records)
            for table in handler(a.question).released(a.question, a.schema, answer):
                if self._fits(table):
                    self.measurements.append(Measurement(a.path, self._questions, table))
            self._questions += 1

    def _fits(self, table: NoisyTable | PublishedSum) -> bool:
        """Whether a sum is published: not beyond `MOST_SUMS` numbers, which depends on public shapes alone."""
        if isinstance(table, PublishedSum):
            self._summed += table.values.size
            return self._summed <= MOST_SUMS
        return True


def check_again(asked: Sequence[Asked]) -> None:
    """What is charged and read now must still be sound: other programs have run since a question was checked."""
    for a in asked:
        if not handler(a.question).unverified(a.question):  # a user's function is tested once, and never proven
            a.question.check(a.schema)


def invoice(asked: Sequence[Asked], budget: Budget) -> tuple[str, list[Charge], float]:
    """What one moment's questions are known by, what they cost a whole unit, and how far noise is from its law."""
    charges, distance = bill(asked, budget)
    return shape(asked, charges), charges, distance


def bill(asked: Sequence[Asked], budget: Budget) -> tuple[list[Charge], float]:
    """What one moment's questions cost a whole unit, and how far noise is from its law."""
    for a in asked:
        handler(a.question)  # what no handler knows is refused before anything is charged
        if type(a.question) is PublicRows:
            a.question.permit(budget)
    charges = [charge for a in asked for charge in a.question.charges(a.schema, a.path, budget.neighbours.priced)]
    return for_units(charges, budget), tv_error(asked, budget.neighbours)


def shape(asked: Sequence[Asked], charges: Sequence[Charge]) -> str:
    """What one moment's questions are known by in the journal: their public shape, and all that they cost.

    An answer that was charged and journalled is given again to a question of the same shape at the same moment. It was
    paid for when it was drawn, so giving it again is post-processing, whatever the program now compares it with. One
    that was charged and never journalled has been seen by nobody: the question of now is answered under that charge,
    whose amount and sensitivity are the same. Amounts are compared exactly; what follows from numbers of earlier
    answers, which another processor rounds otherwise, to nine digits.
    """
    kinds = [
        (_said(a.path, _named(a.path))[0], type(a.question).__name__, handler(a.question).replayed(a.question))
        for a in asked
    ]
    stated = [_rounded({**charge.to_dict(), "path": _said(charge.path, _named(charge.path))[1]}) for charge in charges]
    return digest(kinds, stated, [c.amount for c in charges])


def _named(path: StratumPath) -> tuple[tuple[str, ...], ...]:
    """What strata are called, which is no part of what makes them equal."""
    return tuple(stratum.names for stratum in path)


@lru_cache(maxsize=2**15)  # every stratum asks at every moment
def _said(path: StratumPath, _: tuple[tuple[str, ...], ...]) -> tuple[Said, Said]:
    """A path as it is hashed, by itself and as charges state it."""
    return Said(path), Said([stratum.to_dict() for stratum in path])


def exactly(asked: Sequence[Asked]) -> str:
    """What versions 0.1.0 and 0.2.0 knew them by: every number that the program worked out."""
    return digest([(a.path, a.question.spelled() if type(a.question) is Choose else a.question) for a in asked])


def _rounded(value: object) -> object:
    """Plain values, with nine digits of each float."""
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return f"{value:.9g}" if isinstance(value, float) else value


def to_state(asked: Sequence[Asked], answers: Sequence[Answer]) -> State | None:
    """The answers of one moment for the journal; None where one of them must not be kept."""
    kept = [handler(a.question).keep(answer) for a, answer in zip(asked, answers, strict=True)]
    if any(one is None for one in kept):
        return None
    parts = [one for one in kept if one is not None]
    arrays = {f"{i}/{j}": array for i, one in enumerate(parts) for j, array in enumerate(one.arrays)}
    return State([one.facts for one in parts], arrays)


def from_state(asked: Sequence[Asked], state: State) -> list[Answer]:
    """The same answers again."""
    arrays: list[list[tuple[int, str]]] = [[] for _ in state.facts]
    for name in state.arrays:
        i, j = name.split("/")
        arrays[int(i)].append((int(j), name))
    return [
        handler(a.question).recall(Kept(facts, [state.arrays[name] for _, name in sorted(arrays[i])]))
        for i, (a, facts) in enumerate(zip(asked, state.facts, strict=True))
    ]
