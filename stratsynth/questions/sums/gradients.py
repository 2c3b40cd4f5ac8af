"""Clipped gradients of generalised linear models, several models at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.checks import one_of
from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_clique, is_plain
from stratsynth.questions.sums import design
from stratsynth.questions.sums.base import Block, Sum, check_clip
from stratsynth.questions.sums.clipping import Ints
from stratsynth.questions.sums.design import Design, check_target
from stratsynth.questions.sums.kernel import (
    by_feature,
    cells_of,
    clip_gradients,
    logits_of,
    residuals_of,
    sum_gradients,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions.sums.attribute import AttributeGradients
    from stratsynth.questions.sums.fairness import FairGradients
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
    what: str, query: Gradients | Losses | GroupLosses | FairGradients | AttributeGradients, schema: Schema
) -> None:
    """Raise MechanismError, opening with `what`: a query's design, clip, target unfit in `schema`, coefficients."""
    one_of(f"{what}: link", query.link, ("linear", "logistic", "softmax"), error=MechanismError)
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
