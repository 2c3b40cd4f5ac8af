"""Conditions as users write them: numbers, ranges, dates and labels beside levels, in samples and queries alike."""

import datetime as dt
import re

import numpy as np
import pandas as pd
import pytest

from helpers import small
from stratsynth.errors import UsageError
from stratsynth.schema import Categorical, Nested, Numeric, Schema, Temporal
from stratsynth.schema.where import levels_of

SCHEMA = Schema(
    {
        "SEX": Categorical(levels=("1", "2"), labels={"1": "man", "2": "woman"}),
        "YEARS": Numeric(lower=0, upper=9, integer=True),
        "AGE": Numeric(lower=0, upper=9, edges=(0, 3, 6, 10), integer=True, special=("-9",), missing=True),
        "PAY": Numeric(lower=0, upper=100, edges=(0, 10, 50, 100), spikes=(0.0,)),
        "KNOWN": Categorical(levels=("0", "1"), dtype="bool", outside="missing"),
        "DAY": Temporal(lower="2024-01-01", upper="2024-12-31", edges=("2024-01-01", "2024-07-01", "2025-01-01")),
        "STAY": Temporal(kind="duration", lower=0, upper=59, bins=2),
        "JOB": Nested(levels=("it", "012"), members={"it": ("010", "011")}),
        "STATE": Categorical(levels=("5-9", "7")),
    }
)


@pytest.mark.parametrize(
    ("name", "condition", "levels"),
    [
        ("SEX", "2", ("2",)),
        ("SEX", 2, ("2",)),
        ("SEX", np.int64(2), ("2",)),
        ("SEX", 2.0, ("2",)),
        ("SEX", "woman", ("2",)),
        ("SEX", [2, "man", 2], ("2", "1")),
        ("SEX", range(1, 3), ("1", "2")),
        ("SEX", "2..", ("2",)),
        ("YEARS", 3, ("3",)),
        ("YEARS", range(3, 6), ("3", "4", "5")),
        ("YEARS", "3-5", ("3", "4", "5")),
        ("YEARS", "8..", ("8", "9")),
        ("YEARS", "..1", ("0", "1")),
        ("YEARS", range(8, 99), ("8", "9")),
        ("AGE", "3-5", ("3-5",)),
        ("AGE", range(6), ("0-2", "3-5")),
        ("AGE", -9, ("-9",)),
        ("AGE", "missing", ("missing",)),
        ("PAY", 0, ("0",)),
        ("PAY", "0..50", ("0", "(0,10)", "[10,50)")),
        ("PAY", "10..", ("[10,50)", "[50,100]")),
        ("KNOWN", True, ("1",)),
        ("KNOWN", np.False_, ("0",)),
        ("DAY", "2024-07-01..", ("2024-07-01..2024-12-31",)),
        ("DAY", "2024-01-01..2024-06-30", ("2024-01-01..2024-06-30",)),
        ("STAY", "..29", ("0-29",)),
        ("JOB", "012", ("012",)),
        ("STATE", "5-9", ("5-9",)),
        ("STATE", "5..9", ("7",)),
    ],
    ids=str,
)
def test_a_condition_names_levels(name, condition, levels):
    assert levels_of(SCHEMA, name, condition) == levels


def test_a_date_names_the_bin_that_is_that_day_alone():
    days = Schema({"DAY": Temporal(lower="2024-01-01", upper="2024-01-03", bins=3)})
    for day in (dt.date(2024, 1, 2), pd.Timestamp("2024-01-02"), np.datetime64("2024-01-02"), "2024-01-02"):
        assert levels_of(days, "DAY", day) == ("2024-01-02",)


@pytest.mark.parametrize(
    ("name", "condition", "words"),
    [
        ("SEX", 3, "has no level '3'; its levels are 1, 2"),
        ("SEX", None, "one value or a list of values, such as {'SEX': '1'}"),
        ("SEX", [], "such as {'SEX': '1'}"),
        ("SEX", pd.NA, "such as {'SEX': '1'}"),
        ("SEX", np.array(["1"]), "such as {'SEX': '1'}"),
        ("SEX", [["1"]], "such as {'SEX': '1'}"),
        ("SEX", "7..", "no level from 7 to"),
        ("YEARS", 12, "numbers from 0 to 9 alone, and no 12"),
        ("YEARS", "20..30", "numbers from 0 to 9 alone, and none in 20..30"),
        ("YEARS", "a..b", "'a' is no end of a range"),
        ("YEARS", 2.5, "no 2.5"),
        ("AGE", 4, "4 is one number of '3-5': name that, or a range of whole bins, such as '3..5'"),
        ("AGE", range(1, 6), "cuts '0-2'; whole bins are '0..5'"),
        ("PAY", "5..20", "cuts '(0,10)' and '[10,50)'; whole bins are"),
        ("PAY", float("nan"), "no level 'nan'"),
        ("PAY", float("inf"), "no level 'inf'"),
        ("JOB", "011", "counted in groups here: name 'it'"),
        ("SEXES", 1, "did you mean 'SEX'"),
    ],
    ids=str,
)
def test_what_names_no_level_is_refused_with_what_there_is(name, condition, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        levels_of(SCHEMA, name, condition)


def test_samples_and_queries_take_the_same_conditions():
    release = small.clear_release()
    rows = release.sample(50, where={"SEX": 1, "AGE": range(3, 10)}, seed=1)
    assert set(rows["SEX"]) == {"1"}
    assert rows["AGE"].between(3, 9).all()
    one = release.query(["WORK"], where={"SEX": 1, "AGE": "3..9"})
    assert one.equals(release.query(["WORK"], where={"SEX": "1", "AGE": ["3-5", "6-9"]}))
    assert release.query(["WORK"], by=["SEX"], versus={"SEX": 1}).equals(
        release.query(["WORK"], by=["SEX"], versus={"SEX": "1"})
    )


@pytest.mark.parametrize("where", [{"AGE": 30}, {"SEXX": 2}, "SEX=2"], ids=str)
def test_no_message_has_a_column_or_level_that_is_not_there(where):
    """The example in a message is one of this schema, and never a constant."""
    with pytest.raises(UsageError) as refused:
        small.clear_release().sample(1, where=where)
    assert "{'AGE': '2'}" not in str(refused.value)
    assert "'2'" not in str(refused.value)
