"""Synthetic mixtures: k groups of normal values with deviation 1, shares from a Dirichlet law, fresh in every run.

Redone from Figures 3, 6 and 7 of paper and supplement, whose committed curve for the stratified method was the
true group mean. Groups have means from N(10, 1); the truth is the mixture's mean, so that errors hold sampling
error as well as noise, and the plain stratified mean is the line to compare with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Budget
from stratsynth.schema import Categorical, Numeric, Schema
from studies.means.simulate import PublicRows
from studies.means.trials import Scores, Truth, compare

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

BUDGET = Budget(epsilon=1, delta=1e-9)
SETTINGS: dict[str, Any] = {"columns": ["x"], "centre": {"x": 0}, "radius": {"x": 20}, "scale": {"x": 1}}
"""Public: the mean lies within 20 of 0, and the deviation of a group is 1."""
HOLDOUT = 0.1
"""Size of the public sample, as a fraction of the private table."""
DEFAULT = {"n": 10_000, "k": 3, "alpha": 0.3}
GRID = {
    "n": tuple(range(2_000, 20_001, 2_000)),
    "k": (2, 3, 5, 8, 12, 18, 27, 40),
    "alpha": (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0),
}
"""The parameters and their values, varied one at a time."""


def one_run(n: int, k: int, alpha: float, rng: Generator) -> Scores:
    """Fresh shares, means, values and noise."""
    shares, means = rng.dirichlet(np.full(k, alpha)), rng.normal(10, 1, k)
    return compare_groups(rng.multinomial(n, shares), means, rng)


def compare_groups(sizes: NDArray[np.int64], means: NDArray[np.float64], rng: Generator) -> Scores:
    """Run once on groups of these sizes and means; the target is the mean weighted by the sizes."""
    rows = draw(sizes, means, rng)
    shares = sizes / sizes.sum()
    truth = Truth(float(shares @ means), np.where(sizes > 0, means, np.nan), sizes.astype(np.float64))
    public = rng.multinomial(max(round(HOLDOUT * sizes.sum()), 1), shares)
    return compare(rows, public, BUDGET, SETTINGS, rng, runs=1, truth=truth)[0]


def draw(sizes: NDArray[np.int64], means: NDArray[np.float64], rng: Generator) -> PublicRows:
    """Values of groups of these sizes and means."""
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    levels = tuple(str(i) for i in range(len(sizes)))
    schema = Schema({"group": Categorical(levels=levels), "x": Numeric(lower=-100, upper=100)})
    values = np.clip(means[stratum] + rng.normal(size=len(stratum)), -100, 100)
    return PublicRows(schema, {"x": values}, ("group",), stratum)


def settings() -> list[dict[str, Any]]:
    """Return every setting of the experiment, one parameter varied at a time."""
    return [
        {"experiment": f"mixture, {varied}", **DEFAULT, varied: value}
        for varied, values in GRID.items()
        for value in values
    ]


def experiment(given: dict[str, Any], rng: Generator, runs: int) -> list[dict[str, Any]]:
    """Run one setting; return a row for each run and method."""
    found = []
    for run in range(runs):
        scores = one_run(int(given["n"]), int(given["k"]), float(given["alpha"]), rng)
        found.extend(rows_of(scores, {**given, "run": run}))
    return found


def rows_of(scores: Scores, given: dict[str, Any]) -> list[dict[str, Any]]:
    """One tidy row a method."""
    from studies.means.trials import METHODS

    figures = {
        "error": scores.error,
        "parity": scores.parity,
        "parity of large groups": scores.large,
        "covered": scores.covered,
    }
    return [
        {**given, "method": method, **{name: values[i] for name, values in figures.items()}}
        for i, method in enumerate(METHODS)
    ]


def parity_ratio(rng: Generator, runs: int, *, size: int = 500, k: int = 5) -> float:
    """The stratified parity error as a part of the pooled one, in groups of 500 whose means differ by a deviation."""
    scores = [compare_groups(np.full(k, size), 10 + _standard(rng, k), rng) for _ in range(runs)]
    return float(np.mean([s.parity[1] for s in scores]) / np.mean([s.parity[0] for s in scores]))


def _standard(rng: Generator, k: int) -> NDArray[np.float64]:
    """Group means that differ by a standard deviation of exactly 1."""
    drawn = rng.normal(size=k)
    return np.asarray((drawn - drawn.mean()) / drawn.std())
