"""Workloads: how they are written, what they weigh, and what lies within them."""

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratsynth.adapters.shared.workload import Workload, closure
from stratsynth.errors import Unsupported, UsageError

COLUMNS = ("a", "b", "c", "d")


@pytest.mark.parametrize("k", range(1, 6))
def test_all_ways_are_all_sets_of_so_many_columns_or_of_all_there_are(k):
    found = Workload(f"all {k}-way").among(COLUMNS)
    assert found == dict.fromkeys(combinations(COLUMNS, min(k, 4)), 1.0)


def test_lists_keep_the_schemas_order_and_each_set_is_one():
    found = Workload([["d", "b"], ["c"], ["b", "d"]]).among(COLUMNS)
    assert found == {("b", "d"): 1.0, ("c",): 1.0}


def test_constant_columns_are_left_out_and_what_is_left_counts():
    """In a stratum of g, a table of g and a is a table of a; one of g alone is nothing."""
    workload = Workload([["g", "a"], ["g"], ["a", "b"]], {"g": 3.0})
    assert workload.among(("a", "b")) == {("a",): 1.0, ("a", "b"): 1.0}


@pytest.mark.parametrize("columns", [(), ("a",)])
def test_hardly_any_columns_left(columns):
    assert Workload("all 3-way").among(columns) == ({columns: 1.0} if columns else {})


def test_weights_multiply_where_several_apply():
    found = Workload("all 2-way", {"a": 2.0, "b": 5.0, "a, b": 3.0}).among(("a", "b", "c"))
    assert found == {("a", "b"): 30.0, ("a", "c"): 2.0, ("b", "c"): 5.0}


@given(
    st.dictionaries(
        st.sets(st.sampled_from(COLUMNS), min_size=1).map(lambda s: tuple(sorted(s))),
        st.floats(0.1, 10),
        min_size=1,
        max_size=5,
    )
)
def test_a_part_matters_as_much_as_the_most_important_marginal_around_it(workload):
    found = closure(workload)
    every = [c for k in range(1, 5) for c in combinations(COLUMNS, k)]
    assert set(found) == {c for c in every if any(set(c) <= set(whole) for whole in workload)}
    for part, weight in found.items():
        assert weight == max(w for whole, w in workload.items() if set(part) <= set(whole))


WRONG = {
    "no such words": ({"marginals": "3-way"}, "all 3-way"),
    "no such number": ({"marginals": "all 6-way"}, "1 to 5"),
    "nothing": ({"marginals": []}, "list of lists"),
    "a list of columns": ({"marginals": ["a", "b"]}, "list of lists"),
    "an empty marginal": ({"marginals": [["a"], []]}, "list of lists"),
    "a column twice": ({"marginals": [["a", "a"]]}, "different columns"),
    "too wide": ({"marginals": [list("abcdef")]}, "1 to 5"),
    "numbers": ({"marginals": [[1, 2]]}, "list of lists"),
    "a number": ({"marginals": 3}, "list of lists"),
    "weight zero": ({"weights": {"a": 0}}, "the weight of a must"),
    "weight without end": ({"weights": {"a": math.inf}}, "the weight of a must"),
    "weight that is no number": ({"weights": {"a": "2"}}, "the weight of a must"),
    "weight that is true": ({"weights": {"a": True}}, "the weight of a must"),
    "weights in a list": ({"weights": ["a"]}, "weights by column"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_makes_no_sense_is_refused(case):
    settings, match = WRONG[case]
    with pytest.raises(UsageError, match=match):
        Workload(**settings)


@pytest.mark.parametrize("settings", [{"marginals": [["SEX", "AGPE"]]}, {"weights": {"SEX,AGPE": 2}}], ids=str)
def test_unknown_columns_are_named_with_the_nearest_known(settings):
    with pytest.raises(UsageError, match=r"no column 'AGPE'.*AGEP"):
        Workload(**settings).check(("SEX", "AGEP"))


def test_more_marginals_than_can_be_worked_with_are_refused():
    columns = [f"c{i}" for i in range(108)]
    with pytest.raises(Unsupported, match="all 2-way"):
        Workload("all 3-way").among(columns)
    assert len(Workload("all 2-way").among(columns)) == 108 * 107 // 2
