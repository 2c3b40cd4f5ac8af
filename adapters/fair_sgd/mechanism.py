"""Noisy gradient descent on Poisson samples with a mitigation of unequal excessive risk (paper 001, corrected).

Corrections. The penalty of the paper's equation 6 couples records; here its two terms are linearised at noisy
statistics of earlier steps, so that a row's loss depends on that row and on public numbers alone (see
`stratsynth.adapters.fair_sgd.leaning`). Statistics and gradient are asked of one sample in one question and priced as
one subsampled Gaussian. Two companions are baselines: DPSGD-F (Xu, Du and Wu 2020) and DPSGD-Global-Adapt (Esipova et
al. 2023), without the leaks of their code (see `stratsynth.adapters.fair_sgd.refused`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from stratsynth.adapters.fair_sgd.refused import check_mitigation, check_scaling
from stratsynth.adapters.fair_sgd.task import Task, task_of
from stratsynth.adapters.fair_sgd.training import Learned, train
from stratsynth.adapters.predictors.network import Network
from stratsynth.adapters.predictors.regression import Regression
from stratsynth.adapters.shared.settings import check_interactions, check_names, check_tables
from stratsynth.checks import number, one_of, whole
from stratsynth.mechanisms import Mechanism, Public, once
from stratsynth.models import Returns
from stratsynth.questions import Program, Question, Total
from stratsynth.questions.sums.networks import MOST_HIDDEN

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget


@dataclass(frozen=True, kw_only=True)
class FairSGD(Mechanism[Regression | Network]):
    """A classifier by noisy gradient descent with a mitigation: a regression, or a network of one hidden layer."""

    name: ClassVar[str] = "fair_sgd"
    returns: ClassVar[Returns] = Returns.PREDICTIONS
    needs: ClassVar[frozenset[type[Question]]] = frozenset({Total})
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    target: str = ""
    """What is predicted: a categorical column; the last one that is nothing else by default."""
    features: Sequence[str] = ()
    """The columns that predict it; by default all but the target and the groups. A group's column may be named too."""
    groups: Sequence[str] = ()
    """The columns whose levels, fully crossed, are the groups."""
    model: Literal["logistic", "network"] = "logistic"
    """`logistic` is a regression, a softmax one for more than two classes. `network` has one hidden layer."""
    hidden: int = 16
    """With `network`: the number of hidden units."""
    mitigation: Literal["surrogate", "group_clip", "global_adapt", "none"] = "surrogate"
    """`surrogate` penalises unequal parts of clipping and of noise by noisy statistics of earlier steps. `group_clip`
    is DPSGD-F: groups of longer gradients are clipped later. `global_adapt` is DPSGD-Global-Adapt: one clip for all,
    which moves until few gradients are longer. `none` is noisy gradient descent. What the papers print, `paper` and
    `dpsgd_f`, is not private and refused, with the reason."""
    gamma1: float = 1.0
    """With `surrogate`: how much unequal parts of clipping count; 0 leaves them out."""
    gamma2: float = 1.0
    """With `surrogate`: how much unequal distances from the decision boundary count, which stand for the groups'
    Hessian traces and so for their parts of noise; 0 leaves them out."""
    scaling: Literal["bounds"] = "bounds"
    """Features are scaled from their public bounds to [-1, 1]. `groups` is refused, with the reason."""
    iterations: int = 1000
    """The number of steps, each with a Poisson sample of its own."""
    batch: float = 1024
    """The expected number of records in a sample; all of them where there are no more."""
    sampling: float | None = None
    """The probability with which a record takes part in a step, in place of `batch`; needed in strata. Where no size is
    declared it is 0.05 by default, and how many records that makes is learned from noisy sums."""
    rate: float | None = None
    """The learning rate; by default 4 over the largest squared norm of a row's features, one over the largest curvature
    that a logistic loss can have; for `network` 4 / (hidden + 1), the same of its output layer."""
    clip: float = 1.0
    """The most L2 norm of a row's gradient, penalties included. With `group_clip` that of a group like all others; with
    `global_adapt` where the clip starts."""
    clip_rate: float = 0.1
    """With `global_adapt`: how fast the clip falls, and the part of the records that is longer than it in the end."""
    most_clip: float = 10.0
    """How many times `clip` the clips of `group_clip` and `global_adapt` may be: noise grows with the largest."""
    statistics_share: float = 0.2
    """The part of a step's price for the groups' statistics; the rest is for the gradient."""
    memory: float = 0.95
    """How much of the statistics so far is kept when those of a step come in."""
    most_weight: float = 5.0
    """The most that a penalty counts in one record, in units of gamma: tiny groups would count for more."""
    radius: float = 10.0
    """How far coefficients of scaled features may be from 0."""
    region: Literal["box", "ball"] = "box"
    """Whether that holds for each coefficient or for the length of all."""
    tail: float = 0.5
    """The part of the steps, from the end, whose mean is the model; 0 takes the last step alone."""
    reference: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The reference level of categorical columns; the first level where none is given."""
    interactions: Sequence[Sequence[str]] = ()
    """Pairs of features that are multiplied."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense for any table."""
        check_names(self)
        check_interactions(self)
        check_tables(self, "reference")
        one_of(f"{self.name}: model", self.model, ("logistic", "network"))
        whole(f"{self.name}: hidden", self.hidden, 1, MOST_HIDDEN)
        check_mitigation(self.name, self.mitigation)
        check_scaling(self.name, self.scaling)
        one_of(f"{self.name}: region", self.region, ("box", "ball"))
        whole(f"{self.name}: iterations", self.iterations, 1, 100_000)
        for key in ("gamma1", "gamma2"):
            number(f"{self.name}: {key}", getattr(self, key), least=0, most=1000)
        number(f"{self.name}: batch", self.batch, least=1, most=1e12)
        number(f"{self.name}: sampling", self.sampling, above=0, most=1, optional=True)
        number(f"{self.name}: rate", self.rate, above=0, most=1e6, optional=True)
        number(f"{self.name}: clip", self.clip, above=0, most=1e6)
        number(f"{self.name}: clip_rate", self.clip_rate, above=0, below=1)
        number(f"{self.name}: most_clip", self.most_clip, least=1, most=1e6)
        number(f"{self.name}: statistics_share", self.statistics_share, least=1e-6, most=1 - 1e-6)
        number(f"{self.name}: memory", self.memory, least=0, below=1)
        number(f"{self.name}: most_weight", self.most_weight, above=0, most=1e6)
        number(f"{self.name}: radius", self.radius, above=0, most=1000)
        number(f"{self.name}: tail", self.tail, least=0, most=1)

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return all steps, with the least noise whose price is within the budget."""
        return budget.sampled(rate=self.task(public).sampling, steps=self.iterations)

    @once
    def task(self, public: Public) -> Task:
        """Return the task that schema and settings determine, or refuse them."""
        return task_of(self, public)

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Regression | Network]:
        """Descend; `rng` makes a network's first weights only."""
        task = self.task(public)
        learned = yield from train(task, allot, task.form.start(rng))
        return task.form.model(learned.theta, self._facts(task, learned))

    def _facts(self, task: Task, learned: Learned) -> dict[str, Any]:
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
