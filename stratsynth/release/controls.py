"""Control tables: published totals of cells, as users give them, read into a schema's levels.

A line has a value of each of the table's columns and a total. A value is a level, its label, a number, or a range of
whole bins, as conditions of a query are; several levels are joined by `|`. Everything here is public, so that refusals
may name values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.checks import check_integer, flag, is_list, is_texts, number, quoted_value
from stratsynth.digest import digest
from stratsynth.errors import RecipeError, SchemaError, StratsynthError, UsageError, nearest
from stratsynth.files.outside import MAX_BYTES, level, records, sha256
from stratsynth.inputs import check_citation, check_keys
from stratsynth.models.controls import CONVERGED, ControlTotals, kinds_of, raked
from stratsynth.models.rules import broken
from stratsynth.schema.typed import figure
from stratsynth.schema.where import levels_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.models import Codes
    from stratsynth.schema import Schema

TRIM = 5.0
"""Default of the largest ratio of a row."""
MOST_TRIM = 1_000.0
"""Largest value that it may have."""
SECTION: Mapping[str, Any] = {"tables": Sequence, "trim": float}
"""Keys of [benchmark] in a recipe, with their types."""
KEYS: Mapping[str, Any] = {
    "path": str,
    "citation": str,
    "year": int,
    "columns": Sequence,
    "count": str,
    "exact": bool,
}
"""Keys of a table of [benchmark] in a recipe, with their types."""
HELP = {
    "tables": "a list of tables of published totals, of the keys below",
    "trim": f"the largest ratio of a row to what the fitted model gives it, {TRIM:g} by default; totals that need more "
    "are missed, and said",
    "path": "a CSV or Parquet file: a line for each cell, with levels of the columns, and its total",
    "citation": "where the totals were published",
    "year": "the year that they are of",
    "columns": "the columns of the schema among the file's; all but the count by default",
    "count": 'the column of totals, "count" by default',
    "exact": "true for exact totals of the private rows, which are then not protected: the certificate says so first",
}
"""Meanings of the keys, for the reference."""
LARGEST = 1e15
"""Largest total of a cell, in people."""
MOST_CELLS = 2**16
"""Largest number of cells of a table."""
MOST_KINDS = 2**20
"""Largest number of combinations of all tables' cells for which contradictions are found before a fit."""
NAMED = 3
"""Largest number of cells that a refusal names."""


@dataclass(frozen=True)
class ControlTable:
    """Table of published totals, with its citation."""

    data: Any = field(repr=False)
    """CSV or Parquet file, data frame or Arrow table."""
    citation: str
    """Place of publication, which the certificate quotes."""
    year: int | None = None
    """Year that the totals are of."""
    columns: Sequence[str] = ()
    """Columns of the schema among the table's; all but `count` if empty."""
    count: str = "count"
    """Column of the totals."""
    exact: bool = False
    """True for exact totals of the private rows: a fit then lists them as unprotected."""

    def __post_init__(self) -> None:
        """Raise UsageError for a citation that is missing or a template's, other types, or a file with an account."""
        from stratsynth.data.overlap import check_public_inputs

        if not isinstance(self.citation, str) or not self.citation.strip():
            raise UsageError("benchmark: a table of totals needs a citation that says where they were published.")
        object.__setattr__(self, "citation", check_citation("benchmark", self.citation))
        check_integer("benchmark: the year", self.year, 1, 9999, optional=True)
        if not is_texts(self.columns):
            raise UsageError(f"benchmark: columns is a list of names, not {quoted_value(self.columns)}.")
        object.__setattr__(self, "columns", tuple(self.columns))
        if not isinstance(self.count, str) or not self.count:
            raise UsageError(f"benchmark: count is the name of a column, not {quoted_value(self.count)}.")
        flag("benchmark: exact", self.exact)
        if isinstance(self.data, str | PathLike):
            check_public_inputs(declared=[Path(self.data)])

    @property
    def name(self) -> str:
        """Name, a text for messages: that of the table's file, or its citation."""
        return Path(self.data).name if isinstance(self.data, str | PathLike) else self.citation

    def read(self, schema: Schema) -> ReadTable:
        """Return this table as a `ReadTable` in the levels of a schema: totals by group of levels, names, file's hash.

        Raises:
            UsageError: A column, level or total that has no place in the schema; cells that overlap or are missing.
        """
        what = f"benchmark: {self.name}"
        lines = records(what, _frame(self.data, what))
        columns = self._columns(lines[0], schema, what)
        texts = [tuple(level(line[name]) for name in columns) for line in lines]
        totals = [_total(line[self.count], place, what) for place, line in enumerate(lines, start=2)]
        groups = tuple(_groups(schema, name, [text[i] for text in texts], what) for i, name in enumerate(columns))
        shape = tuple(len(group.names) for group in groups)
        if np.prod(shape, dtype=float) > MOST_CELLS:
            raise UsageError(f"{what} would have more than {MOST_CELLS:,} cells.")
        values, first = np.zeros(shape), dict[tuple[int, ...], int]()
        for place, (text, total) in enumerate(zip(texts, totals, strict=True), start=2):
            cell = tuple(group.of[value] for group, value in zip(groups, text, strict=True))
            if first.setdefault(cell, place) != place:
                raise UsageError(
                    f"{what}: lines {first[cell]} and {place} both give the total of {_called(columns, text)}; keep "
                    "the one that is meant."
                )
            values[cell] = total
        control = ControlTotals(columns, tuple(group.codes for group in groups), values)
        _complete(control, set(first), [group.names for group in groups], schema, what)
        if not values.sum() > 0:
            raise UsageError(f"{what}: the totals are all 0.")
        return ReadTable(self, control, tuple(group.names for group in groups), _file(self.data))

    def _columns(self, line: Mapping[str, Any], schema: Schema, what: str) -> tuple[str, ...]:
        """Return a tuple of this table's columns that are of the schema, in its order.

        `line` is the table's first line, a mapping from column to value. UsageError, opening with `what`, for a column
        that the schema lacks, for no columns, or no column of counts.
        """
        if self.count not in line:
            raise UsageError(f"{what} has no column {self.count!r} of totals{nearest(self.count, line)}.")
        wanted = self.columns or [name for name in line if name != self.count]
        for name in wanted:
            if name not in line:
                raise UsageError(f"{what} has no column {name!r}{nearest(name, line)}.")
            if name not in schema.names:
                raise UsageError(
                    f"{what} has a column {name}, which is none of the schema{nearest(name, schema.names)}. List the "
                    "columns of the schema in `columns`, or sum over it."
                )
        if not wanted:
            raise UsageError(f"{what} has totals and no column of the schema.")
        return tuple(name for name in schema.names if name in wanted)


@dataclass(frozen=True, eq=False)
class ReadTable:
    """Control table in the levels of a schema."""

    table: ControlTable
    control: ControlTotals
    names: tuple[tuple[str, ...], ...]
    """Values of the groups as the table writes them, by column."""
    file: str | None
    """SHA-256 of the file; None for a frame."""

    @property
    def sha256(self) -> str:
        """Hash, a text, of the table's columns, groups of levels and totals."""
        return control_digest(self.control)

    def called(self, cell: int) -> str:
        """Return words for the cell of this number, row-major: COLUMN=LEVEL of each column."""
        return _called(self.control.columns, tuple(self.levels(cell).values()))

    def levels(self, cell: int) -> dict[str, str]:
        """Return a mapping from column to value, as the table writes it, of the cell of this number, row-major."""
        inside = np.unravel_index(cell, self.control.totals.shape)
        return {c: names[i] for c, names, i in zip(self.control.columns, self.names, inside, strict=True)}


def control_digest(control: ControlTotals) -> str:
    """Return a hash, a text, of control totals: their columns, groups of levels and totals."""
    return digest(control.columns, [group.tolist() for group in control.groups], control.totals.ravel().tolist())


def _refuse_together(found: Sequence[ReadTable], schema: Schema) -> bool:
    """True if one set of rows can have the totals of every `ReadTable`; UsageError if they contradict each other.

    False, unchecked, if the schema has too many combinations of their cells.
    """
    columns = [name for name in schema.names if any(name in read.control.columns for read in found)]
    atoms: dict[str, NDArray[np.intp]] = {}
    for name in columns:  # the levels that all tables with this column take together
        mine = [r.control.groups[r.control.columns.index(name)] for r in found if name in r.control.columns]
        _, first = np.unique(np.stack(mine), axis=1, return_index=True)
        atoms[name] = first
    shape = [len(first) for first in atoms.values()]
    if np.prod(shape, dtype=float) > MOST_KINDS:
        return False
    inside = np.indices(shape).reshape(len(shape), -1)
    rows: Codes = {name: first[inside[i]] for i, (name, first) in enumerate(atoms.items())}
    places = [read.control.places(rows) for read in found]
    kinds, cells = kinds_of(places, [read.control.totals.size for read in found])
    shares, targets = np.bincount(kinds) / len(kinds), [read.control.shares for read in found]
    whole = raked(shares, cells, targets)
    if whole.reached:
        return True
    for i, j in combinations(range(len(found)), 2):
        pair = raked(shares, [cells[i], cells[j]], [targets[i], targets[j]])
        if not pair.reached:
            raise UsageError(_contradiction((found[i], found[j]), (cells[i], cells[j]), shares * pair.ratios))
    raise UsageError(_contradiction(found, cells, shares * whole.ratios))


def _contradiction(found: Sequence[ReadTable], places: Sequence[NDArray[np.intp]], shares: NDArray[np.float64]) -> str:
    """Return the words of a refusal of the `ReadTable`s `found`: their names, and the cell that is missed most.

    `shares` is an array of shares of combinations of levels, as far as they could be raked; `places` has for each table
    an array, the cell of each combination.
    """
    worst = [
        np.abs(np.bincount(p, shares, r.control.totals.size) - r.control.shares)
        for r, p in zip(found, places, strict=True)
    ]
    table = int(np.argmax([each.max() for each in worst]))
    cell, read = int(np.argmax(worst[table])), found[table]
    off = float(worst[table][cell] * read.control.totals.sum())
    names = " and ".join(each.table.name for each in found)
    return (
        f"benchmark: {names} contradict each other: fitted together, {read.called(cell)} misses its total of "
        f"{read.control.totals.ravel()[cell]:,.10g} by {off:,.3g}. Take totals of the same people, or leave one table "
        "out."
    )


@dataclass(frozen=True)
class _Groups:
    """The groups of a column's levels in one table."""

    codes: NDArray[np.intp]
    names: tuple[str, ...]
    of: Mapping[str, int]
    """Value of a line -> number of its group."""


def _groups(schema: Schema, name: str, values: Sequence[str], what: str) -> _Groups:
    """Return the `_Groups` that `values`, texts in a table's column `name`, make of the schema's levels of that column.

    A value is a level, several, or a range. UsageError, opening with `what`, where they overlap, or leave a level out.
    """
    of, names = dict[str, int](), dict[tuple[str, ...], str]()
    codes = np.full(schema.size(name), -1, dtype=np.intp)
    for value in dict.fromkeys(values):
        levels = _levels(schema, name, value, what)
        if levels in names:  # another spelling of the same levels
            of[value] = list(names).index(levels)
            continue
        places = [schema.index(name, one) for one in levels]
        if (codes[places] >= 0).any():
            twice = next(one for one, place in zip(levels, places, strict=True) if codes[place] >= 0)
            raise UsageError(f"{what}: {name} {value!r} has the level {twice!r}, which another of its values has too.")
        of[value], codes[places] = len(names), len(names)
        names[levels] = value
    lacking = [schema.levels(name)[code] for code in np.flatnonzero(codes < 0)]
    if lacking:
        more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
        raise UsageError(
            f"{what} has no line for {name} {', '.join(lacking[:NAMED])}{more}, which the schema has; give lines for "
            "all levels, 0 for what cannot be, and several levels of one line joined by |."
        )
    return _Groups(codes, tuple(names.values()), of)


def _levels(schema: Schema, name: str, value: str, what: str) -> tuple[str, ...]:
    """Return a tuple of the levels of the schema's column `name` that a table's `value` names, also joined by |.

    UsageError, opening with `what`, for none.
    """
    parts = [value] if value in schema.levels(name) else [part.strip() for part in value.split("|")]
    try:
        found = [one for part in parts for one in levels_of(schema, name, part)]
    except (SchemaError, UsageError) as error:
        raise UsageError(f"{what}: {error}") from None
    return tuple(dict.fromkeys(found))


def _complete(
    control: ControlTotals, there: set[tuple[int, ...]], names: Sequence[Sequence[str]], schema: Schema, what: str
) -> None:
    """Raise UsageError if control totals have a cell without a line, unless the schema's rules forbid the cell.

    `there` is the set of cells with a line, tuples of indices along the columns; `names` has for each column the list
    of its values; the message opens with `what`.
    """
    missing = [cell for cell in np.ndindex(control.totals.shape) if cell not in there]
    if missing and schema.rules:
        inner = schema.restrict(control.columns)
        missing = [cell for cell in missing if not _forbidden(control, cell, inner)]
    if missing:
        first = _called(control.columns, [names[i][place] for i, place in enumerate(missing[0])])
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise UsageError(f"{what} has no line for {first}{more}; give 0 for what cannot be.")


def _forbidden(control: ControlTotals, cell: tuple[int, ...], inner: Schema) -> bool:
    """True if the rules of `inner`, the schema of the control totals' columns, forbid all combinations in a `cell`.

    `cell` is a tuple of group numbers, one a column; a group has one level or more.
    """
    if not inner.rules:
        return False
    codes = [np.flatnonzero(group == place) for group, place in zip(control.groups, cell, strict=True)]
    every = np.meshgrid(*codes, indexing="ij")
    rows: Codes = {name: grid.ravel() for name, grid in zip(control.columns, every, strict=True)}
    return bool(broken(inner, rows).all())


def _total(value: Any, place: int, what: str) -> float:
    """Return the total `value` of a line of a table as a number from 0 on.

    UsageError, opening with `what`, with the line's number `place`, for anything else.
    """
    found = figure(value)
    if not 0 <= found <= LARGEST:
        raise UsageError(f"{what}: the total in line {place} is no number from 0 to {LARGEST:g}.")
    return found


def _called(columns: Sequence[str], values: Sequence[str]) -> str:
    """Return text, a cell's name: COLUMN=VALUE for each of `columns` and `values`, by blanks."""
    return " ".join(f"{name}={value}" for name, value in zip(columns, values, strict=True))


def _frame(data: Any, what: str) -> Any:
    """Return `data`, a Parquet file or an Arrow table, as a pandas frame; a CSV file's path or a frame unchanged.

    UsageError, opening with `what`, for a file too large or damaged.
    """
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data.to_pandas()
    if not isinstance(data, str | PathLike) or Path(data).suffix != ".parquet":
        return data
    import pyarrow.parquet as pq

    try:
        if Path(data).stat().st_size > MAX_BYTES:
            raise UsageError(f"{what} is larger than {MAX_BYTES:,} bytes, which is no table of totals.")
        return pq.read_table(data).to_pandas()
    except FileNotFoundError:
        raise UsageError(f"benchmark: there is no file {data}.") from None
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UsageError(f"{what} is not a Parquet file ({type(error).__name__}).") from None


def _file(data: Any) -> str | None:
    """Return the SHA-256 of `data` if it is a file's path, None otherwise; UsageError for an unreadable file."""
    if not isinstance(data, str | PathLike):
        return None
    try:
        return sha256(Path(data))
    except (OSError, ValueError, StratsynthError) as error:
        raise UsageError(f"benchmark: {Path(data).name} cannot be read any more ({type(error).__name__}).") from None


@dataclass(frozen=True)
class Benchmark:
    """Control tables that the rows of a release are raked to, and how far a row may be raked."""

    tables: Sequence[ControlTable]
    """Tables of published totals."""
    trim: float = TRIM
    """Largest ratio of a row to what the fitted model gives it, above 1; totals that need more are missed."""

    def __post_init__(self) -> None:
        """Raise UsageError for all but a list of control tables, and for a ratio that is no number above 1."""
        if not is_list(self.tables) or not self.tables or any(type(one) is not ControlTable for one in self.tables):
            raise UsageError('benchmark: give a list of tables: [ControlTable("totals.csv", citation="...")].')
        object.__setattr__(self, "tables", tuple(self.tables))
        number("benchmark: trim", self.trim, above=1, most=MOST_TRIM, hint=", such as 5")
        object.__setattr__(self, "trim", float(self.trim))

    @property
    def exact(self) -> bool:
        """True if one of the tables has exact totals of the private rows."""
        return any(table.exact for table in self.tables)

    @classmethod
    def of(cls, given: Benchmark | Sequence[ControlTable]) -> Benchmark:
        """Return `given` if it is a `Benchmark`; of a list of control tables, one with the usual largest ratio."""
        return given if isinstance(given, Benchmark) else cls(given)

    def read(self, schema: Schema) -> tuple[ReadTable, ...]:
        """Return a tuple of this benchmark's tables as `ReadTable`, in the levels of a schema.

        UsageError for a table that cannot be read, two of the same columns, or totals that contradict each other.
        """
        found = tuple(table.read(schema) for table in self.tables)
        if any(set(one.control.columns) == set(other.control.columns) for one, other in combinations(found, 2)):
            raise UsageError("benchmark: two tables are of the same columns; keep the one that is meant.")
        sums = [float(read.control.totals.sum()) for read in found]
        for read, total in zip(found, sums, strict=True):
            if abs(total - sums[0]) > CONVERGED * sums[0]:
                raise UsageError(
                    f"benchmark: {found[0].table.name} adds up to {sums[0]:,.10g} and {read.table.name} to "
                    f"{total:,.10g}: totals of the same people are needed, so scale one of them, or take both from one "
                    "publication."
                )
        if not _refuse_together(found, schema):
            for pair in combinations(found, 2):
                _refuse_together(pair, schema)
        return found


def read_benchmark(section: Mapping[str, Any], folder: Path) -> Benchmark:
    """Return the `Benchmark` of the mapping `section`, a recipe's [benchmark]; paths are relative to `folder`.

    RecipeError for unknown keys or no tables.
    """
    check_keys(section, SECTION, "[benchmark]")
    tables = section.get("tables", ())
    if not tables:
        raise RecipeError('[benchmark] tables is missing: tables = [{ path = "totals.csv", citation = "..." }].')
    return Benchmark([_control_table(table, folder) for table in tables], section.get("trim", TRIM))


def _control_table(section: object, folder: Path) -> ControlTable:
    """Return the ControlTable of `section`, an entry of [benchmark] tables, by `folder`; RecipeError for wrong keys."""
    if not isinstance(section, Mapping):
        raise RecipeError("[benchmark] tables are tables, each with path and citation.")
    check_keys(section, KEYS, "[benchmark] tables")
    if "path" not in section:
        raise RecipeError("[benchmark] tables: path is missing: a CSV or Parquet file of levels and totals.")
    given = {key: value for key, value in section.items() if key not in ("path", "citation")}
    return ControlTable(folder / section["path"], section.get("citation", ""), **given)
