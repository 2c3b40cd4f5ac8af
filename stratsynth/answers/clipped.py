"""Clipped sums of numeric columns, as a release publishes them by stratum.

A sum adds up min(x, clip) - centre over the rows of a stratum, or of everybody, that have a number x; the clip is the
column's own. With N such rows, S + centre N is the sum of min(x, clip). Noise of S and of N is independent.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stratsynth.schema import Numeric

if TYPE_CHECKING:
    import pyarrow as pa

    from stratsynth.schema import Schema

NEAR = 1e-9
"""Largest relative difference of two ends that are the same, as a sum's settings are rounded."""


@dataclass(frozen=True)
class ClippedSum:
    """One noisy sum of a column's numbers, each less the centre and cut off at the column's clip."""

    stratum: str
    """Label of the stratum in the measurements; empty for everybody."""
    column: str
    centre: float
    value: float
    """Noisy sum, in the unit of the column."""
    variance: float
    """Variance of its noise, in that unit squared."""


def clipped_sums(schema: Schema, measurements: pa.Table) -> tuple[ClippedSum, ...]:
    """Return the measured sums of columns that declare a clip, where that is the clip which the sum was taken with."""
    if "sum" not in measurements.column_names:
        return ()
    found = []
    names = ("stratum", "cell", "value", "sigma", "grid", "sum")
    told: dict[str, tuple[str, float, float] | None] = {}
    for stratum, cell, value, sigma, grid, of in zip(
        *(measurements.column(name).to_pylist() for name in names), strict=True
    ):
        if of not in told:
            told[of] = _taken(schema, of)
        taken = told[of]
        if taken is not None and cell == 0:
            column, centre, scale = taken
            found.append(ClippedSum(stratum, column, centre, value * grid * scale, (sigma * grid * scale) ** 2))
    return tuple(found)


def _taken(schema: Schema, of: str) -> tuple[str, float, float] | None:
    """Return column, centre and scale of a sum from its description; None for one that is no sum up to a clip."""
    said: dict[str, Any] = json.loads(of) if of else {}
    if said.get("sum") != "columns" or said.get("square") or len(said.get("columns", ())) != 1:
        return None
    (name,), (centre,), (scale,) = said["columns"], said["centre"], said["scale"]
    column, radius = schema.columns.get(name), said["clip"] * scale
    if not isinstance(column, Numeric) or column.clip is None or (column.transform and not said.get("raw")):
        return None
    whole = math.isclose(centre + radius, column.clip, rel_tol=NEAR, abs_tol=NEAR * radius)
    return (name, centre, scale) if whole and centre - radius <= column.lower + NEAR * radius else None
