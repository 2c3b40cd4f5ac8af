"""Schema files: reading and writing of TOML, with errors that name the file, the column and the key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.errors import SchemaError, nearest
from stratsynth.files.reading import read_bytes
from stratsynth.schema.columns import Categorical, Column, Numeric
from stratsynth.schema.drawn import DrawnWithin
from stratsynth.schema.nested import Nested
from stratsynth.schema.rules import Rule
from stratsynth.schema.temporal import KINDS, Temporal
from stratsynth.schema.text import check_text
from stratsynth.schema.typed import PANDAS
from stratsynth.schema.weight import ONE, RowWeight

if TYPE_CHECKING:
    from stratsynth.schema.schema import Schema

FORMAT = "stratsynth-schema/1"
MAX_BYTES = 16_000_000
"""Largest size of a schema file, in bytes."""

_PARTS = 8
"""Largest number of parts of a key (a schema's have at most four): the parser's time grows with its square."""
_TEXTS = re.compile(r'"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*')
_LONG_KEY = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{_PARTS}}}")

_KINDS: dict[str, type[Categorical | Numeric]] = {
    "categorical": Categorical,
    "nested": Nested,
    "numeric": Numeric,
    **dict.fromkeys(KINDS, Temporal),
}
IMPLIED = {"kind", "integer"}
"""Fields of a `Temporal` that files do not have: `kind` is the column's kind, and values are always whole."""
_BOUNDS = ("lower", "upper", "edges", "spikes")
"""Keys that dates and times are written for, instead of numbers."""
_EXAMPLES = {"date": "2024-12-31", "datetime": "2024-12-31 23:59:59", "time": "23:59:59"}
_TOP = ("format", "origin", "reviewed_by", "unit", "weight", "frame", "columns", "forbid")


@contextmanager
def blame(place: str) -> Iterator[None]:
    """Put the text `place` and a colon before the message of every SchemaError raised in the `with` block."""
    try:
        yield
    except SchemaError as error:
        raise SchemaError(f"{place}: {error}") from None


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of the schema file `path`; SchemaError if it is unreadable, too large or not UTF-8."""
    with blame(str(path)):
        try:
            content = read_bytes(Path(path), MAX_BYTES, error=SchemaError)
        except OSError as error:
            raise SchemaError(f"cannot be read ({error.strerror or error})") from None
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise SchemaError(f"line {line} is not UTF-8 text") from None


def parse(text: str) -> dict[str, Any]:
    """Return {argument of `Schema`: value} of TOML text, its columns and rules checked; its unit a text or a dict.

    Raises:
        SchemaError: An invalid schema, with the line, or the column and the key.
    """
    if _LONG_KEY.search(_TEXTS.sub("t", text)):
        raise SchemaError(f"a key has more than {_PARTS} parts between dots; a schema's have at most four")
    try:
        said = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError, and so is a huge number
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        reason = reason.replace("at end of document", f"at line {text.count(chr(10)) + 1}, the end")
        raise SchemaError(f"not valid TOML: {reason}") from None
    if said.get("format") != FORMAT:
        raise SchemaError(f'format must be "{FORMAT}"')
    _check_keys(said, _TOP)
    unit = said.get("unit", "record")
    if isinstance(unit, dict):
        with blame("unit"):
            _check_keys(unit, ("column", "max_rows"), ("column", "max_rows"))
    return {
        "columns": {name: _column(name, keys) for name, keys in _table("columns", said.get("columns")).items()},
        "origin": said.get("origin", "public"),
        "reviewed_by": said.get("reviewed_by"),
        "unit": unit,
        "rules": _rules(said.get("forbid", [])),
        "row_weight": _weight(said["weight"]) if "weight" in said else ONE,
        "frame": said.get("frame", PANDAS),
    }


def _weight(given: object) -> RowWeight:
    """Return the RowWeight that `given`, the table [weight], describes; SchemaError for no table, or wrong keys."""
    with blame("weight"):
        if not isinstance(given, dict):
            raise SchemaError('must be a table, such as { column = "PWGTP", max = 300 }')
        _check_keys(given, ("column", "max", "missing", "mean"), ("column", "max"))
    said = {key: given[key] for key in ("missing", "mean") if key in given}
    return RowWeight(given["max"], check_text("weight: column", given["column"]), **said)


def dumped(tables: Mapping[str, Any]) -> str:
    """Return `tables`, a dict of plain values by key, as TOML text, in which lists fill their lines."""
    import tomli_w  # only writers need it

    return _LIST.sub(_filled, _PAIR.sub(r"\1[\2, \3],", tomli_w.dumps(tables)))


_PAIR = re.compile(r"(    )\[\n +([-+.\w]+),\n +([-+.\w]+),\n    \],")
"""A pair of numbers in a list, as tomli_w writes it."""
_LIST = re.compile(r"\[\n((?:    (?:[^\[\]\n{]*|\[[-+.\w]+, [-+.\w]+\]),\n)+)\]")
"""A list of texts, numbers or pairs as tomli_w writes it; a list with a bracket in a text does not match, and stays."""
_WIDTH = 108


def _filled(match: re.Match[str]) -> str:
    lines, items = [""], [item.strip(" ") for item in match[1].removesuffix("\n").split("\n")]
    if sum(map(len, items)) + len(items) < _WIDTH - 20:
        return f"[{' '.join(items).removesuffix(',')}]"
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) >= _WIDTH:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{item}"
    return "[\n" + "".join(f"    {line}\n" for line in lines) + "]"


def to_tables(schema: Schema) -> dict[str, Any]:
    """Return the schema as a dict of tables, lists, texts and numbers for TOML; keys at their defaults are left out."""
    said: dict[str, Any] = {"format": FORMAT, "origin": schema.origin}
    if schema.reviewed_by is not None:
        said["reviewed_by"] = schema.reviewed_by
    said["unit"] = schema.unit if isinstance(schema.unit, str) else dict(vars(schema.unit))
    if (weight := schema.row_weight).column is not None:
        said["weight"] = {"column": weight.column, "max": weight.most}
        if weight.missing:
            said["weight"]["missing"] = weight.missing
        if weight.mean is not None:
            said["weight"]["mean"] = _plain(float(weight.mean))
    if schema.frame != PANDAS:
        said["frame"] = schema.frame
    said["columns"] = {name: _keys(column) for name, column in schema.columns.items()}
    if schema.rules:
        said["forbid"] = [{"when": dict(rule.when), "never": dict(rule.never)} for rule in schema.rules]
    return said


def _keys(column: Column) -> dict[str, Any]:
    temporal = isinstance(column, Temporal)
    kind = column.kind if isinstance(column, Temporal) else next(k for k, c in _KINDS.items() if type(column) is c)
    keys: dict[str, Any] = {"kind": kind}
    drawn = {key.name for key in fields(DrawnWithin)}
    for key in sorted(fields(column), key=lambda key: key.name in drawn):  # which come last
        value = getattr(column, key.name)
        if value in (key.default, {}) or (temporal and key.name in IMPLIED):
            continue
        if isinstance(column, Temporal) and kind != "duration" and key.name in _BOUNDS:
            keys[key.name] = [column.spell(v) for v in value] if isinstance(value, tuple) else column.spell(value)
        else:
            keys[key.name] = _plain(value)
    return keys


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _column(name: str, keys: object) -> Column:
    with blame(f"column {name}"):
        given = dict(_table("its entry", keys))
        kind = given.pop("kind", None)
        if not isinstance(kind, str) or kind not in _KINDS:
            names = ", ".join(f'"{name}"' for name in _KINDS)
            raise SchemaError(f"kind must be one of {names}{nearest(kind, _KINDS)}")
        made = _KINDS[kind]
        known = [key.name for key in fields(made) if made is not Temporal or key.name not in IMPLIED]
        _check_keys(given, known, ("levels",) if issubclass(made, Categorical) else ("lower", "upper"))
        if made is Temporal:
            _refuse_numbers(kind, given)
            return Temporal(kind=kind, **given)
        return made(**given)


def _refuse_numbers(kind: str, given: Mapping[str, Any]) -> None:
    """Raise SchemaError if a bound in the dict `given` is a number, not text, of a `kind` "date", "datetime" or "time".

    Columns of other kinds pass.
    """
    for key in _BOUNDS if kind in _EXAMPLES else ():
        values = given.get(key, [])
        if any(isinstance(value, int | float) for value in (values if isinstance(values, list) else [values])):
            raise SchemaError(f"{key} must be a {kind}, such as {_EXAMPLES[kind]}, not a number")


def _rules(entries: object) -> tuple[Rule, ...]:
    if not isinstance(entries, list):
        raise SchemaError("forbid must be a list of tables: write [[forbid]]")
    rules = []
    for i, entry in enumerate(entries, start=1):
        with blame(f"rule {i} of forbid"):
            given = _table("its entry", entry)
            _check_keys(given, ("when", "never"), ("when", "never"))
            rules.append(Rule(**given))
    return tuple(rules)


def _table(what: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SchemaError(f"{what} must be a table")
    return value


def _check_keys(given: Mapping[str, object], known: Sequence[str], required: Sequence[str] = ()) -> None:
    """Raise SchemaError for a key of the dict `given` not in the list `known`, or if it lacks one in `required`."""
    for key in given:
        if key not in known:
            raise SchemaError(f"unknown key {key!r}{nearest(key, known)}")
    for key in required:
        if key not in given:
            raise SchemaError(f"{key} is missing")
