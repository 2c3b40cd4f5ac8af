"""Exact answers plus integer noise, for each kind of question. Everything asked together is read in one pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.driver.choosing import away, unit_scores, weigh
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.rows import Rows
from stratsynth.noise import Entropy, exponential_choice, gaussian, laplace
from stratsynth.questions import Answer, Choose, Clique, Counts, Distance, NoisySum, NoisyTable, Peak, Query, Raw, Total
from stratsynth.questions.total import GRID
from stratsynth.strata import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

MAX_KEPT = 2**27
"""The most cells of exact tables kept between moments; beyond it they are counted again."""


class Answerer:
    """Rows, and the noise that covers what is read from them."""

    def __init__(self, rows: Rows, neighbours: Neighbours, entropy: Entropy) -> None:
        """Hold the rows."""
        self._rows = rows
        self._neighbours = neighbours
        self._entropy = entropy
        self._kept: dict[tuple[Path, Clique], NDArray[np.int64]] = {}
        self._kept_cells = 0
        self._away: dict[tuple[Path, str], int] = {}
        """Exact distances of candidates by path and digest: as private as the tables they come from."""

    def answer(self, asked: Sequence[Asked]) -> list[Answer]:
        """One answer a question, in order."""
        tables = self._tables(asked)
        sums = iter(self._sums(asked))
        answers: list[Answer] = []
        for a in asked:
            question = a.question
            if isinstance(question, Counts):
                answers.append(self._noisy(question, [tables[a.path, clique] for clique in question.cliques]))
            elif isinstance(question, Choose):
                scores, reach = self._scores(a, question, tables, sums)
                # epsilon buys a reach of one; in units of the integer scores it is spread over their reach
                rate = Fraction(question.epsilon) / reach
                answers.append(exponential_choice(scores, rate, self._entropy))
            elif isinstance(question, Raw):
                answers.append(self._rows.frame(a.path))
            elif isinstance(question, Total):
                answers.append(self._noisy_sum(question, next(sums), a.schema))
        return answers

    def _scores(
        self,
        asked: Asked,
        question: Choose,
        tables: Mapping[tuple[Path, Clique], NDArray[np.int64]],
        sums: Iterator[list[NDArray[np.int64]]],
    ) -> tuple[list[int], int]:
        """Exact scores of all candidates; a distance that was computed before is remembered."""
        distances = [score for score in question.scores if isinstance(score, Distance)]
        if not distances:
            return unit_scores(question, [next(sums) for _ in question.scores], asked.schema, self._neighbours)
        found = []
        for score in distances:
            key = (asked.path, score.digest)
            if key not in self._away:
                self._away[key] = away(score, tables[asked.path, score.clique])
            found.append(self._away[key])
        return weigh(distances, found, self._neighbours)

    def _tables(self, asked: Sequence[Asked]) -> dict[tuple[Path, Clique], NDArray[np.int64]]:
        """The exact tables that questions need, all paths in one pass; those of choices are kept for the next."""
        wanted: dict[Path, dict[Clique, None]] = {}
        again: set[tuple[Path, Clique]] = set()
        for a in asked:
            if isinstance(a.question, Counts):
                wanted.setdefault(a.path, {}).update(dict.fromkeys(a.question.cliques))
            elif isinstance(a.question, Choose):
                cliques = [score.clique for score in a.question.scores if isinstance(score, Distance)]
                again.update((a.path, clique) for clique in cliques)
                wanted.setdefault(a.path, {}).update(dict.fromkeys(cliques))
        found = {(p, c): self._kept[p, c] for p, cliques in wanted.items() for c in cliques if (p, c) in self._kept}
        missing = [(p, [c for c in cliques if (p, c) not in found]) for p, cliques in wanted.items()]
        for (path, cliques), exact in zip(missing, self._rows.counts(missing), strict=True):
            for clique, table in zip(cliques, exact, strict=True):
                found[path, clique] = table
                if (path, clique) in again and self._kept_cells + table.size <= MAX_KEPT:
                    self._kept[path, clique] = table
                    self._kept_cells += table.size
        return found

    def _sums(self, asked: Sequence[Asked]) -> list[list[NDArray[np.int64]]]:
        """The exact sums that questions need, in the order in which `answer` takes them."""
        wanted: list[tuple[Path, Query, float]] = []
        for a in asked:
            if isinstance(a.question, Total):
                wanted.append((a.path, a.question.query, a.question.rate))
            elif isinstance(a.question, Choose):
                wanted.extend((a.path, score.query, 1.0) for score in a.question.scores if isinstance(score, Peak))
        return self._rows.sums(wanted, self._entropy) if wanted else []

    def _noisy(self, question: Counts, exact: Sequence[NDArray[np.int64]]) -> tuple[NoisyTable, ...]:
        """Integers plus integers: the discrete Gaussian noise that each table's share of rho pays for."""
        sigmas = question.sigmas(self._neighbours)
        return tuple(
            NoisyTable(clique, frozen(table + gaussian.sample(sigma, table.shape, self._entropy)), sigma)
            for clique, table, sigma in zip(question.cliques, exact, sigmas, strict=True)
        )

    def _noisy_sum(self, question: Total, exact: Sequence[NDArray[np.int64]], schema: Schema) -> tuple[NoisySum, ...]:
        """The same for sums: discrete Gaussian, or for pure epsilon discrete Laplace with its whole tail."""
        parts = []
        scales = question.scales(schema, self._neighbours)
        for units, scale, block in zip(exact, scales, question.query.blocks(schema), strict=True):
            pure = question.currency == Currency.PURE
            noise = (laplace if pure else gaussian).sample(scale, units.shape, self._entropy)
            grid = block.clip / GRID
            # int64 wraps around where the tail of Laplace noise is longer: that is post-processing
            parts.append(NoisySum(frozen(units + noise), grid, scale * grid * (math.sqrt(2) if pure else 1.0)))
        return tuple(parts)


def frozen(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """An answer cannot be written to: a journal and a mechanism may hold the same array."""
    values.flags.writeable = False
    return values


def distance(asked: Sequence[Asked], neighbours: Neighbours) -> float:
    """Total variation between the noise as sampled, tails cut off, and as priced, over all that is asked."""
    return math.fsum(_distance(a, neighbours) for a in asked)


def _distance(asked: Asked, neighbours: Neighbours) -> float:
    question, schema = asked.question, asked.schema
    if isinstance(question, Counts):
        sigmas = question.sigmas(neighbours)
        cells = [schema.cells(clique) for clique in question.cliques]
        return math.fsum(n * gaussian.tv_error(sigma) for n, sigma in zip(cells, sigmas, strict=True))
    if isinstance(question, Total) and question.currency != Currency.PURE:
        scales = question.scales(schema, neighbours)
        sizes = [block.size for block in question.query.blocks(schema)]
        return math.fsum(n * gaussian.tv_error(scale) for n, scale in zip(sizes, scales, strict=True))
    return 0.0  # choices and Laplace noise are exact
