"""An append-only file of JSON lines, chained by hashes, for several processes at once.

Each line is `<sha256> <json>`: the hash covers the line before it and its own JSON, so a changed, lost or
swapped byte anywhere is seen. The file fails closed: a damaged one is refused, never repaired. What a chain
cannot see by itself is that its last lines were cut off; keep the ledger where only its owner can write.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stratsynth.errors import LedgerError

_START = "0" * 64
_WIDTH = 64


class Chain:
    """The file; every access goes through `locked`."""

    def __init__(self, path: Path) -> None:
        """Nothing is opened yet."""
        self.path = path
        self.lines: list[dict[str, Any]] = []
        """What has been read and verified so far; `locked` brings it up to date."""
        self._read = 0
        self._head = _START

    @contextlib.contextmanager
    def locked(self) -> Iterator[_Writer]:
        """Hold the file's lock, with all lines read and verified."""
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise LedgerError(f"ledger: {self.path} cannot be opened ({error.strerror}).") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            self._catch_up(handle)
            yield _Writer(self, handle)
        finally:
            os.close(handle)  # releases the lock

    def read(self) -> list[dict[str, Any]]:
        """All lines, verified, without writing anything; for showing."""
        try:
            handle = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise LedgerError(f"ledger: {self.path} cannot be opened ({error.strerror}).") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            self._catch_up(handle)
        finally:
            os.close(handle)
        return self.lines

    def _catch_up(self, handle: int) -> None:
        """Read and verify what was appended since the last look."""
        size = os.fstat(handle).st_size
        if size < self._read:
            raise self._damaged("it is shorter than it was")
        tail = b""
        while len(tail) < size - self._read:
            part = os.pread(handle, size - self._read - len(tail), self._read + len(tail))
            if not part:
                raise self._damaged("it cannot be read to its end")
            tail += part
        if tail and not tail.endswith(b"\n"):
            raise self._damaged("its last line is torn")
        for line in tail.split(b"\n")[:-1]:
            self._accept(line)
            self._read += len(line) + 1

    def _accept(self, line: bytes) -> None:
        stated, space, body = line[:_WIDTH], line[_WIDTH : _WIDTH + 1], line[_WIDTH + 1 :]
        head = _hash(self._head, body)
        if space != b" " or stated != head.encode():
            raise self._damaged(f"line {len(self.lines) + 1} does not fit the chain")
        try:
            content = json.loads(body)
        except ValueError:
            raise self._damaged(f"line {len(self.lines) + 1} is not JSON") from None
        self.lines.append(content)
        self._head = head

    def _damaged(self, how: str) -> LedgerError:
        return LedgerError(
            f"ledger: {self.path} is damaged: {how}. Nothing is spent on a damaged ledger; restore it from a copy."
        )


class _Writer:
    """Appends while the lock is held."""

    def __init__(self, chain: Chain, handle: int) -> None:
        self._chain = chain
        self._handle = handle

    def append(self, content: dict[str, Any]) -> None:
        """Write one line and have it on the disk before returning; on failure the file is as it was."""
        chain = self._chain
        body = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
        head = _hash(chain._head, body)  # noqa: SLF001 - the two classes are one thing
        line = head.encode() + b" " + body + b"\n"
        start = chain._read  # noqa: SLF001
        try:
            written = 0
            while written < len(line):
                written += os.pwrite(self._handle, line[written:], start + written)
            os.fsync(self._handle)
            if start == 0:
                sync_folder(chain.path.parent)
        except BaseException as error:
            os.ftruncate(self._handle, start)
            if isinstance(error, OSError):
                raise LedgerError(
                    f"ledger: {chain.path} cannot be written ({error.strerror}); nothing was read."
                ) from None
            raise
        chain.lines.append(json.loads(body))
        chain._read, chain._head = start + len(line), head  # noqa: SLF001


def _hash(head: str, body: bytes) -> str:
    return hashlib.sha256(head.encode() + b" " + body).hexdigest()


def sync_folder(folder: Path) -> None:
    """Have a folder's entries on the disk: a new or renamed file survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
