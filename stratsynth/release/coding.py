"""Synthetic rows in the coding of another file: its columns, order, types, and its spelling of levels and numbers.

Only types and the spelling of values are used. The file must be public, or synthetic: which levels it has, and their
spelling, shows in the output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from stratsynth.data.sources import open_source
from stratsynth.errors import UsageError
from stratsynth.schema import Categorical, Nested, Numeric, Schema, Temporal, spellings
from stratsynth.schema.encoding import encode_categorical
from stratsynth.schema.text import MISSING, meaning, number

if TYPE_CHECKING:
    from stratsynth.data.sources import Data
    from stratsynth.schema import Column

NULLS = ("NA", "N/A", "na", "n/a", "NaN", "nan", "NULL", "null", "None", "none", ".", "?", "-", MISSING)
"""Spellings of a missing value in files, besides an empty field."""

Texts = Mapping[str, int]
"""Number of occurrences of each text of one of the file's columns."""


@dataclass(frozen=True)
class Recoded:
    """Rows in another file's coding."""

    table: pa.Table
    """Rows, in the types of the file; of a CSV file, which has none, every column is text."""
    lacking: tuple[str, ...]
    """Columns of the file that the release lacks."""
    dropped: tuple[str, ...]
    """Columns of the release that the file lacks."""
    texts: tuple[str, ...] = ()
    """Columns left as text, since the release has values that the file's type cannot hold."""


def recoded(table: pa.Table, schema: Schema, like: Data) -> Recoded:
    """Return `Recoded`: rows of a release with each value spelt as another file spells it, in that file's types.

    Args:
        table: The rows.
        schema: Their schema.
        like: The file with the coding: its columns that the release has, in its order.

    Raises:
        UsageError: A file that cannot be read, or has no column of the release.
    """
    source = open_source(like)
    header = source.columns()
    shared = tuple(name for name in header if name in schema.columns)
    if not shared or len(set(shared)) < len(shared):
        raise UsageError("--as: that file has no column of this release, or one of them twice.")
    spelt = source.read(shared)
    columns = {
        name: _column(schema.column(name), table.column(name), spellings.counted(spelt.column(name))) for name in shared
    }
    types, texts = source.types(), list[str]()
    kinds = {} if types is None else {name: types.field(name).type for name in shared}
    for name, kind in kinds.items():
        try:
            columns[name] = _typed(columns[name], kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            texts.append(name)
    lacking = tuple(name for name in header if name not in schema.columns)
    dropped = tuple(name for name in schema.names if name not in shared)
    return Recoded(pa.table(columns), lacking, dropped, tuple(texts))


def _typed(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column of texts cast to the Arrow type `kind`, null staying null; ArrowInvalid if it cannot hold one."""
    if pa.types.is_dictionary(kind):
        return _typed(texts, kind.value_type).dictionary_encode()
    if pa.types.is_integer(kind):  # a whole number may be spelt 2.0
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            return texts.cast(pa.float64()).cast(kind)
    return texts.cast(kind)


def _column(column: Column, data: pa.ChunkedArray, texts: Texts) -> pa.ChunkedArray:
    """Return `data`, a release's Arrow column, as texts in the spelling of a file, by its `texts`, {text: count}.

    A value that is not there keeps its own spelling. `column` is its declaration.
    """
    null = np.asarray(data.is_null())
    nothing = _null(column, texts) if _absent(column, column.not_applicable, texts) else column.not_applicable
    if isinstance(column, Nested):
        return _column(column.single, data, texts)
    if isinstance(column, Categorical):
        codes = np.where(null, -1, encode_categorical(column, data)[0])
        spelling = pa.array([*(_level(column, level, texts) for level in column.all_levels), nothing], pa.string())
        return pa.chunked_array([spelling.take(pa.array(codes % len(spelling)))])
    distinct = data.combine_chunks().dictionary_encode()
    spelled = _numbers(column, texts)
    written = [
        _null(column, texts) if _absent(column, text, texts) else spelled(text)
        for text in spellings.texts(distinct.dictionary)
    ]
    codes = distinct.indices.fill_null(len(written))
    return pa.chunked_array([pa.array([*written, nothing], pa.string()).take(codes)])


def _absent(column: Column, word: str | None, texts: Texts) -> bool:
    """True if `word`, a special level, is left empty in a file: it is None, or "not applicable" and not in `texts`.

    Not applicable is that of the column; `texts` maps the file's distinct texts to counts.
    """
    return word is None or (word == column.not_applicable and word not in texts)


def _null(column: Column, texts: Texts) -> str | None:
    """Return the commonest spelling of a missing value, such as NA, in a file's `texts`, {distinct text: count}.

    None if there is none but levels of the column.
    """
    levels = column.levels if isinstance(column, Categorical) else column.words
    found = [text for text in NULLS if text in texts and text not in levels]
    return max(found, key=texts.__getitem__) if found else None


def _level(column: Categorical, level: str, texts: Texts) -> str | None:
    """Return the spelling of a categorical column's `level` in a file: itself, an equal number, or its label.

    `texts` maps the file's distinct texts to counts. The level itself if none of them is meant; None for null.
    """
    if (level == MISSING and MISSING not in column.levels) or _absent(column, level, texts):
        return _null(column, texts)
    if level in texts:
        return level
    exact, label = meaning(level), column.labels.get(level, "").casefold()
    same = [text for text in texts if exact is not None and meaning(text) == exact]
    same = same or [text for text in texts if label and text.casefold() == label]
    return max(sorted(same), key=texts.__getitem__) if same else level


def _numbers(column: Numeric, texts: Texts) -> Callable[[str], str]:
    """Return a function from text to text: a number with the decimals and leading zeros of a file's numeric column.

    Other words stay. `texts` maps the file's distinct texts to counts.
    """
    numbers = [text for text in texts if number(text) is not None and text not in column.words]
    if not numbers or isinstance(column, Temporal):
        return lambda text: text
    decimals = {len(text.partition(".")[2]) for text in numbers}
    most, fixed = max(decimals), len(decimals) == 1
    widths = {len(text.partition(".")[0]) for text in numbers}
    zeros = any(len(text) > 1 and text[0] == "0" and text[1].isdigit() for text in numbers)
    width = max(widths) if zeros and len(widths) == 1 else 0

    def written(text: str) -> str:
        value = number(text)
        if value is None or text in column.words:
            return text
        whole, _, part = f"{value:.{most}f}".partition(".")
        part = part if fixed else part.rstrip("0") or "0" * bool(most)
        return f"{whole.zfill(width)}.{part}" if part else whole.zfill(width)

    return written
