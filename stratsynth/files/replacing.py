"""Files that are written whole or not at all: under another name, then renamed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from stratsynth.noise import SystemEntropy


@contextmanager
def new_file(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Yield a file to write to, which replaces `path` once the block ends; if it raises, nothing of it is left.

    `mode` is the file's permissions before the umask.
    """
    sweep(path)
    part = beside(path)
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as handle:
            mine(handle.fileno(), part)
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def mine(handle: int, part: Path) -> None:
    """Lock `handle`, of the file or folder `part` being written: no leftover; FileNotFoundError if it was swept."""
    with contextlib.suppress(OSError):  # some file systems lock nothing; then nothing is swept there either
        fcntl.flock(handle, fcntl.LOCK_EX)
    if not part.exists():  # swept between its making and its lock
        raise FileNotFoundError(errno.ENOENT, "removed by another process; run it again", str(part))


def sweep(path: Path) -> None:
    """Remove the unlocked leftovers of killed processes that were to write `path`."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(OSError):
            handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink()
            finally:
                os.close(handle)


def beside(path: Path) -> Path:
    """Return a hidden path beside `path` with a random part, so that two processes do not collide."""
    return path.with_name(f".{path.name}.{SystemEntropy().read(4).hex()}.part")


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk: a new or renamed file then survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
