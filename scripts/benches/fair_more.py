"""`fair --only more`: where a wanted gap is harder to have: several groups, and more than two classes.

Several groups: five races of Adult (`--adult`), four of employment (`--acs`), and five made up; `fermi` with a gap and
with thresholds, and `reductions`. Three classes of income of the built-in census, where a gap is refused and a penalty
taken. On test rows; means of the seeds. Networks are fitted by `scripts/reproduce_fermi --only images`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from benches.fair_fits import DELTA, FEW, METHODS, PLAIN, Fits, means
from stratsynth.mechanisms import make
from studies import brought, data
from studies.figures import Figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from studies.data import Problem

SEVERAL = (
    PLAIN,
    "fermi, gap .05",
    "fermi, gap .05, group a feature",
    "fermi, gap .05 by thresholds",
    "reductions, parity .05",
    "reductions, parity .05, group a feature",
    "fairlearn, parity .05, not private",
)
"""Methods that several groups are measured with."""
PENALTIES = (0.0, 1.0, 5.0)
INCOMES = (25_000, 60_000)
"""Ends of the three classes of income."""


def run(*, seeds: int = 3, adult: str | None = None, acs: str | None = None, epsilon: float = 1.0) -> list[Figure]:
    """Return the figures: of several groups of the files that are named and of made-up ones, and of three classes."""
    fits, figures = Fits(), list[Figure]()
    for problem in several(adult, acs):
        for method in SEVERAL:
            found = [fits.scored(problem, method, epsilon, seed) for seed in range(seeds)]
            title = f"{problem.name}, {problem.schema.size(problem.group)} groups, epsilon {epsilon:g}: {method}"
            figures += [
                _figure(f"{title}, accuracy", [s.accuracy for s in found]),
                _figure(f"{title}, gap on test rows", [s.gap for s in found]),
            ]
            if "gap" in METHODS.get(method, {}):
                figures.append(_figure(f"{title}, missed", [float(s.status == "missed") for s in found]))
    return [*figures, *_penalised(classes(), seeds, epsilon)]


def several(adult: str | None, acs: str | None) -> list[Problem]:
    """Return problems of several groups: of the files that are named, and of five made-up groups."""
    return [
        *([replace(data.adult(Path(adult), "Adult by race"), group="race")] if adult else []),
        *([data.employment(Path(acs))[0]] if acs else []),
        five_groups(),
    ]


def five_groups(rows: int = 24_000) -> Problem:
    """`loans` in five groups of unequal sizes, whose incomes differ."""
    made = brought.loans(rows)
    rng = np.random.default_rng(11)
    group = rng.choice(list("abcde"), rows, p=[0.5, 0.25, 0.13, 0.08, 0.04])
    lift = np.select([group == g for g in "abcde"], [0, -6, 5, -9, 8])
    frame = made.frame.assign(INCOME=(made.frame.INCOME + lift).clip(5, 150), GROUP=group)
    yes = rng.random(rows) < 1 / (1 + np.exp(-0.06 * (frame.INCOME - 32) + 0.4 * (frame.LATE - 1)))
    frame["PAID"] = np.where(yes, "yes", "no")
    ends = {"YEARS": (0, 40), "INCOME": (5, 150), "DEBT": (0, 60), "LATE": (0, 8)}
    return data.problem("made-up loans", frame, ends, ("PURPOSE",), "PAID", "GROUP")


def classes(rows: int = 60_000) -> Problem:
    """Three classes of income of those who work among `rows` people of the built-in census, by sex."""
    return brought.simulated_census(rows, ends=INCOMES)


def _penalised(problem: Problem, seeds: int, epsilon: float) -> list[Figure]:
    """Return accuracy, and the largest gap between groups' rates of any class, for each penalty."""
    figures = []
    for penalty in PENALTIES:
        right, apart = [], []
        for seed in range(seeds):
            train, test = problem.split(np.random.default_rng(seed))
            features = [name for name in problem.features if name != problem.group]
            common = {"target": problem.target, "groups": [problem.group], "features": features, "penalty": penalty}
            table = ss.open_table(train, schema=problem.schema, declared_size=len(train))
            release = ss.fit(make("fermi", common), table, ss.Budget(epsilon, DELTA), progress=False)
            said = np.asarray(release.predict(test))
            right.append(float((said == test[problem.target].to_numpy()).mean()))
            apart.append(largest(problem, said, test[problem.group].to_numpy()))
        size = problem.schema.size(problem.target)
        title = f"{problem.name}, {size} classes, epsilon {epsilon:g}: fermi, penalty {penalty:g}"
        figures += [_figure(f"{title}, accuracy", right), _figure(f"{title}, largest gap of a class", apart)]
    return figures


def largest(problem: Problem, said: NDArray[Any], groups: NDArray[Any]) -> float:
    """Return the largest difference between two groups' rates of a predicted class, among groups of `FEW` rows."""
    parts = [groups == g for g in np.unique(groups) if (groups == g).sum() >= FEW]
    levels = problem.schema.levels(problem.target)
    return max(float(np.ptp(means((said == level).astype(np.float64), parts))) for level in levels)


def _figure(name: str, values: Sequence[float]) -> Figure:
    return Figure(name, float(np.mean(values)), "", len(values), (max(values) - min(values)) / 2)
