"""Weights of the classifiers of Frank-Wolfe's steps: post-processing of their noisy counts.

classic     the new one gets g = 2 / (t + 2), the others keep their proportions
corrected   the weights that minimise the smooth goal over all mixtures so far (fully corrective Frank-Wolfe), by
accelerated projected gradient descent on the simplex; no other weights give a smaller goal
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from stratsynth.adapters.reductions.smoothing import onto_simplex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.reductions.goals import Goal

    Floats = NDArray[np.float64]

Mixing = Literal["corrected", "classic"]
ROUNDS = 400
"""Largest number of steps of the descent on weights."""
SHORTEST = 1e-15
"""Smallest step length: if it does not help, none does."""
ENOUGH, PATIENCE = 1e-9, 5
"""Gain below which a step is small, and number of small steps in a row that ends the descent."""


def mixed(mixing: Mixing, goal: Goal, tables: Floats, weights: Floats) -> Floats:
    """Return an array of the weights of all classifiers in the mixture, the last of which is new; they add up to 1.

    Args:
        mixing: The rule, `corrected` or `classic`.
        goal: The function that is minimised.
        tables: Noisy counts, one row a classifier.
        weights: The weights before, one fewer.
    """
    # the classic step of Frank and Wolfe, 2 / (t + 1) in round t
    step = 2 / (len(tables) + 1)
    classic = np.append(weights * (1 - step), step)
    return classic if mixing == "classic" or not len(weights) else _corrected(goal, tables, np.append(weights, 0.0))


def _corrected(goal: Goal, tables: Floats, start: Floats) -> Floats:
    """Return an array of classifiers' weights with a smaller smooth goal than `start`, found by FISTA; never a larger.

    `start` is an array of weights too; `tables` is an array of noisy counts, a row a classifier.
    """
    here = ahead = start
    value, length, momentum, small = goal.smooth(start @ tables), 1.0, 1.0, 0
    for _ in range(ROUNDS):
        # FISTA: gradient at the extrapolated weights
        at, slope = goal.smooth(ahead @ tables), tables @ goal.gradient(ahead @ tables)
        new, found = start, np.inf
        # backtracking: the step is halved until the quadratic upper bound holds
        while length > SHORTEST:
            new = onto_simplex(ahead - length * slope)
            moved, found = new - ahead, goal.smooth(new @ tables)
            if found <= at + float(slope @ moved) + float(moved @ moved) / (2 * length):
                break
            length /= 2
        if found >= value:
            if momentum == 1.0:  # a plain step does not help either
                break
            # restart: the extrapolation overshot
            momentum, ahead = 1.0, here
            continue
        small = small + 1 if value - found < ENOUGH else 0
        after = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = new + (momentum - 1) / after * (new - here)
        # the step may grow again, as the curvature differs along the way
        here, value, momentum, length = new, found, after, 1.5 * length
        if small == PATIENCE:
            break
    return here
