"""Folders of Parquet files, as other engines write them; partitions named `COLUMN=value` are columns.

Files are read in the order of their names; names that begin with a dot or an underscore are other programs' notes
and are not read. The files' names and bytes identify a folder: see `stratsynth.data.fingerprint`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import pyarrow as pa

from stratsynth.data.sources import ParquetSource, Source, changed
from stratsynth.errors import SchemaError, UsageError
from stratsynth.schema.encoding import locate
from stratsynth.schema.values import check_type

NULL = "__HIVE_DEFAULT_PARTITION__"
"""Name of a partition whose value is null."""


@dataclass(frozen=True)
class FolderSource(Source):
    """A folder of Parquet files."""

    path: Path
    """Path of the folder."""
    _known: dict[str, ParquetSource] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Files found so far, by path relative to the folder."""
    _noted: list[tuple[str, ...]] = field(default_factory=list, init=False, repr=False, compare=False)
    """Names of the files whose fingerprints were taken."""

    def parts(self) -> Mapping[str, ParquetSource]:
        """Return a mapping from path below the folder to `ParquetSource` of each file at present, in order of names.

        Raises:
            UsageError: No files, files of other kinds, or links to folders, which are not followed.
            LedgerError: Other names than those whose fingerprint was taken.
        """
        names = tuple(sorted(self._names(self.path, ""), key=os.fsencode))
        if not names:
            raise UsageError(f"{self.path}: the folder holds no .parquet file")
        if self._noted and names not in self._noted:
            raise changed(self.path)
        return {name: self._known.setdefault(name, ParquetSource(self.path / name)) for name in names}

    def note(self) -> Mapping[str, ParquetSource]:
        """Return {name: `ParquetSource`} of the files, and note their names: later reads of others are refused."""
        found = self.parts()
        self._noted[:] = [tuple(found)]
        return found

    def columns(self) -> tuple[str, ...]:
        """Return a tuple of names: columns common to all files, then partition columns common to all files."""
        parts = self.parts()
        keys = [tuple(_partitions(name)) for name in parts]
        return (*_common([part.columns() for part in parts.values()]), *_common(keys))

    def types(self) -> pa.Schema:
        """Return the Arrow schema of all columns: each one's first unreadable type, else that of its first file."""
        schemas = [part.types() for part in self.parts().values()]
        fields = []
        for name in self.columns():
            kinds = [schema.field(name).type for schema in schemas if schema.get_all_field_indices(name)]
            fields.append(pa.field(name, next(filter(unreadable, kinds), kinds[0] if kinds else pa.string())))
        return pa.schema(fields)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return an Arrow table of these columns of every row, file after file; SchemaError if one is absent."""
        locate(columns, self.columns())
        tables = [with_partitions(part.read(own), name, columns) for name, part, own in self.wanted(columns)]
        return pa.concat_tables(tables, promote_options="permissive")

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield Arrow tables of these columns, batch by batch and file after file."""
        locate(columns, self.columns())
        for name, part, own in self.wanted(columns):
            for batch in part.batches(own):
                yield with_partitions(batch, name, columns)

    def parts_to_read(self) -> int:
        """INTERNAL. Number of batches of rows in all files, for a progress bar."""
        return sum(part.parts_to_read() for part in self.parts().values())

    def wanted(self, columns: Sequence[str]) -> Iterator[tuple[str, ParquetSource, list[str]]]:
        """Yield (path, `ParquetSource`, list of columns to read) for each file; columns in its path are left out."""
        for name, part in self.parts().items():
            keys = _partitions(name)
            own = [column for column in columns if column not in keys]
            # if all wanted columns are partitions, one of the file's own gives the number of rows
            yield name, part, own or list(part.columns()[:1])

    def _names(self, folder: Path, below: str) -> Iterator[str]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            raise UsageError(f"{self.path}: the folder cannot be read ({type(error).__name__})") from None
        for entry in entries:
            if entry.name.startswith((".", "_")):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._names(folder / entry.name, f"{below}{entry.name}/")
            elif entry.name.lower().endswith(".parquet") and not entry.is_dir():
                yield below + entry.name
            else:
                raise UsageError(
                    f"{self.path}: a folder holds .parquet files and folders of them, and nothing else: no files of "
                    "other kinds, and no links to folders; names that begin with . or _ are not looked at"
                )


def _partitions(name: str) -> dict[str, str | None]:
    """Return a mapping from partition column to value, None for null, by `name=value` folders in the path `name`."""
    found: dict[str, str | None] = {}
    for part in PurePosixPath(name).parts[:-1]:
        key, equals, value = part.partition("=")
        if equals:
            found[unquote(key)] = None if value == NULL else unquote(value)
    return found


def with_partitions(table: pa.Table, name: str, columns: Sequence[str]) -> pa.Table:
    """Return an Arrow table of `columns`, in that order, of `table`, a file's rows, and of its path `name`."""
    keys = _partitions(name)
    for column in columns:
        if column in keys:
            value = keys[column]
            same = pa.nulls(table.num_rows, pa.string()) if value is None else pa.repeat(value, table.num_rows)
            table = table.append_column(column, same)
    return table.select(list(columns))


def _common(names: Sequence[Sequence[str]]) -> list[str]:
    """Return a list of the names common to all lists in `names`, in the first's order; twice if twice in any."""
    return [
        name
        for name in dict.fromkeys(names[0])
        for _ in range(max(each.count(name) for each in names))
        if all(name in each for each in names)
    ]


def unreadable(kind: pa.DataType) -> bool:
    """True for an Arrow type `kind` that does not hold single values, such as a list."""
    try:
        check_type("", kind)
    except SchemaError:
        return True
    return False
