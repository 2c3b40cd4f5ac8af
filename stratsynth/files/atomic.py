"""Folders and texts that are written whole or not at all, as `files.replacing` writes files; and JSON."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stratsynth.errors import StratsynthError, UsageError
from stratsynth.files.outside import parse_json
from stratsynth.files.reading import read_bytes
from stratsynth.files.replacing import beside, mine, new_file, sweep, sync_folder

__all__ = ["new_file", "new_folder", "read_json", "sync_folder", "write_json", "write_text"]

MAX_JSON = 64_000_000
"""Largest size of a JSON file that is read, in bytes; far above any certificate."""


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to fill, which becomes `path`, synced to the disk, once the block ends; or nothing is left."""
    sweep(path)
    part = beside(path)
    held = -1
    try:
        part.mkdir(parents=True)
        held = os.open(part, os.O_RDONLY)
        mine(held, part)
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


def write_text(path: Path, text: str) -> None:
    """Write `text` to the file `path` in UTF-8, with its own line ends, whole or not at all; replaces an old one."""
    with new_file(path) as file:
        file.write(text.encode())


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write the mapping `document` to the file `path` as indented JSON, whole or not at all; ValueError for NaN."""
    write_text(path, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path, most: int = MAX_JSON, *, error: type[StratsynthError] = UsageError) -> Any:
    """Return a JSON file's value; OSError if unreadable, ValueError for a faulty document, such as one too deep.

    For no regular file, or one of more than `most` bytes, an exception of the class `error` is raised.
    """
    return parse_json(read_bytes(path, most, error=error))
