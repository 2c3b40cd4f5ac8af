"""Writing of tables to files, CSV and Parquet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from stratsynth.errors import UsageError
from stratsynth.files.atomic import new_file


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write an Arrow table to the file `path`, .csv or .parquet, whole or not at all; UsageError: another ending."""
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in {".csv", ".parquet"}:
        raise UsageError(f"{target}: a table is written to a .csv or .parquet file")
    if not target.parent.is_dir():
        raise UsageError(f"{target}: there is no folder {target.parent}")
    with new_file(target) as file:
        if ending == ".csv":
            _write_csv(table, file)
        else:
            pq.write_table(table, file)


def flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return an Arrow column in a type that CSV can hold: categories as their texts, durations in seconds."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_duration(column.type):
        count = column.cast(pa.int64())
        fine = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[column.type.unit]
        return count if fine == 1 else pc.divide(count.cast(pa.float64()), fine)
    return column


def _write_csv(table: pa.Table, file: IO[bytes]) -> None:
    """Write an Arrow table to the open `file` as CSV, without quotes if no value needs them.

    Else all text is quoted.
    """
    columns = [flat(column) for column in table.columns]
    styles = ["none", "needed"]
    if len(columns) == 1:  # a null must be "" here, as a blank line is no row
        columns, styles = [columns[0].cast(pa.string()).fill_null("")], ["needed"]
    table = pa.table(columns, names=table.column_names)
    for style in styles:
        file.seek(0)
        file.truncate()
        try:
            pyarrow.csv.write_csv(table, file, pyarrow.csv.WriteOptions(quoting_style=style, quoting_header=style))
        except pa.ArrowInvalid:
            if style == styles[-1]:
                raise
        else:
            return
