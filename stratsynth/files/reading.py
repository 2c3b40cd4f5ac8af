"""Reading of files from outside: regular files only, of at most a stated size."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

from stratsynth.errors import StratsynthError, UsageError


def open_regular(path: Path, *, error: type[StratsynthError] = UsageError) -> IO[bytes]:
    """Return a regular file, open for reading: pipes, devices and folders can hang or never end.

    Raises:
        OSError: No such file, or one that cannot be opened.
        StratsynthError: Of the class `error`: the path is no regular file.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer does not block
    except ValueError:  # a name that holds a null character
        raise FileNotFoundError(f"there is no file {str(path)!r}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise error(f"{path} is not a regular file; copy what it holds to one.")
    return os.fdopen(handle, "rb")


def read_bytes(path: Path, most: int, *, error: type[StratsynthError] = UsageError) -> bytes:
    """Return the bytes of the regular file `path`, of at most `most` bytes.

    Raises:
        OSError: No such file, or an unreadable one.
        StratsynthError: Of the class `error`: no regular file, or a larger one.
    """
    with open_regular(path, error=error) as file:
        content = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
    if content is None or len(content) > most:
        raise error(f"{path} is larger than the {most / 1e6:g} MB that such a file may have.")
    return content
