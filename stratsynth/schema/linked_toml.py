"""Schema files of two linked tables: format stratsynth-schema/2, a table of TOML for each, and what links them.

`[tables.household]` has `key`, `kinds`, with a table for each other kind, `columns` and `derived`; `[tables.person]`
has `parent`, `order`, `slots`, `most`, `difference` and `columns`; `[unit]` names the parent. The names of the tables
are free.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stratsynth.checks import path as given_path
from stratsynth.checks import quoted_value
from stratsynth.errors import SchemaError, nearest
from stratsynth.schema import toml
from stratsynth.schema.kinds import ParentKind
from stratsynth.schema.linked import DIFFERENCES, ChildCount, ChildSum, Derived, LinkedSchema
from stratsynth.schema.rules import Rule
from stratsynth.schema.schema import Schema

FORMAT = "stratsynth-schema/2"
SLOTS = ("reference", "second", "others")
OF_FORMAT = re.compile(rf'^[ \t]*format[ \t]*=[ \t]*"{FORMAT}"', re.MULTILINE)
_TABLE = ("origin", "reviewed_by", "columns", "forbid")


def load(path: object) -> LinkedSchema:
    """Return the linked schema in a TOML file; SchemaError for no such file, or an invalid one."""
    file = given_path("the schema", path, error=SchemaError)
    return parse(toml.read_text(file), Path(file).name)


def parse(text: str, name: str = "schema") -> LinkedSchema:
    """Return the linked schema that a TOML text describes; `name` begins the message of a SchemaError."""
    with toml.blame(name):
        try:
            given = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise SchemaError(f"not valid TOML: {error}") from None
        if given.get("format") != FORMAT:
            raise SchemaError(f'format must be "{FORMAT}" for two linked tables; Schema reads a schema of one table')
        _known("the file", given, ("format", "tables", "unit", "forbid"))
        tables = _table("tables", given.get("tables"))
        parents = [n for n, keys in tables.items() if "parent" not in _table(f"tables.{n}", keys)]
        children = [n for n in tables if n not in parents]
        if len(parents) != 1 or len(children) != 1 or tables[children[0]]["parent"] != parents[0]:
            raise SchemaError("tables: two are wanted, of which one names the other as its parent")
        return _linked(given, parents[0], children[0])


def dumped(linked: LinkedSchema) -> str:
    """Return the linked schema as TOML text; keys at their defaults are left out."""
    parent, child = linked.names
    above: dict[str, Any] = {"key": linked.key}
    if linked.occupied:
        [(column, levels)] = linked.occupied.items()
        above["kinds"] = {"column": column, "occupied": list(levels)}
        above["kinds"] |= {"absent": list(linked.absent)} if linked.absent else {}
        above["kinds"] |= {name: _of_kind(kind, child) for name, kind in linked.kinds.items()}
    below: dict[str, Any] = {
        "parent": parent, "order": list(linked.order), "slots": list(SLOTS), "most": linked.most
    }  # fmt: skip
    if linked.difference is not None:
        ends = {"ends": list(linked.differences), "previous": list(linked.previous or ())}
        below["difference"] = {"column": linked.difference, **ends}
    above |= _columns_of(linked.parent)
    if linked.derived:
        above["derived"] = {name: _keys(each, child) for name, each in linked.derived.items()}
    found: dict[str, Any] = {
        "format": FORMAT,
        "unit": {"table": parent, "weight": linked.weight},
        "tables": {parent: above, child: below | _columns_of(linked.child)},
    }
    if linked.rules:
        found["forbid"] = [{"when": dict(rule.when), "never": dict(rule.never)} for rule in linked.rules]
    return toml.dumped(found)


def _linked(given: Mapping[str, Any], parent: str, child: str) -> LinkedSchema:
    above, below = given["tables"][parent], given["tables"][child]
    _known(f"tables.{parent}", above, ("key", "kinds", "derived", *_TABLE), ("key", "columns"))
    _known(f"tables.{child}", below, ("parent", "order", "slots", "most", "difference", *_TABLE), ("order", "columns"))
    unit = _table("unit", given.get("unit", {"table": parent}))
    _known("unit", unit, ("table", "weight"), ("table",))
    if unit["table"] != parent:
        raise SchemaError(
            f'unit: linked tables protect a {parent} with all its rows: write unit = {{ table = "{parent}" }}; a '
            f"{child} alone is protected by a schema of that table"
        )
    if tuple(below.get("slots", SLOTS)) != SLOTS:
        raise SchemaError(f"slots must be {list(SLOTS)}, the one way in which child rows are counted")
    kinds, apart = _table("kinds", above.get("kinds", {})), _table("difference", below.get("difference", {}))
    others = {name: keys for name, keys in kinds.items() if isinstance(keys, dict)}
    _known("kinds", kinds, ("column", "occupied", "absent", *others), ("column", "occupied") if kinds else ())
    _known("difference", apart, ("column", "ends", "previous"), ("column",) if apart else ())
    derived = _table("derived", above.get("derived", {}))
    rules = given.get("forbid", [])
    if not isinstance(rules, list):
        raise SchemaError("forbid must be a list of tables: write [[forbid]]")
    for rule in rules:
        _known("forbid", _table("a rule", rule), ("when", "never"), ("when", "never"))
    return LinkedSchema(
        parent=_schema(parent, above),
        child=_schema(child, below),
        key=above["key"],
        order=below["order"],
        **({"most": below["most"]} if "most" in below else {}),
        derived={name: _derived(name, keys, child) for name, keys in derived.items()},
        difference=apart.get("column"),
        differences=apart.get("ends", DIFFERENCES),
        previous=apart.get("previous"),
        **({"weight": unit["weight"]} if "weight" in unit else {}),
        occupied={kinds["column"]: kinds["occupied"]} if kinds else {},
        kinds={name: _kind(name, keys, child) for name, keys in others.items()},
        absent=tuple(kinds.get("absent", ())),
        rules=tuple(Rule(**rule) for rule in rules),
        names=(parent, child),
    )


def _columns_of(schema: Schema) -> dict[str, Any]:
    tables = toml.to_tables(schema)
    return {key: tables[key] for key in _TABLE if key in tables and tables[key] != "public"}


def _schema(name: str, keys: Mapping[str, Any]) -> Schema:
    """Return the `Schema` of the table `name` by `keys`, the mapping [tables.name], as a file of it alone is read."""
    alone = {"format": toml.FORMAT, **{key: keys[key] for key in _TABLE if key in keys}}
    return Schema.from_toml_text(toml.dumped(alone), name=f"tables.{name}")


def _of_kind(kind: ParentKind, child: str) -> dict[str, Any]:
    """Return the keys of a `ParentKind`, with the number of its rows in the table `child` that are counted."""
    return {"levels": list(kind.levels), "columns": list(kind.columns), child: int(kind.single)}


def _kind(name: str, keys: Mapping[str, Any], child: str) -> ParentKind:
    _known(f"kinds {name}", keys, ("levels", "columns", child), ("levels",))
    if type(keys.get(child, 0)) is not int or keys.get(child, 0) not in (0, 1):
        raise SchemaError(f"kinds {name}: {child} is 1, where each has one {child} row that is counted, or 0")
    return ParentKind(levels=keys["levels"], columns=keys.get("columns", ()), single=bool(keys.get(child, 0)))


def _keys(each: Derived, child: str) -> dict[str, Any]:
    if isinstance(each, ChildSum):
        left = {} if each.left is None else {"left": list(each.left)}
        return {"sum": f"{child}.{each.column}", **left}
    keys: dict[str, Any] = {"count": child}
    if each.where:
        keys["where"] = {n: list(c) if isinstance(c, tuple) else c for n, c in each.where.items()}
    if each.besides_reference:
        keys["besides"] = "reference"
    return {**keys, "top": each.top}


def _derived(name: str, given: object, child: str) -> Derived:
    with toml.blame(f"derived {name}"):
        keys = _table("its entry", given)
        if "sum" in keys:
            _known("it", keys, ("sum", "left"))
            table, _, column = str(keys["sum"]).partition(".")
            if table != child or not column:
                raise SchemaError(f'sum names a column of the {child}: "{child}.COLUMN"')
            return ChildSum(column=column, left=keys.get("left"))
        _known("it", keys, ("count", "where", "besides", "top"), ("count",))
        if keys["count"] != child:
            raise SchemaError(f'count must be "{child}", whose rows are counted')
        if keys.get("besides", "reference") != "reference":
            raise SchemaError('besides must be "reference", or left out')
        more = {"top": keys["top"]} if "top" in keys else {}
        return ChildCount(where=_where(keys.get("where", {})), besides_reference="besides" in keys, **more)


def _where(given: object) -> dict[str, Any]:
    """Return {column: condition}: `given`, a table of levels and ranges, or one comparison as text: "AGEP < 18"."""
    if not isinstance(given, str):
        return _table("where", given)
    match = re.fullmatch(r"\s*(\S+)\s*(<=|>=|<|>|=)\s*(-?\d+)\s*", given)
    if match is None:
        raise SchemaError(f'where: {quoted_value(given)} is no comparison with a whole number, as "AGEP < 18" is')
    column, sign, number = match[1], match[2], int(match[3])
    ends = {"<": f"..{number - 1}", "<=": f"..{number}", ">": f"{number + 1}..", ">=": f"{number}..", "=": str(number)}
    return {column: ends[sign]}


def _table(what: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SchemaError(f"{what} must be a table")
    return value


def _known(what: str, given: Mapping[str, object], known: Sequence[str], required: Sequence[str] = ()) -> None:
    for key in given:
        if key not in known:
            raise SchemaError(f"{what}: unknown key {key!r}{nearest(key, known)}")
    for key in required:
        if key not in given:
            raise SchemaError(f"{what}: {key} is missing")
