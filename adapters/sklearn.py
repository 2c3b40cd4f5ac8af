"""Estimators for scikit-learn: `GroupRegressor` and `GroupClassifier`, which are `group_regression` on arrays.

What scikit-learn would read from the data is a parameter here, since it would be learned for free: the bounds of
features and target, the classes, the levels of the sensitive feature. Rows with another class or level are left out
silently, and numbers beyond their bounds are taken for these. Every `fit` spends `epsilon` and `delta`; so does every
fold of a cross-validation, see `cross_validate`. The noise cannot be seeded, so two fits never agree.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import PredefinedSplit
from sklearn.model_selection import cross_validate as sklearn_cross_validate
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from stratsynth.adapters.predictors import GroupRegression, Regression

from stratsynth.accounting.budget import Budget
from stratsynth.checks import is_list
from stratsynth.data.table import open_table
from stratsynth.errors import UsageError
from stratsynth.fitting import fit
from stratsynth.schema import Categorical, Numeric, Schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.release import Release

__all__ = ["EveryFoldSpends", "GroupClassifier", "GroupRegressor", "cross_validate"]

GROUP, TARGET = "group", "target"
EVERYBODY = "everybody"
"""The one group where none are declared."""
SETTINGS = (
    "objective", "mode", "accounting", "stage_one", "iterations", "rate", "momentum", "tail", "clip", "radius",
    "most_weight",
)  # fmt: skip
"""The settings of `group_regression` that the estimators hand on as they are."""


class EveryFoldSpends(UserWarning):
    """Says what a cross-validation will cost, before it starts."""


class _Grouped(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What both estimators do."""

    epsilon: float
    delta: float
    bounds: Any
    groups: Any
    loss_bounds: Mapping[Any, float] | None
    declared_size: int | None
    ledger: str | os.PathLike[str] | None
    ledger_epsilon: float | None
    coef_: NDArray[np.float64]
    release_: Release

    def __sklearn_tags__(self) -> Any:
        """Two fits differ."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    @property
    def certificate_(self) -> Mapping[str, Any]:
        """What the last fit guarantees, as `certificate.json` has it."""
        check_is_fitted(self)
        return self.release_.certificate

    def _bounds(self, features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lower and upper bound of each feature."""
        if not is_list(self.bounds) or len(self.bounds) != 2:
            raise ValueError("bounds must be a pair: (lower, upper), each a number or an array with one a feature.")
        try:
            low, high = (np.broadcast_to(np.asarray(end, np.float64), (features,)) for end in self.bounds)
        except ValueError:
            raise ValueError(f"bounds must be numbers, or arrays with one for each of {features} features.") from None
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise ValueError("bounds must be finite, and each lower one below the upper one.")
        return low, high

    def _levels(self) -> list[Any]:
        return [EVERYBODY] if self.groups is None else list(self.groups)

    def _fit(self, x: NDArray[Any], target: Any, column: Numeric | Categorical, model: str, sensitive: Any) -> None:
        low, high = self._bounds(x.shape[1])
        levels = self._levels()
        names = [f"x{i}" for i in range(x.shape[1])]
        columns: dict[str, Numeric | Categorical] = {
            name: Numeric(lower=float(a), upper=float(b), bins=1) for name, a, b in zip(names, low, high, strict=True)
        }
        schema = Schema({**columns, GROUP: Categorical(levels=tuple(map(str, range(len(levels))))), TARGET: column})
        frame = pd.DataFrame({name: x[:, i] for i, name in enumerate(names)})
        frame[GROUP], frame[TARGET] = _numbered(self._sensitive(len(x), sensitive), levels), target
        labels = {level: str(i) for i, level in enumerate(levels)}
        how = GroupRegression(
            target=TARGET, features=names, groups=[GROUP],
            model="linear" if model == "linear" else "logistic",
            loss_bounds={labels[level]: bound for level, bound in (self.loss_bounds or {}).items()},
            **{key: getattr(self, key) for key in SETTINGS},
        )  # fmt: skip
        table = open_table(
            frame,
            schema=schema,
            ledger=self.ledger,
            ledger_epsilon=self.ledger_epsilon,
            declared_size=self.declared_size,
        )
        self.release_ = fit(how, table, Budget(self.epsilon, self.delta))
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        fitted = self.release_.model
        assert isinstance(fitted, Regression)  # noqa: S101 - what the mechanism returns
        self._theta = fitted.theta
        self.coef_ = fitted.theta[1:] / half
        self._start = float(fitted.theta[0] - self.coef_ @ middle)

    def _sensitive(self, rows: int, given: Any) -> NDArray[Any]:
        if (given is None) != (self.groups is None):
            raise UsageError(
                "sensitive_features and groups go together: declare the groups' levels when making the estimator, and "
                "give each row's when fitting it."
            )
        found = np.full(rows, EVERYBODY, object) if given is None else np.asarray(given).reshape(-1)
        if len(found) != rows:
            raise ValueError(f"sensitive_features has {len(found)} values for {rows} rows.")
        return found

    def _frame(self, x: Any) -> pd.DataFrame:
        check_is_fitted(self)
        x = validate_data(self, x, reset=False)
        return pd.DataFrame({f"x{i}": x[:, i] for i in range(x.shape[1])})


def _numbered(values: NDArray[Any], levels: Sequence[Any]) -> NDArray[Any]:
    """The number of each value among the levels, as a text; one that is none of them is no level of the schema."""
    found = np.full(len(values), "other", object)
    for i, level in enumerate(levels):
        found[values.astype(object) == level] = str(i)
    return found


class GroupRegressor(RegressorMixin, _Grouped):  # type: ignore[misc]  # scikit-learn has no types
    """Private linear regression that knows of groups.

    Args:
        epsilon: What one fit spends.
        delta: The same.
        bounds: Public bounds of the features: a pair of numbers, or of arrays with one for each feature.
        target_bounds: Public bounds of the target.
        groups: The declared levels of the sensitive feature; None for one group of everybody.
        objective: As for `GroupRegression`, and so are the next ones.
        declared_size: The number of rows if it is public; otherwise it is counted with noise.
        loss_bounds: By level of the sensitive feature.
        ledger: The file that keeps the account of these data; without one it lasts for the process.
        ledger_epsilon: The most that may ever be spent on these data.
    """

    def __init__(
        self, *, epsilon: float, delta: float, bounds: Any, target_bounds: tuple[float, float], groups: Any = None,
        objective: str = "pooled", mode: str = "DPNoSE", accounting: str = "combined", stage_one: float | None = None,
        iterations: int = 100, rate: float | None = None, momentum: float = 0.9, tail: float = 0.5,
        clip: float | None = None, radius: float = 5.0, most_weight: float = 20.0,
        loss_bounds: Mapping[Any, float] | None = None, declared_size: int | None = None,
        ledger: str | os.PathLike[str] | None = None, ledger_epsilon: float | None = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.groups = groups
        self.objective = objective
        self.mode = mode
        self.accounting = accounting
        self.stage_one = stage_one
        self.iterations = iterations
        self.rate = rate
        self.momentum = momentum
        self.tail = tail
        self.clip = clip
        self.radius = radius
        self.most_weight = most_weight
        self.loss_bounds = loss_bounds
        self.declared_size = declared_size
        self.ledger = ledger
        self.ledger_epsilon = ledger_epsilon

    def __sklearn_tags__(self) -> Any:
        """Few rows give a model of noise."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Self:
        """Spend the budget.

        Args:
            X: Features, one row a record.
            y: Numbers to predict.
            sensitive_features: Each row's level of the sensitive feature, where `groups` were declared.
        """
        X, y = validate_data(self, X, y, y_numeric=True)
        low, high = (float(end) for end in self.target_bounds)
        self._fit(X, y, Numeric(lower=low, upper=high, bins=1), "linear", sensitive_features)
        half, middle = high / 2 - low / 2, high / 2 + low / 2
        self.coef_, self.intercept_ = self.coef_ * half, self._start * half + middle
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The mean of the target, within its bounds."""
        return np.asarray(self.release_.predict(frame) if len(frame := self._frame(X)) else [], np.float64)


class GroupClassifier(ClassifierMixin, _Grouped):  # type: ignore[misc]  # scikit-learn has no types
    """Private logistic regression that knows of groups.

    Args:
        epsilon: What one fit spends.
        delta: The same.
        bounds: Public bounds of the features: a pair of numbers, or of arrays with one for each feature.
        classes: The two classes, declared; the second is the one whose log-odds the coefficients are of.
        groups: As for `GroupRegressor`, and so are all others.
    """

    def __init__(
        self, *, epsilon: float, delta: float, bounds: Any, classes: Sequence[Any], groups: Any = None,
        objective: str = "pooled", mode: str = "DPNoSE", accounting: str = "combined", stage_one: float | None = None,
        iterations: int = 100, rate: float | None = None, momentum: float = 0.9, tail: float = 0.5,
        clip: float | None = None, radius: float = 5.0, most_weight: float = 20.0,
        loss_bounds: Mapping[Any, float] | None = None, declared_size: int | None = None,
        ledger: str | os.PathLike[str] | None = None, ledger_epsilon: float | None = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.groups = groups
        self.objective = objective
        self.mode = mode
        self.accounting = accounting
        self.stage_one = stage_one
        self.iterations = iterations
        self.rate = rate
        self.momentum = momentum
        self.tail = tail
        self.clip = clip
        self.radius = radius
        self.most_weight = most_weight
        self.loss_bounds = loss_bounds
        self.declared_size = declared_size
        self.ledger = ledger
        self.ledger_epsilon = ledger_epsilon

    def __sklearn_tags__(self) -> Any:
        """Two classes only; few rows give a model of noise."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Self:
        """Spend the budget.

        Args:
            X: Features, one row a record.
            y: Classes; rows whose class is not among those declared are left out.
            sensitive_features: Each row's level of the sensitive feature, where `groups` were declared.
        """
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        if len(self.classes) != 2 or self.classes[0] == self.classes[1]:
            raise ValueError("Only binary classification is supported: classes must be two different ones, declared.")
        target = _numbered(np.asarray(y), list(self.classes))
        self._fit(X, target, Categorical(levels=("0", "1")), "logistic", sensitive_features)
        self.classes_ = np.asarray(self.classes)
        self.coef_, self.intercept_ = self.coef_[None], np.array([self._start])
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, in the order of `classes`."""
        frame = self._frame(X)
        model = self.release_.model
        assert isinstance(model, Regression)  # noqa: S101 - what the mechanism returns
        return model.probabilities(model.shown(frame))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class."""
        chances = self.predict_proba(X)  # refuses what was not fitted
        found: NDArray[Any] = self.classes_[chances.argmax(axis=1)]
        return found


def cross_validate(
    estimator: Any, X: Any, y: Any, *, sensitive_features: Any = None, folds: int = 5, **settings: Any
) -> dict[str, Any]:
    """As scikit-learn's, after saying what it costs. The scores are computed without noise: INTERNAL.

    Every row is put in one of K folds by a draw of its own: folds of equal size would move other rows where one record
    is added. So each record is in the training rows of K - 1 fits.

    Args:
        estimator: One of those above.
        X: As for its `fit`.
        y: As for its `fit`.
        sensitive_features: As for its `fit`.
        folds: K.
        settings: As for scikit-learn's `cross_validate`.

    Warns:
        EveryFoldSpends: The sum of the fits' epsilons and deltas, before the first one.
    """
    if folds < 2:
        raise UsageError("cross-validation needs at least 2 folds.")
    fits = folds - 1
    warnings.warn(
        f"cross-validation fits {folds} times on private rows, and one record is in {fits} of the fits: together they "
        f"cost it epsilon {fits * estimator.epsilon:g} and delta {fits * estimator.delta:g}. Scores are not private.",
        EveryFoldSpends,
        stacklevel=2,
    )
    split = PredefinedSplit(np.random.default_rng().integers(folds, size=len(y)))
    params = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
    found: dict[str, Any] = sklearn_cross_validate(estimator, X, y, cv=split, params=params, **settings)
    return found
