"""`FermiClassifier`: DP-FERMI on arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from stratsynth.adapters.fermi import DPFermi
from stratsynth.adapters.predictors import Regression
from stratsynth.adapters.sklearn.grouped import GROUP, TARGET, Grouped, numbered

from stratsynth.accounting.budget import Budget
from stratsynth.errors import UsageError
from stratsynth.fitting import fit
from stratsynth.schema import Categorical

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETTINGS = (
    "penalty", "criterion", "protect", "iterations", "batch", "sampling", "rate", "ascent", "clip", "adversary_share",
    "warm_up", "radius", "tail",
)  # fmt: skip
"""The settings of `fermi` that are handed on as they are."""


class FermiClassifier(ClassifierMixin, Grouped):  # type: ignore[misc]  # scikit-learn has no types
    """Private logistic or softmax regression with a penalty on what predictions tell of the sensitive feature.

    Args:
        epsilon: What one fit spends.
        delta: The same.
        bounds: Public bounds of the features: a pair of numbers, or of arrays with one for each feature.
        classes: The classes, declared; two of them make a logistic model, whose coefficients are of the second.
        groups: The declared levels of the sensitive feature; None only with `penalty = 0`.
        penalty: lambda, how much ERMI counts beside the mean log loss.
        criterion: `parity` (demographic parity) or `odds` (equalized odds).
        protect: `all` protects whole records; `sensitive` is refused, with the reason.
        shares: Public sizes or shares of the groups, by level; for `odds` by pairs (level, class). By default they are
            learned from the fit's own noisy sums.
        shares_citation: Where these were published.
        iterations: As for `DPFermi`, and so are the next ones.
        declared_size: The number of rows if it is public; otherwise it is learned from the noisy sums.
        ledger: The file that keeps the account of these data; without one it lasts for the process.
        ledger_epsilon: The most that may ever be spent on these data.
    """

    def __init__(
        self, *, epsilon: float, delta: float, bounds: Any, classes: Sequence[Any], groups: Any = None,
        penalty: float = 1.0, criterion: Literal["parity", "odds"] = "parity",
        protect: Literal["all", "sensitive"] = "all", shares: Mapping[Any, float] | None = None,
        shares_citation: str = "", iterations: int = 1000, batch: float = 1024, sampling: float | None = None,
        rate: float | None = None, ascent: float = 0.1, clip: float = 1.0, adversary_share: float = 0.2,
        warm_up: float = 0.1, radius: float = 10.0, tail: float = 0.5, declared_size: int | None = None,
        ledger: str | os.PathLike[str] | None = None, ledger_epsilon: float | None = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.groups = groups
        self.penalty = penalty
        self.criterion = criterion
        self.protect = protect
        self.shares = shares
        self.shares_citation = shares_citation
        self.iterations = iterations
        self.batch = batch
        self.sampling = sampling
        self.rate = rate
        self.ascent = ascent
        self.clip = clip
        self.adversary_share = adversary_share
        self.warm_up = warm_up
        self.radius = radius
        self.tail = tail
        self.declared_size = declared_size
        self.ledger = ledger
        self.ledger_epsilon = ledger_epsilon

    def __sklearn_tags__(self) -> Any:
        """Few rows give a model of noise."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
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
        classes = list(self.classes)
        if len(classes) < 2 or len(set(classes)) < len(classes):
            raise ValueError("classes must be at least two different ones, declared.")
        column = Categorical(levels=tuple(map(str, range(len(classes)))))
        how = DPFermi(
            target=TARGET, features=[f"x{i}" for i in range(X.shape[1])],
            groups=[] if self.groups is None else [GROUP], sizes=self._sizes(classes),
            sizes_citation=self.shares_citation, **{key: getattr(self, key) for key in SETTINGS},
        )  # fmt: skip
        table = self._table(X, numbered(np.asarray(y), classes), column, sensitive_features)
        self.release_ = fit(how, table, Budget(self.epsilon, self.delta))
        low, high = self._bounds(X.shape[1])
        theta = self._model.theta
        theta = theta[:, None] if theta.ndim == 1 else theta
        self.coef_ = (theta[1:] / (high / 2 - low / 2)[:, None]).T
        self.intercept_ = theta[0] - self.coef_ @ (low / 2 + high / 2)
        self.classes_ = np.asarray(classes)
        return self

    def _sizes(self, classes: Sequence[Any]) -> dict[str, float]:
        """The public shares by label, as the mechanism wants them."""
        levels = {level: str(i) for i, level in enumerate(self._levels())}
        numbers = {level: str(i) for i, level in enumerate(classes)}
        found = {}
        for key, share in (self.shares or {}).items():
            try:
                label = f"{levels[key[0]]}|{numbers[key[1]]}" if self.criterion == "odds" else levels[key]
            except (KeyError, TypeError, IndexError):
                what = "a pair (level, class)" if self.criterion == "odds" else "a level"
                raise UsageError(f"shares: a key is {what} that is declared; {key!r} is not.") from None
            found[label] = share
        return found

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
