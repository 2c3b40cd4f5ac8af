"""The estimators: what their parameters are, and how arrays of numbers and of classes are predicted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from stratsynth.adapters.predictors import GroupRegression
from stratsynth.adapters.sklearn.classified import Classified
from stratsynth.adapters.sklearn.grouped import GROUP, TARGET, Grouped, named
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions.sums.gradients import Link


SETTINGS = (
    "objective", "mode", "accounting", "stage_one", "iterations", "rate", "momentum", "tail", "clip", "radius",
    "most_weight",
)  # fmt: skip
"""The settings of `group_regression` that the estimators hand on as they are."""


def _group_regression(
    estimator: Grouped, features: Sequence[str], model: Link, loss_bounds: Mapping[str, float]
) -> GroupRegression:
    """The mechanism with an estimator's settings."""
    return GroupRegression(
        target=TARGET, features=features, groups=[GROUP], model=model,
        loss_bounds=loss_bounds, **{key: getattr(estimator, key) for key in SETTINGS},
    )  # fmt: skip


class GroupRegressor(RegressorMixin, Grouped):  # type: ignore[misc]  # scikit-learn has no types
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
        bounds = self._by_label("loss_bounds", self.loss_bounds)
        how = _group_regression(self, named(X), "linear", bounds)
        self._spend(how, X, y, Numeric(lower=low, upper=high, bins=1), sensitive_features)
        (slopes,), (start,) = self._in_their_unit(X.shape[1])
        half, middle = high / 2 - low / 2, high / 2 + low / 2
        self.coef_, self.intercept_ = slopes * half, float(start * half + middle)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The mean of the target, within its bounds."""
        return np.asarray(self.release_.predict(frame) if len(frame := self._frame(X)) else [], np.float64)


class GroupClassifier(Classified):
    """Private logistic regression that knows of groups; for more than two classes, softmax regression.

    Args:
        epsilon: What one fit spends.
        delta: The same.
        bounds: Public bounds of the features: a pair of numbers, or of arrays with one for each feature.
        classes: The classes, declared. Of two the second is the one whose log-odds the coefficients are of; of more
            each has coefficients of its own.
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

    def _mechanism(self, features: Sequence[str]) -> GroupRegression:
        """`group_regression` by these settings."""
        model: Link = "logistic" if len(self._declared()) == 2 else "softmax"
        return _group_regression(self, features, model, self._by_label("loss_bounds", self.loss_bounds))
