"""Keyed fingerprints, which tie a ledger to its data and disclose nothing about them.

A plain hash of a table would let anyone who guesses the table confirm the guess. This one is keyed with random
bytes that stay beside the ledger, and neither key nor fingerprint is ever published.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stratsynth.data.folders import FolderSource
from stratsynth.data.sources import FileSource
from stratsynth.data.spark_source import SparkSource
from stratsynth.noise import SystemEntropy

if TYPE_CHECKING:
    from stratsynth.data.backends import Backend
    from stratsynth.data.sources import Source

KEY_BYTES = 32


def fingerprint(source: Source, key: bytes) -> str:
    """Return the HMAC-SHA256 under `key`, as text: of a file's bytes, a frame's columns, or a database's rows.

    A folder's is that of its files' names in order, each with the file's own: a file more, fewer, changed or renamed
    is noticed, its times are not. A source remembers which files these were, and reads no others. Rows in
    Spark have no order: see `stratsynth.data.spark_source`.
    """
    if isinstance(source, SparkSource):
        return source.fingerprint(key)
    if isinstance(source, FolderSource):
        return keyed(key, _files(source, key))
    if not isinstance(source, FileSource):
        return keyed(key, _columns(source))
    with source.open(known=False) as file:
        mark = keyed(key, source.contents(file))
        source.seen.note(key, file, mark)
    return mark


def has_copy(private: Backend, others: Iterable[Source]) -> bool:
    """True if one of `others`, sources, has just the content of the backend `private`; its key is discarded."""
    key = SystemEntropy().read(KEY_BYTES)
    mine = private.fingerprint(key)
    return any(fingerprint(source, key) == mine for source in others)


def size(source: Source) -> int | None:
    """Return the size in bytes, an int, of a source that is a file fingerprinted by its bytes; None for other data."""
    if not isinstance(source, FileSource) or source.engine is not None:
        return None
    with source.open(known=False) as file:
        return os.fstat(file.fileno()).st_size


def keyed(key: bytes, pieces: Iterator[bytes | memoryview]) -> str:
    """Return the HMAC-SHA256 under `key` of the pieces of bytes, one after another, as hexadecimal text."""
    state = hmac.new(key, digestmod=hashlib.sha256)
    for piece in pieces:
        state.update(piece)
    return state.hexdigest()


def _files(source: FolderSource, key: bytes) -> Iterator[bytes]:
    for name, part in source.note().items():
        text = os.fsencode(name)
        yield len(text).to_bytes(8, "big") + text + fingerprint(part, key).encode()


def _columns(source: Source) -> Iterator[memoryview]:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    table = source.all_columns()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    yield memoryview(sink.getvalue())
