"""Which file an account was opened for: what is read afterwards has to be the same.

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
class Seen:
    """The files whose fingerprints were taken, all for one path."""

    _marks: dict[bytes, dict[Stamp, str]] = field(default_factory=dict, repr=False)
    """By key, the fingerprint of each file."""

    def note(self, key: bytes, file: IO[bytes], mark: str) -> None:
        """This open file has that fingerprint under that key."""
        self._marks.setdefault(key, {})[stamp(file)] = mark

    @contextmanager
    def unchanged(self, file: IO[bytes], path: Path, *, known: bool) -> Iterator[None]:
        """LedgerError when the file changes meanwhile; and unless its fingerprint was taken, where it must be `known`.

        Before any fingerprint was taken, every file is known.
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
    """What is said of a file that is not the one the account was opened for."""
    return LedgerError(
        f"ledger: {path} was changed or replaced while it was read. What was charged stands; put the file back as it "
        "was and run the same again: nothing is charged twice."
    )


def stamp(file: IO[bytes]) -> Stamp:
    """What tells an open file from another, and from itself once it is changed."""
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
