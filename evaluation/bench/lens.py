"""`predict --only lens`: the speed of many models as columns, closed forms against draws, and what mitigation buys."""

from __future__ import annotations

import math
import time

import numpy as np
import pandas as pd
from stratsynth.evaluation.bench.figures import Figure, limited, seconds, timed
from stratsynth.evaluation.bench.predict import simulated
from stratsynth.evaluation.lens.experiments import MITIGATIONS, mitigation
from stratsynth.evaluation.lens.losses import Linear, Logistic
from stratsynth.evaluation.lens.people import People
from stratsynth.evaluation.lens.step import Step, decompose
from stratsynth.evaluation.lens.training import Training, descend

import stratsynth as ss
from stratsynth.mechanisms import make

ROWS, FEATURES, MODELS, BATCH, STEPS = 30_000, 100, 60, 1024, 200
DRAWS = 1_000_000


def run(*, seeds: int = 5) -> list[Figure]:
    """All figures."""
    return [_columns(), *_step(), _ratio(), _fit(), *_mitigations(seeds)]


def _columns() -> Figure:
    """A step of private gradient descent for all models at once."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, FEATURES))
    people = People(x, (x[:, 0] > 0).astype(float), np.zeros(ROWS, np.intp), ("everybody",))
    clip, noise = np.full(MODELS, 1.0), np.repeat(np.linspace(0.5, 3, 6), MODELS // 6)
    start, how = np.zeros((FEATURES, MODELS)), Training(0.1, STEPS, BATCH)
    timing = timed(lambda: descend(Logistic(), people, start, clip, noise, how, np.random.default_rng(1)), 5)
    each = [1000 * one / STEPS for one in timing.seconds]
    name = f"one step of {MODELS} logistic models: {ROWS:,} rows, {FEATURES} features, samples of about {BATCH:,}"
    middle = float(np.median(each))
    return Figure(name, middle, "ms", len(each), (max(each) - min(each)) / 2, "at most 4", middle <= 4)


def _two(rows: int) -> People:
    """Two groups alike, but that the features of the second are twice as long."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(rows, 4))
    return People(np.concatenate([x, 2 * x]), rng.normal(size=2 * rows), np.repeat([0, 1], rows), ("short", "long"))


def _step() -> list[Figure]:
    """The parts of one step on a quadratic, against drawing samples and noise."""
    people, rng = _two(20), np.random.default_rng(3)
    step, theta = Step(0.5, clip=4.0, noise=5.0, sampling=0.4), np.ones(4)
    parts = decompose(Linear(), people, theta, step).set_index("group")
    local = Linear().local(people.x, people.y, theta)
    norms = np.linalg.norm(local.gradients, axis=1, keepdims=True)
    kept = local.gradients * np.minimum(1, step.clip / norms)
    before = people.means(Linear().values(people.x, people.y, theta[:, None]))[:, 0]
    found, pieces = np.zeros(3), 20
    for _ in range(pieces):
        coins = (rng.random((DRAWS // pieces, people.size)) < step.sampling) / (step.sampling * people.size)
        moved = coins @ kept + step.noise * rng.normal(size=(DRAWS // pieces, 4))
        after = people.means(Linear().values(people.x, people.y, theta[:, None] - step.rate * moved.T))
        found += (after.mean(axis=1) - before) / pieces
    said = (parts["plain"] + parts["excess"]).to_numpy()
    return [
        limited(
            f"change of a group's loss in one step, {name} features: {mine:.2f}, by draws {drawn:.2f}; apart by",
            100 * abs(mine - drawn) / abs(drawn), 1.0, "%", DRAWS,
        )
        for name, mine, drawn in zip(people.labels, said, found, strict=False)
    ]  # fmt: skip


def _ratio() -> Figure:
    """Features twice as long: traces four times as large."""
    parts = decompose(Linear(), _two(500), np.zeros(4), Step(0.1, clip=1.0, noise=0.5)).set_index("group")
    ratio = parts["trace"]["long"] / parts["trace"]["short"]
    return Figure("ratio of traces, features twice as long", float(ratio), "", 1, None, "exactly 4", bool(ratio == 4.0))


def _fit() -> Figure:
    """A fit with all statistics."""
    frame, schema = simulated(20_000, 0)
    settings = {"target": "D", "groups": ["G"], "features": ["X0", "X1", "X2", "X3", "J"]}
    budget = ss.Budget(epsilon=1, delta=1e-6)

    def fit() -> None:
        ss.fit(make("fair_sgd", settings), ss.open_table(frame, schema=schema, declared_size=len(frame)), budget)

    return seconds("one fit of fair_sgd: 20,000 rows, 1,000 steps on samples of about 1,024", timed(fit, 3))


def _mitigations(seeds: int) -> list[Figure]:
    """The gap of excessive risk between two groups, by world and mitigation."""
    start = time.perf_counter()
    frame = mitigation(max(2, seeds), np.random.default_rng(4))
    took = time.perf_counter() - start
    gap = (frame["majority"] - frame["minority"]).abs()
    figures = [
        Figure(
            f"gap of excessive risk between the groups, {world}: {name}", float(gap[rows].mean()), "", int(rows.sum()),
            float(gap[rows].max() - gap[rows].min()) / 2,
        )
        for world in pd.unique(frame["world"]) for name in MITIGATIONS
        for rows in [(frame["world"] == world) & (frame["mitigation"] == name)]
    ]  # fmt: skip
    return [*figures, Figure("all fits for these gaps", took if math.isfinite(took) else 0.0, "s")]
