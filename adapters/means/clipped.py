"""The clipped mean with Laplace noise, for pure epsilon (Rosenblatt, Stoyanovich and Musco 2024).

Equations are the paper's, (1) to (3), corrected. Values are clipped to the interval in which nearly all would lie if
they were normal, with a mean at most R from a public centre and a public deviation s,

    [centre - B, centre + B],   B = R + s w(n),

their sum gets Laplace noise of scale B / epsilon (2 B where a record is exchanged), and is divided by the number of
values. Stratified, each group gets the whole epsilon, and the mean of all is the weighted mean.

The printed clip interval [R - w, R + w] is not symmetric, and values outside it are not brought to its nearest end; the
printed w = sqrt(log n / gamma) means sqrt(log(n / gamma)), and even that is too narrow for n normal values to lie
within it with probability 1 - gamma: sqrt(2 log(2 n / gamma)) is wide enough, and the default here. Sensitivity is that
of a sum: the printed 2 B / n assumes that n is public and a record exchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from stratsynth import papers
from stratsynth.adapters.means.scales import ColumnScale
from stratsynth.adapters.means.sums import (
    MeanCount,
    Payment,
    Settings,
    budgets,
    figures,
    merged,
    sizes_of,
    spreads,
)
from stratsynth.models import Estimate, Figures, Returns
from stratsynth.questions import Columns, Program, Question, Total
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.mechanisms import Public

Tail = Literal["gaussian", "paper"]


def half_width(n: float, gamma: float, tail: Tail = "gaussian") -> float:
    """Return w, in standard deviations: `n` values all lie within w of their mean with probability 1 - gamma.

    `tail` is "paper", sqrt(log(n / gamma)), or the Gaussian bound.
    """
    if tail == "paper":
        return math.sqrt(math.log(n / gamma))
    return math.sqrt(2 * math.log(2 * n / gamma))


@dataclass(frozen=True, kw_only=True)
class ClippedMean(Settings):
    """Clipped mean of one column after another, each with an equal part of epsilon."""

    name: ClassVar[str] = "clipped_mean"
    paper: ClassVar = papers.STRATIFICATION
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Total})
    returns: ClassVar[Returns] = Returns.ESTIMATES
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    gamma: float = at(0.01, above=0, below=1)
    """The chance that some value is clipped, were the column normal."""
    tail: Tail = at("gaussian")
    """The half width w: `gaussian`, sqrt(2 log(2 n / gamma)); or `paper`, sqrt(log(n / gamma)), which is narrower."""

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the `Allotment` of the whole budget as pure epsilon per row, without delta.

        UsageError or Unsupported for public columns that `scales` refuses.
        """
        self.scales(public)
        return budget.pure()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Estimate]:
        """Program on public facts, for the allotment: asks counts, sums, squares by column; `rng` is not used.

        Returns an Estimate of all means.
        """
        columns = self.scales(public)
        counts, means, squares = budgets(self, Payment(allot.amount, pure=True))
        sizes = yield from sizes_of(self, public, [(column,) for column in columns], counts)
        found, each = [], [1.0] * len(columns)
        for column, size, pay, extra in zip(columns, sizes, means.parts(each), squares.parts(each), strict=True):
            found.append((yield from self._column(column, size, pay, extra, public.schema.max_multiplicity)))
        names = [column.name for column in columns]
        return merged(public.schema, names, found, pure=True, bounds=self.variance == "bounded")

    def clip(self, column: ColumnScale, n: float) -> float:
        """Return the clip for `n` records, a distance from the centre of a `ColumnScale` in the column's unit.

        At most that of the bounds.
        """
        # the true mean is within the radius of the centre, and values within the half width of it
        wide = column.radius + column.unit * half_width(max(n, 2.0), self.gamma, self.tail)
        return min(wide, column.reach(column.centre))

    def _column(
        self, column: ColumnScale, size: MeanCount, pay: Payment, extra: Payment, rows: int
    ) -> Program[Figures]:
        """Program that returns Figures of the mean of a `ColumnScale`'s column over a `MeanCount` of records.

        One `Payment`, `pay`, is for the sum, the other, `extra`, for squares. `rows` is the largest number of rows of
        one person.
        """
        # equation (2): the clipped values' sum with Laplace noise, divided by their number
        clip = self.clip(column, size.value)
        query = Columns((column.name,), (column.centre,), (clip,), 1.0, "l1")
        answer = yield from pay.ask(query)
        mean = np.array([column.centre + answer.values[0] * clip / size.value])
        spread = None
        if self.variance == "bought":
            # squares around the mean just estimated need a narrower clip than the mean did around the guess
            middle = column.within(float(mean[0]))
            narrow = min(column.unit * half_width(max(size.value, 2.0), self.gamma, self.tail), column.reach(middle))
            around = Columns(query.columns, (middle,), (narrow,), 1.0, "l1")
            spread = yield from spreads((column,), mean, around, 1.0, size, extra)
        return figures((column,), mean, query, answer.sigma, size, spread, pure=True, rows=rows)
