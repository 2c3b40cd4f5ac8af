"""Coverage of intervals: fresh people and fresh noise in every run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.mechanisms import make
from studies.means.mixtures import BUDGET, SETTINGS, draw
from studies.means.simulate import simulate
from studies.means.trials import stratified

if TYPE_CHECKING:
    from numpy.random import Generator

SIZES = (3_000, 900, 400)
MEANS = (8.0, 10.5, 13.0)


def coverage(name: str, rng: Generator, runs: int, level: float = 0.95, **more: Any) -> dict[str, float]:
    """The share of intervals that hold the true mean: of everybody's, and of the groups'.

    Three groups of public size and known shares, their values drawn afresh, so that an interval has to allow for
    noise and for sampling. The variance is bought unless `more` says otherwise.
    """
    sizes, means = np.array(SIZES), np.array(MEANS)
    shares = sizes / sizes.sum()
    mechanism = make(name, {**SETTINGS, **more})
    whole, groups = [], []
    for _ in range(runs):
        rows = draw(sizes, means, rng)
        (found,) = simulate(stratified(mechanism, rows, shares), rows, BUDGET, rng, runs=1, declared=int(sizes.sum()))
        lower, upper = found.interval(level)
        whole.append(lower[0] <= shares @ means <= upper[0])
        for part, mean in zip(found.parts.values(), means, strict=True):
            low, high = part.interval(level)
            groups.append(low[0] <= mean <= high[0])
    return {"all": float(np.mean(whole)), "groups": float(np.mean(groups))}
