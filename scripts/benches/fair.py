"""`fair`: private classifiers by their defaults beside logistic regression without privacy, on public data.

For each data set, method and epsilon: accuracy on test rows, its loss against logistic regression, the gap of parity
(the largest difference between two groups' rates of positive predictions; for odds, among rows of each true class) and
processor seconds. `--rows` draws that many rows of each file. The target is one of fits to at least 14,000 rows.

A wanted gap of parity is asked for without and with the group among the features, one of odds without. Its targets are
the mean gap on test rows beside the wanted one, and an accuracy.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import stratsynth as ss
from stratsynth.errors import NoticeWarning
from stratsynth.mechanisms import make
from studies import data
from studies.figures import Figure, limited

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

DELTA = 1e-6
EPSILONS = (0.5, 1.0, 3.0)
NEAR = 0.0035
"""Largest mean loss of accuracy against logistic regression without privacy."""
PLENTY = 14_000
"""Rows fitted from which this is the target."""
FEW = 50
"""Test rows below which a group has no part in the gap."""
METHODS: Mapping[str, Mapping[str, Any]] = {
    "fermi, no penalty": {"name": "fermi", "penalty": 0.0},
    "fermi, gap .05": {"name": "fermi", "gap": 0.05, "blind": True},
    "fermi, gap .1": {"name": "fermi", "gap": 0.1, "blind": True},
    "fermi, gap .05, group a feature": {"name": "fermi", "gap": 0.05},
    "fermi, gap .05 of odds": {"name": "fermi", "gap": 0.05, "criterion": "odds", "blind": True},
    "fair_sgd": {"name": "fair_sgd"},
    "group_regression": {"name": "group_regression", "model": "logistic"},
}


OFF: Mapping[str, float] = {"Adult": 0.012, "law school": 0.02}
"""Largest difference of the mean gap on test rows from the wanted one, by data set."""
ACCURATE: Mapping[tuple[str, str], float] = {
    ("Adult", "fermi, gap .05"): 0.836,
    ("law school", "fermi, gap .05"): 0.893,
    ("Adult", "fermi, gap .05 of odds"): 0.847,
}
"""Least mean accuracy, by data set and method."""


@dataclass(frozen=True)
class Scored:
    """Scores of one fit on its test rows."""

    accuracy: float
    gap: float
    seconds: float
    """Processor seconds of the fit."""
    clip: float
    """Clip of a row's gradient; 0 without one."""
    steps: int
    status: str = ""
    """Statement on a wanted gap: `met`, `missed` or `not to be told`."""


def run(
    *,
    seeds: int = 3,
    adult: str | None = None,
    law: str | None = None,
    acs: str | None = None,
    rows: int | None = None,
    epsilons: Sequence[float] = EPSILONS,
) -> list[Figure]:
    """Return the figures of every data set; of a made-up one where no file is named."""
    figures = []
    for problem in problems(adult, law, acs, rows):
        splits = [problem.split(np.random.default_rng(seed)) for seed in range(seeds)]
        plain = [_plain(problem, *split) for split in splits]
        few = len(splits[0][0])
        figures.append(_figure(f"{problem.name}, {few:,} rows: accuracy without privacy", [s.accuracy for s in plain]))
        for epsilon in epsilons:
            for name, settings in METHODS.items():
                found = [_private(problem, *split, settings, epsilon) for split in splits]
                title = f"{problem.name}, epsilon {epsilon:g}: {name}"
                if "gap" in settings:
                    figures += _wanted(title, problem.name, name, found, settings["gap"])
                else:
                    figures += _shown(title, found, plain, few)
    return figures


def problems(adult: str | None, law: str | None, acs: str | None, rows: int | None) -> list[data.Problem]:
    """Return the problems of the files that are named, of at most `rows` rows; a made-up one if there are none."""
    found = [
        *([data.adult(Path(adult))] if adult else []),
        *([data.law(Path(law), wide=False)] if law else []),
        *(data.employment(Path(acs))[1:] if acs else []),
    ] or [data.correlated(20_000, 0)]
    if rows is None:
        return found
    return [replace(p, frame=p.frame.sample(min(rows, len(p.frame)), random_state=0)) for p in found]


def _plain(problem: data.Problem, train: pd.DataFrame, test: pd.DataFrame) -> Scored:
    model = LogisticRegression(max_iter=500).fit(problem.matrix(train), train[problem.target] == problem.positive)
    return _scored(problem, test, model.predict(problem.matrix(test)), 0.0, {})


def _private(
    problem: data.Problem, train: pd.DataFrame, test: pd.DataFrame, settings: Mapping[str, Any], epsilon: float
) -> Scored:
    own = {key: value for key, value in settings.items() if key not in ("name", "blind")}
    features = [f for f in problem.features if f != problem.group or "blind" not in settings]
    groups = {"groups": [problem.group]} if "gap" in settings else {}
    how = make(settings["name"], {"target": problem.target, "features": features, **groups, **own})
    table = ss.open_table(train, schema=problem.schema, declared_size=len(train))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoticeWarning)
        release = ss.fit(how, table, ss.Budget(epsilon=epsilon, delta=DELTA), progress=False)
    spent = time.process_time() - began
    positive = np.asarray(release.predict(test)) == problem.positive
    odds = settings.get("criterion") == "odds"
    return _scored(problem, test, positive, spent, release.model.facts, odds=odds)  # type: ignore[attr-defined]


def _scored(
    problem: data.Problem,
    test: pd.DataFrame,
    positive: NDArray[Any],
    spent: float,
    facts: Mapping[str, Any],
    *,
    odds: bool = False,
) -> Scored:
    groups, truth = test[problem.group].to_numpy(), (test[problem.target] == problem.positive).to_numpy()
    gaps = []
    for part in (~truth, truth) if odds else (np.ones(len(test), np.bool_),):
        here = [part & (groups == g) for g in np.unique(groups)]
        rates = [positive[rows].mean() for rows in here if rows.sum() >= FEW]
        gaps.append(float(np.ptp(rates)) if rates else 0.0)
    status = facts.get("gap", {}).get("status", "")
    right = float((positive == truth).mean())
    return Scored(right, max(gaps), spent, facts.get("clip", 0.0), facts.get("steps", 0), status)


def _shown(name: str, found: Sequence[Scored], plain: Sequence[Scored], rows: int) -> list[Figure]:
    lost = float(np.mean([b.accuracy - a.accuracy for a, b in zip(found, plain, strict=True)]))
    most = NEAR if rows >= PLENTY else None
    return [
        _figure(f"{name}, accuracy", [s.accuracy for s in found]),
        limited(f"{name}, accuracy lost", lost, most, "", len(found)),
        _figure(f"{name}, gap of parity", [s.gap for s in found]),
        _figure(f"{name}, clip ({found[0].steps} steps)", [s.clip for s in found]),
        _figure(f"{name}, processor", [s.seconds for s in found], "s"),
    ]


def _wanted(title: str, where: str, name: str, found: Sequence[Scored], wanted: float) -> list[Figure]:
    """Figures of a method `name` with a wanted gap on the data set `where`."""
    least, right = ACCURATE.get((where, name)), float(np.mean([s.accuracy for s in found]))
    accurate = _figure(f"{title}, accuracy", [s.accuracy for s in found])
    if least is not None:
        accurate = replace(accurate, against=f"at least {least:g}", reached=right >= least)
    apart = abs(float(np.mean([s.gap for s in found])) - wanted)
    plain = name in ("fermi, gap .05", "fermi, gap .1")
    return [
        accurate,
        _figure(f"{title}, gap on test rows", [s.gap for s in found]),
        limited(f"{title}, mean gap from {wanted:g}", apart, OFF.get(where) if plain else None, "", len(found)),
        *(_figure(f"{title}, {s}", [float(one.status == s) for one in found]) for s in ("met", "missed")),
        _figure(f"{title}, processor", [s.seconds for s in found], "s"),
    ]


def _figure(name: str, values: Sequence[float], unit: str = "") -> Figure:
    return Figure(name, float(np.mean(values)), unit, len(values), (max(values) - min(values)) / 2)
