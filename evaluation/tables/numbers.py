"""INTERNAL. Numbers of a table as they are in its file, neither binned nor clipped, with each row's group and weight.

Means and quantiles of them are what readers of a release compute. The quantile q is the smallest number that has at
least the part q of all weight at or below it; a row without a weight weighs 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stratsynth.evaluation.tables.encoded import Array, EncodedRows
from stratsynth.evaluation.tables.pairs import group_numbers
from stratsynth.schema import Numeric, Schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

Weighed: TypeAlias = "tuple[Array, Array]"
"""Numbers of a column, and their weights."""


@dataclass(frozen=True, eq=False)
class RawNumbers:
    """INTERNAL. Numbers of one table's rows, NaN where there is none; with groups and weights of the rows."""

    numbers: Mapping[str, NDArray[np.float64]]
    """Column's name -> number of each row; NaN for missing values, for codes that are no quantities, and for not
    applicable."""
    weights: Array
    """Weight of each row, 1 where the schema names no column of weights."""
    group: NDArray[np.int64]
    """Number of each row's group, -1 if its levels are not the schema's."""

    @classmethod
    def read(
        cls, data: Any, schema: Schema, names: Sequence[str], by: Sequence[str] = (), *, weigh: bool = False
    ) -> RawNumbers:
        """Read RawNumbers: numbers of the columns `names`, and groups made by the columns `by`, of `data`, in one pass.

        With `weigh`, as for real rows, a row counts as its weight if the schema names their column. Of `EncodedRows`
        the numbers are those within the schema's bounds, as they were read so.
        """
        if isinstance(data, EncodedRows):
            weights = np.ones(data.rows) if data.weights is None else data.weights
            return cls({name: data.numbers[name] for name in names}, weights, group_numbers(data, by))
        from stratsynth.data.sources import open_source
        from stratsynth.schema import values
        from stratsynth.schema.encoding import row_weights

        told = schema.row_weight.column if weigh else None
        table = open_source(data).read(tuple(dict.fromkeys((*names, *by, *([] if told is None else [told])))))
        whole = None if told is None else row_weights(schema.row_weight, table)
        found = {}
        for name in names:
            column = schema.column(name)
            assert isinstance(column, Numeric)  # noqa: S101 - as they were chosen
            found[name], _ = values.floats(column, table.column(name))
        rows = table.num_rows
        return cls(found, np.ones(rows) if whole is None else whole, _groups(table, schema, by, rows))

    def of_group(self, name: str, group: int | None = None) -> Weighed:
        """Return two arrays, known numbers of column `name` and weights, in the group of this number, None for all.

        Weights are all positive.
        """
        there = ~np.isnan(self.numbers[name]) & (self.weights > 0)
        if group is not None:
            there &= self.group == group
        return self.numbers[name][there], self.weights[there]

    def by_group(self, name: str, groups: int) -> list[Weighed]:
        """Return a list of pairs of arrays (numbers, weights), one a group, as `of_group` of column `name` gives them.

        They are found by one sorting; `groups` is the number of groups.
        """
        there = np.flatnonzero(~np.isnan(self.numbers[name]) & (self.weights > 0) & (self.group >= 0))
        order = there[np.argsort(self.group[there], kind="stable")]
        ends = np.searchsorted(self.group[order], np.arange(groups + 1))
        return [(self.numbers[name][order[a:b]], self.weights[order[a:b]]) for a, b in pairwise(ends)]

    def mass(self, groups: int) -> tuple[Array, float]:
        """Return (array of the weight of all rows in each group, everybody's), of rows with numbers or without.

        `groups` is the number of groups. Rows of no known group count for everybody.
        """
        inside = self.group >= 0
        found = np.bincount(self.group[inside], self.weights[inside], groups)
        return found[:groups], float(self.weights.sum())


def _groups(table: Any, schema: Schema, by: Sequence[str], rows: int) -> NDArray[np.int64]:
    """Array of group numbers, one for each of the `rows` rows of an Arrow `table`; -1 if unknown.

    Groups cross the columns `by`, whose levels are those of the `schema`.
    """
    from stratsynth.schema.columns import Categorical
    from stratsynth.schema.encoding import encode_categorical, encode_numeric

    group, known = np.zeros(rows, np.int64), np.ones(rows, bool)
    for name in by:
        column = schema.column(name)
        data = table.column(name)
        codes = (encode_categorical(column, data) if isinstance(column, Categorical) else encode_numeric(column, data))[
            0
        ]
        known &= codes >= 0
        group = group * schema.size(name) + codes
    return np.where(known, group, -1)


def mean(numbers: Array, weights: Array) -> float:
    """Return the mean of an array of numbers, by the array of their `weights`; NaN of none."""
    return float(np.average(numbers, weights=weights)) if len(numbers) else np.nan


def quantiles(numbers: Array, weights: Array, hundredths: Sequence[int]) -> list[float]:
    """Return a list of weighted quantiles of `numbers`, one for each of `hundredths`: least number with that share.

    That is the share of numbers up to it; `numbers` and `weights` are arrays alike. Each is NaN if there are no
    numbers.
    """
    if not len(numbers):
        return [np.nan] * len(hundredths)
    order = np.argsort(numbers, kind="stable")
    below = np.cumsum(weights[order], dtype=float)
    # whole weights times whole hundredths are exact; shrunk by a hair, other weights' rounding moves no place
    places = np.searchsorted(100 * below, np.array(hundredths) * below[-1] * (1 - 1e-12))
    return [float(number) for number in numbers[order][places.clip(max=len(numbers) - 1)]]


def standard_error(numbers: Array, weights: Array) -> float:
    """Return the standard error of the mean of an array of `numbers`, by the array `weights`; NaN of fewer than 2.

    They are of rows drawn at random.
    """
    if len(numbers) < 2:
        return np.nan
    apart = weights * (numbers - mean(numbers, weights))
    return float(np.sqrt((apart**2).sum()) / weights.sum())


def share_above(numbers: Array, weights: Array, threshold: float) -> float:
    """Return the share of the array `numbers`' weight that lies above a threshold, itself excluded; NaN of no numbers.

    `weights` is an array of one a number.
    """
    return float(weights[numbers > threshold].sum() / weights.sum()) if len(numbers) else np.nan
