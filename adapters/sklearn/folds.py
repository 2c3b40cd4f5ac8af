"""Cross-validation of estimators and pipelines, priced as a whole before its first fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import PredefinedSplit
from sklearn.model_selection import cross_validate as sklearn_cross_validate

from stratsynth.adapters.sklearn.scores import is_open
from stratsynth.adapters.sklearn.searches import FREE, Folds, price, priced
from stratsynth.adapters.sklearn.steps import check_steps, last_step, prefix_of
from stratsynth.errors import UsageError


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    folds: int = 5,
    cv: int | None = None,
    scoring: Any = None,
    **settings: Any,
) -> dict[str, Any]:
    """Run scikit-learn's `cross_validate` on rows whose cost was said, and reserved for by name, before the first fit.

    Every row, or every unit, is put in one of K folds by a draw of its own: folds of equal size would move other rows
    where one record is added. So each record is in the training rows of K - 1 fits. With a `ledger` the folds are
    versions of one `account`, and are refused together if it has not enough left.

    Args:
        estimator: One of those above, or a pipeline that ends with one.
        X: As for its `fit`.
        y: As for its `fit`.
        sensitive_features: As for its `fit`.
        folds: K.
        cv: K as well, by scikit-learn's name.
        scoring: On private rows `NoisyScore`, `PublicScore`, or a table of such; on public ones as for scikit-learn.
        settings: As for scikit-learn's `cross_validate`.

    Returns:
        scikit-learn's mapping from name, such as `test_score`, to array, one entry a fold.

    Raises:
        UsageError: Scores of private rows for nothing, or a step of a pipeline that learns from them for nothing.
        BudgetRefused: All fits and scores together cost more than the ledger has left. Nothing was read.

    Warns:
        EveryFoldSpends: What fits and scores spend in all, before the first one.
    """
    model = last_step(estimator)
    if cv is not None and (not isinstance(cv, int) or isinstance(cv, bool)):
        raise UsageError("cv is the number of folds here: each row is put in one by a draw of its own.")
    splitter = Folds(folds if cv is None else cv)
    for name, given, ways in (("X", X, 2), ("y", y, 1)):
        if not hasattr(given, "__len__") or np.ndim(given) < ways:
            raise UsageError(f"cross_validate: {name} must be an array, a frame or a list, with one entry a row.")
    if not model.scores_are_open:
        if not is_open(scoring):
            raise UsageError(f"cross_validate: {FREE}")
        check_steps(estimator)
        number = splitter.number
        what = f"cross-validation, in which one record is in {number - 1} of {number} folds' fits,"
        price([model] * number, [model], scoring, number, X, what)
    split = PredefinedSplit(splitter.drawn(len(y), model.apart(X)[1]))
    name = f"{prefix_of(estimator)}sensitive_features"
    params = {} if sensitive_features is None else {name: sensitive_features}
    settings.setdefault("error_score", "raise")
    with priced():
        found: dict[str, Any] = sklearn_cross_validate(
            estimator, X, y, cv=split, params=params, scoring=scoring, **settings
        )
    return found
