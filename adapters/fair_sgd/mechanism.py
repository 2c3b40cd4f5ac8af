"""Noisy gradient descent on Poisson samples with a mitigation of unequal excessive risk, after Tran and others (2021).

Corrections. The penalty of the paper's equation 6 couples records; here its two terms are linearised at noisy
statistics of earlier steps, so that a row's loss depends on that row and on public numbers alone (see
`stratsynth.adapters.fair_sgd.leaning`). Statistics and gradient are asked of one sample in one question and priced as
one subsampled Gaussian. Two companions are baselines: DPSGD-F (Xu, Du and Wu 2020) and DPSGD-Global-Adapt (Esipova et
al. 2023), without the leaks of their code (see `MITIGATIONS`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from stratsynth import papers
from stratsynth.adapters.fair_sgd.task import FairSgdProblem, task_of
from stratsynth.adapters.fair_sgd.training import FairSgdResult, train
from stratsynth.adapters.predictors.network import Network
from stratsynth.adapters.predictors.regression import Regression
from stratsynth.adapters.shared.settings import check_interactions, check_target
from stratsynth.mechanisms import Mechanism, Public, once
from stratsynth.models import Returns
from stratsynth.questions import Program, Question, Total
from stratsynth.questions.sums.networks import MOST_HIDDEN
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget


MITIGATIONS = {
    "paper": "is not private: the paper's penalty, gamma1 |<g_a - g_D, g_D - gb_D>| + gamma2 |Tr H_a - Tr H|, averages "
    "over groups and over everybody inside the loss, so that a record changes the gradient of every other one, and "
    'clipping each row\'s gradient bounds nothing. Take mitigation = "surrogate": the averages are those of earlier '
    "steps, asked with noise and charged, and each row's gradient is of that row alone.",
    "dpsgd_f": "is not private: DPSGD-F takes its noise from the largest clip of the groups present in a batch, so "
    "that the noise itself tells whether a group was present, and asks for a batch's counts before it uses the same "
    'batch. Take mitigation = "group_clip": the largest clip of all declared groups, and the counts of earlier '
    "samples.",
    "realised_batch": "is not private: Global-Adapt as published divides by the realised size of each sample, which is "
    'private. Take mitigation = "global_adapt", which divides by the expected size.',
}
"""Published mitigations that are not private, with what to take instead."""
SCALINGS = {
    "groups": "is not offered: it would bring each group to mean 0 and variance 1 (figure 9 of the paper) by the "
    "groups' own means and variances, which are private. Features are scaled by their public bounds."
}
"""Scales that would have to be read from rows."""


@dataclass(frozen=True, kw_only=True)
class FairSGD(Mechanism[Regression | Network]):
    """A classifier by noisy gradient descent with a mitigation: a regression, or a network of one hidden layer."""

    name: ClassVar[str] = "fair_sgd"
    paper: ClassVar = papers.FAIRNESS_LENS
    returns: ClassVar[Returns] = Returns.PREDICTIONS
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Total})
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    target: str = ""
    """Column to predict, categorical; by default the last such column that is neither feature nor group."""
    features: Sequence[str] = at(())
    """Columns that predict the target; by default all but target and groups. A group's column may be named too."""
    groups: Sequence[str] = at(())
    """Columns whose levels, fully crossed, are the groups."""
    model: Literal["logistic", "network"] = at("logistic")
    """`logistic` is a regression, a softmax one for more than two classes. `network` has one hidden layer."""
    hidden: int = at(16, least=1, most=MOST_HIDDEN)
    """Number of hidden units of a `network`."""
    mitigation: Literal["surrogate", "group_clip", "global_adapt", "none"] = at("none", refused=MITIGATIONS)
    """`none` is noisy gradient descent: where the clip cuts no gradient, clipping harms no group more
    than another. `surrogate` penalises unequal parts of clipping and of noise by noisy statistics of earlier steps.
    `group_clip` is DPSGD-F: groups of longer gradients are clipped later. `global_adapt` is DPSGD-Global-Adapt: one
    clip for all, which moves until few gradients are longer. What the papers print, `paper` and `dpsgd_f`, is not
    private and refused, with the reason."""
    gamma1: float = at(1.0, least=0, most=1000)
    """Weight of the penalty on unequal parts of clipping, with `surrogate`; 0 leaves it out."""
    gamma2: float = at(1.0, least=0, most=1000)
    """Weight of the penalty on unequal distances from the decision boundary, with `surrogate`; these stand for the
    groups' Hessian traces and so for their parts of noise. 0 leaves it out."""
    scaling: Literal["bounds"] = at("bounds", refused=SCALINGS)
    """Features are scaled from their public bounds to [-1, 1]. `groups` is refused, with the reason."""
    iterations: int | None = at(None, least=1, most=100_000)
    """Number of steps; by default 30 to 300 for a regression, by public size and budget
    (`stratsynth.adapters.predictors.defaults`), and 1,000 for a network."""
    batch: float | None = at(None, least=1, most=1e12)
    """Expected number of records in a step's Poisson sample; at most all. By default all records take part in each step
    of a regression, and 1,024 in that of a network."""
    sampling: float | None = at(None, above=0, most=1)
    """Probability with which a record takes part in a step, in place of `batch`; needed in strata by a network. Where
    no size is declared a network's is 0.05 by default, and how many records that makes is learned from noisy sums."""
    rate: float | None = at(None, above=0, most=1e6)
    """Learning rate; by default (1 + momentum) over the largest curvature of a row's loss; for `network` 4 / (hidden +
    1), one over that of its output layer."""
    momentum: float | None = at(None, least=0, below=1)
    """Factor m of the last direction: direction <- m direction + gradient. By default 0.9 for a regression, and 0 for a
    network."""
    clip: float | None = at(None, above=0, most=1e6)
    """Largest L2 norm of a row's gradient, penalties included. By default a quarter to all of the longest gradient of
    the loss, by public size and budget, and half of it at most with a mitigation; 1 for a network. With `group_clip`
    that of a group like all others; with `global_adapt` where the clip starts."""
    clip_rate: float = at(0.1, above=0, below=1)
    """Target fraction b* of gradients longer than the clip, with `global_adapt`; a step multiplies the clip by exp(b -
    b*), b being the noisy fraction."""
    most_clip: float = at(10.0, least=1, most=1e6)
    """Largest clip of `group_clip` and `global_adapt`, in multiples of `clip`: noise grows with it."""
    statistics_share: float = at(0.2, least=1e-6, most=1 - 1e-6)
    """Fraction of a step's price for the groups' statistics; the rest is for the gradient."""
    memory: float = at(0.95, least=0, below=1)
    """Discount of older statistics in the running mean: a step's own have weight 1 - memory."""
    most_weight: float = at(5.0, above=0, most=1e6)
    """Largest weight of a penalty in one record, in units of gamma: tiny groups would count for more."""
    radius: float = at(10.0, above=0, most=1000)
    """Largest distance from 0 of coefficients of scaled features."""
    region: Literal["box", "ball"] = at("box")
    """Norm that `radius` bounds: the maximum over the coefficients (`box`), or their L2 norm (`ball`)."""
    tail: float = at(0.5, least=0, most=1)
    """Fraction of the steps, from the end, whose mean is the model; with 0 the model is the last step."""
    reference: Mapping[str, str] = at({})
    """Reference level of categorical columns; the first level by default."""
    interactions: Sequence[Sequence[str]] = ()
    """Pairs of features whose products are features too."""

    def __post_init__(self) -> None:
        """Raise UsageError: settings out of range, an unsound target, interactions not pairs; keep these as tuples."""
        super().__post_init__()
        check_target(self, self.groups)
        check_interactions(self)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the `Allotment` of all steps, sampled, with the least noise in the budget, by public facts.

        Unsupported or UsageError for a schema that settings do not fit.
        """
        task = self.task(public, budget)
        return budget.sampled(rate=task.sampling, steps=task.descent.steps)

    @once
    def task(self, public: Public, budget: Budget) -> FairSgdProblem:
        """Return the `FairSgdProblem` by public facts, settings and budget, cached.

        Unsupported or UsageError for settings that the schema does not allow.
        """
        return task_of(self, public, budget)

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Regression | Network]:
        """Program on public facts that runs the descent for the allotment; returns a `Regression` or `Network`.

        `rng` starts a network.
        """
        task = self.task(public, allot.promise)
        learned = yield from train(task, allot, task.form.start(rng))
        return task.form.model(learned.theta, self._facts(task, learned, round(allot.amount)))

    def _facts(self, task: FairSgdProblem, learned: FairSgdResult, steps: int) -> dict[str, Any]:
        """Return a dict of figures of the `FairSgdResult` of a `FairSgdProblem` in so many `steps`.

        Keys: steps, rate, clip, step_noise, and described, a dict of texts by heading.
        """
        groups = " x ".join(self.groups) or "none: everybody together"
        what = {
            "surrogate": f"surrogates, gamma1 {self.gamma1:g}, gamma2 {self.gamma2:g}",
            "group_clip": "clips of the groups (DPSGD-F, corrected)",
            "global_adapt": "a clip that adapts (DPSGD-Global-Adapt, corrected)",
            "none": "none",
        }[self.mitigation]
        averaged = f"the mean of the last {self.tail:.0%} of them" if self.tail else "the last one"
        described = {
            "Model": task.form.described,
            "Groups": groups,
            "Mitigation": what,
            "Descent": f"{task.descent.described(steps, task.sampling)}, about {learned.batch:,.0f} records a step; "
            f"{averaged}",
            "Clip": f"{learned.clip:.3g} for a row's gradient, penalties included",
        }
        if learned.groups:
            described["Noisy statistics of the last steps"] = "; ".join(learned.groups)
        return {
            "steps": steps,
            "rate": task.descent.rate,
            "clip": learned.clip,
            "step_noise": learned.noise,
            "described": described,
        }
