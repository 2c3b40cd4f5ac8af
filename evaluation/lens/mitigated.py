"""INTERNAL. The mitigation gamma2 in a simulated training, of networks too, which `fair_sgd` does not fit.

As in `fair_sgd`, row i of group a minimises  l_i + gamma2 w_a h_i,  h = 1 - sum f^2,  with weights from noisy sums of
earlier steps: w_a = s_a n / n_a - sum_b s_b, s_a being the sign of T_a - T, rounded off where that is within its noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray
    from stratsynth.evaluation.lens.losses import Loss
    from stratsynth.evaluation.lens.people import People
    from stratsynth.evaluation.lens.training import Training

    Floats = NDArray[np.float64]

SHARE = 0.2
"""The part of a step's price for statistics; counts and distances from the boundary have a half of it each."""
MEMORY, MOST = 0.95, 5.0
"""How much of the statistics so far is kept, and the most weight: the defaults of `fair_sgd`."""


def descend_mitigated(
    loss: Loss, people: People, start: Floats, clip: float, multiplier: float, gammas: Floats, training: Training,
    rng: Generator,
) -> Floats:  # fmt: skip
    """The models at the end: one column for each of `gammas`; where all are 0 nothing is spent on statistics."""
    theta, models, groups = np.repeat(start[:, None], len(gammas), axis=1), len(gammas), len(people.labels)
    asked = gammas > 0
    spread = clip * multiplier / np.sqrt(np.where(asked, 1 - SHARE, 1.0))
    sigma = multiplier / np.sqrt(SHARE / 2)
    counts, sums = np.zeros((groups, models)), np.zeros((groups, models))
    noise, kept = 0.0, 0.0
    for _ in range(training.steps):
        chosen = np.flatnonzero(rng.random(people.size) < training.batch / people.size)
        x, y, group = people.x[chosen], people.y[chosen], people.group[chosen]
        slopes = None
        if kept:
            slopes = (gammas * _weights(counts / kept, sums / kept, np.sqrt(noise) / kept))[group]
        pull = loss.pull(x, y, theta, np.full(models, clip), slopes)
        pull += spread * rng.normal(size=theta.shape)
        here = np.eye(groups)[group].T
        told = here.sum(axis=1, keepdims=True) + sigma * rng.normal(size=(groups, models))
        near = here @ loss.boundary(x, theta) + sigma / 2 * rng.normal(size=(groups, models))  # h is at most a half
        counts, sums = (MEMORY * a + (1 - MEMORY) * b for a, b in ((counts, told), (sums, near)))
        noise, kept = MEMORY**2 * noise + ((1 - MEMORY) * sigma / 2) ** 2, MEMORY * kept + 1 - MEMORY
        theta -= training.rate / training.batch * pull
    return theta


def _weights(counts: Floats, sums: Floats, noise: float) -> Floats:
    """w_a: one line a group, one column a model."""
    sizes = np.maximum(counts, np.maximum(1.0, 2 * noise))
    apart = sums / sizes - sums.sum(axis=0) / sizes.sum(axis=0)
    signs = np.clip(apart / np.maximum(noise / sizes, 1e-300), -1, 1)
    found: Floats = np.clip(signs * sizes.sum(axis=0) / sizes - signs.sum(axis=0), -MOST, MOST)
    return found
