"""Forms of a descent's model, as far as public facts decide them: a regression, or a small network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from stratsynth.adapters.predictors.descent import RESIDUAL, largest_norm
from stratsynth.adapters.predictors.network import Network
from stratsynth.adapters.predictors.regression import Regression
from stratsynth.questions.sums.networks import layers, outputs

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.questions import Coded
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

RATE = 4.0
"""Default learning rate of a network, times hidden units + 1: one over the largest curvature of a logistic loss by the
output layer's weights."""


@dataclass(frozen=True, eq=False)
class Straight:
    """Form of a regression, logistic or softmax: logits are linear in the features."""

    schema: Schema
    design: Coded
    target: str
    hidden: ClassVar[int] = 0

    @property
    def link(self) -> Literal["logistic", "softmax"]:
        """Link of the regression: `logistic` for a target of two levels, else `softmax`."""
        return "logistic" if self.schema.size(self.target) == 2 else "softmax"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the coefficients, a tuple: (features,), or (features, classes) for `softmax`."""
        features = len(self.design.names(self.schema))
        return (features,) if self.link == "logistic" else (features, self.schema.size(self.target))

    @property
    def wide(self) -> float:
        """Bound on the L2 norm of every row's gradient: the largest residual times the largest norm of features."""
        return RESIDUAL[self.link] * largest_norm(self.design)

    @property
    def described(self) -> str:
        """Text for readers: link, target and number of features."""
        return f"{self.link} regression of {self.target} on {len(self.design.names(self.schema))} features"

    def start(self, rng: Generator) -> Floats:
        """Return the first coefficients, an array of zeros of the task's shape; `rng` is not used."""
        return np.zeros(self.shape)

    def model(self, theta: Floats, facts: Mapping[str, Any]) -> Regression:
        """Return the released Regression with the array of coefficients `theta` and these facts, by name."""
        return Regression(self.schema, self.design, self.target, self.link, theta, None, facts)


@dataclass(frozen=True, eq=False)
class OneLayer:
    """A network with one hidden layer of tanh units. Its weights are one vector, the hidden layer's first."""

    schema: Schema
    design: Coded
    target: str
    hidden: int
    """Number of hidden units."""
    link: ClassVar[Literal["network"]] = "network"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameters, a tuple of one number: all weights are one vector."""
        last = (self.hidden + 1) * outputs(self.schema.size(self.target))
        return (self.hidden * len(self.design.names(self.schema)) + last,)

    @property
    def wide(self) -> float:
        """Norm of a gradient for the largest residual, if output weights have length 1.

        Larger output weights make longer gradients, which the groups' statistics clip to it.
        """
        residual = RESIDUAL["logistic" if self.schema.size(self.target) == 2 else "softmax"]
        return residual * math.sqrt(self.hidden + 1 + self.design.most_features)

    @property
    def rate(self) -> float:
        """Default learning rate, a float: `RATE` over hidden units + 1."""
        return RATE / (self.hidden + 1)

    @property
    def described(self) -> str:
        """Text for readers: numbers of hidden units and features, and the target."""
        features = len(self.design.names(self.schema))
        return f"network of {self.hidden} hidden units for {self.target}, on {features} features"

    def start(self, rng: Generator) -> Floats:
        """Return the first weights, a vector: output ones 0, hidden ones normal by `rng`, sd 1 / features' norm."""
        features = len(self.design.names(self.schema))
        hidden = rng.normal(0, 1 / largest_norm(self.design), self.hidden * features)
        return np.concatenate([hidden, np.zeros(self.shape[0] - hidden.size)])

    def model(self, theta: Floats, facts: Mapping[str, Any]) -> Network:
        """Return the released Network with the weights `theta`, one vector, and these facts, by name."""
        weights = layers(theta, self.hidden, len(self.design.names(self.schema)))
        return Network(self.schema, self.design, self.target, *weights, facts)
