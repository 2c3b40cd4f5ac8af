"""Group-aware private regression (after "Privacy budget tailoring in private data analysis").

Stage 1 (Algorithm 1) fits a precursor on everybody and asks for each group's residual error; stage 2 (Algorithms 2 and
3) descends on noisy gradients of the groups, each with a budget of its own. Stage 2 may fit a network of one hidden
layer, with budgets from the residual errors of a logistic regression ("Beyond Linear Regression").

Corrections: residuals r^2 clipped at D have noise of variance D^2 / (2 rho), not D^4 / (2 rho); gradients are sums,
divided by public or noisy sizes afterwards; each notion of neighbour has its own sensitivity; bounds are of losses
divided by their clip, and their multipliers follow the noisy losses. Where the paper gives up because X'X + E is not
positive, its small eigenvalues are lifted to the noise. Prices are in `stratsynth.adapters.predictors.accounting`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from stratsynth import papers
from stratsynth.adapters.predictors.accounting import UNSOUND, Accounting
from stratsynth.adapters.predictors.families import Families, families_of
from stratsynth.adapters.predictors.network import Network
from stratsynth.adapters.predictors.network_task import NetworkProblem
from stratsynth.adapters.predictors.objective import Kind, Objective
from stratsynth.adapters.predictors.regression import Regression
from stratsynth.adapters.predictors.tailored import Tailored, loss_moves, stage_one, stage_two
from stratsynth.adapters.predictors.task import PredictorProblem, task_of
from stratsynth.adapters.shared.settings import check_interactions, check_sizes, check_target
from stratsynth.checks import is_list, is_texts
from stratsynth.errors import UsageError
from stratsynth.layout.layout import Layout
from stratsynth.mechanisms import Mechanism, Public, once
from stratsynth.models import Returns
from stratsynth.questions import Counts, Program, Question, Split, Total, counts
from stratsynth.questions.sums.networks import MOST_HIDDEN
from stratsynth.settings import at
from stratsynth.weights.private import counted

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.accounting.budget import Allotment, Budget

    Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class GroupRegression(Mechanism[Regression | Network]):
    """A regression or a small network that weighs the losses of groups, and divides its budget among them."""

    name: ClassVar[str] = "group_regression"
    paper: ClassVar = papers.TAILORING
    returns: ClassVar[Returns] = Returns.PREDICTIONS
    target: str = ""
    """Column to predict: numeric for `linear`, of two levels for `logistic`, of any number for `softmax` and `network`;
    by default the last such column."""
    features: Sequence[str] = at(())
    """Columns that predict the target; by default all but target and groups. A group's column may be named too."""
    groups: Sequence[str] | Sequence[Sequence[str]] = ()
    """Columns whose levels, fully crossed, are the groups; none is one group of everybody. A list of such lists
    declares families of groups that overlap: `[["SEX"], ["RAC1P"]]` asks a record in a group of each, and both cost."""
    model: Literal["linear", "logistic", "softmax", "network"] = at("linear")
    """`linear` predicts a number, `logistic` the second of two levels, `softmax` one of several, and `network` a level
    by one hidden layer; under `DPSE` its groups have budgets by the residual errors of a logistic or softmax one."""
    hidden: int = at(16, least=1, most=MOST_HIDDEN)
    """Number of hidden units of a `network`."""
    mode: Literal["DPSE", "DPNoSE"] = at("DPNoSE")
    """`DPSE` divides the budget of stage 2 by the groups' residual errors of stage 1, `DPNoSE` equally."""
    accounting: Accounting = at("combined", refused=UNSOUND)
    """`combined` adds noise once to the weighted sum of the groups' gradients, the least noise. `parallel` asks each
    group by itself and charges the dearest; `paper` does so and divides the budget among them, as the paper."""
    objective: Kind = at("pooled")
    """Loss to minimise: the mean loss of all records (`pooled`), the mean (`balanced`), the maximum or the smooth
    maximum of the groups' mean losses, or their sum by `group_weights` (`weights`)."""
    group_weights: Mapping[str, float] = at({})
    """Weight of each group's mean loss, by label, with `objective = "weights"`; they add up to 1."""
    sharpness: float = at(10.0, above=0, most=1e6)
    """Sharpness b of the smooth maximum log(sum_k exp(b L_k)) / b: the larger, the nearer to the maximum."""
    loss_bounds: Mapping[str, float] = at({})
    """Largest allowed mean loss of a group, by label, as a fraction of `loss_clip`; the key "" is for all others."""
    multiplier: float = at(10.0, above=0, most=1e6)
    """Largest multiplier G of a bound: no group's loss counts for more than G besides its weight in the objective. It
    also divides the learning rate, by 1 + G."""
    sizes: Mapping[str, float] = at({}, above=0)
    """Public sizes or shares of the groups, by label; by default they are counted with noise, for `count_share`."""
    sizes_citation: str = ""
    """Citation of the publication with the public sizes."""
    count_share: float = at(0.02, above=0, below=1)
    """Fraction of the budget for noisy sizes, where there are no public ones."""
    stage_one: float | None = at(None, least=0, below=1)
    """Fraction of the rest for stage 1: 0.2 for `DPSE`, 0 for `DPNoSE`, which uses it as a start only, and not for a
    network. The coefficients of a linear or logistic model have intervals if this is above 0."""
    iterations: int | None = at(None, least=1, most=10_000)
    """Number of gradients; by default 100, and for `logistic` and `softmax` 30 to 300 by public size and budget
    (`stratsynth.adapters.predictors.defaults`). Strata whose shares are noisy or a sample's take 100: what is asked
    does not depend on answers."""
    rate: float | None = at(None, above=0, most=1e6)
    """Learning rate; by default 1 over the largest curvature that features within their bounds can have, for `logistic`
    and `softmax` 1 + momentum over it, and for a network 8 / (hidden + 1), twice 1 over the curvature of its output
    layer."""
    momentum: float = at(0.9, least=0, below=1)
    """Factor m of the last direction: direction <- m direction + gradient."""
    tail: float = at(0.5, least=0, most=1)
    """Fraction of the steps, from the end, whose mean is the model; with 0 the model is the last step."""
    clip: float | None = at(None, above=0, most=1e6)
    """Largest L2 norm of a row's gradient. By default for `linear` that of a residual of half the target's half range,
    times the largest norm of a row's features; for `logistic` and `softmax` a quarter to all of the longest gradient,
    by public size and budget; for a network sqrt(hidden + 1) / 2, of the gradient by all weights: what a residual of a
    half makes of the output layer's part."""
    loss_clip: float = at(1.0, above=0, most=1e6)
    """Largest loss of a row: larger ones count as this. Squared residuals in units of half the target's range, or the
    log loss."""
    radius: float = at(5.0, above=0, most=1000)
    """Largest distance from 0 of coefficients of scaled features."""
    region: Literal["box", "ball"] = at("box")
    """Norm that `radius` bounds: the maximum over the coefficients (`box`), or their L2 norm (`ball`)."""
    reference: Mapping[str, str] = at({})
    """Reference level of categorical columns; the first level by default."""
    interactions: Sequence[Sequence[str]] = ()
    """Pairs of features whose products are features too."""
    most_weight: float = at(20.0, least=1, most=1e9)
    """Largest weight of one record, in records of a table of equal groups: tiny groups count for less."""

    def __post_init__(self) -> None:
        """Raise UsageError: values out of range; unsound groups, target, interactions, sizes, stage 1."""
        super().__post_init__()
        nested = is_list(self.groups) and bool(self.groups) and all(is_list(family) for family in self.groups)
        if not (all(_different(f) and f for f in self.groups) if nested else _different(self.groups)):
            raise UsageError(
                f'{self.name}: groups is a list of different columns, such as ["SEX"], or of such lists where groups '
                'overlap, as [["SEX"], ["RAC1P"]].'
            )
        object.__setattr__(self, "groups", tuple(tuple(f) if nested else f for f in self.groups))
        check_target(self, self.group_columns)
        check_interactions(self)
        if self.mode == "DPSE" and (not self.groups or self.stage_one == 0 or self.accounting == "combined"):
            raise UsageError(
                f"{self.name}: DPSE tailors the groups' budgets by stage 1. It needs groups, a stage_one above 0, and "
                'accounting "parallel" or "paper": one noise for all groups cannot be tailored.'
            )
        if self.model == "network" and self.mode == "DPNoSE" and self.stage_one:
            raise UsageError(
                f"{self.name}: stage 1 of a network only tailors budgets; leave stage_one out, or take mode DPSE."
            )
        check_sizes(self)

    @property
    def families(self) -> tuple[tuple[str, ...], ...]:
        """Tuple of the families of groups, each a tuple of its columns' names; empty without groups."""
        plain = tuple(name for name in self.groups if isinstance(name, str))
        return (plain,) if plain else tuple(tuple(family) for family in self.groups)

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Tuple of the names of the columns that define groups in any family, each once, by the settings."""
        return tuple(dict.fromkeys(name for family in self.families for name in family))

    @property
    def needs(self) -> frozenset[type[Question]]:
        """Frozen set of classes of questions.

        Sums; splits if groups are asked by themselves; counts if sizes are not public.
        """
        return frozenset({Total}) | ({Split} if self.by_group else set()) | ({Counts} if self.counts_groups else set())

    @property
    def by_group(self) -> bool:
        """True if each group is asked by itself: there are groups, and losses are asked or noise is not common."""
        return bool(self.groups) and (self.accounting != "combined" or self.plan_of.asks_losses)

    @property
    def counts_groups(self) -> bool:
        """True if the groups' sizes are counted with noise, since none are public."""
        return bool(self.groups) and not self.sizes

    @property
    def plan_of(self) -> Objective:
        """The fit's `Objective`, made of the settings: kind, weights, sharpness, bounds and multiplier."""
        return Objective(self.objective, self.group_weights, self.sharpness, self.loss_bounds, self.multiplier)

    @property
    def adaptive(self) -> bool:
        """True under `DPSE` only, where answers decide the groups' budgets."""
        return self.mode == "DPSE"

    @property
    def unprotected(self) -> tuple[str, ...]:
        """Empty tuple: nothing is disclosed without noise, as declared sizes are public anyway."""
        return ()

    @property
    def tau(self) -> float:
        """Fraction, 0 to 1, for stage 1 of the rho that counts leave: as set, or 0.2 for `DPSE` and 0 for `DPNoSE`."""
        return self.stage_one if self.stage_one is not None else 0.2 * (self.mode == "DPSE")

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the `Allotment` of the whole budget as rho per row, zCDP; refuse settings unfit for public facts.

        The refusal is Unsupported or UsageError.
        """
        if self.model == "network":
            self.network(public, budget)
        self.task(public, budget)
        return budget.zcdp()

    def strata(self, public: Public, budget: Budget) -> Layout | None:
        """Return the groups' `Layout` by public facts and budget; None if all are asked together."""
        return self.families_here(public).declared if self.by_group else None

    @once
    def families_here(self, public: Public) -> Families:
        """Return the `Families` of the public schema's groups, with public sizes, or sizes to be counted."""
        return families_of(self, public)

    @once
    def task(self, public: Public, budget: Budget) -> PredictorProblem:
        """Return the `PredictorProblem` by public facts, settings and budget, cached.

        Unsupported or UsageError for settings that the schema does not allow.
        """
        return task_of(self, public, self.families_here(public), budget)

    @once
    def network(self, public: Public, budget: Budget) -> NetworkProblem:
        """Return the `NetworkProblem`, made from its logistic or softmax precursor's task, by public facts and budget.

        It has a rate and a clip of its own.
        """
        return NetworkProblem.of(self.task(public, budget))

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[Regression | Network]:
        """Program on public facts, for the allotment: counts, stage 1, stage 2; returns a `Regression` or `Network`.

        `rng` makes a network's first weights only.
        """
        task = self.task(public, allot.promise)
        network = self.network(public, allot.promise) if self.model == "network" else None
        sizes, rho = yield from self._sizes(public, task.families, allot.rho * (1 - 1e-9))
        start, errors, estimated = task.origin, None, None
        moves = loss_moves(task, allot.promise.neighbours)
        if self.tau:
            first = yield from stage_one(task, rho * self.tau, sizes, moves, tailored=self.mode == "DPSE")
            start, errors, estimated = first.theta, first.errors, first.estimated
        tailored = Tailored.of(task, rho * (1 - self.tau), sizes, errors, moves)
        if network is not None:
            theta, noise = yield from stage_two(network.task, network, tailored, network.start(rng))
            return network.model(theta, tailored, noise)
        theta, noise = yield from stage_two(task, task, tailored, start)
        facts = {**task.facts(tailored, noise), "described": task.described(tailored)}
        return Regression(public.schema, task.design, task.target, task.link, theta, estimated, facts)

    def _sizes(self, public: Public, families: Families, rho: float) -> Program[tuple[Floats, float]]:
        """Program that returns (array of records x row weight, one a group of `families`; the rho left of `rho`).

        Nothing is asked if sizes are public facts. Without groups, the array has everybody's number alone.
        """
        weight = public.schema.row_weight.each
        size = None if public.size is None else float(public.size) * weight
        if not self.counts_groups or not families.layouts:
            shares = [layout.shares[group] for layout in families.layouts for group in layout.strata] or [1.0]
            return np.maximum(np.array(shares) * (size or 1.0), weight), rho
        tables = yield from counts([layout.by for layout in families.layouts], rho=rho * self.count_share)
        found = []
        for layout, table in zip(families.layouts, tables, strict=True):
            resolved, total = counted(table, layout.strata, public.schema)
            found += [resolved.shares[group] * (size or total) for group in layout.strata]
        return np.maximum(np.array(found), weight), rho * (1 - self.count_share)


def _different(names: object) -> bool:
    """True if `names`, of any class, is a list or tuple of texts, none of them twice; True for an empty one."""
    return is_texts(names) and len(set(names)) == len(names)
