"""Spikes, special codes, logarithmic bins and shapes: from values to levels and back, exactly."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from stratsynth import Numeric, Schema
from stratsynth.errors import SchemaError
from stratsynth.schema.bins import scale, unscale
from stratsynth.schema.codec import decode
from stratsynth.schema.encoding import encode
from stratsynth.strata.strata import narrow

MONEY = Numeric(
    lower=0,
    upper=1_000_000,
    edges=(0, 1_000, 10_000, 1_000_000),
    spikes=(0,),
    special=("-9", "8888888", "unknown"),
    not_applicable="N",
    missing=True,
    dtype="string",
)


def codes(column: Numeric, values: list[object]) -> list[str]:
    encoded = encode(Schema({"x": column}), pa.table({"x": pa.array(values)}))
    return [column.all_levels[code] for code in encoded.codes["x"]]


def drawn(column: Numeric, level: str, rows: int = 2_000) -> pd.Series:
    code = np.full(rows, column.codes[level])
    return decode(Schema({"x": column}), {"x": code}, np.random.default_rng(1))["x"].to_pandas()


def test_spikes_and_special_codes_are_levels_of_their_own():
    assert MONEY.all_levels == (
        "0",
        "(0,1000)",
        "[1000,10000)",
        "[10000,1000000]",
        "-9",
        "8888888",
        "unknown",
        "N",
        "missing",
    )
    values = ["0", "-0.0", "0.01", "999", "1e3", "2000000", "-8", "-9", "-9.0", "8888888", "unknown", "N", None, "word"]
    assert codes(MONEY, values) == [
        "0",
        "0",
        "(0,1000)",
        "(0,1000)",
        "[1000,10000)",
        "[10000,1000000]",
        "0",
        "-9",
        "-9",
        "8888888",
        "unknown",
        "N",
        "missing",
        "missing",
    ]


def test_the_same_values_are_the_same_levels_from_numbers():
    plain = Numeric(lower=0, upper=100, bins=2, spikes=(0, 100), special=("-9",), missing=True)
    assert plain.all_levels == ("0", "(0,50)", "[50,100)", "100", "-9", "missing")
    values = [0.0, -0.0, 5e-301, 1e-299, 50.0, 99.9, 100.0, 101.0, -1.0, -9.0, math.nan]
    levels = ["0", "0", "0", "(0,50)", "[50,100)", "[50,100)", "100", "100", "0", "-9", "missing"]
    assert codes(plain, values) == levels
    assert codes(plain, [None if math.isnan(x) else repr(x) for x in values]) == levels


def test_integers_have_spikes_that_are_one_number_wide():
    column = Numeric(lower=-5, upper=100, integer=True, edges=(-5, 50, 101), spikes=(0, 40))
    assert column.all_levels == ("[-5,-1]", "0", "1-39", "40", "41-49", "50-100")
    assert codes(column, [-5, -1, 0, 1, 39, 40, 41, 100]) == [
        "[-5,-1]",
        "[-5,-1]",
        "0",
        "1-39",
        "1-39",
        "40",
        "41-49",
        "50-100",
    ]
    assert set(drawn(column, "0")) == {0}
    assert set(drawn(column, "1-39")) == set(range(1, 40))


def test_special_codes_are_no_quantities_and_spikes_are():
    rows = pa.table({"x": ["0", "-9", "5000", "N", "unknown"]})
    numbers = encode(Schema({"x": MONEY}), rows, ["x"]).numbers["x"]
    assert np.array_equal(numbers, [0, np.nan, 5000, np.nan, np.nan], equal_nan=True)


def test_every_level_comes_back_as_itself():
    for level in ("0", "-9", "8888888", "unknown", "N"):
        assert set(drawn(MONEY, level, 5)) == {level}
    assert drawn(MONEY, "missing", 5).isna().all()
    typed = Numeric(lower=0, upper=10, integer=True, spikes=(0,), edges=(0, 11), special=("-9", "odd"))
    assert set(drawn(typed, "-9", 5)) == {-9}
    assert drawn(typed, "odd", 5).isna().all()
    assert decode(Schema({"x": typed}), {"x": [0]}, np.random.default_rng(0)).schema.field("x").nullable
    real = Numeric(lower=0, upper=10, special=("-9.5",))
    assert set(drawn(real, "-9.5", 5)) == {-9.5}


def test_logarithmic_bins_have_round_ends():
    column = Numeric(lower=0, upper=1_000_000, bins=6, spacing="log", transform_unit=100)
    assert column.breaks == (0, 364, 2050, 9900, 46300, 215000, 1_000_000)
    whole = Numeric(lower=-1000, upper=1000, bins=40, spacing="log", integer=True)
    assert whole.breaks[0] == -1000
    assert whole.breaks[-1] == 1001
    assert len(whole.extents) < 40, "ends that coincide are one"
    assert all(float(end).is_integer() for end in whole.breaks)


@pytest.mark.parametrize("x", [0.0, 1.0, -5.0, 1e9])
def test_the_scale_of_bins_has_a_way_back(x):
    assert unscale(scale(x, 7.0), 7.0) == pytest.approx(x, rel=1e-12)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize(("lower", "upper"), [(0, 100_000), (-3_000, 90_000)])
def test_numbers_lie_in_a_bin_by_its_shape(integer, lower, upper):
    column = Numeric(lower=lower, upper=upper, bins=1, shape="log", transform_unit=10, integer=integer)
    values = drawn(column, column.all_levels[0], 40_000)
    assert values.between(lower, upper).all()
    assert (values == values.astype(int)).all() == integer
    low, top = scale(lower, 10), scale(upper, 10)
    for part in (0.1, 0.5, 0.9):
        assert np.quantile([scale(v, 10) for v in values], part) == pytest.approx(low + part * (top - low), abs=0.15)
    assert column.middles[0] == pytest.approx(values.mean(), rel=0.05)
    even = Numeric(lower=lower, upper=upper, bins=1, integer=integer)
    assert even.middles[0] == pytest.approx((lower + upper) / 2)
    assert drawn(even, even.all_levels[0], 40_000).mean() == pytest.approx((lower + upper) / 2, rel=0.05)


@pytest.mark.parametrize("shape", ["even", "log", "smooth"])
def test_decimals_stay_in_their_bin(shape):
    column = Numeric(lower=0.05, upper=10, edges=(0, 0.125, 0.13, 2.5, 10), digits=1, shape=shape)
    assert set(drawn(column, "[0,0.125)")) == {0.1}
    assert drawn(column, "[0.125,0.13)").between(0.125, 0.13).all(), "no such decimal: any number"
    inner = drawn(column, "[0.13,2.5)", 20_000)
    assert set(inner) == {i / 10 for i in range(2, 25)}, "2.5 belongs to the next bin"
    assert drawn(column, "[2.5,10]", 20_000).max() <= 10


@pytest.mark.parametrize(
    "levels",
    [
        ("0", "(0,1000)", "-9", "missing"),
        ("(0,1000)", "[1000,10000)"),
        ("[1000,10000)", "[10000,1000000]", "unknown", "N"),
        ("0", "[1000,10000)"),
    ],
)
def test_a_narrow_column_keeps_the_names_of_levels(levels):
    assert narrow(MONEY, levels).all_levels == levels


def test_the_schema_file_says_it_all():
    columns = {"m": MONEY, "l": Numeric(lower=1, upper=9999, spacing="log", bins=5, shape="log", transform_unit=10)}
    schema = Schema(columns)
    again = Schema.from_toml_text(schema.to_toml())
    assert again == schema
    assert again.columns["m"].spikes == (0,)
    assert again.columns["m"].special == ("-9", "8888888", "unknown")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"spikes": (11,)}, "spikes must lie between"),
        ({"spikes": "0"}, "spikes must be a list"),
        ({"special": ("5",)}, "one of `spikes`"),
        ({"special": ("missing",)}, "missing = true"),
        ({"special": ("-9", "-9.0")}, "special codes must differ"),
        ({"special": ("-9",), "not_applicable": "-9"}, "special codes must differ"),
        ({"special": (-9,)}, "must be text"),
        ({"special": "-9"}, "special must be a list"),
        ({"special": ("-9.5",), "integer": True}, "cannot hold the special code"),
        ({"spacing": "logarithmic"}, "spacing must be one of even, log"),
        ({"shape": "lof"}, "did you mean 'log'"),
        ({"spacing": "log", "edges": (0, 5, 10)}, "leave it out where edges"),
        ({"transform_unit": 5}, "transform_unit needs"),
        ({"digits": 10}, "digits must be a whole number from 0 to 9"),
        ({"digits": 1, "integer": True}, "not integer"),
    ],
)
def test_what_makes_no_bins_is_refused(keys, message):
    with pytest.raises(SchemaError, match=message):
        Numeric(lower=0, upper=10, **keys)


def test_a_spike_below_the_bounds_makes_no_bin_even_where_an_edge_lies_on_it():
    """Closer bounds keep the spike that lies right below them, for the name of the first bin."""
    spike = 2979967021614345.0
    lower = math.nextafter(spike, math.inf)
    column = Numeric(lower=lower, upper=4e15, edges=(spike, 3e15, 4e15), spikes=(spike,))
    assert column.extents[0] == (lower, math.nextafter(3e15, 0))
