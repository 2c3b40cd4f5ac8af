"""Where private rows are held while they are asked about: what hands out rows, and what identifies the data.

A backend is one file and one line in `ENGINES`. It serves every kind of question whose reads it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from stratsynth.data.fingerprint import fingerprint
from stratsynth.data.load import load_rows
from stratsynth.errors import UsageError, nearest

if TYPE_CHECKING:
    from stratsynth.data.sources import Source
    from stratsynth.questions.handler import Rows
    from stratsynth.schema import Schema


class Backend(Protocol):
    """What a table hands out for its questions. Nothing is read before `fingerprint` or `rows` is called."""

    @property
    def reads(self) -> frozenset[str]:
        """Which reads its rows can do, of `tables`, `sums`, `columns` and `frame`."""

    def fingerprint(self, key: bytes) -> str:
        """Which data these are, under a key that is never published."""

    def counted_by(self, schema: Schema) -> Backend:
        """The same data, read by another schema."""

    def rows(self) -> Rows:
        """The rows; called by the driver, after its first charge."""


@dataclass(frozen=True)
class Memory:
    """All rows in memory, encoded."""

    source: Source
    """What is read; its representation shows no row."""
    schema: Schema = field(repr=False)
    """What of it is read."""
    reads = frozenset({"tables", "sums", "columns", "frame"})

    def fingerprint(self, key: bytes) -> str:
        """Of the source's content."""
        return fingerprint(self.source, key)

    def counted_by(self, schema: Schema) -> Memory:
        """The same source."""
        return replace(self, schema=schema)

    def rows(self) -> Rows:
        """Read and encoded."""
        return load_rows(self.schema, self.source)


ENGINES: Mapping[str, Callable[[Source, Schema], Backend]] = {"auto": Memory, "memory": Memory}
"""By the name that `open_table` takes."""


def backend(engine: str, source: Source, schema: Schema) -> Backend:
    """The backend of that name."""
    if engine not in ENGINES:
        raise UsageError(
            f"engine: there is no {engine!r}{nearest(str(engine), ENGINES)}; it is {' or '.join(ENGINES)}."
        )
    return ENGINES[engine](source, schema)
