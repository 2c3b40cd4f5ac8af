"""`predict --only reductions`: speed, excess risk, violations of equalized odds beside fairlearn's, inner steps."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benches.figures import seconds, started
from stratsynth.mechanisms import Public, make
from studies.figures import Figure, limited
from studies.reductions import curves, frank_wolfe
from studies.reductions.odds import SLACK, Outcome, cases, methods, not_private, private, simulated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from studies.data import Problem

ADULT_ROWS = 48_842
METHODS: tuple[Literal["paper", "true"], ...] = ("paper", "true")
EPSILONS = (1.0, 3.0)
ROWS = (125, 250, 500, 1_000, 2_000)
TABLES = 6
INNER_STEPS, RATES = (15, 30), (1.0, 1.9)
"""Gradients of one step, and rates over the default one, which is one over the largest curvature."""
FAIRLEARN_SEEDS = 2
"""fairlearn takes about a minute on Adult; its spread over splits is small."""
COLD = """
import sys, stratsynth as ss
from stratsynth.adapters import Reductions
folder, target, group, ledger = sys.argv[1:]
table = ss.open_table(
    f"{folder}/people.parquet", schema=f"{folder}/schema.toml",
    **({"ledger": f"{folder}/people.ledger", "ledger_epsilon": 20.0} if ledger == "ledger" else {}),
)
how = Reductions(target=target, groups=[group], constraints={"equalized_odds": 0.02}, iterations=20, oracle="gradient")
ss.fit(how, table, ss.Budget(epsilon=1, delta=1e-6))
"""


def run(*, seeds: int = 10, adult: str | None = None, law: str | None = None) -> list[Figure]:
    """Return all figures; of simulated people where no data are named."""
    found = cases(Path(adult) if adult else None, Path(law) if law else None)
    timed = found[0] if adult else simulated(ADULT_ROWS, 0)
    figures = [*_cold_fits(timed), _slope(), *_counterexample()]
    for case in found or [simulated(20_000, 1)]:
        figures += [*_compared(case, seeds), *_trained(case, seeds)]
    return figures


def _cold_fits(case: Problem) -> list[Figure]:
    """Fits in fresh processes, imports included; with a ledger on disk, which syncs every answer."""
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        case.frame.to_parquet(Path(folder) / "people.parquet", index=False)
        case.schema.write_toml(Path(folder) / "schema.toml")
        for ledger in ("", "ledger"):
            timing = started("-W", "ignore", "-c", COLD, folder, case.target, case.group, ledger, repetitions=1)
            where = ", with a ledger on disk" if ledger else ""
            name = f"{case.name}, {len(case.frame):,} rows: 20 Frank-Wolfe steps by gradients, a fresh process{where}"
            figures.append(seconds(name, timing, at_most=20))
    return figures


def _slope() -> Figure:
    """Log-log slope of the exact mean excess of exponential sampling by epsilon n."""
    table = curves.curve(ROWS, TABLES, np.random.default_rng(0))
    name = f"excess risk of exponential sampling by epsilon n, log-log slope, away from -1 by ({TABLES} tables a size)"
    return limited(name, abs(curves.slope(table) + 1), 0.1, "", TABLES * len(ROWS))


def _counterexample() -> list[Figure]:
    """The goal that Frank-Wolfe reaches as paper 002 writes it, and truly."""
    steps = 10_000
    paper, true = (max(frank_wolfe.run(how, steps, start) for start in range(3)) for how in METHODS)
    return [
        Figure(f"Frank-Wolfe as in the paper, {steps:,} steps: the goal, worst start", paper, "", 3),
        limited(f"true Frank-Wolfe, {steps:,} steps: the goal, worst start", true, 0.00801, "", 3),
    ]


def _compared(case: Problem, seeds: int) -> list[Figure]:
    """Errors and violations on rows that were not fitted to, and what the constraint costs and brings."""
    figures = []
    for epsilon in EPSILONS:
        found = {name: [how(seed) for seed in range(seeds)] for name, how in methods(case, epsilon).items()}
        for name, outcomes in found.items():
            figures += _shown(f"{case.name}, epsilon {epsilon:g}, {name}", outcomes)
        free, fair = (_means(found[f"private, {which}"]) for which in ("unconstrained", "equalized odds"))
        what = f"{case.name}, epsilon {epsilon:g}: equalized odds against unconstrained"
        figures.append(limited(f"{what}, violation, ratio", fair.violation / free.violation, 0.5, "", seeds))
        figures.append(limited(f"{what}, more error", 100 * (fair.error - free.error), 3, "points", seeds))
    few = min(seeds, FAIRLEARN_SEEDS)
    for name, constrained in (("logistic regression", False), ("fairlearn's ExponentiatedGradient", True)):
        outcomes = [not_private(case, seed, constrained=constrained) for seed in range(few)]
        figures += _shown(f"{case.name}, not private, {name}", outcomes)
    return figures


def _trained(case: Problem, seeds: int) -> list[Figure]:
    """Errors and violations by the oracle's number of gradients and their rate, at epsilon 1."""
    figures = []
    settings = {"target": case.target, "features": case.features, "groups": [case.group]}
    usual: Any = make("reductions", settings)
    rate = usual.task(Public(case.schema)).rate
    for steps, factor in product(INNER_STEPS, RATES):
        how = {"constraints": {"equalized_odds": SLACK}, "inner_steps": steps, "rate": factor * rate}
        outcomes = [private(case, 1.0, seed, **how) for seed in range(seeds)]
        figures += _shown(f"{case.name}, epsilon 1, {steps} gradients a step, {factor:g} x the rate", outcomes)
    return figures


def _means(outcomes: Sequence[Outcome]) -> Outcome:
    return Outcome(float(np.mean([o.error for o in outcomes])), float(np.mean([o.violation for o in outcomes])))


def _shown(name: str, outcomes: Sequence[Outcome]) -> list[Figure]:
    figures = []
    for what in ("error", "violation"):
        values = [float(getattr(o, what)) for o in outcomes]
        spread = (max(values) - min(values)) / 2
        figures.append(Figure(f"{name}: {what}", float(np.mean(values)), "", len(values), spread))
    return figures
