"""Types come back as they went in, as the reviewed schema declares them: no row of a private frame changes one."""

import datetime as dt
import re
import sys
import types
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import stratsynth as ss
from helpers import small
from stratsynth.data.draft import check, draft, drafted
from stratsynth.data.sources import open_source
from stratsynth.data.writing import write_table
from stratsynth.errors import SchemaError, Unsupported
from stratsynth.questions.counts import Counts
from stratsynth.schema import Categorical, Nested, Numeric, Schema, Temporal
from stratsynth.schema.codec import decode, to_frame
from stratsynth.schema.encoding import encode

N = 400
RNG = np.random.default_rng(11)
START = pd.Timestamp("2003-05-06")
SECONDS = pd.to_timedelta(RNG.integers(0, 10**8, N), unit="s")
REALS = RNG.random(N)
PRICES = [Decimal(int(cents)) / 100 for cents in RNG.integers(0, 100_000, N)]

COLUMNS = {
    "float32": pd.Series(RNG.normal(size=N).astype("float32")),
    "few of float32": pd.Series(RNG.choice(np.array([0.1, 0.2, 0.7], "float32"), N)),
    "uint8": pd.Series(RNG.integers(0, 256, N), dtype="uint8"),
    "few of int16": pd.Series(RNG.integers(0, 4, N), dtype="int16"),
    "uint32, many": pd.Series(RNG.integers(0, 4_000_000_000, N), dtype="uint32"),
    "nullable int8": pd.Series([None, *RNG.integers(0, 100, N - 1)], dtype="Int8"),
    "moments by the microsecond": pd.Series(START + SECONDS).astype("datetime64[us]"),
    "moments by the nanosecond": pd.Series(START + SECONDS).astype("datetime64[ns]"),
    "days by the millisecond": pd.Series(START + pd.to_timedelta(RNG.integers(0, 999, N), unit="D")).astype("M8[ms]"),
    "moments of a zone": pd.Series(START + SECONDS).astype("datetime64[us]").dt.tz_localize("UTC"),
    "moments of a place": pd.Series(START + SECONDS).dt.tz_localize("UTC").dt.tz_convert("Europe/Amsterdam"),
    "moments of an offset": pd.Series(START + SECONDS).dt.tz_localize(dt.timezone(dt.timedelta(hours=2))),
    "lengths by the microsecond": pd.Series(SECONDS).astype("timedelta64[us]"),
    "lengths by the millisecond": pd.Series(SECONDS).astype("timedelta64[ms]"),
    "decimals": pd.Series(PRICES, dtype=object),
    "few decimals": pd.Series([Decimal("0.10"), Decimal("0.25")] * (N // 2), dtype=object),
    "infinities": pd.Series(np.where(REALS < 0.02, np.inf, np.where(REALS < 0.04, -np.inf, RNG.normal(size=N)))),
    "infinities among few": pd.Series([0.0, 1.5, np.inf, -np.inf] * (N // 4)),
    "infinities and nulls": pd.Series([np.nan, np.inf, *RNG.normal(size=N - 2)]),
    "numbers among texts": pd.Series([1, 2.5, "many", True] * (N // 4), dtype=object),
    "many numbers and a word": pd.Series(["none", *RNG.integers(0, 10_000, N - 1).tolist()], dtype=object),
    "categories of numbers": pd.Series(pd.Categorical(RNG.choice([10, 2, 30], N))),
    "ordered categories of reals": pd.Series(pd.Categorical(RNG.choice([0.5, 2.5], N), ordered=True)),
}


def back(schema, source, rng=None):
    coded = encode(schema, source.read(schema.names))
    assert coded.size == len(source.read(schema.names)), "no row is left out"
    return coded, decode(schema, coded.codes, rng or np.random.default_rng(0))


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_comes_back_in_its_type(name, tmp_path):
    """users3, A.5: each line of it."""
    frame = pd.DataFrame({"x": COLUMNS[name]})
    source = open_source(frame)
    schema = Schema.from_toml_text(draft(source))
    coded, table = back(schema, source)
    came = to_frame(schema, table)["x"]
    assert came.dtype == frame["x"].dtype
    assert came.isna().sum() == frame["x"].isna().sum()
    assert to_frame(schema, table.slice(1, 1))["x"].dtype == frame["x"].dtype, "of one row as of many"
    if frame["x"].dtype == object:
        assert {type(value) for value in came} >= {type(value) for value in frame["x"]} - {float}
    assert (came == np.inf).sum() == (frame["x"] == np.inf).sum()
    again = encode(schema, open_source(pd.DataFrame({"x": came})).read(["x"]))
    assert again.codes["x"].tolist() == coded.codes["x"].tolist(), "a value is drawn in its own bin"
    for file in (tmp_path / "made.csv", tmp_path / "made.parquet"):
        write_table(table, file)
        assert check(schema, open_source(file)).columns["x"].outside == 0, "files of a release are read by its schema"


ARROW = {
    "uint16": pa.array(RNG.integers(0, 60_000, N), pa.uint16()),
    "float": pa.array(RNG.normal(size=N).astype("float32")),
    "decimal": pa.array(PRICES, pa.decimal128(12, 2)),
    "moment": pa.array((START + SECONDS).to_numpy().astype("M8[us]"), pa.timestamp("us", "America/New_York")),
    "clock": pa.array(RNG.integers(0, 86_400_000_000, N), pa.time64("us")),
    "length": pa.array(SECONDS.to_numpy().astype("m8[ms]"), pa.duration("ms")),
}


def test_arrow_s_types_come_back(tmp_path):
    table = pa.table(ARROW)
    schema = drafted(open_source(table)).schema
    _, made = back(schema, open_source(table))
    assert made.schema.types == table.schema.types
    assert Schema.from_toml_text(schema.to_toml()) == schema
    for name in ("made.csv", "made.parquet"):
        write_table(made, tmp_path / name)
        found = check(schema, open_source(tmp_path / name))
        assert found.left_out == sum(column.outside + column.missing for column in found.columns.values()) == 0, name


def test_whole_numbers_that_name_columns_do_so_again():
    frame = pd.DataFrame(RNG.integers(0, 5, (N, 3)))
    with pytest.warns(ss.errors.NotPrivateWarning):
        release = ss.synthesize(frame, epsilon=3, public=True, mechanism="independent")
    made = release.sample(20, seed=1)
    assert list(made.columns) == [0, 1, 2]
    assert (made.dtypes == frame.dtypes).all()
    assert release.sample_arrow(5).column_names == ["0", "1", "2"]


class DataFrame:
    """A frame as polars hands it out."""

    __module__ = "polars.dataframe.frame"

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_polars_in_polars_out(monkeypatch):
    polars = types.ModuleType("polars")
    polars.from_arrow = DataFrame
    monkeypatch.setitem(sys.modules, "polars", polars)
    frame = DataFrame(pa.table({"A": ["x", "y"] * 20}))
    with pytest.warns(ss.errors.NotPrivateWarning):
        release = ss.synthesize(frame, epsilon=3, public=True, mechanism="independent")
    assert isinstance(release.sample(5), DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(Unsupported, match="sample_arrow"):
        release.sample(5)


def private(rows):
    """A release of a private frame by a schema that somebody reviewed."""
    columns = {
        "x": Numeric(lower=0, upper=255, integer=True, bins=8, missing=True, stored="uint8"),
        "t": Temporal(
            kind="datetime",
            lower="2003-01-01",
            upper="2007-12-31",
            bins=5,
            missing=True,
            stored="timestamp[us, tz=UTC]",
        ),
        "y": Numeric(lower=0, upper=1, bins=4, missing=True, stored="float32"),
    }
    schema = Schema(columns, origin="private data", reviewed_by="somebody")
    return ss.fit("independent", ss.open_table(rows, schema=schema, declared_size=N), ss.Budget(1, 1e-9), seed=1)


def test_one_null_in_a_private_frame_changes_nothing_of_what_comes_out(monkeypatch, tmp_path):
    """A null makes a frame's whole numbers real. With the answers of the first fit given again, all else is the same:
    what comes out depends on answers and schema alone."""
    given, answer = [], Counts.answer

    def again(question, *asked):
        given.append(answer(question, *asked))
        return given[0]

    monkeypatch.setattr(Counts, "answer", again)
    frame = pd.DataFrame({"x": COLUMNS["uint8"], "t": COLUMNS["moments of a zone"], "y": COLUMNS["float32"].abs() % 1})
    other = frame.astype({"x": "float64"})
    other.loc[0] = [np.nan, pd.NaT, np.nan]
    texts = frame.assign(x=frame["x"].astype(str), t=frame["t"].astype(str), y=frame["y"].astype(object))
    assert (other.dtypes != frame.dtypes).any()
    made = [private(rows) for rows in (frame, other, texts)]
    assert len(given) == 3
    samples = [release.sample(300, seed=2) for release in made]
    for sample in samples[1:]:
        pd.testing.assert_frame_equal(sample, samples[0])
    assert samples[0].dtypes.astype(str).tolist() == ["UInt8", "datetime64[us, UTC]", "float32"]
    for number, release in enumerate(made):
        release.save(tmp_path / str(number), rows=50, seed=3, csv=True)
    for name in ("synthetic.csv", "synthetic.parquet", "model/schema.toml"):
        assert len({(tmp_path / str(number) / name).read_bytes() for number in range(3)}) == 1, name


def test_a_schema_without_exact_types_is_as_it_was():
    """Ledgers and releases hold the hash of a schema."""
    assert small.SCHEMA.sha256 == "7fc7b80578ad62f257f075f7bc34f42d42827dd82f476e63f132b19f9a4ffe5f"
    assert "stored" not in small.SCHEMA.to_toml()
    assert "frame" not in small.SCHEMA.to_toml()
    typed = Schema({"x": Numeric(lower=0, upper=9, integer=True, stored="int8")}, frame="polars")
    assert Schema.from_toml_text(typed.to_toml()) == typed != Schema({"x": Numeric(lower=0, upper=9, integer=True)})


REFUSED = {
    "no such type": (lambda: Numeric(lower=0, upper=9, stored="uint7"), "must be one of float32"),
    "of another kind": (lambda: Numeric(lower=0, upper=9, integer=True, stored="float32"), "must be one of int8"),
    "no text": (lambda: Numeric(lower=0, upper=9, stored=8), "must be a text"),
    "too small": (lambda: Numeric(lower=0, upper=256, integer=True, stored="uint8"), "cannot hold 256"),
    "no sign": (lambda: Categorical(levels=("-1",), dtype="int64", stored="uint8"), "cannot hold level '-1'"),
    "infinite": (lambda: Numeric(lower=0, upper=9, special=("inf",), stored="decimal128(9, 2)"), "no infinity"),
    "fewer decimals": (lambda: Numeric(lower=0, upper=9, digits=3, stored="decimal128(9, 2)"), "fewer decimals"),
    "too coarse": (
        lambda: Temporal(kind="duration", unit="microsecond", lower=0, upper=9, stored="duration[s]"),
        "coarser",
    ),
    "too fine": (
        lambda: Temporal(kind="datetime", lower="0001-01-01", upper="2001-01-01", stored="timestamp[ns]"),
        "coarser",
    ),
    "no such zone": (
        lambda: Temporal(
            kind="datetime", lower="2000-01-01", upper="2001-01-01", stored="timestamp[s, tz=Europe/Nowhere]"
        ),
        "no time zone Europe/Nowhere",
    ),
    "a date": (lambda: Temporal(lower="2000-01-01", upper="2001-01-01", stored="timestamp[s]"), "be left out"),
    "codes in groups": (lambda: Nested(levels=("1", "2"), dtype="int64", stored="bool"), "must be one of int8"),
    "a frame": (lambda: Schema({"x": Numeric(lower=0, upper=9)}, frame="spark"), "frame must be one of pandas"),
    "names": (lambda: Schema({"x": Numeric(lower=0, upper=9)}, frame="numbered"), "named by whole numbers"),
}


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=REFUSED)
def test_a_type_that_does_not_fit_is_refused(make, words):
    with pytest.raises(SchemaError, match=re.escape(words)):
        make()


def test_a_float_column_with_infinities_stays_a_float_column():
    frame = pd.DataFrame({"x": COLUMNS["infinities"]})
    found = drafted(open_source(frame))
    assert found.schema.columns["x"].special == ("inf", "-inf")
    assert any("infinite" in note for note in found.notes["x"])
    assert check(found.schema, open_source(frame)).left_out == 0
    made = back(found.schema, open_source(frame))[1].to_pandas()["x"]
    assert made.replace([np.inf, -np.inf], np.nan).mean() == pytest.approx(0, abs=0.3)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.string()], ids=str)
def test_an_infinite_value_is_its_code_or_missing_by_itself_alone(kind):
    values = [np.inf, -np.inf, 3.0, None]
    spelt = [None if value is None else str(value) if kind == pa.string() else value for value in values]
    for special, first in ((("inf",), "inf"), ((), "missing")):
        schema = Schema({"x": Numeric(lower=0, upper=10, bins=1, special=special, missing=True)})
        together = encode(schema, pa.table({"x": pa.array(spelt, kind)})).codes["x"].tolist()
        alone = [encode(schema, pa.table({"x": pa.array([value], kind)})).codes["x"][0] for value in spelt]
        assert together == alone == [schema.index("x", level) for level in (first, "missing", "[0,10]", "missing")]
