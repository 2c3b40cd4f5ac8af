"""Budgets of any epsilon, for data declared public: there the noise is an experiment, and no guarantee is claimed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from stratsynth.accounting.budget import MOST_EPSILON, Budget, Neighbours
from stratsynth.checks import is_number
from stratsynth.errors import UsageError

MOST_PUBLIC_EPSILON = 1e6
"""Largest epsilon on data declared public, which infinity stands for: noise in counts of it rounds to 0."""


@dataclass(frozen=True)
class PublicBudget(Budget):
    """A budget for data declared public, of any epsilon, `math.inf` for as little noise as there can be.

    A fit of other data refuses it above the epsilon of a `Budget`. Releases of it are stamped NOT PRIVATE, as all of
    public data are.
    """

    most: ClassVar[float] = MOST_PUBLIC_EPSILON
    beyond: ClassVar[str] = " or infinite"

    def __post_init__(self) -> None:
        """Take the largest epsilon for an infinite one; UsageError as for `Budget`, but not for a larger epsilon."""
        if isinstance(self.epsilon, float) and self.epsilon == math.inf:
            object.__setattr__(self, "epsilon", MOST_PUBLIC_EPSILON)
        super().__post_init__()


def budget_of(
    epsilon: float,
    delta: float,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    *,
    first: float | None = None,
    public: bool = False,
    accounting: str = "zcdp",
) -> Budget:
    """Return a `Budget` of epsilon, `delta`, `neighbours`; a larger epsilon gives a `PublicBudget` if `public` is True.

    `first` is the share that a first question costs, None for the default, `accounting` "zcdp" or "exact"; UsageError
    for such an epsilon otherwise.
    """
    large = (is_number(epsilon) or (isinstance(epsilon, float) and epsilon == math.inf)) and epsilon > MOST_EPSILON
    if large and not public:
        check_private_epsilon(epsilon)
    return (PublicBudget if large else Budget)(epsilon, delta, neighbours, first=first, accounting=accounting)


def check_private_epsilon(epsilon: float) -> None:
    """Refuse (UsageError), with reason and remedy, an epsilon above that of a `Budget`."""
    if epsilon > MOST_EPSILON:
        raise UsageError(
            f"budget: epsilon {epsilon:g} is above {MOST_EPSILON:g}, where a guarantee promises nothing: the odds of "
            f"any conclusion about a person may grow by a factor of 10^{MOST_EPSILON / math.log(10):.0f} and more. It "
            "is for data declared public alone: public = true in [data]; in Python public=True and PublicBudget(...)."
        )
