"""`fair`: private classifiers by their defaults beside logistic regression without privacy, on public data.

For each data set, method and epsilon: accuracy on test rows, its loss against logistic regression, the accuracy of the
worst group, the gap of parity (the largest difference between two groups' rates of positive predictions; for odds,
among rows of each true class) and processor seconds. `--rows` draws that many rows of each file. The target is one of
fits to at least 14,000 rows.

A wanted gap of parity is asked for without and with the group among the features and by thresholds, one of odds
without. Its targets are the mean gap on test rows beside the wanted one, and an accuracy.

Files that are named come first, then two problems that are made up. With `--out` a folder keeps each fit, so that
another run goes on, and gets a picture of the first epsilon, `fair.svg`. `--quick` is epsilon 1 alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benches.fair_fits import METHODS, PLAIN, Fits, Scored
from studies import brought, data
from studies.figures import Figure, limited

if TYPE_CHECKING:
    from studies.data import Problem

EPSILONS = (0.5, 1.0, 3.0)
NEAR = 0.0035
"""Largest mean loss of accuracy against logistic regression without privacy."""
PLENTY = 14_000
"""Rows fitted from which this is the target."""
OFF: Mapping[str, float] = {"Adult": 0.012, "law school": 0.02}
"""Largest difference of the mean gap on test rows from the wanted one, by data set."""
ACCURATE: Mapping[tuple[str, str], float] = {
    ("Adult", "fermi, gap .05"): 0.836,
    ("law school", "fermi, gap .05"): 0.893,
    ("Adult", "fermi, gap .05 of odds"): 0.847,
}
"""Least mean accuracy, by data set and method."""
NEARLY_PLAIN = ("fermi, no penalty", "fair_sgd", "group_regression")
"""Methods that ask nothing of groups, and are to be as accurate as logistic regression."""


def run(
    *,
    seeds: int = 3,
    adult: str | None = None,
    law: str | None = None,
    acs: str | None = None,
    rows: int | None = None,
    epsilons: Sequence[float] = EPSILONS,
    out: str | None = None,
) -> list[Figure]:
    """Return the figures of every data set: of the files that are named, and of made-up rows.

    Args:
        seeds: Splits of each data set, each with a fit of every method.
        adult: File of Adult.
        law: File of the law school.
        acs: File of person records of the survey.
        rows: Most rows of a data set; None for all.
        epsilons: Budgets.
        out: Folder that keeps each fit, and gets the picture of the first epsilon.
    """
    fits, figures, drawn = Fits(Path(out) if out else None), list[Figure](), {}
    for problem in problems(adult, law, acs, rows):
        plain = [fits.scored(problem, PLAIN, 0.0, seed) for seed in range(seeds)]
        few = len(problem.split(np.random.default_rng(0))[0])
        figures += _groups(problem)
        figures.append(_figure(f"{problem.name}, {few:,} rows: accuracy without privacy", [s.accuracy for s in plain]))
        figures.append(_figure(f"{problem.name}: gap of parity without privacy", [s.gap for s in plain]))
        figures.append(
            _figure(f"{problem.name}: accuracy of the worst group without privacy", [s.worst for s in plain])
        )
        for epsilon in epsilons:
            found = {name: [fits.scored(problem, name, epsilon, seed) for seed in range(seeds)] for name in METHODS}
            for name, some in found.items():
                figures += _shown(problem.name, epsilon, name, some, plain, few)
            if epsilon == epsilons[0]:
                drawn[f"{problem.name}, {few:,} rows"] = {PLAIN: plain, **found}
    if out:
        from benches.fair_picture import draw

        draw(drawn, Path(out) / "fair.svg", f"Accuracy by gap at epsilon {epsilons[0]:g}: means of {seeds} fits")
    return figures


def problems(adult: str | None, law: str | None, acs: str | None, rows: int | None) -> list[Problem]:
    """Return the problems of the files that are named, then those made up, of at most `rows` rows each."""
    found = [
        *([data.adult(Path(adult))] if adult else []),
        *([data.law(Path(law), wide=False)] if law else []),
        *([brought.income(Path(acs)), data.employment(Path(acs))[0]] if acs else []),
        brought.simulated_census(),
        brought.loans(),
    ]
    if rows is None:
        return found
    return [replace(p, frame=p.frame.sample(min(rows, len(p.frame)), random_state=0)) for p in found]


def _groups(problem: Problem) -> list[Figure]:
    """Return the share of each group in the rows."""
    shares = problem.frame[problem.group].value_counts(normalize=True)
    return [Figure(f"{problem.name}: part of {problem.group} {g}", float(s), "") for g, s in shares.items()]


def _shown(
    where: str, epsilon: float, name: str, found: Sequence[Scored], plain: Sequence[Scored], rows: int
) -> list[Figure]:
    """Return the figures of a method `name` on a data set, of which so many rows were fitted; `plain` is beside it."""
    private = "bound" not in METHODS.get(name, {})
    title = f"{where}, epsilon {epsilon:g}: {name}" if private else f"{where}: {name}"
    right = _figure(f"{title}, accuracy", [s.accuracy for s in found])
    least = ACCURATE.get((where, name))
    if least is not None:
        right = replace(right, against=f"at least {least:g}", reached=right.value >= least)
    gap = _figure(f"{title}, gap on test rows", [s.gap for s in found])
    wanted = METHODS.get(name, {}).get("gap")
    own = []
    if wanted is not None:
        off = OFF.get(where) if name in ("fermi, gap .05", "fermi, gap .1") else None
        own = [limited(f"{title}, mean gap from {wanted:g}", abs(gap.value - wanted), off, "", len(found))]
        own += [_figure(f"{title}, {s}", [float(one.status == s) for one in found]) for s in ("met", "missed")]
    elif name in NEARLY_PLAIN:
        lost = float(np.mean([b.accuracy - a.accuracy for a, b in zip(found, plain, strict=True)]))
        own = [
            limited(f"{title}, accuracy lost", lost, NEAR if rows >= PLENTY else None, "", len(found)),
            _figure(f"{title}, clip ({found[0].steps} steps)", [s.clip for s in found]),
        ]
    worst = _figure(f"{title}, accuracy of the worst group", [s.worst for s in found])
    return [right, gap, *own, worst, _figure(f"{title}, processor", [s.seconds for s in found], "s")]


def _figure(name: str, values: Sequence[float], unit: str = "") -> Figure:
    return Figure(name, float(np.mean(values)), unit, len(values), (max(values) - min(values)) / 2)
