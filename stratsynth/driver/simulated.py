"""Answers without data: what a mechanism would be told of a table that is spread evenly. For plans only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from stratsynth.accounting.budget import Currency
from stratsynth.accounting.units import for_units
from stratsynth.digest import digest
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.noisy import distance, frozen
from stratsynth.errors import Unsupported
from stratsynth.questions import Answer, Choose, Columns, Counts, Distance, NoisySum, NoisyTable, Query, Total
from stratsynth.questions.total import GRID
from stratsynth.schema.transforms import bounds
from stratsynth.strata import Path

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.account import Account
    from stratsynth.schema import Numeric, Schema


def counts_rows(query: Query, schema: Schema) -> bool:
    """Whether each row that has a value contributes exactly the clip: its column's bounds are all further out."""
    if not isinstance(query, Columns) or query.square:
        return False
    low, _ = bounds(cast("Numeric", schema.column(query.columns[0])))
    return (low - query.centre[0]) / query.scale[0] >= query.clip


@dataclass(frozen=True)
class Seen:
    """One question of a simulated run."""

    path: Path
    kind: str
    cliques: tuple[tuple[tuple[str, ...], int, float], ...] = ()
    """For counts: columns, number of cells and sigma of each table."""
    cells: int = 0
    """The numbers it is about."""
    candidates: frozenset[tuple[tuple[str, ...], int]] = frozenset()
    """For a choice among tables: their columns and number of cells."""


class SimulatedAnswers:
    """Charges as the real driver does, and answers from public sizes: every cell of a table is equally full."""

    def __init__(self, account: Account, size: Callable[[Path], float], rng: Generator) -> None:
        """`size` is the public size of a path."""
        self._account = account
        self._size = size
        self._rng = rng
        self.moments = 0
        self.seen: list[Seen] = []

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """One made-up answer a question."""
        neighbours = self._account.budget.neighbours
        charges = [charge for a in asked for charge in a.question.charges(a.schema, a.path, neighbours)]
        charges = for_units(charges, self._account.budget)
        name = digest([(a.path, a.question) for a in asked])
        self._account.charge(self.moments, name, charges, distance(asked, neighbours))
        self.moments += 1
        return [self._answer(a) for a in asked]

    def _answer(self, asked: Asked) -> Answer:
        question, schema, neighbours = asked.question, asked.schema, self._account.budget.neighbours
        if isinstance(question, Counts):
            sigmas = question.sigmas(neighbours)
            sizes = [schema.cells(clique) for clique in question.cliques]
            cliques = tuple(zip(question.cliques, sizes, sigmas, strict=True))
            self.seen.append(Seen(asked.path, "counts", cliques, sum(sizes)))
            return tuple(
                self._table(asked, clique, sigma) for clique, sigma in zip(question.cliques, sigmas, strict=True)
            )
        if isinstance(question, Choose):
            found = {score.clique for score in question.scores if isinstance(score, Distance)}
            candidates = frozenset((clique, schema.cells(clique)) for clique in found)
            self.seen.append(Seen(asked.path, "choose", (), sum(n for _, n in candidates), candidates))
            return int(self._rng.integers(len(question.scores)))
        if isinstance(question, Total):
            scales = question.scales(schema, neighbours)
            blocks = question.query.blocks(schema)
            self.seen.append(Seen(asked.path, "total", cells=sum(block.size for block in blocks)))
            rows = self._size(asked.path) if counts_rows(question.query, schema) else 0.0
            spread = math.sqrt(2) if question.currency == Currency.PURE else 1.0
            return tuple(
                NoisySum(
                    frozen(np.rint(rows * GRID + self._rng.normal(0, scale, block.size)).astype(np.int64)),
                    block.clip / GRID,
                    scale * spread * block.clip / GRID,
                )
                for block, scale in zip(blocks, scales, strict=True)
            )
        raise Unsupported(f"a plan cannot simulate {type(question).__name__}.")

    def _table(self, asked: Asked, clique: tuple[str, ...], sigma: float) -> NoisyTable:
        shape = asked.schema.shape(clique)
        even = self._size(asked.path) / asked.schema.cells(clique)
        noisy = np.rint(even + self._rng.normal(0, sigma, shape)).astype(np.int64)
        return NoisyTable(clique, frozen(noisy), sigma)
