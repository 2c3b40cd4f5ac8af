"""Stage 2 for a network of one hidden layer: its questions, its first weights, rate and clip.

All weights are one vector: the hidden layer's, unit after unit, then the output layer's. Rate and clip come from public
numbers alone. The inputs of the output layer are H hidden units between -1 and 1 and a constant, of norm at most sqrt(H
+ 1): by its weights the mean log loss has a curvature of at most (H + 1) / 4. The rate is twice one over that, where
descent on a quadratic function is just stable without momentum; the clip is the gradient's norm for a residual of a
half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.predictors.descent import Descent, rounded
from stratsynth.adapters.predictors.network import Network
from stratsynth.questions import NetworkGradients, NetworkLosses
from stratsynth.questions.sums.base import check_query
from stratsynth.questions.sums.networks import outputs

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.adapters.predictors.tailored import Tailored
    from stratsynth.adapters.predictors.task import PredictorProblem
    from stratsynth.questions import Coded

    Floats = NDArray[np.float64]

RATE = 8.0
"""Learning rate times H + 1."""
RESIDUAL = 0.5
"""Residual whose gradient by the output weights is within the clip, whatever the hidden units are."""


@dataclass(frozen=True, eq=False)
class NetworkProblem:
    """Task of a network's stage 2 in `group_regression`, made of schema, settings and declared sizes only."""

    task: PredictorProblem
    """Groups, design and objective, with the network's own rate and clip."""

    @classmethod
    def of(cls, task: PredictorProblem) -> NetworkProblem:
        """Return the `NetworkProblem` made from a regression's `PredictorProblem`, with another rate and clip.

        MechanismError or Unsupported where a question would refuse its gradients.
        """
        s = task.settings
        bounded = 1 + s.multiplier if s.loss_bounds else 1.0
        rate = s.rate or RATE / ((s.hidden + 1) * bounded)
        network = cls(replace(task, rate=rate, clip=s.clip or RESIDUAL * math.sqrt(s.hidden + 1)))
        check_query(s.name, network.gradients(network.start(np.random.default_rng(0))), task.schema)
        return network

    @property
    def units(self) -> int:
        """Number of hidden units of the network, H."""
        return self.task.settings.hidden

    @property
    def outputs(self) -> int:
        """Number of logits of the network: 1 for a target of two levels, else one a level."""
        return outputs(self.task.schema.size(self.task.target))

    def start(self, rng: Generator) -> Floats:
        """Return the first weights, a vector: output ones 0, hidden ones normal by `rng`, sd 1 / features' norm."""
        hidden = rng.normal(0, 1 / self.task.norm, (self.units, len(self.task.names)))
        return np.concatenate([hidden.ravel(), np.zeros((self.units + 1) * self.outputs)])

    def descent(self, start: Floats) -> Descent:
        """Return a `Descent` from the vector of all weights `start`, with the settings' number of steps."""
        return self.task.descent(start)

    def layers(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return matrices of the flat array `theta`, all weights: hidden (units x features), output (+ 1 x logits)."""
        cut = self.units * len(self.task.names)
        return theta[:cut].reshape(self.units, -1), theta[cut:].reshape(-1, self.outputs)

    def _asked(self, theta: Floats, group: int | None) -> tuple[Coded, Floats, Floats]:
        """Return (`Coded` design, hidden weights, output weights) of a question at the flat array `theta`.

        The weights are rounded arrays. All are those of everybody (None) or of the group of this number.
        """
        hidden, output = self.layers(rounded(theta))
        if group is None or not self.task.groups:
            return self.task.design, hidden, output
        here = self.task.local[group]  # inside a group its level is a part of each unit's intercept
        return here.design, rounded(hidden @ here.share.T), output

    def gradients(
        self, theta: Floats, group: int | None = None, by: tuple[str, ...] = (), parts: Floats | None = None
    ) -> NetworkGradients:
        """Return the question `NetworkGradients` for a sum of clipped gradients at `theta`, a flat array of weights.

        It is of the group of number `group`, or of all for None. A row's gradient is multiplied by the entry of
        `parts`, an array over the cells of the columns `by`, for its cell; None multiplies by 1.
        """
        return NetworkGradients(*self._query(theta, group), self.task.clip, by, parts)

    def losses(self, theta: Floats, group: int | None = None) -> NetworkLosses:
        """Return the question `NetworkLosses` for a sum of clipped log losses at `theta`, a flat array of weights.

        It is of the group of number `group`, or of all for None.
        """
        return NetworkLosses(*self._query(theta, group), self.task.settings.loss_clip)

    def _query(self, theta: Floats, group: int | None) -> tuple[Coded, str, Floats, Floats]:
        design, hidden, output = self._asked(theta, group)
        return design, self.task.target, hidden, output

    def widened(self, gradient: Floats, group: int) -> Floats:
        """Return the array `gradient` of a group, by number, over everybody's weights: 0 for those its design lacks."""
        if not self.task.groups:
            return gradient
        share = self.task.local[group].share
        cut = self.units * len(share)
        return np.concatenate([(gradient[:cut].reshape(self.units, -1) @ share).ravel(), gradient[cut:]])

    def model(self, theta: Floats, tailored: Tailored, noise: float) -> Network:
        """Return the `Network` with the flat weights `theta`; facts are the budgets `tailored` and a step's `noise`."""
        described = self.task.described(tailored) | {
            "Model": f"network of {self.units} hidden units for {self.task.target}, on {len(self.task.names)} features",
            "Clip": f"{self.task.clip:.3g}, of the gradient by all {len(theta):,} weights",
        }
        facts = {**self.task.facts(tailored, noise), "described": described}
        return Network(self.task.schema, self.task.design, self.task.target, *self.layers(theta), facts)
