"""The log-likelihood ratio of answers between two tables, from the laws of the noise.

A score may be anything without making a lower bound wrong; this one makes it the best. It is computed from what
was declared (sigma by the price paid), not from what the driver says it added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.errors import Unsupported
from stratsynth.evaluation.audit.choices import log_law
from stratsynth.questions import Answer, Choose, Counts, NoisyTable, Total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.driver.lockstep import Asked
    from stratsynth.evaluation.audit.audited import AuditedAnswers
    from stratsynth.questions.reading import Exact
    from stratsynth.schema import Schema

Score = Callable[[Answer, "NDArray[np.float64]"], "NDArray[np.float64] | float"]
"""log P(answer on the neighbour) / P(answer on the first table), if the noise is these shares of what was declared."""


def score(asked: Asked, here: Exact, there: Exact, neighbours: Neighbours) -> Score | None:
    """The score of one question's answer, given both tables' exact answers; None where these are the same.

    Sums over Poisson samples need a first table without rows: then the sum is noise, or with probability `rate`
    noise around the one record's vector.
    """
    question = asked.question
    if isinstance(question, Choose):
        laws = [log_law(question, exact, asked.schema, neighbours) for exact in (here, there)]
        ratio = laws[1] - laws[0]
        return (lambda answer, shares: ratio[answer] / shares) if np.any(np.abs(ratio) > 1e-12) else None
    if isinstance(question, Counts):
        scales, one, two = question.sigmas(asked.schema, neighbours), here.tables, there.tables
    elif isinstance(question, Total):
        scales, one, two = question.scales(asked.schema, neighbours), here.sums[0], there.sums[0]
    else:
        raise Unsupported(f"audit: the answer to {type(question).__name__} has no likelihood.")
    pairs = list(zip(one, two, scales, strict=True))
    parts = [_Part(i, *pair) for i, pair in enumerate(pairs) if np.any(pair[0] != pair[1])]
    if not parts:
        return None
    if isinstance(question, Total) and question.currency == Currency.PURE:
        return lambda answer, shares: math.fsum(part.laplace(answer) for part in parts) / shares
    if isinstance(question, Total) and question.currency == Currency.SAMPLED:
        rate = question.rate
        return lambda answer, shares: np.log1p(rate * np.expm1(_gaussian(parts, answer) / shares**2))
    return lambda answer, shares: _gaussian(parts, answer) / shares**2


def divergence(question: Choose, schema: Schema, here: Exact, there: Exact, neighbours: Neighbours) -> float:
    """The Kullback-Leibler divergence of a choice between two tables, from its exact law."""
    one, two = (log_law(question, exact, schema, neighbours) for exact in (here, there))
    return float(np.sum(np.exp(two) * (two - one)))


def _gaussian(parts: Sequence[_Part], answer: Answer) -> float:
    return math.fsum(part.gaussian(answer) for part in parts)


@dataclass(frozen=True)
class Transcript:
    """The questions of a recorded run whose exact answers differ between two tables, each with its score."""

    asked: tuple[Asked, ...]
    """The questions."""
    scores: tuple[Score, ...]
    """For each question, the log-likelihood ratio of its answers."""

    @classmethod
    def of(
        cls, asked: Sequence[Asked], here: Sequence[Exact], there: Sequence[Exact], neighbours: Neighbours
    ) -> Transcript:
        """Leave out questions with equal answers: the noisy ones have the same law, and a ratio of 1."""
        found = [(a, score(a, one, two, neighbours)) for a, one, two in zip(asked, here, there, strict=True)]
        kept = [(a, s) for a, s in found if s is not None]
        return cls(tuple(a for a, _ in kept), tuple(s for _, s in kept))

    def draw(self, audited: AuditedAnswers, runs: int, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of all questions' scores in each run: one row for each assumed share of the noise.

        A last row leaves choices out, at the first of the shares.
        """
        drawn = np.zeros((len(shares) + 1, runs))
        noisy = [not isinstance(a.question, Choose) for a in self.asked]
        for run, answers in enumerate(audited.again(self.asked, runs)):
            for answer, one, adds in zip(answers, self.scores, noisy, strict=True):
                ratios = one(answer, shares)
                drawn[:-1, run] += ratios
                drawn[-1, run] += np.ravel(ratios)[0] if adds else 0.0
        return drawn


class _Part:
    """One table or block that differs, and the noise around it; only cells that differ matter."""

    def __init__(self, number: int, here: NDArray[np.int64], there: NDArray[np.int64], scale: float) -> None:
        self.number = number
        self.at = np.flatnonzero(here.ravel() != there.ravel())
        self.here = here.ravel()[self.at].astype(np.float64)
        self.there = there.ravel()[self.at].astype(np.float64)
        self.scale = scale

    def values(self, answer: Answer) -> NDArray[np.float64]:
        """The noisy cells, in units of the noise."""
        part = answer[self.number]
        whole = part.values if isinstance(part, NoisyTable) else part.units
        found: NDArray[np.float64] = whole.ravel()[self.at].astype(np.float64)
        return found

    def gaussian(self, answer: Answer) -> float:
        """((x - a)^2 - (x - b)^2) / (2 sigma^2), exact for the discrete Gaussian too."""
        x = self.values(answer)
        step = self.there - self.here
        return float(np.dot(step / self.scale, (2 * x - self.here - self.there) / (2 * self.scale)))

    def laplace(self, answer: Answer) -> float:
        """(|x - a| - |x - b|) / scale."""
        x = self.values(answer)
        return float((np.abs(x - self.here) - np.abs(x - self.there)).sum() / self.scale)
