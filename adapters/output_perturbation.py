"""Output perturbation of a regularised regression, whose coefficients get noise once (Chaudhuri and others 2011).

The coefficients that minimise a sum of losses and a penalty, plus Gaussian noise, in one question. One row more or
fewer moves the minimiser by at most L / strength, L being the longest gradient of a row's loss. Tran and others (2021)
take the mean loss with a penalty of lambda / 2 |w|^2, in which the private number of records would set the noise; here
it is the sum, and `strength` is its n lambda: public, and the same whatever the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from stratsynth import papers
from stratsynth.adapters.predictors.descent import largest_norm
from stratsynth.adapters.predictors.regression import Regression
from stratsynth.adapters.shared.settings import (
    check_columns,
    check_interactions,
    check_target,
    design_of,
    several_levels,
    target_of,
)
from stratsynth.errors import Unsupported
from stratsynth.mechanisms import Mechanism, Public, once
from stratsynth.models import Returns
from stratsynth.questions import Counts, Program, Question, counts
from stratsynth.questions.minimiser import SLOPE, Minimiser
from stratsynth.schema import Numeric
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.questions import Coded, NoisySum
    from stratsynth.questions.sums.gradients import Link

    Floats = NDArray[np.float64]

FACTOR = 0.5
"""Strength by default: FACTOR x (n L^2 R^2 / (2 rho))^(1/3), by which noise and penalty do about as much harm."""
MOST_STRENGTH = 1e12
"""Largest strength."""
LEAST_PART = 0.05
"""Least weight of a record with `objective = "balanced"`, in weights of one of the smallest group."""


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(Mechanism[Regression]):
    """A linear, logistic or softmax regression with a penalty, whose coefficients get noise once."""

    name: ClassVar[str] = "output_perturbation"
    paper: ClassVar = papers.FAIRNESS_LENS
    returns: ClassVar[Returns] = Returns.PREDICTIONS
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    target: str = ""
    """Column to predict: categorical for `logistic`, numeric for `linear`; by default the last such column that is
    neither feature nor group."""
    features: Sequence[str] = at(())
    """Columns that predict the target; by default all but target and groups. A group's column may be named too."""
    groups: Sequence[str] = at(())
    """Columns whose levels, fully crossed, are the groups that `balanced` weighs; features only if they are named."""
    model: Literal["logistic", "linear"] = at("logistic")
    """`logistic` is a regression, a softmax one for more than two levels. `linear` predicts a number by least squares,
    in which what of a residual is beyond half the target's range counts in proportion, not squared."""
    objective: Literal["pooled", "balanced"] = at("pooled")
    """Weights of records: all alike (`pooled`), or the smaller the larger their group (`balanced`), so that groups
    count alike; their sizes are counted with noise, for `count_share`."""
    count_share: float = at(0.02, above=0, below=1)
    """Fraction of the budget for noisy sizes of groups, with `balanced`."""
    strength: float | None = at(None, above=0, most=MOST_STRENGTH)
    """Factor of |w|^2 / 2 beside the sum of losses; the noise is inverse to it. By default by public size, budget and
    number of features; needed where no size is declared. It is refused where it is too small for so many features."""
    clip: float | None = at(None, above=0, most=1e6)
    """Largest L2 norm of a row's features: longer rows are scaled down to it. By default the largest there is."""
    reference: Mapping[str, str] = at({})
    """Reference level of categorical columns; the first level by default."""
    interactions: Sequence[Sequence[str]] = ()
    """Pairs of features whose products are features too."""

    def __post_init__(self) -> None:
        """Raise UsageError: settings out of range, an unsound target, interactions not pairs; keep these as tuples."""
        super().__post_init__()
        check_target(self, self.groups)
        check_interactions(self)

    @property
    def needs(self) -> frozenset[type[Question]]:
        """Frozen set of classes of questions: the minimiser; counts too if groups are balanced."""
        return frozenset({Minimiser, Counts} if self.objective == "balanced" else {Minimiser})

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the whole budget as a zCDP allotment (rho per row); Unsupported: settings unfit for public facts."""
        allot = budget.zcdp()
        self.question(public, allot.rho).check(public.schema)
        return allot

    @once
    def question(self, public: Public, rho: float) -> Minimiser:
        """Return the question, a `Minimiser`, for `rho` by public facts and settings, without weights of groups.

        Unsupported for settings that the schema does not allow.
        """
        who, schema = self.name, public.schema
        check_columns(who, (*self.features, *self.groups), public)
        if self.objective == "balanced" and not any(name in schema.columns for name in self.groups):
            raise Unsupported(
                f'{who}: objective = "balanced" needs groups that vary here; name them, or take "pooled".'
            )
        fits, of = _FITS[self.model]
        target = target_of(who, self.target, (*self.features, *self.groups), public, fits, of)
        design = design_of(who, self.features, target, self.groups, public, self.reference, self.interactions)
        link: Link = "linear"
        if self.model == "logistic":
            link = "logistic" if schema.size(target) == 2 else "softmax"
        clip = largest_norm(design) if self.clip is None else self.clip
        asked = Minimiser(design, target, link, clip, self._strength(public, link, clip, rho), rho)
        while self.strength is None and asked.strength < MOST_STRENGTH and not asked.solvable(schema):
            asked = replace(asked, strength=2 * asked.strength)
        return asked

    def _strength(self, public: Public, link: Link, clip: float, rho: float) -> float:
        """Return the factor of the penalty for a loss of this link: as set, or by public size, clip and `rho`.

        Unsupported if neither a strength is set nor a size declared.
        """
        if self.strength is not None:
            return self.strength
        if public.size is None:
            raise Unsupported(
                f"{self.name}: the penalty's strength follows from the number of records; declare a size."
            )
        weight, noise = public.schema.row_weight, (SLOPE[link] * clip * clip) ** 2 / (2 * rho)
        return float(f"{FACTOR * (max(public.size * weight.each / weight.most, 1) * noise) ** (1 / 3):.6g}")

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Regression]:
        """Program on public facts, for the allotment: asks once, or first for sizes; returns a Regression; no `rng`."""
        asked, rho = self.question(public, allot.rho), allot.rho * (1 - 1e-9)
        by: tuple[str, ...] = ()
        parts: Floats | None = None
        if self.objective == "balanced":
            by = tuple(name for name in self.groups if name in public.schema.columns)
            (table,) = yield from counts([by], rho=rho * self.count_share)
            rho, parts = rho * (1 - self.count_share), balanced(table.values)
        asked = Minimiser(asked.design, asked.target, asked.link, asked.clip, asked.strength, rho, by, parts)
        (found,) = cast("tuple[NoisySum, ...]", (yield asked))
        size = len(asked.design.names(public.schema))
        theta = found.values if asked.link != "softmax" else found.values.reshape(size, -1)
        facts = self._facts(asked, size, found.sigma)
        return Regression(public.schema, cast("Coded", asked.design), asked.target, asked.link, theta, None, facts)

    def _facts(self, asked: Minimiser, features: int, noise: float) -> dict[str, Any]:
        """Return a dict of figures: strength (the penalty's), clip, noise (a coefficient's), described (texts).

        They are those of the question `asked`, of `features`, their number, and of `noise`; texts are by heading.
        """
        described = {
            "Model": f"{asked.link} regression of {asked.target} on {features} features",
            "Objective": f"{self.objective}: sum of losses + {asked.strength:.4g} |w|^2 / 2",
            "Clip": f"{asked.clip:.3g} for the norm of a row's features",
            "Noise": f"once, of standard deviation {noise:.3g} in each coefficient of scaled features",
        }
        return {"strength": asked.strength, "clip": asked.clip, "noise": noise, "described": described}


_FITS = {
    "logistic": (several_levels, "a categorical column of at least two levels"),
    "linear": (lambda column: isinstance(column, Numeric), "a numeric column"),
}
"""Predicate and description of targets, by model."""


def balanced(sizes: NDArray[Any]) -> Floats:
    """Return an array of the groups' factors of a record's loss, at most 1: inverse to a group's noisy size.

    `sizes` is the array of sizes, of the result's shape. The smallest group is taken for no smaller than LEAST_PART of
    the largest.
    """
    positive: Floats = np.maximum(sizes.astype(np.float64), 1.0)
    positive = np.maximum(positive, LEAST_PART * positive.max())
    return np.asarray(positive.min() / positive)
