"""INTERNAL: drafting and checking a schema by looking at private rows, which no budget pays for.

What comes out of here is for the people who hold the data. A draft is refused by `fit` until a person has
reviewed it, and nothing made here may lie in a release folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stratsynth.data.csvlines import LeftOut
from stratsynth.data.load import places
from stratsynth.data.sources import Source
from stratsynth.errors import SchemaError, UsageError
from stratsynth.schema import codec, toml, values
from stratsynth.schema.columns import EXACT, Categorical, Column, Numeric
from stratsynth.schema.schema import PRIVATE, Schema, Unit
from stratsynth.schema.text import MISSING, number

FEW = 30
"""A column of whole numbers with at most this many different ones is drafted as categorical."""

MANY = 1000
"""A column of text with more different values than this is not drafted."""

_HEADER = """\
# INTERNAL: do not publish this file as it is.
# INTERNAL: its levels and bounds were read from private data, and may give away who is in them.
# INTERNAL: a person must review each column: replace what was seen in the data by what is public knowledge
# INTERNAL: (a code list, a questionnaire, the law), and remove levels that only single people have.
# INTERNAL: then set reviewed_by = "name" below `origin`. Until then nothing is fitted; afterwards, the name
# INTERNAL: and the origin are repeated in every certificate.
"""


def draft(source: Source) -> str:
    """INTERNAL. The TOML text of a draft schema for a table, with a note on each column for its reviewer."""
    import tomli_w  # only writers need it

    table = source.read(source.columns())
    columns: dict[str, Column] = {}
    notes: list[str] = []
    for name in table.column_names:
        try:
            column = _guess(name, table.column(name))
            Schema({name: column})  # refuses a name that is unfit
        except SchemaError as error:
            notes.append(f"# REVIEW: column {name!r} is left out: {error}\n")
        else:
            columns[name] = column
    if not columns:
        raise SchemaError("no column of this table can be drafted; write the schema by hand")
    lost = source.left_out()
    if lost.quotes or lost.fields:
        notes.append(
            f"# REVIEW: {lost.quotes + lost.fields} lines were left out, and are in every fit: see `schema check`\n"
        )
    said = toml.to_tables(Schema(columns, origin=PRIVATE))
    tables = said.pop("columns")
    parts = [
        f"\n# REVIEW: {_advice(columns[name])}\n{tomli_w.dumps({'columns': {name: keys}})}"
        for name, keys in tables.items()
    ]
    return "".join([_HEADER, *notes, tomli_w.dumps(said), *parts])


@dataclass(frozen=True, kw_only=True)
class ColumnCheck:
    """INTERNAL. What one column's values met when read against a schema, in numbers of rows."""

    outside: int
    """Values, not null, that are no level, no number, or a number that becomes missing."""

    clipped: int
    """Numbers moved to a bound."""

    missing: int
    """Nulls."""

    unseen: tuple[str, ...]
    """Levels that no row has."""


@dataclass(frozen=True, kw_only=True)
class UnitCheck:
    """INTERNAL. How the rows of a table belong to units of several rows."""

    units: int
    """How many different units there are."""

    beyond: int
    """Rows beyond the first `max_rows` of their unit: they are left out."""

    without: int
    """Rows whose unit is null or cannot be told: they are left out."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """INTERNAL. How a table fits a schema."""

    header: tuple[str, ...]
    """The columns that the table has."""

    absent: tuple[str, ...] = ()
    """Columns of the schema, or the one that tells units apart, that are not in the table once. Nothing else was
    looked at then."""

    lines: LeftOut | None = None
    """Lines of a CSV file that are no records and are left out; None for another kind of table."""

    unit: UnitCheck | None = None
    """How rows belong to units; None where each row is one."""

    rows: int = 0
    """The rows of the table, without lines that are no records."""

    left_out: int = 0
    """The rows that the schema's policy leaves out for a value in them."""

    columns: Mapping[str, ColumnCheck] = field(default_factory=dict)
    """What was found in each column of the schema."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, stamped INTERNAL."""
        found = {name: asdict(column) for name, column in self.columns.items()}
        said = {"INTERNAL": True, "rows": self.rows, "left_out": self.left_out, "columns": found}
        said |= {} if self.lines is None else {"lines_left_out": asdict(self.lines)}
        said |= {} if self.unit is None else {"unit": asdict(self.unit)}
        return said | ({"absent": list(self.absent), "header": list(self.header)} if self.absent else {})


def check(schema: Schema, source: Source) -> Check:
    """INTERNAL. Read a table against a schema, and count what does not fit."""
    header, tells = source.columns(), () if isinstance(schema.unit, str) else (schema.unit.column,)
    absent = tuple(name for name in (*schema.names, *tells) if header.count(name) != 1)
    if absent:
        return Check(header=header, absent=absent)
    table = source.read((*schema.names, *tells))
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
        rows=table.num_rows,
        left_out=int((~kept).sum()),
        columns=columns,
    )


def refuse_release_folder(path: str | Path) -> None:
    """Refuse a path inside a release folder: UsageError when it or a folder above holds a certificate."""
    place = Path(path).resolve()
    for folder in (place, *place.parents):
        if (folder / "certificate.json").exists():
            raise UsageError(f"{path} lies in the release {folder}; INTERNAL output must be written elsewhere")


def _check_unit(unit: Unit, data: pa.ChunkedArray) -> UnitCheck:
    owner = values.identities(data)
    known = owner[owner >= 0]
    beyond = int((places(known) >= unit.max_rows).sum())
    return UnitCheck(units=len(np.unique(known)), beyond=beyond, without=len(owner) - len(known))


def _check(column: Column, data: pa.ChunkedArray) -> tuple[Any, ColumnCheck]:
    null = np.asarray(data.is_null())
    clipped = 0
    if isinstance(column, Categorical):
        outside = values.codes(column, data) < 0
        codes = codec.encode_categorical(column, data)
    else:
        raw, own = values.floats(column, data)
        far = (raw < column.lower) | (raw > column.upper)
        outside = np.isnan(raw) & (own < 0)
        if column.outside == MISSING:
            outside |= far
        else:
            clipped = int(far.sum())
        codes, _ = codec.encode_numeric(column, data)
    counts = np.bincount(codes[codes >= 0], minlength=column.size)
    return codes, ColumnCheck(
        outside=int((outside & ~null).sum()),
        clipped=clipped,
        missing=int(null.sum()),
        unseen=tuple(level for level, count in zip(column.all_levels, counts, strict=True) if not count),
    )


def _guess(name: str, data: pa.ChunkedArray) -> Column:
    """Numeric for reals and many whole numbers, one word among them allowed; categorical for the rest."""
    values.check_type(name, data.type)
    texts = values.distinct(data)
    if not texts:
        raise SchemaError("it has no value at all")
    numbers = {text: value for text in texts if (value := number(text)) is not None}
    words = sorted(texts - numbers.keys())
    seen = sorted(set(numbers.values()))
    whole = all(value.is_integer() and abs(value) <= EXACT for value in seen)
    missing = bool(data.null_count)
    if len(words) <= 1 and len(seen) > (FEW if whole else 0) and not _is_code(numbers):
        own = words[0] if words else None
        return _guess_bounds(seen, whole=whole, missing=missing, own=own, dtype=_numeric_dtype(data.type))
    if len(texts) > MANY:
        raise SchemaError(f"it has more than {MANY} different texts; leave it out, or group its values first")
    levels = (*sorted(numbers, key=lambda text: (numbers[text], text)), *words)
    return Categorical(levels=levels, outside=MISSING if missing else None, dtype=_dtype(data.type))


def _is_code(numbers: Iterable[str]) -> bool:
    """Whether some number is spelt with a leading zero, as codes are and quantities are not."""
    return any(len(text) > 1 and text[0] == "0" and text[1].isdigit() for text in numbers)


def _guess_bounds(seen: list[float], *, whole: bool, missing: bool, own: str | None, dtype: str | None) -> Numeric:
    """Numeric, with the extremes rounded outward to 5, 50, 500 and so on, by how far apart they are."""
    least, most = Decimal(seen[0]), Decimal(seen[-1])
    step = Decimal(10) ** (most - least or abs(most) or Decimal(1)).adjusted() / 2
    step = max(step, Decimal(1)) if whole else step
    lower = (least / step).to_integral_value(ROUND_FLOOR) * step
    upper = (most / step).to_integral_value(ROUND_CEILING) * step
    upper += step if lower == upper else 0
    limit = Decimal(EXACT) if whole else Decimal(sys.float_info.max)
    return Numeric(
        lower=float(max(lower, -limit)),
        upper=float(min(upper, limit)),
        integer=whole,
        missing=missing,
        not_applicable=own,
        dtype=dtype,
    )


def _numeric_dtype(kind: pa.DataType) -> str | None:
    """The type to come back in; None, the schema's default, for text."""
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "float64"
    return None


def _dtype(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return "category"
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind):
        return "int64"
    return "float64" if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else "string"


def _advice(column: Column) -> str:
    if isinstance(column, Numeric):
        return "are these bounds public? Which bins does the release need?"
    if column.outside is None:
        return "are these levels public, and all that can occur? A row with any other value is left out."
    return 'are these levels public, and all that can occur? Any other value becomes "missing".'
