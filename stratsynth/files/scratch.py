"""Storage for arrays of rows in a file without a name on the disk.

The file is made without a name (`O_TMPFILE`; on file systems without it, it is unlinked before a byte is
written), readable by its owner alone. So nobody can open it, and the system frees it when the process ends,
kills included: nothing is left behind to be found or swept.
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
"""Smallest part of the file that is mapped at once, in bytes."""
RESIDENT = 1 << 27
"""Bytes that are read or written before their pages are handed back to the system."""
_LINE = 64
"""Alignment of arrays in bytes: a line of the processor's cache."""


class Scratch:
    """One file without a name, mapped in segments; it is freed with the last of its arrays."""

    lasting = False

    def __init__(self) -> None:
        """Make the empty file in the folder for temporary files: TMPDIR, or the system's own."""
        try:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as the arrays are
        except OSError:
            raise _no_room() from None
        weakref.finalize(self, self._file.close)  # what is mapped stays until its arrays are gone
        self._segments: list[mmap.mmap] = []
        self._start = self._used = self._end = 0
        """Offsets in the file: start of the last segment, end of its used part, end of the file."""
        self._touched = 0

    def empty(self, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """Return an array of `size` entries of type `dtype` in the file, with its room on the disk reserved.

        Raises:
            NoRoomError: The disk is full. The message does not depend on the rows.
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
        """Count `size` bytes read or written; after every RESIDENT bytes, drop the mapped pages from the process."""
        self._touched += size
        if self._touched >= RESIDENT:
            self._touched = 0
            for segment in self._segments:
                segment.madvise(mmap.MADV_DONTNEED)

    def _map(self, length: int) -> None:
        """Map one more segment of at least `length` bytes, an eighth of the file if more, so that there are few."""
        pages = mmap.ALLOCATIONGRANULARITY
        size = -(-max(length, SEGMENT, self._end // 8) // pages) * pages
        os.ftruncate(self._file.fileno(), self._end + size)
        self._segments.append(mmap.mmap(self._file.fileno(), size, offset=self._end))
        self._start = self._used = self._end
        self._end += size


def _reserve(handle: int, start: int, length: int) -> None:
    """Reserve `length` bytes of the open file `handle` from `start`: a write to a page without room ends a process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, start, length)
        return
    for at in range(start, start + length, SEGMENT):
        os.pwrite(handle, bytes(min(SEGMENT, start + length - at)), at)


def check_room(size: float) -> None:
    """Refuse, before anything is charged, a scratch file for which the disk has no room.

    Args:
        size: Approximate size of the scratch file in bytes, from public facts.

    Raises:
        UsageError: The folder for temporary files has less room.
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
