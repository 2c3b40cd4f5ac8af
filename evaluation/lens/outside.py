"""INTERNAL. Rows as in their file, with a code of their own for values that the schema clips, recodes or leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stratsynth.data.sources import open_source
from stratsynth.evaluation.tables import EncodedRows
from stratsynth.schema import Categorical, Numeric, Schema, values
from stratsynth.schema.encoding import encode_categorical, encode_numeric
from stratsynth.schema.text import MISSING

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_written(data: Any, schema: Schema) -> EncodedRows:
    """Read all rows of `data`, none left out, as EncodedRows; a value outside the schema has the next free code.

    That is its column's number of levels. Outside are numbers beyond their bounds, values that are no level, and nulls
    if nothing may be missing. An empty value that the schema treats as missing is missing, and not outside.
    """
    source = open_source(data).read(schema.names)
    codes = {name: _codes(column, source.column(name)) for name, column in schema.columns.items()}
    return EncodedRows(schema, codes, {}, source.num_rows)


def _codes(column: Categorical | Numeric, data: pa.ChunkedArray) -> NDArray[np.int64]:
    """Array of level numbers of the Arrow column `data`; the number of the column's levels for values outside."""
    if isinstance(column, Categorical):
        found = encode_categorical(column, data)[0].astype(np.int64)
        outside = values.codes(column, data) < 0
        if column.outside == MISSING:
            outside &= ~_nothing(data)
    else:
        coded, *_ = encode_numeric(column, data)
        found = coded.astype(np.int64)
        numbers, _ = values.floats(column, data)
        outside = (found < 0) | (numbers < column.lower) | (numbers > column.upper)  # comparisons with NaN are false
    found[outside] = column.size
    return found


def _nothing(data: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Mask of the entries of the Arrow column `data` that are null, NaN or an empty text."""
    null = pc.is_null(data, nan_is_null=pa.types.is_floating(data.type))
    if pa.types.is_string(data.type) or pa.types.is_large_string(data.type):
        null = pc.or_kleene(null, pc.equal(pc.utf8_trim_whitespace(data), "")).fill_null(True)
    return np.asarray(null)
