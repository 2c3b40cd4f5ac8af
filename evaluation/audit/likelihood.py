"""Log-likelihood ratio of answers between two tables, from the distribution of the noise.

Any score gives a valid lower bound; this one gives the best. It is computed from the declared noise (sigma by the price
paid), not from the noise that the driver states to have added.
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
from stratsynth.questions.base import Setting
from stratsynth.questions.minimiser import Minimiser

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.driver.lockstep import Asked
    from stratsynth.evaluation.audit.audited import AuditedAnswers
    from stratsynth.questions.reading import Exact
    from stratsynth.schema import Schema

Score = Callable[[Answer, "NDArray[np.float64]"], "NDArray[np.float64] | float"]
"""log P(answer on the neighbour) / P(answer on the first table), if the noise is these shares of the declared noise."""


def score(asked: Asked, here: Exact, there: Exact, neighbours: Neighbours) -> Score | None:
    """Function of a noisy answer to `asked` and shares of noise: log of P(answer | `there`) / P(answer | `here`).

    `here` and `there` are the Exact reads of a table and of its neighbour; the function returns an array, one a share.
    None if both are equal. Sums over Poisson samples need a first table without rows: then the sum is noise, or with
    probability `rate` noise around the one record's vector. Unsupported for other questions.
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
    elif isinstance(question, Minimiser):
        at = Setting(asked.schema, neighbours)
        scales, one, two = (
            [question.scale(at.schema, neighbours)],
            [question.exact(at, here)],
            [question.exact(at, there)],
        )
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
        # log(1 - q + q L) for the likelihood ratio L of a sampled record
        return lambda answer, shares: np.log1p(rate * np.expm1(_gaussian(parts, answer) / shares**2))
    return lambda answer, shares: _gaussian(parts, answer) / shares**2


def divergence(question: Choose, schema: Schema, here: Exact, there: Exact, neighbours: Neighbours) -> float:
    """Kullback-Leibler divergence, a float, of the laws of the choice `question` on the exact reads `there` and `here`.

    Both laws are exact, by the schema and the notion of neighbours.
    """
    one, two = (log_law(question, exact, schema, neighbours) for exact in (here, there))
    return float(np.sum(np.exp(two) * (two - one)))


def _gaussian(parts: Sequence[_Part], answer: Answer) -> float:
    """Return a float, log of P(answer | neighbour) / P(answer | first table), summed over `parts`, Gaussian noise.

    `parts` is a sequence of `_Part`, the cells in which the tables differ; `answer` is the question's whole answer.
    """
    return math.fsum(part.gaussian(answer) for part in parts)


@dataclass(frozen=True)
class Transcript:
    """Questions of a recorded run whose exact answers differ between two tables, each with its score."""

    asked: tuple[Asked, ...]
    """Questions with different exact answers."""
    scores: tuple[Score, ...]
    """Log-likelihood ratio of each question's answers."""

    @classmethod
    def of(
        cls, asked: Sequence[Asked], here: Sequence[Exact], there: Sequence[Exact], neighbours: Neighbours
    ) -> Transcript:
        """Return the transcript of questions `asked`, each with its score by reads `here`, `there` of both tables.

        Questions whose exact reads are equal are left out; scores are for this notion of neighbour.
        """
        found = [(a, score(a, one, two, neighbours)) for a, one, two in zip(asked, here, there, strict=True)]
        kept = [(a, s) for a, s in found if s is not None]
        return cls(tuple(a for a, _ in kept), tuple(s for _, s in kept))

    def draw(self, audited: AuditedAnswers, runs: int, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Array (shares + 1, `runs`) of log-likelihood ratios of fresh `audited` answers, a row a share of noise.

        `shares` is an array of shares. A last row leaves choices out, at the first of them.
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
    """Cells of one table or block that differ between the two tables, with the scale of their noise."""

    def __init__(self, number: int, here: NDArray[np.int64], there: NDArray[np.int64], scale: float) -> None:
        self.number = number
        self.at = np.flatnonzero(here.ravel() != there.ravel())
        self.here = here.ravel()[self.at].astype(np.float64)
        self.there = there.ravel()[self.at].astype(np.float64)
        self.scale = scale

    def values(self, answer: Answer) -> NDArray[np.float64]:
        """Float array of this part's noisy cells in `answer`: where the two tables differ, in the exact ones' unit."""
        part = answer[self.number]
        whole = part.values if isinstance(part, NoisyTable) else part.units
        found: NDArray[np.float64] = whole.ravel()[self.at].astype(np.float64)
        return found

    def gaussian(self, answer: Answer) -> float:
        """Log-likelihood ratio of an answer's cells: sum of ((x - a)^2 - (x - b)^2) / (2 scale^2).

        x is the noisy cell, a and b the exact ones of first table and neighbour; exact for the discrete Gaussian too.
        """
        x = self.values(answer)
        step = self.there - self.here
        return float(np.dot(step / self.scale, (2 * x - self.here - self.there) / (2 * self.scale)))

    def laplace(self, answer: Answer) -> float:
        """Log-likelihood ratio of an answer's cells: sum of (|x - a| - |x - b|) / scale; x noisy, a and b exact."""
        x = self.values(answer)
        return float((np.abs(x - self.here) - np.abs(x - self.there)).sum() / self.scale)
