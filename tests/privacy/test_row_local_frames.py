"""A row of a frame is read by that row alone: not by the type that pandas chose for its column."""

import datetime as dt
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from stratsynth import open_table
from stratsynth.census.acs.catalogue import tasks
from stratsynth.census.acs.folktables import from_folktables
from stratsynth.data.frames import declared
from stratsynth.data.load import kept
from stratsynth.data.sources import open_source
from stratsynth.errors import SchemaError
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.schema.encoding import encode
from stratsynth.schema.schema import Unit

TEXTS = (
    "0",
    "1",
    "2",
    "3.5",
    "0.1",
    "true",
    "false",
    "x",
    "2020-01-02",
    "2020-01-02 03:04:05",
    "2020-01-02 03:04:05.5",
    "9007199254740993",
    "9007199254740992",
    "-1",
)
SCHEMA = Schema(
    {
        "as_level": Categorical(levels=TEXTS, outside="missing"),
        "as_number": Numeric(lower=-10, upper=1e17, missing=True),
    }
)
UTC, NEW_YORK = dt.UTC, ZoneInfo("America/New_York")
COLUMNS = {
    "small whole numbers": [0, 1, 2, -1],
    "large whole numbers": [2**53 - 1, 2**53, 2**53 + 1, 2**60 + 1, -(2**60) - 1, 1],
    "unsigned": [2**63 + 1, 1],
    "beyond 64 bits": [2**70, 1, 2],
    "reals": [0.0, 1.0, 3.5, 0.1, 1e300, 1e16, 123456789012345680.0, float("inf"), -0.0],
    "truth values": [True, False],
    "moments": [dt.datetime(2020, 1, 2, *more) for more in ((), (3, 4, 5), (3, 4, 5, 500000))],  # noqa: DTZ001
    "moments in a zone": [dt.datetime(2020, 1, 2, tzinfo=UTC), dt.datetime(2020, 1, 1, 22, 4, 5, tzinfo=NEW_YORK)],
    "nanoseconds": [pd.Timestamp("2020-01-02 03:04:05.000000001"), pd.Timestamp("2020-01-02 03:04:05.5")],
    "dates": [dt.date(2020, 1, 2)],
    "durations": [dt.timedelta(seconds=2), dt.timedelta(days=-1), dt.timedelta(microseconds=500_000)],
    "nanoseconds long": [pd.Timedelta(3_500_000_001), pd.Timedelta("1s")],
    "texts": ["0", "1.0", "true", "2020-01-02", "x"],
    "decimals": [Decimal("0.1"), Decimal("1.0")],
}
STRANGERS = [
    None,
    np.nan,
    pd.NA,
    pd.NaT,
    "text",
    1,
    0.5,
    2**60,
    2**80,
    True,
    b"bytes",
    Decimal(1),
    dt.date(2021, 1, 1),
    dt.datetime(2021, 1, 1),  # noqa: DTZ001
    dt.datetime(2021, 1, 1, 2, tzinfo=UTC),
    dt.datetime(2021, 1, 1, tzinfo=NEW_YORK),
    pd.Timestamp("2021-01-01 00:00:00.000000001"),
    np.datetime64("2021-01-01T05", "h"),
    dt.timedelta(1),
    [1],
    np.float32(0.1),
    np.int64(2**60 + 1),
    object(),
]


def codes(values, make=pd.Series):
    """Level and number that each row is read as."""
    series = make(values)
    frame = pd.DataFrame({"as_level": series, "as_number": series})
    coded = encode(SCHEMA, open_source(frame).read(SCHEMA.names), ["as_number"])
    assert coded.size == len(values)
    found = [coded.codes["as_level"], coded.codes["as_number"], coded.numbers["as_number"]]
    return [tuple(map(repr, row)) for row in zip(*(column.tolist() for column in found), strict=True)]


def objects(values):
    return pd.Series(values, dtype=object)


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda value: repr(value).split(" at ")[0])
def test_one_more_row_of_any_kind_changes_nothing_about_the_others(kind, stranger):
    values = COLUMNS[kind]
    alone = codes(values)
    assert codes([*values, stranger])[:-1] == alone
    assert codes([stranger, *values])[1:] == alone
    assert codes(values, objects) == alone
    assert codes([*values, stranger], objects)[:-1] == alone
    assert [codes([value])[0] for value in values] == alone


@pytest.mark.parametrize("kind", COLUMNS)
def test_categories_are_read_as_their_values_are(kind):
    values = COLUMNS[kind]
    assert codes(values, lambda v: pd.Series(v).astype("category")) == codes(values)


def test_numbers_are_the_same_in_every_type_of_column():
    whole = ["int8", "int64", "uint16", ">i4", "Int64", "int32[pyarrow]"]
    types = [*whole, "float16", "float32", "float64", ">f8", "Float32", "double[pyarrow]", object]
    expected = codes([0, 1, 2])
    for kind in types:
        assert codes([0, 1, 2], lambda v, kind=kind: pd.Series(v, dtype=kind)) == expected, kind
    for kind in ("bool", "boolean", "bool[pyarrow]", object):
        assert codes([True, False], lambda v, kind=kind: pd.Series(v, dtype=kind)) == codes([True, False])


def test_moments_are_the_same_in_every_unit_and_match_levels_of_text():
    values = [dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5)]  # noqa: DTZ001
    expected = [TEXTS.index("2020-01-02"), TEXTS.index("2020-01-02 03:04:05")]
    for kind in ("M8[s]", "M8[ms]", "M8[us]", "M8[ns]", "timestamp[ns][pyarrow]", object):
        found = codes(values, lambda v, kind=kind: pd.Series(v, dtype=kind))
        assert [int(level) for level, _, _ in found] == expected, kind
    for unit in ("s", "ms", "us", "ns"):
        typed = pa.table({name: pa.array(values, pa.timestamp(unit)) for name in SCHEMA.names})
        assert encode(SCHEMA, typed).codes["as_level"].tolist() == expected


def test_durations_are_their_seconds_in_every_unit():
    values = [dt.timedelta(seconds=2), dt.timedelta(days=-1)]
    expected = [2.0, -10.0]  # clipped to the bounds
    for kind in ("m8[s]", "m8[ms]", "m8[us]", "m8[ns]", "duration[ms][pyarrow]", object):
        found = codes(values, lambda v, kind=kind: pd.Series(v, dtype=kind))
        assert [float(number) for _, _, number in found] == expected, kind
    for unit in ("h", "m", "s", "ms", "us", "ns"):
        hours = np.array([3_600 * 10**9, 0], "m8[ns]").astype(f"m8[{unit}]")
        column = np.empty(2, object)
        column[:] = list(hours)
        series = pd.Series(column, dtype=object)
        found = open_source(pd.DataFrame({"a": series})).read(["a"]).column("a").to_pylist()
        assert found == ["3600", "0"], unit
    for unit, count in (("s", 1), ("ms", 1_500), ("us", 1_500_000), ("ns", 1_500_000_000)):
        typed = pa.table({name: pa.array([count, -count], pa.duration(unit)) for name in SCHEMA.names})
        seconds = 1.0 if unit == "s" else 1.5
        assert encode(SCHEMA, typed, ["as_number"]).numbers["as_number"].tolist() == [seconds, -seconds]


class Talking:
    """Every way of asking it something is noticed."""

    def __getattribute__(self, name):
        raise AssertionError(name)

    def __str__(self):
        raise AssertionError

    __repr__ = __float__ = __int__ = __index__ = __eq__ = __bool__ = __array__ = __str__
    __hash__ = None


ASKED = """__str__ __repr__ __float__ __int__ __eq__ __ne__ __lt__ __bool__ __format__ is_nan isoformat bit_length
decode encode astimezone utcoffset as_integer_ratio""".split()  # noqa: SIM905
MADE_FROM = {dt.date: (2020, 1, 2), dt.datetime: (2020, 1, 2), dt.time: (3, 4), str: ("1",), bytes: (b"1",)}


@pytest.mark.parametrize("base", [int, float, str, bytes, Decimal, dt.date, dt.datetime, dt.time])
def test_subclasses_run_no_code_of_their_own_and_are_null(base):
    calls = []

    def noticed(*_, **__):
        calls.append(1)
        raise RuntimeError("a row spoke")

    kind = type("Own", (base,), dict.fromkeys(ASKED, noticed) | {"__hash__": base.__hash__})
    value = kind(*MADE_FROM.get(base, (1,)))
    column = np.array(["x", None, "y"], dtype=object)
    column[1] = value
    frame = pd.DataFrame({"a": pd.Series(column, dtype=object)})
    assert open_source(frame).read(["a"]).column("a").to_pylist() == ["x", None, "y"]
    assert calls == []


def test_values_of_unknown_classes_are_null_and_are_not_asked():
    class Level(IntEnum):
        ONE = 1

    column = np.empty(6, dtype=object)
    for i, value in enumerate([Talking(), Level.ONE, Fraction(1, 2), 1j, {"a": 1}, "x"]):
        column[i] = value
    series = pd.Series(np.array(["x"] * 6, dtype=object), dtype=object)
    series.array._ndarray[:] = column
    assert open_source(pd.DataFrame({"a": series})).read(["a"]).column("a").to_pylist() == [None] * 5 + ["x"]


REFUSED = {
    "long reals": pd.Series(np.zeros(2, np.longdouble)),
    "complex": pd.Series([1j, 2j]),
    "periods": pd.Series(pd.period_range("2020", periods=2)),
    "intervals": pd.Series(pd.interval_range(0, 2)),
    "binned": pd.cut(pd.Series([1.0, 2.0]), 2),
    "sparse": pd.Series(pd.arrays.SparseArray([1.0, 2.0])),
    "lists": pd.Series([[1], [2]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    "structs": pd.Series([{"a": 1}] * 2, dtype=pd.ArrowDtype(pa.struct([("a", pa.int64())]))),
    "short decimals": pd.Series([None, None], dtype=pd.ArrowDtype(pa.decimal32(5, 2))),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_columns_that_cannot_be_read_are_refused_when_the_table_is_opened(kind):
    """By their declared type alone, without their values in the message."""
    frame = pd.DataFrame({"a": REFUSED[kind], "other": REFUSED[kind]})
    schema = Schema({"a": Categorical(levels=("1", "2"))})
    with pytest.raises(SchemaError, match="column a has type") as caught:
        open_table(frame, schema=schema)
    assert not {"2020", "0.99", "1.0"} & set(str(caught.value).split())
    of_units = Schema({"other": schema.columns["a"]}, unit=Unit(column="a", max_rows=1))
    with pytest.raises(SchemaError, match="has type"):
        open_table(frame, schema=of_units)
    open_table(frame.assign(a="1"), schema=schema)


@pytest.mark.parametrize("kind", [">i8", ">f4", ">M8[ns]", "M8[s]", "Int8", "string", "category", bool, object])
def test_columns_that_can_be_read_have_the_type_they_declare(kind):
    for series in (pd.Series(np.zeros(3, kind)) if str(kind).startswith(">") else pd.Series([1, 0, 1]).astype(kind),):
        [field] = open_source(pd.DataFrame({"a": series})).read(["a"]).schema
        assert field.type == declared(series.dtype)


PEOPLE = Schema({"A": Categorical(levels=("x", "y"))}, unit=Unit(column="id", max_rows=1))


def rows_kept(ids):
    data = {"id": ids, "A": ["x"] * len(ids)}
    return kept(PEOPLE, open_source(pd.DataFrame(data) if not isinstance(ids, pa.Array) else pa.table(data))).num_rows


@pytest.mark.parametrize(
    ("ids", "units"),
    [
        (["7", "7.0", " 7", "07", "7e0", "+7"], 1),
        (["7", "7", "8"], 2),
        (["-7", "-07.00", "7"], 2),
        (["0", "-0", "0.0", "00", "0e5"], 1),
        (["700", "7e2", "0700.0"], 1),
        (["true", "True", "1"], 1),
        (["P7", "P07", "p7", "P7 "], 4),
        (["12345678901234567890", "12345678901234567891", "012345678901234567891"], 2),
        (["1" + "0" * 40, "1" + "0" * 39 + "1", "1.0"], 3),
        (["1e5000", "1e5001"], 0),
        (["9.1e18", "9100000000000000000"], 1),
        (["", None, "a"], 1),
        ([1, 1.0, "1", b"1", Decimal("1.00"), np.int8(1), None], 1),
        (pa.array([2**60, 2**60 + 1, 2**60]), 2),
        (pa.array([1.0, 2.0, 2.0**60, 2.0**60, float("nan")]), 2),
        (pa.array([dt.datetime(2020, 1, 2)] * 2), 1),  # noqa: DTZ001
        (pa.array(["7", "07", None, "7"]).dictionary_encode(), 1),
    ],
)
def test_units_are_told_apart_as_levels_are(ids, units):
    assert rows_kept(ids) == units


@pytest.mark.parametrize("ids", [[2**60, 2**60 + 1, 3], [2**60, 2**60 + 1, 3, None], [2**60, 2**60 + 1, 3, "x"]])
def test_ids_that_pandas_may_round_tell_nobody_apart_whatever_the_type_of_the_column(ids):
    assert rows_kept(ids) == 1 + ("x" in ids)
    assert rows_kept(pd.Series(ids, dtype=object)) == 1 + ("x" in ids)


class _Problem:
    """A task of folktables, without folktables."""

    def __init__(self, name):
        found = tasks()[name]
        self.features, self.target, self.group = list(found.features), found.target, None
        self._preprocess = lambda rows: rows
        self._preprocess.__module__ = "folktables.acs"


@pytest.mark.parametrize("stranger", ["x", "31", True, 2**80, object(), b"\xff", None, 3.5])
def test_a_task_s_conditions_keep_the_same_records_whatever_another_one_holds(stranger):
    """Before the conditions looked at each record, one odd value ended the fit in an error that quoted it."""
    problem = _Problem("ACSPublicCoverage")
    ages = [30, 70, 64]
    rows = pd.DataFrame({name: [1.0] * 3 for name in [*problem.features, problem.target]}).assign(AGEP=ages)
    one = rows[:1].astype(object).assign(AGEP=[stranger])
    for frame in (rows, pd.concat([rows.astype(object), one], ignore_index=True)):
        table = from_folktables(problem, frame, states=["PA"], year=2018)
        assert table.source.in_memory["AGEP"].tolist()[:2] == [30, 64]
