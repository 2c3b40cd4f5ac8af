"""Task of a fair classifier, decided by schema and settings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.adapters.predictors.defaults import AGAINST, MOMENTUM, MOST_STEPS, Pace, reach
from stratsynth.adapters.predictors.descent import Region, largest_norm
from stratsynth.adapters.predictors.regression import Regression
from stratsynth.adapters.shared.settings import check_columns, sampled
from stratsynth.errors import Unsupported, UsageError
from stratsynth.questions import Coded, FairGradients, PerRowGradients, PublicRows
from stratsynth.schema import Numeric
from stratsynth.schema.weight import ONE
from stratsynth.strata import crossing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Budget
    from stratsynth.adapters.fermi.mechanism import DPFermi
    from stratsynth.adapters.predictors.designed import Designed
    from stratsynth.mechanisms import Public
    from stratsynth.questions.sums.gradients import Link
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

LOGISTIC = 2
"""Number of levels of a target with one coefficient a feature; others have one a feature and level."""


@dataclass(frozen=True, eq=False)
class FermiProblem:
    """Task of one `fermi` fit, made of schema, settings and declared sizes only: no row enters."""

    settings: DPFermi
    schema: Schema
    target: str
    design: Coded
    names: tuple[str, ...]
    """Names of the features."""
    records: float | None
    """Declared number of records, times the weight of one."""
    sampling: float
    """Probability with which a record takes part in a step."""
    sizes: Floats | None
    """Public sizes: one row for each true class (one row for parity), one column a group; None if not public."""
    descent: Pace
    """Steps, clip, learning rate and momentum of the descent in the coefficients."""
    reach: float | None
    """Records times mu of the budget's Gaussian privacy; None where no size is declared."""

    @property
    def link(self) -> Literal["logistic", "softmax"]:
        """Link of the regression: `logistic` for a target of two levels, else `softmax`."""
        return "logistic" if self.classes == LOGISTIC else "softmax"

    @property
    def classes(self) -> int:
        """Number of levels of the target, the classes that are predicted."""
        return self.schema.size(self.target)

    @property
    def groups(self) -> int:
        """Number of groups: crossings of the levels of the groups' columns; 1 without such columns."""
        return self.schema.cells(self.settings.groups)

    @property
    def true_classes(self) -> int:
        """Number of true classes within which predictions shall not depend on the group; 1 for parity."""
        return self.classes if self.settings.criterion == "odds" else 1

    @property
    def pairs(self) -> int:
        """Number of pairs of groups."""
        return math.comb(self.groups, 2)

    @property
    def by(self) -> tuple[str, ...]:
        """Tuple of names of columns by whose cells sums are asked: the groups', and for odds the target last."""
        odds = (self.target,) if self.settings.criterion == "odds" else ()
        return (*self.settings.groups, *odds)

    @property
    def cells(self) -> int:
        """Number of cells of `by`."""
        return self.schema.cells(self.by)

    @property
    def open_columns(self) -> tuple[str, ...]:
        """Tuple of names of the columns taken as public under `protect = "sensitive"`: the features' and the target."""
        return (*self.design.columns, self.target)

    @property
    def counts(self) -> bool:
        """True if the first steps count records, by group or in all, because these numbers are not public."""
        if self.settings.protect == "sensitive":  # the number of records is public
            return self.sizes is None
        return self.records is None or (self.settings.evens_out and self.sizes is None)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one model's coefficients: (features,), or (features, classes) for `softmax`."""
        return (len(self.names), *((self.classes,) if self.link == "softmax" else ()))

    @property
    def title(self) -> str:
        """Text for readers: link, target and number of features."""
        return f"{self.link} regression of {self.target} on {len(self.names)} features"

    def start(self, models: int, rng: Generator) -> Floats:
        """Return coefficients of 0 for several models, an array models x features (x classes); `rng` is not used."""
        return np.zeros((models, *self.shape))

    def model(self, theta: Floats, facts: Mapping[str, Any]) -> Designed:
        """Return the `Designed` model, a Regression with the coefficients `theta`, an array, and facts by name."""
        return Regression(self.schema, self.design, self.target, self.link, theta, None, facts)

    def query(self, theta: Floats, slopes: Floats | None) -> FairGradients | PerRowGradients:
        """Return a step's question: gradients of each model and, with `slopes`, the penalty's and sums by cell.

        It is a `FairGradients`, a network's a `PerRowGradients`.

        Args:
            theta: The coefficients, an array with one entry a model.
            slopes: Slopes of the penalty by F, or None. Axes: model, the cells' columns, class.
        """
        by = () if slopes is None else self.by
        return FairGradients(self.design, self.target, self.link, theta, self.descent.clip, by, slopes)

    def decided(self, theta: Floats, slopes: Floats) -> FairGradients:
        """Return the question `FairGradients` of a step towards a wanted gap: gradients by `slopes`, decisions by cell.

        `theta` are the coefficients, an entry a model; `slopes` are as for `query`.
        """
        return FairGradients(
            self.design, self.target, self.link, theta, self.descent.clip, self.by, slopes, decided=True
        )

    def counting(self, theta: Floats) -> FairGradients | PerRowGradients:
        """Return the question for the loss's gradient and, by cell, sums that count records.

        `theta` is the array of coefficients, an entry a model. It is a `FairGradients`, a network's a
        `PerRowGradients`. Cells are those of `by`, or true classes without a penalty.
        """
        by = self.by if self.settings.evens_out else (self.target,)
        slopes = np.zeros((len(theta), *self.schema.shape(by), self.classes))
        return FairGradients(self.design, self.target, self.link, theta, self.descent.clip, by, slopes)

    @property
    def region(self) -> Region:
        """Region, a box or ball about 0, that the coefficients are projected into."""
        return Region(self.settings.region, self.settings.radius)

    @property
    def adversary_radius(self) -> float:
        """Largest Frobenius norm of the adversary's W: as set, or twice its norm at independence, sqrt(classes)."""
        return self.settings.adversary_radius or 2 * math.sqrt(self.classes)


def task_of(settings: DPFermi, public: Public, budget: Budget) -> FermiProblem:
    """Return the `FermiProblem` of `DPFermi` settings, public facts and budget.

    Unsupported for unfit columns, and groups of a stratum; UsageError for sizes that do not fit, and for settings that
    name neither a gap nor a penalty.
    """
    schema, who = public.schema, settings.name
    check_columns(who, (*settings.features, *settings.groups), public)
    for name in settings.groups:
        if name in public.constant:
            raise Unsupported(
                f"{who}: in a stratum of {name} everybody has the same {name}, so predictions cannot depend on it and "
                "there is nothing to even out. Take strata of another column, or fit everybody together."
            )
    if settings.penalty is None and settings.gap is None:
        raise UsageError(
            f"{who}: say what is wanted of the groups: gap = 0.05, the largest difference between two groups' rates of "
            "positive predictions; penalty = 1, a weight of their dependence beside the loss; or penalty = 0 for the "
            "loss alone, whatever it does to groups."
        )
    if settings.evens_out and not (settings.groups and schema.cells(settings.groups) > 1):
        raise Unsupported(
            f"{who}: name the sensitive attribute in groups, a column of at least two levels; or take penalty = 0."
        )
    samples = settings.network is not None or settings.protect == "sensitive"
    if settings.thresholds:
        settings = _told_the_group(settings, public)
    target, sampling, design, records = sampled(settings, public, by_default=samples)
    if settings.protect == "sensitive":
        _check_open(settings, schema, (*design.columns, target))
    if settings.gap is not None:
        _check_gap(settings, schema, target, sampling)
    if samples:
        pace = Pace(SAMPLED_STEPS, 1.0, RATE / largest_norm(design) ** 2, 0.0).as_set(settings)
    else:
        link: Link = "logistic" if schema.size(target) == LOGISTIC else "softmax"
        pace = Pace.of(settings, public, budget, design, link, AGAINST if settings.weight else MOMENTUM)
        if settings.gap is not None and settings.iterations is None:
            pace = replace(pace, steps=MOST_STEPS)  # a multiplier needs them to settle, whatever the size
    return FermiProblem(
        settings,
        schema,
        target,
        design,
        design.names(schema),
        records,
        sampling,
        _sizes(settings, schema, target),
        pace,
        reach(public, budget),
    )


def _check_gap(settings: DPFermi, schema: Schema, target: str, sampling: float) -> None:
    """Raise Unsupported for a gap in `DPFermi` settings if `schema`'s `target` has over 2 levels, or `sampling` < 1."""
    who = f"{settings.name}: gap"
    if schema.size(target) != LOGISTIC:
        raise Unsupported(
            f"{who} is between groups' rates of one prediction, the second of two levels, and {target} has "
            f"{schema.size(target)}; take a penalty."
        )
    if sampling < 1:
        raise Unsupported(f"{who} is measured on all records in each step: leave sampling and batch out.")


MOST_COLUMNS = 2
"""Most columns of groups with thresholds: a design has products of two columns."""


FEWEST = 3
"""Fewest steps with thresholds: one that moves, one that tries a threshold, one that measures."""


def _told_the_group(settings: DPFermi, public: Public) -> DPFermi:
    """Return a `DPFermi` with the groups' public columns, of two their products too, as features.

    Unsupported for settings and groups that thresholds do not go with.
    """
    who, schema, groups = f"{settings.name}: thresholds", public.schema, tuple(settings.groups)
    if settings.gap is None or settings.criterion != "parity":
        raise Unsupported(f'{who} go with a gap and criterion = "parity": equalized odds take decisions by chance too.')
    if settings.iterations is not None and settings.iterations < FEWEST:
        raise Unsupported(f"{who} take at least {FEWEST} steps: iterations = 100.")
    if len(groups) > MOST_COLUMNS or any(isinstance(schema.column(name), Numeric) for name in groups):
        raise Unsupported(f"{who} are for groups of one or two categorical columns: merge others into one.")
    features = settings.features or [name for name in schema.names if name != settings.target]
    pairs = tuple(settings.interactions)
    if len(groups) == MOST_COLUMNS and not any(set(pair) == set(groups) for pair in pairs):
        pairs = (*pairs, groups)
    return replace(settings, features=tuple(dict.fromkeys((*features, *groups))), interactions=pairs)


def _check_open(settings: DPFermi, schema: Schema, columns: tuple[str, ...]) -> None:
    """Raise Unsupported on `DPFermi` settings that protect groups alone and do not fit `columns` in `schema`.

    That is if `columns` are groups' or not public, there is no penalty, row weights are other than 1, or `PublicRows`
    refuses the columns.
    """
    who = f'{settings.name}: protect = "sensitive"'
    for name in columns:
        if name in settings.groups:
            raise Unsupported(f"{who} hands features out as they are, so {name} cannot be one and be protected too.")
        if not schema.column(name).public:
            raise Unsupported(
                f"{who} hands features and target out as they are, and {name} is not declared public: set public = "
                'true for it in the schema, leave it out of the features, or take protect = "all".'
            )
    for name in settings.groups:
        if schema.column(name).public:
            raise Unsupported(f"{who} protects {name}, which the schema declares public: take the flag away.")
    if not settings.weight:
        raise Unsupported(f"{who} needs a penalty: without one the sensitive attribute is not used at all.")
    if schema.row_weight != ONE:
        raise Unsupported(f"{who} takes rows of weight 1.")
    PublicRows(columns).check(schema)


RATE = 8.0
"""Default learning rate with `protect = "sensitive"`, times the largest squared norm of a row's features.

A logistic loss has a curvature of at most a quarter of that square, so this is twice the largest safe rate at worst.
"""
SAMPLED_STEPS = 1000
"""Default number of steps of a network, and with `protect = "sensitive"`."""


def _sizes(settings: DPFermi, schema: Schema, target: str) -> Floats | None:
    """Return an array of declared sizes, classes of `target` (1 for parity) x groups; None if the settings have none.

    UsageError for labels in the `DPFermi` settings that the schema does not know, and missing ones.
    """
    if not settings.sizes:
        return None
    odds = settings.criterion == "odds"
    columns = (*settings.groups, *((target,) if odds else ()))
    labels = [cell.label for cell in crossing(schema, columns)]
    for label in settings.sizes:
        if label not in labels:
            raise UsageError(f"{settings.name}: sizes names {label!r}; there are {', '.join(labels[:5])}.")
    lacking = [label for label in labels if label not in settings.sizes]
    if lacking:
        raise UsageError(f"{settings.name}: sizes lacks {lacking[0]}; name every one.")
    sizes = np.array([float(settings.sizes[label]) for label in labels])
    return sizes.reshape(-1, schema.size(target)).T if odds else sizes[None]
