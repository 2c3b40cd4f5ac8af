"""Scorers whose numbers may decide something: of private rows, which are charged, and of public rows, which are free.

A score that is computed from private rows without noise says something about single people, and so does whatever is
chosen by it. These two are what `scoring` of scikit-learn's searches and of `cross_validate` may be on private data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score

from stratsynth.accounting.budget import Budget
from stratsynth.adapters.sklearn.grouped import GroupedEstimator, each, numbered
from stratsynth.adapters.sklearn.steps import last_step
from stratsynth.checks import number
from stratsynth.data.table import open_table
from stratsynth.errors import UsageError
from stratsynth.fitting import fit
from stratsynth.fitting.stages import Fit
from stratsynth.mechanisms import make
from stratsynth.schema import Categorical, Numeric, Schema

if TYPE_CHECKING:
    from stratsynth.accounting.account import Request
    from stratsynth.data.table import PrivateTable
    from stratsynth.schema import Column

RIGHT, ERROR = "right", "squared_error"


@dataclass(frozen=True, kw_only=True)
class NoisyScore:
    """Scorer of private rows by noisy numbers, charged to the estimator's account each time that it is called.

    A classifier's accuracy, from noisy counts of right and wrong predictions; for a regressor minus the mean squared
    error, from a noisy sum, each error at most the width of the target's bounds.

    Args:
        epsilon: Epsilon that each score spends.
    """

    epsilon: float

    def __post_init__(self) -> None:
        """Refuse (UsageError) an epsilon that is no positive number."""
        number("NoisyScore: epsilon", self.epsilon, above=0)

    def __call__(self, estimator: Any, X: Any, y: Any, **_: Any) -> float:
        """Return the noisy score, a float, of a fitted estimator or pipeline on private rows `X`, `y`, which spends.

        It is the accuracy of a classifier, else minus the mean squared error.
        """
        model = last_step(estimator)
        right = is_classifier(model)
        values = self._marks(estimator, model, X, y)
        how = make("independent", {}) if right else make("clipped_mean", {"variance": "bounded"})
        release = fit(how, self._table(model, values, X), Budget(self.epsilon, model.delta, first=0), progress=False)
        if not right:
            return -float(release.estimates()["value"].iloc[0])
        wrong, hits = (max(float(count), 0.0) for count in release.query([RIGHT])["estimate"])
        return hits / (wrong + hits) if wrong + hits else 0.0

    def request(self, model: GroupedEstimator, X: Any) -> Request:
        """Return the Request of one score on rows `X`, to the account of the `GroupedEstimator`'s data.

        Nothing is read or reserved.
        """
        how = make("independent", {}) if is_classifier(model) else make("clipped_mean", {"variance": "bounded"})
        table = self._table(model, pd.Series(np.zeros(len(X))), X)
        return Fit.prepare(how, table, Budget(self.epsilon, model.delta, first=0)).request

    @staticmethod
    def _marks(estimator: Any, model: Any, x: Any, y: Any) -> pd.Series[Any]:
        """Return a pandas Series, a mark for each row of `x`: "1" if the estimator's class is `y`'s, else "0".

        Of a regression, `model`, the squared error, with `y` cut to its bounds. UsageError for another number of values
        in `y`.
        """
        predicted = estimator.predict(x)
        if not is_classifier(model):
            low, high = model.target_ends
            return pd.Series((np.clip(np.asarray(y, np.float64), low, high) - predicted) ** 2)
        classes = list(model.classes_)
        truth = each(y)
        if len(truth) != len(predicted):
            raise UsageError(f"y has {len(truth)} values for {len(predicted)} rows.")
        return pd.Series(np.where(numbered(truth, classes) == numbered(predicted, classes), "1", "0"))

    @staticmethod
    def _table(model: GroupedEstimator, values: pd.Series[Any], x: Any) -> PrivateTable:
        """Return the `PrivateTable` of one column, the marks `values` of rows `x`, of `model`'s account.

        Marks are 0 or 1 as text for a `GroupedEstimator` that classifies, else squared errors.
        """
        column: Column = Categorical(levels=("0", "1"))
        name = RIGHT
        if not is_classifier(model):
            low, high = model.target_ends
            name, column = ERROR, Numeric(lower=0, upper=(high - low) ** 2, bins=1)
        frame = pd.DataFrame({name: values})
        schema = Schema({name: column}, unit=model.owned(frame, model.apart(x)[1]))
        return open_table(frame, schema=schema, **model.account_settings())


@dataclass(frozen=True)
class PublicScore:
    """Scorer on public rows, whatever rows it is called with: accuracy of classes, R2 of numbers. Costs nothing.

    Args:
        X: Public features.
        y: Their classes or numbers.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)

    def __call__(self, estimator: Any, X: Any = None, y: Any = None, **_: Any) -> float:
        """Return the score, a float, of a fitted estimator or pipeline on this scorer's public rows.

        `X`, `y` are not read.
        """
        score = accuracy_score if is_classifier(last_step(estimator)) else r2_score
        predicted = estimator.predict(self.X)
        return float(score(self.y, predicted))


def is_open(scoring: Any) -> bool:
    """True if `scoring`, a scorer or a table of several, gives nothing of private rows out for free."""
    several = list(scoring.values()) if isinstance(scoring, dict) else [scoring]
    return bool(several) and all(isinstance(one, (NoisyScore, PublicScore)) for one in several)


def noisy(scoring: Any) -> list[NoisyScore]:
    """Return a list of those scorers in `scoring`, one or a table of several, that are charged: NoisyScores."""
    several = scoring.values() if isinstance(scoring, dict) else [scoring]
    return [one for one in several if isinstance(one, NoisyScore)]
