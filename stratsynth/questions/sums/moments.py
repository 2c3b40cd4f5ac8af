"""Sums for least squares and for Newton steps of logistic models: second moments and gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import is_plain
from stratsynth.questions.sums import design
from stratsynth.questions.sums.base import Block, Sum, check_clip
from stratsynth.questions.sums.clipping import GRID, Floats, Ints, into_ball
from stratsynth.questions.sums.design import Design, check_target
from stratsynth.questions.sums.kernel import THETA, exp_of, logits_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

HALF = 1 << 15
"""sqrt(GRID): the clip, in units, of a vector whose products with itself are summed."""


@known
@dataclass(frozen=True)
class Moments(Sum):
    """Sums for least squares: the upper triangle of x x', and x y, for rows clipped to |x| <= clip, |y| <= bound.

    Two blocks. |upper(x x')| <= clip^2; exchanging a row moves it by at most sqrt(2) clip^2, because
    <upper(x x'), upper(z z')> = ((x.z)^2 + sum x_i^2 z_i^2) / 2 is never negative.
    """

    design: Design
    target: str
    """Numeric column, scaled from its bounds to [-1, 1]."""
    clip: float
    bound: float = 1.0
    """Clip of the scaled target."""

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: design, clip unsound in `schema`, target not numeric or in the design."""
        check_target("moments", self.design, self.target, schema)
        check_clip("moments", self.clip)
        check_clip("moments", self.bound)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return two `Block`s, by `schema`: products of features (clip^2; sqrt(2) clip^2 by replace), with target."""
        size = len(self.design.names(schema))
        return (
            Block(size * (size + 1) // 2, self.clip**2, math.sqrt(2)),
            Block(size, self.clip * self.bound),
        )

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return two int vectors, sums over coded rows `which`, in clip / GRID of each block, x rounded already.

        The upper triangle of x x', row by row, and x y, y the target: the bounds of `Moments` hold for these.
        """
        rows = rows.take(which)
        y = np.rint(np.clip(design.target(self.target, rows) / self.bound, -1, 1) * HALF)
        x = into_ball(design.features(self.design, rows) / self.clip * HALF, HALF).astype(np.float64)
        # A row without a target adds nothing.
        absent = np.isnan(y)
        x[:, absent], y[absent] = 0, 0
        return [_triangle(x), (x @ y).astype(np.int64)]


@known
@dataclass(frozen=True, eq=False)
class Curvature(Sum):
    """The upper triangle of 4 p (1 - p) x x', and (p - y) x, for rows clipped to |x| <= clip.

    p is the probability of the target's second level at theta, and y is 1 for that level, else 0. Since
    4 p (1 - p) <= 1 and |p - y| <= 1, the blocks are bounded as those of `Moments`, of the vector sqrt(4 p (1 - p)) x
    and of x: exchanging a row moves the first by at most sqrt(2) clip^2. The log loss has a quarter of it as its
    curvature.
    """

    design: Design
    target: str
    """Categorical column of two levels."""
    theta: NDArray[np.float64]
    """One coefficient per feature."""
    clip: float

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: design, clip unsound in `schema`, target not two levels, theta not finite."""
        check_target("curvature", self.design, self.target, schema, numeric=False)
        check_clip("curvature", self.clip)
        if schema.size(self.target) != 2:
            raise MechanismError(f"curvature: the target needs two levels; {self.target} has not.")
        size = len(self.design.names(schema))
        if not is_plain(self.theta) or self.theta.shape != (size,) or not np.isfinite(self.theta).all():
            raise MechanismError(f"curvature: theta must be {size} finite numbers.")

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but the values of coefficients, which earlier answers give."""
        return "curvature", self.design, self.target, self.theta.shape, f"{self.clip:.9g}"

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return two `Block`s, for any `schema`: curvature (clip^2; exchanged, x sqrt(2)) and gradient (clip)."""
        size = len(self.theta)
        return (Block(size * (size + 1) // 2, self.clip**2, math.sqrt(2)), Block(size, self.clip))

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list of two int arrays over coded rows `which`, chance p: triangle, 4 p (1 - p) x x'; (p - y) x."""
        whole, _ = design.integer_features(self.design, rows, which)
        (logits,) = logits_of(whole, self.design, self.theta)
        rows = rows.take(which)
        chances = exp_of(np.abs(logits) / (design.UNIT * THETA))  # of the less likely level over the likelier one
        # sqrt(4 p (1 - p)) = 2 sqrt(e) / (1 + e) with e = exp(-|z|).
        weight = np.sqrt((chances * GRID).astype(np.float64)) * 2 / (chances + GRID)
        levels = rows.codes[self.target].astype(np.intp)
        residuals = np.rint((np.where(logits < 0, chances, GRID) / (chances + GRID) - levels) * HALF)
        x = design.features(self.design, rows) / self.clip * HALF
        weighted = into_ball(x * weight, HALF).astype(np.float64)
        return [_triangle(weighted), (into_ball(x, HALF).astype(np.float64) @ residuals).astype(np.int64)]


def _triangle(x: Floats) -> Ints:
    """Return a flat array: the upper triangle of the sum of x x' over rows, columns of integers in `x`: exact."""
    return (x @ x.T)[np.triu_indices(len(x))].astype(np.int64)
