"""NOT PRIVATE, on purpose: drivers with a known fault, which an audit must catch.

A fault is a function that changes a question after it has been charged for: the ledger records one price, and the rows
are asked for more than that buys. Nothing in the core can reach this module: it is in the evaluation, and a fit makes
its own driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stratsynth.accounting.budget import IN_RHO, Currency
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.private import PrivateAnswers
from stratsynth.questions import Answer, Choose, Columns, Counts, Question, Total
from stratsynth.questions.minimiser import Minimiser

if TYPE_CHECKING:
    from stratsynth.accounting.account import FitAccount
    from stratsynth.noise import Entropy
    from stratsynth.questions.reading import Rows

Breakage = Callable[[Question], Question]
"""Fault: function from the charged question to the one that the rows are asked."""


class NotPrivate(PrivateAnswers):
    """NOT PRIVATE: charges for the question that was asked, and answers another one."""

    def __init__(self, load: Callable[[], Rows], account: FitAccount, entropy: Entropy, breakage: Breakage) -> None:
        """Make a driver of the usual arguments, whose questions are changed by `breakage` after the charge."""
        super().__init__(load, account, entropy)
        self._breakage = breakage

    def _answer(self, asked: Sequence[Asked]) -> list[Answer]:
        """Return the answers to the questions `asked`, each replaced by what the breakage makes of it."""
        broken = {id(a): a for a in asked}  # an audit asks one question thousands of times
        broken = {key: replace(a, question=self._breakage(a.question)) for key, a in broken.items()}
        return super()._answer([broken[id(a)] for a in asked])


@dataclass(frozen=True)
class Quieter:
    """Fault: all noise is `factor` times the declared noise; for a choice, epsilon is divided by `factor`."""

    factor: float

    def __call__(self, question: Question) -> Question:
        """Return a copy of the question at the price of `factor` times its noise; other kinds unchanged."""
        if isinstance(question, Counts | Choose | Minimiser):
            return replace(question, rho=question.rho / self.factor**2)
        if not isinstance(question, Total):
            return question
        power = {**dict.fromkeys(IN_RHO, -2), Currency.PURE: -1, Currency.SAMPLED: 1}[question.currency]
        return replace(question, price=question.price * self.factor**power)


def whole_rho_for_each_table(question: Question) -> Question:
    """Fault: return a copy of a question on k tables at k times its rho, so that each has the noise of one.

    Other kinds of questions are returned unchanged.
    """
    return replace(question, rho=question.rho * len(question.cliques)) if isinstance(question, Counts) else question


def twice_the_clip(question: Question) -> Question:
    """Fault: return a copy of a question for sums, clipping at twice the bound of its noise; other kinds unchanged."""
    if isinstance(question, Total) and isinstance(question.query, Columns):
        query = replace(question.query, clip=2 * question.query.clip)
        return Quieter(0.5)(replace(question, query=query))
    return question


def everybody(question: Question) -> Question:
    """Fault: return a copy of a question for sums of all rows, though a sample is charged; other kinds unchanged."""
    return replace(question, rate=1.0) if isinstance(question, Total) else question
