"""Files and folders, whole or not at all: written beside their place, then renamed; read when of a stated size."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from stratsynth.errors import StratsynthError, UsageError
from stratsynth.files.reading import read_bytes
from stratsynth.files.untrusted import parse_json
from stratsynth.noise import SystemEntropy

MAX_JSON = 64_000_000
"""The largest JSON file that is read, in bytes; far above any certificate."""


@contextmanager
def new_file(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A file to write to that replaces `path` once the block ends; if it raises, nothing of it is left.

    `mode` is the file's permissions before the umask.
    """
    _sweep(path)
    part = _beside(path)
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as handle:
            _mine(handle.fileno(), part)
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill that becomes `path` once the block ends, and is on the disk then; or nothing is left."""
    _sweep(path)
    part = _beside(path)
    held = -1
    try:
        part.mkdir(parents=True)
        held = os.open(part, os.O_RDONLY)
        _mine(held, part)
        yield part
        for inner in part.rglob("*"):
            if inner.is_dir():
                sync_folder(inner)
            else:
                with inner.open("rb") as file:
                    os.fsync(file.fileno())
        sync_folder(part)
        part.rename(path)
        sync_folder(path.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if held >= 0:
            os.close(held)


def _mine(handle: int, part: Path) -> None:
    """Hold a lock on what is being written, by which others know that it is no leftover."""
    with contextlib.suppress(OSError):  # some file systems lock nothing; then nothing is swept there either
        fcntl.flock(handle, fcntl.LOCK_EX)
    if not part.exists():  # swept between its making and its lock
        raise FileNotFoundError(errno.ENOENT, "removed by another process; run it again", str(part))


def _sweep(path: Path) -> None:
    """Remove what killed processes have left of earlier attempts to write `path`: what nobody holds a lock on."""
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


def _beside(path: Path) -> Path:
    """A name of its own, so that two processes are not in each other's way."""
    return path.with_name(f".{path.name}.{SystemEntropy().read(4).hex()}.part")


def sync_folder(folder: Path) -> None:
    """Have a folder's entries on the disk: a new or renamed file survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """A text in UTF-8, with the ends of lines that it has."""
    with new_file(path) as file:
        file.write(text.encode())


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """JSON that a person can read and that holds no NaN."""
    write_text(path, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path, most: int = MAX_JSON, *, error: type[StratsynthError] = UsageError) -> Any:
    """A JSON file's value; OSError or ValueError for whatever is wrong with it, depth and number of values included.

    What is no regular file, or has more than `most` bytes, is of the class `error`.
    """
    return parse_json(read_bytes(path, most, error=error))
