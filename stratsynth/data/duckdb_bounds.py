"""Lengths of values in DuckDB: one record's values never grow until a fit runs out of memory.

Running out of memory is no error that is tried row by row, so whether a fit succeeds would be for one record to say.
Two rules, from the catalogue and the query's own text: a value of more than LONGEST bytes is null where it is read,
as an unreadable value is in any file; and an expression is refused unless its value has at most MOST bytes whatever
the row holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from stratsynth.errors import UsageError
from stratsynth.schema.values import MAX_BYTES

LONGEST = MAX_BYTES
"""Largest length, in bytes, of a value that is read; a longer one is null."""
MOST = 1 << 16
"""Largest length, in bytes, that the value of an expression may have."""

_SHORT = re.compile("U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|BOOLEAN|FLOAT|DOUBLE|DECIMAL|DATE|TIME|INTERVAL|UUID|ENUM")
"""Beginning of the name of a type whose values are all short."""
_NESTED = ("MAP", "STRUCT", "UNION", "VARIANT")
"""Beginnings of the names of types of several values; those of lists end in a bracket."""
_PLAIN_SIZE = 64
"""Bytes of a number, a time, or a member of an enumeration, as text; an enumeration's own names are public."""
_JUDGED = {"COMPARISON", "CONJUNCTION", "BETWEEN"}
"""Classes of expressions that are truth values."""
_WIDENED = {"lower": 4, "strip_accents": 4, "translate": 4, "upper": 4}
"""Functions whose result may have as many times the bytes: another character may stand for each."""
_PADDED = {"lpad", "rpad"}
_REPLACED = {"regexp_replace", "replace"}


def cut(columns: Mapping[str, str]) -> str:
    """Return SQL, the list of a SELECT: the columns (name -> type), null where a value has more than LONGEST bytes."""
    return ", ".join(_cut(name, kind) for name, kind in columns.items())


def check_length(part: Any, columns: Mapping[str, str]) -> int:
    """Return an int, most bytes of the value of parsed expression `part`; UsageError if more than MOST.

    So is every value on the way to it. Functions and columns are those that `stratsynth.data.duckdb_query` accepts.

    Args:
        part: The parsed expression.
        columns: Type of each column of the table, by its name in lower case.
    """
    size = _most_bytes(part, columns)
    if size > MOST:
        raise UsageError(
            f"query: the value of an expression could have more than {MOST:,} bytes. Join fewer texts, or write it "
            "into a table of the database and name that."
        )
    return size


def _most_bytes(part: Any, columns: Mapping[str, str]) -> int:
    kind, below = part["class"], [check_length(child, columns) for child in _children(part)]
    if kind == "CONSTANT":
        return _PLAIN_SIZE + len(str(part["literal"]["text"]).encode())
    if kind == "COLUMN_REF":
        name = part["column_names"][-1]
        stored = columns[name.lower()]
        if _is_nested(stored):
            raise UsageError(f"query: column {name} holds several values, however many; leave it out.")
        return _PLAIN_SIZE if _SHORT.match(stored) else LONGEST
    if kind in _JUDGED:
        return _PLAIN_SIZE
    if kind == "CAST":
        if any(child["class"] == "TYPE" for child in part["type_expr"]["children"]):
            raise UsageError("query: it makes lists or structures of values; convert to single values only.")
        return _PLAIN_SIZE + 4 * max(below)  # bytes as text take four characters each
    if kind == "FUNCTION":
        return _function_bytes(part, below)
    return max(below, default=_PLAIN_SIZE)  # one of the values below, or a truth value


def _function_bytes(part: Mapping[str, Any], below: list[int]) -> int:
    name, given = part["function_name"].lower(), [argument["expression"] for argument in part["arguments"]]
    if name in _PADDED:
        length = _literal(given[1]) or "" if len(given) > 1 else ""
        if not length.isascii() or not length.isdigit():
            raise UsageError(f"query: {name} takes the length as a plain number, such as {name}(column, 5, '0').")
        return _PLAIN_SIZE + 4 * int(length)
    if name in _REPLACED:
        instead = _literal(given[2]) if len(given) > 2 else None
        if instead is None:
            raise UsageError(f"query: {name} takes what is put in as a plain text, such as {name}(column, ' ', '').")
        return (below[0] + 1) * (1 + 2 * len(instead.encode()))  # \1 of two bytes may put in all that was found
    return _PLAIN_SIZE + sum(below) * _WIDENED.get(name, 1)


def _literal(part: Mapping[str, Any]) -> str | None:
    return str(part["literal"]["text"]) if part["class"] == "CONSTANT" else None


def _children(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield the parsed expressions, dicts, directly below the parsed `tree`, a dict or list; types are left out."""
    inner = tree.values() if isinstance(tree, dict) else tree
    for value in inner:
        if isinstance(value, dict) and "class" in value:
            if value["class"] != "TYPE":
                yield value
        elif isinstance(value, dict | list):
            yield from _children(value)


def _cut(name: str, kind: str) -> str:
    whole = '"' + name.replace('"', '""') + '"'
    if _SHORT.match(kind) or _is_nested(kind):  # columns of several values are refused by their type
        return whole
    length = {"VARCHAR": f"strlen({whole})", "BLOB": f"octet_length({whole})", "BIT": f"octet_length({whole})"}
    size = length.get(kind, f"strlen(TRY_CAST({whole} AS VARCHAR))")
    return f"CASE WHEN {size} <= {LONGEST} THEN {whole} END AS {whole}"


def _is_nested(kind: str) -> bool:
    return kind.endswith("]") or kind.startswith(_NESTED)
