"""Task of a fit, decided by schema and settings: design, target, groups, clip and rate. All of it is public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.predictors.descent import CURVATURE, RESIDUAL, largest_norm, rounded
from stratsynth.adapters.reductions.goals import (
    BOUNDED,
    MULTICLASS,
    PARITIES,
    RATES,
    TWO_LEVELED,
    bounded_places,
    measured_by,
)
from stratsynth.adapters.shared.settings import check_columns, design_of, several_levels, target_of, two_levels
from stratsynth.errors import Unsupported, UsageError
from stratsynth.questions import Coded, Confusions, Gradients, GroupLosses
from stratsynth.questions.sums.gradients import Link
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.adapters.reductions.mechanism import Reductions
    from stratsynth.mechanisms import Public
    from stratsynth.questions.sums.losses import Measure
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

MOST_GROUPS = 1_000
"""Largest number of groups: parities compare all pairs of them."""


@dataclass(frozen=True, eq=False)
class ReductionsProblem:
    """Task of one `reductions` fit, made of schema, settings and declared sizes only: no row enters."""

    settings: Reductions
    schema: Schema
    target: str
    design: Coded
    by: tuple[str, ...]
    """Columns of the groups that vary here."""
    labels: tuple[str, ...]
    """Labels of the groups; one empty label where everybody is one group."""
    sizes: Floats | None
    """Public numbers of records by group and label; None where they are counted with noise."""
    clip: float
    rate: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of tables by group and label, a tuple: levels of each column of `by`, then of the target."""
        return self.schema.shape((*self.by, self.target))

    @property
    def features(self) -> tuple[str, ...]:
        """Tuple of names of the design's features, one a coefficient, intercept `1` first."""
        return self.design.names(self.schema)

    @property
    def movable(self) -> NDArray[np.bool_]:
        """Mask of the features (one a coefficient) that are constant in a group: intercept and the groups' levels."""
        groups = {f"{name}={level}" for name in self.by for level in self.schema.levels(name)}
        return np.array([name == "1" or name in groups for name in self.features])

    @property
    def levels(self) -> tuple[str, ...]:
        """Tuple of the names of the target's levels."""
        return tuple(self.schema.levels(self.target))

    @property
    def coefficients(self) -> tuple[int, ...]:
        """Shape of a classifier's coefficients: (features,), or (features, levels) for more than two levels."""
        size, levels = len(self.features), len(self.levels)
        return (size,) if levels == 2 else (size, levels)

    def confusions(self, thetas: Floats, *, pure: bool = False) -> Confusions:
        """Return the question `Confusions` for counts by group, label and prediction of each classifier.

        `thetas` is an array of coefficients, an entry a classifier. With `pure`, a flag, counts are priced by the L1
        norm, for pure epsilon.
        """
        return Confusions(self.design, self.target, rounded(thetas), self.by, "l1" if pure else "l2")

    def losses(self, thetas: Floats, measure: Measure) -> GroupLosses:
        """Return the question `GroupLosses` for sums of `measure` losses by group and label, of each classifier.

        `thetas` is an array of coefficients, an entry a classifier.
        """
        clip = self.settings.loss_clip if measure == "log" else 1.0
        return GroupLosses(self.design, self.target, rounded(thetas), clip, measure, self.by)

    def gradients(self, theta: Floats, parts: Floats, flips: NDArray[np.bool_] | None) -> Gradients:
        """Return the question `Gradients` for the gradient of log loss at coefficients `theta`, rows weighted by cell.

        Cells are groups x labels; the arrays `parts` and `flips` have one entry a cell. `parts` are the weights; rows
        of cells with True in `flips` count with the other label; None for more than two levels.
        """
        by, thetas = (*self.by, self.target), rounded(theta[None])
        turned = None if flips is None else flips.reshape(self.shape)
        link: Link = "softmax" if flips is None else "logistic"
        return Gradients(self.design, self.target, link, thetas, self.clip, by, parts.reshape(self.shape), turned)


def task_of(settings: Reductions, public: Public) -> ReductionsProblem:
    """Return the `ReductionsProblem` of `Reductions` settings and public facts.

    Unsupported: unfit columns, target, constraints, sizes, groups. Refused too are candidates by thresholds, where
    these are used, of anything but one numeric feature.
    """
    schema, who = public.schema, settings.name
    taken = (*settings.features, *settings.groups)
    check_columns(who, taken, public)
    _refuse_numeric(settings, schema)
    fits, what = (several_levels, "of at least two levels") if settings.target else (two_levels, "of two levels")
    target = target_of(who, settings.target, taken, public, fits, f"a categorical column {what}")
    _check_levels(settings, len(schema.levels(target)))
    by = tuple(name for name in settings.groups if name in schema.columns)
    if by and math.prod(schema.shape(by)) > MOST_GROUPS:
        raise Unsupported(f"{who}: {' x '.join(by)} has more than {MOST_GROUPS:,} groups; use fewer columns.")
    labels = tuple("|".join(levels) for levels in product(*(schema.levels(name) for name in by)))
    design = design_of(who, settings.features, target, settings.groups, public, settings.reference)
    columns = design.columns
    _check_constraints(settings, labels, schema.levels(target))
    one_number = len(columns) == 1 and isinstance(schema.column(columns[0]), Numeric) and len(design.names(schema)) == 2
    if settings.candidates == "thresholds" and settings.chooses and not one_number:
        raise Unsupported(f'{who}: candidates = "thresholds" needs one feature, numeric and never absent.')
    norm, link = largest_norm(design), "logistic" if len(schema.levels(target)) == 2 else "softmax"
    clip = settings.clip or RESIDUAL[link] * norm / 2
    rate = settings.rate or 1 / (CURVATURE[link] * norm**2)
    task = ReductionsProblem(
        settings, schema, target, design, by, labels, _public_sizes(settings, schema, target, labels), clip, rate
    )
    task.confusions(np.zeros((1, *task.coefficients))).check(schema)
    return task


def _refuse_numeric(settings: Reductions, schema: Schema) -> None:
    """Raise Unsupported if the target of `Reductions` settings is numeric in `schema`; the message names a remedy."""
    if settings.target in schema.columns and isinstance(schema.column(settings.target), Numeric):
        raise Unsupported(
            f"{settings.name}: the target must be categorical, and {settings.target} is numeric. group_regression fits "
            "least squares over groups (objective, group_weights, loss_bounds): squared losses are convex, so that a "
            "mixture of regressions to draw from, as fitted here, loses to the mean of them."
        )


def _check_levels(settings: Reductions, levels: int) -> None:
    """Raise Unsupported if a target has over two `levels` and `Reductions` settings have goals of two or thresholds."""
    named = (settings.objective, *settings.constraints)
    two = [name for name in named if name in RATES or measured_by(name) or name in TWO_LEVELED]
    if levels > 2 and two:
        raise Unsupported(
            f"{settings.name}: {two[0]} is of a target of two levels, and {settings.target} has {levels}. Of more "
            f"there are {', '.join(MULTICLASS)}; fermi has a penalty of demographic parity for several levels."
        )
    if levels > 2 and settings.candidates == "thresholds" and settings.chooses:
        raise Unsupported(f'{settings.name}: candidates = "thresholds" tell two levels apart, and there are {levels}.')


def _check_constraints(settings: Reductions, labels: tuple[str, ...], levels: Sequence[str]) -> None:
    """Raise Unsupported on `Reductions` settings that compare fewer than two of `labels`, the groups'.

    UsageError for bounds by names that are none of these (nor group and level, such as `F|yes`).
    """
    who = settings.name
    for name, bound in settings.constraints.items():
        if (name in PARITIES or name == "gini") and len(labels) < 2:
            raise Unsupported(f"{who}: {name} compares groups; name the columns of at least two with `groups`.")
        if isinstance(bound, Mapping):
            places = bounded_places(name, labels, levels, levels) if name in BOUNDED else {}
            for label in bound:
                if label not in places or not label:
                    known = ", ".join(labels[:5]) or "none"
                    one = "|".join(filter(None, (labels[0], levels[0])))
                    raise UsageError(
                        f"{who}: {name} names {label!r}, which is not a group; groups are {known}, and a group with "
                        f"one label is named as {one!r}."
                    )


def _public_sizes(settings: Reductions, schema: Schema, target: str, labels: tuple[str, ...]) -> Floats | None:
    """Return an array, groups x levels of `target` in `schema`: numbers of records in `Reductions` settings, or None.

    UsageError for unknown and missing ones of `labels`; Unsupported for groups without a record of a level whose rates
    a parity compares.
    """
    if not settings.sizes:
        return None
    who, levels = settings.name, schema.levels(target)
    names = ["|".join(filter(None, (label, level))) for label in labels for level in levels]
    for name in settings.sizes:
        if name not in names:
            raise UsageError(f"{who}: sizes names {name!r}, which is no group with its label; one is {names[0]!r}.")
    lacking = [name for name in names if name not in settings.sizes]
    if lacking:
        raise UsageError(f"{who}: sizes lacks {lacking[0]!r}; name every group with every label.")
    found = np.array([settings.sizes[name] for name in names], np.float64).reshape(len(labels), len(levels))
    needed = {loss for name in settings.constraints for loss in PARITIES.get(name, ())}
    for loss, k in (("false_positive", 0), ("false_negative", 1)):
        empty = [label for label, size in zip(labels, found[:, k], strict=True) if size < 1]
        if loss in needed and empty:
            raise Unsupported(
                f"{who}: by the public sizes, group {empty[0]} has no record with {target} = {levels[k]}, so its rate "
                "does not exist; merge the group with another, or leave the constraint out."
            )
    return found
