"""Encoding of rows by the schema: the codes of a row depend on that row and the schema alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stratsynth.errors import SchemaError
from stratsynth.schema import values
from stratsynth.schema.columns import Categorical, Numeric
from stratsynth.schema.nested import Nested
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.schema import Schema
from stratsynth.schema.text import MISSING
from stratsynth.schema.weight import RowWeight

Codes: TypeAlias = NDArray[np.int32]
NUMBER = 8
"""Bytes of a number, and of a weight."""


def check_source(schema: Schema, names: Iterable[str], types: pa.Schema | None) -> None:
    """Raise SchemaError if `names` lack a schema's column (unit, weight too), or `types` do not suit; None: unknown."""
    wanted = (*schema.names, *schema.beside)
    places = locate(wanted, names)
    if types is not None:
        for name, place in zip(wanted, places, strict=True):
            values.check_type(name, types.field(place).type)


def locate(wanted: Iterable[str], names: Iterable[str]) -> list[int]:
    """Return a list: the index of each `wanted` column among `names`; SchemaError if one is absent or duplicated.

    The message names what is wanted and none of `names`: those of a file without a header are its first record.
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    for name in wanted:
        found = len(places.get(name, ()))
        if found != 1:
            how = "more than once" if found else "nowhere"
            hint = "`stratsynth schema check` shows the header"
            raise SchemaError(f"column {name} must be in the data once, and is there {how}; {hint}")
    return [places[name][0] for name in wanted]


def encode(schema: Schema, data: pa.Table, numbers: Sequence[str] = (), *, weigh: bool = False) -> CodedRows:
    """Return the `CodedRows` of the Arrow table `data`, without rows whose values the schema neither knows nor admits.

    `numbers` are names of numeric columns (SchemaError for others) whose clipped values are returned as well; with
    `weigh`, so are the rows' weights if the schema names their column.
    """
    locate(schema.names, data.column_names)  # refuses a table that lacks a column, or has one twice
    for name in numbers:
        if not isinstance(schema.column(name), Numeric):
            raise SchemaError(f"column {name} is not numeric, so it has no numbers")
    for name in schema.names:
        values.check_type(name, data.column(name).type)
    kept = np.ones(data.num_rows, bool)
    codes: dict[str, NDArray[Any]] = {}
    reals: dict[str, NDArray[np.float64]] = {}
    weights = row_weights(schema.row_weight, data) if weigh else None
    each = np.ones(data.num_rows, np.int64) if weights is None else weights
    outside = [0]
    for name, column in schema.columns.items():
        if isinstance(column, Categorical):
            coded, strange = encode_categorical(column, data.column(name))
        else:
            coded, real, strange = encode_numeric(column, data.column(name))
            if name in numbers:
                reals[name] = real
        kept &= coded >= 0
        codes[name] = coded.astype(smallest(column.size))  # -1 wraps round, in rows that are dropped below
        outside.append(each[strange].sum())
    outside[0] = each[kept].sum()
    rows = CodedRows(schema, codes, reals, data.num_rows, weights)
    return replace(rows if kept.all() else rows.take(kept), outside=np.array(outside, np.int64))


def row_weights(weight: RowWeight, data: pa.Table) -> NDArray[np.int64] | None:
    """Return each row's weight in `data`, by its own value alone: an int from 0 to the largest; None without any.

    Halves are rounded to even; a value that is no finite number counts as the schema's `missing`.
    """
    if weight.column is None:
        return None
    values.check_type(weight.column, data.column(weight.column).type)
    plain = Numeric(lower=0, upper=weight.most, bins=1)
    reals, _ = values.floats(plain, data.column(weight.column))
    whole = np.clip(np.rint(reals), 0, weight.most)
    return np.where(np.isnan(whole), weight.missing, whole).astype(np.int64)


def encode_categorical(column: Categorical, data: pa.ChunkedArray) -> tuple[Codes, NDArray[np.bool_]]:
    """Return arrays (int: code, -1 if left out; bool: a value not listed), by row of a categorical column's `data`."""
    if isinstance(column, Nested):
        codes, strange = encode_categorical(column.single, data)
        return np.array([*column.places, -1], np.int32)[codes], strange
    codes = values.codes(column, data)
    if column.outside is not None:
        strange = codes < 0
        codes[strange] = column.codes[column.outside]
        return codes, strange
    if column.not_applicable is not None:  # as for numbers: files say so by leaving the field empty
        null = np.asarray(pc.is_null(data, nan_is_null=pa.types.is_floating(data.type)))
        codes[null] = column.codes[column.not_applicable]
    return codes, codes < 0


def encode_numeric(column: Numeric, data: pa.ChunkedArray) -> tuple[Codes, NDArray[np.float64], NDArray[np.bool_]]:
    """Return arrays (int: code, -1 if left out; clipped number; bool: no level) by row of a numeric column's `data`."""
    reals, own = values.floats(column, data)
    if column.outside == MISSING:
        reals[(reals < column.lower) | (reals > column.upper)] = np.nan
    np.clip(reals, column.lower, column.upper, out=reals)
    codes = np.searchsorted(np.asarray(column.breaks, float), reals, side="right").astype(np.int32) - 1
    np.minimum(codes, len(column.extents) - 1, out=codes)  # the last bin is closed
    strange = np.isnan(reals)
    codes[strange] = column.codes[MISSING] if column.missing else -1
    if column.not_applicable is not None and not column.missing:
        # a typed column has no other way to say that a number does not apply
        null = np.asarray(pc.is_null(data, nan_is_null=pa.types.is_floating(data.type)))
        codes[null] = column.codes[column.not_applicable]
        strange &= ~null
    codes[own >= 0] = len(column.extents) + own[own >= 0]
    return codes, reals, strange & (own < 0)


def smallest(size: int) -> np.dtype[Any]:
    """Return the smallest unsigned numpy type that holds the codes 0 to `size` - 1."""
    return np.min_scalar_type(size - 1)


def width(schema: Schema, *, numbers: bool = True) -> int:
    """Return the bytes of a coded row of a schema: codes, weight; with `numbers`, floats of numeric columns too."""
    columns, weight = schema.columns.values(), 0 if schema.row_weight.column is None else NUMBER
    real = sum(isinstance(column, Numeric) for column in columns) if numbers else 0
    return sum(smallest(column.size).itemsize for column in columns) + NUMBER * real + weight
