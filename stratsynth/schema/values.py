"""Single values of an Arrow column, read as text or as numbers.

Each function works on the distinct values of a slice and maps the results to its rows: a row's result
is a function of that row's value alone, and each distinct value is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stratsynth.errors import SchemaError
from stratsynth.schema.columns import Categorical, Numeric
from stratsynth.schema.temporal import Temporal
from stratsynth.schema.text import INFINITE, MAX_TEXT, meaning, number, truth

Array: TypeAlias = NDArray[Any]

SLICE = 1 << 18
"""Rows per slice: enough to be fast, few enough that texts of any length fit in memory."""

MAX_BYTES = 4 * MAX_TEXT
"""Largest length of a value in bytes; longer ones are unreadable, no level and no number."""

_EXACT = 2**53
"""Bound below which whole numbers are exact as 64-bit floats."""

_BYTES = {pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()}

# The everyday spelling of a number, short enough that it cannot overflow: Arrow reads it as `number` does.
_PLAIN = r"^-?[0-9]{1,15}(\.[0-9]{1,30})?$"


def check_type(name: str, kind: pa.DataType) -> None:
    """Raise SchemaError, naming the column `name`, if its Arrow type `kind` does not hold single values, as text."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    readable = (
        pa.types.is_null(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_decimal256(kind)
        or _is_bytes(kind)
        or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
    )
    if not readable:
        said = kind.type_name if isinstance(kind, pa.OpaqueType) else str(kind).split("<")[0]  # no names of parts
        raise SchemaError(f"column {name} has type {said}; it must hold text, numbers, truth values or dates")


def codes(column: Categorical, data: pa.ChunkedArray) -> NDArray[np.int32]:
    """Return an int32 array by row of `data`: index of the value in a categorical column's `levels`; -1 for others."""
    levels = pa.array(column.levels, pa.large_string())
    known: dict[object, int] = {}  # number or truth value -> code of the level that spells it, -1 if several do
    for code, value in enumerate(map(meaning, column.levels)):
        if value is not None:
            known[value] = -1 if value in known else code
    if column.stored == "float32" and pa.types.is_floating(data.type):
        data = data.cast(pa.float32(), safe=False)  # frames' reals have 64 bits, and the levels are spelt in 32

    def match(texts: pa.LargeStringArray) -> Array:
        found: Array = pc.index_in(texts, levels, skip_nulls=True).fill_null(-1).to_numpy().astype(np.int32)
        if known:
            for i in np.flatnonzero(found < 0):
                text = texts[i].as_py()
                found[i] = -1 if text is None else known.get(meaning(text), -1)
        return found

    return _spread(data, match, -1, np.dtype(np.int32))


def floats(column: Numeric, data: pa.ChunkedArray) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return arrays by row of numeric `data` (float64: finite or NaN; index of its text in `column.words`, or -1)."""
    kind, words = data.type, column.words
    plain = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if plain and not isinstance(column, Temporal):
        values, own = _to_float(data), np.full(len(data), -1, np.int32)
    else:
        read = partial(_moments, column) if isinstance(column, Temporal) else _numbers
        values, own = _spread(data, read, np.nan, np.dtype(np.float64)), np.full(len(data), -1, np.int32)
        if words:
            known = pa.array(words, pa.large_string())
            match = lambda texts: pc.index_in(texts, known, skip_nulls=True).fill_null(-1).to_numpy()  # noqa: E731
            own = _spread(data, match, -1, np.dtype(np.int32))
    for place, word in enumerate(words):
        if (value := INFINITE.get(word, column.quantity(word))) is not None:
            own[values == value] = place
    values[np.isinf(values)] = np.nan
    values[own >= 0] = np.nan
    return values, own


def identities(data: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return an int64 array, a number for each unit id of `data`, equal for ids equal as text or as numbers.

    "7", "7.0", " 7" and "07" are one unit. -1 for null, for empty text, for what is too long, and for numbers from
    2**53 that were stored or spelt as reals: their last digits are lost, so they tell nobody apart.
    """
    pieces = [hashable(c.dictionary_decode() if pa.types.is_dictionary(c.type) else c) for c in data.chunks]
    if not pieces:
        return np.empty(0, np.int64)
    whole = pa.chunked_array(pieces).combine_chunks().dictionary_encode()
    where = whole.indices.cast(pa.int64()).fill_null(len(whole.dictionary)).to_numpy()
    if pa.types.is_integer(whole.dictionary.type):
        units = np.arange(len(whole.dictionary))
    else:
        units = _units(as_texts(whole.dictionary)).dictionary_encode().indices.cast(pa.int64()).fill_null(-1).to_numpy()
    found: NDArray[np.int64] = np.append(units, -1)[where]
    return found


def _units(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return an array of texts, one for all spellings in `texts` of a number, else itself; null: identifies nobody."""
    texts = pc.if_else(pc.equal(pc.binary_length(texts), 0), None, texts)
    texts = pc.replace_substring_regex(texts, r"^[ \t]*\+?0*([1-9][0-9]{0,17})[ \t]*$", r"\1")
    plain = pc.match_substring_regex(texts, r"^-?[1-9][0-9]{0,17}$")
    spells = pc.match_substring_regex(texts, r"^[ \t]*([-+.0-9]|[tT][rR]|[fF][aA])")
    numbers = np.flatnonzero(pc.and_not(spells, plain).fill_null(False).to_numpy(zero_copy_only=False))
    if not len(numbers):
        return texts
    spelt = [_unit(text) for text in texts.take(pa.array(numbers)).to_pylist()]
    mask = np.zeros(len(texts), bool)
    mask[numbers] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(spelt, pa.large_string()))


def _unit(text: str) -> str | None:
    """Return one text for all spellings of the value of `text`, itself if it spells none; None if digits are lost."""
    found = meaning(text)
    if found is None:
        return text
    sign, digits, exponent = found.as_tuple()
    number = "".join(map(str, digits)).lstrip("0")
    kept = number.rstrip("0")
    zeros = int(exponent) + len(number) - len(kept)
    if not kept:
        return "0"
    if found.copy_abs() >= _EXACT and set(text) & set(".eE"):
        return None
    short = zeros >= 0 and len(kept) + zeros <= 18
    return "-" * sign + (kept + "0" * zeros if short else f"{kept}e{zeros}")


def spelling(data: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return a uint64 array by row of `data`: equal for equal texts or spellings of a number; null is all ones."""
    from pandas.util import hash_array

    parts = [np.empty(0, np.uint64)]
    for piece in distinct_values(data):
        distinct, kind = piece.dictionary, piece.dictionary.type
        direct = pa.types.is_integer(kind) or pa.types.is_float64(kind)
        numbers = _to_float(pa.chunked_array([distinct])) if direct else np.full(len(distinct), np.nan)
        numbers[(numbers != 0) & ~((np.abs(numbers) >= 1e-4) & (np.abs(numbers) < 1e15))] = np.nan  # spelt otherwise
        left = np.flatnonzero(np.isnan(numbers))
        texts = as_texts(distinct.take(pa.array(left)))
        plain = pc.if_else(pc.match_substring_regex(texts, _PLAIN), texts, None).cast(pa.float64())
        numbers[left] = plain.to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
        words = np.array(texts.fill_null("").to_pylist(), object)
        found, named = numbers.view(np.uint64), np.isnan(numbers[left]) & (words != "")
        found[np.isnan(numbers)] = ~np.uint64(0)
        found[left[named]] = hash_array(words[named], hash_key="spelling of text", categorize=False)
        parts.append(np.append(found, ~np.uint64(0))[piece.indices.cast(pa.int64()).fill_null(len(found)).to_numpy()])
    return np.concatenate(parts)


def _is_bytes(kind: pa.DataType) -> bool:
    return kind in _BYTES or pa.types.is_fixed_size_binary(kind)


def _to_float(data: pa.ChunkedArray) -> NDArray[np.float64]:
    if pa.types.is_boolean(data.type):
        data = data.cast(pa.uint8())
    data = data.cast(pa.float64(), safe=False)
    return np.asarray(data.to_numpy() + 0.0)  # -0.0 becomes 0.0; a copy, as Arrow's memory may be read-only


def _numbers(texts: pa.LargeStringArray) -> Array:
    plain = pc.match_substring_regex(texts, _PLAIN)
    values = np.array(pc.if_else(plain, texts, None).cast(pa.float64()).to_numpy(zero_copy_only=False)) + 0.0
    for i in np.flatnonzero(~plain.fill_null(True).to_numpy(zero_copy_only=False)):
        text = texts[i].as_py()
        value = number(text)
        values[i] = truth(text) if value is None else value
    return values


def _moments(column: Temporal, texts: pa.LargeStringArray) -> Array:
    """Return a float array: each of `texts` as whole units of a `Temporal` column since the epoch; NaN if none."""
    return np.array([None if text is None else column.quantity(text) for text in texts.to_pylist()], np.float64)


def _spread(
    data: pa.ChunkedArray,
    answer: Callable[[pa.LargeStringArray], Array],
    default: object,
    dtype: np.dtype[Any],
) -> Array:
    """Return an array of `dtype`: `answer`, a function of an array of texts, of those in `data`; `default` for null."""
    parts = [np.empty(0, dtype)]
    for distinct in distinct_values(data):
        answers = np.append(np.asarray(answer(as_texts(distinct.dictionary)), dtype), np.array([default], dtype))
        # null is an index past the end of the dictionary, where the default stands
        where = distinct.indices.cast(pa.int64()).fill_null(len(distinct.dictionary))
        parts.append(answers[where.to_numpy()])
    return np.concatenate(parts)


def distinct_values(data: pa.ChunkedArray) -> Iterator[pa.DictionaryArray]:
    """Yield the rows of `data` piece by piece, in order, as dictionary arrays: indices into distinct values."""
    for chunk in data.chunks:
        if pa.types.is_dictionary(chunk.type):
            yield pa.DictionaryArray.from_arrays(chunk.indices, hashable(chunk.dictionary))
            continue
        for start in range(0, len(chunk), SLICE):
            yield hashable(chunk.slice(start, SLICE)).dictionary_encode()


def hashable(piece: pa.Array) -> pa.Array:
    """Return the Arrow array `piece` in a type whose equal values have equal texts; null for NaN and overlong ones."""
    kind = piece.type
    if pa.types.is_null(kind):
        return piece.cast(pa.string())
    if _is_bytes(kind):
        # As bytes, since text from a file need not be valid.
        piece = piece.cast(pa.large_binary())
        return pc.if_else(pc.less_equal(pc.binary_length(piece), MAX_BYTES), piece, None)
    if pa.types.is_floating(kind):
        piece = piece.cast(pa.float32()) if pa.types.is_float16(kind) else piece
        piece = pc.add(piece, pa.scalar(0.0, piece.type))  # -0.0 becomes 0.0
        return pc.if_else(pc.is_nan(piece), None, piece)
    if pa.types.is_timestamp(kind):
        return piece.cast(pa.timestamp(kind.unit))  # in UTC, so that no time-zone table is asked
    return piece


def spelt(number: float) -> str:
    """Return the shortest text of the real `number`: a whole one without a point, from 2**53 with an exponent."""
    if abs(number) < _EXACT or not math.isfinite(number):
        return repr(number + 0.0).removesuffix(".0")  # -0.0 is 0
    return np.format_float_scientific(number, trim="-")


def seconds(count: int | None, digits: int) -> str | None:
    """Return `count` x 10^-`digits` seconds, a duration, as the exact text of its seconds; None for None."""
    if count is None:
        return None
    whole, part = divmod(abs(count), 10**digits)
    text = f"{whole}.{part:0{digits}d}".rstrip("0").rstrip(".") if part else str(whole)
    return f"-{text}" if count < 0 else text


def as_texts(distinct: pa.Array) -> pa.LargeStringArray:
    """Return the text of each value in `distinct` as an Arrow array; null if its bytes are not UTF-8."""
    kind = distinct.type
    if pa.types.is_float64(kind):
        return pa.array([None if x is None else spelt(x) for x in distinct.to_pylist()], pa.large_string())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        texts = distinct.cast(pa.large_string())
        for ending, kept in ((r"(\.[0-9]*?)0+$", r"\1"), (r"\.$", ""), (r" 00:00:00$", "")):
            texts = pc.replace_substring_regex(texts, ending, kept)  # the last: a date that was stored as a moment
        return texts
    if pa.types.is_duration(kind):
        fine = {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
        return pa.array([seconds(value, fine) for value in distinct.cast(pa.int64()).to_pylist()], pa.large_string())
    return decoded(distinct, pa.large_string())


def decoded(data: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values `data` as texts of the Arrow type `kind`; null for bytes that are not UTF-8."""
    try:
        return data.cast(kind)
    except pa.ArrowInvalid:  # some value is not UTF-8
        return pa.array([_decoded(value) for value in data.to_pylist()], kind)


def _decoded(value: bytes | None) -> str | None:
    try:
        return value.decode() if value is not None else None
    except UnicodeDecodeError:
        return None
