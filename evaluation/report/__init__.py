"""INTERNAL reports: pages about private rows, which refuse to lie in a release."""

from __future__ import annotations

from pathlib import Path

from stratsynth.evaluation.tables import STAMP

BANNER = f"{STAMP.removeprefix('INTERNAL: ').capitalize()}."


def write_page(page: str, path: str | Path) -> Path:
    """Write an INTERNAL page, but never into a release, and never over a file."""
    from stratsynth.data.draft import refuse_release_folder
    from stratsynth.errors import UsageError

    path = Path(path)
    refuse_release_folder(path)
    if path.exists():
        raise UsageError(f"{path} exists already; name a new file.")
    path.write_text(page, encoding="utf-8")
    return path
