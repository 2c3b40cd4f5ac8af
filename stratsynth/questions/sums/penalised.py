"""Per-row gradients of a log loss with a mitigation's surrogates, as one vector that is clipped as a whole.

With p the target's probabilities, z the logits, g a row's gradient of the log loss and d a public direction:

    by z_k    h = 1 - sum p^2    2 p_k (sum p^2 - p_k)        <g, d> = sum_k r_k z'_k    p_k (z'_k - sum_m p_m z'_m)

z' being how the logits move along d. Where z is not linear in the coefficients, z' changes with them too: for a network
with units h_j = tanh(W_j x), a_j = D_j x and the output weights V,

    z'_k = sum_j V_jk h'_j a_j + dV_jk h_j + dV_k      by W_j: (V_jk h''_j a_j + dV_jk h'_j) x      by V_jk: h'_j a_j

so a row's gradient by hidden weights is one number per unit times its features, as for the loss. All is
done one element at a time, under the rules of `stratsynth.questions.sums.base`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.questions.sums import design, networks
from stratsynth.questions.sums.base import GRID, Floats, Ints, into_ball
from stratsynth.questions.sums.kernel import THETA, logits_of, residuals_of
from stratsynth.questions.sums.networks import NetworkGradients, layers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions.sums.mitigation import Mitigated
    from stratsynth.schema.rows import CodedRows, Which


class RegressionGradients:
    """Gradients of a regression: each is c x, x being a row's features and c one number per logit, the lines.

    Clipping it is clipping c to the row's reach: the largest whole m with |m x| <= GRID.
    """

    def __init__(self, query: Mitigated, rows: CodedRows, which: Which) -> None:
        self._query = query
        self._x, self._reach = design.integer_features(query.design, rows, which)
        levels = rows.codes[query.target][which].astype(np.intp)
        self.plain = residuals_of(query.link, query.target, rows, which, logits_of(self._x, query.design, query.theta))
        """Derivatives of the loss by the logits, one per line."""
        chances = self.plain.copy()
        if query.link == "logistic":
            chances[0] += levels
            chances = np.array([1 - chances[0], chances[0]])
        else:
            chances[levels, np.arange(len(levels))] += 1
        self.chances = chances
        """Probability of each level, one per line."""

    @property
    def norms(self) -> Floats:
        """L2 norm of each row's gradient of the loss, an array, to a relative 2^-16."""
        return length(self.plain) * (GRID / design.UNIT / self._reach)

    def with_penalties(self, noise: Floats | None, clipping: Floats | None) -> Floats:
        """Return each row's derivative by the logits of loss + noise h + clipping <g, d>: a line per logit.

        h is 1 - sum p^2, g the gradient of the loss and d the query's direction; `noise` and
        `clipping` have one factor per row, and None leaves the term out.
        """
        found = self.plain.copy()
        logits = len(found)
        if noise is not None:
            found += noise * boundary_slopes(self.chances)[-logits:]
        if clipping is not None:
            query = self._query
            assert query.direction is not None  # noqa: S101 - the query's check
            # z' of a regression: the logits of the direction.
            along = logits_of(self._x, query.design, query.direction)
            found += clipping * turned(self.chances, along / (design.UNIT * THETA))
        return found

    def integer_vectors(self, lines: Floats, clip: float, part: Floats | None = None) -> Ints:
        """Return the lines in integers, each row's vector clipped to `clip`, or to `part` of it (one per row)."""
        radius = self._reach if part is None else np.floor(self._reach * part).astype(np.int64)
        return into_ball(lines * (GRID // design.UNIT) / clip, radius)

    def total(self, whole: Ints, chosen: NDArray[np.bool_] | None = None) -> Ints:
        """Return the flat integer sum of the vectors that lines `whole` stand for, over all rows or those `chosen`."""
        c = whole.astype(np.float64)
        kept = c if chosen is None else np.where(chosen, c, 0.0)
        return np.asarray((self._x.T @ kept.T).astype(np.int64).ravel())


class Layers:
    """Gradients of a network of one hidden layer, with the lines of `stratsynth.questions.sums.networks:lines`."""

    def __init__(self, query: Mitigated, rows: CodedRows, which: Which) -> None:
        self._query = query
        self._x, self._reach = design.integer_features(query.design, rows, which)
        asked = self._asked(query.theta)
        self._h, logits = networks.forward(self._x, asked)
        self._steep = 1 - self._h * self._h
        self._output = networks.whole_output(asked) / THETA  # a power of 2: exact
        residuals = networks.residuals_of(asked, rows, which, logits)
        self.chances = residuals.copy()
        """Probability of each level, one per line."""
        levels = rows.codes[query.target][which].astype(np.intp)
        self.chances[levels, np.arange(len(levels))] += 1
        self._residuals = residuals[-self._output.shape[1] :]
        inner = networks.back(self._residuals, self._output) * self._steep
        self.plain = networks.lines(inner, networks.outer(self._h, self._residuals), self._reach)
        """Gradient of the loss, as lines."""

    def _asked(self, weights: Floats) -> NetworkGradients:
        """Return `NetworkGradients` of a network with these `weights`, a flat array, hidden ones first."""
        query = self._query
        hidden, output = layers(weights, query.hidden, self._x.shape[1])
        return NetworkGradients(query.design, query.target, hidden, output, query.clip)

    @property
    def norms(self) -> Floats:
        """L2 norm of each row's gradient of the loss, an array, to a relative 2^-16."""
        return length(self.plain)

    def with_penalties(self, noise: Floats | None, clipping: Floats | None) -> Floats:
        """Return derivatives of loss + noise h + clipping <g, d> by a network's weights, as `networks.lines` has them.

        `noise` and `clipping` have one factor per row; None leaves the term out.
        """
        h, steep, residuals, output = self._h, self._steep, self._residuals, self._output
        bent = residuals.copy()
        if noise is not None:
            bent += noise * boundary_slopes(self.chances)[-len(bent) :]
        if clipping is None:
            return networks.lines(networks.back(bent, output) * steep, networks.outer(h, bent), self._reach)
        direction = self._query.direction
        assert direction is not None  # noqa: S101 - the query's check
        # z' of a network: both layers' weights move along the direction.
        along = self._asked(direction)
        a, out = networks.inputs_of(self._x, along), networks.whole_output(along) / THETA
        moved = np.repeat(out[-1:].T, len(self._x), axis=1)  # z', of which this is dV_k
        for k in range(len(moved)):
            for j in range(len(h)):
                moved[k] += output[j, k] * (steep[j] * a[j]) + out[j, k] * h[j]
        bent += clipping * turned(self.chances, moved)
        # By W_j: V_jk h''_j a_j + dV_jk h'_j, with h'' = -2 h h'.
        curved = networks.back(residuals, output) * (-2 * h * steep * a) + networks.back(residuals, out) * steep
        inner = networks.back(bent, output) * steep + clipping * curved
        # By V_jk: h'_j a_j beside the part through z'.
        across = zip(networks.outer(h, bent), networks.outer(steep * a, residuals, 0.0), strict=True)
        return networks.lines(inner, [straight + clipping * turn for straight, turn in across], self._reach)

    def integer_vectors(self, lines: Floats, clip: float, part: Floats | None = None) -> Ints:
        """Return the lines in integers, each row's vector clipped to `clip`, or to `part` of it (one per row)."""
        radius = GRID if part is None else np.floor(GRID * part).astype(np.int64)
        return networks.integer_lines(lines, len(self._h), self._reach, clip, radius)

    def total(self, whole: Ints, chosen: NDArray[np.bool_] | None = None) -> Ints:
        """Return the flat integer sum of the vectors that lines `whole` stand for, over all rows or those `chosen`."""
        return networks.added(whole if chosen is None else np.where(chosen, whole, 0), len(self._h), self._x)


def boundary(chances: Floats) -> Floats:
    """Return for each row 1 less the sum of its squared class probabilities; `chances` has one line per class."""
    found = np.ones(chances.shape[1])
    for p in chances:
        found -= p * p
    return found


def boundary_slopes(chances: Floats) -> Floats:
    """Return the derivative of `boundary` by each level's logit, 2 p_k (sum p^2 - p_k), p the `chances`."""
    return 2 * chances * (1 - boundary(chances) - chances)


def turned(chances: Floats, moved: Floats) -> Floats:
    """Return d(gradient . direction) / d(logit) at `chances`, the logits' change `moved` fixed: arrays [logit, row]."""
    mean, used = np.zeros(chances.shape[1]), chances[-len(moved) :]
    for p, along in zip(used, moved, strict=True):
        mean += p * along
    return used * (moved - mean)


def length(lines: Floats) -> Floats:
    """Return the L2 norm of each column, added up line by line, in a fixed order."""
    square = np.zeros(lines.shape[1])
    for line in lines:
        square += line * line
    return np.sqrt(square)
