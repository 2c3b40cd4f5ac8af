"""Sums of a step of group-aware gradient descent: a penalised gradient, and group statistics for the next penalties."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.checks import check_integer, one_of
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_clique, check_positive, is_plain
from stratsynth.questions.reading import Clique
from stratsynth.questions.sums.base import GRID, Block, Floats, Ints, Sum, check_clip
from stratsynth.questions.sums.design import Design, check_target
from stratsynth.questions.sums.kernel import cells_of
from stratsynth.questions.sums.networks import MOST_HIDDEN, MOST_OUTPUT, outputs
from stratsynth.questions.sums.penalised import Layers, RegressionGradients, boundary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

Statistic = Literal["tally", "boundary", "pulls", "excess"]
STATISTICS: tuple[Statistic, ...] = ("tally", "boundary", "pulls", "excess")
MOST_CELLS = 2**12
"""Largest number of groups."""


@known
@dataclass(frozen=True, eq=False)
class Mitigated(Sum):
    """One model's clipped gradient, and sums by group over the same rows; g is the gradient of a row's log loss.

    The first block is the gradient by the coefficients theta of

        log loss + `noise_slopes` of the row's group * h + `clip_slopes` of its group * <g, `direction`>

    h = 1 - sum over classes of p_k^2 being near to the trace of the loss's Hessian (Theorem 5 of paper 001). Slopes and
    direction are public numbers, so that each row's gradient is of that row alone; it is clipped as a whole.

    Further blocks, in the order of `statistics`, all by group but the last:

        tally      the number of rows with |g| <= `threshold`, and with more: a row adds 1 to one of them
        boundary   the sum of h, from 0 to 1 - 1 / classes
        pulls      the sum of g, clipped to `wide`
        excess     the sum of g - g clipped to `clip`, itself clipped to `wide` - `clip`; of all rows together

    `network` has one hidden layer, as `NetworkGradients` has: theta is then one vector, the hidden weights unit after
    unit and then the output weights, and a row's gradient by all of them is one vector too.

    A row adds numbers that are not negative to one group's tally and boundary, so exchanging it moves them by at most
    sqrt(2) of what a row can add.
    """

    design: Design
    target: str
    link: Literal["logistic", "softmax", "network"]
    theta: NDArray[np.float64]
    """Coefficients: one per feature, one row per feature and one column per class for `softmax`, or all weights of a
    network."""
    clip: float
    """Clip of a row's gradient of loss and penalties together, in the L2 norm."""
    by: Clique = ()
    """Columns whose levels, fully crossed, are the groups; none for one group of all records."""
    statistics: tuple[Statistic, ...] = ()
    threshold: float = 1.0
    wide: float = 1.0
    """Clip of the statistics of gradients, in the L2 norm."""
    noise_slopes: NDArray[np.float64] | None = None
    """Factor of h in the loss of each group's rows, in the shape of the groups' crossing; None for 0."""
    clip_slopes: NDArray[np.float64] | None = None
    """Factor of <g, direction> in the loss of each group's rows, in the shape of the groups' crossing; None for 0."""
    direction: NDArray[np.float64] | None = None
    """Vector in the shape of theta; required with `clip_slopes`."""
    cuts: NDArray[np.float64] | None = None
    """Clip of each group as a part of `clip`, from 0 to 1; None if all groups have `clip`."""
    hidden: int = 0
    """Number of hidden units of a network; 0 for other models."""

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: design, clip, target unfit for `schema`, statistics, arrays; Unsupported: size."""
        what = "mitigated"
        one_of(f"{what}: link", self.link, ("logistic", "softmax", "network"), error=MechanismError)
        check_target(what, self.design, self.target, schema, numeric=False)
        check_clip(what, self.clip)
        classes = schema.size(self.target)
        if classes < 2 or (self.link == "logistic" and classes != 2):
            raise MechanismError(f"{what}: {self.target} has {classes} levels, which {self.link} has no model for.")
        if self.by:
            check_clique(what, self.by, schema)
        if schema.cells(self.by) > MOST_CELLS:
            raise Unsupported(f"{what}: {', '.join(self.by)} have {schema.cells(self.by):,} groups, too many.")
        if [name for name in STATISTICS if name in self.statistics] != [*self.statistics]:
            raise MechanismError(f"{what}: statistics are among {', '.join(STATISTICS)}, in this order.")
        check_positive(f"{what}: threshold", self.threshold)
        check_clip(what, self.wide)
        if "excess" in self.statistics and not self.wide > self.clip:
            raise MechanismError(f"{what}: beyond a clip of {self.clip:g} there is nothing up to {self.wide:g}.")
        self._check_arrays(schema, classes)

    def _check_arrays(self, schema: Schema, classes: int) -> None:
        features = len(self.design.names(schema))
        shape = (features, *((classes,) if self.link == "softmax" else ()))
        if self.link == "network":
            check_integer("mitigated: hidden", self.hidden, 1, MOST_HIDDEN, error=MechanismError)
            last = (self.hidden + 1) * outputs(classes)
            if last > MOST_OUTPUT:
                raise Unsupported(f"mitigated: {last:,} output weights are too many; take fewer hidden units.")
            shape = (self.hidden * features + last,)
        elif self.hidden != 0:
            raise MechanismError("mitigated: hidden units are those of a network.")
        groups = schema.shape(self.by)
        if (self.direction is None) != (self.clip_slopes is None):
            raise MechanismError("mitigated: `clip_slopes` and `direction` go together.")
        for name, wanted in (
            ("theta", shape), ("direction", shape), ("noise_slopes", groups), ("clip_slopes", groups), ("cuts", groups),
        ):  # fmt: skip
            values = getattr(self, name)
            if values is None and name != "theta":
                continue
            if not is_plain(values) or values.shape != wanted or not np.isfinite(values).all():
                raise MechanismError(f"mitigated: {name} must be finite and of shape {wanted}.")
        if self.cuts is not None and not ((self.cuts >= 0) & (self.cuts <= 1)).all():
            raise MechanismError("mitigated: `cuts` are numbers from 0 to 1.")

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but coefficients, slopes, direction, cuts and clips."""
        shape = self.theta.shape, self.hidden
        return "mitigated", self.design, self.target, self.link, shape, self.by, self.statistics

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return a tuple of `Block`s, by `schema`: one for the gradient, then one for each of `statistics`."""
        size, groups = int(self.theta.size), schema.cells(self.by)
        found = {
            "tally": Block(2 * groups, 1.0, exchange=math.sqrt(2)),
            "boundary": Block(groups, 1 - 1 / schema.size(self.target), exchange=math.sqrt(2)),
            "pulls": Block(groups * size, self.wide),
            "excess": Block(size, self.wide - self.clip if "excess" in self.statistics else 1.0),
        }
        return (Block(size, self.clip), *(found[name] for name in self.statistics))

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list of int arrays: sums of gradient, then each statistic, coded rows `which`, in clip / GRID."""
        model = (Layers if self.link == "network" else RegressionGradients)(self, rows, which)
        norms, groups = model.norms, rows.schema.cells(self.by)
        cell = cells_of(self.by, rows, which) if self.by else np.zeros(len(norms), np.intp)
        # First block: loss and penalties together, clipped to the clip of the row's group.
        bent = model.with_penalties(_of(self.noise_slopes, cell), _of(self.clip_slopes, cell))
        found = [model.total(model.integer_vectors(bent, self.clip, _of(self.cuts, cell)))]
        for name in self.statistics:
            if name == "tally":
                counts = np.bincount(2 * cell + (norms > self.threshold), minlength=2 * groups)
                found.append(counts.astype(np.int64) * GRID)
            elif name == "boundary":
                top = 1 - 1 / rows.schema.size(self.target)
                # h is at most 1 - 1 / classes, its clip.
                share = np.trunc(np.clip(boundary(model.chances) / top, 0, 1) * GRID)
                found.append(np.bincount(cell, share, groups).astype(np.int64))  # whole numbers below 2^53: exact
            elif name == "pulls":
                pulls = model.integer_vectors(model.plain, self.wide)
                found.append(np.concatenate([model.total(pulls, cell == k) for k in range(groups)]))
            else:
                # g less its clipped part: g max(0, 1 - clip / |g|).
                beyond = np.maximum(1 - self.clip / np.maximum(norms, self.clip), 0.0)
                found.append(model.total(model.integer_vectors(model.plain * beyond, self.wide - self.clip)))
        return found


def _of(by_group: Floats | None, cell: NDArray[np.intp]) -> Floats | None:
    """Return an array with each row's number in `by_group`, found by the index of its group, `cell`; None for None."""
    return None if by_group is None else np.asarray(by_group.ravel()[cell])
