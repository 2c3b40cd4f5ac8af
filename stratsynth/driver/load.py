"""From a source to private rows: called by the driver, after its first charge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.driver.rows import MemoryRows
from stratsynth.errors import StratsynthError
from stratsynth.schema import Numeric
from stratsynth.schema.codec import encode

if TYPE_CHECKING:
    from stratsynth.schema import Schema
    from stratsynth.sources import Source


def load_rows(schema: Schema, source: Source) -> MemoryRows:
    """Read the schema's columns and encode them; whatever goes wrong here says nothing about the rows."""
    numeric = [name for name, column in schema.columns.items() if isinstance(column, Numeric)]
    try:
        coded = encode(schema, source.read(schema.names), numeric)
    except Exception as error:  # noqa: BLE001 - whatever it is, its message may hold a private value
        raise StratsynthError(f"the data could not be read ({type(error).__name__}); the charge stands.") from None
    return MemoryRows(schema, coded.codes, coded.numbers, coded.n)
