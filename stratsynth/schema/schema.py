"""`Schema`: the columns of a table in order, the privacy unit, and the origin of the statement."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from stratsynth.checks import check_integer
from stratsynth.errors import SchemaError, nearest
from stratsynth.schema import checks, toml, typed
from stratsynth.schema.columns import Column
from stratsynth.schema.door import SchemaDoor, check_beside, check_columns
from stratsynth.schema.nested import Nested
from stratsynth.schema.rules import Rule
from stratsynth.schema.text import check_text
from stratsynth.schema.weight import ONE, RowWeight

PUBLIC = "public"
PRIVATE = "private data"
NOBODY = "nobody: the data were declared public"
"""Value of `reviewed_by` for a draft of rows declared public; such a draft is valid for these rows alone."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Privacy unit of a person with several rows: all rows with the same value of a column."""

    column: str
    """Column that identifies a person; not among the columns of the schema, as it is never released."""

    max_rows: int
    """Largest number of rows of one person in a fit: the first ones in the file; the others are left out."""

    def __post_init__(self) -> None:
        check_text("unit: column", self.column)
        check_integer("unit: max_rows", self.max_rows, 1, error=SchemaError)


@dataclass(frozen=True, eq=False, repr=False)
class Schema(SchemaDoor):
    """A public description of a table, written or reviewed by a person.

    Two schemas are equal if all their fields are, with columns in the same order.
    """

    columns: Mapping[str, Column]
    """Columns by name, in the order of the table; none in a stratum that is defined by all of them."""

    origin: str = PUBLIC
    """Origin of levels and bounds: "public", or "private data" for a draft made from the data."""

    reviewed_by: str | None = None
    """Person who checked that a draft made from private data reveals nothing; None if nobody has."""

    unit: str | Unit = "record"
    """Privacy unit: "record", one row; or a `Unit`, all rows of one person."""

    rules: tuple[Rule, ...] = ()
    """Combinations of values that cannot occur; no sample of a release holds one."""

    row_weight: RowWeight = ONE
    """Weight of a row in tables and sums: 1, or the value of one of its columns (`weight` in files)."""

    frame: str = typed.PANDAS
    """Kind of frame that samples come in: "pandas"; "numbered", whose columns are named by whole numbers; "polars"."""

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):
            raise SchemaError("columns must be a table from names to columns")
        object.__setattr__(self, "columns", dict(self.columns))
        object.__setattr__(self, "rules", checks.items("rules", self.rules))
        check_columns(self)
        checks.choice("origin", self.origin, (PUBLIC, PRIVATE))
        if self.reviewed_by is not None:
            check_text("reviewed_by", self.reviewed_by)
        if not isinstance(self.unit, Unit) and not (isinstance(self.unit, str) and self.unit == "record"):
            raise SchemaError('unit must be "record" or { column = "...", max_rows = ... }')
        check_beside(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    @property
    def beside(self) -> tuple[str, ...]:
        """Tuple of columns that are read and never released: the unit's and the weights', where declared."""
        unit = () if isinstance(self.unit, str) else (self.unit.column,)
        return unit if self.row_weight.column is None else (*unit, self.row_weight.column)

    @property
    def names(self) -> tuple[str, ...]:
        """Tuple of the names of all columns, in order."""
        return tuple(self.columns)

    @property
    def public(self) -> tuple[str, ...]:
        """Tuple of names of the columns declared public, unprotected under neighbours = "attribute"."""
        return tuple(name for name, column in self.columns.items() if column.public)

    def column(self, name: str) -> Column:
        """Return the column, `Categorical` or `Numeric`, of this `name`; SchemaError if there is none."""
        if name not in self.columns:
            raise SchemaError(f"there is no column {name!r} in the schema{nearest(name, self.names)}")
        return self.columns[name]

    def levels(self, name: str) -> tuple[str, ...]:
        """Return a tuple of the column's categories, texts by code; SchemaError if there is no column `name`."""
        return self.column(name).all_levels

    def size(self, name: str) -> int:
        """Return the number of categories of the column `name`; SchemaError if there is no such column."""
        return self.column(name).size

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """Return a tuple, the number of categories of each column of `clique`: the shape of their table."""
        sizes = self._sizes
        return tuple([sizes[name] if name in sizes else self.size(name) for name in clique])

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        return {name: column.size for name, column in self.columns.items()}

    def cells(self, clique: Iterable[str]) -> int:
        """Return the number of cells of a contingency table of the columns `clique`."""
        return math.prod(self.shape(clique))

    def index(self, name: str, level: str) -> int:
        """Return the code, from 0, of a `level` of the column `name`; SchemaError for an unknown column or level."""
        column = self.column(name)
        codes = column.codes
        if level not in codes:
            members = column.members if isinstance(column, Nested) else {}
            group = next((name for name, own in members.items() if level in own), None)
            if group is not None:
                raise SchemaError(f"column {name} is counted in groups here: name {group!r}, which has {level!r} in it")
            raise SchemaError(f"column {name} has no level {level!r}{nearest(level, codes)}")
        return codes[level]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the schema's content, in hexadecimal; it depends on the columns' order, not on that of labels."""
        said = toml.to_tables(self)
        said["columns"] = list(said["columns"].items())
        if self.row_weight != ONE and self.row_weight.column is None:
            said["row_weight"] = self.row_weight.most
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
