"""Laplace means, the estimator of paper 003's theory: stratified beside fresh ones, on mixtures, at one pure epsilon.

- fresh: one clipped mean of everybody for the whole epsilon (equation 1), which stands for every group too.
- fresh, groups too: one for half of epsilon, and the groups' means for the other half: the paper's serial composition.
- stratified: the groups' means for the whole epsilon (equation 2), and their mean by exact public sizes (equation 3).

Errors are distances from the people's own means, so that they are of noise and clipping alone. A record is exchanged,
as in the paper's scale 2 B / (n epsilon). The mechanism is the shipped `clipped_mean`; sizes are public.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Budget, Neighbours
from stratsynth.mechanisms import make
from studies.figures import Figure
from studies.means import bounds
from studies.means.mixtures import draw
from studies.means.simulate import simulate
from studies.means.theory import NY_2018
from studies.means.trials import LARGE, group_means, stratified, truth_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator
    from numpy.typing import NDArray

PEOPLE, GAMMA = 10_000, 0.01
BUDGET = Budget(epsilon=1, delta=1e-9, neighbours=Neighbours.REPLACE)
EQUAL = np.inf
"""The alpha of equal groups."""
KS, ALPHAS, RADII = (3, 9, 27), (0.13, 1.0, EQUAL), (3.0, 20.0)
NOISES = 4
"""Draws of noise for the same people."""
METHODS = ("fresh", "fresh, groups too", "stratified")


def settings() -> list[dict[str, Any]]:
    """Return every setting: number of groups, parameter of their shares' Dirichlet law, and radius R."""
    return [
        {"experiment": "laplace", "n": PEOPLE, "k": k, "alpha": alpha, "radius": radius}
        for radius in RADII
        for k in KS
        for alpha in ALPHAS
    ]


def experiment(given: dict[str, Any], rng: Generator, runs: int) -> list[dict[str, Any]]:
    """Run one setting on fresh shares, means and values in every run; return a row for each run and method."""
    n, k, alpha, radius = int(given["n"]), int(given["k"]), float(given["alpha"]), float(given["radius"])
    found = []
    for run in range(runs):
        shares = np.full(k, 1 / k) if alpha == EQUAL else rng.dirichlet(np.full(k, alpha))
        means = np.clip(rng.normal(0, 1, k), -radius, radius)
        found += [{**given, "run": run, **row} for row in one_run(rng.multinomial(n, shares), means, radius, rng)]
    return found


def one_run(
    sizes: NDArray[np.int64], means: NDArray[np.float64], radius: float, rng: Generator
) -> list[dict[str, Any]]:
    """Return a row a method: mean errors over `NOISES` draws of noise, theory's spread and bound; no empty group."""
    sizes, means = sizes[sizes > 0], means[sizes > 0]
    rows, n, people = draw(sizes, means, rng), int(sizes.sum()), [float(size) for size in sizes]
    own, half, large = truth_of(rows, "x"), replace(BUDGET, epsilon=BUDGET.epsilon / 2), sizes >= LARGE
    plain = {"columns": ["x"], "centre": {"x": 0}, "radius": {"x": radius}, "scale": {"x": 1}, "gamma": GAMMA}
    mean = make("clipped_mean", {**plain, "count": "declared", "variance": "bounded"})
    strata = stratified(mean, rows, own.shares)
    found = []
    for method in METHODS:
        budget = half if method == "fresh, groups too" else BUDGET
        whole = np.empty(NOISES)
        groups = np.empty((NOISES, len(sizes)))
        if method != "stratified":
            fresh = simulate(mean, rows, budget, rng, runs=NOISES, declared=n)
            whole = np.array([one.figures.value[0] for one in fresh])
            groups[:] = whole[:, None]
        if method != "fresh":
            parts = simulate(strata, rows, budget, rng, runs=NOISES, declared=n)
            groups = np.array([group_means(one) for one in parts])
            if method == "stratified":
                whole = np.array([one.figures.value[0] for one in parts])
        error, own_group = np.abs(whole - own.everybody), np.abs(groups - own.groups)[:, large]
        at = (radius, budget.epsilon, GAMMA)
        bound = bounds.stratified(people, *at) if method == "stratified" else bounds.fresh(n, *at)
        found.append(
            {
                "method": method,
                "error": float(error.mean()),
                "group error": float(own_group.mean()) if large.any() else np.nan,
                "noise": bounds.spread(people if method == "stratified" else [float(n)], *at),
                "bound": bound,
                "within": float((error <= bound).mean()),
            }
        )
    return found


def summary(frame: pd.DataFrame) -> str:
    """Tables of the error of the mean of all, and of groups of at least 500 people, by method."""
    named = frame.assign(alpha=frame["alpha"].map(lambda alpha: "equal" if alpha == EQUAL else f"{alpha:g}"))
    lines = []
    for measure, note in (
        ("error", "distance of the mean of all from the people's own mean"),
        ("group error", f"mean distance in groups of at least {LARGE} people"),
    ):
        table = named.pivot_table(index=["radius", "k", "alpha"], columns="method", values=measure, sort=False)
        table = table.reindex(columns=list(METHODS))
        table["stratified / fresh"] = table["stratified"] / table["fresh"]
        lines.append(f"Laplace means, {note}\n{table.to_string(float_format='{:.4g}'.format)}")
    return "\n\n".join(lines)


def figures(frame: pd.DataFrame) -> list[Figure]:
    """Return the noise that stratifying adds, beside Proposition 8's root of k, and the share within the bounds."""
    draws = NOISES * (int(frame["run"].max()) + 1)
    means = frame.pivot_table(index=["radius", "k", "alpha"], columns="method", values="error")
    ratio, both = means["stratified"] / means["fresh"], means["stratified"] / means["fresh, groups too"]
    found = []
    for alpha, what in ((ALPHAS[0], f"alpha {ALPHAS[0]:g}"), (EQUAL, "equal groups")):
        for k in KS:
            title = f"Laplace means, {what}, k = {k}: error of the mean of all, stratified over fresh"
            value = float(ratio.xs(alpha, level="alpha").xs(k, level="k").mean())
            found.append(Figure(title, value, "", draws, against=f"Proposition 8: the root of k, {k**0.5:.3g}"))
    few = float(both.xs(KS[0], level="k").mean())
    title = f"Laplace means, k = {KS[0]}: stratified over fresh for half of epsilon, the groups' means for the other"
    found.append(Figure(title, few, "", draws, against="below 1 is better"))
    held, aim = 100 * float(frame["within"].mean()), 100 * (1 - 2 * GAMMA)
    title = "Laplace means: errors within equation 1 or Proposition 8, with constants"
    found.append(Figure(title, held, "%", draws, against=f"at least {aim:g}", reached=held >= aim))
    return [*found, *example()]


def example() -> list[Figure]:
    """Return the stratified mean's noise in the paper's example, New York 2018, as a multiple of the fresh one's."""
    people = float(sum(NY_2018))
    found = []
    for radius in (0.0, *RADII):
        at = (radius, 1.0, GAMMA)
        own, equal = (
            bounds.spread(sizes, *at) / bounds.spread([people], *at)
            for sizes in ([float(size) for size in NY_2018], [people / len(NY_2018)] * len(NY_2018))
        )
        title = f"theory, New York 2018: noise of the mean of all, stratified over fresh, R = {radius:g}"
        found.append(Figure(title, own, "", against=f"{equal:.3g} if all groups were equal"))
    return found
