"""Person records in Parquet, whose codes are spelt as the Bureau's CSV files spell them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.census.acs.catalogue import code_lists, entries
from stratsynth.errors import UsageError
from stratsynth.files.reading import open_regular

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"PAR1"
"""First bytes of a Parquet file."""


def is_parquet(path: Path) -> bool:
    """True if the file `path` begins as Parquet does, whatever its name."""
    with open_regular(path) as file:
        return file.read(len(MAGIC)) == MAGIC


def parquet_columns(path: Path, url: str) -> tuple[str, ...]:
    """Return a tuple of column names of the Parquet file `path`; a UsageError names the `url` of a damaged one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        raise UsageError(f"census: {path} is damaged; get {url} again.") from None


def read_parquet(path: Path, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """Return an Arrow table of the file `path`: the columns that `kinds` maps to types, in these types.

    Codes stored as numbers get their zeros back.

    Raises:
        pa.ArrowException: Values that are not of these types.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    digits = {each.name: code_lists()[each.codes].digits for each in entries() if each.codes in code_lists()}
    digits |= {"STATE": 2, "ST": 2}
    table = pq.read_table(path, columns=list(kinds))
    columns = {}
    for name, kind in kinds.items():
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_floating(column.type):
            column = column.cast(pa.int64())
        whole = pa.types.is_integer(column.type)
        column = column.cast(kind)
        columns[name] = pc.utf8_lpad(column, digits[name], "0") if whole and name in digits else column
    return pa.table(columns)
