"""Answers without data: about a table that is spread evenly. For plans only.

Strata of which the same is known are represented by one, whose charges and questions count for each of them. Their
answers are equal, whoever else asks: each path has made-up noise of its own, from one seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.driver.lockstep import Answers, Asked
from stratsynth.driver.private import Admits, bill, tv_error
from stratsynth.questions import Answer, Split
from stratsynth.questions.base import Seen, Setting
from stratsynth.questions.reading import Clique
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.account import Account


LOOKED_AT = 4
"""Questions of a moment by which is judged whether it goes through the rows: strata run alike."""


class SimulatedAnswers(Answers):
    """Charges as the real driver does, and answers from public sizes: every cell of a table is equally full."""

    def __init__(
        self, account: Account, size: Callable[[StratumPath], float], admits: Admits = lambda *_: None
    ) -> None:
        """`size` is the public size of a path; `admits` refuses what the mechanism has not declared."""
        self._account = account
        self._size = size
        self._admits = admits
        self._represents: dict[StratumPath, tuple[StratumPath, ...]] = {(): ((),)}
        """For each path at which a program runs, all paths that it stands for, its own among them."""
        self._noise: dict[StratumPath, Generator] = {}
        self.moments = 0
        self.passes = 0
        """Moments at which rows are gone through: not those whose tables are all known from earlier ones."""
        self._known: set[tuple[StratumPath, Clique]] = set()
        self.seen: list[Seen] = []

    def admit(self, asked: Asked) -> None:
        """Note the paths that each program of a split stands for; of other questions, refuse what is not declared."""
        split = asked.question
        if type(split) is not Split:
            self._admits(asked.path, split.needs())
            return
        for stratum in split.programs:
            strata = (stratum,) if split.alike is None else split.alike[stratum]
            self._represents[*asked.path, stratum] = tuple(
                (*above, one) for above in self.stands_for(asked.path) for one in strata
            )

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """One made-up answer a question."""
        budget = self._account.budget
        every = [replace(charge, path=path) for charge in bill(asked, budget) for path in self.stands_for(charge.path)]
        distance = math.fsum(len(self.stands_for(a.path)) * tv_error(a, budget.neighbours) for a in asked)
        self._account.charge(self.moments, "", every, distance)
        self.moments += 1
        self.passes += sum(map(self._reads, asked[:LOOKED_AT])) > 0
        return [self._answer(a) for a in asked]

    def stands_for(self, path: StratumPath) -> tuple[StratumPath, ...]:
        """The paths whose questions are asked at this one."""
        return self._represents.get(path) or (path,)

    def first(self, path: StratumPath) -> StratumPath:
        """The path at which this one's questions are asked."""
        return self._first.get(path, path)

    @cached_property
    def _first(self) -> dict[StratumPath, StratumPath]:
        return {one: path for path, strata in self._represents.items() for one in strata}

    def _reads(self, asked: Asked) -> bool:
        """True if a question needs a new read; its tables are known from now on, where they are kept."""
        wanted = asked.question.wanted()
        tables = {(asked.path, clique) for clique in wanted.cliques}
        new = bool(tables - self._known or wanted.sums or wanted.columns or wanted.frame)
        if wanted.again or wanted.once:
            self._known |= tables
        return new

    def _answer(self, asked: Asked) -> Answer:
        at = Setting(asked.schema, self._account.budget.neighbours)
        if asked.path not in self._noise:
            self._noise[asked.path] = np.random.default_rng(0)
        answer, seen = asked.question.simulate(at, asked.path, self._size(asked.path), self._noise[asked.path])
        self.seen.append(seen)
        return answer
