"""Task of a fair network: its model is a network by PyTorch, and its questions are that network's gradients.

Weights start at random (by the fit's seed, no row), since a network at 0 has no gradient in its hidden layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.adapters.fermi.task import FermiProblem
from stratsynth.adapters.networks import Blueprint, Module, per_row
from stratsynth.adapters.networks.blueprint import weights_of
from stratsynth.errors import Unsupported
from stratsynth.questions import PerRow, PerRowGradients

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.adapters.predictors.designed import Designed

    Floats = NDArray[np.float64]

RATE = 2.0
"""Default learning rate. A clipped gradient has a length of at most the clip, which is 1 by default."""


@dataclass(frozen=True, eq=False)
class FermiNetworkProblem(FermiProblem):
    """Task of one `fermi` fit of a network, made of schema, settings and declared sizes only."""

    blueprint: Blueprint
    per_row: PerRow

    @property
    def title(self) -> str:
        """Text for readers: the network, target, numbers of features and weights."""
        weights = f"{self.per_row.weights:,} weights"
        return f"{self.blueprint.named}, of {self.target} on {self.blueprint.features} features, {weights}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameters, a tuple of one number: all weights are one vector."""
        return (self.per_row.weights,)

    def start(self, models: int, rng: Generator) -> Floats:
        """Return random first weights of several models, an array models x weights; `rng` draws their seeds."""
        seeds = rng.integers(2**31, size=models)
        return np.array([weights_of(self.blueprint.build(self.settings.name, int(seed))) for seed in seeds], np.float64)

    def query(self, theta: Floats, slopes: Floats | None) -> PerRowGradients:
        """Return the question `PerRowGradients` of a step at `theta`, an array of weights whose first axis is 1.

        With the penalty's array `slopes`, by model and cell, it asks its gradient and sums too; None leaves them out.
        Unsupported for several models.
        """
        by = () if slopes is None else self.by
        return self._asked(theta, by, None if slopes is None else slopes[0])

    def counting(self, theta: Floats) -> PerRowGradients:
        """Return the question `PerRowGradients` for one model's loss gradient and, by cell, sums that count records.

        `theta` is the array of weights, whose first axis is 1.
        """
        by = self.by if self.settings.penalty else (self.target,)
        return self._asked(theta, by, np.zeros((*self.schema.shape(by), self.classes)))

    def _asked(self, theta: Floats, by: tuple[str, ...], slopes: Floats | None) -> PerRowGradients:
        if len(theta) != 1:
            raise Unsupported(f"{self.settings.name}: networks learn one penalty at a time.")
        return PerRowGradients(self.design, self.target, self.per_row, theta[0], by, slopes)

    def model(self, theta: Floats, facts: Mapping[str, Any]) -> Designed:
        """Return the `Designed` model, a Module with the weights `theta`, one vector, and these facts, by name."""
        return Module(self.schema, self.design, self.target, self.blueprint, theta, facts)


def network_task(task: FermiProblem) -> FermiNetworkProblem:
    """Return the `FermiNetworkProblem` of a `FermiProblem`, with its network.

    Unsupported: no features, another number of pixels, layers that couple rows.
    """
    settings, who = task.settings, task.settings.name
    features = len(task.names) - 1
    assert settings.network is not None  # noqa: S101 - the caller's check
    blueprint = Blueprint(settings.network, tuple(settings.hidden), tuple(settings.image), features, task.classes)
    if settings.image:
        pixels = int(np.prod(settings.image))
        if pixels != features:
            raise Unsupported(
                f"{who}: an image of {' x '.join(map(str, settings.image))} has {pixels} pixels, and there are "
                f"{features} features. Name the pixels' columns as features: numeric, without missing values, and in "
                "the schema's order row by row."
            )
    if features < 1:
        raise Unsupported(f"{who}: a network needs at least one feature.")
    pace = replace(task.descent, rate=settings.rate or RATE)
    values = {name: getattr(task, name) for name in FermiProblem.__dataclass_fields__} | {"descent": pace}
    return FermiNetworkProblem(**values, blueprint=blueprint, per_row=per_row(who, blueprint, pace.clip))
