"""Coefficients from noisy sums over rows, with the errors of noise and sampling in each of them.

Least squares: with A = X'X + E and b = X'y + e, E symmetric, the estimate is A^-1 b. A Newton step of a logistic model
from c: with A = the curvature of the log loss at c + E, and b = -its gradient + e, the estimate is c + A^-1 b. To first
order the noise moves the step d = A^-1 b by A^-1 (e - E d), whose covariance is

    A^-1 (s_b^2 I + s_A^2 (|d|^2 I + d d' - diag(d^2))) A^-1

since an entry of E off the diagonal stands in two rows. Sampling adds s^2 A^-1, for residuals of variance s^2 in least
squares and with s = 1 for the log loss. A Newton step is off as much again as the curvature changes along it, which is
by about half its own length in logits: q^2 / 2, with q^2 the mean square of x.d. Where this exceeds a fraction of the
standard deviation of the logits, the step was too long, and no errors are stated.
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
"""Largest relative perturbation of a coefficient's row of A^-1 up to which the formula above is relied on."""
CURVED = 0.2
"""Largest error of a Newton step by curvature, in stated standard deviations, up to which it is relied on: a bias of .2
deviations lowers the coverage of intervals of 90 and 95 percent by less than a point."""


@dataclass(frozen=True)
class Estimated:
    """Coefficients from noisy moments, one entry a feature, for features and target as they are scaled."""

    value: Floats
    noise: Floats
    """Standard deviation of the privacy noise."""
    sampling: Floats
    """Standard deviation of the sampling error."""
    sound: NDArray[np.bool_]
    """Mask of coefficients whose noise is small enough for these figures to be valid."""

    def check(self, size: int) -> None:
        """Refuse (ReleaseError) arrays of another length than `size`, of numbers not finite, of `sound` not bools."""
        reals = (self.value, self.noise, self.sampling)
        fits = all(a.shape == (size,) and a.dtype == np.float64 and np.isfinite(a).all() for a in reals)
        if not fits or self.sound.shape != (size,) or self.sound.dtype != np.bool_:
            raise ReleaseError("model: the coefficients' errors are damaged.")


@dataclass(frozen=True)
class NoisyMoments:
    """The noisy matrix A (features x features) and vector b of least squares or a Newton step, with A's inverse."""

    matrix: Floats
    """A, with eigenvalues below the noise lifted to it."""
    inverse: Floats
    product: Floats
    """The vector b."""
    noise: tuple[float, float]
    """Noise of an entry of A and of b: s_A and s_b."""
    weight: float
    """Noisy first entry of A, at least 1: the number of rows, or for the log loss the sum of their p (1 - p)."""
    centre: Floats
    """The point c that the step starts from; 0 for least squares."""
    curved: bool
    """True for a Newton step, which is one of several; False for least squares, which takes one."""

    @classmethod
    def of(cls, square: NoisySum, product: NoisySum) -> NoisyMoments:
        """Return the `NoisyMoments` of least squares by the sums `square`, X'X's upper triangle, and `product`, X'y.

        Both are `NoisySum`s.
        """
        return cls._of(square, product, np.zeros(product.units.size), curved=False)

    @classmethod
    def newton(cls, square: NoisySum, gradient: NoisySum, centre: Floats) -> NoisyMoments:
        """Return the `NoisyMoments` of a logistic Newton step from the coefficients `centre`, from noisy sums.

        `centre` is an array; `square` is four times the curvature's upper triangle, `gradient` the gradient.
        """
        return cls._of(square, gradient, centre, curved=True)

    @classmethod
    def _of(cls, square: NoisySum, product: NoisySum, centre: Floats, *, curved: bool) -> NoisyMoments:
        """Return the `NoisyMoments` of two `NoisySum`s, `square` and `product`, around the coefficients `centre`.

        If `curved`, of a Newton step from there; else of least squares.
        """
        size, part = product.units.size, 0.25 if curved else 1.0
        a = mirrored(square.values * part, size)
        sigma = square.sigma * part
        levels, vectors = np.linalg.eigh(a)
        levels = np.maximum(levels, sigma * math.sqrt(size))  # paper 000, Algorithm 1, line 11, gives up here
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
        """Array that solves the noisy equations A d = b: least squares, or a Newton step; one entry per feature."""
        found: Floats = self.inverse @ self.product
        return found

    @property
    def theta(self) -> Floats:
        """Coefficients after the step, an array of one entry per feature: the centre plus `step`."""
        return self.centre + self.step

    def residual_variance(self, squares: float) -> float:
        """Return the residuals' variance: their noisy sum of `squares`, at least 0, over rows less features."""
        return max(squares, 0.0) / max(self.weight - self.product.size, 1.0)

    def estimated(self, variance: float, most_rows: int) -> Estimated:
        """Return the `Estimated` coefficients: standard deviations of noise and sampling, and a mask of sound ones.

        Args:
            variance: Variance of the residuals; 1 for the log loss.
            most_rows: Largest number of rows of one unit. They may be equal, which multiplies the sampling variance by
                at most this.
        """
        step, (s_a, s_b), size = self.step, self.noise, self.product.size
        # covariance of e - E d, as in the formula above
        middle = (s_b**2 + s_a**2 * float(step @ step)) * np.eye(size)
        middle += s_a**2 * (np.outer(step, step) - np.diag(step**2))
        noise = self.inverse @ middle @ self.inverse
        sampling = variance * most_rows * self.inverse
        # root mean square length of (row of A^-1) E
        perturbed = np.linalg.norm(self.inverse, axis=1) * s_a * math.sqrt(size)
        sound = perturbed <= FIRST_ORDER
        if self.curved:
            # a Newton step longer than its own error means that the quadratic model does not hold yet
            length = max(float(step @ self.matrix @ step), 0.0) / self.weight
            stated = float(np.trace(self.matrix @ (noise + sampling))) / self.weight
            sound &= length / 2 <= CURVED * math.sqrt(stated)
        deviation, spread = (np.sqrt(np.maximum(np.diag(part), 0)) for part in (noise, sampling))
        return Estimated(self.theta, deviation, spread, sound)


def mirrored(triangle: Floats, size: int) -> Floats:
    """Return the symmetric matrix, size x size, whose upper triangle is `triangle`, a flat array, row by row.

    Symmetric noise keeps the eigenvalues real.
    """
    a = np.zeros((size, size))
    a[np.triu_indices(size)] = triangle
    a += np.triu(a, 1).T
    return a
