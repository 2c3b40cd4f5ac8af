"""`predict`: group regression's speed, its errors at a budget, and whether its intervals hold."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import stratsynth as ss
from benches import beside
from benches.figures import seconds, started, timed
from stratsynth.mechanisms import make
from studies.figures import Figure, limited
from studies.regression.simulate import Steps, Way, descend, make_people

if TYPE_CHECKING:
    from stratsynth.models import Model
    from stratsynth.schema import Schema

RUNS, ROWS, GROUPS, FEATURES = 1_000, 20_000, 5, 10
ADULT_ROWS = 48_842
COVERED = 1_000
LEVELS = (0.9, 0.95)
EPSILONS = (1.0, 3.0)
COLD = """
import sys, stratsynth as ss
from stratsynth.adapters import GroupRegression
folder = sys.argv[1]
table = ss.open_table(f"{folder}/people.parquet", schema=f"{folder}/schema.toml", declared_size=int(sys.argv[2]))
ss.fit(GroupRegression(target="D", model="logistic"), table, ss.Budget(epsilon=1, delta=1e-9))
"""


def run(*, seeds: int = 20, adult: str | None = None, law: str | None = None) -> list[Figure]:
    """Return all figures on simulated people; with real data the errors beside another library's."""
    if adult is None and law is None:
        return [_monte_carlo(), _cold_fit(), *_coverage(), *_errors(seeds)]
    problems = [*(beside.adult(Path(adult)) if adult else []), *(beside.law(Path(law)) if law else [])]
    return [figure for problem in problems for figure in beside.compared(problem, seeds)]


def _monte_carlo() -> Figure:
    """Runs of noise as columns of one matrix."""
    rng = np.random.default_rng(0)
    people = make_people((ROWS // GROUPS,) * GROUPS, rng.normal(size=(GROUPS, FEATURES)), (1.0,) * GROUPS, rng)
    way = Way(np.full(GROUPS, 1 / GROUPS), np.full((1, GROUPS), 100.0), 1.0)
    timing = timed(lambda: descend(people, way, Steps(), RUNS, np.random.default_rng(1)), 1, warm=False)
    name = f"{RUNS:,} runs of noise: {GROUPS} groups, {FEATURES} features, {ROWS:,} rows, 100 steps"
    return seconds(name, timing, at_most=60)


def simulated(rows: int, seed: int) -> tuple[pd.DataFrame, Schema]:
    """People with eight columns; a fifth of them are a minority whose target goes with X0 another way."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(rows) < 0.2, "b", "a")
    numbers = {f"X{i}": rng.uniform(-1, 1, rows) for i in range(4)}
    job = rng.choice([f"j{i}" for i in range(10)], rows)
    slope = np.where(group == "a", 0.4, 0.1)
    y = slope * numbers["X0"] + 0.2 * numbers["X1"] + 0.1 * (job == "j3") + 0.2 * rng.normal(size=rows)
    frame = pd.DataFrame({**numbers, "G": group, "J": job, "Y": y.clip(-1, 1), "D": np.where(y > 0, "yes", "no")})
    columns: dict[str, Any] = {name: ss.Numeric(lower=-1, upper=1, bins=4) for name in (*numbers, "Y")}
    columns["G"] = ss.Categorical(levels=("a", "b"))
    columns["J"] = ss.Categorical(levels=tuple(f"j{i}" for i in range(10)))
    columns["D"] = ss.Categorical(levels=("no", "yes"))
    return frame, ss.Schema({name: columns[name] for name in frame.columns})


def _cold_fit() -> Figure:
    """A fit in a fresh process, imports included."""
    with tempfile.TemporaryDirectory() as folder:
        frame, schema = simulated(ADULT_ROWS, 0)
        frame.to_parquet(Path(folder) / "people.parquet")
        schema.write_toml(Path(folder) / "schema.toml")
        timing = started("-W", "ignore", "-c", COLD, folder, str(ADULT_ROWS), repetitions=3)
    return seconds(f"one fit of {ADULT_ROWS:,} rows, logistic, 100 steps, in a fresh process", timing, at_most=2)


def _fitted(frame: pd.DataFrame, schema: Schema, settings: Mapping[str, Any], epsilon: float) -> Model:
    table = ss.open_table(frame, schema=schema, declared_size=len(frame))
    return ss.fit(make("group_regression", settings), table, ss.Budget(epsilon=epsilon, delta=1e-6)).model


TRUTH = {"1": 0.0, "X": 0.4, "Z": -0.2}
ODDS = {"1": -1.0, "X": 1.5, "Z": 0.5}


def _linear_people(rng: np.random.Generator) -> tuple[pd.DataFrame, dict[str, Any], dict[str, float]]:
    """People whose Y is linear in X and Z; their schema's target, and the true coefficients."""
    frame = pd.DataFrame({name: rng.uniform(-1, 1, 1_500) for name in ("X", "Z")})
    frame["Y"] = (TRUTH["X"] * frame.X + TRUTH["Z"] * frame.Z + 0.1 * rng.normal(size=1_500)).clip(-1, 1)
    return frame, {"Y": ss.Numeric(lower=-1, upper=1, bins=2)}, TRUTH


def _logistic_people(rng: np.random.Generator) -> tuple[pd.DataFrame, dict[str, Any], dict[str, float]]:
    """Return people whose log-odds are linear in the features, with schema and coefficients."""
    frame = pd.DataFrame({name: rng.uniform(-1, 1, 5_000) for name in ("X", "Z")})
    odds = ODDS["1"] + ODDS["X"] * frame.X + ODDS["Z"] * frame.Z
    frame["Y"] = np.where(rng.random(5_000) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return frame, {"Y": ss.Categorical(levels=("no", "yes"))}, ODDS


def _coverage() -> list[Figure]:
    """Coverage of intervals that allow for noise and sampling, over fits of new people."""
    figures = []
    for model, people in (("linear", _linear_people), ("logistic", _logistic_people)):
        held: dict[float, list[bool]] = {level: [] for level in LEVELS}
        for seed in range(COVERED):
            frame, target, truth = people(np.random.default_rng(seed))
            columns = {name: ss.Numeric(lower=-1, upper=1, bins=2) for name in ("X", "Z")}
            settings = {"target": "Y", "model": model, "stage_one": 0.9, "iterations": 1}
            fitted = _fitted(frame, ss.Schema({**columns, **target}), settings, 2.0).predictor()
            for level in LEVELS:
                table = fitted.coefficients(level).set_index("feature")  # type: ignore[attr-defined]
                sound = table[table.status != "not_estimable"]
                right = pd.Series(truth)[sound.index]
                held[level] += ((sound.lower <= right) & (right <= sound.upper)).tolist()
        figures += [
            limited(
                f"coverage of {level:.0%} intervals, {model}, off by, over {COVERED:,} fits of 3 coefficients",
                100 * abs(float(np.mean(found)) - level),
                3,
                "points",
                len(found),
            )
            for level, found in held.items()
        ]
    return figures


def _errors(seeds: int) -> list[Figure]:
    """Errors on new people, of everybody and of the minority, pooled and balanced, beside the least there can be."""
    figures = []
    new, schema = simulated(20_000, 10_000)
    minority = (new.G == "b").to_numpy()
    common = {"groups": ["G"], "features": ["X0", "X1", "X2", "X3", "J"]}
    for target, model in (("Y", "linear"), ("D", "logistic")):
        for epsilon in EPSILONS:
            for objective in ("pooled", "balanced"):
                found = []
                for seed in range(seeds):
                    frame, _ = simulated(20_000, seed)
                    settings = {**common, "target": target, "model": model, "objective": objective}
                    predictor = _fitted(frame, schema, settings, epsilon).predictor()
                    said = predictor.predict(predictor.shown(new))
                    wrong = (said - new.Y) ** 2 if model == "linear" else (said != new.D).astype(float)
                    found.append((float(wrong.mean()), float(wrong[minority].mean())))
                what = "mean squared error" if model == "linear" else "part predicted wrongly"
                for i, who in enumerate(("everybody", "the minority")):
                    values = [pair[i] for pair in found]
                    figures.append(
                        Figure(
                            f"{what} of {who}, {objective}, epsilon {epsilon:g}",
                            float(np.mean(values)),
                            "",
                            seeds,
                            (max(values) - min(values)) / 2,
                        )
                    )
    return figures
