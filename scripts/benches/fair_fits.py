"""Fits of `fair`: each method on a split of a problem, its scores on test rows, and a folder to go on from."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import stratsynth as ss
from stratsynth.errors import NoticeWarning
from stratsynth.mechanisms import make

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from studies.data import Problem

    Floats = NDArray[np.float64]

DELTA = 1e-6
FEW = 50
"""Test rows below which a group has no part in the gap, and none in the worst group's accuracy."""
PLAIN = "logistic regression, not private"
ROUNDS = 20
"""Largest number of rounds of fairlearn's ExponentiatedGradient."""
METHODS: Mapping[str, Mapping[str, Any]] = {
    "fermi, no penalty": {"name": "fermi", "penalty": 0.0},
    "fermi, no penalty, group left out": {"name": "fermi", "penalty": 0.0, "blind": True},
    "fermi, gap .05": {"name": "fermi", "gap": 0.05, "blind": True},
    "fermi, gap .1": {"name": "fermi", "gap": 0.1, "blind": True},
    "fermi, gap .05 by thresholds": {"name": "fermi", "gap": 0.05, "thresholds": True},
    "fermi, gap .1 by thresholds": {"name": "fermi", "gap": 0.1, "thresholds": True},
    "fermi, gap .05, group a feature": {"name": "fermi", "gap": 0.05},
    "fermi, gap .05 of odds": {"name": "fermi", "gap": 0.05, "criterion": "odds", "blind": True},
    "fermi, penalty 1": {"name": "fermi", "penalty": 1.0, "blind": True},
    "fermi, penalty 5": {"name": "fermi", "penalty": 5.0, "blind": True},
    "fair_sgd": {"name": "fair_sgd"},
    "fair_sgd, surrogate": {"name": "fair_sgd", "mitigation": "surrogate"},
    "reductions, parity .05": {"name": "reductions", "constraints": {"demographic_parity": 0.05}, "blind": True},
    "reductions, parity .1": {"name": "reductions", "constraints": {"demographic_parity": 0.1}, "blind": True},
    "reductions, parity .05, group a feature": {"name": "reductions", "constraints": {"demographic_parity": 0.05}},
    "group_regression": {"name": "group_regression", "model": "logistic"},
    "fairlearn, parity .05, not private": {"bound": 0.05},
    "fairlearn, parity .1, not private": {"bound": 0.1},
}
"""Methods beside logistic regression without privacy, which has the group among its features, as fairlearn has.

Those with `blind` have not.
"""


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
    worst: float = 0.0
    """Accuracy of the group that has the smallest."""


@dataclass
class Fits:
    """Scores of fits, each made once: those that a folder holds are read from it."""

    folder: Path | None = None
    """Folder of the results, a line a fit in `fair.jsonl`; None to keep nothing."""
    known: dict[str, Scored] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the folder, and read what it holds; a last line that was cut off counts for nothing."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        text = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
        if not text.endswith("\n"):  # what comes next is a line of its own
            self._file.write_text(text + "\n", encoding="utf-8")
        for line in text.splitlines():
            try:
                key, values = json.loads(line)
            except ValueError:
                continue
            self.known[key] = Scored(**values)

    @property
    def _file(self) -> Path:
        assert self.folder is not None  # noqa: S101 - its callers' condition
        return self.folder / "fair.jsonl"

    def scored(self, problem: Problem, method: str, epsilon: float, seed: int) -> Scored:
        """Return the scores of `method` on the problem's split by `seed`: known ones, or those of a new fit."""
        private = "bound" not in METHODS.get(method, {"bound": 0})
        key = json.dumps([problem.name, len(problem.frame), method, epsilon if private else None, seed])
        if key not in self.known:
            self.known[key] = fit(problem, method, epsilon, seed)
            if self.folder is not None:
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, asdict(self.known[key])]) + "\n")
        return self.known[key]


def fit(problem: Problem, method: str, epsilon: float, seed: int) -> Scored:
    """Return the scores of one fit to a part of the problem's rows on the others, which are split by `seed`."""
    train, test = problem.split(np.random.default_rng(seed))
    if method == PLAIN:
        return _not_private(problem, train, test, lambda x, y, _: _logistic().fit(x, y).predict)
    settings = METHODS[method]
    if "bound" in settings:
        return _not_private(problem, train, test, lambda x, y, s: _exponentiated(x, y, s, settings["bound"]))
    return _private(problem, train, test, settings, epsilon)


def _logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=500)


def _exponentiated(x: Floats, y: Any, groups: Any, bound: float) -> Callable[[Floats], Any]:
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    # each group within half of the bound of everybody: any two within the bound
    fair = ExponentiatedGradient(_logistic(), DemographicParity(difference_bound=bound / 2), max_iter=ROUNDS)
    fair.fit(x, y.astype(int), sensitive_features=groups)
    return lambda rows: np.asarray(fair._pmf_predict(rows))[:, 1]  # noqa: SLF001 - it has no public name


def _not_private(
    problem: Problem, train: pd.DataFrame, test: pd.DataFrame, fitted: Callable[..., Callable[[Floats], Any]]
) -> Scored:
    y, groups = (train[problem.target] == problem.positive).to_numpy(), train[problem.group].to_numpy()
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predict = fitted(problem.matrix(train), y, groups)
    return scored(problem, test, predict(problem.matrix(test)), time.process_time() - began, {})


def _private(
    problem: Problem, train: pd.DataFrame, test: pd.DataFrame, settings: Mapping[str, Any], epsilon: float
) -> Scored:
    own = {key: value for key, value in settings.items() if key not in ("name", "blind")}
    features = [f for f in problem.features if f != problem.group or "blind" not in settings]
    groups = {"groups": [problem.group]} if {"blind", "gap", "mitigation", "constraints"} & settings.keys() else {}
    how = make(settings["name"], {"target": problem.target, "features": features, **groups, **own})
    table = ss.open_table(train, schema=problem.schema, declared_size=len(train))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoticeWarning)
        release = ss.fit(how, table, ss.Budget(epsilon=epsilon, delta=DELTA), progress=False)
    spent = time.process_time() - began
    if settings["name"] == "reductions":  # which draws a classifier for each row: exact means over all draws
        positive = np.asarray(release.predictions(test, seed=0).column(f"probability={problem.positive}"), np.float64)
    else:
        positive = np.asarray(release.predict(test)) == problem.positive
    odds = settings.get("criterion") == "odds"
    return scored(problem, test, positive, spent, release.model.facts, odds=odds)  # type: ignore[attr-defined]


def scored(
    problem: Problem,
    test: pd.DataFrame,
    positive: NDArray[Any],
    spent: float,
    facts: Mapping[str, Any],
    *,
    odds: bool = False,
) -> Scored:
    """Return the scores of predictions on test rows.

    Args:
        problem: The problem of these rows.
        test: The rows.
        positive: Probability with which each is predicted as the second level; True and False where nothing is drawn.
        spent: Processor seconds of the fit.
        facts: Those of the model.
        odds: True for the largest gap within a true class, in place of that of everybody.
    """
    groups, truth = test[problem.group].to_numpy(), (test[problem.target] == problem.positive).to_numpy()
    chances = positive.astype(np.float64)
    right = np.where(truth, chances, 1 - chances)
    members = [groups == g for g in np.unique(groups)]
    gaps = []
    for part in (~truth, truth) if odds else (np.ones(len(test), np.bool_),):
        rates = means(chances, [part & here for here in members])
        gaps.append(float(np.ptp(rates)) if rates else 0.0)
    return Scored(
        float(right.mean()),
        max(gaps),
        spent,
        facts.get("clip", 0.0),
        facts.get("steps", 0),
        facts.get("gap", {}).get("status", ""),
        min(means(right, members), default=0.0),
    )


def means(values: Floats, parts: Sequence[Any]) -> list[float]:
    """Return the mean of `values` within each of the parts, masks of rows, that have at least `FEW`."""
    return [float(values[part].mean()) for part in parts if part.sum() >= FEW]
