"""Adam (Kingma and Ba 2015), with a step size that falls along a cosine."""

from __future__ import annotations

import math

import numpy as np

from stratsynth.adapters.gem.layout import Reals

MEAN, SQUARE, TINY = 0.9, 0.999, 1e-8
LEAST = 0.01
"""Last step's size, as a fraction of the first's."""


class Adam:
    """Optimiser state: running means of the gradient and its square, and the number of steps taken."""

    def __init__(self, point: Reals, rate: float, steps: int) -> None:
        self._mean, self._square = np.zeros_like(point), np.zeros_like(point)
        self._rate, self._steps, self._taken = rate, steps, 0

    def step(self, point: Reals, slope: Reals) -> None:
        """Move the parameters `point`, a flat array, in place by one step against the gradient `slope`, also flat."""
        # the rate falls from its setting to LEAST of it along half a cosine
        share = 0.5 * (1 + math.cos(math.pi * self._taken / self._steps))
        self._taken += 1
        rate = self._rate * (LEAST + (1 - LEAST) * share)
        # in place: these arrays are as large as the generator
        self._mean *= MEAN
        self._mean += (1 - MEAN) * slope
        self._square *= SQUARE
        self._square += (1 - SQUARE) * np.square(slope)
        root = np.sqrt(self._square)
        # bias corrections of the running means
        root *= 1 / math.sqrt(1 - SQUARE**self._taken)
        root += TINY
        point -= (rate / (1 - MEAN**self._taken)) * self._mean / root
