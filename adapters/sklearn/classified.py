"""What estimators have in common that predict declared classes by a regression."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from stratsynth.adapters.networks import Module
from stratsynth.adapters.predictors import Regression
from stratsynth.adapters.predictors.network import Network
from stratsynth.adapters.sklearn.grouped import GroupedEstimator, each, named, numbered
from stratsynth.checks import is_list
from stratsynth.schema import Categorical

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.mechanisms import Mechanism


@dataclass(kw_only=True, eq=False, repr=False)
class Classified(ClassifierMixin, GroupedEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Predicts one of the declared `classes`."""

    classes: Sequence[Any]

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
        X, y = self._checked(X, y)
        classes = self._declared()
        levels = Categorical(levels=tuple(map(str, range(len(classes)))))
        self._spend(self._mechanism(named(X)), X, numbered(y, classes), levels, sensitive_features)
        self.classes_ = np.asarray(classes)
        self._learned(X.shape[1])
        return self

    @abstractmethod
    def _mechanism(self, features: Sequence[str]) -> Mechanism[Any]:
        """What is fitted, to columns of these names, TARGET, and GROUP where there are groups."""

    def _declared(self) -> Sequence[Any]:
        """The classes as a list; refuses what is none."""
        classes = self.classes.tolist() if isinstance(self.classes, np.ndarray) else self.classes
        if not is_list(classes) or len(set(classes)) != len(classes) or len(classes) < 2:
            raise ValueError('classes must be a list of at least two different ones, declared, such as ["no", "yes"].')
        return classes

    def _checked(self, x: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Features and classes as arrays."""
        x, checked = validate_data(self, x, y)
        check_classification_targets(checked)
        return x, each(y)

    def _learned(self, features: int) -> None:
        """Show what was fitted, as scikit-learn's own estimators do."""
        model = self.release_.model
        if isinstance(model, Network):
            self.coefs_, self.intercepts_ = self._layers(features)
        elif isinstance(model, Regression):
            self.coef_, self.intercept_ = self._in_their_unit(features)

    def _layers(self, features: int) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Weights of a network's two layers, in the unit of the features, and their constants."""
        assert isinstance(self._model, Network)  # noqa: S101 - the caller's check
        output = self._model.output
        slopes, constants = self._unscaled(self._model.hidden.T, features)
        return [slopes.T, output[:-1]], [constants, output[-1]]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, in the order of `classes`."""
        frame, model = self._frame(X), self.release_.model
        assert isinstance(model, Regression | Network | Module)  # noqa: S101 - what the mechanisms of these estimators return
        return model.probabilities(model.shown(frame))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class."""
        chances = self.predict_proba(X)  # refuses what was not fitted
        found: NDArray[Any] = self.classes_[chances.argmax(axis=1)]
        return found
