"""The estimators: what their parameters are, and how arrays of numbers and of classes are predicted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from stratsynth.adapters.predictors import Regression
from stratsynth.adapters.sklearn.grouped import Grouped, numbered

from stratsynth.checks import is_list
from stratsynth.schema import Categorical, Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
        self._fit(X, y, Numeric(lower=low, upper=high, bins=1), "linear", sensitive_features)
        half, middle = high / 2 - low / 2, high / 2 + low / 2
        self.coef_, self.intercept_ = self.coef_ * half, float(self._start * half + middle)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The mean of the target, within its bounds."""
        return np.asarray(self.release_.predict(frame) if len(frame := self._frame(X)) else [], np.float64)


class GroupClassifier(ClassifierMixin, Grouped):  # type: ignore[misc]  # scikit-learn has no types
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

    def __sklearn_tags__(self) -> Any:
        """As many classes as are declared; few rows give a model of noise."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_class = np.size(self.classes) > 2
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
        classes = self.classes.tolist() if isinstance(self.classes, np.ndarray) else self.classes
        if not is_list(classes) or len(set(classes)) != len(classes) or len(classes) < 2:
            raise ValueError('classes must be a list of at least two different ones, declared, such as ["no", "yes"].')
        target = numbered(np.asarray(y), classes)
        levels, binary = Categorical(levels=tuple(map(str, range(len(classes))))), len(classes) == 2
        self._fit(X, target, levels, "logistic" if binary else "softmax", sensitive_features)
        self.classes_ = np.asarray(self.classes)
        self.coef_, self.intercept_ = np.atleast_2d(self.coef_), np.atleast_1d(self._start)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, in the order of `classes`."""
        frame = self._frame(X)
        model = self.release_.model
        assert isinstance(model, Regression)  # noqa: S101 - what the mechanism returns
        return model.probabilities(model.shown(frame))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class."""
        chances = self.predict_proba(X)  # refuses what was not fitted
        found: NDArray[Any] = self.classes_[chances.argmax(axis=1)]
        return found
