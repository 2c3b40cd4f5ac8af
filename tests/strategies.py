"""Hypothesis strategies for schemas and for tables that a schema may meet."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
from hypothesis import reject, settings
from hypothesis import strategies as st

from stratsynth.errors import SchemaError
from stratsynth.schema import Categorical, Column, Numeric, Rule, Schema, Unit
from stratsynth.schema.text import check_text

MAX_ROWS = 12


def examples(few: int, slow: int = 1000) -> settings:
    """So many examples of what takes long, and more of them with `--slow`."""
    return settings(max_examples=slow if settings.get_current_profile_name() == "slow" else few)


def _fit(text: str) -> bool:
    try:
        check_text("x", text)
    except SchemaError:
        return False
    return True


def texts() -> st.SearchStrategy[str]:
    """Texts that may be levels, many of them awkward: numbers, quotes, commas, words of other tools."""
    awkward = st.sampled_from(
        [
            "1",
            "01",
            "1.0",
            "-1",
            "+1",
            "1e0",
            "nan",
            "NA",
            "null",
            "True",
            "true",
            "false",
            "missing",
            " ",
            "a,b",
            '"',
            'a"b',
            "é",
            "\u2028",
            "0-4",
            "[0,5)",
            "<=50K",
            "N",
        ]
    )
    return st.one_of(awkward, st.text(max_size=5)).filter(_fit)


def names() -> st.SearchStrategy[str]:
    """Names that columns may have."""
    return texts().filter(lambda name: not set(name) & set(",|="))


def _labels(draw: st.DrawFn, levels: tuple[str, ...]) -> dict[str, str]:
    return draw(st.dictionaries(st.sampled_from(levels), texts(), max_size=2))


@st.composite
def categoricals(draw: st.DrawFn, *, lossless: bool = False) -> Categorical:
    """Categorical columns; when `lossless`, those whose every level comes back from its synthetic value."""
    dtype = draw(st.sampled_from(["string", "category", "int64", "float64", "bool"]))
    if dtype == "int64":
        levels = [str(i) for i in draw(st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=1, unique=True))]
    elif dtype == "float64":
        floats = st.floats(allow_nan=False, allow_infinity=False)
        levels = [repr(x) for x in draw(st.lists(floats, min_size=1, unique=True))]
    elif dtype == "bool":
        levels = draw(st.sampled_from([["True", "False"], ["0", "1"], ["true"], ["FALSE", "1"]]))
    else:
        levels = draw(st.lists(texts(), min_size=1, max_size=6, unique=True))
    own = None
    if dtype in {"string", "category"}:
        own = draw(st.none() | st.sampled_from(levels))
    elif not lossless and draw(st.booleans()):
        own = "N/A"
        levels = [*levels, own]
    outside = draw(st.sampled_from([None, "missing", levels[0]]))
    plain = Categorical(levels=tuple(levels), outside=outside)
    labels = _labels(draw, plain.all_levels)
    return Categorical(levels=levels, labels=labels, not_applicable=own, outside=outside, dtype=dtype)


@st.composite
def numerics(draw: st.DrawFn, *, lossless: bool = False) -> Numeric:
    """Numeric columns, with bins, edges or neither."""
    integer = draw(st.booleans())
    number: st.SearchStrategy[Any] = (
        st.integers(-(2**53), 2**53) | st.integers(-20, 120)
        if integer
        else st.floats(allow_nan=False, allow_infinity=False) | st.floats(-10, 10)
    )
    edges = sorted(draw(st.sets(number, min_size=2, max_size=6)))
    keys: dict[str, Any] = {"lower": edges[0], "upper": edges[-1], "integer": integer}
    how = draw(st.sampled_from(["edges", "wide edges", "bins", "default"]))
    if how == "edges":
        keys["edges"] = edges
    elif how == "wide edges":
        beyond = 3 if integer else 0.5
        keys |= {"lower": edges[0] + beyond, "upper": edges[-1] - beyond, "edges": edges}
    elif how == "bins":
        keys["bins"] = draw(st.integers(1, 7))
    if draw(st.booleans()):
        keys["spikes"] = sorted(draw(st.sets(st.sampled_from(edges) | number, min_size=1, max_size=2)))
    if draw(st.booleans()):
        keys["special"] = [draw(st.sampled_from(["-9" * 9, "8" * 15, str(int(edges[-1]) + 7)]))]
    if draw(st.booleans()) and "edges" not in keys:
        keys["spacing"] = "log"
    keys["shape"] = draw(st.sampled_from(["even", "log", "smooth"]))
    keys["digits"] = None if integer else draw(st.sampled_from([None, 0, 2, 9]))
    if draw(st.booleans()):
        keys["not_applicable"] = draw(st.sampled_from(["N", "9e999", " ", "not, applicable"]))
    keys["missing"] = draw(st.booleans())
    keys["outside"] = draw(st.sampled_from(["clip", "missing"]))
    dtypes = [None, "string"]
    if not lossless or "not_applicable" not in keys:
        dtypes += ["float64", "int64" if integer else "float64"]
    keys["dtype"] = draw(st.sampled_from(dtypes))
    keys["transform"] = draw(st.sampled_from([None, None, "log", "square-root", "fourth-root"]))
    if keys["transform"] is not None:
        keys["transform_unit"] = draw(st.sampled_from([1, 1000.0, 0.25]))
    try:
        return Numeric(**keys)
    except SchemaError:  # bounds that moved past an edge, more bins than numbers between
        reject()


def columns(*, lossless: bool = False) -> st.SearchStrategy[Column]:
    """Columns of either kind."""
    return st.one_of(categoricals(lossless=lossless), numerics(lossless=lossless))


@st.composite
def schemas(draw: st.DrawFn, *, lossless: bool = False) -> Schema:
    """Schemas of one to three columns."""
    chosen = draw(st.dictionaries(names(), columns(lossless=lossless), min_size=1, max_size=3))
    rules = []
    if len(chosen) > 1 and draw(st.booleans()):
        first, second, *_ = chosen
        never = draw(st.lists(st.sampled_from(chosen[second].all_levels), min_size=1, max_size=2))
        when = "< 15" if isinstance(chosen[first], Numeric) else chosen[first].all_levels[0]
        rules.append(Rule(when={first: when}, never={second: never}))
    return Schema(
        chosen,
        origin=draw(st.sampled_from(["public", "private data"])),
        reviewed_by=draw(st.none() | st.just("A. Reviewer")),
        unit=draw(st.sampled_from(["record", Unit(column="PERSON", max_rows=3)])),
        rules=tuple(rules),
    )


@st.composite
def codes(draw: st.DrawFn, schema: Schema) -> dict[str, list[int]]:
    """Codes of a few rows, all within the schema."""
    n = draw(st.integers(0, MAX_ROWS))
    return {
        name: draw(st.lists(st.integers(0, schema.size(name) - 1), min_size=n, max_size=n)) for name in schema.names
    }


def cells(column: Column) -> st.SearchStrategy[str]:
    """Texts that a file may hold for a column: levels, numbers of every spelling, and anything else."""
    spelt = st.sampled_from(
        [
            "1e308",
            "1e400",
            "-1e400",
            "5e-324",
            "1e-400",
            "0x10",
            "1_000",
            " 12 ",
            "+3.",
            ".5",
            "-0",
            "inf",
            "NaN",
            "9" * 40,
            "1" * 2000,
            "x" * 5000,
            "1\x00",
            "\x00",
            "1e99999999999999999999",
            "True",
            "FALSE",
            "3.0",
        ]
    )
    numbers = st.floats().map(repr) | st.integers().map(str)
    return st.one_of(st.sampled_from(column.all_levels), spelt, numbers, st.text(max_size=5))


@st.composite
def _array(draw: st.DrawFn, column: Column, n: int) -> pa.Array:
    text = cells(column).map(lambda t: t.encode("utf-8", "surrogatepass").decode("utf-8", "ignore"))
    kinds: list[tuple[st.SearchStrategy[Any], pa.DataType]] = [
        (text, pa.string()),
        (text, pa.large_string()),
        (text, pa.string_view()),
        (text, pa.dictionary(pa.int8(), pa.string())),
        (st.binary(max_size=6) | text.map(str.encode), pa.binary()),
        (st.binary(max_size=6), pa.binary_view()),
        (st.binary(min_size=2, max_size=2), pa.binary(2)),
        (st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 100), pa.int64()),
        (st.integers(0, 2**64 - 1), pa.uint64()),
        (st.floats() | st.integers(-5, 100).map(float), pa.float64()),
        (st.floats(width=32), pa.float32()),
        (st.floats(width=16), pa.float16()),
        (st.booleans(), pa.bool_()),
        (st.decimals(-100, 100, places=2), pa.decimal128(30, 2)),
        (st.dates(), pa.date32()),
        (
            st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),  # noqa: DTZ001
            pa.timestamp("us"),
        ),
        (st.integers(-(2**63), 2**63 - 1), pa.timestamp("s", "Nowhere/Else")),
        (st.times(), pa.time64("us")),
        (st.integers(-(2**63), 2**63 - 1), pa.duration("s")),
        (st.none(), pa.null()),
    ]
    values, kind = draw(st.sampled_from(kinds))
    return pa.array(draw(st.lists(st.none() | values, min_size=n, max_size=n)), kind)


@st.composite
def tables(draw: st.DrawFn, schema: Schema) -> pa.Table:
    """Tables with the schema's columns, of any readable type, holding anything."""
    n = draw(st.integers(0, MAX_ROWS))
    return pa.table([draw(_array(schema.columns[name], n)) for name in schema.names], names=list(schema.names))
