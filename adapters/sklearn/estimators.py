"""Estimators over `group_regression`: of a number, and of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from stratsynth.adapters.predictors import GroupRegression
from stratsynth.adapters.predictors.accounting import Accounting
from stratsynth.adapters.predictors.objective import Kind
from stratsynth.adapters.sklearn.classified import Classified
from stratsynth.adapters.sklearn.grouped import GROUP, GroupedEstimator
from stratsynth.checks import is_list
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions.sums.gradients import Link


@dataclass(kw_only=True, eq=False, repr=False)
class TailoredSettings(GroupedEstimator):
    """Common settings of both estimators, with the names that `group_regression` has for them."""

    objective: Kind = "pooled"
    mode: Literal["DPSE", "DPNoSE"] = "DPNoSE"
    accounting: Accounting = "combined"
    stage_one: float | None = None
    iterations: int | None = None
    rate: float | None = None
    momentum: float = 0.9
    tail: float = 0.5
    clip: float | None = None
    radius: float = 5.0
    most_weight: float = 20.0
    loss_bounds: Mapping[Any, float] | None = None

    def _group_regression(self, features: Sequence[str], model: Link) -> GroupRegression:
        """Return a `GroupRegression` of kind `model` for feature columns of these names, with other settings as set."""
        bounds = self._by_label("loss_bounds", self.loss_bounds)
        return self._settings(GroupRegression, features, groups=[GROUP], model=model, loss_bounds=bounds)


@dataclass(kw_only=True, eq=False, repr=False)
class GroupRegressor(RegressorMixin, TailoredSettings):  # type: ignore[misc]  # scikit-learn has no types
    """Private linear regression with an objective over groups.

    Args:
        epsilon: Epsilon that each fit spends.
        delta: Delta that each fit spends.
        bounds: Public bounds of the features: a pair of numbers, or of arrays with one for each feature.
        target_bounds: Public bounds of the target.
        groups: The declared levels of the sensitive feature; None for one group of everybody.
        objective: As for `GroupRegression`, and so are the next ones.
        declared_size: The number of rows if it is public; otherwise it is counted with noise.
        loss_bounds: By level of the sensitive feature.
        ledger: The file that keeps the account of these data; without one it lasts for the process.
        ledger_epsilon: The most that may ever be spent on these data.
        account: The name under which folds and versions of the data share the ledger.
        public: True if the data are public: nothing is charged, and the certificate says NOT PRIVATE.
        unit: `Unit(column=..., max_rows=...)` where one person has several rows: X is then a pandas frame with that
            column, which is no feature.
        first: Share of the budget that the first question costs, which counts usable records and values outside; 0 for
            none.
        proceed: True to go on where it finds far fewer usable records than rows.
    """

    target_bounds: tuple[float, float]

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, among them poor scores on few rows, which noise hides."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Self:
        """Fit to private rows, which spends the budget, and return the fitted estimator itself.

        Args:
            X: Features, one row a record.
            y: Numbers to predict.
            sensitive_features: Each row's level of the sensitive feature, where `groups` were declared.
        """
        X, owners = self.apart(X)
        X, y = validate_data(self, X, y, y_numeric=True)
        self._spend(X, y, sensitive_features, owners)
        low, high = self.target_ends
        (slopes,), (start,) = self._in_their_unit(X.shape[1])
        half, middle = high / 2 - low / 2, high / 2 + low / 2
        self.coef_, self.intercept_ = slopes * half, float(start * half + middle)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R2, a float, on rows `X` with targets `y`, weighted by `sample_weight`, without noise.

        Issue a NotPrivateWarning unless the data are public.
        """
        self._tell_of_scores()
        return float(super().score(X, y, sample_weight))

    def _mechanism(self, features: Sequence[str]) -> GroupRegression:
        """Return a `GroupRegression`, linear, for feature columns of these names."""
        return self._group_regression(features, "linear")

    def _target(self) -> Numeric:
        """Return the `Numeric` of the target, between its bounds."""
        low, high = self.target_ends
        return Numeric(lower=low, upper=high, bins=1)

    @property
    def target_ends(self) -> tuple[float, float]:
        """Pair of the target's public lower and upper bound; ValueError where `target_bounds` is no pair of numbers."""
        ends = self.target_bounds
        if not is_list(ends) or len(ends) != 2 or not all(isinstance(end, (int, float, np.number)) for end in ends):
            raise ValueError("target_bounds must be a pair of numbers: (lower, upper).")
        return float(ends[0]), float(ends[1])

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted mean of the target, within its bounds, for each row of `X`: an array of floats."""
        return np.asarray(self.release_.predict(frame) if len(frame := self._frame(X)) else [], np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class GroupClassifier(Classified, TailoredSettings):
    """Private logistic regression with an objective over groups; for more than two classes, softmax regression.

    Args:
        epsilon: Epsilon that each fit spends.
        delta: Delta that each fit spends.
        bounds: Public bounds of the features: a pair of numbers, or of arrays with one for each feature.
        classes: The classes, declared. Of two the second is the one whose log-odds the coefficients are of; of more
            each has coefficients of its own.
        groups: As for `GroupRegressor`, and so are all others.
    """

    def _mechanism(self, features: Sequence[str]) -> GroupRegression:
        """Return a `GroupRegression` for columns `features`: logistic for two classes, else softmax."""
        model: Link = "logistic" if len(self._declared()) == 2 else "softmax"
        return self._group_regression(features, model)
