"""One comparison of pooled, stratified and public-stratified means on public rows, run many times.

- pooled: one private mean, which stands for every group too.
- stratified (STRATCOINPRESS): group means, and their mean by exact public shares; group sizes are public too.
- public-stratified (PUB-STRATCOINPRESS): weights counted in a disjoint public sample, matched by the groups'
  labels, their uncertainty in the interval; sizes are noisy counts.
- plain: the stratified mean without any noise, or with the weights of the public sample.

The error of a mean f is |estimate - f| / |f|. The parity error of Definition 10 is omega |error of the mean of
all| plus the sum of the errors of the groups, omega 1/k. Groups of nobody have no mean, and a mean of 0 has no
relative error: they take no part, and k is without them. One group of a few people, whom no noise of this size
leaves recognisable, can outweigh all others in that sum; so the same is given for groups of at least 500 people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stratsynth.accounting.budget import Budget
from stratsynth.mechanisms import make
from stratsynth.models import Estimate
from stratsynth.models.intervals import sampled_shares_covariance
from stratsynth.models.weighted import weighted
from stratsynth.schema.transforms import forward
from stratsynth.stratified import Stratified
from stratsynth.weights import Weights
from studies.means.simulate import PublicRows, simulate

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.mechanisms import Mechanism
    from stratsynth.schema import Numeric

    Floats = NDArray[np.float64]

METHODS = ("pooled", "stratified", "public-stratified", "plain", "plain, public")
LARGE = 500
"""Groups of at least this size have usable means at the budgets of these experiments."""
CITATION = "counted in public rows, for an experiment"


@dataclass(frozen=True)
class Truth:
    """The true means of one column, on the column's scale."""

    everybody: float
    groups: Floats
    """NaN for a group of nobody."""
    sizes: Floats
    """Number of people of each group."""

    @property
    def shares(self) -> Floats:
        """The exact shares of the groups."""
        shares: Floats = self.sizes / self.sizes.sum()
        return shares


@dataclass(frozen=True)
class Scores:
    """The errors of one run, by method, in the order of `METHODS`."""

    error: Floats
    parity: Floats
    large: Floats
    """The parity error over groups of at least 500 people; NaN where there is none."""
    covered: Floats
    """1 if the 95 % interval of the mean of all holds the truth, else 0; NaN where there is no interval.

    Where the truth is the rows' own mean, the interval is for noise and weights alone.
    """


def truth_of(rows: PublicRows, column: str) -> Truth:
    """The rows' own means, free of noise, clipping and wrong weights."""
    numeric = cast("Numeric", rows.schema.column(column))
    values, k = forward(numeric, rows.numbers[column]), len(rows.strata)
    sizes = np.bincount(rows.stratum, minlength=k).astype(np.float64)
    with np.errstate(invalid="ignore"):
        groups = np.bincount(rows.stratum, weights=values, minlength=k) / sizes
    return Truth(float(values.mean()), groups, sizes)


def compare(
    rows: PublicRows,
    public: NDArray[np.int64],
    budget: Budget,
    settings: dict[str, Any],
    rng: Generator,
    *,
    runs: int,
    truth: Truth | None = None,
) -> list[Scores]:
    """Run all methods `runs` times on the same rows; `public` has the size of each group in the public sample.

    The one column is the settings' first. Without `truth` the targets are the rows' own means.
    """
    column, n = settings["columns"][0], len(rows.stratum)
    own = truth_of(rows, column)
    target = own if truth is None else truth
    known = make("coinpress", {**settings, "count": "declared"})
    unknown = make("coinpress", settings)
    counted = public / public.sum()
    pooled = simulate(known, rows, budget, rng, runs=runs, declared=n)
    strata = simulate(stratified(known, rows, own.shares), rows, budget, rng, runs=runs, declared=n)
    sampled = simulate(stratified(unknown, rows, counted), rows, budget, rng, runs=runs, declared=n)
    covariance = sampled_shares_covariance(counted, float(public.sum()))
    plain = np.where(np.isnan(own.groups), 0.0, own.groups)
    found, people = [], truth is not None
    for one, exact, drawn in zip(pooled, strata, sampled, strict=True):
        weighed = weighted(rows.schema, drawn.parts, drawn.shares, covariance)
        estimates = [
            (one.figures.value[0], np.full(len(plain), one.figures.value[0]), one),
            (exact.figures.value[0], group_means(exact), exact),
            (weighed.figures.value[0], group_means(weighed), weighed),
            (float(own.shares @ plain), own.groups, None),
            (float(counted @ plain), own.groups, None),
        ]
        found.append(_scores(estimates, target, people=people))
    return found


def stratified(mechanism: Mechanism[Any], rows: PublicRows, shares: Floats) -> Stratified:
    """A mechanism in each stratum, with these shares."""
    import pandas as pd

    table = pd.DataFrame([{**s.to_dict(), "share": w} for s, w in zip(rows.strata, shares, strict=True)])
    return Stratified(mechanism, rows.by, Weights.public(table, citation=CITATION))


def group_means(estimate: Estimate) -> Floats:
    """Return the mean of each group, in the order of the strata."""
    return np.array([part.figures.value[0] for part in estimate.parts.values()])


def _scores(estimates: Sequence[tuple[float, Floats, Estimate | None]], truth: Truth, *, people: bool) -> Scores:
    """The errors of one run; `people` says whether the truth is of those whom the rows were drawn from."""
    error, parity, large, covered = [], [], [], []
    for whole, groups, model in estimates:
        miss = abs(whole - truth.everybody) / abs(truth.everybody)
        error.append(miss)
        parity.append(_parity(miss, groups, truth, truth.sizes > 0))
        large.append(_parity(miss, groups, truth, truth.sizes >= LARGE))
        covered.append(np.nan if model is None else _covers(model, truth.everybody, sampling=people))
    return Scores(*(np.array(x, dtype=float) for x in (error, parity, large, covered)))


def _parity(miss: float, groups: Floats, truth: Truth, chosen: NDArray[np.bool_]) -> float:
    """Definition 10 over some groups."""
    chosen = chosen & (truth.groups != 0)
    if not chosen.any():
        return np.nan
    misses = np.abs(groups - truth.groups)[chosen] / np.abs(truth.groups[chosen])
    return float(miss / chosen.sum() + misses.sum())


def _covers(model: Estimate, truth: float, *, sampling: bool) -> bool:
    lower, upper = model.interval(sampling=sampling)
    return bool(lower[0] <= truth <= upper[0])
