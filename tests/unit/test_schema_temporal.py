"""Dates, moments, times and durations: read from every form a file has, counted in bins, and back in their types."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stratsynth as ss
from stratsynth import Categorical, Schema, Temporal
from stratsynth.data.sources import open_source
from stratsynth.data.writing import write_table
from stratsynth.errors import SchemaError
from stratsynth.schema.codec import decode, to_pandas
from stratsynth.schema.encoding import encode
from stratsynth.schema.temporal import microseconds
from stratsynth.strata.strata import narrow

DATE = Temporal(kind="date", lower="2010-01-01", upper="2019-12-31", bins=10, missing=True)
MOMENT = Temporal(kind="datetime", lower="2020-01-01", upper="2020-01-02 23:59:59", bins=48)
TIME = Temporal(kind="time", unit="minute", lower="00:00", upper="23:59", edges=("00:00", "06:00", "18:00", "23:59"))
LENGTH = Temporal(kind="duration", unit="minute", lower=0, upper=120, bins=4, spikes=(0,))
YEARS = ("2010-01-01..2010-12-31", "2011-01-01..2011-12-31")


def levels(column, values):
    data = values if isinstance(values, pa.Array) else pa.array(values)
    coded = encode(
        Schema({"x": column, "y": Categorical(levels=("a",), outside="a")}), pa.table({"x": data, "y": data})
    )
    assert coded.size == len(data), "no row is left out"
    return [column.all_levels[code] for code in coded.codes["x"]]


def test_a_date_is_counted_in_its_bin_however_it_is_written():
    bins = (DATE.all_levels[0], DATE.all_levels[-2], DATE.all_levels[-1])
    assert bins[0].startswith("2010-01-01..20")
    assert bins[1].endswith("..2019-12-31")
    assert bins[2] == "missing"
    texts = ["2010-01-01", "2010-01-01 23:59:59.999999", "2010-01-01T05:00:00Z", " 2010-01-01", "1900-01-01"]
    assert set(levels(DATE, texts)) == {bins[0]}, "clipped to the bound, where outside"
    assert levels(DATE, ["2019-12-31", "2100-01-01"]) == [bins[1]] * 2
    assert levels(DATE, ["2010-02-30", "01.02.2010", "", "20100101", "2010", None, "2010-1-1"]) == ["missing"] * 7
    days = [dt.date(2010, 1, 1), dt.date(2019, 12, 31), None]
    for kind in (pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns")):
        assert levels(DATE, pa.array(days).cast(kind)) == list(bins), kind


def test_zones_are_read_in_utc():
    text = ["2020-01-01 01:30:00+02:00", "2020-01-01 00:30:00-0130", "2020-01-01 02:00:00"]
    assert levels(MOMENT, text) == [MOMENT.all_levels[0], *[MOMENT.all_levels[2]] * 2]


def test_every_level_of_a_year_reads_back():
    column = Temporal(lower="2010-01-01", upper="2011-12-31", edges=("2010-01-01", "2011-01-01", "2012-01-01"))
    assert column.all_levels == YEARS
    assert narrow(column, YEARS) == column
    drawn = decode(Schema({"x": column}), {"x": np.repeat([0, 1], 400)}, np.random.default_rng(0))
    assert drawn.schema.field("x").type == pa.date32()
    years = drawn["x"].to_pandas().map(lambda day: day.year).tolist()
    assert years == [2010] * 400 + [2011] * 400
    assert levels(column, drawn["x"].combine_chunks()) == [YEARS[0]] * 400 + [YEARS[1]] * 400


def test_times_and_durations():
    assert TIME.all_levels == ("00:00:00..05:59:00", "06:00:00..17:59:00", "18:00:00..23:59:00")
    assert levels(TIME, ["5:59", "05:59:59.9", "06:00", "23:59:59"]) == [TIME.all_levels[i] for i in (0, 0, 1, 2)]
    assert levels(TIME, [dt.time(5), dt.time(18)]) == [TIME.all_levels[0], TIME.all_levels[2]]
    assert LENGTH.all_levels == ("0", "1-29", "30-59", "60-89", "90-120")
    written = ["0", "59", "60", "1 days 00:00:00", "0 days 00:30:00", "01:00:00", "-1 day, 23:00:00", "7199.5"]
    assert levels(LENGTH, written) == ["0", "0", "1-29", "90-120", "30-59", "60-89", "0", "90-120"]
    assert levels(LENGTH, [dt.timedelta(minutes=30)]) == ["30-59"]


def test_what_is_drawn_has_the_types_that_went_in():
    schema = Schema({"d": DATE, "m": MOMENT, "t": TIME, "l": LENGTH})
    codes = {"d": [10, 0], "m": [0, 47], "t": [0, 2], "l": [0, 4]}
    table = decode(schema, codes, np.random.default_rng(0))
    assert [str(kind) for kind in table.schema.types] == ["date32[day]", "timestamp[s]", "time32[s]", "duration[s]"]
    frame = to_pandas(table)
    assert frame["d"][0] is None
    assert frame["d"][1].year == 2010
    assert frame["m"].dtype == "datetime64[s]"
    assert frame["m"][1] >= pd.Timestamp("2020-01-02 23:00:00")
    assert frame["t"][1] >= dt.time(18)
    assert frame["l"][0] == pd.Timedelta(0)
    assert frame["l"][1] % pd.Timedelta("1min") == pd.Timedelta(0)


@pytest.mark.parametrize("unit", ["minute", "second", "millisecond", "microsecond"])
def test_a_csv_of_a_release_is_read_back_as_what_it_was(unit, tmp_path):
    fine = {
        "m": Temporal(kind="datetime", unit=unit, lower="2020-01-01", upper="2020-01-01 01:00", bins=6),
        "t": Temporal(kind="time", unit=unit, lower="12:00", upper="13:00", bins=6),
        "l": Temporal(kind="duration", unit=unit, lower=0, upper=59, bins=6),
    }
    schema = Schema(fine)
    codes = {name: np.arange(60) % 6 for name in fine}
    table = decode(schema, codes, np.random.default_rng(0))
    write_table(table, tmp_path / "x.csv")
    for source in (open_source(tmp_path / "x.csv"), open_source(to_pandas(table)), open_source(table)):
        again = encode(schema, source.read(schema.names))
        assert {name: again.codes[name].tolist() for name in fine} == {n: c.tolist() for n, c in codes.items()}


def test_codes_of_dates_are_special():
    column = Temporal(
        lower="2010-01-01", upper="2010-12-31", bins=2, special=("1900-01-01", "9999-99-99"), missing=True
    )
    assert column.all_levels[2:] == ("1900-01-01", "9999-99-99", "missing")
    assert levels(column, ["1900-01-01 12:00", "9999-99-99", "1900-01-02"])[:2] == ["1900-01-01", "9999-99-99"]
    drawn = decode(Schema({"x": column}), {"x": [2, 3]}, np.random.default_rng(0))["x"].to_pylist()
    assert drawn == [dt.date(1900, 1, 1), None]


def test_rules_compare_dates():
    schema = Schema(
        {
            "x": Temporal(lower="2010-01-01", upper="2011-12-31", edges=("2010-01-01", "2011-01-01", "2012-01-01")),
            "y": Categorical(levels=("a", "b")),
        },
        rules=(ss.schema.Rule(when={"x": "< 2011-01-01"}, never={"y": "b"}),),
    )
    assert schema.rules[0].cells(schema) == ({"x": frozenset({0}), "y": frozenset({1})},)


def test_the_schema_file_has_dates(tmp_path):
    schema = Schema({"d": DATE, "m": MOMENT, "t": TIME, "l": LENGTH})
    text = schema.to_toml()
    assert 'kind = "date"\nlower = "2010-01-01"\nupper = "2019-12-31"' in text
    assert "integer" not in text
    assert Schema.from_toml_text(text) == schema
    bare = text.replace('"2010-01-01"', "2010-01-01").replace('"00:00:00"', "00:00:00")  # TOML's own dates and times
    assert Schema.from_toml_text(bare) == schema


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"lower": "2010"}, "lower must be a date such as '2024-12-31', not '2010'"),
        ({"lower": "2030-01-01"}, "upper must be above lower"),
        ({"kind": "dates"}, "kind must be one of date"),
        ({"unit": "hour"}, 'take kind = "datetime"'),
        ({"kind": "time", "unit": "day", "lower": "01:00", "upper": "02:00"}, "hours, minutes"),
        ({"kind": "time", "lower": 0, "upper": 86_400}, "within one day"),
        ({"dtype": "int64"}, "dtype must be one of date, datetime, string"),
        ({"integer": False}, "integer is true"),
        ({"edges": ("2010-01-01", "x")}, "edges must be a date"),
        ({"special": ("2015-01-01",)}, "one of `spikes`"),
    ],
)
def test_what_makes_no_sense_is_refused(keys, message):
    with pytest.raises(SchemaError, match=message):
        Temporal(**{"lower": "2010-01-01", "upper": "2020-01-01"} | keys)


def test_a_year_in_a_file_is_no_date():
    text = Schema({"d": DATE}).to_toml().replace('"2010-01-01"', "2010")
    with pytest.raises(SchemaError, match="column d: lower must be a date, such as 2024-12-31, not a number"):
        Schema.from_toml_text(text)


VALUES = st.one_of(
    st.datetimes(min_value=dt.datetime(2009, 12, 30), max_value=dt.datetime(2020, 1, 2)),  # noqa: DTZ001
    st.dates(min_value=dt.date(2009, 12, 30), max_value=dt.date(2020, 1, 2)),
    st.times(),
    st.timedeltas(min_value=dt.timedelta(-1), max_value=dt.timedelta(1)),
    st.sampled_from([None, "", "2010-01-01", "25:00", "1 days", "x", 7, 0.5, "1900-01-01", True]),
)


@given(st.lists(VALUES, max_size=8), st.sampled_from([DATE, MOMENT, TIME, LENGTH]))
def test_a_value_means_the_same_alone_and_among_others(values, column):
    schema = Schema({"x": column})

    def codes(some):
        table = open_source(pd.DataFrame({"x": pd.Series(some)})).read(["x"])
        return encode(schema, table).codes["x"].tolist()

    assert codes(values) == [code for value in values for code in codes([value])]


@given(st.datetimes(min_value=dt.datetime(1600, 1, 1), max_value=dt.datetime(2400, 1, 1)))  # noqa: DTZ001
def test_moments_mean_what_python_says(moment):
    exact = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001
    assert microseconds("datetime", moment.isoformat(" ")) == exact
    assert microseconds("datetime", moment.isoformat()) == exact


@given(st.timedeltas(min_value=dt.timedelta(-10_000), max_value=dt.timedelta(10_000)))
def test_durations_mean_what_python_and_pandas_say(length):
    exact = length // dt.timedelta(microseconds=1)
    assert microseconds("duration", str(length)) == exact
    assert microseconds("duration", str(pd.Timedelta(length))) == exact


@pytest.mark.usefixtures("seeded_noise")
def test_a_fit_and_its_release_hold_dates(tmp_path):
    rng = np.random.default_rng(0)
    rows = 2_000
    frame = pd.DataFrame(
        {
            "born": pd.to_datetime("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, rows), unit="D"),
            "stay": pd.to_timedelta(rng.integers(0, 48, rows), unit="h"),
            "sex": rng.choice(["f", "m"], rows),
        }
    )
    schema = Schema(
        {
            "born": Temporal(lower="1950-01-01", upper="2009-12-31", bins=6, dtype="datetime"),
            "stay": Temporal(kind="duration", unit="hour", lower=0, upper=47, bins=4),
            "sex": Categorical(levels=("f", "m")),
        }
    )
    table = ss.open_table(frame, schema=schema, declared_size=rows)
    how = ss.Stratified(
        "independent",
        ["sex"],
        ss.Weights.public(pd.DataFrame({"sex": ["f", "m"], "share": [0.5, 0.5]}), citation="made up for testing"),
    )
    release = ss.fit(how, table, ss.Budget(20, 1e-9))
    again = ss.Release.load(release.save(tmp_path / "release", csv=True)).sample(4_000, seed=1)
    assert [str(kind) for kind in again.dtypes] == ["datetime64[s]", "timedelta64[s]", "str"]
    spread = pd.Timedelta(days=20_000) / 12**0.5
    assert abs(again["born"].mean() - frame["born"].mean()) < 0.1 * spread
    assert abs(again["stay"].mean() - frame["stay"].mean()) < pd.Timedelta(hours=2)
