"""Answering from private rows: charge, then read, then add noise.

The order is the guarantee. Charges of everything that is asked together are recorded, or all refused, before
the rows are touched for the first time; a failure after that leaves the charge standing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.digest import digest
from stratsynth.driver.answers import from_state, to_state
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.rows import Rows
from stratsynth.errors import Unsupported
from stratsynth.noise import Entropy, gaussian
from stratsynth.questions import Answer, Counts, NoisyTable, Question, Split, Work
from stratsynth.strata import Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.accounting.account import Account
    from stratsynth.accounting.budget import Neighbours

SERVED: frozenset[type[Question]] = frozenset({Counts, Split, Work})
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
        self._rows: Rows | None = None
        self._account = account
        self._entropy = entropy
        self._moment = 0
        self._questions = 0
        self.measurements: list[Measurement] = []

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """Answer everything that was asked at one moment."""
        moment, self._moment = self._moment, self._moment + 1
        questions = [_served(a.question) for a in asked]
        neighbours = self._account.budget.neighbours
        name = digest([(a.path, a.question) for a in asked])
        charges = [c for a, q in zip(asked, questions, strict=True) for c in q.charges(a.path, neighbours)]
        distance = math.fsum(_distance(a, q, neighbours) for a, q in zip(asked, questions, strict=True))
        self._account.charge(moment, name, charges, distance)
        state = self._account.recall(moment, name)
        if state is None:
            answers = self._answer(asked, questions)
            self._account.store(moment, name, to_state(answers))
        else:
            answers = from_state(state)
        for a, answer in zip(asked, answers, strict=True):
            self.measurements.extend(Measurement(a.path, self._questions, table) for table in answer)
            self._questions += 1
        return answers

    def _answer(self, asked: Sequence[Asked], questions: Sequence[Counts]) -> list[Answer]:
        """Read the rows once for everybody, and add noise."""
        if self._rows is None:
            self._rows = self._load()
        exact = self._rows.counts([(a.path, q.cliques) for a, q in zip(asked, questions, strict=True)])
        return [self._noisy(question, tables) for question, tables in zip(questions, exact, strict=True)]

    def _noisy(self, question: Counts, exact: Sequence[NDArray[np.int64]]) -> tuple[NoisyTable, ...]:
        """Integers plus integers: the discrete Gaussian noise that each table's share of rho pays for."""
        sigmas = question.sigmas(self._account.budget.neighbours)
        return tuple(
            NoisyTable(clique, _frozen(table + gaussian.sample(sigma, table.shape, self._entropy)), sigma)
            for clique, table, sigma in zip(question.cliques, exact, sigmas, strict=True)
        )


def _frozen(values: NDArray[np.int64]) -> NDArray[np.int64]:
    values.flags.writeable = False
    return values


def _served(question: Question) -> Counts:
    if isinstance(question, Counts):
        return question
    raise Unsupported(f"these rows cannot answer {type(question).__name__}.")


def _distance(asked: Asked, question: Counts, neighbours: Neighbours) -> float:
    """Total variation between the noise as sampled and as priced, over all cells of a question."""
    sigmas = question.sigmas(neighbours)
    return math.fsum(
        asked.schema.cells(clique) * gaussian.tv_error(sigma)
        for clique, sigma in zip(question.cliques, sigmas, strict=True)
    )
