"""`fair`: private classifiers by their defaults beside logistic regression without privacy, on public data.

Accuracy on test rows, its distance from that of logistic regression, and the gap of parity: the largest difference
between two groups' rates of positive predictions. Targets are for at least 14,000 training rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import stratsynth as ss
from benches.figures import processor
from stratsynth.mechanisms import make
from studies import data
from studies.figures import Figure, limited

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DELTA = 1e-6
NEAR = 0.0035
"""Largest mean loss of accuracy against logistic regression without privacy."""
PLENTY = 14_000
"""Training rows from which the target holds."""
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "fermi, no penalty": ("fermi", {"penalty": 0.0}),
    "fair_sgd, none": ("fair_sgd", {"mitigation": "none"}),
    "group_regression": ("group_regression", {"model": "logistic"}),
}


def problems(adult: str | None, law: str | None, acs: str | None, rows: int | None) -> list[data.Problem]:
    """Return the problems of the files that are named; a made-up one of 40,000 rows if there are none."""
    found = [
        *([data.adult(Path(adult))] if adult else []),
        *([data.law(Path(law))] if law else []),
        *(data.employment(Path(acs)) if acs else []),
    ] or [data.correlated(40_000, 0)]
    if rows is None:
        return found
    return [data.Problem(p.name, p.frame.sample(min(rows, len(p.frame)), random_state=0), p.schema, p.target, p.group) for p in found]


def run(
    *,
    seeds: int = 2,
    adult: str | None = None,
    law: str | None = None,
    acs: str | None = None,
    rows: int | None = None,
    epsilons: Sequence[float] = (0.5, 1.0, 3.0),
    declared: bool = True,
) -> list[Figure]:
    """Return figures of each data set, method and epsilon: accuracy, its loss, the gap, and processor seconds."""
    figures = []
    for problem in problems(adult, law, acs, rows):
        splits = [problem.split(np.random.default_rng(seed)) for seed in range(seeds)]
        plain = [_plain(problem, *split) for split in splits]
        figures += _shown(problem, "no privacy", plain, plain, None)
        for epsilon in epsilons:
            for name, (mechanism, settings) in METHODS.items():
                found = [_private(problem, *split, mechanism, settings, epsilon, declared) for split in splits]
                size = len(splits[0][0])
                figures += _shown(problem, f"{name}, epsilon {epsilon:g}", found, plain, NEAR if size >= PLENTY else None)
    return figures


def _private(problem, train, test, mechanism, settings, epsilon, declared):
    groups = {"groups": [problem.group]} if mechanism != "fermi" else {}
    how = make(mechanism, {"target": problem.target, "features": problem.features, **groups, **settings})
    table = ss.open_table(train, schema=problem.schema, declared_size=len(train) if declared else None)
    began = time.process_time()
    release = ss.fit(how, table, ss.Budget(epsilon=epsilon, delta=DELTA), progress=False)
    spent = time.process_time() - began
    said = release.predict(test) if mechanism != "x" else None
    return _scores(problem, test, np.asarray(said) == problem.positive, spent)
