"""Answers without data: what a mechanism would be told of a table that is spread evenly. For plans only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stratsynth.driver.handlers import handler
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.private import bill
from stratsynth.questions import Answer, Clique
from stratsynth.questions.handler import Seen, Setting
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.account import Account


LOOKED_AT = 4
"""Questions of a moment by which is judged whether it goes through the rows: strata run alike."""


class SimulatedAnswers:
    """Charges as the real driver does, and answers from public sizes: every cell of a table is equally full."""

    def __init__(self, account: Account, size: Callable[[StratumPath], float], rng: Generator) -> None:
        """`size` is the public size of a path."""
        self._account = account
        self._size = size
        self._rng = rng
        self.moments = 0
        self.passes = 0
        """Moments at which rows are gone through: not those whose tables are all known from earlier ones."""
        self._known: set[tuple[StratumPath, Clique]] = set()
        self.seen: list[Seen] = []

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """One made-up answer a question."""
        self._account.charge(self.moments, "", *bill(asked, self._account.budget))
        self.moments += 1
        self.passes += sum(map(self._reads, asked[:LOOKED_AT])) > 0
        return [self._answer(a) for a in asked]

    def _reads(self, asked: Asked) -> bool:
        """Whether a question wants what is not known yet; its tables are known from now on, where they are kept."""
        wanted = handler(asked.question).wanted(asked.question)
        tables = {(asked.path, clique) for clique in wanted.cliques}
        new = bool(tables - self._known or wanted.sums or wanted.columns or wanted.frame)
        if wanted.again:
            self._known |= tables
        return new

    def _answer(self, asked: Asked) -> Answer:
        at = Setting(asked.schema, self._account.budget.neighbours)
        answer, seen = handler(asked.question).simulate(
            asked.question, at, asked.path, self._size(asked.path), self._rng
        )
        self.seen.append(seen)
        return answer
