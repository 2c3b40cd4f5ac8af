"""Loading of private rows from a source: called by the driver, after its first charge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.driver.rows import StoredRows
from stratsynth.errors import LedgerError, StratsynthError
from stratsynth.files.space import NoRoomError, Space
from stratsynth.progress import phase
from stratsynth.schema import Numeric
from stratsynth.schema.encoding import encode, smallest
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.values import identities

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.data.sources import Source
    from stratsynth.schema import Schema


def load_rows(schema: Schema, source: Source, space: Space | None = None, *, numbers: bool = True) -> StoredRows:
    """Read the schema's columns and return encoded `StoredRows`; an error message depends on no row.

    Args:
        schema: The schema that rows are encoded by.
        source: Source of the rows; files are read a part at a time.
        space: Storage of the codes; memory if None.
        numbers: True to keep the numbers of numeric columns beside their codes, as sums need them.

    Raises:
        LedgerError: The file is not the one that the account was opened for.
        NoRoomError: The disk has no room for the scratch file.
        StratsynthError: Anything else, of whatever class.
    """
    numeric = [name for name, column in schema.columns.items() if isinstance(column, Numeric) and numbers]
    try:
        whole = not isinstance(schema.unit, str)  # the rows of a unit may lie anywhere
        batches = [kept(schema, source)] if whole else source.batches((*schema.names, *schema.beside))
        with phase("reading", lambda: None if whole else source.parts_to_read()) as done:
            coded = _encoded(schema, batches, numeric, done)
            if space is None:
                return StoredRows([_together(schema, coded, numeric)])
            parts = [_put(rows, space) for rows in coded]
            return StoredRows(parts or [_together(schema, (), numeric)], space)
    except (LedgerError, NoRoomError):
        raise
    except Exception:  # noqa: BLE001 - even the class of what went wrong may depend on a single row
        raise StratsynthError(
            "the data could not be read; the charge stands. Is the file whole? With a ledger, the same fit of the same "
            "file is not charged again."
        ) from None


def _encoded(
    schema: Schema, batches: Iterable[pa.Table], numeric: Sequence[str], done: Callable[[], object]
) -> Iterator[CodedRows]:
    for batch in batches:
        yield encode(schema, batch, numeric, weigh=True)
        done()


def _together(schema: Schema, coded: Iterable[CodedRows], numeric: Sequence[str]) -> CodedRows:
    """Return `coded`, parts by `schema`, as one `CodedRows`: an array a column, and floats for columns in `numeric`."""
    parts = list(coded)
    if len(parts) == 1:
        return parts[0]
    codes, reals = [dict(part.codes) for part in parts], [dict(part.numbers) for part in parts]
    counted = [part.outside for part in parts if part.outside is not None]  # all of them: `encode` counts
    outside = np.sum([np.zeros(1 + len(schema.names), np.int64), *counted], axis=0)
    size, weights = sum(part.size for part in parts), [part.weights for part in parts if part.weights is not None]
    del parts
    return CodedRows(
        schema,
        {c: _one([part.pop(c) for part in codes], smallest(schema.size(c))) for c in schema.names},
        {c: _one([part.pop(c) for part in reals], np.dtype(np.float64)) for c in numeric},
        size,
        None if schema.row_weight.column is None else _one(weights, np.dtype(np.int64)),
        outside=outside,
    )


def _one(arrays: list[NDArray[Any]], kind: np.dtype[Any]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, kind), *arrays], dtype=kind)


def _put(rows: CodedRows, space: Space) -> CodedRows:
    """Return a copy of coded `rows`, a part of a table, whose arrays lie in `space`, memory or disk."""

    def put(array: NDArray[Any]) -> NDArray[Any]:
        place = space.empty(array.dtype, len(array))
        place[:] = array
        space.touched(place.nbytes)
        return place

    return rows.mapped(put, rows.size)


def kept(schema: Schema, source: Source) -> pa.Table:
    """Return an Arrow table of the rows of `source` by `schema`; of units the first `max_rows` rows, none without one.

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
    """Return an array by row: the number of earlier rows of its unit, by `owner`, an array of units' numbers by row."""
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], owner[order])  # where each row's unit begins
    place = np.empty(len(owner), dtype=np.int64)
    place[order] = np.arange(len(owner)) - starts
    return place
