"""What gradient descent asks of rows: clipped gradients of several models at once, and their losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.checks import one_of
from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_clique, fixed, is_plain
from stratsynth.questions.queries import Block, Design, Query, check_clip, check_target

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions.grouped import GroupLosses
    from stratsynth.schema import Schema

Link = Literal["linear", "logistic", "softmax"]


@known
@dataclass(frozen=True, eq=False)
class Gradients(Query):
    """The gradients of a generalised linear model's loss at several coefficient vectors, one block each.

    `linear`: (x.theta - y) x, of half the squared error. `logistic`: (p - y) x, of the log loss, for a target of two
    levels, y being the second. `softmax`: (p_k - [y = k]) x for each level k of the target. Each row's gradient is
    clipped, and then, where `by` names columns, multiplied by the part that `parts` has for the row's cell: what a row
    can contribute never grows by that.
    """

    design: Design
    target: str
    link: Link
    thetas: NDArray[np.float64]
    """Coefficients: one row a model, one column a feature; for `softmax` a third axis for the target's levels."""
    clip: float
    """The most L2 norm of a row's gradient, before `parts`."""
    by: tuple[str, ...] = ()
    """The columns whose levels, fully crossed, are the cells of `parts`; none where all rows count alike."""
    parts: NDArray[np.float64] | None = None
    """A public number from 0 to 1 for each cell of `by`, in the shape of their crossing."""
    flips: NDArray[np.bool_] | None = None
    """For `logistic`: the cells of `by` whose rows count as if they had the other level of the target, in the same
    shape; a loss with a negative weight, up to a constant. Clip and parts hold as they do for all rows."""

    def __post_init__(self) -> None:
        """Keep copies of the arrays that nobody can change."""
        object.__setattr__(self, "thetas", fixed(self.thetas))
        object.__setattr__(self, "parts", fixed(self.parts))
        object.__setattr__(self, "flips", fixed(self.flips, "b"))

    @property
    def theta(self) -> NDArray[np.float64]:
        """One row a feature, one column a model, or a level of a model."""
        return by_feature(self.thetas)

    def check(self, schema: Schema) -> None:
        """As for `Glm`, and parts that never make a row count for more."""
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
        """All but the values of coefficients and parts, which come from earlier answers."""
        kept = "gradients", self.design, self.target, self.link, self.thetas.shape, f"{self.clip:.9g}", self.by
        return kept if self.flips is None else (*kept, "flips")

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """One block a model."""
        return (Block(self.thetas[0].size, self.clip),) * len(self.thetas)


@known
@dataclass(frozen=True, eq=False)
class Losses(Query):
    """The sum of each model's losses, a row's being cut at the clip: one number a model.

    A loss lies between 0 and the clip, so exchanging a row moves the sum by no more than adding one.
    """

    design: Design
    target: str
    link: Link
    thetas: NDArray[np.float64]
    """Coefficients, as of `Gradients`."""
    clip: float
    """The most that a row's loss can be."""
    measure: Literal["squared", "log"] = "squared"
    """The squared residual, of all levels' probabilities together for `softmax`; or the log loss, not for `linear`."""

    def __post_init__(self) -> None:
        """Keep a copy of the coefficients that nobody can change."""
        object.__setattr__(self, "thetas", fixed(self.thetas))

    @property
    def theta(self) -> NDArray[np.float64]:
        """One row a feature, one column a model, or a level of a model."""
        return by_feature(self.thetas)

    def check(self, schema: Schema) -> None:
        """As for `Glm`."""
        check_models("losses", self, schema)
        one_of("losses: measure", self.measure, ("squared", "log"), error=MechanismError)
        if self.measure == "log" and self.link == "linear":
            raise MechanismError("losses: the log loss is that of a logistic or softmax model.")

    def replayed(self) -> Any:
        """All but the coefficients' values, which come from earlier answers."""
        return "losses", self.design, self.target, self.link, self.thetas.shape, f"{self.clip:.9g}", self.measure

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """One number a model."""
        return (Block(1, self.clip, exchange=1.0),) * len(self.thetas)


def by_feature(thetas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients of several models as one table: one row a feature, the models' columns side by side."""
    return np.moveaxis(thetas, 1, 0).reshape(thetas.shape[1], -1)


def check_models(what: str, query: Gradients | Losses | GroupLosses, schema: Schema) -> None:
    """A sound design, a target of the right kind, a clip, and finite coefficients for each of its features."""
    one_of(f"{what}: link", query.link, ("linear", "logistic", "softmax"), error=MechanismError)
    check_target(what, query.design, query.target, schema, numeric=query.link == "linear")
    check_clip(what, query.clip)
    if query.link == "logistic" and schema.size(query.target) != 2:
        raise MechanismError(f"{what}: logistic needs a target of two levels; {query.target} has not.")
    size, thetas = len(query.design.names(schema)), query.thetas
    shape = (size, schema.size(query.target)) if query.link == "softmax" else (size,)
    if not is_plain(thetas) or not len(thetas) or thetas.shape[1:] != shape or not np.isfinite(thetas).all():
        each = " x ".join(map(str, shape))
        raise MechanismError(f"{what}: thetas must be finite, one row a model and {each} columns.")


def check_parts(what: str, by: tuple[str, ...], parts: NDArray[np.float64] | None, schema: Schema) -> None:
    """A part for each cell of `by`, none of which makes a row count for more."""
    if (parts is None) != (not by):
        raise MechanismError(f"{what}: `by` and `parts` go together.")
    if parts is not None:
        check_clique(what, by, schema)
        if not is_plain(parts) or parts.shape != schema.shape(by) or not np.all((parts >= 0) & (parts <= 1)):
            raise MechanismError(f"{what}: `parts` are numbers from 0 to 1, one for each cell of `by`.")
