"""Recognition of files that belong to a release, whose guarantee must be named if it is a prior."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stratsynth.errors import UsageError
from stratsynth.release.hashes import CERTIFICATE

MOST = 10_000
"""Largest number of files and folders below a folder that is named as data."""


def release_of(path: Path) -> Path | None:
    """Return the folder of the release that the file `path`, or the one it links to, lies in; None if in none.

    Of a folder, that of any file below it; UsageError for one that holds too much to be data.
    """
    folders = dict.fromkeys(folder for place in _files(path) for folder in (place.parent, _real(place).parent))
    return next((folder for folder in folders if (folder / CERTIFICATE).exists()), None)


def _files(path: Path) -> Iterator[Path]:
    """Yield `path` itself and, if it is a folder, all files below it; UsageError for more than MOST."""
    yield path
    try:
        if path.is_dir():
            for number, below in enumerate(path.rglob("*"), start=1):
                if number > MOST:
                    raise UsageError(
                        f"prior: {path} holds more than {MOST:,} files and folders; name the file, or the folder of "
                        "the data itself."
                    )
                if below.is_file():
                    yield below
    except (OSError, ValueError):
        return  # nothing more of it can be read


def _real(path: Path) -> Path:
    """Return the path with links resolved; the path itself if that fails."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):  # links in a circle, and names that no system can have
        return path
