"""Decoding of codes into rows, by the schema and a generator: every code is drawn from a model.

Encoding of rows is in `stratsynth.schema.encoding`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from stratsynth.errors import SchemaError, Unsupported
from stratsynth.schema import typed
from stratsynth.schema.bins import EVEN, SMOOTH
from stratsynth.schema.columns import Categorical, Column, Numeric
from stratsynth.schema.inside import Inside, declared, numbers
from stratsynth.schema.multiples import heaped
from stratsynth.schema.nested import Nested
from stratsynth.schema.schema import Schema
from stratsynth.schema.smooth import places
from stratsynth.schema.temporal import UNITS, Temporal
from stratsynth.schema.text import INFINITE, meaning


def decode(
    schema: Schema,
    codes: Mapping[str, ArrayLike],
    rng: Generator,
    inside: Mapping[str, Inside] | None = None,
    exact: Mapping[str, NDArray[Any]] | None = None,
) -> pa.Table:
    """Return an Arrow table of values for the codes, with the columns, order, types and labels of the schema.

    Numbers are drawn within their bin and the bounds, by the column's law. Missing becomes null, unless it is one of
    the levels that the schema itself lists.

    Args:
        schema: The columns.
        codes: Array of each row's level number, by column; SchemaError for a column without, or numbers out of range.
        rng: Source of the numbers within bins.
        inside: `Inside` laws of numbers within bins, by column; of others, or if None, the schema's own.
        exact: Arrays by numeric column whose numbers are drawn already, in the bins of their codes; whole where it is.
    """
    laws = {} if inside is None else inside
    arrays, fields = [], []
    for name, column in schema.columns.items():
        if name not in codes:
            raise SchemaError(f"there are no codes for column {name}")
        coded = np.asarray(codes[name])
        if coded.size and not 0 <= coded.min() <= coded.max() < column.size:
            raise SchemaError(f"codes of column {name} must lie from 0 to {column.size - 1}")
        coded = coded.astype(np.int64)
        array = (
            _categories(column, coded, rng)
            if isinstance(column, Categorical)
            else _draw(column, coded, rng, laws.get(name) or declared(column), (exact or {}).get(name))
        )
        arrays.append(array)
        labels = {b"labels": json.dumps(dict(column.labels)).encode()} if column.labels else None
        fields.append(pa.field(name, array.type, nullable=_has_null(column), metadata=labels))
    return pa.table(arrays, schema=pa.schema(fields))


def to_frame(schema: Schema, table: pa.Table) -> Any:
    """Return `table`, Arrow rows of a schema, as a pandas or polars frame, as its `frame` says, in its declared types.

    Raises:
        Unsupported: A polars frame where polars is not installed.
    """
    if schema.frame == typed.POLARS:
        try:
            return import_module("polars").from_arrow(table)
        except ImportError:
            raise Unsupported(
                'the schema has frame = "polars", and polars is not installed; sample_arrow gives an Arrow table.'
            ) from None
    found = to_pandas(table)
    for name in (name for name, column in schema.columns.items() if column.stored == typed.MIXED):
        values = [_mixed(text) if isinstance(text, str) else text for text in found[name]]
        found[name] = pd.Series(values, dtype=object)  # whatever was drawn
    return found.set_axis([int(name) for name in found.columns], axis=1) if schema.frame == typed.NUMBERED else found


def _mixed(text: str) -> str | int | float | bool:
    """Return the number or truth value that a text of a mixed column spells; a text that spells none unchanged."""
    exact = meaning(text)
    if exact is None:
        return text
    if text.strip().isalpha():
        return bool(exact)
    return int(exact) if exact == exact.to_integral_value() else float(exact)


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Return the Arrow `table` as a pandas frame without loss.

    Text becomes pandas' own strings, whose null is NaN, as scikit-learn wants it; dictionaries become categories with
    all their levels, and whole numbers and truth values that may be null become "Int64" and "boolean". The schema, not
    the rows, decides if they may be null, so that frames of one schema have equal types.
    """
    return pd.DataFrame({field.name: _series(table.column(field.name), field) for field in table.schema})


_TEXT = pd.StringDtype(na_value=np.nan)
_NULLABLE: dict[pa.DataType, Any] = {
    pa.bool_(): pd.BooleanDtype(),
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
}
"""Types of pandas for whole numbers and truth values that may be null."""


def _series(data: pa.ChunkedArray, field: pa.Field) -> pd.Series[Any]:
    """Return an Arrow column as a pandas Series: text as pandas' own; if `field` is nullable, "Int64" and "boolean"."""
    kinds: dict[pa.DataType, Any] = dict.fromkeys((pa.string(), pa.large_string()), _TEXT)
    if field.nullable:
        kinds |= _NULLABLE
    series: pd.Series[Any] = data.to_pandas(types_mapper=kinds.get)
    return series


def _categories(column: Categorical, codes: NDArray[np.int64], rng: Generator) -> pa.Array:
    """Return an Arrow array, one entry a row: text or typed value of each of a categorical column's `codes`.

    Of a group of codes, one is drawn by `rng`.
    """
    if isinstance(column, Nested):
        return _categories(column.single, _codes_within(column, codes, rng), rng)
    kind = _ARROW[column.dtype] if column.stored is None else arrow_type(column)
    if column.dtype == "category":
        null = codes >= len(column.levels)  # "missing", where the schema added it
        levels = pa.array(column.values[: len(column.levels)], kind)
        return pa.DictionaryArray.from_arrays(
            pa.array(codes.astype(np.int32), mask=null), levels, ordered=column.ordered
        )
    return pa.array(column.values, kind).take(pa.array(codes))


def arrow_type(column: Column) -> pa.DataType:
    """Return the Arrow type of a column's values, of a category's levels: that of `stored`, or else of `dtype`."""
    if column.stored is None or column.stored == typed.MIXED:
        return _ARROW[str(column.dtype)]
    name, *parts = typed.parts_of(column.stored)
    if name == "decimal128":
        return pa.decimal128(*map(int, parts))
    return pa.timestamp(parts[0], parts[1] or None) if name == "timestamp" else getattr(pa, name)(*parts[:1])


def _codes_within(column: Nested, codes: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
    """Return an array, by row: for each of a `Nested` column's `codes`, a code of `column.single` drawn by `rng`."""
    places, within = np.array(column.places), np.array(column.within)
    found = np.empty(len(codes), np.int64)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(column.size + 1))
    for level, (first, last) in enumerate(pairwise(ends)):
        if first < last:
            own = np.flatnonzero(places == level)
            found[order[first:last]] = rng.choice(own, size=last - first, p=within[own]) if len(own) > 1 else own[0]
    return found


def _draw(
    column: Numeric, codes: NDArray[np.int64], rng: Generator, inside: Inside, exact: NDArray[Any] | None
) -> pa.Array:
    """Return an Arrow array, by row: numbers of a numeric column in the bins of `codes`, by `rng` and the law `inside`.

    Special codes become their word or number, all other codes null. `exact`, None or an array by row, are the numbers
    where they are drawn already.
    """
    bins, words = len(column.extents), column.words
    real = codes < bins
    drawn = numbers_in_bins(column, codes, rng, inside) if exact is None else exact
    if column.dtype != "string":
        for i, word in enumerate(column.special):
            if (value := _special(column, word)) is not None:
                here = codes == bins + i
                drawn = drawn.astype(np.float64) if math.isinf(value) else drawn
                drawn[here] = value  # whole where the column is, or infinite
                real |= here
        return _typed(column, drawn, real)
    texts = _typed(column, drawn, real).cast(pa.string())
    if not words:
        return texts
    place = codes - bins
    spelt = pa.array(words, pa.string()).take(pa.array(np.clip(place, 0, len(words) - 1)))
    return pc.if_else(pa.array((place >= 0) & (place < len(words))), spelt, texts)


def _typed(column: Numeric, drawn: NDArray[Any], real: NDArray[np.bool_]) -> pa.Array:
    """Return the array `drawn` as an Arrow array of a numeric column's type (no texts), null outside mask `real`."""
    if not isinstance(column, Temporal):
        if column.stored == "float32":
            drawn = _narrow(column, drawn)
        plain = pa.array(drawn, mask=~real)
        return plain if column.dtype == "string" else plain.cast(arrow_type(column))
    step, seconds = UNITS[column.unit], UNITS["second"]
    fine = max(seconds // step, 1)  # the unit of the type is a second, or the column's own where that is finer
    unit = {1: "s", 1_000: "ms", 1_000_000: "us"}[fine]
    counts = drawn.astype(np.int64) * max(step // seconds, 1)
    if column.kind == "time":
        narrow = pa.time64(unit) if unit == "us" else pa.time32(unit)
        times = pa.array(counts.astype(np.int32 if unit != "us" else np.int64), mask=~real).cast(narrow)
        return times.cast(arrow_type(column)) if column.stored else times
    whole = pa.array(counts, mask=~real)
    if column.kind == "duration" and column.dtype == "string":
        return pc.divide(whole.cast(pa.float64()), fine)
    moments = whole.cast(pa.duration(unit) if column.kind == "duration" else pa.timestamp(unit))
    if column.stored:
        return moments.cast(arrow_type(column))
    day = column.dtype == "date" or (column.dtype == "string" and column.unit == "day")
    return moments.cast(pa.date32()) if day else moments


def _special(column: Numeric, word: str) -> float | None:
    """Return the number that a numeric column's special code `word` becomes in a column of numbers; None if null."""
    found = column.quantity(word)
    return INFINITE.get(word) if found is None and column.dtype == "float64" else found


def _narrow(column: Numeric, drawn: NDArray[Any]) -> NDArray[np.float32]:
    """Return the array `drawn` as float32, each in its bin of a numeric column: one rounded out of it is moved back."""
    found: NDArray[np.float32] = drawn.astype(np.float32)
    inside = (drawn >= column.lower) & (drawn <= column.upper)
    place = np.clip(np.searchsorted(np.asarray(column.breaks, float), drawn, side="right") - 1, 0, None)
    low, top = np.asarray(column.extents, np.float64)[np.minimum(place, len(column.extents) - 1)].T
    down = np.where(inside & (found > top), np.nextafter(found, np.float32(-np.inf)), found)
    return np.where(inside & (down < low), np.nextafter(down, np.float32(np.inf)), down)


def numbers_in_bins(column: Numeric, codes: NDArray[np.int64], rng: Generator, inside: Inside) -> NDArray[Any]:
    """Return an array, by row: a number in the bin of each of a numeric column's `codes`, drawn by `rng` and `inside`.

    Codes of no bin get any number.
    """
    bins = np.minimum(codes, len(column.extents) - 1)
    low, top = np.asarray(column.extents, np.float64)[bins].T
    if column.integer and column.shape == EVEN and not column.round and inside.density is None and inside.heaps is None:
        return np.asarray(rng.integers(low.astype(np.int64), top.astype(np.int64), endpoint=True))
    curved = column.shape == SMOOTH and inside.density is None
    share = places(column, codes, rng) if curved else rng.random(len(codes))
    drawn = numbers(column, bins, share, inside)
    if inside.heaps is not None:
        steps = np.cumsum(inside.heaps, axis=1)[bins]
        drawn = heaped(column, drawn, low, top, (rng.random(len(codes)) * steps[:, -1:].T >= steps.T).sum(axis=0))
    if column.digits is not None:
        return _rounded(drawn, low, top, 10.0**column.digits)
    return np.asarray(drawn, np.int64 if column.integer else np.float64)


def _rounded(
    drawn: NDArray[Any], low: NDArray[np.float64], top: NDArray[np.float64], scale: float
) -> NDArray[np.float64]:
    """Return the array `drawn` cut to multiples of 1 / `scale`, each from `low` to `top` (arrays); others stay."""
    with np.errstate(over="ignore", invalid="ignore"):  # numbers too large to have decimals stay as they are
        least, most = np.ceil(low * scale - 1e-6), np.floor(top * scale + 1e-6)
        most = np.where(most / scale > top, most - 1, most)  # the end of a bin belongs to the next one
        found = np.clip(np.floor(drawn * scale), least, most) / scale
        return np.where((least <= most) & (low <= found) & (found <= top), found + 0.0, drawn)


def _has_null(column: Column) -> bool:
    """True if some level of the column, such as "missing", is written as null in synthetic tables."""
    if isinstance(column, Nested):
        return None in column.single.values
    if isinstance(column, Categorical):
        return None in column.values
    if column.dtype == "string":
        return column.missing
    return (
        column.missing or any(_special(column, word) is None for word in column.special) or bool(column.not_applicable)
    )


_ARROW = {
    "string": pa.string(),
    "category": pa.string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
}
