"""INTERNAL. Disparity of means: the largest difference between group means, in the real rows and in a release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.evaluation.scores.parity_terms import mean_terms
from stratsynth.evaluation.tables import FEW, NOT_ESTIMABLE, OK, By, Pair, level_values, stamped
from stratsynth.models.intervals import NORMAL_95
from stratsynth.schema import Numeric, Schema

if TYPE_CHECKING:
    import pandas as pd

LARGEST = "(largest)"
"""Value of `variable` in the row with the largest gap over all variables."""


def mean_disparity(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    by: By,
    *,
    columns: Sequence[str] | None = None,
    few: int = FEW,
) -> pd.DataFrame:
    """Gap between groups, the largest group mean of a variable minus the smallest, in both tables; a frame.

    `value` is how much the release widens (above 0) or narrows the gap. Groups with fewer than `few` rows in either
    table that have a value would be the extremes by chance: they are left out of both, and counted in `left_out`. The
    row `(largest)` has the largest gap of all variables, each in units of its variable's range; the difference of the
    two tables is the paper's maximum disparity of means.

    Args:
        real: The private table: a frame, an Arrow table or a path.
        synthetic: The release.
        schema: The schema of both, or its path.
        by: Columns whose crossing makes the groups.
        columns: The variables; by default all columns but those of `by`.
        few: Smallest number of rows for a group's mean to be compared.

    Returns:
        A row for each variable and `(largest)`: `real` and `synthetic` gaps, `value`, and its interval.

    Raises:
        UsageError: `by` is empty, or a column is not in the schema.
    """
    import pandas as pd

    pair = Pair.of(real, synthetic, schema, by, few)
    if not pair.by:
        raise UsageError("evaluation: a disparity needs groups; name columns with `by`.")
    names = pair.variables(columns)
    rows = [_gap(pair, name) for name in names]
    scaled = np.array(
        [
            [row[side] / _range(pair, name) for side in ("real", "synthetic")]
            for row, name in zip(rows, names, strict=True)
        ],
        float,
    ).reshape(-1, 2)
    known = ~np.isnan(scaled).any(axis=1)
    largest = scaled[known].max(axis=0) if known.any() else np.full(2, np.nan)
    rows.append(
        {
            "variable": LARGEST,
            "n": pair.counts[0, -1],
            "n_synthetic": pair.counts[1, -1],
            "real": largest[0],
            "synthetic": largest[1],
            "value": largest[1] - largest[0],
            "low": np.nan,
            "high": np.nan,
            "status": OK if known.any() else NOT_ESTIMABLE,
            "left_out": max((row["left_out"] for row in rows), default=0),
        }
    )
    return stamped(pd.DataFrame(rows).astype({"variable": "string", "status": "string"}))


def _gap(pair: Pair, name: str) -> dict[str, Any]:
    """Dict of one row: a pair's real and synthetic gap between the groups' extreme means of column `name`."""
    terms = mean_terms(pair, name)
    kept = terms.rows[:, :-1].min(axis=0) >= max(pair.few, 2)
    gaps, variance = [np.nan, np.nan], np.nan
    if kept.sum() >= 2:
        variance = 0.0
        for side, means in enumerate((terms.real, terms.synthetic)):
            inside = np.where(kept, means[:-1], np.nan)
            gaps[side] = float(np.nanmax(inside) - np.nanmin(inside))
            # delta method: only the two extreme groups' means enter the gap
            variance += sum(terms.variance[side, g] for g in (np.nanargmax(inside), np.nanargmin(inside)))
    value = gaps[1] - gaps[0]
    return {
        "variable": name,
        "n": int(terms.rows[0, -1]),
        "n_synthetic": int(terms.rows[1, -1]),
        "real": gaps[0],
        "synthetic": gaps[1],
        "value": value,
        "low": value - NORMAL_95 * np.sqrt(variance),
        "high": value + NORMAL_95 * np.sqrt(variance),
        "status": NOT_ESTIMABLE if np.isnan(value) else OK,
        "left_out": int((~kept).sum()),
    }


def _range(pair: Pair, name: str) -> float:
    """Width of the range of values of the column `name` in a pair's schema: a number, or that of its levels' numbers.

    1 if they have no range.
    """
    column = pair.schema.column(name)
    if isinstance(column, Numeric):
        return float(column.upper - column.lower)
    levels = level_values(column)
    levels = levels[~np.isnan(levels)]
    return float(np.ptp(levels)) if len(levels) > 1 and np.ptp(levels) else 1.0
