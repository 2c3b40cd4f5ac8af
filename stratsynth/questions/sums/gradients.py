"""Sums for fitting generalised linear models: clipped gradients, several models at once, and second moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.checks import one_of
from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_clique, is_plain
from stratsynth.questions.sums import design
from stratsynth.questions.sums.base import GRID, Block, Floats, Ints, Sum, check_clip, into_ball
from stratsynth.questions.sums.design import Design, check_target
from stratsynth.questions.sums.kernel import (
    THETA,
    by_feature,
    cells_of,
    clip_gradients,
    exp_of,
    logits_of,
    residuals_of,
    sum_gradients,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions.sums.fairness import AttributeGradients, FairGradients
    from stratsynth.questions.sums.losses import GroupLosses, Losses
    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

Link = Literal["linear", "logistic", "softmax"]


@known
@dataclass(frozen=True, eq=False)
class Gradients(Sum):
    """The gradients of a generalised linear model's loss at several coefficient vectors, one block each.

    `linear`: (x.theta - y) x, of half the squared error. `logistic`: (p - y) x, of the log loss, for a target of two
    levels, y being the second. `softmax`: (p_k - [y = k]) x for each level k of the target. Each row's gradient is
    clipped, and then, where `by` names columns, multiplied by the part that `parts` has for the row's cell: what a row
    can contribute never grows by that.

    A row whose target is not applicable or missing counts only where that is a level of the target.
    """

    design: Design
    target: str
    link: Link
    thetas: NDArray[np.float64]
    """Coefficients: one row per model, one column per feature; for `softmax` a third axis for the target's levels."""
    clip: float
    """Clip of a row's gradient in the L2 norm, before `parts`."""
    by: tuple[str, ...] = ()
    """Columns whose levels, fully crossed, are the cells of `parts`; none if all rows count alike."""
    parts: NDArray[np.float64] | None = None
    """Public factor from 0 to 1 for each cell of `by`, in the shape of their crossing."""
    flips: NDArray[np.bool_] | None = None
    """Cells of `by` whose rows count as if they had the other level of the target, for `logistic`, in the same shape: a
    loss with a negative weight, up to a constant. Clip and parts apply as to all rows."""

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: models unfit for `schema`, parts outside [0, 1], flips without parts."""
        check_models("gradients", self, schema)
        check_parts("gradients", self.by, self.parts, schema)
        if self.flips is not None and (
            type(self.flips) is not np.ndarray
            or self.flips.dtype != np.bool_
            or self.parts is None
            or self.flips.shape != self.parts.shape
            or self.link != "logistic"
        ):
            raise MechanismError("gradients: `flips` go with `parts`, true or false for each, and with `logistic`.")

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but values of coefficients and parts, which earlier answers give."""
        kept = "gradients", self.design, self.target, self.link, self.thetas.shape, f"{self.clip:.9g}", self.by
        return kept if self.flips is None else (*kept, "flips")

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return a `Block` per model, for any `schema`: a coordinate for each coefficient, clipped together."""
        return (Block(self.thetas[0].size, self.clip),) * len(self.thetas)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list, a flat int array a model: clipped gradients summed over coded rows `which`, in clip / GRID.

        A row's c, bounded by the clip, is no larger after a public factor from 0 to 1 and rounding towards zero.
        """
        x, reach = design.integer_features(self.design, rows, which)
        logits = logits_of(x, self.design, by_feature(self.thetas))
        residuals = residuals_of(self.link, self.target, rows, which, logits).reshape(len(self.thetas), -1, len(x))
        if self.flips is not None:
            away = 2 * rows.codes[self.target][which].astype(np.intp) - 1  # from p - y to p - (1 - y)
            residuals = np.where(self.flips.ravel()[cells_of(self.by, rows, which)], residuals + away, residuals)
        c = clip_gradients(np.moveaxis(residuals, 1, 0), reach, self.clip)
        if self.parts is not None:
            # Public factors in [0, 1], rounded towards zero: no row gets longer.
            c = np.trunc(c * self.parts.ravel()[cells_of(self.by, rows, which)])
        return sum_gradients(c, x)


def check_models(
    what: str,
    query: Gradients | Losses | GroupLosses | FairGradients | AttributeGradients,
    schema: Schema,
    links: tuple[Link, ...] = ("linear", "logistic", "softmax"),
) -> None:
    """Raise MechanismError on `what`: a query's link not in `links`, design, clip, target for `schema`, thetas."""
    one_of(f"{what}: link", query.link, links, error=MechanismError)
    check_target(what, query.design, query.target, schema, numeric=query.link == "linear")
    check_clip(what, query.clip)
    if query.link == "logistic" and schema.size(query.target) != 2:
        raise MechanismError(f"{what}: logistic needs a target of two levels; {query.target} has not.")
    size, thetas = len(query.design.names(schema)), query.thetas
    shape = (size, schema.size(query.target)) if query.link == "softmax" else (size,)
    if not finite(thetas) or not len(thetas) or thetas.shape[1:] != shape:
        raise MechanismError(f"{what}: thetas must be finite, one entry a model, each of shape {shape}.")


def finite(values: Any) -> bool:
    """True if the value is a plain float64 array of at least two axes, all of its numbers finite."""
    return is_plain(values) and values.ndim > 1 and bool(np.isfinite(values).all())


def check_parts(what: str, by: tuple[str, ...], parts: NDArray[np.float64] | None, schema: Schema) -> None:
    """Raise MechanismError, opening with `what`: `parts` not in [0, 1] per cell of `by` in `schema`, or no `by`."""
    if (parts is None) != (not by):
        raise MechanismError(f"{what}: `by` and `parts` go together.")
    if parts is not None:
        check_clique(what, by, schema)
        if not is_plain(parts) or parts.shape != schema.shape(by) or not np.all((parts >= 0) & (parts <= 1)):
            raise MechanismError(f"{what}: `parts` are numbers from 0 to 1, one for each cell of `by`.")


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
