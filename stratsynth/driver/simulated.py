"""Answers without data: what a mechanism would be told of a table that is spread evenly. For plans only.

Answers of strata that are alike are alike, whoever else asks: each path has made-up noise of its own, from one seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.driver.answering import tv_error
from stratsynth.driver.handlers import handler
from stratsynth.driver.lockstep import Alike, Asked
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

    def __init__(self, account: Account, size: Callable[[StratumPath], float], alike: Alike | None = None) -> None:
        """`size` is the public size of a path; `alike` are the paths that each stands for, as `run` finds them."""
        self._account = account
        self._size = size
        self._alike = {} if alike is None else alike
        self._noise: dict[StratumPath, Generator] = {}
        self.moments = 0
        self.passes = 0
        """Moments at which rows are gone through: not those whose tables are all known from earlier ones."""
        self._known: set[tuple[StratumPath, Clique]] = set()
        self.seen: list[Seen] = []

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """One made-up answer a question."""
        budget = self._account.budget
        charges, _ = bill(asked, budget)
        every = [replace(charge, path=path) for charge in charges for path in self.stands_for(charge.path)]
        distance = math.fsum(len(self.stands_for(a.path)) * tv_error([a], budget.neighbours) for a in asked)
        self._account.charge(self.moments, "", every, distance)
        self.moments += 1
        self.passes += sum(map(self._reads, asked[:LOOKED_AT])) > 0
        return [self._answer(a) for a in asked]

    def stands_for(self, path: StratumPath) -> tuple[StratumPath, ...]:
        """The paths whose questions are asked at this one."""
        return self._alike.get(path) or (path,)

    def first(self, path: StratumPath) -> StratumPath:
        """The path at which this one's questions are asked."""
        return self._first.get(path, path)

    @cached_property
    def _first(self) -> dict[StratumPath, StratumPath]:
        return {one: path for path, kind in self._alike.items() for one in kind}

    def _reads(self, asked: Asked) -> bool:
        """Whether a question wants what is not known yet; its tables are known from now on, where they are kept."""
        wanted = handler(asked.question).wanted(asked.question)
        tables = {(asked.path, clique) for clique in wanted.cliques}
        new = bool(tables - self._known or wanted.sums or wanted.columns or wanted.frame)
        if wanted.again or wanted.once:
            self._known |= tables
        return new

    def _answer(self, asked: Asked) -> Answer:
        at = Setting(asked.schema, self._account.budget.neighbours)
        if asked.path not in self._noise:
            self._noise[asked.path] = np.random.default_rng(0)
        answer, seen = handler(asked.question).simulate(
            asked.question, at, asked.path, self._size(asked.path), self._noise[asked.path]
        )
        self.seen.append(seen)
        return answer
