"""Files from outside, read only if they are files, and no larger than what they are for."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

from stratsynth.errors import StratsynthError, UsageError


def open_regular(path: Path, *, error: type[StratsynthError] = UsageError) -> IO[bytes]:
    """A file open for reading, if it is one: pipes, devices and folders can hang or never end.

    Raises:
        OSError: A file that is not there or cannot be opened; the caller knows what it is for.
        StratsynthError: Of the class `error`: what is there is no regular file.
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
    """What a regular file of at most `most` bytes holds.

    Raises:
        OSError: A file that is not there or cannot be read.
        StratsynthError: Of the class `error`: no regular file, or a larger one.
    """
    with open_regular(path, error=error) as file:
        content = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
    if content is None or len(content) > most:
        raise error(f"{path} is larger than the {most / 1e6:g} MB that such a file may have.")
    return content
