"""The functions of losses that objectives and constraints are made of, each with its Lipschitz constant.

Each works on a vector z of J numbers, rates or differences of rates, in [0, 1] or [-1, 1]. `Largest` and `Spread` are
convex, the means concave. `stratsynth.questions.composite` bounds what one record moves each of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from stratsynth.questions.composite import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.reductions.smoothing import Smoothing

    Floats = NDArray[np.float64]

LEAST = 1e-9
"""Rates of a harmonic mean are taken to be at least this for its gradient."""


class Function(ABC):
    """A function of J numbers."""

    kind: ClassVar[Kind]
    curved: ClassVar[Literal["convex", "concave"]]
    parameter: float = 0.0

    @abstractmethod
    def value(self, z: Floats) -> float:
        """The function itself."""

    def smooth(self, z: Floats, smoothing: Smoothing) -> float:
        """The smooth stand-in; itself where it needs none."""
        return self.value(z)

    @abstractmethod
    def gradient(self, z: Floats, smoothing: Smoothing) -> Floats:
        """The gradient of its smooth stand-in."""

    @abstractmethod
    def lipschitz(self, size: int) -> float:
        """The most that it moves where z moves by 1 in the L2 norm, J being `size`."""


@dataclass(frozen=True)
class Largest(Function):
    """The largest of the numbers; of one number, that number."""

    kind: ClassVar[Kind] = "largest"
    curved: ClassVar[Literal["convex", "concave"]] = "convex"

    def value(self, z: Floats) -> float:
        """max_j z_j."""
        return float(z.max())

    def smooth(self, z: Floats, smoothing: Smoothing) -> float:
        """The smooth maximum."""
        return smoothing.maximum(z)[0]

    def gradient(self, z: Floats, smoothing: Smoothing) -> Floats:
        """A probability vector."""
        return smoothing.maximum(z)[1]

    def lipschitz(self, size: int) -> float:
        """1: a probability vector is no longer."""
        return 1.0


@dataclass(frozen=True)
class Spread(Function):
    """sum_{i<j} |z_i - z_j| - shift sum_i z_i: at most 0 if and only if the Gini index of z is at most shift / J."""

    kind: ClassVar[Kind] = "spread"
    curved: ClassVar[Literal["convex", "concave"]] = "convex"
    parameter: float = 0.0
    """The shift."""

    def value(self, z: Floats) -> float:
        """As above."""
        return float(np.abs(z[:, None] - z).sum() / 2 - self.parameter * z.sum())

    def smooth(self, z: Floats, smoothing: Smoothing) -> float:
        """With smooth differences."""
        apart = smoothing.absolute((z[:, None] - z)[np.tril_indices(len(z), -1)])[0]
        return float(apart.sum() - self.parameter * z.sum())

    def gradient(self, z: Floats, smoothing: Smoothing) -> Floats:
        """Every difference is smoothed."""
        slopes = smoothing.absolute((z[:, None] - z).ravel())[1].reshape(len(z), len(z))
        found: Floats = slopes.sum(axis=1) - self.parameter
        return found

    def lipschitz(self, size: int) -> float:
        """The slopes are a permutation of 1 - J, 3 - J, ..., J - 1, or lie between such, less the shift."""
        return math.sqrt(size * (size**2 - 1) / 3) + abs(self.parameter) * math.sqrt(size)


@dataclass(frozen=True)
class HarmonicMean(Function):
    """J / sum_j (1 / z_j), for z in [0, 1]."""

    kind: ClassVar[Kind] = "harmonic_mean"
    curved: ClassVar[Literal["convex", "concave"]] = "concave"

    def value(self, z: Floats) -> float:
        """0 where one of them is."""
        cut = np.clip(z, 0, 1)
        return float(len(z) / (1 / cut).sum()) if cut.all() else 0.0

    def gradient(self, z: Floats, smoothing: Smoothing) -> Floats:
        """J u_j^2, with u_j = (1 / z_j) / sum_i (1 / z_i)."""
        inverse = 1 / np.clip(z, LEAST, 1)
        found: Floats = len(z) * (inverse / inverse.sum()) ** 2
        return found

    def lipschitz(self, size: int) -> float:
        """J: the u_j add up to 1, so their fourth powers to at most 1."""
        return float(size)


@dataclass(frozen=True)
class GeometricMean(Function):
    """(prod_j (z_j + floor))^(1/J), for z in [0, 1]: without the floor it would move without bound near 0."""

    kind: ClassVar[Kind] = "geometric_mean"
    curved: ClassVar[Literal["convex", "concave"]] = "concave"
    parameter: float = 0.05
    """The floor."""

    def value(self, z: Floats) -> float:
        """As above."""
        return float(np.prod(np.clip(z, 0, 1) + self.parameter) ** (1 / len(z)))

    def gradient(self, z: Floats, smoothing: Smoothing) -> Floats:
        """The mean over J (z_j + floor)."""
        found: Floats = self.value(z) / len(z) / (np.clip(z, 0, 1) + self.parameter)
        return found

    def lipschitz(self, size: int) -> float:
        """Each slope is at most ((1 + floor) / floor)^((J - 1) / J) / J."""
        s = self.parameter
        return math.sqrt(size) / size * math.pow((1 + s) / s, (size - 1) / size)
