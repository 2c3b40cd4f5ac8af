"""Functions of losses that objectives and constraints are made of, each with its Lipschitz constant.

Each takes a vector z of J numbers, rates or differences of rates, in [0, 1] or [-1, 1]. `Largest` and `Spread` are
convex, the means concave. `stratsynth.questions.composite` bounds the change of each by one record.
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
"""Lower bound of rates in the gradient of a harmonic mean."""


class Function(ABC):
    """Function of J numbers, given as an array z, with a smooth stand-in that has a gradient."""

    kind: ClassVar[Kind]
    curved: ClassVar[Literal["convex", "concave"]]
    parameter: float = 0.0

    @abstractmethod
    def value(self, z: Floats) -> float:
        """Return the function of an array of numbers `z`, a float, not smoothed."""

    def smooth(self, z: Floats, smoothing: Smoothing) -> float:
        """Return a float, the stand-in of the function at the numbers `z` that is smooth by `smoothing`.

        By default itself.
        """
        return self.value(z)

    @abstractmethod
    def gradient(self, z: Floats, smoothing: Smoothing) -> Floats:
        """Return the gradient at `z` of the stand-in that is smooth by `smoothing`, an array of z's size."""

    @abstractmethod
    def lipschitz(self, size: int) -> float:
        """Return the L2 Lipschitz constant of the function of `size` numbers, a float."""


@dataclass(frozen=True)
class Largest(Function):
    """The largest of the numbers; of one number, that number."""

    kind: ClassVar[Kind] = "largest"
    curved: ClassVar[Literal["convex", "concave"]] = "convex"

    def value(self, z: Floats) -> float:
        """Return a float, the largest of the array of numbers `z`."""
        return float(z.max())

    def smooth(self, z: Floats, smoothing: Smoothing) -> float:
        """Return a float, the maximum of the array of numbers `z` made smooth by `smoothing`."""
        return smoothing.maximum(z)[0]

    def gradient(self, z: Floats, smoothing: Smoothing) -> Floats:
        """Return the gradient at `z` of the maximum smooth by `smoothing`, an array: from 0, with sum 1."""
        return smoothing.maximum(z)[1]

    def lipschitz(self, size: int) -> float:
        """Return 1.0 for any `size`, the number of numbers: slopes are probabilities, whose L2 norm is at most 1."""
        return 1.0


@dataclass(frozen=True)
class Spread(Function):
    """The function sum_{i<j} |z_i - z_j| - shift sum_i z_i, at most 0 iff the Gini index of z is at most shift / J."""

    kind: ClassVar[Kind] = "spread"
    curved: ClassVar[Literal["convex", "concave"]] = "convex"
    parameter: float = 0.0
    """Shift per unit of z."""

    def value(self, z: Floats) -> float:
        """Return the number sum_{i<j} |z_i - z_j| - shift sum_i z_i for an array of numbers `z`.

        The shift is `parameter`.
        """
        return float(np.abs(z[:, None] - z).sum() / 2 - self.parameter * z.sum())

    def smooth(self, z: Floats, smoothing: Smoothing) -> float:
        """Return a float, the function of `z` with absolute differences made smooth by `smoothing`."""
        # each pair once: differences below the diagonal
        apart = smoothing.absolute((z[:, None] - z)[np.tril_indices(len(z), -1)])[0]
        return float(apart.sum() - self.parameter * z.sum())

    def gradient(self, z: Floats, smoothing: Smoothing) -> Floats:
        """Return the gradient at `z` of the function, differences smooth by `smoothing`, an array of z's size."""
        slopes = smoothing.absolute((z[:, None] - z).ravel())[1].reshape(len(z), len(z))
        found: Floats = slopes.sum(axis=1) - self.parameter
        return found

    def lipschitz(self, size: int) -> float:
        """Return the L2 Lipschitz constant for J = `size` numbers, that of slopes 1 - J, ..., J - 1 less the shift."""
        return math.sqrt(size * (size**2 - 1) / 3) + abs(self.parameter) * math.sqrt(size)


@dataclass(frozen=True)
class HarmonicMean(Function):
    """Harmonic mean of J numbers z in [0, 1]: J / sum_j (1 / z_j); it needs no smooth stand-in."""

    kind: ClassVar[Kind] = "harmonic_mean"
    curved: ClassVar[Literal["convex", "concave"]] = "concave"

    def value(self, z: Floats) -> float:
        """Return the harmonic mean, a float, of the array `z` clipped to [0, 1]; 0 if any z is 0."""
        cut = np.clip(z, 0, 1)
        return float(len(z) / (1 / cut).sum()) if cut.all() else 0.0

    def gradient(self, z: Floats, smoothing: Smoothing) -> Floats:
        """Return an array of z's size, the derivatives J u_j^2 by z_j: u_j = (1 / z_j) / sum (1 / z_i), z clipped.

        `z` is an array of J numbers; `smoothing` is not used.
        """
        inverse = 1 / np.clip(z, LEAST, 1)
        found: Floats = len(z) * (inverse / inverse.sum()) ** 2
        return found

    def lipschitz(self, size: int) -> float:
        """Return the L2 Lipschitz constant for J = `size` numbers, J: the u_j of `gradient` add up to 1."""
        return float(size)


@dataclass(frozen=True)
class GeometricMean(Function):
    """(prod_j (z_j + floor))^(1/J), for z in [0, 1]: without the floor its slope would be unbounded near 0."""

    kind: ClassVar[Kind] = "geometric_mean"
    curved: ClassVar[Literal["convex", "concave"]] = "concave"
    parameter: float = 0.05
    """Number added to each z."""

    def value(self, z: Floats) -> float:
        """Return the geometric mean of z_j + floor, of the array `z` clipped to [0, 1]: (prod_j (z_j + floor))^(1/J).

        J is the number of entries.
        """
        return float(np.prod(np.clip(z, 0, 1) + self.parameter) ** (1 / len(z)))

    def gradient(self, z: Floats, smoothing: Smoothing) -> Floats:
        """Return an array of z's size, derivatives by z_j: mean / (J (z_j + floor)).

        `z` is an array of J numbers in [0, 1]; `smoothing` is not used.
        """
        found: Floats = self.value(z) / len(z) / (np.clip(z, 0, 1) + self.parameter)
        return found

    def lipschitz(self, size: int) -> float:
        """Return the L2 constant for J = `size` numbers: sqrt(J) x ((1 + floor) / floor)^((J - 1) / J) / J."""
        s = self.parameter
        return math.sqrt(size) / size * math.pow((1 + s) / s, (size - 1) / size)
