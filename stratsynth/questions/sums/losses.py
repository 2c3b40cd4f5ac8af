"""Losses and confusion counts of linear models, several at once: over all rows, or by group and label."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from stratsynth.checks import one_of
from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_clique, is_plain
from stratsynth.questions.sums import design
from stratsynth.questions.sums.base import GRID, Block, Floats, Ints, Norm, Sum, check_norm
from stratsynth.questions.sums.design import Design, check_target
from stratsynth.questions.sums.gradients import Link, check_models
from stratsynth.questions.sums.kernel import LAST, STEPS, THETA, by_feature, cells_of, exp_of, logits_of, residuals_of
from stratsynth.schema.transforms import exact_log

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.schema.rows import CodedRows, Which

Measure = Literal["squared", "log"]
MEASURES: tuple[Measure, ...] = ("squared", "log")


@known
@dataclass(frozen=True, eq=False)
class Losses(Sum):
    """The sum of each model's losses, a row's loss being cut at the clip: one number per model.

    A loss lies between 0 and the clip, so exchanging a row moves the sum by no more than adding one.
    """

    design: Design
    target: str
    link: Link
    thetas: NDArray[np.float64]
    """Coefficients, as of `Gradients`."""
    clip: float
    """Largest loss of a row: larger ones are cut to it."""
    measure: Literal["squared", "log"] = "squared"
    """Loss: "squared", the squared residuals of all levels' probabilities together for `softmax`; or "log", not for
    `linear`."""

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: models unfit for `schema`, unknown measure, log loss of a linear model."""
        check_models("losses", self, schema)
        one_of("losses: measure", self.measure, ("squared", "log"), error=MechanismError)
        if self.measure == "log" and self.link == "linear":
            raise MechanismError("losses: the log loss is that of a logistic or softmax model.")

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but the values of coefficients, which earlier answers give."""
        return "losses", self.design, self.target, self.link, self.thetas.shape, f"{self.clip:.9g}", self.measure

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return a `Block` of one number per model, for any `schema`: sensitivity is clip for all neighbours."""
        return (Block(1, self.clip, exchange=1.0),) * len(self.thetas)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list, an array of one int a model: the sum of losses of coded rows `which`, in clip / GRID."""
        return [np.array([model.sum()]) for model in loss_units(self, rows, which)]


@known
@dataclass(frozen=True, eq=False)
class GroupLosses(Sum):
    """Sums of losses by group and label, a row's being cut at the clip: one block for each logistic model.

    The coordinates of a block are the cells of `by` x label, row-major. Whatever the coefficients, a record adds to
    exactly one of them, and a number between 0 and the clip. So adding one moves the block by at most the clip in the
    L2 norm; exchanging one moves one coordinate by at most the clip, or two by at most the clip each: sqrt(2) clip.
    """

    design: Design
    target: str
    """Categorical column of two levels, outside the design; the probability is that of the second."""
    thetas: NDArray[np.float64]
    """Coefficients: one row per model, one column per feature."""
    clip: float
    """Largest loss of a row: larger ones are cut to it."""
    measure: Measure = "squared"
    """Loss: `squared`, (p - y)^2; or `log`, the negative natural logarithm of the probability of the row's own
    label."""
    by: tuple[str, ...] = ()
    """Columns whose levels, fully crossed, are the groups; none for one group of all records."""
    link: ClassVar[Literal["logistic"]] = "logistic"

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: models unfit for `schema`, unknown measure, groups with the target."""
        check_models("group losses", self, schema)
        one_of("group losses: measure", self.measure, MEASURES, error=MechanismError)
        if self.by:
            check_clique("group losses", self.by, schema)
        if self.target in self.by:
            raise MechanismError(f"group losses: the target {self.target} is among the groups' columns.")

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but the values of coefficients, which earlier answers give."""
        return "group losses", self.design, self.target, self.thetas.shape, f"{self.clip:.9g}", self.measure, self.by

    def cells(self, schema: Schema) -> int:
        """Return an int, the number of coordinates of a block: 2 (labels) per cell of `by` in the schema."""
        return 2 * (math.prod(schema.shape(self.by)) if self.by else 1)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return a tuple, a `Block` a model, by `schema`: L2 sensitivity clip for add-remove, sqrt(2) x for replace."""
        return (Block(self.cells(schema), self.clip, math.sqrt(2)),) * len(self.thetas)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list, a flat int array a model: losses of coded rows `which` by group, label, up to GRID a row."""
        cell, size = cells_of((*self.by, self.target), rows, which), self.cells(rows.schema)
        # bincount adds in floats: at most 2^13 rows of at most 2^30 units each, so all partial sums are exact
        found = [np.bincount(cell, weights=units, minlength=size) for units in loss_units(self, rows, which)]
        return [sums.astype(np.int64) for sums in found]


def loss_units(query: Losses | GroupLosses, rows: CodedRows, which: Which) -> Ints:
    """Return a line of ints per model of a query: losses of coded rows `which`, cut at the clip, in clip / GRID."""
    x, _ = design.integer_features(query.design, rows, which)
    logits, models = logits_of(x, query.design, by_feature(query.thetas)), len(query.thetas)
    if query.measure == "log":
        losses = _log_losses(query, rows.codes[query.target][which].astype(np.intp), logits)
    else:
        residuals = residuals_of(query.link, query.target, rows, which, logits).reshape(models, -1, len(x))
        losses = np.zeros((models, len(x)))
        for level in range(residuals.shape[1]):  # one after another: a sum over an axis may be in any order
            losses += residuals[:, level] * residuals[:, level]
    # Cut to [0, clip] and rounded down: 0 to GRID units.
    share = np.clip(losses / query.clip, 0, 1)
    return np.asarray(np.trunc(np.where(np.isnan(share), 0.0, share) * GRID), np.int64)


def _log_losses(query: Losses | GroupLosses, levels: NDArray[np.intp], logits: Floats) -> Floats:
    """Return an array of a query's log losses, a line a model and a column a row, by integer logits and levels."""
    unit = 1 / (design.UNIT * THETA)
    if query.link == "logistic":
        margin = logits * (1 - 2.0 * levels) * unit  # of the wrong level over the right one
        depth = np.minimum(np.rint(np.abs(margin) * STEPS), LAST).astype(np.intp)
        return np.asarray(np.maximum(margin, 0.0) + _softplus()[depth] / GRID)
    each = logits.reshape(len(query.thetas), -1, len(levels))
    likeliest = each.max(axis=1)
    weights = np.zeros(likeliest.shape, np.int64)
    for level in range(each.shape[1]):
        weights += exp_of((likeliest - each[:, level]) * unit)
    own = each[:, levels, np.arange(len(levels))]
    return np.asarray((likeliest - own) * unit + exact_log(weights / GRID))


@cache
def _softplus() -> Ints:
    """Return the table of log(1 + exp(-i / STEPS)) in units of 1 / GRID."""
    return np.array([round(math.log1p(math.exp(-i / STEPS)) * GRID) for i in range(LAST + 1)], np.int64)


MOST = 1 << 22
"""Largest number of rows times classifiers that are computed at a time."""


@known
@dataclass(frozen=True, eq=False)
class Confusions(Sum):
    """Numbers of records by group, label and prediction, one block for each linear classifier.

    A classifier predicts the second level of `target` if x . theta > 0; with a coefficient vector for each level, the
    level of the largest x . theta, the first of equals. The coordinates of its block are the cells of `by` x label x
    prediction, row-major. Whatever its coefficients, a record enters exactly one of them, with 1: so adding one moves
    the block by 1 in the L2 norm and the L1 norm, and exchanging one moves two coordinates by 1, which is sqrt(2) in
    the L2 norm and 2 in the L1 norm, or none.
    """

    design: Design
    target: str
    """Categorical column outside the design, of two levels, or of as many as the coefficients' third axis has."""
    thetas: NDArray[np.float64]
    """Coefficients: one row per classifier, one column per feature; a third axis for more than two levels."""
    by: tuple[str, ...] = ()
    """Columns whose levels, fully crossed, are the groups; none for one group of all records."""
    norm: Norm = field(default="l2", metadata={"digest": False})
    """Norm of the sensitivity: `l2` for Gaussian noise, `l1` for Laplace noise."""

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: design, target, groups unsound in `schema`, unsound coefficients.

        The target is a categorical column outside features and groups; coefficients are finite float64, one row per
        classifier and one column per feature, and for more than two levels one layer per level.
        """
        check_target("confusions", self.design, self.target, schema, numeric=False)
        check_norm("confusions", self.norm)
        if self.by:
            check_clique("confusions", self.by, schema)
        if self.target in self.by:
            raise MechanismError(f"confusions: the target {self.target} is among the groups' columns.")
        size, levels, thetas = len(self.design.names(schema)), schema.size(self.target), self.thetas
        shape = (size,) if levels == 2 else (size, levels)
        fits = levels > 1 and is_plain(thetas) and thetas.ndim > 1 and len(thetas) and thetas.shape[1:] == shape
        if not fits or not np.isfinite(thetas).all():
            raise MechanismError(f"confusions: thetas must be finite, one entry a classifier, each of shape {shape}.")

    def replayed(self) -> Any:
        """Return a tuple for the journal key: all but the values of coefficients, which earlier answers give."""
        kept = "confusions", self.design, self.target, self.thetas.shape, self.by
        return kept if self.norm == "l2" else (*kept, self.norm)

    def cells(self, schema: Schema) -> int:
        """Return an int, the number of coordinates of a block: label x prediction, per cell of `by` in `schema`."""
        return int(schema.size(self.target) ** 2 * (math.prod(schema.shape(self.by)) if self.by else 1))

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return one `Block` per classifier, by `schema`: sensitivity 1, and sqrt(2) or in the L1 norm 2 exchanged."""
        return (Block(self.cells(schema), 1.0, math.sqrt(2) if self.norm == "l2" else 2.0),) * len(self.thetas)

    def exact(self, rows: CodedRows, which: Which) -> list[Ints]:
        """Return a list, a flat int array a classifier: coded rows `which` by group, label, prediction, times GRID."""
        x, _ = design.integer_features(self.design, rows, which)
        found: list[Ints] = []
        cell, size = cells_of((*self.by, self.target), rows, which), self.cells(rows.schema)
        levels, lines = rows.schema.size(self.target), math.prod(self.thetas.shape[2:])
        together = max(1, MOST // max(len(x) * lines, 1))
        # A few classifiers at a time: rows x classifiers is at most MOST.
        for start in range(0, len(self.thetas), together):
            logits = logits_of(x, self.design, by_feature(self.thetas[start : start + together]))  # whole: exact
            each = logits.reshape(-1, lines, len(x))
            said = each[:, 0] > 0 if lines == 1 else each.argmax(axis=1)
            first = size * np.arange(len(said))[:, None]
            # The cell times the levels plus the prediction, in a range of numbers for each classifier.
            counts = np.bincount((first + levels * cell + said).ravel(), minlength=size * len(said))
            found.extend(counts.reshape(len(said), size) * GRID)
        return found
