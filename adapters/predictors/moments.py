"""Coefficients from noisy sums over rows, and how far noise and sampling may have moved each of them.

Least squares: with A = X'X + E and b = X'y + e, E symmetric, the estimate is A^-1 b. A Newton step of a logistic model
from c: with A = the curvature of the log loss at c + E, and b = -its gradient + e, the estimate is c + A^-1 b. To first
order the noise moves the step d = A^-1 b by A^-1 (e - E d), whose covariance is

    A^-1 (s_b^2 I + s_A^2 (|d|^2 I + d d' - diag(d^2))) A^-1

since an entry of E off the diagonal stands in two rows. Sampling adds s^2 A^-1, for residuals of variance s^2 in least
squares and with s = 1 for the log loss. A Newton step is as far off again as the curvature changes along it, which is
by about half its own length in logits: q^2 / 2, with q^2 the mean square of x.d. Where this is more than a part of the
deviation in logits that is stated, the step was too long, and the statement is not made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.errors import ReleaseError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions import NoisySum

    Floats = NDArray[np.float64]

FIRST_ORDER = 0.25
"""The largest relative perturbation of a coefficient's row of A^-1 up to which the formula above is relied on."""
CURVED = 0.2
"""The largest error of a Newton step by curvature, as a part of the stated deviation, up to which it is relied on: a
bias of .2 deviations lowers the coverage of intervals of 90 and 95 percent by less than a point."""


@dataclass(frozen=True)
class Estimated:
    """Coefficients from noisy moments, one entry a feature, for features and target as they are scaled."""

    value: Floats
    noise: Floats
    """The standard deviation of what the privacy noise adds."""
    sampling: Floats
    """The standard deviation of the sampling error."""
    sound: NDArray[np.bool_]
    """Whether the noise is small enough in that direction for these figures to hold."""

    def check(self, size: int) -> None:
        """Refuse what no fit makes; for what is read from files."""
        reals = (self.value, self.noise, self.sampling)
        fits = all(a.shape == (size,) and a.dtype == np.float64 and np.isfinite(a).all() for a in reals)
        if not fits or self.sound.shape != (size,) or self.sound.dtype != np.bool_:
            raise ReleaseError("model: the coefficients' errors are damaged.")


@dataclass(frozen=True)
class NoisyMoments:
    """A and b as answered, with A's inverse."""

    matrix: Floats
    """A, with eigenvalues below the noise lifted to it."""
    inverse: Floats
    product: Floats
    """b."""
    noise: tuple[float, float]
    """s_A and s_b."""
    weight: float
    """A's noisy first entry, at least 1: the number of rows, or for the log loss the sum of their p (1 - p)."""
    centre: Floats
    """c; 0 for least squares."""
    curved: bool
    """Whether the step is one of several: least squares takes one."""

    @classmethod
    def of(cls, square: NoisySum, product: NoisySum) -> NoisyMoments:
        """Least squares, from the two blocks of `Moments`."""
        return cls._of(square, product, np.zeros(product.units.size), curved=False)

    @classmethod
    def newton(cls, square: NoisySum, gradient: NoisySum, centre: Floats) -> NoisyMoments:
        """A Newton step of a logistic model from here, from the two blocks of `Curvature`."""
        return cls._of(square, gradient, centre, curved=True)

    @classmethod
    def _of(cls, square: NoisySum, product: NoisySum, centre: Floats, *, curved: bool) -> NoisyMoments:
        size, part = product.units.size, 0.25 if curved else 1.0
        a = np.zeros((size, size))
        a[np.triu_indices(size)] = square.values * part
        a += np.triu(a, 1).T
        sigma = square.sigma * part
        levels, vectors = np.linalg.eigh(a)
        levels = np.maximum(levels, sigma * math.sqrt(size))  # paper 000 gives up where one is not above 0
        return cls(
            (vectors * levels) @ vectors.T,
            (vectors / levels) @ vectors.T,
            -product.values if curved else product.values,
            (sigma, product.sigma),
            max(float(a[0, 0]), 1.0),
            centre,
            curved,
        )

    @property
    def step(self) -> Floats:
        """D."""
        found: Floats = self.inverse @ self.product
        return found

    @property
    def theta(self) -> Floats:
        """The coefficients."""
        return self.centre + self.step

    def residual_variance(self, squares: float) -> float:
        """That of least squares, from the noisy sum of squared residuals at theta."""
        return max(squares, 0.0) / max(self.weight - self.product.size, 1.0)

    def estimated(self, variance: float, most_rows: int) -> Estimated:
        """The coefficients with their errors.

        Args:
            variance: Of the residuals; 1 for the log loss.
            most_rows: The most rows of one unit. They may be alike, which multiplies the sampling variance by at most
                this.
        """
        step, (s_a, s_b), size = self.step, self.noise, self.product.size
        middle = (s_b**2 + s_a**2 * float(step @ step)) * np.eye(size)
        middle += s_a**2 * (np.outer(step, step) - np.diag(step**2))
        noise = self.inverse @ middle @ self.inverse
        sampling = variance * most_rows * self.inverse
        perturbed = np.linalg.norm(self.inverse, axis=1) * s_a * math.sqrt(size)
        sound = perturbed <= FIRST_ORDER
        if self.curved:
            length = max(float(step @ self.matrix @ step), 0.0) / self.weight
            stated = float(np.trace(self.matrix @ (noise + sampling))) / self.weight
            sound &= length / 2 <= CURVED * math.sqrt(stated)
        deviation, spread = (np.sqrt(np.maximum(np.diag(part), 0)) for part in (noise, sampling))
        return Estimated(self.theta, deviation, spread, sound)
