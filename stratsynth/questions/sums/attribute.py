"""Sums of a step of fair learning over rows with public features and labels: the part due to a secret attribute.

A classifier gives a public row of features x and label y the probabilities F(x), and a penalty adds <a_s, F(x)> to its
loss, s being its secret group. Two sums depend on s: the gradient of that penalty, and the sum of F by group. Their
public part is that of a row of unknown group, the mean over all groups; the question is about the rest,

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_clique
from stratsynth.questions.reading import Clique
from stratsynth.questions.sums import design
from stratsynth.questions.sums.base import Block, Sum
from stratsynth.questions.sums.clipping import GRID, Floats, Ints
from stratsynth.questions.sums.design import Design
from stratsynth.questions.sums.fairness import MOST_CELLS, added, check_classifiers, predicted
from stratsynth.questions.sums.gradients import finite
from stratsynth.questions.sums.kernel import by_feature, cells_of, clip_gradients, logits_of, sum_gradients

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

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
        check_classifiers(what, self, schema)
        classes = schema.size(self.target)
        check_clique(what, self.groups, schema)
        check_clique(what, self.by, schema)
        if schema.cells(self.groups) < 2:
            raise MechanismError(f"{what}: there is one group only.")
        if schema.cells(self.by) > MOST_CELLS:
            raise Unsupported(f"{what}: {', '.join(self.by)} have {schema.cells(self.by):,} cells, too many.")
        if not finite(self.slopes) or self.slopes.shape != (len(self.thetas), *schema.shape(self.by), classes):
            raise MechanismError(f"{what}: slopes must be finite, one a model, cell and class.")

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
