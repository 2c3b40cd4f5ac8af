"""Cross-validation with a warning of its total privacy cost."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import PredefinedSplit
from sklearn.model_selection import cross_validate as sklearn_cross_validate

from stratsynth.errors import UsageError


class EveryFoldSpends(UserWarning):
    """Warning, before a cross-validation starts, of the epsilon and delta that its fits spend together."""


def cross_validate(
    estimator: Any, X: Any, y: Any, *, sensitive_features: Any = None, folds: int = 5, **settings: Any
) -> dict[str, Any]:
    """Run scikit-learn's `cross_validate` after a warning of its cost. Scores are computed without noise: INTERNAL.

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
