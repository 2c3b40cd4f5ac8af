"""Prior rows that are tilted again and again, as noisy tables come in one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from stratsynth.adapters.shared.known import believed
from stratsynth.adapters.shared.learner import Learner
from stratsynth.adapters.tilted.fit import TILTER, Aim, Tilt
from stratsynth.adapters.tilted.likened import likened
from stratsynth.adapters.tilted.model import TiltedRows, cells

from stratsynth.questions import Clique, Program, work

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from stratsynth.adapters.engine import Measured

    from stratsynth.mechanisms import Public
    from stratsynth.schema import Schema

SURE = 5.0
"""By how many standard deviations of its noise an answer must disagree before the prior is trusted less."""
ROUND_STEPS, LAST_STEPS = 30, 200
"""The most steps of a fit between rounds, and of the last one."""


@dataclass(kw_only=True)
class TiltedLearner(Learner[TiltedRows]):
    """The prior's rows, their weights as of the last fit, and what each table taught about the prior."""

    codes: Mapping[str, NDArray[np.integer[Any]]]
    """The prior's rows as level numbers."""
    base: NDArray[np.float64]
    """What each row weighs before any table is known, adding up to one."""
    people: float
    """How many people the prior's rows stand for."""
    lent: NDArray[np.bool_] | None = None
    """Of a stratum's rows, which are borrowed; None where none are, or where they have been made like the others."""
    weights: NDArray[np.float64] = field(init=False)
    """What each row weighs now."""
    _aims: list[Aim] = field(default_factory=list, init=False)
    _places: list[NDArray[np.intp]] = field(default_factory=list, init=False)
    _numbers: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        """Start from the prior."""
        self.weights, self._numbers = self.base, np.zeros(0)

    @classmethod
    def of(cls, public: Public, **given: Any) -> TiltedLearner:
        """One that starts from the prior of some public facts."""
        rows = public.prior
        assert rows is not None  # noqa: S101 - whoever calls this has looked
        codes = {name: rows.codes[name] for name in public.schema.names}
        return cls(
            schema=public.schema, codes=codes, base=rows.weights / rows.people, people=rows.people, lent=rows.lent,
            published=tuple(known for known in public.known if not known.of_rows), **given,
        )  # fmt: skip

    @property
    def model(self) -> TiltedRows:
        """The rows with the weights that were fitted last."""
        return TiltedRows(self.schema, self.codes, self.weights, self.total, self._off())

    def _off(self) -> dict[str, float]:
        """How far the prior was off in each column, by what is known now."""
        before = TiltedRows(self.schema, self.codes, self.base)
        now = TiltedRows(self.schema, self.codes, self.weights)
        return {n: 0.5 * float(np.abs(before.oneway(n) - now.oneway(n)).sum()) for n in self.schema.names}

    def fit(self, *, last: bool = False) -> Program[None]:
        """Take in the tables that are new, then tilt."""
        yield from self.begin()
        for table in self.tables[len(self._aims) :]:
            counted = None if table.counted is None else table.counted.ravel()
            spread = table.sigma * math.sqrt(self._trust(table))
            values = table.values.ravel().astype(np.float64)
            self._aims.append(Aim(cells(self.schema, self.codes, table.clique), values, spread, counted))
        steps = LAST_STEPS if last else ROUND_STEPS
        problem = Tilt(self.base, (*self._public(), *self._aims), self.total, self._numbers, steps)
        found = yield from work(TILTER, problem)
        self.weights, self._numbers = found.weights, found.numbers

    def begin(self) -> Program[None]:
        """Make what a stratum borrows like what it has: before anything is fitted, and once."""
        lent, self.lent = self.lent, None
        if lent is None:
            return
        problem = likened(self.schema, self.codes, self.base, lent, self.people)
        if problem is not None:
            found = yield from work(TILTER, problem)
            self.base = self.base.copy()
            self.base[lent] = found.weights * self.base[lent].sum()
            self.weights = self.base

    def _public(self) -> list[Aim]:
        """What is public: it is not the prior that it is weighed against."""
        tables = believed(self.published, self.tables, self.total)
        if len(self._places) < len(tables):
            self._places = [cells(self.schema, self.codes, table.clique) for table in tables]
        return [
            Aim(place, t.values.ravel().astype(np.float64), t.sigma)
            for place, t in zip(self._places, tables, strict=True)
        ]

    def _trust(self, table: Measured) -> float:
        """For how many people's word the prior counts in a table, by the table's paid answer.

        Two samples of N and n people differ in a cell of share p by a variance of p (1 - p) (1/N + 1/n): the prior is
        worth 1 / (1/N + 1/n) people where nothing has changed, and fewer where the answer is farther away than that.
        What noise is expected to make of the distance is taken off; where the rest is less than `SURE` standard
        deviations of it, noise may have made it, and nothing is taken off the prior's worth.
        """
        total = self.total
        foretold = self.marginals([table.clique])[0]
        counted = np.ones(foretold.shape, dtype=bool) if table.counted is None else table.counted
        off = (table.values - total * foretold)[counted]
        spread = total**2 * float((foretold * (1 - foretold))[counted].sum())
        most = 1 / (1 / total + 1 / max(self.people, 1.0))
        moved = float(off @ off) - table.sigma**2 * off.size
        told = moved > SURE * table.sigma**2 * math.sqrt(2 * off.size)
        return min(most, max(1.0, spread / moved)) if told else most

    def marginals(self, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
        """The probabilities of some columns' cells with the weights that were fitted last."""
        return TiltedRows(self.schema, self.codes, self.weights).marginals(cliques)

    def stratum(self, public: Public, prior: float) -> Program[TiltedLearner]:
        """A stratum's own prior rows, tilted as everybody's were; `prior` is learned here, and not a setting."""
        rows = public.prior
        assert rows is not None and rows.parent is not None  # noqa: S101, PT018 - Public.within made them
        learner = TiltedLearner.of(public, size=public.size)
        ratio = np.divide(self.weights, self.base, out=np.zeros_like(self.base), where=self.base > 0)
        moved = learner.base * ratio[rows.parent]
        learner.base = learner.weights = moved / moved.sum() if moved.sum() > 0 else learner.base
        yield from learner.begin()
        return learner

    def given(self, schema: Schema, levels: Mapping[str, Sequence[int]]) -> TiltedRows:
        """The rows that have these levels."""
        return self.model.given(schema, levels)
