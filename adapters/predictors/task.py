"""Task of a regression, as far as schema and settings decide it: design, groups, clip and learning rate.

Inside a group the columns that define it are constant, and not among its columns. Where such a column is a feature all
the same, a group's own design is without it, and its level's coefficient is added to the intercept there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratsynth.adapters.predictors.defaults import Pace
from stratsynth.adapters.predictors.descent import CURVATURE, RESIDUAL, Descent, Region, largest_norm, rounded
from stratsynth.adapters.shared.settings import design_of, several_levels, target_of, two_levels
from stratsynth.errors import Unsupported
from stratsynth.questions import Coded, Curvature, Gradients, Losses
from stratsynth.schema import Numeric
from stratsynth.strata import within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Budget, Neighbours
    from stratsynth.adapters.predictors.families import Families
    from stratsynth.adapters.predictors.mechanism import GroupRegression
    from stratsynth.adapters.predictors.tailored import Tailored
    from stratsynth.mechanisms import Public
    from stratsynth.questions.sums.gradients import Link
    from stratsynth.schema import Column, Schema
    from stratsynth.strata import Stratum

    Floats = NDArray[np.float64]


STEPS = 100
"""Default number of gradients of a linear model and a network, and in strata without exact sizes."""
TARGETS: dict[str, tuple[Callable[[Column], bool], str]] = {
    "linear": (lambda column: isinstance(column, Numeric), "a numeric column"),
    "logistic": (two_levels, "a categorical column of two levels"),
}
"""Predicate and description of the targets of models that do not take any number of levels."""


@dataclass(frozen=True)
class Local:
    """Design inside one group, without its constant columns, and the map of everybody's coefficients to it."""

    design: Coded
    share: Floats
    """Matrix of zeros and ones, own coefficients x everybody's: maps everybody's coefficients to the group's design."""


@dataclass(frozen=True, eq=False)
class PredictorProblem:
    """Task of one `group_regression` fit, made of schema, settings and declared sizes only: no row enters."""

    settings: GroupRegression
    schema: Schema
    neighbours: Neighbours
    target: str
    link: Link
    design: Coded
    names: tuple[str, ...]
    """Names of the features."""
    families: Families
    """Families of groups."""
    local: tuple[Local, ...]
    """Design of each group, where they are asked by themselves."""
    norm: float
    """Largest L2 norm of a row's features, R."""
    clip: float
    rate: float
    steps: int
    """Number of gradients."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Tuple of the groups' labels, one text each; without groups one empty text, for everybody."""
        return self.families.labels or ("",)

    @property
    def groups(self) -> tuple[Stratum, ...]:
        """Tuple of the groups, `Stratum`s, of all families; empty for one group of everybody."""
        return self.families.groups

    @property
    def origin(self) -> Floats:
        """Coefficients of 0: an array of features, and for `softmax` of features x levels of the target."""
        levels = (self.schema.size(self.target),) if self.link == "softmax" else ()
        return np.zeros((len(self.names), *levels))

    @property
    def region(self) -> Region:
        """Region, a box or ball about 0, that the coefficients are projected into."""
        return Region(self.settings.region, self.settings.radius)

    def descent(self, start: Floats, steps: int | None = None) -> Descent:
        """Return a `Descent` from the array of coefficients `start`, projected into the region.

        `steps` None takes the task's own.
        """
        number = self.steps if steps is None else steps
        tail = max(1, round(number * self.settings.tail))
        return Descent(self.region, self.rate, self.settings.momentum, number, tail, self.region.project(start))

    def curvature(self, theta: Floats) -> Curvature:
        """Return the question `Curvature` for a Newton step of a logistic model from coefficients `theta`."""
        (asked,) = self._asked(theta, None)[1]
        return Curvature(self.design, self.target, asked, self.norm)

    def _asked(self, theta: Floats, group: int | None) -> tuple[Coded, Floats]:
        """Return (`Coded` design, array of rounded coefficients with a first axis of 1) of a question at `theta`.

        That is everybody's array of coefficients; the result is everybody's (None) or that of the group of number
        `group`.
        """
        here = self.local[group] if group is not None and self.groups else None  # inside strata no group may be left
        own = theta if here is None else here.share @ theta
        return self.design if here is None else here.design, rounded(own)[None]

    def gradients(
        self, theta: Floats, group: int | None = None, by: tuple[str, ...] = (), parts: Floats | None = None
    ) -> Gradients:
        """Return the question `Gradients` for a sum of clipped gradients at `theta`, an array of coefficients.

        It is of the group of number `group`, or of all for None. A row's gradient is multiplied by the entry of
        `parts`, an array over the cells of the columns `by`, for its cell; None multiplies by 1.
        """
        design, thetas = self._asked(theta, group)
        return Gradients(design, self.target, self.link, thetas, self.clip, by, parts)

    def widened(self, gradient: Floats, group: int) -> Floats:
        """Return the array `gradient` of a group, by number, over everybody's coefficients: 0 for those it lacks."""
        own = gradient.reshape(-1, *self.origin.shape[1:])
        found: Floats = self.local[group].share.T @ own if self.groups else own
        return found

    def losses(self, theta: Floats, group: int | None = None, *, squared: bool = False) -> Losses:
        """Return the question `Losses` for a sum of clipped losses at `theta`, an array of coefficients.

        It is of the group of number `group`, or of all for None. Losses are squared residuals for `linear` or with
        `squared`, a flag, else log losses.
        """
        measure: Literal["squared", "log"] = "squared" if squared or self.link == "linear" else "log"
        most = {"linear": self.settings.loss_clip, "logistic": 1.0, "softmax": 2.0}[self.link]  # of squared residuals
        clip = most if squared else self.settings.loss_clip
        design, thetas = self._asked(theta, group)
        return Losses(design, self.target, self.link, thetas, clip, measure)

    def facts(self, tailored: Tailored, noise: float) -> dict[str, Any]:
        """Return the fit's figures as a dict of JSON values: steps, rate, clip, step_noise (`noise`), groups.

        `groups` is a list of dicts, one a group: group (its label), size, weight, and share by the budgets `tailored`.
        """
        return {
            "steps": self.steps,
            "rate": self.rate,
            "clip": self.clip,
            "step_noise": noise,
            "groups": [
                {"group": label, "size": float(size), "weight": float(weight), "share": float(share)}
                for label, size, weight, share in zip(
                    self.labels, tailored.sizes, tailored.usual, tailored.shares, strict=True
                )
            ],
        }

    def described(self, tailored: Tailored) -> dict[str, str]:
        """Return a dict, caption -> text for a page, on settings and budgets `tailored`."""
        s = self.settings
        return {
            "Model": f"{s.model} regression of {self.target} on {len(self.names)} features",
            "Groups": "; ".join(" x ".join(family) for family in s.families) or "none: everybody together",
            "Objective": s.objective
            + (f", bounded group losses (multiplier {s.multiplier:g})" if s.loss_bounds else ""),
            "Budget of groups": f"{s.mode}, accounting {s.accounting}",
            "Descent": f"{self.steps} steps, learning rate {self.rate:.3g}, momentum {s.momentum:g}; "
            + (f"the mean of the last {s.tail:.0%} of them" if s.tail else "the last one"),
            "Clip": f"{self.clip:.3g}, for features of norm at most {self.norm:.3g}",
        }


def task_of(settings: GroupRegression, public: Public, families: Families, budget: Budget) -> PredictorProblem:
    """Return the `PredictorProblem` of `GroupRegression` settings, public facts, families and budget.

    Unsupported: unfit target or features, a fit without size whose groups are not counted, and queries whose check
    fails.
    """
    schema, who = public.schema, settings.name
    fits, what = TARGETS.get(settings.model, (several_levels, "a categorical column of at least two levels"))
    target = target_of(who, settings.target, (*settings.features, *settings.group_columns), public, fits, what)
    design = design_of(
        who, settings.features, target, settings.group_columns, public, settings.reference, settings.interactions
    )
    columns = design.columns
    for name in (name for pair in settings.interactions for name in pair):
        if name in settings.group_columns and settings.by_group:
            raise Unsupported(
                f"{who}: {name} defines groups that are asked by themselves, where it does not vary; leave its "
                'interactions out, or take accounting = "combined".'
            )
    numeric = [n for n in settings.group_columns if n in columns and isinstance(schema.column(n), Numeric)]
    if numeric and settings.by_group:
        raise Unsupported(
            f"{who}: {numeric[0]} is numeric and defines groups, so it cannot be a feature; leave it out."
        )
    if public.size is None and not (settings.counts_groups and families.layouts):
        raise Unsupported(
            f"{who}: gradients are divided by the number of records; declare a size, or name groups without sizes, "
            "which are then counted with noise."
        )
    settings.plan_of.check(who, families.labels or [""])
    norm = largest_norm(design)
    bounded = 1 + settings.multiplier if settings.loss_bounds else 1.0
    network = settings.model == "network"  # a network's rate and clip are not its precursor's
    precursor: Link = "logistic" if schema.size(target) == 2 else "softmax"
    link = precursor if settings.model == "network" else settings.model
    pace = Pace(STEPS, RESIDUAL[link] * norm, 1 / (CURVATURE[link] * norm**2), settings.momentum)
    if not network:
        pace = pace.as_set(settings) if link == "linear" else Pace.of(settings, public, budget, design, link)
    rate = pace.rate if settings.rate is not None and not network else pace.rate / bounded
    names = design.names(schema)
    local = tuple(_local(design, names, schema, group) for group in families.groups) if settings.by_group else ()
    # sizes by noisy or sampled shares may decide how far a gradient is cut, and not how often it is asked
    steps = settings.iterations or (pace.steps if public.exact else STEPS)
    task = PredictorProblem(
        settings,
        schema,
        public.neighbours,
        target,
        link,
        design,
        names,
        families,
        local,
        norm,
        pace.clip,
        rate,
        steps,
    )
    task.gradients(task.origin).check(schema)
    return task


def _local(design: Coded, names: Sequence[str], schema: Schema, group: Stratum) -> Local:
    """Return a Local: `design` inside `group`, a stratum, by `schema`, and the matrix from everybody's coefficients.

    `names` are everybody's; those of columns constant in the group are added to the intercept.
    """
    inner = within(schema, (group,))
    columns = tuple(name for name in design.columns if name in inner.columns)
    own = Coded(
        columns,
        reference=tuple(pair for pair in design.reference if pair[0] in columns),
        interactions=design.interactions,
    )
    found = own.names(inner)
    at = {name: i for i, name in enumerate(found)} | {f"{c}={levels[0]}": 0 for c, levels in group.items}
    share = np.zeros((len(found), len(names)))
    for j, name in enumerate(names):
        if name in at:
            share[at[name], j] = 1.0
    return Local(own, share)
