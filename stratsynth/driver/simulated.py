"""Answers without data, about an evenly spread table: for plans only.

Strata with equal facts are represented by one, whose charges and questions count for each of them. Their
answers are equal, whatever other strata ask: each path has made-up noise from one seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.accounting.exact import EXACT
from stratsynth.driver.lockstep import AnswerSource, Asked
from stratsynth.driver.private import Admits, bill
from stratsynth.questions import Answer, Split
from stratsynth.questions.base import Seen, Setting
from stratsynth.questions.reading import Clique
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.account import FitAccount


LOOKED_AT = 4
"""Number of questions of a batch by which it is decided if the batch reads rows: strata run alike."""


class SimulatedAnswers(AnswerSource):
    """Answers that charge as the private ones do, and simulate tables whose cells are all equally full."""

    def __init__(
        self, account: FitAccount, size: Callable[[StratumPath], float], admits: Admits = lambda *_: None
    ) -> None:
        """Charge to `account`; `size` returns a path's public size, `admits` refuses what is not declared."""
        self._account = account
        self._size = size
        self._admits = admits
        self._represents: dict[StratumPath, tuple[StratumPath, ...]] = {(): ((),)}
        """Paths that each path with a running program stands for, its own included."""
        self._noise: dict[StratumPath, Generator] = {}
        self.moments = 0
        self.passes = 0
        """Number of batches that read rows: all but those whose tables are known from earlier ones."""
        self._known: set[tuple[StratumPath, Clique]] = set()
        self.seen: list[Seen] = []

    @property
    def exact(self) -> bool:
        """True if the fit spends in the currency `exact`."""
        return self._account.budget.accounting == EXACT

    def admit(self, asked: Asked) -> None:
        """Note the paths that each program of a split `asked` stands for.

        MechanismError for other questions that the mechanism has not declared.
        """
        split = asked.question
        if type(split) is not Split:
            self._admits(asked.path, split.needs())
            return
        for stratum in split.strata:  # which an earlier split may have had one by one
            self._represents.pop((*asked.path, stratum), None)
        for stratum in split.programs:
            strata = (stratum,) if split.alike is None else split.alike[stratum]
            self._represents[*asked.path, stratum] = tuple(
                (*above, one) for above in self.stands_for(asked.path) for one in strata
            )

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """Charge the batch `asked` as a fit would, then return a list of made-up answers, one a question, in order."""
        budget = self._account.budget
        every = [replace(charge, path=path) for charge in bill(asked, budget) for path in self.stands_for(charge.path)]
        errors = (a.question.tv_error(Setting(a.schema, budget.neighbours)) for a in asked)
        distance = math.fsum(len(self.stands_for(a.path)) * error for a, error in zip(asked, errors, strict=True))
        self._account.charge(self.moments, "", every, distance)
        self.moments += 1
        self.passes += sum(map(self._reads, asked[:LOOKED_AT])) > 0
        return [self._answer(a) for a in asked]

    def stands_for(self, path: StratumPath) -> tuple[StratumPath, ...]:
        """Return a tuple of paths of all strata whose questions are asked only here; (path,) if just its own are."""
        return self._represents.get(path) or (path,)

    def first(self, path: StratumPath) -> StratumPath:
        """Return the path of the stratum that is asked in place of this one: itself if none is."""
        return self._first.get(path, path)

    @cached_property
    def _first(self) -> dict[StratumPath, StratumPath]:
        return {one: path for path, strata in self._represents.items() for one in strata}

    def _reads(self, asked: Asked) -> bool:
        """True if the question `asked` needs a read that no earlier one made.

        Its tables are noted, if they would be kept.
        """
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
