"""`Schema`: every column of a table in order, the unit of privacy, and where the statement comes from."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from stratsynth.checks import is_whole, said
from stratsynth.checks import path as given_path
from stratsynth.errors import SchemaError, UsageError, nearest
from stratsynth.schema import toml
from stratsynth.schema.checks import MAX_LEVELS
from stratsynth.schema.columns import Categorical, Column, Numeric
from stratsynth.schema.nested import Nested
from stratsynth.schema.rules import Rule
from stratsynth.schema.text import check_text
from stratsynth.schema.weight import ONE, RowWeight

PUBLIC = "public"
PRIVATE = "private data"
NOBODY = "nobody: the data were declared public"
"""What `reviewed_by` says of a draft of rows that were declared public: it is good for such rows alone."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What is protected when one person can have several rows: all rows with the same value of a column."""

    column: str
    """The column that identifies a person; not among the columns of the schema, as it is never released."""

    max_rows: int
    """The most rows that one person contributes: the first ones in the file; the others are left out."""

    def __post_init__(self) -> None:
        check_text("unit: column", self.column)
        if not is_whole(self.max_rows) or self.max_rows < 1:
            raise SchemaError("unit: max_rows must be a whole number, at least 1")


@dataclass(frozen=True, eq=False)
class Schema:
    """A public statement of what a table can hold, written or reviewed by a person.

    Two schemas are equal when they say the same, columns in the same order.
    """

    columns: Mapping[str, Column]
    """The columns by name, in the order of the table. A stratum that is defined by all of them has none."""

    origin: str = PUBLIC
    """Where levels and bounds come from: "public", or "private data" for a draft made from the data."""

    reviewed_by: str | None = None
    """Who has checked that a draft made from private data reveals nothing; None when nobody has."""

    unit: str | Unit = "record"
    """What is protected: "record", one row; or a `Unit`, all rows of one person."""

    rules: tuple[Rule, ...] = ()
    """Combinations of values that cannot occur. No sample of a release holds one."""

    row_weight: RowWeight = ONE
    """How much a row counts in tables and sums: 1, or what one of its columns says (`weight` in files)."""

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):
            raise SchemaError("columns must be a table from names to columns")
        object.__setattr__(self, "columns", dict(self.columns))
        object.__setattr__(self, "rules", tuple(self.rules))
        for name, column in self.columns.items():
            _check_name(name)
            if not isinstance(column, (Categorical, Numeric)):
                raise SchemaError(
                    f"column {name} must be Categorical(levels=[...]) or Numeric(lower=..., upper=...), "
                    f"not {said(column)}"
                )
        if self.origin not in (PUBLIC, PRIVATE):
            raise SchemaError(f'origin must be "{PUBLIC}" or "{PRIVATE}"')
        if self.reviewed_by is not None:
            check_text("reviewed_by", self.reviewed_by)
        if self.unit != "record" and not isinstance(self.unit, Unit):
            raise SchemaError('unit must be "record" or { column = "...", max_rows = ... }')
        if isinstance(self.unit, Unit) and self.unit.column in self.columns:
            raise SchemaError(
                f"unit: {self.unit.column} tells people apart, so it must not be released: leave it out of the columns"
            )
        self._check_weight()
        for i, rule in enumerate(self.rules, start=1):
            if not isinstance(rule, Rule):
                raise SchemaError("rules must be a list of Rule")
            with toml.blame(f"rule {i}"):
                rule.cells(self)  # refuses levels and columns that do not exist

    def _check_weight(self) -> None:
        """A weight's column is neither released nor what tells people apart."""
        weight = self.row_weight
        if not isinstance(weight, RowWeight):
            raise SchemaError('weight must be { column = "...", max = ... }, in Python RowWeight(max, "...")')
        if weight.column is None:
            return
        if weight.column in self.columns:
            raise SchemaError(
                f"weight: rows count as {weight.column} says, and released rows count 1 each: leave it out of the "
                "columns"
            )
        if isinstance(self.unit, Unit) and self.unit.column == weight.column:
            raise SchemaError(f"weight: {weight.column} tells people apart; no column does both")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        """The columns' names."""
        names = ", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")
        rules = f"; {len(self.rules)} rule{'s' * (len(self.rules) != 1)}" if self.rules else ""
        return f"Schema({len(self.names)} column{'s' * (len(self.names) != 1)}: {names}{rules}; from {self.origin})"

    def _repr_html_(self) -> str:
        """For a notebook: every column with its kind, its categories and what they mean."""
        from stratsynth.schema.shown import schema_html

        return schema_html(self)

    @property
    def most_rows(self) -> int:
        """The most rows of one unit; rows of a unit may be alike, and are no independent sample."""
        return 1 if isinstance(self.unit, str) else self.unit.max_rows

    @property
    def alike(self) -> int:
        """The largest count of rows that say the same: those of one unit, each of the largest weight.

        The variance of a sum over a random sample is at most this many times that of as large a count of single rows.
        """
        return self.most_rows * self.row_weight.most

    @property
    def beside(self) -> tuple[str, ...]:
        """The columns that are read and never released: what tells units apart, and the rows' weights."""
        unit = () if isinstance(self.unit, str) else (self.unit.column,)
        return unit if self.row_weight.column is None else (*unit, self.row_weight.column)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self.columns)

    @property
    def public(self) -> tuple[str, ...]:
        """The columns that need no protection under neighbours = "attribute"."""
        return tuple(name for name, column in self.columns.items() if column.public)

    @property
    def oneways(self) -> tuple[tuple[str], ...]:
        """Every clique of one column."""
        return tuple((name,) for name in self.columns)

    def column(self, name: str) -> Column:
        """The column of that name; SchemaError when there is none."""
        if name not in self.columns:
            raise SchemaError(f"there is no column {name!r} in the schema{nearest(str(name), self.names)}")
        return self.columns[name]

    def levels(self, name: str) -> tuple[str, ...]:
        """The categories of a column, in the order of their codes."""
        return self.column(name).all_levels

    def size(self, name: str) -> int:
        """The number of categories of a column."""
        return self.column(name).size

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """The sizes of the columns of a clique."""
        sizes = self._sizes
        return tuple([sizes[name] if name in sizes else self.size(name) for name in clique])

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        return {name: column.size for name, column in self.columns.items()}

    def cells(self, clique: Iterable[str]) -> int:
        """The number of cells of a clique's contingency table."""
        return math.prod(self.shape(clique))

    def index(self, name: str, level: str) -> int:
        """The code of a level; SchemaError when there is no such column or level."""
        column = self.column(name)
        codes = column.codes
        if level not in codes:
            members = column.members if isinstance(column, Nested) else {}
            group = next((name for name, own in members.items() if level in own), None)
            if group is not None:
                raise SchemaError(f"column {name} is counted in groups here: name {group!r}, which has {level!r} in it")
            raise SchemaError(f"column {name} has no level {level!r}{nearest(str(level), list(codes)[:1000])}")
        return codes[level]

    def restrict(self, names: Iterable[str]) -> Schema:
        """The schema of these columns alone, in the order they have here; rules on others are dropped."""
        kept = set(names)
        for name in kept:
            self.column(name)
        columns = {name: column for name, column in self.columns.items() if name in kept}
        return replace(self, columns=columns, rules=tuple(r for r in self.rules if r.names <= kept))

    def without(self, names: Iterable[str]) -> Schema:
        """The schema of all other columns; rules that mention a column gone are dropped."""
        gone = set(names)
        for name in gone:
            self.column(name)
        return self.restrict(name for name in self.columns if name not in gone)

    @cached_property
    def sha256(self) -> str:
        """The hash of what the schema says: of its columns in order, whatever the order of labels."""
        said = toml.to_tables(self)
        said["columns"] = list(said["columns"].items())
        if self.row_weight != ONE and self.row_weight.column is None:
            said["row_weight"] = self.row_weight.most
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def ready(self, *, public: bool = False) -> None:
        """Refuse a draft that nobody has reviewed: to be called before anything is spent.

        That nobody had to, as the rows were declared `public`, holds for such rows alone.
        """
        nobody = self.reviewed_by is None or (self.reviewed_by == NOBODY and not public)
        if self.origin == PRIVATE and nobody:
            raise SchemaError(
                "this schema was drafted from private data; check that its levels and bounds are public "
                "knowledge, then set reviewed_by to your name"
            )

    @staticmethod
    def draft(data: Any) -> Schema:
        """INTERNAL: what the columns of some data look like, for a person to review.

        It is read from every row, so nothing is fitted with it until a person has set `reviewed_by`, as `reviewed`
        does. Identifiers, names and free text are left out.

        Args:
            data: A pandas or polars frame, an Arrow table, or the path of a data file.

        Returns:
            The draft, whose origin is the private data.

        Raises:
            UsageError: Data that cannot be read; a SchemaError where no column can be drafted.

        Warns:
            DraftWarning: What a reviewer should know, of columns that are left out among others.
        """
        # Drafting reads data, which stand on schemas: the one arrow that goes the other way.
        drafted: Schema = import_module("stratsynth.data.draft").draft_schema(data)
        return drafted

    def reviewed(self, by: str, columns: Mapping[str, Column] | None = None) -> Schema:
        """The schema as a person has reviewed it; certificates repeat the name, and where the draft came from.

        Args:
            by: Who says that levels, bounds and bins are public knowledge.
            columns: What the review changed, or added.
        """
        if not isinstance(by, str) or not by.strip() or by == NOBODY:
            raise SchemaError('reviewed: say who has reviewed the schema, such as reviewed("Jane Doe, methods").')
        return replace(self, reviewed_by=by, columns={**self.columns, **(columns or {})})

    def to_toml(self) -> str:
        """The schema as TOML text, which `from_toml_text` reads back."""
        return toml.dumps(self)

    def write_toml(self, path: str | Path) -> None:
        """Write the schema to a TOML file, which `from_toml` reads back.

        Raises:
            SchemaError: A schema that files have no words for.
        """
        Path(path).write_text(self.to_toml(), encoding="utf-8", newline="\n")

    @staticmethod
    def from_toml(path: str | PathLike[str]) -> Schema:
        """Read a schema from a TOML file.

        Raises:
            SchemaError: A file that is not there, is no TOML, or makes no sense as a schema.
        """
        file = given_path("the schema", path, error=SchemaError)
        return Schema.from_toml_text(toml.read_text(file), name=file.name)

    @staticmethod
    def from_toml_text(text: str, name: str = "schema") -> Schema:
        """Read a schema from TOML text; `name` is what error messages call it."""
        with toml.blame(name):
            said = toml.parse(text)
            unit = Unit(**said.unit) if isinstance(said.unit, dict) else said.unit
            if not said.columns:
                raise SchemaError("columns must name at least one column")
            return Schema(said.columns, said.origin, said.reviewed_by, unit, said.rules, said.row_weight)

    @staticmethod
    def from_domain_json(path: str | PathLike[str]) -> Schema:
        """Read mbi's domain file, {column: number of values}: columns of whole numbers from 0.

        Raises:
            SchemaError: A file that is not there, or is no such table.
        """
        with toml.blame(Path(path).name):
            try:
                domain = json.loads(toml.read_text(path))
            except (ValueError, RecursionError):
                domain = None
            if not isinstance(domain, dict) or not domain:
                raise SchemaError("a domain file must be a JSON table from column to number of values")
            columns = {}
            for name, size in domain.items():
                with toml.blame(f"column {name}"):
                    columns[name] = _counting(size)
            return Schema(columns)

    @staticmethod
    def load(path: str | PathLike[str]) -> Schema:
        """Read a schema file: TOML, or mbi's domain file when the name ends in .json.

        Raises:
            UsageError: Another ending; a SchemaError where the file makes no sense.
        """
        ending = given_path("the schema", path, error=SchemaError).suffix.lower()
        if ending == ".toml":
            return Schema.from_toml(path)
        if ending == ".json":
            return Schema.from_domain_json(path)
        raise UsageError(f"{path}: a schema is a .toml file, or a domain .json file")


def _check_name(name: object) -> None:
    text = check_text("a column name", name)
    if any(c in text for c in ",|="):
        raise SchemaError(f"column name {text!r} must not hold ',', '|' or '=', which join names in released files")


def _counting(size: object) -> Categorical:
    if not is_whole(size) or not 1 <= size <= MAX_LEVELS:
        raise SchemaError(f"the number of values must be a whole number from 1 to {MAX_LEVELS:,}")
    return Categorical(levels=tuple(str(i) for i in range(size)), dtype="int64")
