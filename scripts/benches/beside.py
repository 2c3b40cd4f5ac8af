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
import pandas as pd

import stratsynth as ss
from benches import rivals
from stratsynth.errors import UsageError
from stratsynth.mechanisms import make
from studies.figures import Figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

EPSILONS = (1.0, 3.0)
DELTA = 1e-6
OBJECTIVES = ("pooled", "balanced")
TRAINED = 0.8
"""The part of the rows that models are fitted to; the rest is predicted."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A table, what is predicted of it, and whom it may serve badly."""

    name: str
    frame: pd.DataFrame
    schema: Schema
    target: str
    link: Literal["linear", "logistic"]
    group: str
    minority: str
    """The level of the group's column that is in the minority."""

    @property
    def features(self) -> list[str]:
        """All columns but the target, the group's own among them."""
        return [name for name in self.schema.names if name != self.target]

    def matrix(self) -> tuple[Floats, Floats]:
        """The same features as our design's, without an intercept, and the target: between -1 and 1, or 0 and 1."""
        parts = []
        for name in self.features:
            column = self.schema.column(name)
            if isinstance(column, ss.Numeric):
                parts.append(self._scaled(name)[:, None])
            else:
                parts.append(np.array([self.frame[name] == level for level in column.levels[1:]], float).T)
        return np.column_stack(parts), self._truth()

    def _truth(self) -> Floats:
        if self.link == "linear":
            return self._scaled(self.target)
        positive = self.schema.levels(self.target)[1]
        return np.asarray(self.frame[self.target] == positive, np.float64)

    def _scaled(self, name: str) -> Floats:
        column = self.schema.column(name)
        assert isinstance(column, ss.Numeric)  # noqa: S101 - its callers' condition
        low, high = float(column.lower), float(column.upper)
        return np.clip(2 * (self.frame[name].to_numpy(np.float64) - low) / (high - low) - 1, -1, 1)


def adult(path: str | Path) -> list[Problem]:
    """Income above 50,000 dollars, by sex. Levels and bounds are those of the published description."""
    frame = pd.read_csv(path)
    numbers = {"age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 99)}
    coded = ("workclass", "marital-status", "occupation", "relationship", "race", "sex")
    return [_problem("Adult, income", frame, numbers, coded, "income", "logistic", "sex", "Female")]


def law(path: str | Path) -> list[Problem]:
    """Passing the bar, and grades, by race."""
    frame = pd.read_csv(path)
    frame["bar"] = np.where(frame["pass_bar"] > 0, "yes", "no")
    numbers = {"lsat": (10, 48), "ugpa": (1, 4), "fam_inc": (1, 5), "tier": (1, 6)}
    grades = {**numbers, "zgpa": (-4, 4)}
    minority = next(level for level in frame["race"].unique() if level != "White")
    return [
        _problem("law school, bar", frame, numbers, ("race",), "bar", "logistic", "race", minority),
        _problem("law school, grades", frame, grades, ("race",), "zgpa", "linear", "race", minority),
    ]


def _problem(
    name: str, frame: pd.DataFrame, numbers: Mapping[str, tuple[int, int]], coded: tuple[str, ...], target: str,
    link: Literal["linear", "logistic"], group: str, minority: str,
) -> Problem:  # fmt: skip
    levels = (*coded, *([target] if link == "logistic" else []))
    columns: dict[str, Any] = {n: ss.Numeric(lower=a, upper=b, bins=4) for n, (a, b) in numbers.items()}
    columns |= {n: ss.Categorical(levels=tuple(sorted(map(str, frame[n].unique())))) for n in levels}
    return Problem(name, frame[list(columns)], ss.Schema(columns), target, link, group, minority)


def compared(problem: Problem, seeds: int) -> list[Figure]:
    """Test errors of everybody and of the minority: ours, pooled and balanced, and diffprivlib's."""
    rng = np.random.default_rng(2026)
    train = rng.random((seeds, len(problem.frame))) < TRAINED
    truth = problem.matrix()[1]
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


def _errors(problem: Problem, truth: Floats, said: Floats, test: Any, few: Any) -> tuple[float, float]:
    """Of everybody and of the minority among test rows: mean squared error, or the share that is wrong."""
    wrong = (said - truth) ** 2 if problem.link == "linear" else (said != truth).astype(float)
    return float(wrong[test].mean()), float(wrong[test & few].mean())


def _shown(problem: Problem, epsilon: float, errors: Mapping[str, list[tuple[float, float]]]) -> list[Figure]:
    means = {name: np.mean(found, axis=0) for name, found in errors.items()}
    figures = []
    for name, found in errors.items():
        for i, who in enumerate(("everybody", problem.minority)):
            ours = (name, who) in {("pooled", "everybody"), ("balanced", problem.minority)}
            other = float(means["diffprivlib"][i])
            values = [pair[i] for pair in found]
            figures.append(
                Figure(
                    f"{problem.name}, epsilon {epsilon:g}: error of {who}, {name}", float(means[name][i]), "",
                    len(values), (max(values) - min(values)) / 2,
                    f"diffprivlib {other:.4g}" if ours else "", bool(means[name][i] <= other) if ours else None,
                )
            )  # fmt: skip
    return figures


def _ours(problem: Problem, train: Any, objective: str) -> list[list[Floats]]:
    """By epsilon and repetition, what our models say of every row."""
    settings = {
        "target": problem.target, "features": problem.features, "groups": [problem.group], "model": problem.link,
        "objective": objective,
    }  # fmt: skip
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


def _in_their_unit(problem: Problem, said: Any) -> Floats:
    if problem.link == "logistic":
        return np.asarray(said == problem.schema.levels(problem.target)[1], np.float64)
    column = problem.schema.column(problem.target)
    assert isinstance(column, ss.Numeric)  # noqa: S101 - a linear problem
    low, high = float(column.lower), float(column.upper)
    return np.asarray(2 * (said - low) / (high - low) - 1, np.float64)


def _theirs(problem: Problem, train: Any) -> Any:
    """The same of diffprivlib's models, in the environment that `scripts/bench` made for it."""
    python = os.environ.get("STRATSYNTH_RIVALS")
    if not python:
        raise UsageError("bench: start comparisons with scripts/bench, which makes the environment of other libraries.")
    x, y = problem.matrix()
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "given.npz", Path(folder) / "result.npz"
        norm = np.sqrt(len(problem.features))
        np.savez(given, x=x, y=y, train=train, epsilons=np.array(EPSILONS), link=np.array(problem.link), norm=norm)
        script = str(Path(rivals.__file__))
        subprocess.run([python, "-I", script, str(given), str(result)], check=True)  # noqa: S603 - our own script
        return np.load(result)["said"]
