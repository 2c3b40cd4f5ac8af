"""Searches and cross-validations of scikit-learn: refused, or priced as a whole, before their first fit.

scikit-learn clones an estimator before it fits it, so that is where these are asked for. What would choose by scores of
private rows that nothing pays for is refused there, with nothing spent.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import (
    BaseCrossValidator,
    GridSearchCV,
    ParameterGrid,
    PredefinedSplit,
    RandomizedSearchCV,
)
from sklearn.model_selection._search import BaseSearchCV

from stratsynth.accounting.history import coming
from stratsynth.accounting.ledger_file import FileLedger
from stratsynth.adapters.sklearn.scores import is_open, noisy
from stratsynth.adapters.sklearn.steps import check_steps, prefix_of
from stratsynth.checks import check_integer
from stratsynth.errors import UsageError

if TYPE_CHECKING:
    from types import FrameType

    from numpy.typing import NDArray

    from stratsynth.adapters.sklearn.grouped import GroupedEstimator

FREE = (
    "scores of held-out private rows, computed without noise, say something about single people, and so does whatever "
    "is chosen by them. Pay for each score, scoring=NoisyScore(epsilon=...); score public rows, "
    "scoring=PublicScore(X, y); or declare the data public, public=True."
)
"""Words on scores that nothing pays for, with the remedies."""
MOST_FOLDS = 1_000
VALIDATION = "sklearn.model_selection._validation"
_PRICED: ContextVar[bool] = ContextVar("_PRICED", default=False)


class EveryFoldSpends(UserWarning):
    """Warning, before the first of several fits, of the epsilon and delta that they spend together."""


class Folds(BaseCrossValidator):  # type: ignore[misc]  # scikit-learn has no types
    """Folds of private rows: each row, or each group of `groups`, is put in one by a draw of its own.

    Folds of equal size move other rows where one record is added, so that more than one record would differ.

    Args:
        number: The number of folds.
    """

    def __init__(self, number: int = 5) -> None:
        """Take the `number` of folds; UsageError for fewer than two."""
        if isinstance(number, int) and not isinstance(number, bool) and number < 2:
            raise UsageError("cross-validation needs at least 2 folds.")
        check_integer("the number of folds", number, 2, MOST_FOLDS)
        self.number = number

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the int number of these folds, whatever the arguments `X`, `y` and `groups`."""
        return self.number

    def drawn(self, rows: int, groups: Any = None) -> NDArray[np.int64]:
        """Return an array: the fold, from 0, of each of so many `rows`, a number.

        `groups` has an entry a row: rows of one have one fold; None for none.
        """
        rng = np.random.default_rng()
        if groups is None:
            return rng.integers(self.number, size=rows)
        _, places = np.unique(np.asarray(groups).astype(str), return_inverse=True)
        return rng.integers(self.number, size=int(places.max(initial=-1)) + 1)[places]

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield (training, held-out) row numbers, int arrays, of each fold of the rows `X`; `y` is not used.

        Rows of one of `groups` stay together.
        """
        fold = self.drawn(len(X), groups)
        for i in range(self.number):
            yield np.flatnonzero(fold != i), np.flatnonzero(fold == i)


@contextmanager
def priced() -> Iterator[None]:
    """Context manager that lets clones pass in the block: what they are fitted for has been priced."""
    mark = _PRICED.set(True)
    try:
        yield
    finally:
        _PRICED.reset(mark)


def check_clone(model: GroupedEstimator) -> None:
    """Refuse (UsageError) or price what scikit-learn clones a `GroupedEstimator` for, if it would score private rows.

    Raises:
        UsageError: A search by scores that nothing pays for, by folds that one record changes, or of unknown length;
            one with estimators as candidates; or one of scikit-learn's own cross-validations.
        BudgetRefused: The fits and scores together cost more than the ledger has left.

    Warns:
        EveryFoldSpends: What a search spends in all.
    """
    if model.scores_are_open or _PRICED.get():
        return
    for frame in _callers():
        owner, inside = frame.f_locals.get("self"), frame.f_globals.get("__name__") == VALIDATION
        if inside and frame.f_code.co_name == "_fit_and_score":
            raise UsageError(
                "an estimator among the values of a search's grid is priced by nobody: make it the search's own, or "
                "the last step of its pipeline, and name its parameters in the grid."
            )
        if frame.f_code.co_name == "fit" and isinstance(owner, BaseSearchCV):
            if "base_estimator" not in frame.f_locals:  # else it was asked for before
                _check_search(owner, model, frame.f_locals["X"])
            return
        if inside and "scoring" in frame.f_locals:
            raise UsageError(
                f"{frame.f_code.co_name} of scikit-learn says nothing of what its fits cost together, and {FREE} "
                "stratsynth.adapters.sklearn.cross_validate takes these, and prices all folds before the first."
            )


def _callers() -> Iterator[FrameType]:
    """Yield the stack frames (`FrameType`) from this function's own outwards, the innermost first."""
    frame = inspect.currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _check_search(search: Any, model: GroupedEstimator, x: Any) -> None:
    """Raise UsageError on, or price, a search whose estimator is, or ends with, a `GroupedEstimator`, on rows `x`."""
    if not is_open(search.scoring):
        raise UsageError(f"{type(search).__name__} would choose by {FREE}")
    if not isinstance(search.cv, (Folds, PredefinedSplit)):
        raise UsageError("equal folds move other rows where one record is added: on private rows take cv=Folds(5).")
    check_steps(search.estimator)
    if isinstance(search, GridSearchCV):
        grid: list[Mapping[str, Any]] = list(ParameterGrid(search.param_grid))
    elif isinstance(search, RandomizedSearchCV):
        grid = [{}] * search.n_iter
    else:
        raise UsageError(
            f"{type(search).__name__} does not say before its first fit how many there are; on private data take "
            "GridSearchCV or RandomizedSearchCV."
        )
    start = prefix_of(search.estimator)
    models = [_with(model, candidate, start) for candidate in grid]
    folds = search.cv.get_n_splits()
    fits = [each for each in models for _ in range(folds)]
    fits += [max(models, key=lambda each: each.epsilon)] if search.refit else []
    price(fits, models, search.scoring, folds, x, "a search")


def _with(model: GroupedEstimator, candidate: Mapping[str, Any], start: str) -> GroupedEstimator:
    """Return a copy of the `GroupedEstimator` `model` with a candidate's own parameters.

    `candidate` maps names to values; its own are those that begin with `start`, which is cut off. Others are left out.
    """
    known = model.get_params(deep=False)
    own = {key.removeprefix(start): value for key, value in candidate.items() if key.removeprefix(start) in known}
    return type(model)(**{**known, **own})


def price(
    fits: Sequence[GroupedEstimator], scored: Sequence[GroupedEstimator], scoring: Any, folds: int, x: Any, what: str
) -> None:
    """Warn of what several fits and their scores spend together; BudgetRefused if the ledger has not that left.

    Args:
        fits: The `GroupedEstimator` of each fit.
        scored: Each estimator that is scored, once in each fold.
        scoring: A scorer, or a table of several.
        folds: The number of folds.
        x: Features of all rows, of which only the number of columns is read.
        what: The beginning of the sentence: "a search".
    """
    first, scores = fits[0], noisy(scoring)
    if first.ledger is not None and first.account is None:
        raise UsageError(
            "folds are parts of one table, and share its ledger as versions of one account: give the account a name, "
            'account="persons 2024".'
        )
    number = len(scores) * len(scored) * folds
    epsilon = sum(each.epsilon for each in fits) + sum(score.epsilon for score in scores) * len(scored) * folds
    delta = sum(each.delta for each in fits) + sum(each.delta for each in scored) * folds * len(scores)
    if isinstance(ledger := first.table_of_nobody(x).ledger, FileLedger):
        wanted = [each.request(x) for each in fits]
        wanted += [score.request(each, x) for score in scores for each in scored for _ in range(folds)]
        coming(ledger, wanted)
    paid = f" and {number} noisy scores" if number else ""
    warnings.warn(
        f"{what} makes {len(fits)} fits{paid} on private rows, which together reserve epsilon {epsilon:g} and delta "
        f"{delta:g}.",
        EveryFoldSpends,
        stacklevel=_outside(),
    )


def _outside() -> int:
    """Return the stack level, an int, for a caller's warning: the first frame beyond this package and scikit-learn."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(("stratsynth.", "sklearn.", "joblib.")):
        frame, level = frame.f_back, level + 1
    return level
