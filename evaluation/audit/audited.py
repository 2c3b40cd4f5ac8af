"""The real driver on rows made for an audit, asked the same questions many times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stratsynth.accounting.account import FitAccount
from stratsynth.accounting.budget import IN_RHO, Allotment, Budget, Currency, Neighbours
from stratsynth.accounting.standing import Standing
from stratsynth.driver.lockstep import AnswerSource
from stratsynth.driver.private import PrivateAnswers
from stratsynth.evaluation.audit.broken import Breakage, NotPrivate
from stratsynth.noise import SystemEntropy

if TYPE_CHECKING:
    from fractions import Fraction

    from stratsynth.driver.lockstep import Asked
    from stratsynth.questions import Answer
    from stratsynth.questions.reading import Rows

PLENTY = 1e15
"""Allotment, in any currency, that no audit exhausts: the account records charges and must not refuse."""
BATCH = 2000
"""Number of answers held at a time."""


def unlimited_allotment(
    currency: Currency = Currency.ZCDP,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    *,
    noise: float | None = None,
    rate: float | None = None,
) -> Allotment:
    """Allotment of 1e15 in the currency, under this notion of neighbour; no audit exceeds it.

    `noise`, a noise multiplier, and `rate`, of the samples, are for the currency `sampled` alone.
    """
    promise = Budget(1, 1e-6, neighbours, accounting=currency if currency in IN_RHO else "zcdp")
    return Allotment(currency, PLENTY, promise, noise, rate)


class AuditedAnswers(AnswerSource):
    """`PrivateAnswers` over some rows, with the system's entropy and an account; or a broken driver."""

    def __init__(self, rows: Rows, breakage: Breakage | None = None, allot: Allotment | None = None) -> None:
        """Open an account for `allot` (None: unlimited zCDP); make the rows' driver, with a `breakage` or none."""
        allot = allot or unlimited_allotment()
        self._account = FitAccount(allot.promise, allot, Standing(None, None, 1.0, 1), seed=0)
        parts = (lambda: rows), self._account, SystemEntropy()
        self._answers = PrivateAnswers(*parts) if breakage is None else NotPrivate(*parts, breakage)

    @property
    def exact(self) -> bool:
        """True if the fit spends in the currency `exact`."""
        return self._answers.exact

    def __call__(self, asked: Sequence[Asked]) -> list[Answer]:
        """Return the list of noisy answers, one to each question `asked`, as in a fit: charge, read, add noise."""
        return self._answers(asked)

    def again(self, asked: Sequence[Asked], times: int) -> Iterator[list[Answer]]:
        """Yield `times` lists, each with one freshly noised answer to every question of `asked`, after one charge.

        Only the answering step is repeated: charging takes longer than the noise. Each question is repeated by itself,
        as what is remembered of one pair of tables is of the reference that was compared last.
        """
        self._answers(asked)
        answer = self._answers._answer  # noqa: SLF001 - an audit looks at what a release must not repeat
        for start in range(0, times, BATCH):
            number = min(BATCH, times - start)
            yield from map(list, zip(*(answer([one] * number) for one in asked), strict=True))

    def charged(self, step: str = "add-remove") -> Fraction:
        """Amount charged so far, a Fraction in the currency, as priced for the notion of neighbour named `step`.

        The names are "add-remove", "move" and "replace".
        """
        return self._account.spending.step(step)
