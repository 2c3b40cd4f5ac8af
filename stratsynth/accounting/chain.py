"""An append-only file of JSON lines, chained by hashes, for several processes at once.

Each line is `<sha256> <json>`: the hash covers the hash of the line before and the line's JSON, so a changed, lost or
swapped byte anywhere is seen. The file fails closed: a damaged one is refused, never repaired. What a chain
cannot see by itself is that its last lines were cut off. The line written last lies beside it too, and the
journal knows which fits and answers there were: a ledger that is older than these is refused. Who puts all of them
back together is not noticed; keep the ledger where only its owner can write.

A process that is killed inside a write may leave part of a line, wherever the line crosses a page. So each
line is written to `<name>.next` first, and one that was torn, or not begun, is completed from there: what was
charged stays charged, and everything else that has no end is damage.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from stratsynth.errors import LedgerError
from stratsynth.files.replacing import sync_folder

Append = Callable[[dict[str, Any]], None]
"""Function that appends one line, valid while the lock is held."""
_START = "0" * 64
_WIDTH = 64
LONG = 2**14
"""Lines of charges of more bytes are held compressed."""
_LINE = re.compile(rb"[0-9a-f]{64} \{[^\n]*\}\n")
RESTORE = (
    "restore it from its newest copy, together with the files beside it; what was spent since the copy was made is "
    "lost with it and has to be counted by hand."
)
"""Remedy in messages about damage, with its consequence."""
EMPTIED = "ledger: {path} was emptied or removed; " + RESTORE
ROLLED_BACK = (
    "ledger: {path} is older than the files beside it, which know of charges that it lacks: it was restored from an "
    "old copy, or cut. Nothing is spent on it. Put back its newest state; where that is lost, begin a ledger under "
    "another name and count by hand what was spent before."
)


class Packed(dict[str, Any]):
    """A long line of charges, held compressed: lists are decoded when asked for, as `line["charges"]`, and not kept."""

    def __init__(self, body: bytes, content: dict[str, Any]) -> None:
        """Keep numbers and texts of `content` as they are, and the whole line's JSON, `body`, compressed."""
        super().__init__({key: value for key, value in content.items() if not isinstance(value, list | dict)})
        self._body = zlib.compress(body, 1)

    def __missing__(self, key: str) -> Any:
        """Return the list or mapping under a key of the line, decoded anew."""
        return json.loads(zlib.decompress(self._body))[key]


def _kept(body: bytes, content: dict[str, Any]) -> dict[str, Any]:
    return Packed(body, content) if len(body) > LONG and content.get("kind") == "charge" else content


class Chain:
    """A chained file, with its lines read and verified so far."""

    def __init__(self, path: Path) -> None:
        """Name the ledger's file, `path`; nothing is opened."""
        self.path = path
        self.next = Path(f"{path}.next")
        """File with the line that is being written, or was written last."""
        self.lines: list[dict[str, Any]] = []
        """Lines read and verified so far; `locked` reads the rest."""
        self._heads = {_START}
        self._read = 0
        self._head = _START

    @contextlib.contextmanager
    def locked(self) -> Iterator[Append]:
        """Hold the file's exclusive lock, with all lines read and verified; yield the function that appends lines."""
        # a ledger that was read and has been removed since must not come back empty
        with self._opened(os.O_RDWR | (0 if self._read else os.O_CREAT), fcntl.LOCK_EX) as handle:
            self._catch_up(handle)
            yield partial(self._append, handle)

    def append(self, content: dict[str, Any]) -> None:
        """Append one line with this JSON content to the file; it is on the disk when this returns."""
        with self.locked() as append:
            append(content)

    def _append(self, handle: int, content: dict[str, Any]) -> None:
        """Write the dict `content` as a line to `handle`, on the disk at return; LedgerError, unchanged, on failure."""
        body = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
        head = _hash(self._head, body)
        line = head.encode() + b" " + body + b"\n"
        start = self._read
        # Order: the line beside the ledger first, then the ledger, then fsync: a kill at any point leaves either the
        # old ledger or one that `_unfinished` completes.
        try:
            beside = os.open(self.next, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                _write(beside, line, 0)
            finally:
                os.close(beside)
            _write(handle, line, start)
            os.fsync(handle)
            if start == 0:
                sync_folder(self.path.parent)
        except BaseException as error:
            os.ftruncate(handle, start)
            with contextlib.suppress(OSError):  # or it would be taken for a line that was being written
                os.truncate(self.next, 0)
            if isinstance(error, OSError):
                raise LedgerError(
                    f"ledger: {self.path} cannot be written ({error.strerror}). Run the same again when it can; what "
                    "was charged stays charged."
                ) from None
            raise
        self.lines.append(_kept(body, json.loads(body)))
        self._heads.add(head)  # before it counts as read: an interrupt here reads the line again
        self._read, self._head = start + len(line), head

    def read(self) -> list[dict[str, Any]]:
        """Return a list of all lines, dicts, verified, and write nothing, to show a ledger; LedgerError if damaged."""
        with self._opened(os.O_RDONLY, fcntl.LOCK_SH) as handle:
            return self._catch_up(handle, write=False)

    @contextlib.contextmanager
    def _opened(self, how: int, lock: int) -> Iterator[int]:
        """Yield the file's descriptor, opened with flags `how` and locked as `lock`; LedgerError if that fails."""
        try:
            handle = os.open(self.path, how | os.O_NONBLOCK, 0o600)  # a pipe without a writer does not block
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

    def _catch_up(self, handle: int, *, write: bool = True) -> list[dict[str, Any]]:
        """Return all lines of the file descriptor `handle`, a list of dicts, new ones verified; or LedgerError.

        A torn last line that is whole but for its end is completed in the file if `write`.
        """
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
        line = self._unfinished(torn)
        if line and not write:
            return [*self.lines, self._checked(line[:-1])[1]]
        if line:
            self._checked(line[:-1])
            try:
                _write(handle, line, self._read)
                os.fsync(handle)
            except OSError as error:
                raise LedgerError(f"ledger: {self.path} cannot be written ({error.strerror}).") from None
            self._accept(line[:-1])
            self._read += len(line)
        return self.lines

    def _unfinished(self, torn: bytes) -> bytes:
        """Return the bytes beside the ledger after or completing its last line, `torn`; b"" if none; or LedgerError.

        A line that follows the last one was being written when its process was killed, or the ledger was cut: it is
        valid either way. One that follows some later line shows an older copy of the ledger, which is refused.
        """
        try:
            line = self.next.read_bytes()
        except OSError:
            line = b""
        sound = _LINE.fullmatch(line) is not None
        if torn and not (sound and line.startswith(torn)):
            raise self._damaged("its last line is torn")
        stated = line[:_WIDTH].decode(errors="replace")
        if not sound or stated in self._heads:
            return b""
        if not torn and stated != _hash(self._head, line[_WIDTH + 1 : -1]):
            raise LedgerError((ROLLED_BACK if self.lines else EMPTIED).format(path=self.path))
        return line

    def _accept(self, line: bytes) -> None:
        self._head, content = self._checked(line)
        self._heads.add(self._head)
        self.lines.append(_kept(line[_WIDTH + 1 :], content))

    def _checked(self, line: bytes) -> tuple[str, dict[str, Any]]:
        """Return (a line's hash, its JSON object) if it follows the last one; LedgerError for any other line."""
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
        return head, content

    def _damaged(self, how: str) -> LedgerError:
        return LedgerError(f"ledger: {self.path} is damaged: {how}. Nothing is spent on a damaged ledger; {RESTORE}")


def _write(handle: int, content: bytes, start: int) -> None:
    """Write all bytes of `content` into the open file `handle` at offset `start`, in as many calls as it takes."""
    written = 0
    while written < len(content):
        written += os.pwrite(handle, content[written:], start + written)


def _hash(head: str, body: bytes) -> str:
    return hashlib.sha256(head.encode() + b" " + body).hexdigest()
