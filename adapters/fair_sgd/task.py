"""Task of a descent, decided by schema and settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.fair_sgd.forms import OneLayer, Straight
from stratsynth.adapters.predictors.defaults import Pace
from stratsynth.adapters.predictors.descent import Region, rounded
from stratsynth.adapters.shared.settings import check_columns, sampled
from stratsynth.errors import Unsupported
from stratsynth.questions import Mitigated
from stratsynth.questions.sums.base import check_query
from stratsynth.strata import crossing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Budget
    from stratsynth.adapters.fair_sgd.leaning import Lean
    from stratsynth.adapters.fair_sgd.mechanism import FairSGD
    from stratsynth.mechanisms import Public
    from stratsynth.questions.sums.mitigation import Statistic
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]


NETWORK_STEPS = 1000
"""Default number of steps of a network."""


@dataclass(frozen=True, eq=False)
class FairSgdProblem:
    """Task of one `fair_sgd` fit, made of schema, settings and declared sizes only: no row enters."""

    settings: FairSGD
    schema: Schema
    form: Straight | OneLayer
    """Form of the fitted model."""
    records: float | None
    """Declared number of records, times the weight of one; None where it is learned from noisy sums."""
    sampling: float
    """Probability with which a record takes part in a step."""
    descent: Pace
    """Steps, clip, learning rate and momentum of the descent."""

    @property
    def by(self) -> tuple[str, ...]:
        """Tuple of the names of the groups' columns; empty for mitigations that ask nothing by group."""
        return tuple(self.settings.groups) if self.settings.mitigation in ("surrogate", "group_clip") else ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Tuple of the groups' labels, in the order of their statistics; one empty label without groups."""
        return tuple(cell.label for cell in crossing(self.schema, self.by)) if self.by else ("",)

    @property
    def batch(self) -> float | None:
        """Expected number of records in a step, times a row's weight; None where no size is declared."""
        return None if self.records is None else self.records * self.sampling

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Tuple of names of the statistics that each step asks for beside the gradient; may be empty."""
        s = self.settings
        if s.mitigation == "none":
            return () if self.records is not None else ("tally",)
        boundary: tuple[Statistic, ...] = ("boundary",) if s.mitigation == "surrogate" and s.gamma2 else ()
        clipping: tuple[Statistic, ...] = ("pulls", "excess") if s.mitigation == "surrogate" and s.gamma1 else ()
        return ("tally", *boundary, *clipping)

    @property
    def weights(self) -> tuple[float, ...] | None:
        """Tuple of shares of a step's price, which add up to 1: the gradient's, each statistic's; None without any."""
        asked, part = len(self.statistics), self.settings.statistics_share
        return (1 - part, *[part / asked] * asked) if asked else None

    @property
    def region(self) -> Region:
        """Region, a box or ball about 0, that the coefficients are projected into."""
        return Region(self.settings.region, self.settings.radius)

    def query(self, theta: Floats, lean: Lean) -> Mitigated:
        """Return a step's question, a `Mitigated`: sums of gradients at the coefficients `theta`, and statistics.

        `theta` is an array; the statistics are the groups'; `lean`, a Lean, has the clips and the penalty's slopes.
        """
        shape = self.schema.shape(self.by)

        def by_group(values: Floats | None) -> Floats | None:
            return None if values is None else values.reshape(shape)

        form = self.form
        return Mitigated(
            form.design,
            form.target,
            form.link,
            rounded(theta),
            lean.clip,
            self.by,
            self.statistics,
            lean.threshold,
            form.wide,
            by_group(lean.noise_slopes),
            by_group(lean.clip_slopes),
            lean.direction,
            by_group(lean.cuts),
            form.hidden,
        )


def task_of(settings: FairSGD, public: Public, budget: Budget) -> FairSgdProblem:
    """Return the `FairSgdProblem` of a fit: of `FairSGD` settings, public facts and budget.

    Unsupported for unfit columns, groups of a stratum, vain mitigations. Those lack two groups, have gammas of 0, or
    even out clipping where no gradient is longer than the clip.
    """
    schema, who = public.schema, settings.name
    check_columns(who, (*settings.features, *settings.groups), public)
    for name in settings.groups:
        if name in public.constant:
            raise Unsupported(
                f"{who}: in a stratum of {name} there is one {name} alone, and no other group to be even with. Take "
                "strata of another column, or fit everybody together."
            )
    grouped = settings.mitigation in ("surrogate", "group_clip")
    if grouped and not (settings.groups and schema.cells(settings.groups) > 1):
        raise Unsupported(
            f'{who}: mitigation = "{settings.mitigation}" needs groups, of at least two levels; or take "none".'
        )
    if settings.mitigation == "surrogate" and not (settings.gamma1 or settings.gamma2):
        raise Unsupported(f'{who}: with gamma1 and gamma2 at 0 there is nothing to mitigate; take mitigation = "none".')
    network = settings.model == "network"
    target, sampling, design, records = sampled(settings, public, by_default=network)
    form = OneLayer(schema, design, target, settings.hidden) if network else Straight(schema, design, target)
    task = FairSgdProblem(settings, schema, form, records, sampling, _pace(settings, public, budget, form))
    clip = task.descent.clip
    if "excess" in task.statistics and clip >= form.wide:
        longest = "statistics take no gradient for longer than" if network else "no gradient is longer than"
        raise Unsupported(
            f"{who}: {longest} {form.wide:.3g}, so a clip of {clip:g} cuts none, and there is no part of "
            "clipping to even out. Take gamma1 = 0, or a smaller clip."
        )
    from stratsynth.adapters.fair_sgd.leaning import Leaning

    check_query(who, task.query(np.zeros(form.shape), Leaning.start(task).now()), schema)
    return task


def _pace(settings: FairSGD, public: Public, budget: Budget, form: Straight | OneLayer) -> Pace:
    """Return a Pace, the numbers of a descent of this form, by `FairSGD` settings, public facts and budget.

    Without a clip set, mitigations have at most half the longest gradient.
    """
    if isinstance(form, OneLayer):
        return Pace(NETWORK_STEPS, 1.0, form.rate, 0.0).as_set(settings)
    found = Pace.of(settings, public, budget, form.design, form.link)
    mitigated = settings.clip is None and settings.mitigation != "none"
    return replace(found, clip=min(found.clip, form.wide / 2)) if mitigated else found
