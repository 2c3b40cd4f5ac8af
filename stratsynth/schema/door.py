"""The public methods of `Schema`: files, drafts, reviews and restrictions; and refusals of what cannot be meant in one.

No row is read but by drafts. The row of a record depends on that record alone under any schema: a mistake in a refusal
lets an odd one pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stratsynth.checks import is_whole, quoted_value
from stratsynth.checks import path as given_path
from stratsynth.errors import SchemaError, UsageError, nearest
from stratsynth.schema import toml, typed
from stratsynth.schema.checks import MAX_LEVELS
from stratsynth.schema.columns import Categorical, Column, Numeric
from stratsynth.schema.rules import Rule
from stratsynth.schema.text import check_text
from stratsynth.schema.weight import ONE, RowWeight

if TYPE_CHECKING:
    from stratsynth.schema.schema import Schema


class SchemaDoor:
    """Methods of `Schema` for people and mechanisms, which the reading of rows does not need."""

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: a table of all columns with kind, number of categories, and values."""
        from stratsynth.schema.shown import schema_html

        return schema_html(cast("Schema", self))

    def __repr__(self) -> str:
        """Return one line of text: the names of the first columns, with the origin."""
        schema = cast("Schema", self)
        names = ", ".join(schema.names[:8]) + (", ..." if len(schema.names) > 8 else "")
        rules = f"; {len(schema.rules)} rule{'s' * (len(schema.rules) != 1)}" if schema.rules else ""
        columns = f"{len(schema.names)} column{'s' * (len(schema.names) != 1)}"
        return f"Schema({columns}: {names}{rules}; from {schema.origin})"

    @property
    def listed(self) -> str:
        """Names of the columns, as one text."""
        return ", ".join(cast("Schema", self).names)

    @property
    def most_rows(self) -> int:
        """Largest number of rows of one unit; rows of a unit may be equal, and are no independent sample."""
        unit = cast("Schema", self).unit
        return 1 if isinstance(unit, str) else unit.max_rows

    @property
    def max_multiplicity(self) -> int:
        """Largest weighted number of equal rows of one unit: its rows, each of the largest weight.

        The variance of a sum over a random sample is at most this many times that over as many unweighted, single rows.
        """
        return self.most_rows * cast("Schema", self).row_weight.most

    @property
    def oneways(self) -> tuple[tuple[str], ...]:
        """Tuple with a clique (name,) for each column, in order."""
        return tuple((name,) for name in cast("Schema", self).columns)

    def ready(self, *, public: bool = False) -> None:
        """Refuse (SchemaError) this schema if it is a draft that nobody has reviewed; called before anything is spent.

        A draft that was marked as one of public rows, which needs no reviewer, passes for `public` rows alone.
        """
        from stratsynth.schema.schema import NOBODY, PRIVATE

        schema = cast("Schema", self)
        nobody = schema.reviewed_by is None or (schema.reviewed_by == NOBODY and not public)
        if schema.origin == PRIVATE and nobody:
            raise SchemaError(
                "this schema was drafted from private data; check that its levels and bounds are public "
                "knowledge, then set reviewed_by to your name"
            )

    def restrict(self, names: Iterable[str]) -> Schema:
        """Return the schema of the columns `names` alone, in its own order, without rules that mention others."""
        schema, kept = cast("Schema", self), _named(names)
        for name in kept:
            schema.column(name)
        columns = {name: column for name, column in schema.columns.items() if name in kept}
        return replace(schema, columns=columns, rules=tuple(r for r in schema.rules if r.names <= kept))

    def without(self, names: Iterable[str]) -> Schema:
        """Return the schema without the columns `names`, and without rules that mention one of them."""
        schema, gone = cast("Schema", self), _named(names)
        for name in gone:
            schema.column(name)
        return self.restrict(name for name in schema.columns if name not in gone)

    @staticmethod
    def draft(data: Any) -> Schema:
        """INTERNAL: draft the columns of some data, for a person to review.

        It is read from every row, so nothing is fitted with it until a person has set `reviewed_by`, as `reviewed`
        does. Identifiers, names and free text are left out.

        Args:
            data: A pandas or polars frame, an Arrow table, or the path of a data file.

        Returns:
            The draft, whose origin is the private data.

        Raises:
            UsageError: Data that cannot be read; a SchemaError if no column can be drafted.

        Warns:
            DraftWarning: Remarks for the reviewer, on columns that are left out among others.
        """
        # Drafting reads data, which stand on schemas: the one arrow that goes the other way.
        drafted: Schema = import_module("stratsynth.data.draft").draft_schema(data)
        return drafted

    def reviewed(self, by: str, columns: Mapping[str, Column] | None = None) -> Schema:
        """Return the schema with its reviewer's name, which certificates repeat beside the origin of the draft.

        Args:
            by: The person who states that levels, bounds and bins are public knowledge.
            columns: Columns, by name, that the review changed or added; SchemaError for a name that is nearly another.
        """
        from stratsynth.schema.schema import NOBODY

        schema = cast("Schema", self)
        if not isinstance(by, str) or not by.strip() or by == NOBODY:
            raise SchemaError('reviewed: say who has reviewed the schema, such as reviewed("Jane Doe, methods").')
        if columns is not None and not isinstance(columns, Mapping):
            raise SchemaError("reviewed: columns is a table from names to columns that the review changed.")
        for name in (name for name in columns or () if name not in schema.columns):
            alike = [known for known in schema.names if known.casefold() == str(name).casefold()]
            hint = f"; did you mean {alike[0]!r}" if alike else nearest(str(name), schema.names)
            if hint:
                raise SchemaError(
                    f"reviewed: the draft has no column {name!r}{hint}? A column that the draft left out is added by "
                    "its own name, and one that is like another's by Schema({**draft.columns, ...})."
                )
        return replace(schema, reviewed_by=by, columns={**schema.columns, **(columns or {})})

    def to_toml(self) -> str:
        """Return the schema as TOML text, which `from_toml_text` reads back.

        Raises:
            SchemaError: A schema with content that files cannot hold.
        """
        schema = cast("Schema", self)
        if schema.row_weight != ONE and schema.row_weight.column is None:
            raise SchemaError("rows that each count more than 1 cannot be written to a schema file")
        return toml.dumped(toml.to_tables(schema))

    def write_toml(self, path: str | Path) -> None:
        """Write the schema to the TOML file `path`, which `from_toml` reads back.

        Raises:
            SchemaError: A schema that files cannot express.
        """
        file, text = given_path("the schema", path, error=SchemaError), self.to_toml()
        try:
            file.write_text(text, encoding="utf-8", newline="\n")
        except (OSError, ValueError) as error:  # a null character, too
            why = getattr(error, "strerror", None) or error
            raise SchemaError(f"{str(file)[:100]!r} cannot be written ({why}).") from None

    @staticmethod
    def from_toml(path: str | PathLike[str]) -> Schema:
        """Read a schema from the TOML file `path`.

        Raises:
            SchemaError: No such file, no TOML, or no valid schema.
        """
        file = given_path("the schema", path, error=SchemaError)
        return SchemaDoor.from_toml_text(toml.read_text(file), name=file.name)

    @staticmethod
    def from_toml_text(text: str, name: str = "schema") -> Schema:
        """Return the schema that a TOML text describes; `name` begins the message of a SchemaError."""
        from stratsynth.schema.linked_toml import OF_FORMAT, parse
        from stratsynth.schema.schema import Schema, Unit

        if not isinstance(text, str):
            raise SchemaError(f"the text of a schema must be a text, not {quoted_value(text)}.")
        if OF_FORMAT.search(text):
            return parse(text, str(name)).counted
        with toml.blame(str(name)):
            said = toml.parse(text)
            if isinstance(said["unit"], dict):
                said["unit"] = Unit(**said["unit"])
            if not said["columns"]:
                raise SchemaError("columns must name at least one column")
            return Schema(**said)

    @staticmethod
    def from_domain_json(path: str | PathLike[str]) -> Schema:
        """Return the schema of mbi's domain file `path`, {column: number of values}: columns of whole numbers from 0.

        Raises:
            SchemaError: No such file, or no such table.
        """
        from stratsynth.schema.schema import Schema

        file = given_path("the domain", path, error=SchemaError)
        with toml.blame(file.name):
            try:
                domain = json.loads(toml.read_text(file))
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
        """Return the schema in the file `path`: TOML, or mbi's domain file if the name ends in .json.

        Raises:
            UsageError: Another ending; a SchemaError for an invalid file.
        """
        ending = given_path("the schema", path, error=SchemaError).suffix.lower()
        if ending == ".toml":
            return SchemaDoor.from_toml(path)
        if ending == ".json":
            return SchemaDoor.from_domain_json(path)
        raise UsageError(f"{path}: a schema is a .toml file, or a domain .json file")


def _named(names: Iterable[str]) -> set[str]:
    """Return the column `names`, a list of texts, as a set; SchemaError for any other value."""
    found = None if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if found is None or not all(isinstance(name, str) for name in found):
        raise SchemaError(f'names are a list of columns, such as ["SEX", "MAR"], not {quoted_value(names)}.')
    return set(found)


def _counting(size: object) -> Categorical:
    if not is_whole(size) or not 1 <= size <= MAX_LEVELS:
        raise SchemaError(f"the number of values must be a whole number from 1 to {MAX_LEVELS:,}")
    return Categorical(levels=tuple(str(i) for i in range(size)), dtype="int64")


def check_columns(schema: Schema) -> None:
    """Raise SchemaError for a schema's column whose name cannot stand in released files, or that is no column."""
    for name, column in schema.columns.items():
        text = check_text("a column name", name)
        if any(c in text for c in ",|="):
            raise SchemaError(f"column name {text!r} must not hold ',', '|' or '=', which join names in released files")
        if not isinstance(column, (Categorical, Numeric)):
            raise SchemaError(
                f"column {name} must be Categorical(levels=[...]) or Numeric(lower=..., upper=...), "
                f"not {quoted_value(column)}"
            )


def check_beside(schema: Schema) -> None:
    """Raise SchemaError for a schema's unknown frame, columns of units or weights released or twice, and rules.

    Rules are refused that are none, or of levels or columns that do not exist.
    """
    unit = None if isinstance(schema.unit, str) else schema.unit.column
    if unit in schema.columns:
        raise SchemaError(f"unit: {unit} tells people apart, so it must not be released: leave it out of the columns")
    if schema.frame is not typed.PANDAS:
        typed.check_frame(schema.frame, schema.names)
    weight = schema.row_weight.column if isinstance(schema.row_weight, RowWeight) else None
    if weight in schema.columns:
        raise SchemaError(
            f"weight: rows count as {weight} says, and released rows count 1 each: leave it out of the columns"
        )
    if weight is not None and unit == weight:
        raise SchemaError(f"weight: {weight} tells people apart; no column does both")
    if not isinstance(schema.row_weight, RowWeight):
        raise SchemaError('weight must be { column = "...", max = ... }, in Python RowWeight(max, "...")')
    for i, rule in enumerate(schema.rules, start=1):
        if not isinstance(rule, Rule):
            raise SchemaError("rules must be a list of Rule")
        with toml.blame(f"rule {i}"):
            rule.cells(schema)
