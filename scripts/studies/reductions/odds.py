"""Equalized odds on rows whose truth is known: private with and without the constraint, and fairlearn without privacy.

Rates are exact means over the draws of randomised predictors, on rows that no model was fitted to. NOT PRIVATE.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import stratsynth as ss
from stratsynth.mechanisms import make
from studies import data
from studies.data import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DELTA = 1e-6
TRAINED = 0.7
"""The part of the rows that models are fitted to; the others are predicted."""
SPLIT = 2002
"""Sets the splits apart from what simulated people are drawn by."""
SETTINGS: Mapping[str, Any] = {}
"""Settings of the private models: the defaults."""
ITERATIONS = 20
"""Largest number of rounds of fairlearn's ExponentiatedGradient."""
SLACK = 0.02
"""The bound on differences of rates between groups."""


def halves(case: Problem, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to fit and rows to predict."""
    chosen = np.random.default_rng([SPLIT, seed]).random(len(case.frame)) < TRAINED
    return case.frame[chosen], case.frame[~chosen]


@dataclass(frozen=True)
class Outcome:
    """Error and violation of one predictor."""

    error: float
    """Share of wrong predictions."""
    violation: float
    """Largest difference between groups of true or of false positive rates."""


def cases(adult: Path | None, law: Path | None) -> list[Problem]:
    """Public data of those files that are named."""
    return [
        *([data.adult(adult, "Adult, income by sex", wide=False)] if adult else []),
        *([data.law(law, "law school, bar by race", wide=False)] if law else []),
    ]


def outcome(case: Problem, test: pd.DataFrame, chances: Floats) -> Outcome:
    """Return error and violation from the probability of the second level for each row."""
    yes = (test[case.target] == case.positive).to_numpy()
    violation = 0.0
    for truth in (False, True):
        here = yes == truth
        means = pd.Series(chances[here]).groupby(test[case.group].to_numpy()[here]).mean()
        violation = max(violation, float(means.max() - means.min()))
    return Outcome(float(np.where(yes, 1 - chances, chances).mean()), violation)


def private(case: Problem, epsilon: float, seed: int, **settings: Any) -> Outcome:
    """`reductions` at a budget, with the noise of the day."""
    train, test = halves(case, seed)
    common = {"target": case.target, "features": case.features, "groups": [case.group], **SETTINGS}
    how = make("reductions", {**common, **settings})
    release = ss.fit(how, ss.open_table(train, schema=case.schema), ss.Budget(epsilon, DELTA))
    return outcome(case, test, _second(release, test, case))


def _second(release: ss.Release, test: pd.DataFrame, case: Problem) -> Floats:
    table = release.predictions(test, seed=0)  # probabilities are those of all draws, whatever the seed
    return np.asarray(table.column(f"probability={case.positive}"), np.float64)


def not_private(case: Problem, seed: int, *, constrained: bool) -> Outcome:
    """Logistic regression, alone or in fairlearn's ExponentiatedGradient with the same constraint."""
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    train, test = halves(case, seed)
    x, y = case.matrix(train), (train[case.target] == case.positive).to_numpy(np.int64)
    plain = LogisticRegression(max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not constrained:
            said = plain.fit(x, y).predict(case.matrix(test))
            return outcome(case, test, np.asarray(said, np.float64))
        # each group within half of the bound of everybody: any two within the bound
        fair = ExponentiatedGradient(plain, EqualizedOdds(difference_bound=SLACK / 2), eps=0.01, max_iter=ITERATIONS)
        fair.fit(x, y, sensitive_features=train[case.group].to_numpy())
        chances = np.asarray(fair._pmf_predict(case.matrix(test)))[:, 1]  # noqa: SLF001 - it has no public name
    return outcome(case, test, chances)


def methods(case: Problem, epsilon: float) -> Mapping[str, Callable[[int], Outcome]]:
    """The methods side by side, each as a function of the seed of its split."""
    bound = {"constraints": {"equalized_odds": SLACK}}
    return {
        "private, unconstrained": lambda seed: private(case, epsilon, seed),
        "private, equalized odds": lambda seed: private(case, epsilon, seed, **bound),
        "private, best classifier alone": lambda seed: private(case, epsilon, seed, deterministic=True, **bound),
    }


def simulated(rows: int, seed: int) -> Problem:
    """People of two groups whose features and outcomes differ; a third of them are in the second group."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(rows) < 1 / 3, "b", "a")
    shift = np.where(group == "a", 0.15, -0.15)
    numbers = {f"X{i}": np.clip(rng.normal(shift, 0.4), -1, 1) for i in range(4)}
    job = rng.choice([f"j{i}" for i in range(8)], rows)
    logit = 3 * numbers["X0"] + 2 * numbers["X1"] + (job == "j1") - 0.5
    d = np.where(rng.random(rows) < 1 / (1 + np.exp(-logit)), "yes", "no")
    frame = pd.DataFrame({**numbers, "G": group, "J": job, "D": d})
    columns: dict[str, Any] = {name: ss.Numeric(lower=-1, upper=1, bins=4) for name in numbers}
    columns |= {"G": ss.Categorical(levels=("a", "b")), "J": ss.Categorical(levels=tuple(f"j{i}" for i in range(8)))}
    return Problem(
        "simulated people", frame, ss.Schema({**columns, "D": ss.Categorical(levels=("no", "yes"))}), "D", "G"
    )
