"""`predict --only linear`: private linear regressions beside each other, at one epsilon and delta, in parts explained.

Ours are `group_regression`, by descent, and `adassp`, by noisy moments, plain and boosted. Others: AdaSSP as published,
with floating-point noise and the constants of its paper; diffprivlib's functional mechanism, which promises pure
epsilon; and DP-EBM, sums of functions of single columns and of pairs, by interpret's own claim of (epsilon, delta). The
last two need the environment that `scripts/bench` makes, and are left out without it.
"""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from benches import rivals
from stratsynth.mechanisms import make
from studies import data
from studies.figures import Figure

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from studies.data import Problem

    Floats = NDArray[np.float64]
    Methods = Mapping[str, Callable[[Any, float], Floats]]

EPSILONS = (0.5, 1.0, 3.0)
DELTA = 1e-6
TRAINED = 0.8
"""The part of the rows that models are fitted to; the rest is predicted."""
INCOME = (0, 150_000)
"""Bounds of incomes, in dollars: larger ones count as the upper bound, in the fit and in the errors."""
EXCERPT = ("MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "INDP_CAT", "EDU", "DREM", "DPHY")
CENSUS = ("SCHL", "MAR", "RAC1P", "ESR", "DIS")
PEOPLE = 20_000
ROUNDS = 10
FAILURE = 0.05
"""Probability with which the published ridge may be too small, as in `adassp`."""


def run(
    *,
    seeds: int,
    adult: str | None = None,
    law: str | None = None,
    acs: str | None = None,
    epsilons: Sequence[float] = (),
) -> list[Figure]:
    """Return R^2 on held-out rows by data set, epsilon and method; simulated people where no file is named."""
    del adult  # its target is a class
    problems = [load(Path(path)) for load, path in ((incomes, acs), (data.grades, law)) if path]
    return [f for problem in problems or [simulated()] for f in compared(problem, seeds, epsilons or EPSILONS)]


def incomes(path: Path) -> Problem:
    """Incomes of adults in NIST's excerpt of the ACS; others have none."""
    frame = data.records(path, ("AGEP", "SEX", *EXCERPT, "PINCP"))
    return _of_adults("census, incomes", frame, EXCERPT)


def simulated() -> Problem:
    """Incomes of the built-in census's adults."""
    return _of_adults("simulated census, incomes", ss.census.make(PEOPLE, seed=7), CENSUS)


def _of_adults(name: str, frame: pd.DataFrame, coded: Sequence[str]) -> Problem:
    numbers = {
        n: frame[n].astype("string").str.replace("N", "").replace("", None).astype("Float64") for n in ("AGEP", "PINCP")
    }
    frame = frame.assign(**numbers)
    frame = frame[(frame["AGEP"] >= 18) & frame["PINCP"].notna()]
    frame = frame.assign(AGEP=frame["AGEP"].astype(float), PINCP=frame["PINCP"].astype(float).clip(*INCOME))
    return data.problem(name, frame, {"AGEP": (0, 99), "PINCP": INCOME}, coded, "PINCP", "SEX")


def compared(problem: Problem, seeds: int, epsilons: Sequence[float]) -> list[Figure]:
    """Mean R^2 of each method over splits; the spread is half the range."""
    rng = np.random.default_rng(2026)
    train = rng.random((seeds, len(problem.frame))) < TRAINED
    y = problem.scaled(problem.target, problem.frame)
    x = np.column_stack([np.ones(len(y)), problem.matrix(problem.frame)])
    own: Methods = {
        "group_regression": _ours(problem, "group_regression", {"model": "linear"}),
        "adassp": _ours(problem, "adassp", {}),
        f"adassp, {ROUNDS} rounds": _ours(problem, "adassp", {"rounds": ROUNDS}),
        "AdaSSP as published": lambda rows, epsilon: _published(x, y, rows, epsilon, problem, rng),
    }
    found: dict[str, Any] = {
        "least squares, not private": [[_least_squares(x, y, rows) for rows in train]] * len(epsilons)
    }
    found |= {name: [[fit(rows, epsilon) for rows in train] for epsilon in epsilons] for name, fit in own.items()}
    found |= _others(problem, x, y, train, epsilons)
    figures = []
    for at, epsilon in enumerate(epsilons):
        for name, made in found.items():
            scores = [_r2(y[~rows], said[~rows]) for rows, said in zip(train, made[at], strict=True)]
            spread = (max(scores) - min(scores)) / 2
            what = f"{problem.name}, epsilon {epsilon:g}: R^2, {name}"
            figures.append(Figure(what, float(np.mean(scores)), "", len(scores), spread))
    return figures


def _r2(y: Floats, said: Floats) -> float:
    return float(1 - np.mean((np.clip(said, -1, 1) - y) ** 2) / np.var(y))


def _ours(problem: Problem, name: str, settings: Mapping[str, Any]) -> Callable[[Any, float], Floats]:
    """Predictions of one of our mechanisms, of every row, scaled as the target."""

    def fit(rows: Any, epsilon: float) -> Floats:
        table = ss.open_table(problem.frame[rows], schema=problem.schema, declared_size=int(TRAINED * len(rows)))
        how = make(name, {"target": problem.target, "features": problem.features, **settings})
        said = ss.fit(how, table, ss.Budget(epsilon=epsilon, delta=DELTA)).predict(problem.frame)
        return problem.scaled(problem.target, problem.frame.assign(**{problem.target: said}))

    return fit


def _least_squares(x: Floats, y: Floats, rows: Any) -> Floats:
    theta = np.linalg.lstsq(x[rows], y[rows], rcond=None)[0]
    return np.asarray(x @ theta, np.float64)


def _published(x: Floats, y: Floats, rows: Any, epsilon: float, problem: Problem, rng: np.random.Generator) -> Floats:
    """Return predictions by AdaSSP as Wang (2018) has it: a third of epsilon and delta for each of three releases."""
    d, norm2 = x.shape[1], 1 + len(problem.features)
    a, b = x[rows].T @ x[rows], x[rows].T @ y[rows]
    scale = math.sqrt(math.log(6 / DELTA)) / (epsilon / 3)
    least = np.linalg.eigvalsh(a)[0] + scale * norm2 * rng.normal() - math.log(6 / DELTA) / (epsilon / 3) * norm2
    ridge = max(0.0, scale * norm2 * math.sqrt(d * math.log(2 * d**2 / FAILURE)) - max(0.0, float(least)))
    noise = np.triu(rng.normal(size=(d, d)) * scale * norm2)
    noise += np.triu(noise, 1).T
    b = b + scale * math.sqrt(norm2) * rng.normal(size=d)
    return np.asarray(x @ np.linalg.solve(a + noise + ridge * np.eye(d), b), np.float64)


def _others(problem: Problem, x: Floats, y: Floats, train: Any, epsilons: Sequence[float]) -> dict[str, Any]:
    """Predictions of other libraries, by name, epsilon and repetition; none without their environment."""
    python = os.environ.get("STRATSYNTH_RIVALS")
    if not python:
        return {}
    columns, bounds = _columns(problem)
    links = {"linear": "diffprivlib, pure epsilon", "additive": "DP-EBM of interpret, its own claim"}
    given = {"y": y, "train": train, "epsilons": np.array(epsilons), "delta": np.array(DELTA)}
    given |= {"norm": np.sqrt(len(problem.features)), "bounds": bounds}
    found = {}
    for link, name in links.items():
        with tempfile.TemporaryDirectory() as folder:
            source, result = Path(folder) / "given.npz", Path(folder) / "result.npz"
            np.savez(source, x=columns if link == "additive" else x[:, 1:], link=np.array(link), **given)
            script = str(Path(rivals.__file__))
            subprocess.run([python, "-I", script, str(source), str(result)], check=True)  # noqa: S603 - our own script
            found[name] = list(np.load(result)["said"])
    return found


def _columns(problem: Problem) -> tuple[Floats, Floats]:
    """Columns as such, numbers scaled and levels by their number; and of each the largest level, or 0 for a number."""
    made: list[Floats] = []
    most: list[int] = []
    for name in problem.features:
        column = problem.schema.column(name)
        if isinstance(column, ss.Numeric):
            made.append(problem.scaled(name, problem.frame))
            most.append(0)
        else:
            numbers = {level: i for i, level in enumerate(column.levels)}
            made.append(np.asarray(problem.frame[name].map(numbers), np.float64))
            most.append(len(column.levels) - 1)
    return np.column_stack(made), np.array(most)
