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

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

DELTA = 1e-6
TRAINED = 0.7
"""The part of the rows that models are fitted to; the others are predicted."""
SPLIT = 2002
"""Sets the splits apart from what simulated people are drawn by."""
SETTINGS: Mapping[str, Any] = {}
"""Of the private models: the defaults."""
ITERATIONS = 20
"""The most rounds of fairlearn's ExponentiatedGradient."""
SLACK = 0.02
"""The bound on differences of rates between groups."""


@dataclass(frozen=True, eq=False)
class Case:
    """A table, what is predicted of it, and by which groups."""

    name: str
    frame: pd.DataFrame
    schema: Schema
    target: str
    group: str

    @property
    def features(self) -> list[str]:
        """All columns but the target; the group's is among them."""
        return [name for name in self.schema.names if name != self.target]

    @property
    def positive(self) -> str:
        """The second level of the target."""
        return self.schema.levels(self.target)[1]

    def halves(self, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows to fit and rows to predict."""
        chosen = np.random.default_rng([SPLIT, seed]).random(len(self.frame)) < TRAINED
        return self.frame[chosen], self.frame[~chosen]


@dataclass(frozen=True)
class Outcome:
    """How one predictor does."""

    error: float
    """The part predicted wrongly."""
    violation: float
    """The largest difference between groups of true or of false positive rates."""


def outcome(case: Case, test: pd.DataFrame, chances: Floats) -> Outcome:
    """From the probability of the second level for each row."""
    yes = (test[case.target] == case.positive).to_numpy()
    violation = 0.0
    for truth in (False, True):
        here = yes == truth
        means = pd.Series(chances[here]).groupby(test[case.group].to_numpy()[here]).mean()
        violation = max(violation, float(means.max() - means.min()))
    return Outcome(float(np.where(yes, 1 - chances, chances).mean()), violation)


def private(case: Case, epsilon: float, seed: int, **settings: Any) -> Outcome:
    """`reductions` at a budget, with the noise of the day."""
    train, test = case.halves(seed)
    common = {"target": case.target, "features": case.features, "groups": [case.group], **SETTINGS}
    how = make("reductions", {**common, **settings})
    release = ss.fit(how, ss.open_table(train, schema=case.schema), ss.Budget(epsilon, DELTA))
    return outcome(case, test, _second(release, test, case))


def _second(release: ss.Release, test: pd.DataFrame, case: Case) -> Floats:
    table = release.predictions(test, seed=0)  # probabilities are those of all draws, whatever the seed
    return np.asarray(table.column(f"probability={case.positive}"), np.float64)


def matrix(case: Case, frame: pd.DataFrame) -> Floats:
    """The features that the private models have, as numbers between -1 and 1."""
    columns: list[Any] = []
    for name in case.features:
        column = case.schema.column(name)
        if isinstance(column, ss.Numeric):
            low, high = float(column.lower), float(column.upper)
            columns.append(np.clip(2 * (frame[name].to_numpy(np.float64) - low) / (high - low) - 1, -1, 1))
        else:
            columns += [(frame[name] == level).to_numpy(np.float64) for level in column.levels[1:]]
    return np.column_stack(columns)


def not_private(case: Case, seed: int, *, constrained: bool) -> Outcome:
    """Logistic regression, alone or in fairlearn's ExponentiatedGradient with the same constraint."""
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    train, test = case.halves(seed)
    x, y = matrix(case, train), (train[case.target] == case.positive).to_numpy(np.int64)
    plain = LogisticRegression(max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not constrained:
            said = plain.fit(x, y).predict(matrix(case, test))
            return outcome(case, test, np.asarray(said, np.float64))
        # each group within half of the bound of everybody: any two within the bound
        fair = ExponentiatedGradient(plain, EqualizedOdds(difference_bound=SLACK / 2), eps=0.01, max_iter=ITERATIONS)
        fair.fit(x, y, sensitive_features=train[case.group].to_numpy())
        chances = np.asarray(fair._pmf_predict(matrix(case, test)))[:, 1]  # noqa: SLF001 - it has no public name
    return outcome(case, test, chances)


def methods(case: Case, epsilon: float) -> Mapping[str, Callable[[int], Outcome]]:
    """The methods side by side, each as a function of the seed of its split."""
    bound = {"constraints": {"equalized_odds": SLACK}}
    return {
        "private, unconstrained": lambda seed: private(case, epsilon, seed),
        "private, equalized odds": lambda seed: private(case, epsilon, seed, **bound),
        "private, best classifier alone": lambda seed: private(case, epsilon, seed, deterministic=True, **bound),
    }


def simulated(rows: int, seed: int) -> Case:
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
    return Case("simulated people", frame, ss.Schema({**columns, "D": ss.Categorical(levels=("no", "yes"))}), "D", "G")
