"""Clipped sums of numeric columns, as a release publishes them by stratum.

A sum adds up min(x, clip) - centre over the rows of a stratum, or of everybody, that have a number x; the clip is the
column's own. With N such rows, S + centre N is the sum of min(x, clip). Noise of S and of N is independent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stratsynth.errors import ReleaseError
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
    noise_sd: float
    """Standard deviation of its noise, in that unit."""


def clipped_sums(schema: Schema, measurements: pa.Table) -> tuple[ClippedSum, ...]:
    """Return a tuple of `ClippedSum`: noisy sums in Arrow `measurements` of columns for which the schema has a clip.

    Those taken with another clip are left out; ReleaseError for damaged ones.
    """
    if "sum" not in measurements.column_names:
        return ()
    try:
        described = measurements.column("sum").unique().to_pylist()
        taken = {of: known for of in described if (known := _clip_described(schema, of)) is not None}
        return tuple(_read(measurements, taken)) if taken else ()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, ArithmeticError) as error:
        raise ReleaseError(f"the release's measurements are damaged: a sum ({type(error).__name__}).") from None


def _read(measurements: pa.Table, taken: Mapping[str, tuple[str, float, float]]) -> Iterator[ClippedSum]:
    """Yield a `ClippedSum` for each noisy sum in Arrow `measurements` whose description is a key of the dict `taken`.

    Its values are (column, centre, scale). ReleaseError for unsound noise.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pc.is_in(measurements.column("sum").cast(pa.string()), value_set=pa.array(list(taken), pa.string()))
    rows = measurements.filter(wanted).to_pylist()
    for row in rows:
        column, centre, scale = taken[row["sum"]]
        unit = row["grid"] * scale
        if not 0 < row["sigma"] * unit < math.inf:
            raise ReleaseError("the release's measurements are damaged: the noise of a sum is no positive number.")
        yield ClippedSum(row["stratum"], column, centre, row["value"] * unit, row["sigma"] * unit)


def _clip_described(schema: Schema, of: str) -> tuple[str, float, float] | None:
    """Return (column's name, centre, scale) of the sum that the JSON text `of` describes.

    None unless it is of one numeric column of the schema, up to its clip.
    """
    said: dict[str, Any] = json.loads(of) if of else {}
    if said.get("sum") != "columns" or said.get("square") or len(said.get("columns", ())) != 1:
        return None
    (name,), (centre,), (scale,) = said["columns"], said["centre"], said["scale"]
    column, radius = schema.columns.get(name), said["clip"] * scale
    if not isinstance(column, Numeric) or column.clip is None or (column.transform and not said.get("raw")):
        return None
    whole = math.isclose(centre + radius, column.clip, rel_tol=NEAR, abs_tol=NEAR * radius)
    return (name, centre, scale) if whole and centre - radius <= column.lower + NEAR * radius else None
