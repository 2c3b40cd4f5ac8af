"""INTERNAL: drafting and checking a schema by looking at private rows, which no budget pays for.

Its output is for the people who hold the data. A draft is refused by `fit` until a person has
reviewed it, and nothing made here may lie in a release folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stratsynth.data.csvlines import LeftOut
from stratsynth.data.guess import guess
from stratsynth.data.guess_people import named_as_people, repeats
from stratsynth.data.guess_types import exact_types, frame_kind, unreadable, with_type
from stratsynth.data.load import places
from stratsynth.data.lost import Loss, broken_rules, grave_rules, outside, separator, unknown_values
from stratsynth.data.money import heavy_bin
from stratsynth.data.remarks import together
from stratsynth.data.sources import Source, open_source
from stratsynth.errors import DraftWarning, SchemaError, UsageError
from stratsynth.schema import encoding, spellings, toml, values
from stratsynth.schema.columns import Categorical, Column, Numeric
from stratsynth.schema.schema import PRIVATE, Schema, Unit
from stratsynth.schema.text import MISSING
from stratsynth.schema.weight import RowWeight
from stratsynth.schema.weight_names import weight_warnings

_HEADER = """\
# INTERNAL: do not publish this file as it is.
# INTERNAL: its levels and bounds were read from private data, and may give away who is in them.
# INTERNAL: a person must review each column: replace what was seen in the data by what is public knowledge
# INTERNAL: (a code list, a questionnaire, the law), and remove levels that only single people have.
# INTERNAL: then set reviewed_by = "name" below `origin`. Until then nothing is fitted; afterwards, the name
# INTERNAL: and the origin are repeated in every certificate.
"""


@dataclass(frozen=True)
class Draft:
    """INTERNAL. A draft schema, with notes for its reviewer."""

    schema: Schema
    """Drafted columns; the origin is the private data, and nobody has reviewed them."""
    notes: Mapping[str, Sequence[str]]
    """Remarks on each column of the schema; none for most."""
    left_out: Mapping[str, str]
    """Reason for each column of the table that is not drafted."""
    rows: int
    """Number of rows that were read."""
    lines_left_out: int = 0
    """Number of lines of a CSV file that are no records."""

    def warnings(self) -> list[str]:
        """Return a list of sentences: a reason to leave columns out, a remark on columns, or on the rows' weights.

        Remarks that differ in their numbers alone are one sentence, with all their columns.
        """
        remarks = [(name, note) for name, notes in self.notes.items() for note in notes]
        notes = [f"{names}: {note}" for names, note in together(remarks)]
        return [*self.lacking, *weight_warnings(self.schema), *notes]

    @property
    def lacking(self) -> list[str]:
        """List of sentences, one for each reason for which columns are left out."""
        return [f"{names} left out: {why}" for names, why in together(self.left_out.items(), "is", "are")]

    def to_toml(self) -> str:
        """Return the draft as the text of a schema file, with REVIEW comments on each column."""
        said = toml.to_tables(self.schema)
        tables = said.pop("columns")
        notes = [f"# REVIEW: column {name!r} is left out: {why}\n" for name, why in self.left_out.items()]
        if self.lines_left_out:
            lost = f"{self.lines_left_out} lines were left out, and are in every fit"
            notes.append(f"# REVIEW: {lost}: see `schema check`\n")
        notes += [f"# REVIEW: {text}\n" for text in weight_warnings(self.schema)]
        parts = []
        for name, keys in tables.items():
            remarks = [_advice(self.schema.columns[name]), *self.notes[name]]
            parts.append("\n" + "".join(f"# REVIEW: {remark}\n" for remark in remarks))
            parts.append(toml.dumped({"columns": {name: keys}}))
        return "".join([_HEADER, *notes, toml.dumped(said), *parts])


def drafted(source: Source, data: Any = None) -> Draft:
    """INTERNAL. Read every row of the table `source`, and return a Draft of its schema, with notes for its reviewer.

    `data` is the frame that the source was opened on, whose kind the schema names; None where there is none.

    Raises:
        SchemaError: A table none of whose columns can be drafted.
    """
    header = source.columns()
    if source.record is not None and len(header) == 1 and (mark := separator(header[0])):
        raise SchemaError(f"the fields of the file are separated by {mark}, not by commas; write it with commas")
    table = source.read(header)
    exact = exact_types(source)
    types = {**_texts(source), **source.own_types(), **{n: "decimal" for n, k in exact.items() if _is_decimal(k)}}
    columns: dict[str, Column] = {}
    notes: dict[str, Sequence[str]] = {}
    left_out = unreadable(source)
    for name in (name for name in table.column_names if name not in left_out):
        try:
            found = guess(name, table.column(name), types.get(name))
            Schema({name: found.column})  # refuses a name that is unfit
        except SchemaError as error:
            left_out[name] = str(error)
        else:
            columns[name], notes[name] = with_type(found.column, exact.get(name)), found.notes
    if not columns:
        reasons = "; ".join(f"{names}: {why}" for names, why in together(left_out.items()))
        raise SchemaError(
            f"no column of this table can be drafted ({reasons or 'it has none'}); change the table, or "
            "write the schema by hand"
        )
    lost = source.left_out()
    schema = Schema(columns, origin=PRIVATE, frame=frame_kind(data, source))
    return Draft(schema, notes, left_out, table.num_rows, lost.quotes + lost.fields)


def _is_decimal(kind: pa.DataType | str) -> bool:
    """True if `kind` is an Arrow type of decimals; False for every other, and for a text such as "mixed"."""
    return not isinstance(kind, str) and pa.types.is_decimal(kind)


def _texts(source: Source) -> dict[str, str]:
    """Return a mapping from column to "text" for those that `source` declares as text, drawn as text; {} for CSV."""
    declared = source.types()
    if declared is None:
        return {}
    return {f.name: "text" for f in declared if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)}


def draft(source: Source) -> str:
    """INTERNAL. Return the TOML text of a draft schema for the table `source`, with notes for its reviewer."""
    return drafted(source).to_toml()


def draft_schema(data: Any) -> Schema:
    """INTERNAL. Return the draft of some data (path, frame, table), a `Schema`; its notes come as a DraftWarning."""
    found = drafted(open_source(data), data)
    if said := found.warnings():
        warnings.warn("INTERNAL draft:\n" + "\n".join(f"- {one}" for one in said), DraftWarning, stacklevel=3)
    return found.schema


@dataclass(frozen=True, kw_only=True)
class ColumnCheck:
    """INTERNAL. Numbers of rows of one column whose values do not fit the schema."""

    outside: int
    """Values, not null, that are no level and no number, or are beyond the bounds and become missing."""

    clipped: int
    """Numbers moved to a bound."""

    missing: int
    """Nulls."""

    unseen: tuple[str, ...]
    """Levels without a row."""

    unknown: Mapping[str, int] = field(default_factory=dict)
    """Most frequent values of `outside`, with their numbers of rows."""


@dataclass(frozen=True, kw_only=True)
class UnitCheck:
    """INTERNAL. Numbers of units, and of rows that do not count, for units of several rows."""

    units: int
    """Number of different units."""

    beyond: int
    """Rows beyond the first `max_rows` of their unit, which are left out."""

    without: int
    """Rows whose unit is null or unreadable, which are left out."""


@dataclass(frozen=True, kw_only=True)
class WeightCheck:
    """INTERNAL. Sums and numbers of the row weights of a table."""

    total: int
    """Sum of the weights, as counted."""

    largest: float
    """Largest weight in the data, which is not public: declare one that is."""

    cut: int
    """Number of weights above the declared largest, which count as that."""

    people_cut: int
    """Sum of what is cut from them: people whom the release lacks."""

    missing: int
    """Number of rows whose weight is missing or no number."""

    nothing: int
    """Number of rows of weight 0."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """INTERNAL. Numbers of rows and values of a table that do not fit a schema."""

    header: tuple[str, ...]
    """Columns of the table."""

    absent: tuple[str, ...] = ()
    """Columns of the schema, or its unit or weight, that the table does not have exactly once. Nothing else was checked
    then."""

    lines: LeftOut | None = None
    """Lines of a CSV file that are left out as no records; None for other tables."""

    unit: UnitCheck | None = None
    """Rows by units; None if each row is a unit."""

    weight: WeightCheck | None = None
    """Weights of rows; None if each row counts 1."""

    rows: int = 0
    """Number of rows of the table, without lines that are no records."""

    left_out: int = 0
    """Number of rows that the schema's policy leaves out for one of their values."""

    columns: Mapping[str, ColumnCheck] = field(default_factory=dict)
    """Numbers of values that do not fit, for each column of the schema."""

    rules: tuple[tuple[str, int], ...] = ()
    """Each structural rule as a line of text, with the number of rows within the schema that break it."""

    warnings: tuple[str, ...] = ()
    """Remarks on weights, to be read before anything is spent."""

    @property
    def loss(self) -> Loss:
        """`Loss`, records that a fit would lose. One that is lost for two reasons counts twice, up to all records."""
        lines = 0 if self.lines is None else self.lines.quotes + self.lines.fields
        units = 0 if self.unit is None else self.unit.beyond + self.unit.without
        lost = self.left_out + units + (0 if self.weight is None else self.weight.nothing)
        worst = max(self.columns, key=lambda name: self.columns[name].outside, default="")
        unknown = self.columns[worst].outside if worst else 0
        return Loss(min(lost, self.rows) + lines, self.rows + lines, worst, unknown)

    @property
    def ok(self) -> bool:
        """True if no column is absent, and hardly any record would be lost or breaks a rule."""
        return not self.absent and not self.loss.grave and not grave_rules(self.rules, self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON values, stamped INTERNAL; absent columns and the header only if some are absent."""
        found = {name: asdict(column) for name, column in self.columns.items()}
        said = {"INTERNAL": True, "rows": self.rows, "left_out": self.left_out, "columns": found}
        said |= {} if self.lines is None else {"lines_left_out": asdict(self.lines)}
        said |= {} if self.unit is None else {"unit": asdict(self.unit)}
        said |= {} if self.weight is None else {"weight": asdict(self.weight)}
        said |= {"warnings": list(self.warnings)} if self.warnings else {}
        said |= {"rules": [{"rule": rule, "rows": count} for rule, count in self.rules]} if self.rules else {}
        said |= {} if self.absent else {"lost": self.loss.lost, "verdict": self.loss.words, "ok": self.ok}
        return said | ({"absent": list(self.absent), "header": list(self.header)} if self.absent else {})


def check(schema: Schema, source: Source) -> Check:
    """INTERNAL. Read the table `source` against a schema; return a `Check`: numbers of rows and values that do not fit.

    If columns are absent or twice there, only their names; no row is read then.
    """
    header = source.columns()
    absent = tuple(name for name in (*schema.names, *schema.beside) if header.count(name) != 1)
    if absent:
        return Check(header=header, absent=absent)
    table = source.read((*schema.names, *schema.beside))
    kept = np.ones(table.num_rows, bool)
    columns: dict[str, ColumnCheck] = {}
    for name, column in schema.columns.items():
        data = table.column(name)
        values.check_type(name, data.type)
        codes, columns[name] = _check(column, data)
        kept &= codes >= 0
    return Check(
        header=header,
        lines=source.left_out() if source.record is not None else None,
        unit=None if isinstance(schema.unit, str) else _check_unit(schema.unit, table.column(schema.unit.column)),
        weight=_check_weight(schema.row_weight, table),
        rows=table.num_rows,
        left_out=int((~kept).sum()),
        columns=columns,
        rules=broken_rules(schema, table),
        warnings=(*weight_warnings(schema, header), *_people(schema, table), *_heavy(schema, table)),
    )


def _people(schema: Schema, table: pa.Table) -> list[str]:
    """Return a list of sentences on columns of `schema` in the Arrow `table` that look like people with several rows.

    [] for a unit.
    """
    if schema.most_rows > 1:
        return []
    named = [name for name in schema.names if named_as_people(name)]
    return repeats((name, spellings.counted(table.column(name))) for name in named)


def _heavy(schema: Schema, table: pa.Table) -> list[str]:
    """Return a list of sentences on numeric columns of `schema` in the Arrow `table` with a bin of most of the money.

    Columns with equal words share a sentence.
    """
    found = []
    for name, column in schema.columns.items():
        if isinstance(column, Numeric):
            codes, numbers, _ = encoding.encode_numeric(column, table.column(name))
            real = (codes >= 0) & (codes < len(column.extents))
            found.append((name, heavy_bin(column, codes[real], np.abs(numbers[real]))))
    return [f"{names}: {text}" for names, text in together((name, text) for name, text in found if text)]


def refuse_release_folder(path: str | Path) -> None:
    """Refuse a path in a release folder: UsageError if it, or a folder above, holds a certificate."""
    place = Path(path).resolve()
    for folder in (place, *place.parents):
        if (folder / "certificate.json").exists():
            raise UsageError(f"{path} lies in the release {folder}; INTERNAL output must be written elsewhere")


def _check_unit(unit: Unit, data: pa.ChunkedArray) -> UnitCheck:
    """Return a UnitCheck of `data`, a unit's column: its units, rows beyond `max_rows`, rows without unit."""
    owner = values.identities(data)
    known = owner[owner >= 0]
    beyond = int((places(known) >= unit.max_rows).sum())
    return UnitCheck(units=len(np.unique(known)), beyond=beyond, without=len(owner) - len(known))


def _check_weight(weight: RowWeight, table: pa.Table) -> WeightCheck | None:
    """Return a WeightCheck of a `table`'s row weights by a schema's RowWeight; None if that names no column."""
    found = encoding.row_weights(weight, table)
    if weight.column is None or found is None:
        return None
    raw, _ = values.floats(Numeric(lower=0, upper=weight.most, bins=1), table.column(weight.column))
    known = raw[~np.isnan(raw)]
    return WeightCheck(
        total=int(found.sum()),
        largest=float(known.max(initial=0.0)),
        cut=int((np.rint(known) > weight.most).sum()),
        people_cut=int((np.rint(known) - weight.most).clip(min=0).sum()),
        missing=len(raw) - len(known),
        nothing=int((found == 0).sum()),
    )


def _check(column: Column, data: pa.ChunkedArray) -> tuple[Any, ColumnCheck]:
    """Return (level numbers, ColumnCheck) of the values of `data`, an Arrow column read as the schema's `column`."""
    clipped, unfit = 0, int(outside(column, data).sum())
    if isinstance(column, Categorical):
        codes, _ = encoding.encode_categorical(column, data)
    else:
        raw, _ = values.floats(column, data)
        clipped = 0 if column.outside == MISSING else int(((raw < column.lower) | (raw > column.upper)).sum())
        codes, *_ = encoding.encode_numeric(column, data)
    counts = np.bincount(codes[codes >= 0], minlength=column.size)
    return codes, ColumnCheck(
        outside=unfit,
        clipped=clipped,
        missing=int(data.null_count),
        unknown=unknown_values(column, data) if unfit else {},
        unseen=tuple(level for level, count in zip(column.all_levels, counts, strict=True) if not count),
    )


def _advice(column: Column) -> str:
    """Return the question that a reviewer of a draft's `column` has to answer."""
    if isinstance(column, Numeric):
        return "are these bounds public? Which bins does the release need?"
    if column.outside is None:
        return "are these levels public, and all that can occur? A row with any other value is left out."
    return 'are these levels public, and all that can occur? Any other value becomes "missing".'
