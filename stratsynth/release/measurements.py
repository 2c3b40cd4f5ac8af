"""The table of all noisy answers: contingency tables and sums are a product of their own, with known noise.

A release whose mechanism asked for sums has two columns more, `grid` and `sum`. There `value` and `sigma` are in units
of `grid`, `cell` is the index in the summed vector, `clique` has the columns that were read, and `sum` is a
description of the sum, in JSON. Rows that are cells of tables have an empty `sum`, and a grid of 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stratsynth.errors import ReleaseError
from stratsynth.files.reading import open_regular
from stratsynth.questions.sums.published import PublishedSum
from stratsynth.strata import label

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from stratsynth.driver.private import Measurement

COLUMNS = pa.schema(
    [
        ("stratum", pa.dictionary(pa.int32(), pa.string())),
        ("question", pa.int32()),
        ("clique", pa.dictionary(pa.int32(), pa.string())),
        ("cell", pa.int64()),
        ("value", pa.int64()),
        ("sigma", pa.float64()),
    ]
)
"""Stratum (levels joined by `|`, empty for everybody), question, clique (columns joined by `,`), row-major cell."""
SUMS = pa.schema([*COLUMNS, ("grid", pa.float64()), ("sum", pa.dictionary(pa.int32(), pa.string()))])
"""Value of one unit of `value` and `sigma`, and description of the sum, empty for a cell of a table."""
FILE = "measurements.parquet"
MAX_CELLS = 2**25
"""Largest number of cells that are read at once, about 36 bytes each: a file of a few megabytes can claim any
number."""
MAX_UNPACKED = 2**31
"""Largest size of a file's columns when unpacked, in bytes."""


def measurements_table(measurements: Sequence[Measurement]) -> pa.Table:
    """Return an Arrow table of `measurements`, `Measurement`s: a row is a table's cell or a coordinate of a sum."""
    if not measurements:
        return COLUMNS.empty_table()
    sums = [m.table if isinstance(m.table, PublishedSum) else None for m in measurements]
    sizes = np.array([m.table.values.size for m in measurements])
    number = np.repeat(np.arange(len(measurements)), sizes)

    def each(values: Sequence[object], kind: pa.DataType) -> pa.Array:
        return pa.array(values, type=kind).take(pa.array(number))

    def names(values: Sequence[str]) -> pa.Array:
        return pa.array(values).dictionary_encode().take(pa.array(number))

    columns = {
        "stratum": names([label(m.path) for m in measurements]),
        "question": each([m.question for m in measurements], pa.int32()),
        "clique": names([",".join(m.table.clique) for m in measurements]),
        "cell": np.concatenate([np.arange(size) for size in sizes]),
        "value": np.concatenate([m.table.values.ravel() for m in measurements]),
        "sigma": each([m.table.sigma for m in measurements], pa.float64()),
    }
    if not any(sums):
        return pa.table(columns, schema=COLUMNS)
    columns["grid"] = each([1.0 if one is None else one.grid for one in sums], pa.float64())
    columns["sum"] = names(["" if one is None else one.of for one in sums])
    return pa.table(columns, schema=SUMS)


class LazyTable:
    """A dataclass field for measurements, or for the folder from which they are read when first asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        """Note under which attribute an instance keeps its table or folder: the field's name after `_`."""
        self._name = f"_{name}"

    def __get__(self, instance: Any, owner: type) -> Any:
        """Return an instance's Arrow table, read from its folder the first time; AttributeError on the class."""
        if instance is None:  # a dataclass asks for the default: there is none
            raise AttributeError(self._name)
        kept = vars(instance)[self._name]
        if isinstance(kept, Path):
            kept = vars(instance)[self._name] = read_measurements(kept)
        return kept

    def __set__(self, instance: Any, value: Any) -> None:
        """Keep `value`, a table or the folder of a release, for an instance; nothing is read."""
        vars(instance)[self._name] = value


def read_measurements(folder: Path) -> pa.Table:
    """Return a release folder's measurements.parquet as an Arrow table.

    Raises:
        ReleaseError: No measurements, damaged ones, or more than are read at once.
    """
    with opened_measurements(folder) as file:
        rows = file.metadata.num_rows
        if rows > MAX_CELLS:
            raise ReleaseError(
                f"{folder}: {FILE} holds {rows:,} cells, more than the {MAX_CELLS:,} that are read at once; read it in "
                "batches, with pyarrow.parquet. Sampling does not need it."
            )
        layout = COLUMNS if len(file.schema_arrow) == len(COLUMNS) else SUMS
        return file.read(columns=layout.names, use_threads=False).cast(layout)


@contextmanager
def opened_measurements(folder: Path) -> Iterator[pq.ParquetFile]:
    """Yield a folder's measurements.parquet as an open ParquetFile; ReleaseError for other columns or unsound sizes."""
    import pyarrow.parquet as pq

    try:
        with (
            open_regular(folder / FILE, error=ReleaseError) as handle,
            pq.ParquetFile(handle, read_dictionary=["stratum", "clique"]) as file,
        ):
            found, about = file.schema_arrow, file.metadata
            named = [(f.name, f.type) for f in found]
            if named not in ([(f.name, f.type) for f in layout] for layout in (COLUMNS, SUMS)):
                raise ReleaseError(f"{folder}: {FILE} has not the columns of measurements.")
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
            if sum(group.total_byte_size for group in groups) > MAX_UNPACKED:
                raise ReleaseError(f"{folder}: {FILE} would unpack to more than {MAX_UNPACKED:,} bytes.")
            if about.num_rows != sum(group.num_rows for group in groups):
                raise ReleaseError(f"{folder}: {FILE} is damaged: its parts have other sizes than it says.")
            yield file
    except (OSError, ValueError, LookupError, ArithmeticError, pa.ArrowException) as error:  # as pyarrow likes
        raise ReleaseError(f"{folder}: {FILE} is damaged or missing ({type(error).__name__}).") from None
