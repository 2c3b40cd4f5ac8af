"""Rows out of memory: read a part at a time, and kept as codes in a scratch file for as long as the fit runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.data.fingerprint import fingerprint
from stratsynth.data.load import SchemaBackend, load_rows
from stratsynth.errors import Unsupported
from stratsynth.files.scratch import Scratch

if TYPE_CHECKING:
    from stratsynth.data.sources import Source
    from stratsynth.questions.reading import Rows
    from stratsynth.schema import Schema


@dataclass(frozen=True)
class Stream(SchemaBackend):
    """A backend for a file, folder or database, encoded into a scratch file that no other process can open."""

    reads = frozenset({"tables", "sums"})

    @classmethod
    def checked(cls, source: Source, schema: Schema) -> Stream:
        """Return a `Stream` on `source` for a schema; Unsupported, before any charge, where `refusal` has a reason."""
        refusal = cls.refusal(source, schema)
        if refusal is not None:
            raise Unsupported(refusal)
        return cls(source, schema)

    @staticmethod
    def refusal(source: Source, schema: Schema) -> str | None:
        """Return the reason, a text, why the rows of `source` cannot be streamed in this schema; None if they can."""
        if source.path is None:
            return 'engine: a frame is in memory already; take engine = "memory", or write it to a Parquet file.'
        if not isinstance(schema.unit, str) and source.engine is not None:
            return (
                "engine: rows of a database have no order, so which rows of a unit come first is nowhere said; write "
                'them to a Parquet file in an order, and take engine = "memory" for units of several rows.'
            )
        if not isinstance(schema.unit, str):
            return (
                'engine "stream" reads rows a part at a time, and the rows of one unit may lie anywhere; take engine '
                '= "memory" for units of several rows, or keep at most one row of each and leave the unit out.'
            )
        return None

    def fingerprint(self, key: bytes) -> str:
        """Return the hash of the source's content, a text, under the secret bytes `key`."""
        return fingerprint(self.source, key)

    def rows(self, *, numbers: bool = True) -> Rows:
        """Read all rows, encode them into the scratch file, and return the `Rows`; sums need `numbers` to be True."""
        return load_rows(self.schema, self.source, Scratch(), numbers=numbers)
