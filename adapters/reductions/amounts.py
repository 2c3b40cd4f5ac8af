"""Parts of a fit's budget in its currency: rho, or pure epsilon where the budget's delta is 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stratsynth.questions import Composite, Confusions, GroupLosses, NoisySum, Program, choose, total


@dataclass(frozen=True)
class Amount:
    """A part of the budget that one question costs, or several: epsilons add up as rhos do."""

    value: float
    """rho, or epsilon if `pure`."""
    pure: bool = False

    def times(self, share: float) -> Amount:
        """Return an Amount of this value times `share`, a number, in this currency."""
        return replace(self, value=self.value * share)

    def over(self, number: int) -> Amount:
        """Return the Amount of each of `number` equal parts of this one."""
        return replace(self, value=self.value / number)

    def less(self, paid: Amount) -> Amount:
        """Return an Amount: this value less that of another, `paid`."""
        return replace(self, value=self.value - paid.value)

    def sums(self, query: Confusions | GroupLosses) -> Program[tuple[NoisySum, ...]]:
        """Program that asks a query's sums at this price; returns a tuple of `NoisySum`s, one a block.

        The noise is Laplace's if pure.
        """
        if self.pure:
            return (yield from total(query, epsilon=self.value))
        return (yield from total(query, rho=self.value))

    def choice(self, scores: Sequence[Composite]) -> Program[int]:
        """Program that draws one of `scores`, a list of `Composite`, by the exponential mechanism at this price.

        It returns the place in the list, from 0.
        """
        return (yield from choose(scores, epsilon=self.value) if self.pure else choose(scores, rho=self.value))
