"""`predict --only fermi`: speed of DP-FERMI, and error by the violation that a penalty leaves."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import stratsynth as ss
from benches.figures import Timing, seconds, timed
from stratsynth.evaluation.fermi.columns import CurveFit, fitted, multiplier
from stratsynth.evaluation.fermi.curve import CurveRows, summary, tradeoff
from stratsynth.mechanisms import make
from studies import data
from studies.fermi.optimum import minimisers
from studies.fermi.reproduce import ALIKE, DELTA, against_baseline, curve
from studies.figures import Figure, limited

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS, LEVELS = 48_842, (9, 7, 15, 6, 5, 41)
"""Adult's size, and the levels of its coded columns."""
STEPS = 6_000
APART = (1.0, 1.25, 1.5)
"""Difference of two of ten features between the groups, in standard deviations; the figures depend on it."""
PENALTIES = (0.0, 0.5, 1.0, 1.5, 2.0)


def run(*, seeds: int = 5, adult: str | None = None, law: str | None = None) -> list[Figure]:
    """Return all figures; errors on Adult and on law school data where their files are named."""
    figures = [*_speed(), *(figure for apart in APART for figure in _correlated(seeds, apart)), _endless()]
    for problem in (*([data.adult(Path(adult))] if adult else []), *([data.law(Path(law))] if law else [])):
        figures += _curve(problem, seeds)
    return figures


def sized_like_adult() -> data.Problem:
    """Made-up people of Adult's size: five numbers, six coded columns, a group and a target."""
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"X{i}": rng.uniform(-1, 1, ROWS) for i in range(5)})
    for i, levels in enumerate(LEVELS):
        frame[f"C{i}"] = rng.choice([f"c{k}" for k in range(levels)], ROWS)
    frame["S"] = rng.choice(["a", "b"], ROWS)
    frame["Y"] = np.where(frame.X0 + 0.5 * (frame.S == "b") + rng.normal(size=ROWS) > 0, "yes", "no")
    coded = tuple(f"C{i}" for i in range(len(LEVELS)))
    return data.problem("sized like Adult", frame, {f"X{i}": (-1, 1) for i in range(5)}, coded, "Y", "S")


def _speed() -> list[Figure]:
    """One private fit, without and with a ledger file; and sixty columns."""
    import tempfile

    people = sized_like_adult()
    budget, settings = ss.Budget(3, DELTA), {"target": "Y", "groups": ["S"], "iterations": STEPS}
    begun = time.perf_counter()
    multiplier(budget.epsilon, budget.delta, 1024 / ROWS, STEPS)
    pricing = Timing((time.perf_counter() - begun,))

    def fit(ledger: Path | None = None) -> None:
        table = ss.open_table(people.frame, schema=people.schema, declared_size=ROWS, ledger=ledger)
        ss.fit(make("fermi", {**settings, "penalty": 1.0}), table, budget)

    with tempfile.TemporaryDirectory() as folder:
        on_disk = timed(lambda: fit(Path(folder) / "people.ledger"), 1, warm=False)
    alone = timed(fit, 3)
    columns = [CurveFit(penalty, 3.0, s) for penalty in (0.5, 1.0, 2.0) for s in range(20)]
    beside = timed(lambda: fitted(people.frame, people.schema, columns, delta=DELTA, settings=settings), 1, warm=False)
    what = f"{STEPS:,} steps of batch 1,024 on {ROWS:,} rows"
    return [
        seconds(f"finding the noise of {STEPS:,} steps", pricing),
        seconds(f"one fit, {what}, its certificate included", alone, at_most=8),
        seconds("the same with a ledger file, each step on the disk before it is read", on_disk),
        Figure(
            "what a step takes more with a ledger file, which waits for the disk four times a step",
            1e3 * (on_disk.median - alone.median) / STEPS,
            "ms",
        ),
        seconds(f"{len(columns)} models as columns, {what}", beside, at_most=30),
    ]


def _correlated(seeds: int, apart: float) -> list[Figure]:
    """Violation and error by lambda, at epsilon 3, on new people; and those of the exact minimisers, without noise."""
    frames, best = [], []
    for seed in range(seeds):
        train, test = (data.correlated(20_000, one, apart) for one in (seed, 1_000 + seed))
        frames.append(
            tradeoff(
                train.frame,
                test.frame,
                train.schema,
                public=True,
                target="Y",
                groups=["S"],
                penalties=PENALTIES,
                epsilons=[3.0],
                delta=DELTA,
                seeds=1,
                baseline=False,
                seed=seed,
            )
        )
        seen = CurveRows.of(test.frame, test.schema, "Y", ["S"])
        ends = (PENALTIES[0], PENALTIES[-1])
        exact = minimisers(train.frame, train.schema, ends, settings={"target": "Y", "groups": ["S"]})
        best.append([[seen.measured(seen.predictions(model))[key] for key in ("parity", "error")] for model in exact])
    import pandas as pd

    (unfair, right), (fair, wrong) = np.mean(best, axis=0)
    table = summary(pd.concat(frames)).sort_values("penalty")
    error, violation = table["error"].to_numpy(), table["violation"].to_numpy()
    least = "the exact minimisers of loss and penalty, without noise"
    head = f"correlated problem, groups {apart:g} sd apart, epsilon 3"
    shown = [
        Figure(f"{head}: violation of parity, lambda {p:g}", float(v), "", seeds)
        for p, v in zip(table["penalty"], violation, strict=True)
    ]
    return [
        *shown,
        limited(f"{head}: violation at lambda 2, of that at 0", violation[-1] / violation[0], 0.5, "", seeds),
        limited(f"{head}: error at lambda 2 over that at 0", 100 * (error[-1] - error[0]), 2, "points", seeds),
        Figure(f"{head}: violation at lambda 2, of that at 0, {least}", fair / unfair, "", seeds),
        Figure(f"{head}: error at lambda 2 over that at 0, {least}", 100 * (wrong - right), "points", seeds),
        limited(f"{head}: penalties at which the violation grows", int((np.diff(violation) > 0).sum()), 0, "", seeds),
    ]


def _endless() -> Figure:
    """ERMI of what is predicted, with a large penalty and no noise."""
    train, test = data.correlated(20_000, 0), data.correlated(20_000, 1_000)
    frame = tradeoff(
        train.frame,
        test.frame,
        train.schema,
        public=True,
        target="Y",
        groups=["S"],
        penalties=[20.0],
        epsilons=[math.inf],
        delta=DELTA,
        seeds=1,
        baseline=False,
    )
    return limited("correlated problem, epsilon infinite, lambda 20: ERMI", float(frame["ermi"].iloc[0]), 0.01, "")


def _curve(problem: data.Problem, seeds: int, epsilons: Sequence[float] = (1.0, 3.0)) -> list[Figure]:
    """Error less that of noisy gradient descent with post-processing, at the same violation."""
    figures = []
    for criterion in ("parity", "odds"):
        for _, row in against_baseline(curve(problem, criterion, epsilons, seeds=seeds)).iterrows():
            name = (
                f"{problem.name}, {criterion}, epsilon {row['epsilon']:g}, lambda {row['penalty']:g}, violation "
                f"{row['violation']:.3f}: error"
            )
            other = f"post-processing {row['baseline']:.4f}" + ("" if row["reached"] else ", whose violation is larger")
            figures.append(
                Figure(
                    name,
                    float(row["error"]),
                    "",
                    seeds,
                    (row["error_high"] - row["error_low"]) / 2,
                    other,
                    bool(row["error"] <= row["baseline"] + ALIKE),
                )
            )
    return figures
