"""Whether something that is handed in as public is the private table itself.

Paths, inodes and objects are compared at the door, which reads nothing. Contents are compared under a key that is
thrown away, where the ledger compares the table with its own fingerprint: before the reservation. Either refusal says
one thing about the rows: that they are the very file that was handed in twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.data.csv_source import CsvSource
from stratsynth.data.fingerprint import fingerprint
from stratsynth.data.held import ArrowSource, FrameSource
from stratsynth.data.sources import FileSource, Source, open_source
from stratsynth.data.spark_source import SparkSource
from stratsynth.errors import UsageError, WeightsError

if TYPE_CHECKING:
    from stratsynth.data.backends import Backend

WEIGHTS = (
    "weights: their source is the private table itself: shares from it would be exact counts of confidential rows, "
    "released without noise. Take published figures, Weights.private (noisy counts, paid from the budget), or a sample "
    "of other people."
)
PRIOR = (
    "prior: it is the private table itself: the release would give out its rows as they are. Take rows that were "
    "published, such as last year's file, an earlier release of these data, or no prior."
)
KEY_BYTES = 32


def refuse_same(private: Source, others: Iterable[Any], refusal: str = WEIGHTS) -> None:
    """Refuse the same file, under whatever name, and the same frame or table object.

    Args:
        private: Where the private rows are.
        others: Paths, frames, Arrow tables and sources that are taken for public, or for other people.
        refusal: What to say then.

    Raises:
        WeightsError: One of them is the private table.
    """
    if any(_same(private, other) for other in others):
        raise WeightsError(refusal)


def refuse_same_path(private: Path, other: Any, refusal: str) -> None:
    """Refuse a source or path that is the file, or in the folder, of the private rows, before either is opened.

    Raises:
        WeightsError: It is.
    """
    path = other.path if isinstance(other, Source) else other
    if not isinstance(path, str | os.PathLike):
        return
    if any(_same_file(a, b) for a in _files(private) for b in _files(Path(path))):
        raise WeightsError(refusal)


def refuse_same_content(private: Backend, others: Iterable[Any], refusal: str = WEIGHTS) -> None:
    """Refuse what has the very content of the private table, as a copy of its file or frame has. This reads both.

    Small tables, which are paths and frames, are read again only where their content can be the same at all. What
    cannot be opened as a table of rows is another.

    Raises:
        WeightsError: One of them has the content of the private table.
    """
    from stratsynth.noise import SystemEntropy

    each = {id(other): other for other in others}.values()  # once
    sources = [source for other in each if (source := _opened(other, getattr(private, "source", None))) is not None]
    if not sources:
        return
    key = SystemEntropy().bits(8 * KEY_BYTES).to_bytes(KEY_BYTES, "big")
    mine = private.fingerprint(key)
    if any(fingerprint(source, key) == mine for source in sources):
        raise WeightsError(refusal)


def _opened(other: Any, private: Source | None) -> Source | None:
    """A source as it is; a path or a frame as one, unless its fingerprint cannot be that of the private table."""
    if isinstance(other, Source):
        return other
    try:
        if isinstance(other, str | os.PathLike):
            file = CsvSource(Path(other))  # whatever its name: bytes are compared
            return file if private is None or _size(private) == _size(file) else None
        table = open_source(other)
        table.types()  # can be read
    except UsageError:
        return None
    in_memory = private is None or isinstance(private, ArrowSource | FrameSource)
    return table if in_memory and (private is None or private.columns() == table.columns()) else None


def _size(source: Source) -> int | None:
    """The size of a file whose fingerprint is of its bytes; None for other data."""
    if not isinstance(source, FileSource) or source.engine is not None:
        return None
    with source.open(known=False) as file:
        return os.fstat(file.fileno()).st_size


def _same(private: Source, other: Any) -> bool:
    path = other.path if isinstance(other, Source) else other
    if private.path is not None and isinstance(path, str | os.PathLike):
        return any(_same_file(mine, theirs) for mine in _files(private.path) for theirs in _files(Path(path)))
    mine, theirs = _held(private), _held(other)
    return mine is not None and mine is theirs


def _files(path: Path) -> list[Path]:
    """A file; of a folder, all files below it too: the shares of a part of the rows are private as well."""
    try:
        return [path, *(p for p in path.rglob("*") if p.is_file())] if path.is_dir() else [path]
    except (OSError, ValueError):
        return [path]


def _same_file(mine: Path, theirs: Path) -> bool:
    try:
        return theirs.samefile(mine)  # follows links of both kinds
    except (OSError, ValueError):
        return False


def _held(data: Any) -> Any:
    """The object in memory; None for a file."""
    if isinstance(data, FrameSource):
        return data.frame
    if isinstance(data, ArrowSource):
        return data.table
    if isinstance(data, SparkSource):
        return data.frame
    return None if isinstance(data, Source | str | os.PathLike) else data
