"""Models of downstream scores: linear, a forest, boosted trees, and one that is constrained by groups."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.driver.solving import one_thread
from stratsynth.errors import UsageError, nearest
from stratsynth.evaluation.tables import FEW, Array, EncodedRows
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONSTANT = "constant"
"""Model that predicts the commoner class, or the mean, of its training rows for everybody."""
LEARNERS = ("linear", "forest", "boosting")
FAIR = "fairlearn"
EVERY = (*LEARNERS, FAIR)
ODDS, ROUNDS = 0.02, 20
"""Settings of "fairlearn": largest difference of the groups' error rates on training rows, and number of rounds."""


def fitted(
    name: str, train: EncodedRows, features: Sequence[str], truth: Array, seed: int, groups: Array | None = None
) -> _Fitted:
    """Return a _Fitted model of kind `name`, trained by `seed` to predict `truth`, classes or numbers.

    It predicts from the columns `features` of encoded rows `train`. "linear" is logistic regression or ridge
    regression, "forest" a random forest, "boosting" scikit-learn's histogram gradient boosting. Settings are
    scikit-learn's, but for leaves of at least five rows in the forest: the comparison is of tables, not of models. With
    only one class in `truth` it is the constant.

    "fairlearn" is logistic regression under equalized odds between `groups`, the group number of each row, by
    fairlearn's ExponentiatedGradient; it predicts by chance, seeded, and has no score. It is for classes alone.
    """
    if name not in (*EVERY, CONSTANT):
        raise UsageError(f"evaluation: there is no model {name!r}{nearest(name, EVERY)}.")
    if name == FAIR and truth.dtype != bool:
        raise UsageError(f"evaluation: {FAIR} predicts two classes; for numbers name others, such as linear.")
    if name == CONSTANT or len(np.unique(truth)) < 2:
        middle = truth.mean() if len(truth) else 0.0
        return _Fitted(None, (), constant=middle >= 0.5 if truth.dtype == bool else middle)
    if name == FAIR:
        return _constrained(train, features, truth, np.zeros(len(truth), int) if groups is None else groups, seed)
    model = _model(name, truth.dtype != bool, seed)
    with single_threaded():
        model.fit(inputs(train, features, wide=name == "linear"), truth)
    return _Fitted(model, tuple(features), wide=name == "linear")


def _constrained(train: EncodedRows, features: Sequence[str], truth: Array, groups: Array, seed: int) -> _Fitted:
    """Return a _Fitted logistic regression under equalized odds.

    It is trained on the columns `features` of encoded rows `train` to tell `truth`, an array of truth values, with odds
    equal between `groups`, an array of group numbers, one a row; groups below `FEW` rows are one; `seed` is for its
    chance.
    """
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

    size = int(groups.max()) + 1
    few = np.min([np.bincount(groups[truth == side], minlength=size) for side in (False, True)], axis=0)
    told = np.where(few[groups] >= FEW, groups, size)
    with single_threaded(), warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning):  # of pandas, on how fairlearn uses it
            warnings.simplefilter("ignore", kind)
        model = ExponentiatedGradient(
            _model("linear", False, seed), EqualizedOdds(difference_bound=ODDS), max_iter=ROUNDS
        )
        model.fit(inputs(train, features, wide=True), truth.astype(int), sensitive_features=told)
    return _Fitted(_ByChance(model, seed), tuple(features), wide=True)


class _ByChance:
    """Randomised mixture of classifiers with the seed of its draws."""

    def __init__(self, model: Any, seed: int) -> None:
        self._model, self._seed = model, seed

    def predict(self, rows: Array) -> Array:
        """Array of a truth value for each row of the matrix `rows`, by a classifier drawn from the mixture for it."""
        return np.asarray(self._model.predict(rows, random_state=self._seed)).astype(bool)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Context that trains on one thread, without warnings of unfinished convergence, which changes no figure shown.

    On a machine with eight busy processes one thread took 6 s, and several, waiting for each other, 48 s.
    """
    from sklearn.exceptions import ConvergenceWarning

    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class _Fitted:
    """Trained model, or a constant."""

    def __init__(self, model: Any, features: Sequence[str], *, wide: bool = False, constant: Any = None) -> None:
        self._model, self._features, self._wide, self._constant = model, features, wide, constant

    def predict(self, table: EncodedRows) -> Array:
        """Array of the fitted model's predicted truth values or numbers, one for each of a `table`'s encoded rows."""
        if self._model is None:
            return np.full(table.rows, self._constant)
        if not table.rows:
            return np.zeros(0, bool)
        with single_threaded():
            found: Array = self._model.predict(inputs(table, self._features, wide=self._wide))
        return found

    def score(self, table: EncodedRows) -> Array | None:
        """Array of the probability of "true" of each of a `table`'s encoded rows; 0 or 1 for a constant class.

        None for numbers, and for models without probabilities.
        """
        if self._model is None:
            return np.full(table.rows, float(self._constant)) if isinstance(self._constant, bool | np.bool_) else None
        if not hasattr(self._model, "predict_proba"):
            return None
        if not table.rows:
            return np.zeros(0)
        with single_threaded():
            found: Array = self._model.predict_proba(inputs(table, self._features, wide=self._wide))[:, 1]
        return found


def inputs(table: EncodedRows, features: Sequence[str], *, wide: bool) -> NDArray[np.float32]:
    """Matrix of float32 from the columns `features` of a `table`'s encoded rows, a row each, as its schema fixes.

    Wide: an indicator for each level, and numbers from 0 at the lower bound to 1 at the upper, 0 if missing. Otherwise
    one column each: numbers, with steps below the lower bound for the levels that are no number; level numbers.
    """
    parts: list[Array] = []
    for name in features:
        column, codes = table.schema.column(name), table.codes[name]
        if not isinstance(column, Numeric):
            parts.append(codes[:, None] == np.arange(column.size) if wide else codes[:, None])
            continue
        bins, values = len(column.extents), table.values(name)
        if wide:
            scaled = (values - column.lower) / (column.upper - column.lower)
            parts += [np.nan_to_num(scaled)[:, None], codes[:, None] == np.arange(bins, column.size)]
        else:
            step = (column.upper - column.lower) / bins
            own = column.lower - step * (codes.astype(np.int64) - bins + 1)
            parts.append(np.where(np.isnan(values), own, values)[:, None])
    return np.hstack([part.astype(np.float32) for part in parts])


def _model(name: str, regression: bool, seed: int) -> Any:
    """Return an untrained scikit-learn model, `name`, for numbers if `regression`, else classes, by a seed."""
    from sklearn import ensemble, linear_model

    if name == "linear":
        # Newton's method takes a few steps, the default solver hundreds for this many indicators
        return linear_model.Ridge() if regression else linear_model.LogisticRegression(solver="newton-cholesky")
    if name == "boosting":
        boosting = ensemble.HistGradientBoostingRegressor if regression else ensemble.HistGradientBoostingClassifier
        return boosting(random_state=seed)
    forest = ensemble.RandomForestRegressor if regression else ensemble.RandomForestClassifier
    return forest(min_samples_leaf=5, random_state=seed)
