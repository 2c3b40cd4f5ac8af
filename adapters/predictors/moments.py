"""Least squares from noisy moments: coefficients, and how far noise and sampling may have moved each of them.

With A = X'X + E and b = X'y + e, E symmetric, the estimate is beta = A^-1 b. To first order the noise moves it by
A^-1 (e - E beta), whose covariance is

    A^-1 (s_b^2 I + s_A^2 (|beta|^2 I + beta beta' - diag(beta^2))) A^-1

since an entry of E off the diagonal stands in two rows. Sampling adds s^2 A^-1 for residuals of variance s^2.
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
    """X'X and X'y as answered, with A's inverse."""

    inverse: Floats
    """Of A, with eigenvalues below the noise lifted to it."""
    product: Floats
    """b."""
    noise: tuple[float, float]
    """s_A and s_b."""
    rows: float
    """The noisy number of rows: A's first entry, at least 1."""

    @classmethod
    def of(cls, square: NoisySum, product: NoisySum) -> NoisyMoments:
        """From the two blocks of `Moments`."""
        size = product.units.size
        a = np.zeros((size, size))
        a[np.triu_indices(size)] = square.values
        a += np.triu(a, 1).T
        levels, vectors = np.linalg.eigh(a)
        levels = np.maximum(levels, square.sigma * math.sqrt(size))  # paper 000 gives up where one is not above 0
        inverse = (vectors / levels) @ vectors.T
        return cls(inverse, product.values, (square.sigma, product.sigma), max(float(a[0, 0]), 1.0))

    @property
    def theta(self) -> Floats:
        """Beta."""
        found: Floats = self.inverse @ self.product
        return found

    def estimated(self, squares: float, most_rows: int) -> Estimated:
        """The coefficients with their errors.

        Args:
            squares: The noisy sum of squared residuals at beta.
            most_rows: The most rows of one unit. They may be alike, which multiplies the sampling variance by at most
                this.
        """
        beta, (s_a, s_b), size = self.theta, self.noise, self.product.size
        middle = (s_b**2 + s_a**2 * float(beta @ beta)) * np.eye(size)
        middle += s_a**2 * (np.outer(beta, beta) - np.diag(beta**2))
        noise = np.sqrt(np.maximum(np.diag(self.inverse @ middle @ self.inverse), 0))
        variance = max(squares, 0.0) / max(self.rows - size, 1.0)
        sampling = np.sqrt(np.maximum(variance * np.diag(self.inverse), 0) * most_rows)
        perturbed = np.linalg.norm(self.inverse, axis=1) * s_a * math.sqrt(size)
        return Estimated(beta, noise, sampling, perturbed <= FIRST_ORDER)
