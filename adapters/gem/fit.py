"""Training of a mixture of products: half the squared distances from noisy tables, in units of noise, by Adam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.adapters.engine import MeasuredTable
from stratsynth.adapters.gem.adam import Adam
from stratsynth.adapters.gem.layout import LogitBlocks, Reals, joint
from stratsynth.adapters.gem.network import Parametrisation
from stratsynth.questions import Solver


@dataclass(frozen=True, eq=False)
class Training:
    """One training problem: generator, start parameters, noisy tables."""

    source: Parametrisation
    point: Reals
    """Start parameters, flat."""
    tables: tuple[MeasuredTable, ...]
    total: float
    """Number of records."""
    iterations: int
    """Largest number of steps."""
    rate: float
    """Step size of the first step."""


class TableLoss:
    """Misfit of a mixture's tables and its gradient by probability, scaled so that the largest weight is 1."""

    def __init__(
        self,
        layout: LogitBlocks,
        tables: Sequence[MeasuredTable],
        total: float,
        kind: type[np.floating[Any]] = np.float32,
    ) -> None:
        least = min((table.sigma for table in tables), default=1.0)
        self.unit = (total / least) ** 2
        """Scale: one unit of the misfit, in half squared distances in units of noise."""
        self.floor = 0.5 * sum(float(_counted(table).sum()) for table in tables) / self.unit
        """Expected misfit under noise alone."""
        self._tables: list[tuple[list[slice], Reals, Reals]] = []
        for table in tables:
            sizes = table.values.shape
            # tables flatten to (smaller columns jointly) x (largest column), so that one matrix product gives a table
            order = sorted(range(len(sizes)), key=lambda axis: sizes[axis])  # largest column last: see `slope`
            blocks = [layout.block[table.clique[axis]] for axis in order]
            share = np.transpose(table.values, order).reshape(-1, sizes[order[-1]]) / total
            weight = np.transpose(_counted(table), order).reshape(share.shape) * (least / table.sigma) ** 2
            self._tables.append((blocks, share.astype(kind), weight.astype(kind)))

    def slope(self, odds: Reals) -> tuple[float, Reals]:
        """Return (misfit of all tables, a float, under probabilities `odds`; its gradient by these, an array).

        `odds` are levels x components.
        """
        slope, distance = np.zeros_like(odds), 0.0
        part = odds.dtype.type(1 / odds.shape[1])
        for blocks, share, weight in self._tables:
            # the smaller columns' joint probabilities, one more column at a time
            grown = [odds[blocks[0]]]
            for block in blocks[1:-1]:
                grown.append(joint((grown[-1], odds[block])))
            last = odds[blocks[-1]]
            # a cell's probability is the mean over components of its levels' product
            away = (grown[-1] @ last.T) * part if len(blocks) > 1 else last.mean(axis=1)[None, :]
            away -= share
            pull = away * weight
            distance += 0.5 * float(np.vdot(pull, away))
            # chain rule through the products, in reverse order
            pull *= part
            if len(blocks) == 1:
                slope[blocks[0]] += pull.T
                continue
            slope[blocks[-1]] += pull.T @ grown[-1]
            back = pull @ last
            for i in range(len(blocks) - 2, 0, -1):
                mine = odds[blocks[i]]
                wide = back.reshape(-1, *mine.shape)
                slope[blocks[i]] += (wide * grown[i - 1][:, None, :]).sum(axis=0)
                back = (wide * mine).sum(axis=1)
            slope[blocks[0]] += back
        return distance, slope


def _counted(table: MeasuredTable) -> NDArray[np.bool_]:
    return np.ones(table.values.shape, dtype=bool) if table.counted is None else table.counted


def train(problems: Sequence[Training]) -> list[Reals]:
    """Return a list of trained parameters, a flat array for each Training of `problems`, in order, one after another.

    The driver calls it through `TRAINER`, in parallel where there are several.
    """
    return [_train(problem) for problem in problems]


def _train(problem: Training) -> Reals:
    """Return the trained parameters of one problem, a `Training`, as a flat array."""
    point = problem.point.astype(np.float32)
    goal = TableLoss(problem.source.layout, problem.tables, problem.total)
    adam = Adam(point, problem.rate, problem.iterations)
    for _ in range(problem.iterations):
        odds, tape = problem.source.forward(point)
        distance, slope = goal.slope(odds)
        # a misfit that noise alone would leave: further steps would fit the noise
        if distance <= goal.floor:
            break
        adam.step(point, problem.source.backward(point, tape, slope))
    return point


def _numbers(problem: Training) -> float:
    """Return the work of one training step of `problem`, for sharing it out: parameters plus cells of its tables."""
    return problem.point.size + sum(table.values.size for table in problem.tables)


def _hasty(problem: Training) -> Training:
    """Return a copy of the `Training` with one iteration, for rehearsals, which ignore the fit."""
    return replace(problem, iterations=1)


TRAINER = Solver(train, apart=True, size=_numbers, hasty=_hasty)
