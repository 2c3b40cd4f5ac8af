"""Constrained group objectives by reduction ("The Cost of a Reductions Approach to Private Fair Optimization").

A user states an objective over groups and constraints on them; the fit reduces that to a sequence of weighted
classification problems, each solved privately, and returns a randomised mixture of their classifiers.

Corrections to paper 002: the linear optimisation oracle gets weights made of noisy losses, which are asked and paid
for, not of exact ones; Frank-Wolfe takes its gradient at the running mixture; the penalty counts in the weights; a
negative weight flips the label. The steps are in `stratsynth.adapters.reductions.loop`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from stratsynth import papers
from stratsynth.accounting.budget import Currency
from stratsynth.adapters.reductions.amounts import Amount
from stratsynth.adapters.reductions.classifier import RandomisedClassifier
from stratsynth.adapters.reductions.goals import (
    BOUNDED,
    CONSTRAINTS,
    FS,
    MEANS,
    Goal,
    ObjectiveName,
    Versus,
    constraints_of,
    measured_by,
    objective_of,
    penalty,
)
from stratsynth.adapters.reductions.loop import frank_wolfe, sampling
from stratsynth.adapters.reductions.mixing import Mixing
from stratsynth.adapters.reductions.rates import Sizes
from stratsynth.adapters.reductions.smoothing import Kind, Smoothing
from stratsynth.adapters.reductions.summary import stated
from stratsynth.adapters.reductions.task import ReductionsProblem, task_of
from stratsynth.adapters.shared.settings import check_sizes, check_target
from stratsynth.checks import number, one_of
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms import Mechanism, Public, once
from stratsynth.models import Returns
from stratsynth.questions import Choose, Counts, Program, Question, Total, counts
from stratsynth.questions.sums.losses import MEASURES, Measure
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget


@dataclass(frozen=True, kw_only=True)
class Reductions(Mechanism[RandomisedClassifier]):
    """A classifier that minimises an objective over groups under constraints on them: see the head of this file."""

    name: ClassVar[str] = "reductions"
    paper: ClassVar = papers.REDUCTIONS
    returns: ClassVar[Returns] = Returns.PREDICTIONS
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    target: str = ""
    """Column to predict, categorical of two levels, by default the last such column; or of more, if it is named."""
    features: Sequence[str] = at(())
    """Columns that predict the target; by default all but target and groups. A group's column may be named too."""
    groups: Sequence[str] = at(())
    """Columns whose levels, fully crossed, are the groups; none is one group of everybody."""
    objective: ObjectiveName = at("error")
    """Loss to minimise: the error rate, the squared loss (p - y)^2 or the log loss of the classifiers' probabilities,
    of all, on the mean of groups, or in the worst; 1 less the geometric or harmonic mean of the rates of being right by
    label; or one rate of everybody. Of more than two levels: errors and means."""
    constraints: Mapping[str, Any] = at({})
    """Constraints by name, each with its largest value: `equalized_odds`, `demographic_parity`, `true_positive_parity`,
    `false_positive_parity`, `error_parity` (the largest difference between groups), `bounded_loss`,
    `bounded_squared_loss`, `bounded_log_loss` (each group's error or loss: one number, or one for each group, as `F`,
    or group and label, as `F|yes`, that is named), `gini` (of the rates at which groups are predicted rightly),
    `false_positive_rate`, `false_negative_rate` (of everybody). For `g_mean`, `h_mean`, `micro_f` (F of all levels but
    the first together: of two, F1 of the second) and `worst_f` (of each level, hence of their mean) it is the least
    value. Of more than two levels: `error_parity`, `bounded_loss`, `gini`, means and F."""
    loss_clip: float = at(4.0, least=0.1, most=20)
    """Largest log loss of a record: larger ones count as this. Noise in log losses grows with it."""
    versus: Versus = at("pairs")
    """Comparison that a parity makes: all `pairs` of groups, whose bound is the largest gap itself; or each group with
    everybody (`overall`, as in fairlearn), whose bound b allows a gap of 2 b between two groups."""
    method: Literal["frank_wolfe", "sampling"] = at("frank_wolfe")
    """`frank_wolfe` returns a mixture (Algorithm 2); `sampling` draws one candidate by the whole goal (Algorithm 1)."""
    oracle: Literal["gradient", "exponential"] = at("gradient")
    """Solver of a Frank-Wolfe step: noisy gradients of a log loss, which stands for errors and squared losses too, or
    the exponential mechanism over candidates, which knows no losses of probabilities."""
    candidates: Literal["pool", "net", "thresholds"] = at("pool")
    """Candidates of `sampling` and `exponential`: a `pool` around a classifier that is trained privately, with other
    intercepts and group coefficients; a public `net` of directions; or `thresholds` of a single numeric feature. A
    budget of pure epsilon (delta = 0) takes public ones, `net` or `thresholds`."""
    number: int = at(200, least=2, most=10_000)
    """Number of candidates."""
    spread: float = at(1.0, least=1e-4, most=100)
    """Standard deviation by which coefficients of a pool are moved."""
    iterations: int = at(20, least=1, most=1_000)
    """Number of Frank-Wolfe steps, each with a classifier of its own."""
    mixing: Mixing = at("corrected")
    """Weights of the steps' classifiers: `corrected` minimises the smooth goal over all mixtures after each step,
    `classic` gives the new one 2 / (t + 2). Both take the next gradient at the mixture."""
    inner_steps: int = at(15, least=1, most=1_000)
    """Number of gradients in one step of the `gradient` oracle."""
    start_steps: int = at(100, least=1, most=1_000)
    """Number of gradients for the classifier that the first step, or a pool, starts from."""
    start_share: float = at(0.25, above=0, below=1)
    """Fraction of the budget for the `start_steps`."""
    loss_share: float = at(0.3, above=0, below=1)
    """Fraction of each step's budget for the noisy counts of its classifier, and its losses if the goal has any."""
    tolerance: float = at(0.05, least=1e-4, most=100)
    """Tolerance alpha of the objective and of each constraint: it sets the penalty if there is no multiplier."""
    multiplier: float | None = at(None, above=0, most=1e6)
    """Slope G of the penalty for a broken constraint; by default (alpha + L_f sqrt(K)) / alpha."""
    smoothing: Kind = at("moreau")
    """Smooth stand-in for maxima and hinges in gradients: Moreau-Yosida envelopes, `softmax`, or `none`."""
    smoothness: float = at(0.02, least=1e-4, most=100)
    """Width of the stand-in, in units of rates."""
    floor: float = at(0.05, least=1e-4, most=100)
    """Constant added to the rates in a geometric mean, which would otherwise have no Lipschitz constant."""
    sizes: Mapping[str, float] = at({}, least=0, most=1e15)
    """Public numbers of records by group and label, such as `{"F|yes" = 300, ...}`; by default they are counted with
    noise, for `count_share`."""
    sizes_citation: str = ""
    """Citation of the publication with the public sizes."""
    count_share: float = at(0.05, above=0, below=1)
    """Fraction of the budget for noisy sizes, where there are no public ones."""
    least: float = at(10.0, least=1, most=1e12)
    """Smallest number of records of which a rate is estimated."""
    rate: float | None = at(None, above=0, most=1e6)
    """Learning rate; by default 1 over the largest curvature that features within their bounds can have."""
    momentum: float = at(0.9, least=0, below=1)
    """Factor m of the last direction: direction <- m direction + gradient."""
    clip: float | None = at(None, above=0, most=1e6)
    """Largest L2 norm of a row's gradient; by default half the largest norm of a row's features."""
    radius: float = at(5.0, above=0, most=1000)
    """Largest distance from 0 of a coefficient of scaled features."""
    reference: Mapping[str, str] = at({})
    """Reference level of categorical columns; the first level by default."""
    deterministic: bool = at(False)
    """True if predictions are those of the one classifier whose noisy goal was the smallest, without chance."""

    def __post_init__(self) -> None:
        """Raise UsageError: values out of range, target among features or groups, uncited sizes, unsound bounds."""
        super().__post_init__()
        check_target(self, self.groups)
        check_sizes(self)
        self._check_bounds()

    def _check_bounds(self) -> None:
        """Raise UsageError: unknown constraints, bounds out of range, losses of probabilities if drawn."""
        for name, bound in self.constraints.items():
            one_of(f"{self.name}: a constraint", name, CONSTRAINTS)
            largest = self.loss_clip if measured_by(name) == "log" else 1
            if name in BOUNDED and isinstance(bound, Mapping) and bound:
                why = ": errors are shares" if name == "bounded_loss" else f": such losses are from 0 to {largest:g}"
                for label, most in bound.items():
                    number(f"{self.name}: {name} of {label}", most, least=0, most=largest, hint=why)
            elif name in (*MEANS, *FS):
                why = ": such a mean is never above 1, so no classifier could keep a larger bound"
                number(f"{self.name}: {name}", bound, above=0, most=1, hint=why)
            else:
                why = f": no classifier could keep a bound below 0, and each keeps one above {largest:g}"
                number(f"{self.name}: {name}", bound, least=0, most=largest, hint=why)
        if self.chooses and self.measures:
            which = ", ".join(name for name in (self.objective, *self.constraints) if measured_by(name))
            raise UsageError(
                f"{self.name}: a choice among candidates knows their predictions alone, not their probabilities, so it "
                f'cannot have {which}; use method = "frank_wolfe" with oracle = "gradient".'
            )

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Tuple of names of losses of probabilities, `squared` or `log`, in objective and constraints; may be empty."""
        needed = {measured_by(name) for name in (self.objective, *self.constraints)}
        return tuple(measure for measure in MEASURES if measure in needed)

    @property
    def chooses(self) -> bool:
        """True if candidates are drawn by the exponential mechanism: `sampling`, or oracle `exponential`."""
        return self.method == "sampling" or self.oracle == "exponential"

    @property
    def needs(self) -> frozenset[type[Question]]:
        """Frozen set of classes of questions that it may ask.

        Sums; choices if candidates are drawn; counts if sizes are unknown.
        """
        return frozenset({Total}) | ({Choose} if self.chooses else set()) | (set() if self.sizes else {Counts})

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the `Allotment` of the whole budget: rho per row, or pure epsilon if its delta is 0.

        Pure epsilon is kept by public candidates alone. Unsupported for others, and for settings unfit for the public
        schema.
        """
        self.task(public)
        if budget.delta:
            return budget.zcdp()
        if not self.chooses or self.candidates == "pool":
            raise Unsupported(
                f"{self.name}: delta = 0 asks for pure epsilon, which noisy gradients do not keep. Take method = "
                '"sampling" or oracle = "exponential", with candidates = "net" or "thresholds" (a pool lies around a '
                "classifier that gradients train); or a delta above 0."
            )
        return budget.pure()

    @once
    def task(self, public: Public) -> ReductionsProblem:
        """Return the `ReductionsProblem` that public schema and settings determine, cached.

        Unsupported or UsageError for settings that do not fit the schema.
        """
        return task_of(self, public)

    def goal(self, sizes: Sizes) -> Goal:
        """Return objective, constraints and penalty of the settings as one Goal, for groups of these sizes."""
        objective = objective_of(self.objective, sizes, self.floor)
        parts, lacking = constraints_of(self.constraints, sizes, self.versus, self.floor)
        if objective.name != self.objective:
            lacking = [(self.objective, ""), *lacking]
        steep = self.multiplier or penalty(objective, self.tolerance)
        return Goal(objective, tuple(parts), steep, Smoothing(self.smoothing, self.smoothness), tuple(lacking))

    @property
    def in_words(self) -> str:
        """Text for readers on the method: its candidates, or its steps with their gradients."""
        if self.method == "sampling":
            return f"one of {self.number} candidates ({self.candidates}) by the exponential mechanism"
        inner = (
            f"{self.inner_steps} noisy gradients each"
            if self.oracle == "gradient"
            else f"each by the exponential mechanism over {self.number} candidates ({self.candidates})"
        )
        return f"{self.iterations} steps of Frank-Wolfe, {inner}"

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[RandomisedClassifier]:
        """Program on public facts, for the allotment, not `rng`: counts sizes, runs the method.

        Returns a `RandomisedClassifier`.
        """
        task = self.task(public)
        pay = Amount(allot.amount, allot.currency == Currency.PURE).times(1 - 1e-9)
        sizes, left = yield from self._sizes(task, pay)
        goal = self.goal(sizes)
        program = sampling if self.method == "sampling" else frank_wolfe
        found = yield from program(task, sizes, goal, left)
        return stated(task, sizes, goal, found)

    def _sizes(self, task: ReductionsProblem, pay: Amount) -> Program[tuple[Sizes, Amount]]:
        """Program that returns (`Sizes` of a `ReductionsProblem`'s groups and labels, `Amount` that is left of `pay`).

        Sizes are numbers of records times a row's weight.
        """
        weight = task.schema.row_weight.each
        about = self.measures, self.loss_clip, task.levels
        if task.sizes is not None:
            return Sizes(task.labels, task.sizes * weight, 0.0, self.least, *about), pay
        part, shape = pay.times(self.count_share), (len(task.labels), len(task.levels))
        if pay.pure:
            # whoever predicts the first level of everybody has all records of a label in that prediction's count
            (said,) = yield from part.sums(task.confusions(np.zeros((1, *task.coefficients)), pure=True))
            numbers, sigma = said.values.reshape(*shape, -1)[:, :, 0], said.sigma
        else:
            (table,) = yield from counts([(*task.by, task.target)], rho=part.value)
            numbers, sigma = np.asarray(table.values, np.float64).reshape(shape), table.sigma
        sizes = Sizes(task.labels, np.maximum(numbers, 0.0), sigma, self.least, *about)
        return sizes, pay.times(1 - self.count_share)
