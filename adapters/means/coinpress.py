"""COINPRESS: a mean in a few steps, each clipping closer than the last (Biswas, Dong, Kamath and Ullman 2020).

In units of a public deviation, with the mean within r of a centre c, one step for rho is

    tau = min(sqrt(r^2 + 2 (3 r) + g^2), r + g)     largest distance of values from c; g bounds that from their mean
    y_i = c + (x_i - c) min(1, tau / |x_i - c|)
    c'  = mean(y) + N(0, sd^2 I)                    sd = tau / (n sqrt(2 rho)), twice that where records are exchanged
    r'  = g sqrt(1 / n + sd^2)

and the last c' is the mean. Noise then hardly depends on the width of the first guess. Stratified with exact public
weights this is STRATCOINPRESS, with weights of a disjoint public sample PUB-STRATCOINPRESS (AAAI 2024).

It assumes the identity as covariance: scales must be about right. (The authors' code ran on years of schooling without
any scale; the error it shows is the bias of clipping at under four years.) A step that could not bring r down, as in a
small group, is skipped, and its budget goes to the last one; nothing is clipped further out than the public bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from stratsynth import papers
from stratsynth.accounting.budget import Neighbours
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
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.mechanisms import Public

Tail = Literal["coinpress", "exact"]


def tail_bound(d: int, beta: float, tail: Tail = "coinpress") -> float:
    """Return the norm that `d` standard normal numbers exceed with probability `beta`.

    `tail` is "coinpress", the bound of the paper, or "exact", the quantile. For d = 1 and beta = 0.01 these are 3.808
    and 2.576. The bound is sqrt(d + 2 sqrt(d log(1/beta)) + 2 log(1/beta)).
    """
    if tail == "exact":
        from scipy.special import chdtri

        return math.sqrt(float(chdtri(d, beta)))
    log = math.log(1 / beta)
    return math.sqrt(d + 2 * math.sqrt(d * log) + 2 * log)


def clip_at(r: float, g: float) -> float:
    """Return the clip, in scales, of the norm of values around a centre that is at most `r` from the mean.

    Tail bound `g`.
    """
    return min(math.sqrt(r**2 + 2 * 3 * r + g**2), r + g)


def noise_of(tau: float, n: float, rho: float, neighbours: Neighbours) -> float:
    """Return the standard deviation of a noisy mean of `n` records, by noise of price `rho` for these neighbours.

    Each record moves the sum by at most `tau`, or 2 `tau` where it is exchanged.
    """
    return (1 if neighbours == Neighbours.ADD_REMOVE else 2) * tau / (n * math.sqrt(2 * rho))


def narrowed(n: float, sd: float, g: float) -> float:
    """Return the new bound on the mean's distance from the centre, in scales, by `n` records, noise of deviation `sd`.

    `g` is the tail bound.
    """
    return g * math.sqrt(1 / n + sd**2)


@dataclass(frozen=True, kw_only=True)
class CoinPress(Settings):
    """COINPRESS for one column after another, each with an equal part of rho; or for all of them together."""

    name: ClassVar[str] = "coinpress"
    paper: ClassVar = papers.COINPRESS
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Total})
    returns: ClassVar[Returns] = Returns.ESTIMATES
    unprotected: ClassVar[tuple[str, ...]] = ()
    adaptive: ClassVar[bool] = True
    """True since noisy counts decide which steps are skipped; the total price does not depend on them."""
    shares: Sequence[float] = at((0.25, 0.75), least=1e-6, most=1e6, length=(1, 20))
    """Relative parts of the means' budget by step; the last step's answer is the mean."""
    beta: float = at(0.01, above=0, below=1)
    """Probability that the norm of a standard normal vector exceeds g, the bound of each step."""
    tail: Tail = at("coinpress")
    """Bound on a normal value's distance from its mean: the paper's, or the exact quantile, which clips closer."""
    joint: bool = at(False)
    """All columns as one vector: less noise than one after another, where most records have all of them.

    Records that lack one of the columns then count for none. Columns that go together strongly have more
    vectors far out than the identity as covariance allows for.
    """

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the `Allotment` of the whole budget as rho per row, zCDP.

        UsageError or Unsupported: public columns without scale.
        """
        self.scales(public)
        return budget.zcdp()

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Estimate]:
        """Program on public facts, for the allotment, not `rng`: counts, narrowed means, squares; returns Estimate."""
        columns = self.scales(public)
        groups = [columns] if self.joint else [(column,) for column in columns]
        counts, means, squares = budgets(self, Payment(allot.rho, pure=False))
        sizes = yield from sizes_of(self, public, groups, counts)
        found, each = [], [1.0] * len(groups)
        for group, size, pay, extra in zip(groups, sizes, means.parts(each), squares.parts(each), strict=True):
            found.append((yield from self._press(group, size, public, pay, extra)))
        names = [column.name for column in columns]
        return merged(public.schema, names, found, pure=False, bounds=self.variance == "bounded")

    def _press(
        self, columns: tuple[ColumnScale, ...], size: MeanCount, public: Public, pay: Payment, extra: Payment
    ) -> Program[Figures]:
        """Program that narrows the joint means of columns, `ColumnScale`s, over a `MeanCount`; returns their Figures.

        The `Payment` `pay` is for means, `extra` for the squares of which deviations are worked out; `public` has the
        schema's rows per person.
        """
        units = np.array([column.unit for column in columns])
        centre = np.array([column.centre for column in columns])
        r = float(np.linalg.norm([column.radius / column.unit for column in columns]))
        g = tail_bound(len(columns), self.beta, self.tail)
        *early, last = pay.parts(self.shares)
        # Algorithm 2 of the paper: one step of Algorithm 1 for each share, the last of which is the answer
        saved, rows, most = 0.0, public.schema.max_multiplicity, public.schema.row_weight.most
        for step in early:
            # Algorithm 1: widen the ball by the tail of a normal, clip to it, add noise, and work out the new radius
            tau = self._clip(columns, centre, r, g)
            # a person's rows may be equal, so only one of them is sure to add information
            sd = noise_of(most * tau, size.value, step.amount, public.neighbours)
            closer = narrowed(size.value / rows, sd, g)
            # the step would not shrink the ball: its budget goes to the last one
            if closer >= r:
                saved += step.amount
                continue
            answer = yield from step.ask(_clipped_sum(columns, centre, tau))
            centre = np.array(
                [c.within(x) for c, x in zip(columns, centre + answer.values * units / size.value, strict=True)]
            )
            r = closer
        tau = self._clip(columns, centre, r, g)
        query = _clipped_sum(columns, centre, tau)
        answer = yield from Payment(last.amount + saved, pure=False).ask(query)
        means = centre + answer.values * units / size.value
        spread = None
        if self.variance == "bought":
            spread = yield from spreads(columns, means, query, tau, size, extra)
        return figures(columns, means, query, answer.sigma, size, spread, pure=False, rows=rows)

    def _clip(self, columns: tuple[ColumnScale, ...], centre: NDArray[np.float64], r: float, g: float) -> float:
        """Return the clip, in scales, of the norm of values around `centre`, an array, at most `r` from the mean.

        `columns` are `ColumnScale`s; `g` is the tail bound; a wider clip than the columns' bounds is cut.
        """
        far = [column.reach(float(c)) / column.unit for column, c in zip(columns, centre, strict=True)]
        return min(clip_at(r, g), float(np.linalg.norm(far)))


def _clipped_sum(columns: tuple[ColumnScale, ...], centre: NDArray[np.float64], tau: float) -> Columns:
    """Return the question `Columns` for the sum of rows, less `centre`, clipped at norm `tau`.

    `columns` are `ColumnScale`s; `centre` is an array in the columns' own numbers, the rows' distance from it and `tau`
    are in units of scale.
    """
    names = tuple(column.name for column in columns)
    return Columns(names, tuple(map(float, centre)), tuple(column.unit for column in columns), tau)
