"""INTERNAL. Means and quartiles of the numbers themselves, which reveal errors within bins.

A table of bins can be right while every number in a bin is wrong: if one wide bin holds most people, numbers drawn in
it may have six times their mean. So the values as they are in the files, neither binned nor clipped to the schema's
bounds, are compared: for each numeric column and each of mean, lower quartile, median and upper quartile,

    value = |synthetic - real| / spread,    spread = the standard deviation of the real numbers.

Codes that are no quantities, not applicable and missing values are left out of both. A quantile is the smallest number
with at least its part of all rows, or of their weight, at or below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.tables import FEW, Array, as_schema, stamped, statuses
from stratsynth.evaluation.tables.numbers import RawNumbers, mean, quantiles
from stratsynth.schema import Numeric, Schema

if TYPE_CHECKING:
    import pandas as pd

QUANTILES = {"lower quartile": 25, "median": 50, "upper quartile": 75}
"""Names of quantiles, and their places in hundredths."""
STATISTICS = ("mean", *QUANTILES)


def raw_values(
    real: Any, synthetic: Any, schema: Schema | str | Path, *, columns: Sequence[str] | None = None, few: int = FEW
) -> pd.DataFrame:
    """Means and quartiles of the raw numbers of both tables, side by side in a frame.

    Args:
        real: The private rows: a frame, an Arrow table or a path.
        synthetic: The release's rows.
        schema: The schema of both, or its path.
        columns: Numeric columns; None for all of them.
        few: Columns with fewer numbers in either table are `small`.

    Returns:
        A row for each column and statistic: `variable`, `statistic`, `n`, `n_synthetic`, `real`, `synthetic`, `spread`,
        `value` and `status`; INTERNAL.
    """
    schema = as_schema(schema)
    wanted = schema if columns is None else schema.restrict(columns)
    names = [name for name, column in wanted.columns.items() if isinstance(column, Numeric)]
    true = RawNumbers.read(real, schema, names, weigh=True)
    return raw_frame(true, RawNumbers.read(synthetic, schema, names), names, few)


def raw_frame(real: RawNumbers, synthetic: RawNumbers, names: Sequence[str], few: int = FEW) -> pd.DataFrame:
    """Frame of `raw_values` for columns `names` of tables read before, the RawNumbers `real` and `synthetic`.

    Small below `few` numbers.
    """
    import pandas as pd

    tables = [{name: table.of_group(name) for name in names} for table in (real, synthetic)]
    found = [(name, *_compared(*tables[0][name], *tables[1][name])) for name in names]
    counts = np.array([[len(tables[side][name][0]) for name in names] for side in (0, 1)], np.int64).reshape(2, -1)
    there, made = (np.array([row[i] for row in found]).reshape(-1, len(STATISTICS)) for i in (1, 2))
    spread = np.array([row[3] for row in found])
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(there == made, 0.0, np.abs(made - there) / np.where(spread > 0, spread, np.nan)[:, None])
    n, n_synthetic = (np.repeat(side, len(STATISTICS)) for side in counts)
    frame = pd.DataFrame(
        {
            "variable": pd.array([name for name in names for _ in STATISTICS], "string"),
            "statistic": pd.array(list(STATISTICS) * len(names), "string"),
            "n": n,
            "n_synthetic": n_synthetic,
            "real": there.ravel(),
            "synthetic": made.ravel(),
            "spread": np.repeat(spread, len(STATISTICS)),
            "value": apart.ravel(),
            "status": pd.array(statuses(apart.ravel(), np.minimum(n, n_synthetic), few), "string"),
        }
    )
    return stamped(frame)


def farthest(frame: pd.DataFrame) -> Mapping[Any, Any] | None:
    """Row of a frame of `raw_values`, a mapping, with the largest `value`; None if nothing can be compared."""
    rows = frame[frame["value"].notna()].to_dict("records")
    return max(rows, key=lambda row: row["value"]) if rows else None


def sentence(row: Mapping[Any, Any]) -> str:
    """Sentence for readers on `row` of a frame of `raw_values`, a mapping: that this is the figure farthest off."""
    return (
        f"Among raw numbers, the {row['statistic']} of {row['variable']} is farthest off: "
        f"{row['synthetic']:,.6g}, where the real one is {row['real']:,.6g}: "
        f"{row['value']:.2f} standard deviations apart."
    )


def _deviation(numbers: Array, each: Array) -> float:
    """Standard deviation of the array `numbers` weighted by the array `each`; NaN without numbers."""
    if not len(numbers):
        return np.nan
    if (each == each[0]).all():
        return float(numbers.std())
    return float(np.sqrt(np.average((numbers - np.average(numbers, weights=each)) ** 2, weights=each)))


def _compared(real: Array, each: Array, synthetic: Array, one: Array) -> tuple[list[float], list[float], float]:
    """(List of `STATISTICS` of the numbers `real`, list of those of `synthetic`, standard deviation of the former).

    All arguments are arrays; `each` and `one` are the weights of the real and of the synthetic numbers. NaN without
    numbers.
    """
    return _statistics(real, each), _statistics(synthetic, one), _deviation(real, each)


def _statistics(numbers: Array, each: Array) -> list[float]:
    """List of the mean and quartiles of `numbers` weighted by `each`, two arrays, in the order of `STATISTICS`."""
    return [mean(numbers, each), *quantiles(numbers, each, list(QUANTILES.values()))]
