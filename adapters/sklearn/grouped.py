"""What the estimators have in common: from arrays and declared bounds to a table, a fit and its coefficients."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
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

    from stratsynth.data.table import PrivateTable
    from stratsynth.questions.gradients import Link
    from stratsynth.release import Release

GROUP, TARGET = "group", "target"
EVERYBODY = "everybody"
"""The one group where none are declared."""
SETTINGS = (
    "objective", "mode", "accounting", "stage_one", "iterations", "rate", "momentum", "tail", "clip", "radius",
    "most_weight",
)  # fmt: skip
"""The settings of `group_regression` that the estimators hand on as they are."""


class Grouped(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
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

    def _fit(self, x: NDArray[Any], target: Any, column: Numeric | Categorical, model: Link, sensitive: Any) -> None:
        labels = {level: str(i) for i, level in enumerate(self._levels())}
        names = [f"x{i}" for i in range(x.shape[1])]
        how = GroupRegression(
            target=TARGET, features=names, groups=[GROUP],
            model=model,
            loss_bounds={labels[level]: bound for level, bound in (self.loss_bounds or {}).items()},
            **{key: getattr(self, key) for key in SETTINGS},
        )  # fmt: skip
        table = self._table(x, target, column, sensitive)
        self.release_ = fit(how, table, Budget(self.epsilon, self.delta), progress=False)
        low, high = self._bounds(x.shape[1])
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        fitted = self.release_.model
        assert isinstance(fitted, Regression)  # noqa: S101 - what the mechanism returns
        self._theta = fitted.theta
        self.coef_ = fitted.theta[1:].T / half  # for `softmax` one row a class
        self._start = fitted.theta[0] - self.coef_ @ middle

    def _table(self, x: NDArray[Any], target: Any, column: Numeric | Categorical, sensitive: Any) -> PrivateTable:
        """The private table: features x0, x1, ... within their bounds, the group, and the target."""
        low, high = self._bounds(x.shape[1])
        levels = self._levels()
        names = [f"x{i}" for i in range(x.shape[1])]
        columns: dict[str, Numeric | Categorical] = {
            name: Numeric(lower=float(a), upper=float(b), bins=1) for name, a, b in zip(names, low, high, strict=True)
        }
        schema = Schema({**columns, GROUP: Categorical(levels=tuple(map(str, range(len(levels))))), TARGET: column})
        frame = pd.DataFrame({name: x[:, i] for i, name in enumerate(names)})
        frame[GROUP], frame[TARGET] = numbered(self._sensitive(len(x), sensitive), levels), target
        return open_table(
            frame,
            schema=schema,
            ledger=self.ledger,
            ledger_epsilon=self.ledger_epsilon,
            declared_size=self.declared_size,
        )

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


def numbered(values: NDArray[Any], levels: Sequence[Any]) -> NDArray[Any]:
    """The number of each value among the levels, as a text; one that is none of them is no level of the schema."""
    found = np.full(len(values), "other", object)
    for i, level in enumerate(levels):
        found[values.astype(object) == level] = str(i)
    return found
