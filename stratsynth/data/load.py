"""From a source to private rows: called by the driver, after its first charge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.driver.rows import MemoryRows
from stratsynth.errors import LedgerError, StratsynthError
from stratsynth.schema import Numeric
from stratsynth.schema.codec import encode
from stratsynth.schema.values import identities

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.data.sources import Source
    from stratsynth.schema import Schema


def load_rows(schema: Schema, source: Source) -> MemoryRows:
    """Read the schema's columns and encode them; whatever goes wrong here says nothing about the rows.

    Raises:
        LedgerError: Not the file that the account was opened for.
        StratsynthError: Anything else, whatever it was.
    """
    numeric = [name for name, column in schema.columns.items() if isinstance(column, Numeric)]
    try:
        coded = encode(schema, kept(schema, source), numeric, weigh=True)
    except LedgerError:
        raise
    except Exception:  # noqa: BLE001 - even the class of what went wrong may depend on a single row
        raise StratsynthError(
            "the data could not be read; the charge stands. Is the file whole? With a ledger, the same fit of the same "
            "file is not charged again."
        ) from None
    return MemoryRows(schema, coded.codes, coded.numbers, coded.n, coded.weights)


def kept(schema: Schema, source: Source) -> pa.Table:
    """All rows; where a unit may have several, the first `max_rows` rows of each unit, and no row without a unit.

    Which rows of a unit stay depends on that unit's own rows and their order alone, so that another unit more or
    fewer changes nothing about them. The column that tells units apart ends here; that of the rows' weights stays.
    """
    import pyarrow as pa

    unit = schema.unit
    data = source.read((*schema.names, *schema.beside))
    if isinstance(unit, str):
        return data
    owner = identities(data.column(unit.column))
    return data.drop_columns([unit.column]).filter(pa.array((places(owner) < unit.max_rows) & (owner >= 0)))


def places(owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row, how many rows of the same unit come before it."""
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], owner[order])  # where each row's unit begins
    place = np.empty(len(owner), dtype=np.int64)
    place[order] = np.arange(len(owner)) - starts
    return place
