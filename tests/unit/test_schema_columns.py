"""Columns: what is refused, and what the levels, bins and types come to."""

from __future__ import annotations

import pickle

import pytest

from stratsynth.errors import SchemaError
from stratsynth.schema import Categorical, Numeric
from stratsynth.schema.text import number

NAN = float("nan")


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"levels": ()}, "empty"),
        ({"levels": "12"}, "list"),
        ({"levels": ["1", "1"]}, "twice"),
        ({"levels": [1, 2]}, "text"),
        ({"levels": [""]}, "empty"),
        ({"levels": ["a\nb"]}, "control"),
        ({"levels": ["\ud800"]}, "control"),
        ({"levels": ["x" * 1001]}, "1000"),
        ({"levels": ["=1+1"]}, "formula"),
        ({"levels": ["=1"]}, "formula"),
        ({"levels": ["@SUM(A1)"]}, "formula"),
        ({"levels": ["+cmd|' /C calc'!A0"]}, "formula"),
        ({"levels": ["-2+3"]}, "formula"),
        ({"levels": ["\tx"]}, "control"),
        ({"levels": ["a"], "labels": {"a": "=1+1"}}, "formula"),
        ({"levels": ["a"], "labels": {"b": "B"}}, "labels"),
        ({"levels": ["a"], "labels": ["b"]}, "labels"),
        ({"levels": ["a"], "not_applicable": "N"}, "not_applicable"),
        ({"levels": ["a"], "outside": "b"}, "outside"),
        ({"levels": ["a"], "outside": ["a"]}, "outside"),
        ({"levels": ["a"], "dtype": "int"}, "dtype"),
        ({"levels": ["a"], "dtype": "int64"}, "int64"),
        ({"levels": ["1.5"], "dtype": "int64"}, "int64"),
        ({"levels": ["9223372036854775808"], "dtype": "int64"}, "int64"),
        ({"levels": ["1e99999999"], "dtype": "int64"}, "int64"),
        ({"levels": ["1", "01"], "dtype": "int64"}, "tell"),
        ({"levels": ["0.10000000000000000001"], "dtype": "float64"}, "float64"),
        ({"levels": ["1e999"], "dtype": "float64"}, "float64"),
        ({"levels": ["2"], "dtype": "bool"}, "bool"),
        ({"levels": ["1", "True"], "dtype": "bool"}, "tell"),
    ],
)
def test_a_categorical_that_makes_no_sense_is_refused(keys, word):
    with pytest.raises(SchemaError, match=word):
        Categorical(**keys)


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"lower": 1, "upper": 1}, "upper must be above lower"),
        ({"lower": NAN, "upper": 1}, "lower"),
        ({"lower": 0, "upper": float("inf")}, "upper"),
        ({"lower": 0, "upper": 10**400}, "upper"),
        ({"lower": True, "upper": 2}, "lower"),
        ({"lower": "0", "upper": 2}, "lower"),
        ({"lower": 0.5, "upper": 2, "integer": True}, "lower"),
        ({"lower": 0, "upper": 2**53 + 2, "integer": True}, "upper"),
        ({"lower": 0, "upper": 2, "integer": 1}, "integer"),
        ({"lower": 0, "upper": 2, "missing": "yes"}, "missing"),
        ({"lower": 0, "upper": 2, "edges": (0, 1, 2), "bins": 2}, "not both"),
        ({"lower": 0, "upper": 2, "edges": (0,)}, "two"),
        ({"lower": 0, "upper": 2, "edges": ()}, "empty"),
        ({"lower": 0, "upper": 2, "edges": (0, NAN, 2)}, "edges"),
        ({"lower": 0, "upper": 2, "edges": (0, 1, 1, 2)}, "increase"),
        ({"lower": 0, "upper": 2, "edges": (1, 2)}, "reach"),
        ({"lower": 0, "upper": 2, "edges": (0, 1)}, "reach"),
        ({"lower": 0, "upper": 2, "edges": (-2, -1, 2)}, "outside lower"),
        ({"lower": 0, "upper": 2, "edges": (-2, 0, 2)}, "outside lower"),
        ({"lower": 0, "upper": 2, "edges": (0, 3, 4)}, "outside lower"),
        ({"lower": 0, "upper": 2, "bins": 0}, "bins"),
        ({"lower": 0, "upper": 2, "bins": True}, "bins"),
        ({"lower": 0, "upper": 2, "bins": 10**9}, "bins"),
        ({"lower": 0, "upper": 5e-324, "bins": 2}, "bins"),
        ({"lower": 0, "upper": 2, "bins": 4, "integer": True}, "bins"),
        ({"lower": 0, "upper": 2, "outside": "drop"}, "outside"),
        ({"lower": 0, "upper": 2, "dtype": "int64"}, "integer"),
        ({"lower": 0, "upper": 2, "dtype": "category"}, "dtype"),
        ({"lower": 0, "upper": 2, "not_applicable": "1.5"}, "not_applicable"),
        ({"lower": 0, "upper": 2, "not_applicable": "missing"}, "not_applicable"),
        ({"lower": 0, "upper": 2, "not_applicable": "[0,1)", "bins": 2}, "twice"),
        ({"lower": 0, "upper": 2, "labels": {"zz": "x"}}, "labels"),
    ],
)
def test_a_numeric_that_makes_no_sense_is_refused(keys, word):
    with pytest.raises(SchemaError, match=word):
        Numeric(**keys)


def test_a_negative_number_is_no_formula():
    assert Categorical(levels=("-1", "+2.5", "<=50K")).size == 3


def test_missing_is_added_once():
    assert Categorical(levels=["a"], outside="missing").all_levels == ("a", "missing")
    assert Categorical(levels=["missing", "a"], outside="missing").all_levels == ("missing", "a")
    assert Categorical(levels=["a"]).all_levels == ("a",)
    assert Numeric(lower=0, upper=1, bins=1, outside="missing").all_levels == ("[0,1]", "missing")


@pytest.mark.parametrize(
    ("keys", "levels"),
    [
        ({"lower": 0, "upper": 1, "bins": 2}, ("[0,0.5)", "[0.5,1]")),
        ({"lower": 0.5, "upper": 1, "edges": (0, 1, 2)}, ("[0,1)", "[1,2)")),
        ({"lower": 0, "upper": 3, "integer": True}, ("0", "1", "2", "3")),
        ({"lower": 0, "upper": 95, "integer": True, "edges": (0, 5, 90, 96)}, ("0-4", "5-89", "90-95")),
        ({"lower": 0, "upper": 95, "integer": True, "edges": (0, 5, 95)}, ("0-4", "5-95")),
        ({"lower": -5, "upper": 4, "integer": True, "bins": 2}, ("[-5,-1]", "0-4")),
        ({"lower": 0, "upper": 6, "integer": True, "bins": 3}, ("0-1", "2-3", "4-6")),
        (
            {"lower": 0, "upper": 4, "bins": 1, "not_applicable": "N", "missing": True},
            ("[0,4]", "N", "missing"),
        ),
    ],
)
def test_bins_have_readable_levels(keys, levels):
    assert Numeric(**keys).all_levels == levels


def test_bins_by_default_do_not_depend_on_data():
    assert Numeric(lower=0, upper=99, integer=True).size == 100
    assert Numeric(lower=0, upper=100, integer=True).size == 20
    assert Numeric(lower=0, upper=1).size == 20
    assert Numeric(lower=-1e308, upper=1e308).breaks[10] == 0


def test_extents_stay_within_the_bounds():
    column = Numeric(lower=2, upper=9, integer=True, edges=(0, 5, 20))
    assert column.extents == ((2, 4), (5, 9))


def test_types_by_default_lose_nothing():
    assert Numeric(lower=0, upper=1).dtype == "float64"
    assert Numeric(lower=0, upper=1, integer=True).dtype == "int64"
    assert Numeric(lower=0, upper=1, not_applicable="N").dtype == "string"


def test_typed_levels_leave_out_those_that_are_no_value():
    column = Categorical(levels=("N", "01", "2.0"), not_applicable="N", outside="missing", dtype="int64")
    assert column.values == (None, 1, 2, None)
    assert Categorical(levels=("missing", "a")).values == ("missing", "a")


def test_columns_are_values():
    a = Categorical(levels=["a", "b"], labels={"a": "A", "b": "B"})
    b = Categorical(levels=("a", "b"), labels={"b": "B", "a": "A"})
    assert a == b
    assert hash(a) == hash(b)
    assert a != Categorical(levels=("a", "b"))
    assert Numeric(lower=0, upper=1) == Numeric(lower=0.0, upper=True + 0.0)
    assert pickle.loads(pickle.dumps(a)) == a  # noqa: S301 - our own


@pytest.mark.parametrize("text", ["1_000", "nan", "inf", "-inf", "0x1", "1e400", "", " ", ".", "1e", "١", "1\n", "1 2"])
def test_what_is_no_number(text):
    assert number(text) is None


@pytest.mark.parametrize(("text", "value"), [(" +1.50 ", 1.5), (".5", 0.5), ("5.", 5), ("1E-400", 0), ("-0", 0)])
def test_what_is_a_number(text, value):
    assert number(text) == value
