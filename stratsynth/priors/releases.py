"""Whether a file is of a release, whose guarantee has to be named where it is a prior."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stratsynth.release.hashes import CERTIFICATE


def release_of(path: Path) -> Path | None:
    """The release folder that a file, or a file of a folder, lies in or is a link into; None where there is none."""
    folders = dict.fromkeys(folder for place in _files(path) for folder in (place.parent, _real(place).parent))
    return next((folder for folder in folders if (folder / CERTIFICATE).exists()), None)


def _files(path: Path) -> Iterator[Path]:
    """A file; of a folder, all files below it."""
    yield path
    try:
        if path.is_dir():
            yield from (below for below in path.rglob("*") if below.is_file())
    except (OSError, ValueError):
        return  # nothing more of it can be read


def _real(path: Path) -> Path:
    """Where a path leads to, links followed; itself where that is nowhere."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):  # links in a circle, and names that no system can have
        return path
