"""Noisy gradient descent on Poisson samples with a mitigation of unequal excessive risk (paper 001, corrected).

Corrections. The penalty of the paper's equation 6 couples records; here its two terms are linearised at noisy
statistics of earlier steps, so that a row's loss depends on that row and on public numbers alone (see
`stratsynth.adapters.fair_sgd.leaning`). Statistics and gradient are asked of one sample in one question and priced as
one subsampled Gaussian. Two companions are baselines: DPSGD-F (Xu, Du and Wu 2020) and DPSGD-Global-Adapt (Esipova et
al. 2023), without the leaks of their code (see `stratsynth.adapters.fair_sgd.refused`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from stratsynth import papers
from stratsynth.adapters.fair_sgd.refused import MITIGATIONS, SCALINGS
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
    """What is predicted: a categorical column; the last one that is nothing else by default."""
    features: Sequence[str] = at(())
    """The columns that predict it; by default all but the target and the groups. A group's column may be named too."""
    groups: Sequence[str] = at(())
    """The columns whose levels, fully crossed, are the groups."""
    model: Literal["logistic", "network"] = at("logistic")
    """`logistic` is a regression, a softmax one for more than two classes. `network` has one hidden layer."""
    hidden: int = at(16, least=1, most=MOST_HIDDEN)
    """With `network`: the number of hidden units."""
    mitigation: Literal["surrogate", "group_clip", "global_adapt", "none"] = at("surrogate", refused=MITIGATIONS)
    """`surrogate` penalises unequal parts of clipping and of noise by noisy statistics of earlier steps. `group_clip`
    is DPSGD-F: groups of longer gradients are clipped later. `global_adapt` is DPSGD-Global-Adapt: one clip for all,
    which moves until few gradients are longer. `none` is noisy gradient descent. What the papers print, `paper` and
    `dpsgd_f`, is not private and refused, with the reason."""
    gamma1: float = at(1.0, least=0, most=1000)
    """With `surrogate`: how much unequal parts of clipping count; 0 leaves them out."""
    gamma2: float = at(1.0, least=0, most=1000)
    """With `surrogate`: how much unequal distances from the decision boundary count, which stand for the groups'
    Hessian traces and so for their parts of noise; 0 leaves them out."""
    scaling: Literal["bounds"] = at("bounds", refused=SCALINGS)
    """Features are scaled from their public bounds to [-1, 1]. `groups` is refused, with the reason."""
    iterations: int = at(1000, least=1, most=100_000)
    """The number of steps, each with a Poisson sample of its own."""
    batch: float = at(1024, least=1, most=1e12)
    """The expected number of records in a sample; all of them where there are no more."""
    sampling: float | None = at(None, above=0, most=1)
    """The probability with which a record takes part in a step, in place of `batch`; needed in strata. Where no size is
    declared it is 0.05 by default, and how many records that makes is learned from noisy sums."""
    rate: float | None = at(None, above=0, most=1e6)
    """The learning rate; by default 4 over the largest squared norm of a row's features, one over the largest curvature
    that a logistic loss can have; for `network` 4 / (hidden + 1), the same of its output layer."""
    clip: float = at(1.0, above=0, most=1e6)
    """The most L2 norm of a row's gradient, penalties included. With `group_clip` that of a group like all others; with
    `global_adapt` where the clip starts."""
    clip_rate: float = at(0.1, above=0, below=1)
    """With `global_adapt`: how fast the clip falls, and the part of the records that is longer than it in the end."""
    most_clip: float = at(10.0, least=1, most=1e6)
    """How many times `clip` the clips of `group_clip` and `global_adapt` may be: noise grows with the largest."""
    statistics_share: float = at(0.2, least=1e-6, most=1 - 1e-6)
    """The part of a step's price for the groups' statistics; the rest is for the gradient."""
    memory: float = at(0.95, least=0, below=1)
    """How much of the statistics so far is kept when those of a step come in."""
    most_weight: float = at(5.0, above=0, most=1e6)
    """The most that a penalty counts in one record, in units of gamma: tiny groups would count for more."""
    radius: float = at(10.0, above=0, most=1000)
    """How far coefficients of scaled features may be from 0."""
    region: Literal["box", "ball"] = at("box")
    """Whether that holds for each coefficient or for the length of all."""
    tail: float = at(0.5, least=0, most=1)
    """The part of the steps, from the end, whose mean is the model; 0 takes the last step alone."""
    reference: Mapping[str, str] = at({})
    """The reference level of categorical columns; the first level where none is given."""
    interactions: Sequence[Sequence[str]] = ()
    """Pairs of features that are multiplied."""

    def __post_init__(self) -> None:
        """Refuse settings that are invalid under any schema."""
        super().__post_init__()
        check_target(self, self.groups)
        check_interactions(self)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return all steps, with the least noise whose price is within the budget."""
        return budget.sampled(rate=self.task(public).sampling, steps=self.iterations)

    @once
    def task(self, public: Public) -> FairSgdProblem:
        """Return the task that schema and settings determine, or refuse them."""
        return task_of(self, public)

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Regression | Network]:
        """Descend; `rng` makes a network's first weights only."""
        task = self.task(public)
        learned = yield from train(task, allot, task.form.start(rng))
        return task.form.model(learned.theta, self._facts(task, learned))

    def _facts(self, task: FairSgdProblem, learned: FairSgdResult) -> dict[str, Any]:
        """Return the figures of the fit: public numbers and noisy answers."""
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
            "Descent": f"{self.iterations} steps on samples of about {learned.batch:,.0f} records, learning rate "
            f"{task.rate:.3g}; {averaged}",
            "Clip": f"{learned.clip:.3g} for a row's gradient, penalties included",
        }
        if learned.groups:
            described["Noisy statistics of the last steps"] = "; ".join(learned.groups)
        return {
            "steps": self.iterations, "rate": task.rate, "clip": learned.clip, "step_noise": learned.noise,
            "described": described,
        }  # fmt: skip
