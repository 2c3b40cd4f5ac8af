"""Sums of a step of fair learning: gradients of a penalised loss, and predicted probabilities by group.

`AttributeGradients` sums over rows with public features and labels the part due to a secret attribute. A classifier
gives a public row of features x and label y the probabilities F(x), and a penalty adds <a_s, F(x)> to its loss, s being
its secret group. Two sums depend on s: the gradient of that penalty, and the sum of F by group. Their public part is
that of a row of unknown group, the mean over all groups; the question is about the rest,

    (J' (a_s - mean of a)) x         and         F at the row's own group, less F / K at each of the K groups,

J being the derivative of F by the logits. The first is clipped. The second has the length |F| sqrt(1 - 1/K), and |F| is
at most 1, so sqrt(1 - 1/K) is its clip, and nothing is lost. When s alone changes, the first moves by at most twice its
clip, and the second by |F| sqrt(2), which is at most twice its own.

Why the public part is taken off. On a secret Poisson sample a row that takes part adds its whole vector, and one that
does not adds nothing, so what noise has to hide is the vector's length, and not only what s changes of it. Any part of
known and unbounded length, such as the gradient of the loss, would show who takes part, and undo what sampling gains.
(Paper 004 and its code add the loss of the very same batch, unclipped.) Taken over public rows, which are no secret
sample, it costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_clique
from stratsynth.questions.reading import Clique
from stratsynth.questions.sums import design
from stratsynth.questions.sums.base import GRID, Block, Floats, Ints, Sum
from stratsynth.questions.sums.design import Design
from stratsynth.questions.sums.gradients import check_models, finite
from stratsynth.questions.sums.kernel import (
    THETA,
    by_feature,
    cells_of,
    clip_gradients,
    exp_of,
    logits_of,
    sum_gradients,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions.sums.perrow import PerRowGradients
    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

MOST_CELLS = 2**16
"""Largest number of cells that a row's predicted probabilities are added up in."""
FEW = 64
"""Number of cells up to which sums by cell are a matrix product with one-hot cells."""


@known
@dataclass(frozen=True, eq=False)
class FairGradients(Sum):
    """Two blocks for each of several models, F being the probabilities that a model gives to a row's classes.

    The gradient by the coefficients of  log loss + <slopes of the row's cell, F>,  clipped as one vector: what a
    penalty that is linear in F adds is in the same clip as the loss.

    The sum of F in each cell. A row adds F to its own cell and nothing to others; F is not negative and adds up to at
    most 1, so its norm is at most 1, and exchanging a row moves the sum by at most sqrt(2). Whatever is linear in
    these sums, such as the gradient of that penalty by the penalty's own numbers, follows without another question.

    With `decided`, that block adds up decisions in place of F: 1 for the row's likeliest class, 0 for others.
    """

    design: Design
    target: str
    link: Literal["logistic", "softmax"]
    thetas: NDArray[np.float64]
    """Coefficients: one row per model and one column per feature; for `softmax` a third axis, one entry per class."""
    clip: float
    """Clip of a row's gradient, in the L2 norm."""
    by: Clique = ()
    """Columns whose levels, fully crossed, are the cells; none if nothing is added to the loss."""
    slopes: NDArray[np.float64] | None = None
    """Public numbers: one axis for models, one for each column of `by`, and one for classes."""
    decided: bool = field(default=False, metadata={"digest": False})
    """True to add up decisions by cell; earlier versions had no such sums."""

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: design unsound in `schema`, no classes, unfit arrays; Unsupported: cells."""
        what = "fair gradients"
        check_models(what, self, schema, ("logistic", "softmax"))
        check_slopes(what, self, schema, len(self.thetas))

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but values of coefficients and slopes, which earlier answers give."""
        flag = ("decided",) if self.decided else ()
        return (
            "fair gradients", self.design, self.target, self.link, self.thetas.shape, f"{self.clip:.9g}", self.by, *flag
        )  # fmt: skip

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return a tuple by `schema`: by model in turn a `Block` for its gradient, with cells one for probabilities."""
        cells = schema.cells(self.by) * schema.size(self.target) if self.by else 0
        return _blocks(len(self.thetas), self.thetas[0].size, self.clip, cells)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list, flat int sums a model, coded rows `which`: gradients; with slopes F or decisions by cell."""
        x, reach = design.integer_features(self.design, rows, which)
        levels = rows.codes[self.target][which].astype(np.intp)
        cell = cells_of(self.by, rows, which) if self.slopes is not None else None
        logits = logits_of(x, self.design, by_feature(self.thetas))
        residuals, steep, units = predicted(self.link, logits, len(self.thetas), cell, self.slopes)
        # Derivative of the log loss by the logits: p - [y = k].
        if self.link == "logistic":
            residuals -= levels
        else:
            residuals[levels, :, np.arange(len(levels))] -= 1
        if steep is not None:
            residuals += steep
        gradients = sum_gradients(clip_gradients(residuals, reach, self.clip), x)
        if cell is None or units is None:
            return gradients
        if self.decided:
            units = decisions(logits, len(self.thetas))
        sums = added(units, cell, rows.schema.cells(self.by))
        return [block for pair in zip(gradients, sums, strict=True) for block in pair]


@lru_cache(maxsize=64, typed=True)  # every step of a fit asks for them many times
def _blocks(models: int, size: int, clip: float, cells: int) -> tuple[Block, ...]:
    gradient = Block(size, clip)
    if not cells:
        return (gradient,) * models
    return (gradient, Block(cells, 1.0, exchange=math.sqrt(2))) * models


def check_slopes(
    what: str, query: FairGradients | AttributeGradients | PerRowGradients, schema: Schema, *models: int
) -> None:
    """Raise MechanismError on `what`: slopes of `query` not finite, one of `models`, a cell of `schema`, class."""
    by, slopes = query.by, query.slopes
    if (slopes is None) != (not by):
        raise MechanismError(f"{what}: `by` and `slopes` go together.")
    if slopes is not None:
        check_clique(what, by, schema)
        if schema.cells(by) > MOST_CELLS:
            raise Unsupported(f"{what}: {', '.join(by)} have {schema.cells(by):,} cells, too many.")
        shape = (*models, *schema.shape(by), schema.size(query.target))
        if not finite(slopes) or slopes.shape != shape:
            raise MechanismError(f"{what}: slopes must be finite, of shape {shape}: one a cell of `by` and class.")


def predicted(
    link: str, logits: Floats, models: int, cell: NDArray[np.intp] | None, slopes: Floats | None
) -> tuple[Floats, Floats | None, Ints | None]:
    """Return probabilities F, derivatives of slopes . F by logits, and F as integers; the latter None without slopes.

    Axes: class, model and row. F is in units of 1 / GRID, and a row's add up to at most GRID. Without slopes, only the
    probabilities are returned.

    Args:
        link: `logistic`, with one logit and two classes in F, or `softmax`.
        logits: One line per model and class.
        models: Number of models.
        cell: Index of each row's cell.
        slopes: Public numbers: one axis for models, those of the cells, and one for classes.
    """
    if slopes is not None:
        slopes = slopes.reshape(models, -1, slopes.shape[-1])
    unit = 1 / (design.UNIT * THETA)  # a power of 2: exact
    p: Floats
    if link == "logistic":
        # p of the second level from exp(-|z|) of the table, which never overflows.
        small = exp_of(np.abs(logits) * unit)
        p = np.where(logits < 0, small, GRID) / (small + GRID)
        if slopes is None:
            return p[None], None, None
        second = np.trunc(p * GRID).astype(np.int64)
        steep = p * (1 - p) * (slopes[:, :, 1] - slopes[:, :, 0])[:, cell]
        return p[None], steep[None], np.stack([GRID - second, second])
    each = np.moveaxis(logits.reshape(models, -1, logits.shape[-1]), 1, 0)
    # Softmax relative to the largest logit: exponents are at most 0.
    weights = exp_of((each.max(axis=0) - each) * unit)
    whole = weights.sum(axis=0)
    p = weights / whole
    if slopes is None:
        return p, None, None
    slopes = np.moveaxis(slopes, 2, 0)[:, :, cell]
    # Derivative of <a, F> by z_k: p_k (a_k - sum_m p_m a_m).
    mean = np.zeros_like(p[0])
    for share, slope in zip(p, slopes, strict=True):
        mean += share * slope
    return p, p * (slopes - mean), weights * GRID // whole


def decisions(logits: Floats, models: int) -> Ints:
    """Return GRID for a row's likeliest class, the first of equals, and 0 for others. Axes: class, model and row.

    `logits` have a line per model, or for softmax per model and class; those of two classes are of the second.
    """
    each = logits.reshape(models, -1, logits.shape[-1])
    chosen = (each[:, 0] > 0).astype(np.intp) if each.shape[1] == 1 else each.argmax(axis=1)
    found: Ints = (np.arange(max(2, each.shape[1]))[:, None, None] == chosen) * np.int64(GRID)
    return found


def added(units: Ints, cell: NDArray[np.intp], cells: int) -> list[Ints]:
    """Return a list, a flat array [cell, class] a model: sums of `units` [class, model, row] by `cell`, exact."""
    classes, models, rows = units.shape
    if cells <= FEW:
        here = np.zeros((rows, cells))
        here[np.arange(rows), cell] = 1.0
        found = (units.reshape(-1, rows).astype(np.float64) @ here).reshape(classes, models, cells)
    else:
        found = np.array([[np.bincount(cell, one, cells) for one in line] for line in units])
    return [np.ascontiguousarray(found[:, m].T).astype(np.int64).ravel() for m in range(models)]


SHRUNK = 1 - 1e-12
"""Factor that makes multipliers smaller by more than their rounding error."""


@known
@dataclass(frozen=True, eq=False)
class AttributeGradients(Sum):
    """Two blocks for each of several models, as the head of this file defines them."""

    design: Design
    target: str
    link: Literal["logistic", "softmax"]
    thetas: NDArray[np.float64]
    """Coefficients: one row per model and one column per feature; for `softmax` a third axis, one entry per class."""
    clip: float
    """Clip of the group's part of a row's gradient, in the L2 norm."""
    groups: Clique
    """Secret columns whose levels, fully crossed, are the groups."""
    given: Clique
    """Columns within whose levels groups are compared, such as the target; none for a comparison of all."""
    slopes: NDArray[np.float64]
    """a: one axis for models, one for each column of `groups` and of `given`, and one for classes."""

    @property
    def by(self) -> Clique:
        """Names of the columns, secret ones first, whose fully crossed levels are the cells."""
        return (*self.groups, *self.given)

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: design unsound in `schema`, no classes, shapes; Unsupported: one group, size."""
        what = "attribute gradients"
        check_models(what, self, schema, ("logistic", "softmax"))
        check_clique(what, self.groups, schema)
        if schema.cells(self.groups) < 2:
            raise MechanismError(f"{what}: there is one group only.")
        check_slopes(what, self, schema, len(self.thetas))

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but coefficients, slopes and clip, which earlier answers may give."""
        return ("attribute gradients", self.design, self.target, self.link, self.thetas.shape, self.groups, self.given)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return a tuple, two `Block`s a model by the schema: secret part of gradient, and of probabilities by cell."""
        gradient = Block(self.thetas[0].size, self.clip)
        sums = Block(schema.cells(self.by) * schema.size(self.target), reach(schema.cells(self.groups)))
        return (gradient, sums) * len(self.thetas)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list, two int arrays a model, over coded rows `which`: clipped gradients; probabilities by cell."""
        x, reached = design.integer_features(self.design, rows, which)
        cell, groups = cells_of(self.by, rows, which), rows.schema.cells(self.groups)
        logits = logits_of(x, self.design, by_feature(self.thetas))
        _, residuals, units = predicted(self.link, logits, len(self.thetas), cell, _contrasts(self, groups))
        assert residuals is not None and units is not None  # noqa: S101, PT018 - there are slopes
        gradients = sum_gradients(clip_gradients(residuals, reached, self.clip), x)
        sums = _by_cell(units, cell, groups, rows.schema.cells(self.by))
        return [block for pair in zip(gradients, sums, strict=True) for block in pair]


def reach(groups: int) -> float:
    """Return sqrt(1 - 1/K) for K groups: the largest norm of a row's part in the sums of probabilities."""
    return math.sqrt(1 - 1 / groups)


def _contrasts(query: AttributeGradients, groups: int) -> Floats:
    """Return `AttributeGradients`' slopes less their mean over `groups`: (model, group, level of `given`, class)."""
    slopes = query.slopes.reshape(len(query.slopes), groups, -1, query.slopes.shape[-1])
    found: Floats = slopes - slopes.mean(axis=1, keepdims=True)
    return found


def _by_cell(units: Ints, cell: Ints, groups: int, cells: int) -> list[Ints]:
    """Return a list, a flat array a model by `cells`: sums of F at the own of K `groups`, less F / K, by `cell`.

    With R the block's clip, a row of units u adds trunc(u R) at its own group, and -trunc(u / (K R)) at each other
    one. Its squared length, R^2 + (K - 1) / (K R)^2 = 1 times that of u, is checked in integers; a row that fails
    would add nothing.
    """
    far = reach(groups)
    # u (e_s - 1/K), scaled to the clip: one coordinate at the own group, another at each other group.
    own = np.trunc(units * (far * SHRUNK)).astype(np.int64)
    other = np.trunc(units * (SHRUNK / (groups * far))).astype(np.int64)
    # The norm is checked in integers; a row that fails adds nothing.
    fits = (own * own).sum(axis=0) + (groups - 1) * (other * other).sum(axis=0) <= GRID * GRID
    own, other = own * fits, other * fits
    found = []
    # At each group: the part of its own rows, less the part of all other groups' rows.
    for mine, theirs in zip(added(own, cell, cells), added(other, cell, cells), strict=True):
        at = theirs.reshape(groups, -1)
        found.append(mine - (at.sum(axis=0, keepdims=True) - at).ravel())
    return found
