"""Room for arrays of rows in a file without a name on the disk.

The file is made without a name (`O_TMPFILE`; where a file system has no such thing, it is unlinked before a byte is
written), readable by its owner alone. So nobody can open it, and the system frees it when the process ends, however
that comes about: a killed process leaves nothing behind to be found or swept.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import weakref
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stratsynth.errors import UsageError
from stratsynth.files.space import NoRoomError

SEGMENT = 1 << 24
"""The least bytes of the file that are mapped at once."""
RESIDENT = 1 << 27
"""Bytes that are read or written before their pages are handed back to the system."""
_LINE = 64
"""Arrays begin at multiples of this: a line of the processor's cache."""


class Scratch:
    """One file without a name, mapped in segments; it is gone when the last of its arrays is."""

    lasting = False

    def __init__(self) -> None:
        """Make the file, empty, in the folder for temporary files: TMPDIR, or the system's own."""
        try:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as the arrays are
        except OSError:
            raise _no_room() from None
        weakref.finalize(self, self._file.close)  # what is mapped stays until its arrays are gone
        self._segments: list[mmap.mmap] = []
        self._start = self._used = self._end = 0
        """Of the file: where the last segment begins, how far it is given out, and where it ends."""
        self._touched = 0

    def empty(self, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """An array in the file, whose room on the disk is there before it is written to.

        Raises:
            NoRoomError: A disk that is full. What the message says does not depend on the rows.
        """
        kind = np.dtype(dtype)
        length = kind.itemsize * size
        if not length:
            return np.empty(0, kind)
        try:
            if not self._segments or self._used + length > self._end:
                self._map(length)
            _reserve(self._file.fileno(), self._used, length)
        except OSError:
            raise _no_room() from None
        array = np.frombuffer(self._segments[-1], kind, size, self._used - self._start)
        self._used += -(-length // _LINE) * _LINE
        return array

    def touched(self, size: int) -> None:
        """Every RESIDENT bytes, take all pages out of the process; the system still holds them as long as it can."""
        self._touched += size
        if self._touched >= RESIDENT:
            self._touched = 0
            for segment in self._segments:
                segment.madvise(mmap.MADV_DONTNEED)

    def _map(self, length: int) -> None:
        """Another segment, of an eighth of the file where that is more, so that there are few."""
        pages = mmap.ALLOCATIONGRANULARITY
        size = -(-max(length, SEGMENT, self._end // 8) // pages) * pages
        os.ftruncate(self._file.fileno(), self._end + size)
        self._segments.append(mmap.mmap(self._file.fileno(), size, offset=self._end))
        self._start = self._used = self._end
        self._end += size


def _reserve(handle: int, start: int, length: int) -> None:
    """Room on the disk: writing to a mapped page without it would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, start, length)
        return
    for at in range(start, start + length, SEGMENT):
        os.pwrite(handle, bytes(min(SEGMENT, start + length - at)), at)


def check_room(size: float) -> None:
    """Refuse, before anything is charged, what the disk has no room for.

    Args:
        size: About how many bytes the scratch file will take, from public facts.

    Raises:
        UsageError: Less than that is free where the file would lie.
    """
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < size:
        raise UsageError(
            f"scratch: by the declared size the working copy of the rows takes {size / 2**20:,.0f} MB, and {folder} "
            f"has {free / 2**20:,.0f} MB free. Name a folder on a larger disk by TMPDIR. Nothing was charged."
        )


def _no_room() -> NoRoomError:
    return NoRoomError(
        f"scratch: {tempfile.gettempdir()} has no room for the working copy of the rows. Name a folder on a larger "
        "disk by TMPDIR. What was charged stands; with a ledger, the same fit of the same file is not charged again."
    )
