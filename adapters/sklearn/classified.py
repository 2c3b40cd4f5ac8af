"""Common part of the estimators that predict declared classes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from stratsynth.adapters.networks import Module
from stratsynth.adapters.predictors import Regression
from stratsynth.adapters.predictors.network import Network
from stratsynth.adapters.sklearn.grouped import GroupedEstimator, check_kinds, each, numbered
from stratsynth.checks import is_list
from stratsynth.schema import Categorical

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(kw_only=True, eq=False, repr=False)
class Classified(ClassifierMixin, GroupedEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Estimator that predicts one of the declared `classes`."""

    classes: Sequence[Any]

    def __sklearn_tags__(self) -> Any:
        """Return tags: multiclass if more than two classes are declared; poor scores on few rows, which noise hides."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_class = np.size(self.classes) > 2
        return tags

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Self:
        """Fit to private rows, which spends the budget, and return the fitted estimator itself.

        Args:
            X: Features, one row a record.
            y: Classes; rows whose class is not among those declared are left out.
            sensitive_features: Each row's level of the sensitive feature, where `groups` were declared.
        """
        X, owners = self.apart(X)
        classes = self._declared()
        check_kinds("y", y, "classes", classes)
        X, y = self._checked(X, y)
        self._spend(X, numbered(y, classes), sensitive_features, owners)
        self.classes_ = np.asarray(classes)
        self._learned(X.shape[1])
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, a float, on rows `X` with classes `y`, weighted by `sample_weight`, without noise.

        Issue a NotPrivateWarning unless the data are public.
        """
        self._tell_of_scores()
        return float(super().score(X, y, sample_weight))

    def _target(self) -> Categorical:
        """Return the declaration, a `Categorical`, of the target: its levels are the classes' numbers, as texts."""
        return Categorical(levels=tuple(map(str, range(len(self._declared())))))

    def _declared(self) -> Sequence[Any]:
        """Return the declared classes as a list; refuse (ValueError) fewer than two, or equal ones."""
        classes = self.classes.tolist() if isinstance(self.classes, np.ndarray) else self.classes
        named = is_list(classes) and all(isinstance(each, Hashable) for each in classes)
        if not named or len(set(classes)) != len(classes) or len(classes) < 2:
            raise ValueError('classes must be a list of at least two different ones, declared, such as ["no", "yes"].')
        return classes

    def _checked(self, x: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return arrays (features `x`, classes `y`), checked by scikit-learn.

        ValueError from its checks, as for a continuous target.
        """
        x, checked = validate_data(self, x, y)
        check_classification_targets(checked)
        return x, each(y)

    def _learned(self, features: int) -> None:
        """Set the coefficients of the fitted model as attributes, for so many features.

        Of a `Network` they are `coefs_` and `intercepts_`, of a `Regression` `coef_` and `intercept_`.
        """
        model = self.release_.model
        if isinstance(model, Network):
            self.coefs_, self.intercepts_ = self._layers(features)
        elif isinstance(model, Regression):
            self.coef_, self.intercept_ = self._in_their_unit(features)

    def _layers(self, features: int) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Return (list of two arrays of weights, list of two arrays of constants) of a network's layers.

        They are in the unit of so many `features`, their number; weights are inputs x outputs.
        """
        assert isinstance(self._model, Network)  # noqa: S101 - the caller's check
        output = self._model.output
        slopes, constants = self._unscaled(self._model.hidden.T, features)
        return [slopes.T, output[:-1]], [constants, output[-1]]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return an array, rows of `X` x `classes`: the probability of each class."""
        frame, model = self._frame(X), self.release_.model
        assert isinstance(model, Regression | Network | Module)  # noqa: S101 - what the mechanisms of these estimators return
        return model.probabilities(model.shown(frame))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return an array: the likeliest declared class of each row of `X`."""
        chances = self.predict_proba(X)  # refuses what was not fitted
        found: NDArray[Any] = self.classes_[chances.argmax(axis=1)]
        return found
