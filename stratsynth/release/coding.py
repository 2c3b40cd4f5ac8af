"""Synthetic rows in the coding of another file: its columns, their order, and how it spells levels and numbers.

The file says how values are written, and nothing else of it is used. It must be public, or synthetic: how it spells a
level, and that it does, shows in what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from stratsynth.data.sources import open_source
from stratsynth.errors import UsageError
from stratsynth.schema import Categorical, Nested, Numeric, Schema, Temporal, values
from stratsynth.schema.encoding import encode_categorical
from stratsynth.schema.text import MISSING, meaning, number

if TYPE_CHECKING:
    from stratsynth.data.sources import Data
    from stratsynth.schema import Column

NULLS = ("NA", "N/A", "na", "n/a", "NaN", "nan", "NULL", "null", "None", "none", ".", "?", "-", MISSING)
"""How files spell a missing value, besides leaving the field empty."""

Texts = Mapping[str, int]
"""The different texts of one of the file's columns, with how often each occurs."""


@dataclass(frozen=True)
class Recoded:
    """Rows in another file's coding."""

    table: pa.Table
    """The rows; every column is text."""
    lacking: tuple[str, ...]
    """Columns of the file that the release has not."""
    dropped: tuple[str, ...]
    """Columns of the release that the file has not."""


def recoded(table: pa.Table, schema: Schema, like: Data) -> Recoded:
    """Rows of a release as another file would have them.

    Args:
        table: The rows.
        schema: Their schema.
        like: The file whose coding they get: its columns, those that the release has, in its order.

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
        name: _column(schema.column(name), table.column(name), values.counted(spelt.column(name))) for name in shared
    }
    lacking = tuple(name for name in header if name not in schema.columns)
    return Recoded(pa.table(columns), lacking, tuple(name for name in schema.names if name not in shared))


def _column(column: Column, data: pa.ChunkedArray, texts: Texts) -> pa.ChunkedArray:
    """One column's values as the file spells them; where it spells a value nowhere, as they are."""
    null = np.asarray(data.is_null())
    own = column.not_applicable
    nothing = own if own is not None and own in texts else _null(column, texts)
    if isinstance(column, Nested):
        return _column(column.single, data, texts)
    if isinstance(column, Categorical):
        codes = np.where(null, -1, encode_categorical(column, data))
        spelling = pa.array([*(_level(column, level, texts) for level in column.all_levels), nothing], pa.string())
        return pa.chunked_array([spelling.take(pa.array(codes % len(spelling)))])
    distinct = data.combine_chunks().dictionary_encode()
    spelled = _numbers(column, texts)
    written = [spelled(text) for text in values.texts(distinct.dictionary)]
    codes = distinct.indices.fill_null(len(written))
    return pa.chunked_array([pa.array([*written, nothing], pa.string()).take(codes)])


def _null(column: Column, texts: Texts) -> str | None:
    """The file's commonest spelling of a missing value that is no level; None, an empty field, where it has none."""
    levels = column.levels if isinstance(column, Categorical) else column.words
    found = [text for text in NULLS if text in texts and text not in levels]
    return max(found, key=texts.__getitem__) if found else None


def _level(column: Categorical, level: str, texts: Texts) -> str | None:
    """How the file spells a level: as it is, as another spelling of its number, or by its label."""
    if level == MISSING and MISSING not in column.levels:
        return _null(column, texts)
    if level in texts:
        return level
    exact, label = meaning(level), column.labels.get(level, "").casefold()
    same = [text for text in texts if exact is not None and meaning(text) == exact]
    same = same or [text for text in texts if label and text.casefold() == label]
    return max(sorted(same), key=texts.__getitem__) if same else level


def _numbers(column: Numeric, texts: Texts) -> Callable[[str], str]:
    """How the file spells the numbers of a column: with as many decimals, or with zeros in front."""
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
