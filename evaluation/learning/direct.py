"""INTERNAL. Predictions of a released model, in the terms of a task, and their rates on real people held out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.evaluation.learning.rates import RESAMPLES, GroupedRows
from stratsynth.evaluation.tables import FEW, Array, EncodedRows, group_numbers, groups_of
from stratsynth.models.predictor import Predictor, Shown
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from stratsynth.evaluation.learning.tasks import Task
    from stratsynth.schema import Schema


def audited(model: Predictor, held: EncodedRows, goal: Task, by: Sequence[str], seed: int) -> pd.DataFrame:
    """Frame of the rates of a model's predictions for rows that it was not fitted to, in the form of `downstream`.

    Args:
        model: Predictor; one that predicts by chance is given the seed.
        held: Hold-out, EncodedRows; if they have weights, rows are drawn in proportion to them.
        goal: Task: the target, and the population it is predicted for.
        by: Columns whose crossing makes the groups.
        seed: Seed for the drawing of rows, predictions and intervals.
    """
    rows = goal.rows(held.unweighted(seed))
    names, groups = groups_of(held.schema, by)
    said = model.seeded(seed).predict(Shown(dict(rows.codes), rows.numbers)) if rows.rows else np.zeros(0, object)
    grouped = GroupedRows(names, groups, group_numbers(rows, names), FEW)
    predicted = in_terms(said, held.schema, goal)
    return grouped.scores(goal.truth(rows), predicted, RESAMPLES, np.random.default_rng(seed))


def in_terms(said: Any, schema: Schema, goal: Task) -> Array:
    """Convert predictions `said`, levels or numbers by `schema` of the target of task `goal`, to its values.

    Returns an array of truth values or numbers; UsageError for predictions of other values.
    """
    import pandas as pd

    if isinstance(schema.column(goal.target), Numeric):
        numbers = pd.to_numeric(pd.Series(said), errors="coerce").to_numpy(np.float64)
        if np.isnan(numbers).any():
            raise UsageError(f"evaluation: {goal.target} is a number, and some predictions are none.")
        return numbers if goal.above is None else numbers > goal.above
    coded = EncodedRows.read(pd.DataFrame({goal.target: said}), schema.restrict((goal.target,)))
    if coded.left_out:
        raise UsageError(f"evaluation: {coded.left_out:,} predictions are no level of {goal.target}.")
    return goal.truth(coded)
