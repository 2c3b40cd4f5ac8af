"""How far a neighbouring table moves the exact answers to recorded questions, as a share of what was paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.driver.choosing import unit_scores
from stratsynth.driver.lockstep import Asked
from stratsynth.noise import SystemEntropy
from stratsynth.questions import Choose, Counts, Distance, NoisySum, Peak, Total

if TYPE_CHECKING:
    from stratsynth.driver.rows import Rows
    from stratsynth.questions import Answer

Exact = list[Any]


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
    """What telling two tables apart by this answer costs, in the fit's currency: at most what was charged."""
    question = asked.question
    if isinstance(question, Counts):
        distances = [_squared(x, y) for x, y in zip(here, there, strict=True)]
        noise = [Fraction(table.sigma) for table in answer]
        return sum((Fraction(d) / (2 * s**2) for d, s in zip(distances, noise, strict=True)), Fraction(0))
    if isinstance(question, Total):
        return sum(
            (_sum_moved(question, x, y, part) for x, y, part in zip(here, there, answer, strict=True)), Fraction(0)
        )
    if isinstance(question, Choose):
        one, reach = unit_scores(question, here, asked.schema, neighbours)
        two, _ = unit_scores(question, there, asked.schema, neighbours)
        return Fraction(question.rho) * (Fraction(max(abs(a - b) for a, b in zip(one, two, strict=True))) / reach) ** 2
    raise TypeError(f"{type(question).__name__} has no price")


def _sum_moved(question: Total, here: Any, there: Any, part: NoisySum) -> Fraction:
    """What one block's difference costs at the noise it got, in the question's currency."""
    noise = Fraction(part.sigma) / Fraction(part.grid)  # in the units that the sums are in
    if question.currency == Currency.PURE:
        steps = sum(abs(int(a) - int(b)) for a, b in zip(here, there, strict=True))
        return Fraction(steps) * Fraction(math.sqrt(2)) / noise
    if question.currency == Currency.SAMPLED:  # one step, as long as a row keeps to the clip
        return Fraction(_squared(here, there)) * Fraction(question.price) ** 2 / noise**2
    return Fraction(_squared(here, there)) / (2 * noise**2)


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
