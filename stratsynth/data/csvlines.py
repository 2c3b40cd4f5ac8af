"""CSV read line by line: a record is one physical line, and its fields depend on that line alone.

Ordinary readers let a quoted field run over line ends, so that one stray quote in one person's row swallows
the rows after it: far more than one row then hangs on one person. Here a line ends at the newline byte,
always. No reader can tell from a line alone whether it lies inside a quoted field that began above it, so the
definition cannot be "one record of the CSV format": what is guaranteed is guaranteed for one physical line.

A line is a record when it has as many fields as the header, its quotes are even in number and close where
their fields end, and it is no longer than `MAX_LINE`. Other lines are left out, as rows that the schema does not admit
are: so a record that was broken over several lines is left out too, but for pieces that are whole lines by
themselves. Blank lines are skipped. A field that is empty or not UTF-8 is null.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stratsynth.errors import UsageError
from stratsynth.schema.values import decoded

BLOCK = 1 << 24
"""Bytes read at a time."""

MAX_LINE = 1 << 24
"""Largest length of a record, in bytes."""

Positions: TypeAlias = NDArray[np.int64]

_NEWLINE, _RETURN, _QUOTE, _COMMA = b'\n\r",'


@dataclass(frozen=True)
class LeftOut:
    """INTERNAL. Numbers of lines that are no records."""

    quotes: int = 0
    """Lines with an odd number of quotes, or a quote that closes elsewhere than at the end of its field; pieces of a
    record that was broken over several lines are among them."""
    fields: int = 0
    """Lines with more or fewer fields than the header, or longer than `MAX_LINE`."""


def header(file: IO[bytes]) -> list[str]:
    """Return the list of column names in the file's first line that is not blank; `file` is left at the line after it.

    Raises:
        UsageError: A first line that is no record, in words that quote nothing of it.
    """
    while line := file.readline(MAX_LINE + 1):
        text = line.removesuffix(b"\n").removesuffix(b"\r").removeprefix(b"\xef\xbb\xbf")
        if text:
            names = fields(text)
            if names is None:
                raise UsageError("the first line holds no column names: its quotes do not close, or it is too long.")
            return [name.decode("utf-8", "replace") for name in names]
    return []


def batches(file: IO[bytes], width: int, wanted: Sequence[int]) -> Iterator[list[pa.Array]]:
    """Yield a list per block of `file`: an Arrow array of texts for each field index in `wanted`, of `width` fields."""
    for block in _blocks(file):
        yield _parse(block, width, wanted)[0]


def left_out(file: IO[bytes], width: int) -> LeftOut:
    """INTERNAL. `LeftOut`: remaining lines of `file` that are no records, by open quotes or not `width` fields."""
    found = [_parse(block, width, ())[1] for block in _blocks(file)]
    return LeftOut(sum(f.quotes for f in found), sum(f.fields for f in found))


def fields(line: bytes) -> list[bytes] | None:
    """Return the list of fields of one line, bytes; None if its quotes do not close or it is longer than MAX_LINE.

    Without a quote, fields are the bytes between commas; else the strict reader of `csv` decides.
    """
    if len(line) > MAX_LINE or line.count(b'"') % 2:
        return None
    if b'"' not in line:
        return line.split(b",")
    try:
        # Latin-1 gives every byte a character, so that bad UTF-8 stays in its own field.
        return [field.encode("latin-1") for field in next(csv.reader([line.decode("latin-1")], strict=True))]
    except csv.Error:
        return None


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield an open file's bytes in blocks of whole lines that end in newlines, overlong ones cut to overlong parts."""
    begun = b""  # a line whose end has not come yet
    while block := file.read(BLOCK):
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join([begun, block[:cut]])
            begun = b""
        begun += block[cut : cut + MAX_LINE + 2 - len(begun)]  # two: a carriage return may be one of them
    if begun:
        yield begun + b"\n"


def _parse(block: bytes, width: int, wanted: Sequence[int]) -> tuple[list[pa.Array], LeftOut]:
    """Return (list: an Arrow array per field index in `wanted`, of a block's lines of `width` fields; `LeftOut`)."""
    data = np.frombuffer(block, np.uint8)
    stops = np.flatnonzero(data == _NEWLINE)
    starts = np.concatenate([[0], stops[:-1] + 1])
    stops = stops - ((stops > starts) & (data[stops - 1] == _RETURN))
    starts, stops = starts[stops > starts], stops[stops > starts]

    quotes = np.flatnonzero(data == _QUOTE)
    short = stops - starts <= MAX_LINE
    quoted = (np.searchsorted(quotes, starts) != np.searchsorted(quotes, stops)) & short
    commas = np.flatnonzero(data == _COMMA)
    first = np.searchsorted(commas, starts)
    plain = (np.searchsorted(commas, stops) - first == width - 1) & short & ~quoted

    begins, ends, first = starts[plain], stops[plain], first[plain]
    columns = [
        _gather(
            data,
            begins if place == 0 else commas[first + place - 1] + 1,
            ends if place == width - 1 else commas[first + place],
        )
        for place in wanted
    ]
    # Lines with quotes are parsed one by one, and put back in the order of the file.
    if not quoted.any():
        return [_text(column) for column in columns], LeftOut(fields=int((~plain).sum()))
    split = [fields(block[a:b]) for a, b in zip(starts[quoted].tolist(), stops[quoted].tolist(), strict=True)]
    good = [f is not None and len(f) == width for f in split]
    odd = [f for f, whole in zip(split, good, strict=True) if f is not None and whole]
    order = np.argsort(np.concatenate([np.flatnonzero(plain), np.flatnonzero(quoted)[good]]))
    columns = [
        pa.concat_arrays([column, pa.array([f[place] for f in odd], pa.large_binary())]).take(order)
        for column, place in zip(columns, wanted, strict=True)
    ]
    broken = sum(f is None for f in split)
    return [_text(column) for column in columns], LeftOut(broken, len(starts) - len(order) - broken)


def _gather(data: NDArray[np.uint8], begins: Positions, ends: Positions) -> pa.Array:
    """Return a binary Arrow array: the bytes of `data` from each of the places `begins` up to its entry of `ends`."""
    lengths = ends - begins
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    where = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(data[where])]
    return pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers)


def _text(column: pa.Array) -> pa.Array:
    """Return the binary Arrow array `column` as an array of texts, null where a field is empty or not UTF-8."""
    column = pc.if_else(pc.equal(pc.binary_length(column), 0), None, column)
    return decoded(column, pa.string())
