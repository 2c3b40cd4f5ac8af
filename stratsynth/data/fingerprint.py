"""Which data a ledger belongs to, without saying anything about them.

A plain hash of a table would let anyone who guesses the table confirm the guess. This one is keyed with random
bytes that stay beside the ledger, and neither key nor fingerprint is ever published.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.errors import UsageError

if TYPE_CHECKING:
    from stratsynth.data.sources import Source

_PIECE = 1 << 20


def fingerprint(source: Source, key: bytes) -> str:
    """The HMAC-SHA256 of a file's bytes, or of a frame's columns in Arrow's format."""
    state = hmac.new(key, digestmod=hashlib.sha256)
    try:
        for piece in _file(source.path) if source.path is not None else _columns(source):
            state.update(piece)
    except OSError as error:
        raise UsageError(f"{source.path or 'the data'} cannot be read ({type(error).__name__}).") from None
    return state.hexdigest()


def _file(path: Path) -> Iterator[bytes | memoryview]:
    with path.open("rb") as handle:
        while piece := handle.read(_PIECE):
            yield piece


def _columns(source: Source) -> Iterator[memoryview]:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    table = source.read(source.columns())
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    yield memoryview(sink.getvalue())
