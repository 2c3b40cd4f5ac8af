"""Two linked tables written to two files, a block of parents at a time: memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from stratsynth.files.atomic import new_folder
from stratsynth.progress import steps
from stratsynth.release.folder import check_new
from stratsynth.release.linked_draw import BLOCK, LinkedDrawing
from stratsynth.schema.columns import Numeric

if TYPE_CHECKING:
    import pyarrow as pa

    from stratsynth.schema import Schema

QUOTED = ('"', ",", "\n", "\r")
"""Signs in a level for which a CSV file quotes its texts."""


def write_linked(drawing: LinkedDrawing, out: Path, *, csv: bool = False) -> tuple[dict[str, int], dict[str, Any]]:
    """Write a `LinkedDrawing` of two tables to the new folder `out`, `csv` or Parquet files, whole or not at all.

    Return ({file: number of rows}, dict of counts of what drawing gave up, over all parents that were drawn).
    UsageError if `out` exists, or no parent meets the conditions.
    """
    target = check_new(out, "Name another with -o")
    linked, counted = drawing.where.linked, dict[str, Any]()
    schemas = dict(zip(linked.names, (linked.parent, linked.child), strict=True))
    rows = dict.fromkeys((f"{name}.{'csv' if csv else 'parquet'}" for name in linked.names), 0)
    pieces = max(1, -(-drawing.n // BLOCK))
    with new_folder(target) as parts, steps("sampling", pieces, None) as done, ExitStack() as stack:
        writers: dict[str, Any] = {}
        for tables in drawing.blocks(counted):
            for file, (name, table) in zip(rows, tables.items(), strict=True):
                if name not in writers:
                    writers[name] = stack.enter_context(_writer(parts / file, table.schema, schemas[name], csv=csv))
                before, rows[file] = rows[file], rows[file] + table.num_rows
                writers[name].write_table(table)
                if name == linked.names[0]:
                    for _ in range(before // BLOCK, rows[file] // BLOCK):
                        done(None)
    return rows, counted


def _writer(path: Path, types: pa.Schema, schema: Schema, *, csv: bool) -> Any:
    """Return a writer of Arrow tables of these types to the file `path`, Parquet or CSV; `schema` has the levels."""
    if not csv:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, types)
    return _CsvFile(path, schema)


class _CsvFile:
    """CSV file to which tables of the same columns are appended; texts are quoted where some level has to be."""

    def __init__(self, path: Path, schema: Schema) -> None:
        columns = schema.columns.values()
        texts = [text for c in columns for text in (c.words if isinstance(c, Numeric) else c.all_levels)]
        self._style = "needed" if any(sign in text for text in (*texts, *schema.names) for sign in QUOTED) else "none"
        self._path, self._begun = path, False

    def __enter__(self) -> Self:
        self._file = self._path.open("xb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write_table(self, table: pa.Table) -> None:
        """Append the rows of `table`, with the header first."""
        import pyarrow as pa
        import pyarrow.csv

        from stratsynth.data.writing import flat

        table = pa.table([flat(column) for column in table.columns], names=table.column_names)
        style: Mapping[str, Any] = {"quoting_style": self._style, "quoting_header": self._style}
        pyarrow.csv.write_csv(table, self._file, pyarrow.csv.WriteOptions(include_header=not self._begun, **style))
        self._begun = True
