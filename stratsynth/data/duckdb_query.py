"""Check of SELECT statements: every row of the result must be a function of one record, and of nothing else.

The guarantee is for records of a table in the database. A join, a group, a limit, a window or a subquery lets one
record change many rows of the result, or decide which others are in it, so no sensitivity of ours would hold: they are
refused, with the remedy to write their result into a table, whose rows are the records from then on. What is left is
chosen columns, expressions of one row's values, and a condition on them. An expression that fails on a row fails on no
other: it is null there, and a condition that fails does not hold; one that could fill the memory is refused, and so is
a column that the database computes. What is run is written anew from what was checked, and names the table with its
schema and its database, so that no other one of that name can be meant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stratsynth.data.duckdb_bounds import check_length, cut
from stratsynth.errors import UsageError, nearest

REMEDY = (
    "A query selects columns, expressions of them and a condition, from one table: each of its rows must come from one "
    "record alone. Write anything else into a table of the database (CREATE TABLE ... AS) and name that; its rows are "
    "then the records that are protected."
)

_TABLE = {"alias", "at_clause", "catalog_name", "column_name_alias", "qualified_name", "query_location",
          "query_location_length", "sample", "schema_name", "table_name", "type"}  # fmt: skip
_SELECT = {"aggregate_handling", "cte_map", "from_table", "group_expressions", "group_sets", "having", "modifiers",
           "qualify", "sample", "select_list", "type", "where_clause"}  # fmt: skip
_MORE = ("group_expressions", "group_sets", "having", "modifiers", "qualify", "sample")
"""Parts of a SELECT that read more than one row."""
_OF_ONE_ROW = {"BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION",
               "OPERATOR", "TYPE"}  # fmt: skip
"""Classes of expressions that read one row's values; functions only if `_check_function` accepts them."""
_FUNCTIONS = {
    "!~~", "!~~*", "%", "*", "**", "+", "-", "/", "//", "abs", "cbrt", "ceil", "ceiling", "concat", "contains",
    "date_diff", "date_part", "date_trunc", "datediff", "datepart", "datetrunc", "day", "dayofweek", "dayofyear",
    "ends_with", "exp", "floor", "greatest", "hour", "isodow", "last_day", "least", "left", "len", "length", "ln",
    "log", "log10", "log2", "lower", "lpad", "ltrim", "make_date", "minute", "mod", "month", "pow", "power",
    "prefix", "quarter", "regexp_extract", "regexp_full_match", "regexp_matches", "regexp_replace", "replace",
    "reverse", "right", "round", "rpad", "rtrim", "second", "sign", "split_part", "sqrt", "starts_with",
    "strip_accents", "strptime", "substr", "substring", "suffix", "translate", "trim", "trunc", "try_strptime",
    "upper", "week", "year", "||", "~~", "~~*",
}  # fmt: skip
"""Functions that depend on their arguments alone, as far as known. That the catalogue calls another one consistent is
not enough: some read how a column is stored, or the plan of a statement."""
_PLAIN = {"COLUMN_REF", "CONSTANT", "STAR"}
"""Classes of expressions that cannot fail on a row."""


@dataclass(frozen=True)
class Chosen:
    """Part of a database that is read."""

    base: str
    """Quoted name of the table whose rows are the records."""
    select: str
    """Statement that reads them."""


def quoted(*names: str) -> str:
    """Return text: names joined by dots, each in double quotes, whatever characters it has."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def select(what: str, source: str) -> str:
    """Return the SQL text "SELECT what FROM source"; both arguments are quoted names or checked text."""
    return f"SELECT {what} FROM {source}"  # noqa: S608 - see above  # nosec B608


def chosen_table(connection: Any, name: str) -> Chosen:
    """Return a `Chosen` of a connection for the table `name` or schema.name: quoted name, SELECT of all of it.

    Raises:
        UsageError: No such table; a view; or one in several schemas.
    """
    found = [pair for pair in _tables(connection) if name in {pair[1], ".".join(pair)}]
    if len(found) > 1:
        raise UsageError(f"table: {name!r} is in several schemas: {', '.join('.'.join(pair) for pair in found)}.")
    if not found:
        views = connection.execute(
            "SELECT schema_name, view_name FROM duckdb_views() "
            "WHERE NOT internal AND database_name = current_database()"
        ).fetchall()
        if any(name in {pair[1], ".".join(pair)} for pair in views):
            raise UsageError(f"table: {name!r} is a view. {REMEDY}")
        known = [pair[1] for pair in _tables(connection)]
        raise UsageError(
            f"table: the database has no table {name!r}{nearest(name, known)}; it has: {', '.join(known) or 'none'}."
        )
    base = quoted(_database(connection), *found[0])
    return Chosen(base, select(cut(_columns(connection, *found[0])), base))


def chosen_query(connection: Any, query: str) -> Chosen:
    """Check an SQL query on a connection; return a `Chosen`: quoted table, text with each expression in TRY.

    Raises:
        UsageError: Anything but one SELECT of expressions of one row's values from one table.
    """
    [(text,)] = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    tree = json.loads(text)
    if tree["error"] or len(tree["statements"]) != 1:
        why = f" ({str(tree['error_message']).splitlines()[0]})" if tree["error"] else ""
        raise UsageError(f"query: this is not one SELECT{why}. {REMEDY}")
    node = tree["statements"][0]["node"]
    schema, table, alias = _check_select(connection, node)
    stored = _columns(connection, schema, table)
    columns = {name.lower(): kind for name, kind in stored.items()}
    names = {table.lower(), alias.lower()}
    for expression in node["select_list"]:
        if expression["class"] != "STAR":
            _check_expression(connection, expression, columns, names)
        elif expression["columns"] or expression["expr"] or expression["replace_list"]:
            raise UsageError(f"query: of stars only * and EXCLUDE are known. {REMEDY}")
    node["select_list"] = [_tried(expression) for expression in node["select_list"]]
    if node["where_clause"]:
        _check_expression(connection, node["where_clause"], columns, names)
        node["where_clause"] = _tried(_true(connection, node["where_clause"]))
    base = quoted(_database(connection), schema, table)
    short = f"({select(cut(stored), base)}) AS {quoted(alias)}"
    node["from_table"] = _parsed(connection, select("*", short))["from_table"]
    [(text,)] = connection.execute("SELECT json_deserialize_sql(?)", [json.dumps(tree)]).fetchall()
    return Chosen(base, text)


def _parsed(connection: Any, query: str) -> dict[str, Any]:
    """Return the parse tree, a dict, of one SELECT `query` of ours, as the database of the connection parses it."""
    [(text,)] = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    node: dict[str, Any] = json.loads(text)["statements"][0]["node"]
    return node


def _columns(connection: Any, schema: str, table: str) -> dict[str, str]:
    """Return {column: type}, in order, of a schema's `table` of a connection; UsageError if one is computed."""
    found = connection.execute(
        "SELECT column_name, data_type, is_generated FROM duckdb_columns() WHERE schema_name = ? AND table_name = ? "
        "AND database_name = current_database() ORDER BY column_index", [schema, table]
    ).fetchall()  # fmt: skip
    computed = [name for name, _, generated in found if generated]
    if computed:
        raise UsageError(
            f"{table}: its column {computed[0]} is computed by an expression (GENERATED), which may be of many rows "
            "or of any length. Copy the rows into a table without such columns (CREATE TABLE ... AS), and name that."
        )
    return {name: kind for name, kind, _ in found}


def _database(connection: Any) -> str:
    """Return the name that a connection has for its database, which DuckDB derives from the file's name."""
    [(name,)] = connection.execute("SELECT current_database()").fetchall()
    return str(name)


def _tables(connection: Any) -> list[tuple[str, str]]:
    return list(
        connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() "
            "WHERE NOT internal AND database_name = current_database() ORDER BY ALL"
        ).fetchall()
    )


def _check_select(connection: Any, node: dict[str, Any]) -> tuple[str, str, str]:
    """Return (schema, name, alias) of a connection's one table in the dict `node`, a parsed SELECT; or UsageError."""
    source = node.get("from_table") or {}
    plain = (
        node["type"] == "SELECT_NODE"
        and set(node) <= _SELECT
        and node["aggregate_handling"] == "STANDARD_HANDLING"
        and not node["cte_map"]["map"]
        and not any(node[key] for key in _MORE)
        and source.get("type") == "BASE_TABLE"
        and set(source) <= _TABLE
        and not any(source[key] for key in ("at_clause", "catalog_name", "column_name_alias", "sample"))
    )
    if not plain:
        raise UsageError(
            "query: it does more than choose from one table (a join, a group, an order, a limit, a sample, WITH, or no "
            f"table at all). {REMEDY}"
        )
    schema, table = source["schema_name"] or "main", source["table_name"]
    tables = {(s.lower(), t.lower()): (s, t) for s, t in _tables(connection)}
    if (schema.lower(), table.lower()) not in tables:
        known = [name for _, name in tables.values()]
        raise UsageError(
            f"query: the database has no table {table!r}{nearest(table, known)}, or it is a view. "
            f"It has: {', '.join(known) or 'none'}. {REMEDY}"
        )
    schema, table = tables[schema.lower(), table.lower()]
    return schema, table, source["alias"] or table


def _check_expression(connection: Any, expression: Any, columns: Mapping[str, str], tables: set[str]) -> None:
    """Raise UsageError unless `expression` is of one row: `columns` of `tables`, functions that `connection` knows."""
    for part in _parts(expression):
        if part["class"] not in _OF_ONE_ROW:
            kind = part["class"].lower()
            raise UsageError(f"query: it has a part that is not of one row's values ({kind}). {REMEDY}")
        if part["class"] == "COLUMN_REF":
            *of, name = part["column_names"]
            if name.lower() not in columns or not {table.lower() for table in of} <= tables:
                raise UsageError(f"query: its table has no column {name!r}{nearest(name, columns)}.")
        elif part["class"] == "FUNCTION":
            _check_function(connection, part)
    check_length(expression, columns)


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every expression in the parsed `tree`, itself first: each is a dict with a key `class`."""
    if isinstance(tree, dict):
        if "class" in tree:
            yield tree
        for value in tree.values():
            yield from _parts(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _parts(value)


def _check_function(connection: Any, part: dict[str, Any]) -> None:
    """Raise UsageError on a parsed call, `part`, but of listed functions, as `connection` knows them."""
    name = part["function_name"]
    kinds = connection.execute(
        "SELECT DISTINCT function_type, stability FROM duckdb_functions() WHERE lower(function_name) = lower(?)", [name]
    ).fetchall()
    whole = part["filter"] or part["distinct"] or part["order_bys"]["orders"] or part["schema"] or part["catalog"]
    if name.lower() not in _FUNCTIONS or kinds != [("scalar", "CONSISTENT")] or whole:
        raise UsageError(f"query: {name} is not known as a function of one row's values alone. {REMEDY}")


def refuse_macros(connection: Any) -> None:
    """Raise UsageError on the connection to a database with a macro of a built-in function's name."""
    known = connection.execute("SELECT function_name, internal FROM system.main.duckdb_functions()").fetchall()
    built_in = {name.lower() for name, internal in known if internal}
    taken = sorted(name for name, internal in known if not internal and name.lower() in built_in)
    if taken:
        raise UsageError(f"the database has a macro of a function's own name, {taken[0]}. Drop it, or rename it.")


def _true(connection: Any, condition: dict[str, Any]) -> dict[str, Any]:
    """Return a dict, the parsed `condition` cast to a truth value by a connection; it may fail on a row."""
    cast = _parsed(connection, "SELECT CAST(x AS BOOLEAN)")["select_list"][0]
    return {**cast, "child": condition}


def _tried(expression: dict[str, Any]) -> dict[str, Any]:
    """Return the parsed expression, a dict, wrapped in TRY, null on rows where it fails; plain columns unchanged."""
    if expression["class"] in _PLAIN:
        return expression
    inner = {**expression, "alias": ""}
    return {"class": "OPERATOR", "type": "OPERATOR_TRY", "alias": expression["alias"], "query_location": 0,
            "query_location_length": 0, "children": [inner]}  # fmt: skip
