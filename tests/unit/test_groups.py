"""Merges, bands, a hierarchy and what becomes of small groups: from levels and public sizes alone."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.small import SCHEMA, people
from stratsynth import Categorical, Groups, Numeric, Schema, StratumBudgets, Weights
from stratsynth.errors import UsageError, WeightsError
from stratsynth.layout.layout import lay_out
from stratsynth.strata import Stratum, crossing, disjoint
from stratsynth.strata.groups import Step, alone, lacking, merge_small

RACES = Schema(
    {
        "SEX": Categorical(levels=("1", "2")),
        "RACE": Categorical(levels=tuple("123456")),
        "AGE": Numeric(lower=0, upper=95, integer=True, edges=(0, 5, 15, 18, 65, 96), missing=True),
        "INCOME": Numeric(lower=-1, upper=1, edges=(-1, -0.5, 0.5, 1)),
    }
)


def made(groups, by=("SEX", "RACE"), shares=None, *, size=1000, epsilon=1.0, budgets=None):
    """The layout of some groups, by shares by label."""
    base = crossing(RACES, by)
    given_shares = shares or {s.label: 1 / len(base) for s in base}
    rows = [{**s.to_dict(), "count": given_shares.get(s.label, 0)} for s in base]
    weights = Weights.public(pd.DataFrame(rows), citation="made up")
    return lay_out(RACES, by, groups, weights, budgets, size, epsilon)


def labels(layout):
    return [stratum.label for stratum in layout.strata]


def test_a_named_merge_is_one_group_in_every_crossing():
    layout = made(Groups(merge={"RACE": {"few": ["5", "3"]}}))
    assert labels(layout) == [f"{s}|{r}" for s in "12" for r in ("1", "2", "few", "4", "6")]
    assert layout.shares[Stratum.of({"SEX": "1", "RACE": ("3", "5")})] == pytest.approx(2 / 12)
    assert layout.merged()[0] == {"stratum": "1|few", "levels": {"SEX": ["1"], "RACE": ["3", "5"]}, "why": "declared"}


def test_bands_are_cut_where_bins_end():
    assert labels(made(Groups(bands={"AGE": [18, 65]}), ("AGE",))) == ["0-17", "18-64", "65-95", "missing"]
    assert labels(made(Groups(bands={"AGE": [0, 15, 96]}), ("AGE",))) == ["0-14", "15-95", "missing"]
    assert labels(made(Groups(bands={"INCOME": [0.5]}), ("INCOME",))) == ["[-1,0.5)", "[0.5,1]"]


LADDER = {"RACE": {"34": ["3", "4"], "345": ["34", "5"], "23456": ["345", "2", "6"]}}


def few(**counts):
    """Counts by label, a hundred where nothing is said."""
    return {s.label: counts.get(f"r{s.label}", 100) for s in crossing(RACES, ["RACE"])}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, ["1", "2", "3", "4", "5", "6"]),
        ({"r4": 1}, ["1", "2", "34", "5", "6"]),
        ({"r3": 5, "r4": 1}, ["1", "2", "345", "6"]),
        ({"r5": 1}, ["1", "2", "345", "6"]),
        ({"r6": 1}, ["1", "23456"]),
        ({"r1": 1}, ["1", "2", "3", "4", "5", "6"]),
    ],
)
def test_small_groups_merge_step_by_step_until_they_are_small_no_more(counts, expected):
    shares = few(**counts)
    size = sum(shares.values())
    layout = made(Groups(hierarchy=LADDER, small="merge", threshold=50), ("RACE",), shares, size=size)
    assert labels(layout) == expected
    assert [s.label for s in layout.small] == [label for label in expected if label == "1" and "r1" in counts]


def test_it_is_size_times_epsilon_that_counts():
    shares = few(r4=60)
    groups = Groups(hierarchy=LADDER, small="merge", threshold=50)
    assert "34" not in labels(made(groups, ("RACE",), shares, size=560, epsilon=1))
    assert "34" in labels(made(groups, ("RACE",), shares, size=560, epsilon=0.8))
    less = StratumBudgets.factors({"4": 0.5})
    layout = made(groups, ("RACE",), shares, size=560, epsilon=1, budgets=less)
    merged = Stratum.of({"RACE": ("3", "4")})
    assert layout.epsilons[merged] == 0.5, "nobody gets more than was declared"
    assert "public size 60 x epsilon 0.5 is below 50" in layout.merged()[0]["why"]


def test_other_columns_are_merged_too_and_groups_stay_boxes():
    """1|4 is small: 3 and 4 are merged there; 2|4 is small after that still, and SEX is merged around it."""
    by = ("SEX", "RACE")
    shares = {s.label: 100 for s in crossing(RACES, by)} | {"1|4": 1, "2|6": 1}
    groups = Groups(hierarchy={"RACE": {"34": ["3", "4"]}, "SEX": {"both": ["1", "2"]}}, small="merge", threshold=50)
    layout = made(groups, by, shares, size=1002)
    assert "1|34" in labels(layout)
    assert "both|6" in labels(layout)
    wide = made(groups, by, shares | {"1|3": 1, "2|4": 99}, size=900)
    assert "both|34" in labels(wide), "2|3 and 2|4 are taken in: a merge overlaps with no other group"
    assert disjoint(wide.strata)


STEPS = (
    Step("RACE", "34", ("3", "4")),
    Step("RACE", "345", ("3", "4", "5")),
    Step("SEX", "both", ("1", "2")),
    Step("RACE", "all", tuple("123456")),
)


@given(st.lists(st.integers(0, 60), min_size=12, max_size=12), st.permutations(STEPS), st.integers(1, 200))
def test_every_cell_is_in_one_group_and_no_small_one_has_left_out_the_last_step(sizes, steps, threshold):
    base = crossing(RACES, ["SEX", "RACE"])
    people, whole = dict(zip(base, sizes, strict=True)), dict.fromkeys(base, 1.0)
    found = merge_small(base, steps, people, whole, threshold)
    assert disjoint(group.stratum for group in found)
    assert sum(group.stratum.size for group in found) == len(base)
    assert sorted(m for group in found for m in group.members) == sorted(base)
    for group in found:
        assert group.stratum.size == len(group.members)
        if lacking(group, people, whole, threshold):  # nothing was merged after the last step: it was taken
            assert not set(group.stratum.levels[steps[-1].column]) < set(steps[-1].levels)
    assert merge_small(base, steps, people, whole, 0) == alone(base)


def test_small_groups_may_be_given_one_way_tables_only():
    layout = made(Groups(small="one-way", threshold=50), ("RACE",), few(r4=1), size=501)
    assert [s.label for s in layout.strata if layout.plainly(s)] == ["4"]
    kept = made(Groups(), ("RACE",), few(r4=1), size=501)
    assert not any(kept.plainly(s) for s in kept.strata)


REFUSED = {
    "merges that are no table": ({"merge": ["3", "4"]}, "table"),
    "a column without names": ({"merge": {"RACE": ["3", "4"]}}, "table"),
    "levels that are a text": ({"merge": {"RACE": {"x": "34"}}}, "table"),
    "levels that are numbers": ({"merge": {"RACE": {"x": [3, 4]}}}, "table"),
    "a column that is not split by": ({"merge": {"AGE": {"x": ["0-4", "5-14"]}}}, "by"),
    "a column that is not there": ({"merge": {"RACES": {"x": ["3", "4"]}}}, "did you mean 'RACE'"),
    "a level that is not there": ({"merge": {"RACE": {"x": ["3", "7"]}}}, "7"),
    "a merge of one level": ({"merge": {"RACE": {"x": ["3"]}}}, "two levels"),
    "a level twice": ({"merge": {"RACE": {"x": ["3", "3"]}}}, "twice"),
    "a level in two merges": ({"merge": {"RACE": {"x": ["3", "4"], "y": ["x", "5"]}}}, "two merges"),
    "merges that overlap": ({"merge": {"RACE": {"x": ["3", "4"], "y": ["4", "5"]}}}, "overlap"),
    "a name that is a level": ({"merge": {"RACE": {"6": ["3", "4"]}}}, "level '6'"),
    "a name with what joins names": ({"merge": {"RACE": {"a|b": ["3", "4"]}}}, "name of a merge"),
    "bands and merges of a column": ({"merge": {"RACE": {"x": ["3", "4"]}}, "bands": {"RACE": [1]}}, "bands and"),
    "bands of categories": ({"bands": {"RACE": [3]}}, "not numeric"),
    "bands that are a number": ({"bands": {"RACE": 3}}, "list of numbers"),
    "a policy that is unknown": ({"small": "drop", "threshold": 3}, '"keep" or "merge" or "one-way"'),
    "a policy without a threshold": ({"small": "one-way"}, "threshold"),
    "a threshold without a policy": ({"threshold": 50}, "go together"),
    "a threshold of 0": ({"small": "one-way", "threshold": 0}, "above 0"),
    "a threshold that is true": ({"small": "one-way", "threshold": True}, "above 0"),
    "merging without a hierarchy": ({"small": "merge", "threshold": 50}, "hierarchy"),
    "a hierarchy that nobody uses": ({"hierarchy": LADDER}, "hierarchy"),
    "a hierarchy inside a fixed merge": (
        {
            "merge": {"RACE": {"345": ["3", "4", "5"]}},
            "hierarchy": {"RACE": {"34": ["3", "4"]}},
            "small": "merge",
            "threshold": 5,
        },
        "holds everywhere",
    ),
    "a hierarchy across a fixed merge": (
        {
            "merge": {"RACE": {"34": ["3", "4"]}},
            "hierarchy": {"RACE": {"45": ["4", "5"]}},
            "small": "merge",
            "threshold": 5,
        },
        "overlap",
    ),
    "a name twice": (
        {
            "merge": {"RACE": {"x": ["3", "4"]}},
            "hierarchy": {"RACE": {"x": ["x", "5"]}},
            "small": "merge",
            "threshold": 5,
        },
        "two merges",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_with_the_remedy(case):
    settings, match = REFUSED[case]
    with pytest.raises(UsageError, match=match):
        made(Groups(**settings))


def test_bands_must_be_the_schemas():
    with pytest.raises(UsageError, match="not cut at 20"):
        made(Groups(bands={"AGE": [20]}), ("AGE",))
    with pytest.raises(UsageError, match="increase"):
        made(Groups(bands={"AGE": [65, 18]}), ("AGE",))


def test_sizes_decide_so_they_must_be_public():
    groups = Groups(small="one-way", threshold=5)
    with pytest.raises(UsageError, match="declare a size"):
        made(groups, size=None)
    by = ("SEX",)
    with pytest.raises(WeightsError, match="prior"):
        lay_out(SCHEMA, by, groups, Weights.private(share=0.1), None, 100, 1.0)
    exact = Weights.invariant(pd.DataFrame({"SEX": ["1", "2"], "count": [3, 1]}))
    cut = Weights.holdout(people(30), confidential=True)
    for weights, source in ((exact, "invariant"), (cut, "confidential holdout")):
        with pytest.raises(WeightsError, match=source):
            lay_out(SCHEMA, by, groups, weights, None, 100, 1.0)
        with pytest.raises(WeightsError, match=source):
            lay_out(SCHEMA, by, groups, Weights.private(share=0.1, prior=weights), None, 100, 1.0)
