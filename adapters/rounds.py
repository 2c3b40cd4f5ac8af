"""Rounds of choosing and measuring, as in AIM: what is measured next is what the model gets most wrong.

A round costs a fixed price until one teaches less than its noise; from then on noise is half as large and a
round four times as dear. The last round takes what is left, so the budget is used up to the last bit. Nothing
but noisy answers and public sizes decides how many rounds there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from stratsynth.adapters.refits import Refits

from stratsynth.questions import Clique, Counts, Distance, Program, choose, counts

if TYPE_CHECKING:
    from stratsynth.accounting.budget import Neighbours

MEASURE = 0.9
"""The share of a round that measures; the rest chooses."""
PER_ROUND = 29
"""How many columns x people x sqrt(rho) make one round, the square of the rounds being in proportion: 48 rounds for
20 columns, 27 thousand people and epsilon 1."""
USUAL = 0.7
"""The share of these rounds that a fit usually gets to, because later ones are dearer."""
NOISE_SIZE = math.sqrt(2 / math.pi)
"""The mean absolute value of Gaussian noise, in units of sigma."""


def usual_rounds(columns: int, people: float, rho: float) -> int:
    """Into how many rounds a budget is divided: the more there is to learn, the more."""
    return max(1, min(16 * columns, math.ceil(math.sqrt(columns * people * math.sqrt(rho) / PER_ROUND))))


def sigma_of(rho: float, neighbours: Neighbours, clique: Clique) -> float:
    """The noise of one measured clique."""
    return Counts((clique,), rho).sigmas(neighbours)[0]


def affordable(
    cliques: Mapping[Clique, float], cells: Mapping[Clique, int], sigma: float, people: float
) -> dict[Clique, float]:
    """Those whose expected noise, over all cells, is smaller than the number of people: the others teach nothing."""
    return {c: weight for c, weight in cliques.items() if NOISE_SIZE * sigma * cells[c] <= people}


def adapt(
    refits: Refits, worth: Mapping[Clique, float], *, people: float, rho: Fraction, rounds: int, neighbours: Neighbours
) -> Program[Fraction]:
    """Spend `rho` on rounds. `worth` says how much each candidate matters; `people` is a size, public if possible.

    Returns what is left when there is no candidate any more.
    """
    schema, left, price = refits.schema, rho, float(rho) / rounds
    cells = {clique: schema.cells(clique) for clique in worth}
    one = schema.names[:1]
    while True:
        last = left < 2 * Fraction(price)
        price = down(left) if last else price
        sigma = sigma_of(MEASURE * price, neighbours, one)
        candidates = refits.fitting(affordable(worth, cells, sigma, people))
        if not candidates:
            return left
        total = refits.total
        before = refits.model.marginals(list(candidates))
        scores = [
            Distance(clique, table * total, weight, NOISE_SIZE * sigma * table.size)
            for (clique, weight), table in zip(candidates.items(), before, strict=True)
        ]
        choosing = price - MEASURE * price
        chosen = yield from choose(scores, rho=choosing)
        left -= Fraction(choosing)
        measuring = down(left) if last else MEASURE * price
        (table,) = yield from counts([scores[chosen].clique], rho=measuring)
        left -= Fraction(measuring)
        refits.tables.append(table)
        if last:
            return Fraction(0)
        yield from refits.fit()
        after = refits.model.marginal(table.clique)
        if total * np.abs(after - before[chosen]).sum() <= NOISE_SIZE * table.sigma * table.values.size:
            price *= 4


def pretended(problems: Sequence[object]) -> list[None]:
    """Stands for a fit in a plan, which counts fits and needs none of their results."""
    return [None for _ in problems]


def down(amount: Fraction) -> float:
    """The largest float that is not above an amount."""
    near = float(amount)
    return near if Fraction(near) <= amount else math.nextafter(near, 0.0)
