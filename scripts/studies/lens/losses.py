"""INTERNAL. Losses of three kinds of models, with their gradients and Hessians in closed form.

A model's output for a row is z(x; theta), its loss l(z, y). Many models stand side by side as columns of one table of
coefficients: one line a coefficient, one column a model.

    gradient of a row    l' dz/dtheta            trace of its Hessian    l'' |dz/dtheta|^2 + l' (Laplacian of z)

The Laplacian is 0 for linear z. Corrected: with squared loss (z - y)^2 the trace is 2 E|x|^2 (Corollary 1 of paper 001
prints E|x|); a group's Hessian is the mean over its rows (Theorem 1 prints the sum, of a loss that is a mean); the
network's formulas are for tanh, whose derivative is 1 - h^2 (equation 34 is for a sigmoid), and of its two layers the
output layer's trace goes with the distance to the boundary, the hidden layer's with |x|^2 (D.1 swaps them).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Local:
    """Second-order terms of one model at one point."""

    jacobian: Floats
    """dz/dtheta: one line a row, one column a coefficient."""
    first: Floats
    """l' of each row."""
    second: Floats
    """l'' of each row."""
    bends: tuple[Floats, ...]
    """Inputs of `Loss.bend`."""

    @property
    def gradients(self) -> Floats:
        """One line a row."""
        return self.jacobian * self.first[:, None]


class Loss(ABC):
    """A kind of model with its loss."""

    @abstractmethod
    def size(self, features: int) -> int:
        """Return the number of coefficients."""

    @abstractmethod
    def outputs(self, x: Floats, theta: Floats) -> Floats:
        """Z: one line a row, one column a model."""

    @abstractmethod
    def pull(self, x: Floats, y: Floats, theta: Floats, clip: Floats) -> Floats:
        """The sum of the rows' gradients, each cut to the norm `clip` of its column, which may be infinite."""

    @abstractmethod
    def norms(self, x: Floats, y: Floats, theta: Floats) -> Floats:
        """The norm of each row's gradient: one line a row, one column a model."""

    @abstractmethod
    def traces(self, x: Floats, y: Floats, theta: Floats) -> Floats:
        """The trace of each row's Hessian: one line a row, one column a model."""

    @abstractmethod
    def local(self, x: Floats, y: Floats, theta: Floats) -> Local:
        """Return the second-order terms at one model: `theta` has one axis."""

    def bend(self, x: Floats, local: Local) -> Floats | None:
        """The sum over rows of l' times the Hessian of z; None where z is linear."""
        return None

    def hessian(self, x: Floats, local: Local) -> Floats:
        """Return the mean over rows of the Hessian of the loss."""
        bent = self.bend(x, local)
        straight = local.jacobian.T @ (local.jacobian * local.second[:, None])
        whole: Floats = (straight if bent is None else straight + bent) / len(x)
        return whole

    def values(self, x: Floats, y: Floats, theta: Floats) -> Floats:
        """The log loss of each row and model."""
        z = self.outputs(x, theta)
        found: Floats = np.logaddexp(0, z) - y[:, None] * z
        return found

    def boundary(self, x: Floats, theta: Floats) -> Floats:
        """1 - sum over classes of f_k^2, of each row and model: 1/2 on the boundary of two classes, 0 far from it."""
        p = expit(self.outputs(x, theta))
        found: Floats = 2 * p * (1 - p)
        return found


def cut(norms: Floats, clip: Floats) -> Floats:
    """Return the factors by which clipping multiplies gradients of these norms."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(norms > clip, clip / norms, 1.0)


def _square(x: Floats) -> Floats:
    """|x|^2 of each row, in a column."""
    found: Floats = np.einsum("ij,ij->i", x, x)[:, None]
    return found


class _Straight(Loss):
    """Models whose output is linear: z = x . theta."""

    def size(self, features: int) -> int:
        """Return the number of features."""
        return features

    def outputs(self, x: Floats, theta: Floats) -> Floats:
        """The linear predictor."""
        found: Floats = x @ theta
        return found

    @abstractmethod
    def first(self, z: Floats, y: Floats) -> Floats:
        """The first derivative of l by z."""

    @abstractmethod
    def second(self, z: Floats) -> Floats:
        """The second derivative of l by z."""

    def pull(self, x: Floats, y: Floats, theta: Floats, clip: Floats) -> Floats:
        """A row's gradient is l' x, so its norm is |l'| |x|."""
        first = self.first(x @ theta, y[:, None])
        most = clip / np.maximum(np.sqrt(_square(x)), 1e-300)
        found: Floats = x.T @ np.clip(first, -most, most)
        return found

    def norms(self, x: Floats, y: Floats, theta: Floats) -> Floats:
        """|l'| |x|."""
        found: Floats = np.abs(self.first(x @ theta, y[:, None])) * np.sqrt(_square(x))
        return found

    def traces(self, x: Floats, y: Floats, theta: Floats) -> Floats:
        """The second derivative times |x|^2."""
        found: Floats = self.second(x @ theta) * _square(x)
        return found

    def local(self, x: Floats, y: Floats, theta: Floats) -> Local:
        """The Jacobian is x itself."""
        z = x @ theta
        return Local(x, self.first(z, y), self.second(z), ())


class Linear(_Straight):
    """Squared loss (z - y)^2."""

    def first(self, z: Floats, y: Floats) -> Floats:
        """2 (z - y)."""
        return 2 * (z - y)

    def second(self, z: Floats) -> Floats:
        """2."""
        return np.full(z.shape, 2.0)

    def values(self, x: Floats, y: Floats, theta: Floats) -> Floats:
        """Squared residuals."""
        found: Floats = (x @ theta - y[:, None]) ** 2
        return found

    def boundary(self, x: Floats, theta: Floats) -> Floats:
        """There is none."""
        return np.full((len(x), theta.shape[1]), np.nan)


class Logistic(_Straight):
    """The log loss of two classes."""

    def first(self, z: Floats, y: Floats) -> Floats:
        """P - y."""
        found: Floats = expit(z) - y
        return found

    def second(self, z: Floats) -> Floats:
        """P (1 - p)."""
        p = expit(z)
        found: Floats = p * (1 - p)
        return found


@dataclass(frozen=True)
class Tanh(Loss):
    """One hidden layer of tanh units and the log loss of two classes: z = v . tanh(W'x) + b.

    Coefficients in order: W, feature by feature; v; b.
    """

    hidden: int
    """Number of hidden units."""

    def size(self, features: int) -> int:
        """Return the number of coefficients of both layers."""
        return features * self.hidden + self.hidden + 1

    def start(self, features: int, seed: int) -> Floats:
        """Small coefficients: at 0 all hidden units would stay alike."""
        rng = np.random.default_rng(seed)
        wide = rng.normal(size=features * self.hidden) / np.sqrt(features)
        return np.concatenate([wide, rng.normal(size=self.hidden) / np.sqrt(self.hidden), [0.0]])

    def _units(self, x: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Hidden units with axes row, unit and model; v; and z."""
        inner, models = x.shape[1] * self.hidden, theta.shape[1]
        h = np.tanh(x @ theta[:inner].reshape(x.shape[1], -1)).reshape(len(x), self.hidden, models)
        v = theta[inner : inner + self.hidden]
        return h, v, (h * v).sum(axis=1) + theta[-1]

    def outputs(self, x: Floats, theta: Floats) -> Floats:
        """Z."""
        return self._units(x, theta)[2]

    def pull(self, x: Floats, y: Floats, theta: Floats, clip: Floats) -> Floats:
        """Return the clipped gradient as one vector of both layers, clipped together."""
        h, v, z = self._units(x, theta)
        first, steep = expit(z) - y[:, None], v * (1 - h * h)
        first = first * cut(np.abs(first) * self._length(x, h, steep), clip)
        inner = x.T @ (first[:, None, :] * steep).reshape(len(x), -1)
        return np.concatenate(
            [inner.reshape(-1, theta.shape[1]), np.einsum("im,ihm->hm", first, h), first.sum(axis=0, keepdims=True)]
        )

    @staticmethod
    def _length(x: Floats, h: Floats, steep: Floats) -> Floats:
        """|dz/dtheta|."""
        found: Floats = np.sqrt((steep**2).sum(axis=1) * _square(x) + (h * h).sum(axis=1) + 1)
        return found

    def norms(self, x: Floats, y: Floats, theta: Floats) -> Floats:
        """|l'| |dz/dtheta|, of both layers."""
        h, v, z = self._units(x, theta)
        found: Floats = np.abs(expit(z) - y[:, None]) * self._length(x, h, v * (1 - h * h))
        return found

    def traces(self, x: Floats, y: Floats, theta: Floats) -> Floats:
        """Return l'' (|h|^2 + 1) of the output layer, plus |x|^2 sum (l'' (v h')^2 + l' v h'') of the hidden one."""
        h, v, z = self._units(x, theta)
        p, steep = expit(z), 1 - h * h
        length = self._length(x, h, v * steep) ** 2
        laplacian = _square(x) * (v * (-2 * h * steep)).sum(axis=1)
        found: Floats = p * (1 - p) * length + (p - y[:, None]) * laplacian
        return found

    def local(self, x: Floats, y: Floats, theta: Floats) -> Local:
        """Return the second-order terms of one model, its Jacobian written out."""
        h, v, z = (part[..., 0] for part in self._units(x, theta[:, None]))
        steep = 1 - h * h
        inner = (x[:, :, None] * (v * steep)[:, None, :]).reshape(len(x), -1)
        p = expit(z)
        return Local(np.column_stack([inner, h, np.ones(len(x))]), p - y, p * (1 - p), (h, steep, v))

    def bend(self, x: Floats, local: Local) -> Floats:
        """Second derivatives of z: h'' v x x' within a unit, h' x between a unit's weights and its v; no others."""
        h, steep, v = local.bends
        features, size = x.shape[1], self.size(x.shape[1])
        found = np.zeros((size, size))
        for unit in range(self.hidden):
            at = np.arange(features) * self.hidden + unit
            weight = local.first * v[unit] * (-2 * h[:, unit] * steep[:, unit])
            found[np.ix_(at, at)] = x.T @ (x * weight[:, None])
            across = x.T @ (local.first * steep[:, unit])
            found[at, features * self.hidden + unit] = found[features * self.hidden + unit, at] = across
        return found
