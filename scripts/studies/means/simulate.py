"""Many runs of a mechanism that asks for sums, on PUBLIC data and with numpy's noise: for experiments only.

The mechanism, its questions and its estimates are the real ones; sums are taken in floating
point, equal values together, and noise of the declared law and width comes from a seeded generator. So this is a
simulation of `stratsynth.fit`, and protects nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stratsynth.accounting.budget import Budget, Currency
from stratsynth.driver.lockstep import AnswerSource, Asked, run
from stratsynth.errors import Unsupported
from stratsynth.mechanisms import Mechanism, Public
from stratsynth.models import Estimate, Returns
from stratsynth.questions import Answer, Columns, NoisySum, Total
from stratsynth.questions.sums.base import GRID
from stratsynth.schema import Numeric, Schema
from stratsynth.schema.transforms import forward
from stratsynth.strata import Stratum, StratumPath, crossing

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Numbers that are nobody's secret, and the stratum that each row is in."""

    schema: Schema
    numbers: Mapping[str, Floats]
    """Within the column's bounds; NaN where there is none."""
    by: tuple[str, ...]
    """The columns that the strata are of."""
    stratum: NDArray[np.int64]
    """Number of each row's stratum, in the order of the crossing."""
    _kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """All strata, in order."""
        if "strata" not in self._kept:
            self._kept["strata"] = crossing(self.schema, self.by)
        return cast("tuple[Stratum, ...]", self._kept["strata"])

    def sum_of(self, path: StratumPath, query: Columns) -> Floats:
        """The clipped sum over the rows of everybody, or of one stratum."""
        values, times = self._values(path, query.columns)
        v = (values - np.array(query.centre)[:, None]) / np.array(query.scale)[:, None]
        if query.square:
            v = v * v
        if len(v) == 1:
            v = np.clip(v, -query.clip, query.clip)
        else:
            length = np.abs(v).sum(axis=0) if query.norm == "l1" else np.sqrt((v * v).sum(axis=0))
            v = v * np.minimum(1.0, query.clip / np.maximum(length, 1e-300))
        found: Floats = v @ times
        return found

    def _values(self, path: StratumPath, columns: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Different rows of some columns on their scales, one a column of the array, and how often each occurs."""
        key = path, columns
        if key not in self._kept:
            rows = np.array([forward(cast("Numeric", self.schema.column(c)), self.numbers[c]) for c in columns])
            if path:
                rows = rows[:, self._members(path)]
            rows = rows[:, ~np.isnan(rows).any(axis=0)]
            times = np.ones(rows.shape[1])
            if len(columns) == 1:
                values, counted = np.unique(rows[0], return_counts=True)
                rows, times = values[None], counted.astype(np.float64)
            self._kept[key] = rows, times
        return cast("tuple[Floats, Floats]", self._kept[key])

    def _members(self, path: StratumPath) -> NDArray[np.intp]:
        if "members" not in self._kept:
            order = np.argsort(self.stratum, kind="stable")
            ends = np.cumsum(np.bincount(self.stratum, minlength=len(self.strata)))
            parts = np.split(order, ends[:-1])
            self._kept["members"] = dict(zip(self.strata, parts, strict=True))
        if len(path) != 1 or path[0] not in self._kept["members"]:
            raise Unsupported("a simulation knows everybody, and the strata of one split.")
        return cast("NDArray[np.intp]", self._kept["members"][path[0]])


def simulate(
    mechanism: Mechanism[Any], rows: PublicRows, budget: Budget, rng: Generator, *, runs: int, declared: int
) -> list[Estimate]:
    """The estimates of `runs` fits: same rows, fresh noise."""
    if mechanism.returns != Returns.ESTIMATES:
        raise Unsupported(f"{mechanism.name} returns no estimates; a simulation is of means.")
    public = Public(rows.schema, declared, budget.neighbours)
    allot = mechanism.price(public, budget)

    answers = Simulated(rows, budget, rng)
    return [run(mechanism.steps(public, allot, rng), rows.schema, answers) for _ in range(runs)]


@dataclass(frozen=True)
class Simulated(AnswerSource):
    """Sums of columns of public rows, with fresh noise from a seeded generator."""

    rows: PublicRows
    budget: Budget
    rng: Generator

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """One noisy sum a question."""
        return [_answer(a, self.rows, self.budget, self.rng) for a in asked]


def _answer(asked: Asked, rows: PublicRows, budget: Budget, rng: Generator) -> tuple[NoisySum]:
    question = asked.question
    if not isinstance(question, Total) or not isinstance(question.query, Columns) or question.rate != 1:
        raise Unsupported("a simulation answers sums of columns over all rows.")
    (scale,) = question.scales(asked.schema, budget.neighbours)
    exact = rows.sum_of(asked.path, question.query) * (GRID / question.query.clip)
    pure = question.currency == Currency.PURE
    noise = rng.laplace(0, scale, len(exact)) if pure else rng.normal(0, scale, len(exact))
    grid = question.query.clip / GRID
    return (NoisySum(np.rint(exact + noise).astype(np.int64), grid, scale * grid * (2**0.5 if pure else 1.0)),)
