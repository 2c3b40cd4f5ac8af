"""INTERNAL. Downstream use: models trained on a release, tested on real people that it was not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.evaluation.learning.learners import CONSTANT, EVERY, LEARNERS, fitted
from stratsynth.evaluation.learning.rates import RESAMPLES, GroupedRows
from stratsynth.evaluation.learning.tasks import Task, task
from stratsynth.evaluation.tables import FEW, By, EncodedRows, as_schema, group_numbers, groups_of, joined, named
from stratsynth.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

SYNTHETIC, REAL, SUBSAMPLE = "synthetic", "real", "subsample"


def downstream(
    train: Any,
    test: Any,
    schema: Schema | str | Path,
    *,
    target: str | Task,
    by: By = None,
    real: Any = None,
    positive: str | Sequence[str] | None = None,
    above: float | None = None,
    features: Sequence[str] | None = None,
    models: Sequence[str] = LEARNERS,
    most: int | None = None,
    few: int = FEW,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> pd.DataFrame:
    """Train on the release, test on a real hold-out, in each group; optionally train on real rows too. Return a frame.

    Args:
        train: The release: a frame, an Arrow table or a path.
        test: Real rows that the release was not fitted to. If the schema names a column of weights, these rows and
            those of `real` are drawn in proportion to it.
        schema: The schema of all, or its path.
        target: The column to predict, a `Task`, or the built-in "employment" or "income" (`evaluation.learning.tasks`).
        by: Columns whose crossing makes the groups.
        real: The rows that the release was fitted to. With them come two more trainings: "real", on all of them, and
            "subsample", on a random part of them of the release's size (all, when the release is larger).
        positive: The levels of a categorical target that count as 1.
        above: The number above which a numeric target counts as 1; without, the number is predicted.
        features: The columns to predict from; by default all others, or those of the task.
        models: Some of "linear", "forest", "boosting" and "fairlearn": logistic regression under equalized odds between
            the groups.
        most: The largest number of training rows of each table, to save time; None for all.
        few: A rate over fewer test rows is `small`.
        resamples: Number of bootstrap draws of test rows within each group, for the intervals. They are about the
            hold-out's size, not about other releases or other trainings.
        seed: Seed for the models, the subsample and the intervals.

    Returns:
        For each training (`trained_on`, with `n_train` rows), model and metric: a row for each declared group, one
        for everybody, and comparisons of groups (scope "between"), as `evaluation.learning.rates` defines them. The
        model "constant" predicts the commoner class, or the mean, for everybody. `attrs["task"]` is the task in words.

    Raises:
        UsageError: The task or a model does not exist, or the hold-out is a table that is trained on.
    """
    schema = as_schema(schema)
    wanted = task(schema, target, positive=positive, above=above, features=features)
    if not models:
        raise UsageError(f"evaluation: name at least one model of {', '.join(EVERY)}.")
    names, groups = groups_of(schema, by)
    tables = {SYNTHETIC: EncodedRows.read(train, schema)} | (
        {} if real is None else {REAL: EncodedRows.read(real, schema, weigh=True)}
    )
    holdout = EncodedRows.read(test, schema, weigh=True)
    for table in tables.values():
        _refuse_same(table, holdout)
    # models and rates take no weights: rows are drawn in proportion to theirs
    tables, holdout = {name: table.unweighted(seed) for name, table in tables.items()}, holdout.unweighted(seed)
    rng = np.random.default_rng(seed)
    size = tables[SYNTHETIC].rows
    if real is not None:
        tables[SUBSAMPLE] = tables[REAL].take(rng.permutation(tables[REAL].rows)[:size])
    tables = {name: _at_most(wanted.rows(table), most, rng) for name, table in tables.items()}
    holdout = wanted.rows(holdout)
    grouped = GroupedRows(names, groups, group_numbers(holdout, names), few)
    truth, parts = wanted.truth(holdout), []
    for name, table in tables.items():
        target_there = wanted.truth(table)
        constant = [CONSTANT] if name == (SYNTHETIC if real is None else REAL) else []
        for model in (*models, *constant):
            learned = fitted(model, table, wanted.features, target_there, seed, group_numbers(table, names))
            predicted, sure = learned.predict(holdout), learned.score(holdout)
            if not table.rows:  # nothing to learn from: no score, rather than that of a guess
                predicted = np.zeros(0, predicted.dtype)
            frame = _scored(grouped, truth, predicted, sure, resamples, np.random.default_rng(seed))
            frame = named(named(frame, model, "model"), name, "trained_on")
            frame.insert(3, "n_train", table.rows)
            parts.append(frame)
    found = joined(parts)
    found.attrs["task"] = wanted.meaning
    return found


def _scored(
    grouped: GroupedRows, truth: Any, predicted: Any, sure: Any, resamples: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Frame of the scores of predictions against `truth` by `grouped`, GroupedRows, with `resamples` draws by `rng`.

    `truth` and `predicted` are arrays of values, one a row; `sure` has numbers that are larger the likelier "true" is,
    or None. Of no rows if there is not one prediction a row.
    """
    if len(predicted) == len(truth):
        return grouped.scores(truth, predicted.astype(truth.dtype), resamples, rng, sure)
    nobody = GroupedRows(grouped.by, grouped.groups, grouped.members[:0], grouped.few)
    return nobody.scores(
        truth[:0], predicted.astype(truth.dtype), resamples, rng, None if sure is None else np.zeros(0)
    )


def _at_most(table: EncodedRows, most: int | None, rng: np.random.Generator) -> EncodedRows:
    """Return `table`, or `most` of its encoded rows drawn by `rng` if it has more; None is no limit."""
    return table if most is None or table.rows <= most else table.take(rng.permutation(table.rows)[:most])


def _refuse_same(table: EncodedRows, holdout: EncodedRows) -> None:
    """Raise UsageError if encoded rows `holdout` equal `table`, a training table, in its order."""
    same = table.rows == holdout.rows > 0
    if same and all(np.array_equal(table.codes[name], holdout.codes[name]) for name in table.schema.names):
        raise UsageError("evaluation: the hold-out is a table trained on; give rows that nothing was fitted to.")
