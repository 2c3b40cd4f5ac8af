"""Rounds of choosing and measuring, as in AIM: each measures the table that the model gets most wrong.

A round costs a fixed price until one teaches less than its noise; from then on noise is half as large and a round four
times as expensive. The last round takes what is left, so the budget is used up to the last bit. The number of rounds
depends on noisy answers and public sizes alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.engine import MeasuredTable
from stratsynth.adapters.shared.left_out import LEFT_OUT
from stratsynth.adapters.shared.workload import cells_of
from stratsynth.questions import Clique, Distance, Program, choose, counts, work
from stratsynth.questions.counts import table_sigma

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Neighbours
    from stratsynth.adapters.shared.learner import Learner
    from stratsynth.schema import Schema

MEASURE = 0.9
"""Share of a round's budget that measures; the rest chooses."""
PER_ROUND = 29
"""rounds = sqrt(columns x people x sqrt(rho) / PER_ROUND): 48 rounds for 20 columns, 27 thousand people and epsilon 1
at delta 1e-9."""
USUAL = 0.7
"""Fraction of these rounds that a fit usually gets to, because later ones are more expensive."""
NOISE_SIZE = math.sqrt(2 / math.pi)
"""Mean absolute value of Gaussian noise, in units of sigma."""


def usual_rounds(columns: int, people: float, rho: float) -> int:
    """Return the number of rounds, 1 to 16 x `columns`, that `rho` is divided into for so many people."""
    return max(1, min(16 * columns, math.ceil(math.sqrt(columns * people * math.sqrt(rho) / PER_ROUND))))


def worth_measuring(
    cliques: Mapping[Clique, float], cells: Mapping[Clique, int], sigma: float, people: float
) -> dict[Clique, float]:
    """Return {clique: weight} of those in `cliques` whose noise, of scale `sigma` a cell, is at most `people`.

    `cliques` is such a mapping, `cells` maps cliques to numbers of cells.
    """
    return {c: weight for c, weight in cliques.items() if NOISE_SIZE * sigma * cells[c] <= people}


def adapt(
    learner: Learner[Any],
    worth: Mapping[Clique, float],
    *,
    people: float,
    rho: Fraction,
    rounds: int,
    neighbours: Neighbours,
) -> Program[Fraction]:
    """Program of rounds for `rho`, priced for these neighbours; returns the rho left as a `Fraction`.

    It is above 0 if candidates ran out. `worth` maps cliques to weights; cliques whose noise exceeds `people` are no
    candidates. Tables go to `learner`; `rounds` is the number that the first price is made for.
    """
    schema, left, price = learner.schema, rho, float(rho) / rounds
    cells = cells_of(schema, tuple(worth))
    while True:
        # AIM, Algorithm 4: a remainder too small for two more rounds is spent in this one
        last = left < 2 * Fraction(price)
        price = down(left) if last else price
        sigma = table_sigma(MEASURE * price, schema, neighbours)
        candidates = learner.fitting(worth_measuring(worth, cells, sigma, people))
        if not candidates:
            return left
        # Algorithm 2, selection: the model's L1 error on a candidate, less the expected noise of measuring it
        total = learner.total
        scores = [
            Distance(clique, np.asarray(table * total, np.float64), weight, NOISE_SIZE * sigma * table.size)
            for (clique, weight), table in zip(candidates.items(), learner.marginals(list(candidates)), strict=True)
        ]
        choosing = price - MEASURE * price  # alpha is 0.9 in the paper too
        before = scores[(yield from choose(scores, rho=choosing))]
        del scores, candidates  # all strata wait for their answers at once, and would keep these arrays in memory
        left -= Fraction(choosing)
        measuring = down(left) if last else MEASURE * price
        (table,) = yield from counts([before.clique], rho=measuring)
        left -= Fraction(measuring)
        learner.tables.append(MeasuredTable.of(table))  # Algorithm 2: measurement and estimation
        if last:
            return Fraction(0)
        yield from learner.fit()
        # Algorithm 4, annealing: sigma is halved after a round that moved the model by no more than its noise
        (after,) = learner.marginals([table.clique])
        if np.abs(after * total - before.reference).sum() <= NOISE_SIZE * table.sigma * table.values.size:
            price *= 4


def usual_questions(
    schema: Schema, starters: Mapping[Clique, float], *, rho: Fraction, rounds: int, rng: Generator
) -> Program[None]:
    """Program that asks as `adapt` would for `rho` in so many `rounds`, cliques of a schema, by `rng`; no result.

    It is for plans; `starters` maps cliques, the candidates, to weights.
    """
    scores = [Distance(clique, np.zeros(schema.shape(clique)), weight) for clique, weight in starters.items()]
    left, asked = rho, scores
    for after in range(max(1, round(USUAL * rounds)) - 1 if scores else -1, -1, -1):
        price = down(left / (after + 1))
        yield from choose(asked, rho=price - MEASURE * price)
        asked = [max(scores, key=lambda score: score.weight)]  # the price of a choice is the same for one candidate
        yield from counts([scores[int(rng.integers(len(scores)))].clique], rho=MEASURE * price)
        left -= Fraction(price)
        yield from work(LEFT_OUT, None)


def down(amount: Fraction) -> float:
    """Return the largest float that is not above the fraction `amount`, so that parts never exceed a whole."""
    near = float(amount)
    return near if Fraction(near) <= amount else math.nextafter(near, 0.0)
