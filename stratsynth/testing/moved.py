"""How far a neighbouring table moves the exact answers to recorded questions, as a share of what was paid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Neighbours
from stratsynth.driver.choosing import unit_scores
from stratsynth.driver.lockstep import Asked
from stratsynth.noise import SystemEntropy
from stratsynth.questions import Choose, Counts, Distance, Peak, Total
from stratsynth.questions.total import GRID

if TYPE_CHECKING:
    from stratsynth.driver.rows import Rows
    from stratsynth.questions import Answer

Exact = list[Any]
Load = Callable[[], "Rows"]


def exact_answers(rows: Rows, asked: Sequence[Asked]) -> list[Exact]:
    """What each question is about, without noise: tables, or sums; for a choice, one for each candidate."""
    return [_exact(rows, a) for a in asked]


def _exact(rows: Rows, asked: Asked) -> Exact:
    question, path = asked.question, asked.path
    if isinstance(question, Counts):
        return list(rows.counts([(path, question.cliques)])[0])
    if isinstance(question, Total):  # over all rows: a sample moves by no more than they do
        return list(rows.sums([(path, question.query, 1.0)], SystemEntropy())[0])
    if isinstance(question, Choose):
        return [
            rows.counts([(path, [score.clique])])[0][0]
            if isinstance(score, Distance)
            else rows.sums([(path, score.query, 1.0)], SystemEntropy())[0]
            for score in question.scores
            if isinstance(score, Distance | Peak)
        ]
    raise TypeError(f"{type(question).__name__} has no exact answer")


def moved(asked: Asked, here: Exact, there: Exact, neighbours: Neighbours, answer: Answer) -> Fraction:
    """The cost of telling two tables apart by this answer, in rho: at most what the question was charged."""
    question = asked.question
    if isinstance(question, Counts):
        distances = [_squared(x, y) for x, y in zip(here, there, strict=True)]
        noise = [Fraction(table.sigma) for table in answer]
        return sum((Fraction(d) / (2 * s**2) for d, s in zip(distances, noise, strict=True)), Fraction(0))
    if isinstance(question, Total):
        blocks = question.query.blocks(asked.schema)
        shares = question.shares(asked.schema)
        ratios = [
            Fraction(_squared(x, y)) / (Fraction(GRID) * Fraction(b.sensitivity(neighbours)) / Fraction(b.clip)) ** 2
            for x, y, b in zip(here, there, blocks, strict=True)
        ]
        return sum((Fraction(s) * r for s, r in zip(shares, ratios, strict=True)), Fraction(0))
    if isinstance(question, Choose):
        one, reach = unit_scores(question, here, asked.schema, neighbours)
        two, _ = unit_scores(question, there, asked.schema, neighbours)
        return Fraction(question.rho) * (Fraction(max(abs(a - b) for a, b in zip(one, two, strict=True))) / reach) ** 2
    raise TypeError(f"{type(question).__name__} has no price")


def standard_noise(asked: Asked, exact: Exact, answer: Answer) -> list[np.ndarray[Any, Any]]:
    """The noise that was added, in units of the noise that was declared."""
    if isinstance(asked.question, Counts):
        return [(table.values - truth).ravel() / table.sigma for table, truth in zip(answer, exact, strict=True)]
    if isinstance(asked.question, Total) and asked.question.rate == 1:
        return [(part.units - truth) * part.grid / part.sigma for part, truth in zip(answer, exact, strict=True)]
    return []


def _squared(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> int:
    """The exact squared distance of two integer arrays."""
    return int(((x.astype(object) - y.astype(object)) ** 2).sum())
