"""DP-FERMI: stochastic, private and fair classification, after Lowy and others (2023).

Corrections. The two gradients of a step are released together and priced together. Noise is for sums of clipped rows,
divided by the public batch size afterwards: the authors' code divides first, so that its clip hardly ever binds and its
noise is a thousandth of what it claims. Batches are Poisson samples, as the price assumes, not shuffled epochs. The
group distribution is public or noisy, never that of the rows. W has one row a group and one column a class (in the code
it is 1 x 1 for binary data, and its penalty is not 0 for independent predictions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from stratsynth import papers
from stratsynth.accounting.budget import Neighbours
from stratsynth.adapters.fermi.page import caution, gap_in_words, penalty_in_words
from stratsynth.adapters.fermi.steered import train_to_gap
from stratsynth.adapters.fermi.task import FermiProblem, task_of
from stratsynth.adapters.fermi.thresholds import train_with_thresholds
from stratsynth.adapters.fermi.training import FermiResult, train
from stratsynth.adapters.networks.blueprint import NAMED, Network
from stratsynth.adapters.predictors.designed import Designed
from stratsynth.adapters.shared.settings import check_interactions, check_sizes, check_target
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms import Mechanism, Public, once
from stratsynth.models import Returns
from stratsynth.questions import Program, PublicRows, Question, Total
from stratsynth.questions.sums.base import check_query
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget


@dataclass(frozen=True, kw_only=True)
class DPFermi(Mechanism[Designed]):
    """A classifier with a penalty on the dependence of predictions on a sensitive attribute: linear, or a network."""

    name: ClassVar[str] = "fermi"
    paper: ClassVar = papers.FAIR_LEARNING
    returns: ClassVar[Returns] = Returns.PREDICTIONS
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    target: str = ""
    """Column to predict, categorical; by default the last such column that is neither feature nor group."""
    features: Sequence[str] = at(())
    """Columns that predict the target; by default all but target and groups. A group's column may be named too."""
    groups: Sequence[str] = at(())
    """Sensitive attribute: the columns whose levels, fully crossed, are the groups."""
    gap: float | None = at(None, least=0, most=1)
    """Largest wanted gap between two groups' rates of predictions of the target's second level; for `odds`, among
    records of each true class. A multiplier is steered to it in the one fit, and the certificate says by noisy counts
    of the model's own decisions if it is met. For a regression of two levels on all records."""
    thresholds: bool = at(False)
    """True to reach the gap by a threshold of its own for each group, chosen by noisy counts of decisions: two people
    who differ in nothing but the group may then be decided otherwise, and predictions need the group's columns. For
    `parity`, and groups of one or two columns; these are features too."""
    penalty: float | None = at(None, least=0, most=1000)
    """Weight lambda of ERMI beside the mean log loss, in place of `gap`; 0 is noisy gradient descent on the loss alone,
    whatever it does to groups. One of the two has to be given."""
    criterion: Literal["parity", "odds"] = at("parity")
    """Independence that the penalty asks for: of prediction and group (`parity`, demographic parity), or of both given
    the true class (`odds`, equalized odds)."""
    odds_weights: Literal["alike", "shares"] = at("alike")
    """Weights of the true classes in the penalty of odds: `alike`, since a violation is that of the worst class; or
    `shares` of the records, as in the paper, where a frequent class is evened out at the expense of a rare one."""
    protect: Literal["all", "sensitive"] = at("all")
    """`all` protects whole records. `sensitive` protects the groups' columns alone, as the paper does: the schema
    declares features and target public, the budget has neighbours = "attribute", and the certificate says first that
    these columns are not protected. The noise is then for what the group adds to a step, and `clip` is the most that it
    may add to a row's gradient."""
    sizes: Mapping[str, float] = at({}, above=0)
    """Public sizes or shares of the groups, by label; for odds of each group and class, as `F|yes`. By default they are
    learned from the noisy sums of the first steps, which are paid for anyway."""
    sizes_citation: str = ""
    """Citation of the publication with the public sizes."""
    warm_up: float = at(0.1, least=0, most=1)
    """Fraction of the steps that learn the number of records in each group, where it is not public, and minimise the
    loss alone."""
    iterations: int | None = at(None, least=1, most=100_000)
    """Number of steps; by default 30 to 300 for a regression, by public size and budget
    (`stratsynth.adapters.predictors.defaults`), and 1,000 for a network and with `protect = "sensitive"`."""
    batch: float | None = at(None, least=1, most=1e12)
    """Expected number of records in a step's Poisson sample; at most all. Needs a declared size. By default all records
    take part in each step of a regression; of a network, and with `protect = "sensitive"`, 1,024, or a twentieth where
    no size is declared."""
    sampling: float | None = at(None, above=0, most=1)
    """Probability with which a record takes part in a step, in place of `batch`; needed in strata by a network."""
    rate: float | None = at(None, above=0, most=1e6)
    """Learning rate of the coefficients; by default (1 + momentum) over the largest curvature of a row's loss."""
    momentum: float | None = at(None, least=0, below=1)
    """Factor m of the last direction: direction <- m direction + gradient. By default 0.5 for a regression with a
    penalty, 0.9 without one, and 0 for a network and with `protect = "sensitive"`."""
    ascent: float = at(0.1, above=0, most=1e6)
    """Learning rate of W, the adversary's coefficients."""
    clip: float | None = at(None, above=0, most=1e6)
    """Largest L2 norm of a row's gradient of loss and penalty together; what is beyond it is lost to both. By default
    a quarter to all of the longest gradient of the loss, by public size and budget; 1 for a network and with
    `protect = "sensitive"`."""
    adversary_share: float = at(0.2, least=1e-6, most=1 - 1e-6)
    """Fraction of a step's price for the sums that W learns from; the rest is for the coefficients' gradient."""
    radius: float = at(10.0, above=0, most=1000)
    """Largest distance from 0 of coefficients of scaled features."""
    region: Literal["box", "ball"] = at("box")
    """Norm that `radius` bounds: the maximum over the coefficients (`box`), or their L2 norm (`ball`)."""
    adversary_radius: float | None = at(None, above=0, most=1e6)
    """Largest Frobenius norm of W; by default twice its norm at independence, which is sqrt(classes)."""
    tail: float = at(0.5, least=0, most=1)
    """Fraction of the steps, from the end, whose mean is the model; with 0 the model is the last step, as in the
    paper."""
    reference: Mapping[str, str] = at({})
    """Reference level of categorical columns; the first level by default."""
    interactions: Sequence[Sequence[str]] = ()
    """Pairs of features whose products are features too."""
    network: Network | None = None
    """None for logistic or softmax regression; `mlp` or `conv`, or a function of the numbers of features and classes
    that returns a `torch.nn.Module`. Networks need `pip install ".[torch]"`, and their releases are stamped unverified:
    that a row's gradient is its own is tested on made-up rows, not proven."""
    hidden: Sequence[int] = at((8, 16), least=1, most=2**16)
    """Units of each hidden layer of `mlp`; channels of each convolution of `conv`."""
    image: Sequence[int] = at((), least=1, most=2**16)
    """Shape of the image whose pixels are the features, in the schema's order, with `conv`: height and width, or
    channels, height and width."""

    def __post_init__(self) -> None:
        """Raise UsageError: values out of range, unsound target, sizes; Unsupported: gap, networks of open rows."""
        super().__post_init__()
        if self.gap is not None and self.penalty is not None:
            raise UsageError(f"{self.name}: gap and penalty are two ways to one end: give one of them.")
        if self.gap is not None and (self.network is not None or self.protect == "sensitive"):
            raise Unsupported(
                f'{self.name}: gap is steered by sums of decisions, which regressions with protect = "all" have. Leave '
                "network and protect out, or take a penalty."
            )
        check_target(self, self.groups)
        check_interactions(self)
        self._check_network()
        if self.network is not None and self.protect == "sensitive":
            raise Unsupported(
                f'{self.name}: protect = "sensitive" is for the regressions, whose gradients it can take apart. Leave '
                'network out, or take protect = "all".'
            )
        check_sizes(self)

    @property
    def weight(self) -> float:
        """Weight of the penalty; 0 where none is given."""
        return self.penalty or 0.0

    @property
    def wanted(self) -> float:
        """Largest wanted gap; 1, which all models keep to, where none is given."""
        return 1.0 if self.gap is None else self.gap

    @property
    def evens_out(self) -> bool:
        """True with a wanted gap or a penalty above 0, for which groups are needed."""
        return self.gap is not None or self.weight > 0

    @property
    def needs(self) -> frozenset[type[Question]]:
        """Frozen set of classes of questions that a fit asks.

        Sums; also public rows if only the sensitive attribute is protected.
        """
        return frozenset({Total, PublicRows} if self.protect == "sensitive" else {Total})

    def _check_network(self) -> None:
        """Raise UsageError on a network neither a name nor a named function, or sizes of layers unfit for it."""
        if self.network is not None and not (isinstance(self.network, str) and self.network in NAMED):
            named = callable(self.network) and hasattr(self.network, "__qualname__")
            if not named:
                raise UsageError(
                    f'{self.name}: network is "mlp" or "conv", or in Python a function of the numbers of features and '
                    "classes, with a name, that returns a torch.nn.Module."
                )
        if (self.network == "conv") != bool(self.image) or len(self.image) not in (0, 2, 3):
            raise UsageError(
                f'{self.name}: image, of two or three numbers, goes with network = "conv": height and width, or '
                "channels, height and width."
            )
        if isinstance(self.network, str) and not self.hidden:
            raise UsageError(f"{self.name}: hidden names at least one layer.")

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return an Allotment of all steps, least noise in the budget; Unsupported: settings unfit for public facts."""
        if self.protect == "sensitive" and budget.neighbours != Neighbours.ATTRIBUTE:
            raise Unsupported(
                f'{self.name}: protect = "sensitive" goes with neighbours = "attribute" in the budget, under which the '
                f'public columns are not protected; neighbours = "{budget.neighbours}" protects all. Set it, or take '
                'protect = "all".'
            )
        task = self.task(public, budget)
        return budget.sampled(rate=task.sampling, steps=task.descent.steps)

    @once
    def task(self, public: Public, budget: Budget) -> FermiProblem:
        """Return the `FermiProblem` by public facts, settings and budget, cached.

        Unsupported or UsageError: unfit settings.
        """
        task = task_of(self, public, budget)
        if self.network is not None:
            from stratsynth.adapters.fermi.network_task import network_task

            task = network_task(task)
        check_query(self.name, task.counting(np.zeros((1, *task.shape))), public.schema)
        return task

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Designed]:
        """Program that spends the allotment on training; returns a `Designed`: a `Regression`, or a network's `Module`.

        `rng` makes a network's first weights, and draws public samples.
        """
        if self.gap is None:
            (model,) = yield from self.side_by_side(public, allot, [self.weight], rng)
            return model
        task = self.task(public, allot.promise)
        learned = yield from (train_with_thresholds if self.thresholds else train_to_gap)(task, allot)
        return task.model(learned.theta[0], self._facts(task, learned, round(allot.amount)))

    def side_by_side(
        self, public: Public, allot: Allotment, penalties: Sequence[float], rng: Generator
    ) -> Program[list[Designed]]:
        """Program that returns a list of `Designed` models, one a penalty, in order, by the questions of one fit.

        Args:
            public: The public facts of the fit.
            allot: The allotment: reserved steps and their noise.
            penalties: Penalties in place of `penalty`: all positive, or all 0. Networks take one.
            rng: Makes a network's first weights, and draws samples of public rows.
        """
        task = self.task(public, allot.promise)
        learned = yield from train(task, allot, penalties, rng)
        facts = self._facts(task, learned, round(allot.amount))
        return [task.model(theta, facts) for theta in learned.theta]

    def _facts(self, task: FermiProblem, learned: FermiResult, steps: int) -> dict[str, Any]:
        """Return a dict of figures of the `FermiResult` of a `FermiProblem` in so many `steps`.

        Keys: steps, rate, clip, step_noise, described (texts by heading), and where there are such gap, a dict, and
        caution.
        """
        averaged = f"the mean of the last {self.tail:.0%} of them" if self.tail else "the last one"
        described = {
            "Model": task.title,
            **(gap_in_words(task, learned) if learned.gap else {"Penalty": penalty_in_words(self, task)}),
            "Descent": f"{task.descent.described(steps, task.sampling)}; {averaged}",
            "Clip": f"{task.descent.clip:.3g} for a row's gradient of loss and penalty together",
        }
        if self.protect == "sensitive":
            described["Clip"] = f"at most {task.descent.clip:.3g} for what the group adds to a row's gradient"
            described["Not protected"] = f"{', '.join(task.open_columns)}: taken as they are, row by row"
        if learned.shares is not None:
            source = "public" if self.sizes else "from noisy sums"
            shares = "; ".join(" ".join(f"{share:.3f}" for share in line) for line in learned.shares)
            described["Shares of groups"] = f"{shares} ({source})"
        warned = caution(task)
        if warned:
            described["Caution"] = warned
        return {
            "steps": steps,
            "rate": task.descent.rate,
            "clip": task.descent.clip,
            "step_noise": learned.noise,
            "described": described,
            **({"gap": dict(learned.gap)} if learned.gap else {}),
            **({"caution": warned} if warned else {}),
        }
