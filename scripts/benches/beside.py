"""Our private regressions beside another library's, on real data: the same splits, features, bounds and epsilons."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import stratsynth as ss
from benches import rivals
from stratsynth.errors import UsageError
from stratsynth.mechanisms import make
from studies import data
from studies.figures import Figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

EPSILONS = (1.0, 3.0)
DELTA = 1e-6
OBJECTIVES = ("pooled", "balanced")
TRAINED = 0.8
"""The part of the rows that models are fitted to; the rest is predicted."""


@dataclass(frozen=True, eq=False)
class Case(data.Problem):
    """Problem with a target, and the group that predictions may serve badly."""

    minority: str
    """The level of the group's column that is in the minority."""

    @property
    def link(self) -> Literal["linear", "logistic"]:
        """Kind of regression: `linear` for a numeric target, `logistic` for a level."""
        return "linear" if isinstance(self.schema.column(self.target), ss.Numeric) else "logistic"

    def truth(self) -> Floats:
        """The target: between -1 and 1, or 0 and 1."""
        if self.link == "linear":
            return self.scaled(self.target, self.frame)
        return np.asarray(self.frame[self.target] == self.positive, np.float64)


def adult(path: Path) -> list[Case]:
    """Income above 50,000 dollars, by sex."""
    return [Case(**vars(data.adult(path, "Adult, income", wide=False)), minority="Female")]


def law(path: Path) -> list[Case]:
    """Passing the bar, and grades, by race."""
    found = (data.law(path, "law school, bar", wide=False), data.grades(path))
    return [
        Case(**vars(problem), minority=next(level for level in problem.frame["race"].unique() if level != "White"))
        for problem in found
    ]


def compared(problem: Case, seeds: int) -> list[Figure]:
    """Test errors of everybody and of the minority: ours, pooled and balanced, and diffprivlib's."""
    rng = np.random.default_rng(2026)
    train = rng.random((seeds, len(problem.frame))) < TRAINED
    truth = problem.truth()
    said = {"diffprivlib": _theirs(problem, train)}
    said |= {objective: _ours(problem, train, objective) for objective in OBJECTIVES}
    few = (problem.frame[problem.group] == problem.minority).to_numpy()
    figures = []
    for i, epsilon in enumerate(EPSILONS):
        errors = {
            name: [_errors(problem, truth, found[i][k], ~train[k], few) for k in range(seeds)]
            for name, found in said.items()
        }
        figures += _shown(problem, epsilon, errors)
    return figures


def _errors(problem: Case, truth: Floats, said: Floats, test: Any, few: Any) -> tuple[float, float]:
    """Mean squared error, or share of wrong predictions, among test rows: of everybody, and of the minority."""
    wrong = (said - truth) ** 2 if problem.link == "linear" else (said != truth).astype(float)
    return float(wrong[test].mean()), float(wrong[test & few].mean())


def _shown(problem: Case, epsilon: float, errors: Mapping[str, list[tuple[float, float]]]) -> list[Figure]:
    means = {name: np.mean(found, axis=0) for name, found in errors.items()}
    figures = []
    for name, found in errors.items():
        for i, who in enumerate(("everybody", problem.minority)):
            ours = (name, who) in {("pooled", "everybody"), ("balanced", problem.minority)}
            other = float(means["diffprivlib"][i])
            values = [pair[i] for pair in found]
            figures.append(
                Figure(
                    f"{problem.name}, epsilon {epsilon:g}: error of {who}, {name}",
                    float(means[name][i]),
                    "",
                    len(values),
                    (max(values) - min(values)) / 2,
                    f"diffprivlib {other:.4g}" if ours else "",
                    bool(means[name][i] <= other) if ours else None,
                )
            )
    return figures


def _ours(problem: Case, train: Any, objective: str) -> list[list[Floats]]:
    """Predictions of our models for every row, by epsilon and repetition."""
    settings = {
        "target": problem.target,
        "features": problem.features,
        "groups": [problem.group],
        "model": problem.link,
        "objective": objective,
    }
    found = []
    for epsilon in EPSILONS:
        budget = ss.Budget(epsilon=epsilon, delta=DELTA)
        runs = []
        for rows in train:
            table = ss.open_table(problem.frame[rows], schema=problem.schema, declared_size=int(TRAINED * len(rows)))
            said = ss.fit(make("group_regression", settings), table, budget).predict(problem.frame)
            runs.append(_in_their_unit(problem, said))
        found.append(runs)
    return found


def _in_their_unit(problem: Case, said: Any) -> Floats:
    if problem.link == "logistic":
        return np.asarray(said == problem.schema.levels(problem.target)[1], np.float64)
    column = problem.schema.column(problem.target)
    assert isinstance(column, ss.Numeric)  # noqa: S101 - a linear problem
    low, high = float(column.lower), float(column.upper)
    return np.asarray(2 * (said - low) / (high - low) - 1, np.float64)


def _theirs(problem: Case, train: Any) -> Any:
    """Predictions of diffprivlib's models, by epsilon and repetition, in the environment that `scripts/bench` made."""
    python = os.environ.get("STRATSYNTH_RIVALS")
    if not python:
        raise UsageError("bench: start comparisons with scripts/bench, which makes the environment of other libraries.")
    x, y = problem.matrix(problem.frame), problem.truth()
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "given.npz", Path(folder) / "result.npz"
        norm = np.sqrt(len(problem.features))
        np.savez(given, x=x, y=y, train=train, epsilons=np.array(EPSILONS), link=np.array(problem.link), norm=norm)
        script = str(Path(rivals.__file__))
        subprocess.run([python, "-I", script, str(given), str(result)], check=True)  # noqa: S603 - our own script
        return np.load(result)["said"]
