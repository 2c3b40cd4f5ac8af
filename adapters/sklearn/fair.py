"""`FairSGDClassifier`: noisy gradient descent that watches its groups, on arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from stratsynth.adapters.fair_sgd import FairSGD
from stratsynth.adapters.predictors import Regression
from stratsynth.adapters.sklearn.grouped import GROUP, TARGET, Grouped, numbered

from stratsynth.accounting.budget import Budget
from stratsynth.checks import is_list
from stratsynth.fitting import fit
from stratsynth.schema import Categorical

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETTINGS = (
    "mitigation", "gamma1", "gamma2", "scaling", "iterations", "batch", "sampling", "rate", "clip", "clip_rate",
    "most_clip", "statistics_share", "memory", "most_weight", "radius", "tail",
)  # fmt: skip
"""The settings of `fair_sgd` that are handed on as they are."""


class FairSGDClassifier(ClassifierMixin, Grouped):  # type: ignore[misc]  # scikit-learn has no types
    """Private logistic or softmax regression that leans against what clipping and noise cost groups unequally.

    Args:
        epsilon: What one fit spends.
        delta: The same.
        bounds: Public bounds of the features: a pair of numbers, or of arrays with one for each feature.
        classes: The classes, declared; two of them make a logistic model, whose coefficients are of the second.
        groups: The declared levels of the sensitive feature; None only with `mitigation` "none" or "global_adapt".
        mitigation: As for `FairSGD`, and so are the next ones.
        declared_size: The number of rows if it is public; otherwise it is learned from the noisy sums.
        ledger: The file that keeps the account of these data; without one it lasts for the process.
        ledger_epsilon: The most that may ever be spent on these data.
    """

    def __init__(
        self, *, epsilon: float, delta: float, bounds: Any, classes: Sequence[Any], groups: Any = None,
        mitigation: Literal["surrogate", "group_clip", "global_adapt", "none"] = "surrogate", gamma1: float = 1.0,
        gamma2: float = 1.0, scaling: Literal["bounds"] = "bounds", iterations: int = 1000, batch: float = 1024,
        sampling: float | None = None, rate: float | None = None, clip: float = 1.0, clip_rate: float = 0.1,
        most_clip: float = 10.0, statistics_share: float = 0.2, memory: float = 0.95, most_weight: float = 5.0,
        radius: float = 10.0, tail: float = 0.5, declared_size: int | None = None,
        ledger: str | os.PathLike[str] | None = None, ledger_epsilon: float | None = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.groups = groups
        self.mitigation = mitigation
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.scaling = scaling
        self.iterations = iterations
        self.batch = batch
        self.sampling = sampling
        self.rate = rate
        self.clip = clip
        self.clip_rate = clip_rate
        self.most_clip = most_clip
        self.statistics_share = statistics_share
        self.memory = memory
        self.most_weight = most_weight
        self.radius = radius
        self.tail = tail
        self.declared_size = declared_size
        self.ledger = ledger
        self.ledger_epsilon = ledger_epsilon

    def __sklearn_tags__(self) -> Any:
        """As many classes as are declared; few rows give a model of noise."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_class = is_list(self.classes) and len(self.classes) > 2
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
        if not is_list(self.classes) or len(set(self.classes)) != len(self.classes) or len(self.classes) < 2:
            raise ValueError('classes must be a list of at least two different ones, declared, such as ["no", "yes"].')
        column = Categorical(levels=tuple(map(str, range(len(self.classes)))))
        how = FairSGD(
            target=TARGET, features=[f"x{i}" for i in range(X.shape[1])],
            groups=[] if self.groups is None else [GROUP], **{key: getattr(self, key) for key in SETTINGS},
        )  # fmt: skip
        table = self._table(X, numbered(np.asarray(y), list(self.classes)), column, sensitive_features)
        self.release_ = fit(how, table, Budget(self.epsilon, self.delta))
        low, high = self._bounds(X.shape[1])
        theta = self._model.theta
        theta = theta[:, None] if theta.ndim == 1 else theta
        self.coef_ = (theta[1:] / (high / 2 - low / 2)[:, None]).T
        self.intercept_ = theta[0] - self.coef_ @ (low / 2 + high / 2)
        self.classes_ = np.asarray(self.classes)
        return self

    @property
    def _model(self) -> Regression:
        model = self.release_.model
        assert isinstance(model, Regression)  # noqa: S101 - what the mechanism returns
        return model

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, in the order of `classes`."""
        frame = self._frame(X)
        return self._model.probabilities(self._model.shown(frame))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class."""
        chances = self.predict_proba(X)  # refuses what was not fitted
        found: NDArray[Any] = self.classes_[chances.argmax(axis=1)]
        return found
