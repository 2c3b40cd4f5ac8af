"""CSV read line by line: what a line holds depends on that line alone.

Ordinary readers let a quoted field run over line ends, so that one stray quote in one person's row swallows
the rows after it: far more than one row then hangs on one person. Here a line ends at the newline byte,
always. Blank lines are skipped; a field that is empty, absent, or not UTF-8 is null; surplus fields are
ignored.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import IO, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

BLOCK = 1 << 24
"""Bytes read at a time."""

MAX_LINE = 1 << 24
"""Longer lines are lines without a readable field."""

Positions: TypeAlias = NDArray[np.int64]

_NEWLINE, _RETURN, _QUOTE, _COMMA = b'\n\r",'


def header(file: IO[bytes]) -> list[str]:
    """The column names in the first line that is not blank; leaves `file` at the line after it."""
    for line in file:
        text = _strip(line).removeprefix(b"\xef\xbb\xbf")
        if text:
            return [name.decode("utf-8", "replace") for name in fields(text)]
    return []


def read(file: IO[bytes], width: int, wanted: Sequence[int]) -> list[pa.ChunkedArray]:
    """The fields at the places `wanted` of every remaining line, as text; `width` is the header's number."""
    chunks = [_parse(block, width, wanted) for block in _blocks(file)]
    return [pa.chunked_array([chunk[i] for chunk in chunks], pa.string()) for i in range(len(wanted))]


def fields(line: bytes) -> list[bytes]:
    """The fields of one line. Without a quote they are what lies between commas; else `csv` decides."""
    if len(line) > MAX_LINE:
        return []
    if b'"' not in line:
        return line.split(b",")
    try:
        # Latin-1 gives every byte a character, so that bad UTF-8 stays in its own field.
        return [field.encode("latin-1") for field in next(csv.reader([line.decode("latin-1")]))]
    except csv.Error:
        return []


def _strip(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """The file in pieces of whole lines, each ending in a newline."""
    open_line: list[bytes] = []
    while block := file.read(BLOCK):
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join([*open_line, block[:cut]])
            open_line = []
        open_line.append(block[cut:])
    if any(open_line):
        yield b"".join([*open_line, b"\n"])


def _parse(block: bytes, width: int, wanted: Sequence[int]) -> list[pa.Array]:
    data = np.frombuffer(block, np.uint8)
    stops = np.flatnonzero(data == _NEWLINE)
    starts = np.concatenate([[0], stops[:-1] + 1])
    stops = stops - ((stops > starts) & (data[stops - 1] == _RETURN))
    starts, stops = starts[stops > starts], stops[stops > starts]

    commas = np.flatnonzero(data == _COMMA)
    first = np.searchsorted(commas, starts)
    plain = np.searchsorted(commas, stops) - first == width - 1
    plain &= stops - starts <= MAX_LINE
    quotes = np.flatnonzero(data == _QUOTE)
    if len(quotes):
        plain &= np.searchsorted(quotes, starts) == np.searchsorted(quotes, stops)

    begins, ends, first = starts[plain], stops[plain], first[plain]
    columns = [
        _gather(
            data,
            begins if place == 0 else commas[first + place - 1] + 1,
            ends if place == width - 1 else commas[first + place],
        )
        for place in wanted
    ]
    if not plain.all():
        odd = [fields(block[a:b]) for a, b in zip(starts[~plain].tolist(), stops[~plain].tolist(), strict=True)]
        order = np.argsort(np.concatenate([np.flatnonzero(plain), np.flatnonzero(~plain)]))
        columns = [
            pa.concat_arrays([column, _listed([f[place] if place < len(f) else b"" for f in odd])]).take(order)
            for column, place in zip(columns, wanted, strict=True)
        ]
    return [_text(column) for column in columns]


def _gather(data: NDArray[np.uint8], begins: Positions, ends: Positions) -> pa.Array:
    """The bytes from each of `begins` to the same of `ends`."""
    lengths = ends - begins
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    where = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(data[where])]
    return pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers)


def _listed(values: list[bytes]) -> pa.Array:
    return pa.array(values, pa.large_binary())


def _text(column: pa.Array) -> pa.Array:
    """As text, null where empty or not UTF-8."""
    column = pc.if_else(pc.equal(pc.binary_length(column), 0), None, column)
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:  # some field is not UTF-8
        return pa.array([_decoded(value) for value in column.to_pylist()], pa.string())


def _decoded(value: bytes | None) -> str | None:
    try:
        return value.decode() if value is not None else None
    except UnicodeDecodeError:
        return None
