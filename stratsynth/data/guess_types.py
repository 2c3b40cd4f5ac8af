"""INTERNAL: exact types of the columns of private rows, which a draft writes down so that a review can declare them.

A fit never looks at them: synthetic values have the types of the schema, whatever one row does to a frame's own.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from stratsynth.data.frames import to_arrow
from stratsynth.data.in_memory import FrameSource
from stratsynth.errors import SchemaError
from stratsynth.schema import typed, values
from stratsynth.schema.columns import Categorical, Column, Numeric
from stratsynth.schema.temporal import Temporal
from stratsynth.schema.text import INFINITE, meaning
from stratsynth.schema.typed import figure

if TYPE_CHECKING:
    from stratsynth.data.sources import Source

NUMBERS = (int, float, bool, np.number, np.bool_)


def frame_kind(data: Any, source: Source) -> str:
    """Return the text of a schema's `frame` for `data`: its library, or that numbers name its columns.

    `source` is opened on them.
    """
    if type(data).__module__.partition(".")[0] == typed.POLARS:
        return typed.POLARS
    names = source.frame.columns if isinstance(source, FrameSource) else ()
    whole = bool(len(names)) and all(
        isinstance(name, (int, np.integer)) and not isinstance(name, bool) for name in names
    )
    return typed.NUMBERED if whole else typed.PANDAS


def unreadable(source: Source) -> dict[str, str]:
    """Return a mapping from column of `source` to the reason that it cannot be read: its type, or its objects.

    Columns that can be read are absent; SchemaError for a frame whose columns have names of several levels.
    """
    found: dict[str, str] = {}
    for field in source.types() or ():
        try:
            values.check_type(field.name, field.type)
        except SchemaError as error:
            found[field.name] = str(error).removeprefix(f"column {field.name} ").replace("has type", "its type is")
    frame = source.frame if isinstance(source, FrameSource) else None
    if frame is None:
        return found
    if frame.columns.nlevels > 1:
        raise SchemaError(
            "the frame's columns have names of several levels; give each one name first: "
            'frame.columns = ["_".join(map(str, name)) for name in frame.columns]'
        )
    for place, name in enumerate(frame.columns):
        series: pd.Series[Any] = frame.iloc[:, place]
        kinds = {type(value).__name__ for value in series.dropna()} if series.dtype == object else set()
        if str(name) not in found and kinds and pa.array(to_arrow(series)).null_count == len(series):
            listed = ", ".join(sorted(kinds)[:3])
            found[str(name)] = f"its values are of class {listed}; it must hold text, numbers, truth values or dates"
    return found


def exact_types(source: Source) -> dict[str, pa.DataType | str]:
    """Return a mapping from column of a source to its Arrow type as stored, or "mixed"; untyped ones are absent."""
    if isinstance(source, FrameSource):
        found = ((str(name), _exact(source.frame.iloc[:, i])) for i, name in enumerate(source.frame.columns))
        return {name: kind for name, kind in found if kind is not None}
    return {} if (types := source.types()) is None else {field.name: field.type for field in types}


def _exact(series: pd.Series[Any]) -> pa.DataType | str | None:
    """Return the Arrow type of a pandas `series`, "mixed" for numbers among texts; None for texts and the like."""
    kind: Any = series.dtype
    if isinstance(kind, pd.CategoricalDtype):
        inner = _exact(kind.categories.to_series())
        return None if inner is None or isinstance(inner, str) else pa.dictionary(pa.int32(), inner)
    if isinstance(kind, pd.ArrowDtype):
        return kind.pyarrow_dtype
    if isinstance(kind, pd.DatetimeTZDtype):
        return pa.Array.from_pandas(series.iloc[:0]).type
    if isinstance(kind, np.dtype) and kind.kind == "O":
        return _objects(series.dropna().tolist())
    plain = kind if isinstance(kind, np.dtype) else getattr(kind, "numpy_dtype", None)
    return pa.from_numpy_dtype(plain) if plain is not None and plain.kind in "biufMm" else None


def _objects(values: list[Any]) -> pa.DataType | str | None:
    """Return a decimal type if all in the list `values` are decimals, "mixed" for numbers among wordy texts.

    Else None.
    """
    if values and all(type(value) is Decimal and value.is_finite() for value in values):
        scale = max(max(-int(value.as_tuple().exponent), 0) for value in values)
        return pa.decimal128(38, scale) if scale <= 38 else None
    texts = [value for value in values if isinstance(value, str)]
    mixed = 0 < len(texts) < len(values) and all(isinstance(value, (str, *NUMBERS)) for value in values)
    return typed.MIXED if mixed and not any(meaning(text) is not None for text in texts) else None


def with_type(column: Column, kind: pa.DataType | str | None) -> Column:
    """Return a schema's column with `stored`, by its rows' exact type `kind`, if `dtype` leaves that open."""
    stored = _stored(column, kind)
    if stored is None:
        return column
    try:
        if stored.startswith("decimal") and isinstance(column, Numeric) and not column.integer:
            scale = int(typed.parts_of(stored)[2])
            return replace(column, stored=stored, digits=min(scale, 9) if column.digits is None else column.digits)
        if stored == "float32" and isinstance(column, Categorical):
            numbers = pa.array([figure(level) for level in column.levels], pa.float64()).cast(pa.float32(), safe=False)
            spelt = zip(column.levels, numbers.cast(pa.string()).to_pylist(), strict=True)
            levels = tuple(level if level in INFINITE else text for level, text in spelt)
            return replace(column, stored=stored, levels=levels)
        return replace(column, stored=stored)
    except SchemaError:  # bounds rounded outward beyond what the type holds
        return _within(column, stored)


def _within(column: Column, stored: str) -> Column:
    """Return a schema's column with this `stored` and bounds within what it holds; unchanged if that is impossible."""
    if not isinstance(column, Numeric) or isinstance(column, Temporal) or not column.integer or "int" not in stored:
        return column
    low, high = typed.span(stored)
    try:
        return replace(column, stored=stored, lower=max(column.lower, low), upper=min(column.upper, high))
    except SchemaError:
        return column


def _stored(column: Column, kind: pa.DataType | str | None) -> str | None:
    """Return the text `stored` of a schema's column whose rows have the Arrow type `kind`, or "mixed".

    None where its dtype says enough.
    """
    if isinstance(kind, str) or kind is None:
        return kind if column.dtype == "string" and kind == typed.MIXED else None
    if column.dtype == "category":
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or kind in {pa.float32(), pa.float64()}
        return _name(kind) if plain else None
    if isinstance(column, Temporal):
        return _time(column, kind)
    if column.dtype == "int64" and pa.types.is_integer(kind):
        return None if kind == pa.int64() else _name(kind)
    if column.dtype == "float64" and isinstance(column, (Numeric, Categorical)):
        exact = f"decimal128({kind.precision}, {kind.scale})" if pa.types.is_decimal128(kind) else None
        return "float32" if kind == pa.float32() else exact
    return None


def _name(kind: pa.DataType) -> str:
    """Return the text that `stored` has for an Arrow type `kind` of plain values; Arrow calls float32 float."""
    return {"float": "float32", "double": "float64"}.get(str(kind), str(kind))


def _time(column: Temporal, kind: pa.DataType) -> str | None:
    """Return the text `stored` of a temporal column of times by their Arrow type `kind`.

    None if it has no zone and the usual unit.
    """
    fits = {"datetime": pa.types.is_timestamp, "duration": pa.types.is_duration, "time": pa.types.is_time}
    if column.dtype not in fits or not fits[str(column.dtype)](kind):
        return None
    usual = {"millisecond": "ms", "microsecond": "us"}.get(column.unit, "s")
    return None if kind.unit == usual and getattr(kind, "tz", None) is None else str(kind)
