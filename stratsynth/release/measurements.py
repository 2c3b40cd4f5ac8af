"""Every noisy answer, as a table: the contingency tables are a product of their own, with known noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from stratsynth.strata import label

if TYPE_CHECKING:
    from stratsynth.driver.private import Measurement

COLUMNS = pa.schema([
    ("stratum", pa.dictionary(pa.int32(), pa.string())),
    ("question", pa.int32()),
    ("clique", pa.dictionary(pa.int32(), pa.string())),
    ("cell", pa.int64()),
    ("value", pa.int64()),
    ("sigma", pa.float64()),
])  # fmt: skip
"""Stratum (levels joined by `|`, empty for everybody), question, clique (columns joined by `,`), row-major cell."""


def measurements_table(measurements: Sequence[Measurement]) -> pa.Table:
    """One row a cell of every released table."""
    if not measurements:
        return COLUMNS.empty_table()
    sizes = np.array([m.table.values.size for m in measurements])
    number = np.repeat(np.arange(len(measurements)), sizes)

    def each(values: Sequence[object], kind: pa.DataType) -> pa.Array:
        return pa.array(values, type=kind).take(pa.array(number))

    def names(values: Sequence[str]) -> pa.Array:
        return pa.array(values).dictionary_encode().take(pa.array(number))

    return pa.table(
        {
            "stratum": names([label(m.path) for m in measurements]),
            "question": each([m.question for m in measurements], pa.int32()),
            "clique": names([",".join(m.table.clique) for m in measurements]),
            "cell": np.concatenate([np.arange(size) for size in sizes]),
            "value": np.concatenate([m.table.values.ravel() for m in measurements]),
            "sigma": each([m.table.sigma for m in measurements], pa.float64()),
        },
        schema=COLUMNS,
    )
