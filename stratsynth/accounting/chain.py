"""An append-only file of JSON lines, chained by hashes, for several processes at once.

Each line is `<sha256> <json>`: the hash covers the line before it and its own JSON, so a changed, lost or
swapped byte anywhere is seen. The file fails closed: a damaged one is refused, never repaired. What a chain
cannot see by itself is that its last lines were cut off; keep the ledger where only its owner can write.

A process that is killed inside a write may leave part of a line, wherever the line crosses a page. So each
line is written to `<name>.next` first, and one that was torn is completed from there: what was charged stays
charged, and everything else that has no end is damage.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stratsynth.errors import LedgerError
from stratsynth.files.whole import sync_folder

_START = "0" * 64
_WIDTH = 64


class Chain:
    """The file; every access goes through `locked`."""

    def __init__(self, path: Path) -> None:
        """Nothing is opened yet."""
        self.path = path
        self.next = Path(f"{path}.next")
        """The line that is being written, or was written last."""
        self.lines: list[dict[str, Any]] = []
        """What has been read and verified so far; `locked` brings it up to date."""
        self._read = 0
        self._head = _START

    @contextlib.contextmanager
    def locked(self) -> Iterator[_Writer]:
        """Hold the file's lock, with all lines read and verified."""
        # one that was read and has been removed since must not come back empty
        with self._opened(os.O_RDWR | (0 if self._read else os.O_CREAT), fcntl.LOCK_EX) as handle:
            self._catch_up(handle)
            yield _Writer(self, handle)

    def read(self) -> list[dict[str, Any]]:
        """All lines, verified, without writing anything; for showing."""
        with self._opened(os.O_RDONLY, fcntl.LOCK_SH) as handle:
            self._catch_up(handle)
        return self.lines

    @contextlib.contextmanager
    def _opened(self, how: int, lock: int) -> Iterator[int]:
        """The file, open and locked; whatever is in the way is a LedgerError."""
        try:
            handle = os.open(self.path, how, 0o600)
        except (OSError, ValueError) as error:  # ValueError: a path that holds a null character
            why = error.strerror if isinstance(error, OSError) else error
            raise LedgerError(f"ledger: {self.path} cannot be opened ({why}).") from None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise LedgerError(f"ledger: {self.path} is not a file.")
            try:
                fcntl.flock(handle, lock)
            except OSError as error:
                raise LedgerError(f"ledger: {self.path} cannot be locked ({error.strerror}).") from None
            yield handle
        finally:
            os.close(handle)  # releases the lock

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
        *whole, torn = tail.split(b"\n")
        for line in whole:
            self._accept(line)
            self._read += len(line) + 1
        if torn:
            self._complete(torn, handle)

    def _complete(self, torn: bytes, handle: int) -> None:
        """Accept a torn last line if the file beside the ledger holds all of it, and write its end."""
        try:
            line = self.next.read_bytes()
        except OSError:
            line = b""
        if not line.startswith(torn) or line.find(b"\n") != len(line) - 1:
            raise self._damaged("its last line is torn")
        self._accept(line[:-1])
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR:
            try:
                _write(handle, line, self._read)
                os.fsync(handle)
            except OSError as error:
                raise LedgerError(f"ledger: {self.path} cannot be written ({error.strerror}).") from None
        self._read += len(line)

    def _accept(self, line: bytes) -> None:
        stated, space, body = line[:_WIDTH], line[_WIDTH : _WIDTH + 1], line[_WIDTH + 1 :]
        head = _hash(self._head, body)
        if space != b" " or stated != head.encode():
            raise self._damaged(f"line {len(self.lines) + 1} does not fit the chain")
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise self._damaged(f"line {len(self.lines) + 1} is not a JSON object")
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
            beside = os.open(chain.next, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                _write(beside, line, 0)
            finally:
                os.close(beside)
            _write(self._handle, line, start)
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


def _write(handle: int, content: bytes, start: int) -> None:
    """All of it, however little the system takes at a time."""
    written = 0
    while written < len(content):
        written += os.pwrite(handle, content[written:], start + written)


def _hash(head: str, body: bytes) -> str:
    return hashlib.sha256(head.encode() + b" " + body).hexdigest()
