"""INTERNAL. Quality of predictions, by group: error rates in every declared group, beside a constant prediction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.data.sources import open_source
from stratsynth.errors import Unsupported, UsageError
from stratsynth.evaluation.learning.direct import in_terms
from stratsynth.evaluation.learning.rates import RESAMPLES, GroupedRows
from stratsynth.evaluation.learning.tasks import Task, task
from stratsynth.evaluation.tables import (
    FEW,
    STAMP,
    Array,
    By,
    EncodedRows,
    as_schema,
    group_numbers,
    groups_of,
    joined,
    named,
    weighed,
)
from stratsynth.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.report.page import Page

PREDICTIONS, CONSTANT = "predictions", "constant"
"""Value of `table` for the predictions themselves, and for one constant prediction."""


@dataclass(frozen=True, eq=False)
class PredictionScores:
    """INTERNAL. Error rates of predictions, of those beside them, and of a constant."""

    schema: Schema
    """Schema of the rows."""
    by: tuple[str, ...]
    """Columns whose crossing makes the groups; empty for everybody alone."""
    facts: Mapping[str, Any]
    """Sizes and settings; `stamp` among them. Plain values."""
    rates: pd.DataFrame
    """Frame of `prediction_rates` for each `table`."""

    def __repr__(self) -> str:
        """Return a text with the number of rates, and the columns of the groups."""
        return f"PredictionScores(INTERNAL; {len(self.rates)} rates; groups by {', '.join(self.by) or 'nothing'})"

    def frames(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield one pair: ("rates", the frame of rates by group)."""
        yield "rates", self.rates

    def page(self, name: str, certificate: Mapping[str, Any] | None) -> Page:
        """Return the Page for readers, on which the predictions are called `name`.

        `certificate` is their release's or None.
        """
        from stratsynth.evaluation.evaluations.predictions_page import predictions_page

        return predictions_page(self, name=name, certificate=certificate)


def evaluate_predictions(
    real: Any,
    predictions: Any,
    schema: Schema | str | Path,
    target: str | Task,
    by: By = None,
    *,
    positive: str | Sequence[str] | None = None,
    above: float | None = None,
    beside: Mapping[str, Any] | None = None,
    few: int = FEW,
    seed: int = 0,
) -> PredictionScores:
    """Compute error rates of predictions in every declared group; definitions are those of `prediction_rates`.

    Args:
        real: The rows that were predicted: a frame, an Arrow table or a path; of a database, `ss.database(...)`, if
            all predictions are those of releases, since its rows have no order.
        predictions: One prediction for each row, in their order: an array, the file or frame that `stratsynth predict`
            writes (its column `prediction`), or the folder of a release that predicts.
        schema: The schema of the rows, or its path.
        target: The column that was predicted, or a `Task`.
        by: Columns whose crossing makes the groups; None for everybody alone.
        positive: The levels that count as 1; of two levels the last counts when none is named.
        above: The number above which a numeric target counts as 1.
        beside: Mapping from name to other predictions of the same rows.
        few: A rate over fewer rows is `small`.
        seed: Seed for the intervals, and for releases that predict by chance.

    Returns:
        PredictionScores, with the frame `rates`.

    Raises:
        UsageError: A row of `real` has no known target or group, or `predictions` has not one of the target's values
            for each row.
    """
    schema = as_schema(schema)
    goal = task(schema, target, positive=positive, above=above)
    names, groups = groups_of(schema, by)
    taken = {PREDICTIONS, CONSTANT} & {*(beside or {})}
    if taken:
        raise UsageError(f"evaluation: {min(taken)} is the name of a row of every evaluation; choose another.")
    real = _in_order(real, [predictions, *(beside or {}).values()])
    rows = _rows(real, schema, tuple(dict.fromkeys((*names, *goal.reads))))
    kept = np.flatnonzero(goal.kept(rows))
    here = rows.take(kept)
    if here.weights is not None:
        kept = kept[here.in_proportion(len(kept), np.random.default_rng([seed, 2]))]
    truth = goal.truth(rows)[kept]
    tables = {PREDICTIONS: predictions, **(beside or {})}
    found = {name: _values(given, real, schema, goal, rows.rows, seed)[kept] for name, given in tables.items()}
    found[CONSTANT] = np.full(len(truth), truth.mean() if goal.regression else truth.mean() > 1 / 2)
    grouped = GroupedRows(names, groups, group_numbers(rows.take(kept), names), few)
    frame = joined(
        [named(grouped.scores(truth, one, RESAMPLES, np.random.default_rng(seed)), name) for name, one in found.items()]
    )
    facts = {
        "stamp": STAMP,
        "task": goal.meaning,
        "real_rows": rows.rows,
        "scored_rows": len(truth),
        "groups": len(groups),
        **weighed(rows),
        "beside": list(beside or {}),
        "score": "root_mean_squared_error" if goal.regression else "accuracy",
        "schema_sha256": schema.sha256,
    }
    return PredictionScores(schema, names, facts, frame)


def _in_order(real: Any, given: Sequence[Any]) -> Any:
    """Return `real` itself, whose rows have an order, or rows of a database read once into a table.

    Unsupported for Spark, and for a database unless all of the predictions `given` are folders of releases.
    """
    source = None if isinstance(real, EncodedRows) else open_source(real)
    if source is None or source.engine is None:
        return real
    if source.engine == "duckdb" and all(_is_folder(one) for one in given):
        return source.read(source.columns())
    raise Unsupported(
        "evaluation: rows of Spark or of a database have no order, and predictions are told apart by their place. For "
        "rows of a database, name a release that predicts instead of its predictions; or write the rows to a Parquet "
        "file, and predict and score that."
    )


def _is_folder(given: Any) -> bool:
    """True if the predictions `given` are the path of a folder, that of a release; else False."""
    return isinstance(given, str | Path) and Path(given).is_dir()


def _rows(real: Any, schema: Schema, columns: tuple[str, ...]) -> EncodedRows:
    """Return EncodedRows of `real` (frame, table or path) in the schema's `columns`, with weights.

    UsageError for rows that lack a value, as predictions are matched by position.
    """
    rows = EncodedRows.read(real, schema.restrict(columns), weigh=True)
    if rows.left_out:
        raise UsageError(
            f"evaluation: {rows.left_out:,} rows have a value that the schema does not admit in {', '.join(columns)}, "
            "so that rows and predictions do not match. Leave these rows out, and predict the rest."
        )
    return rows


def _values(given: Any, real: Any, schema: Schema, goal: Task, rows: int, seed: int) -> Array:
    """Array of the predictions `given`, one for each of the `rows` of `real`: values of the schema's task `goal`.

    They are truth values or numbers, from a file, a frame, a sequence or a release's folder, which predicts by `seed`.
    UsageError for another number of predictions.
    """
    said = _predicted(given, real, seed)
    if len(said) != rows:
        raise UsageError(f"evaluation: there are {len(said):,} predictions for {rows:,} rows; predict these very rows.")
    return in_terms(said, schema, goal)


def _predicted(given: Any, real: Any, seed: int) -> Any:
    """Array of predictions: the column `prediction` of a file or frame `given`, or a sequence `given` itself.

    If the folder of a release is `given`, that release predicts the rows `real`, by `seed`.
    """
    if _is_folder(given):
        from stratsynth.release import Release

        return Release.load(given).predict(real, seed=seed)
    if isinstance(given, str | Path) or hasattr(given, "columns") or hasattr(given, "column_names"):
        return open_source(given).read(("prediction",)).column("prediction").to_numpy(zero_copy_only=False)
    return np.asarray(given)
