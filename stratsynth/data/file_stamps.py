"""Identity of the file that an account was opened for: the file that is read afterwards must be the same.

A ledger knows its data by a hash of the file's content. The file is opened again when the first question has been
charged; between the two another file may have taken its place, whose rows nobody was charged for. Hashing the
content twice would double the reading of large files, so the file's identity is compared: its inode, its size, and
the times of its last changes, the second of which no program can set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeAlias

from stratsynth.errors import LedgerError

Stamp: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class StampedFiles:
    """The files under one path whose fingerprints were taken."""

    _marks: dict[bytes, dict[Stamp, str]] = field(default_factory=dict, repr=False)
    """Fingerprint of each file, by key and stamp."""

    def note(self, key: bytes, file: IO[bytes], mark: str) -> None:
        """Record, under the bytes `key`, that the text `mark` is the fingerprint of this open file."""
        self._marks.setdefault(key, {})[stamp(file)] = mark

    @contextmanager
    def unchanged(self, file: IO[bytes], path: Path, *, known: bool) -> Iterator[None]:
        """Raise a LedgerError on `path` if `file` changes within the block or, with `known`, since its fingerprint.

        Before any fingerprint was taken, every file passes.
        """
        first = stamp(file)
        marks = self._marks.values()
        same = not marks or any(first in seen for seen in marks)
        if known and (not same or any(len(set(seen.values())) > 1 for seen in marks)):
            raise changed(path)
        yield
        if stamp(file) != first:
            raise changed(path)


def changed(path: Path) -> LedgerError:
    """Return (not raise) a LedgerError that says: the file `path` is not the one that the account was opened for."""
    return LedgerError(
        f"ledger: {path} was changed or replaced while it was read. What was charged stands; put the file back as it "
        "was and run the same again: nothing is charged twice."
    )


def stamp(file: IO[bytes]) -> Stamp:
    """Return a tuple: an open file's device, inode, size, times of change; equal only for the same, unchanged file."""
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
