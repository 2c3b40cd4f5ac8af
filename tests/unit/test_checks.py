"""Checks of what users write: what passes, what is refused, and what a refusal quotes."""

import math

import numpy as np
import pandas as pd
import pytest

from stratsynth.checks import (
    check_integer,
    check_seed,
    flag,
    is_list,
    is_number,
    is_texts,
    number,
    one_of,
    quoted_value,
)
from stratsynth.errors import MechanismError, UsageError


@pytest.mark.parametrize("value", [0, 5, 10])
def test_whole_numbers_within_bounds_pass(value):
    check_integer("x", value, 0, 10)


@pytest.mark.parametrize("value", [-1, 11, 0.5, 1.0, True, "1", None, np.int64(3), math.nan])
def test_what_is_no_whole_number_within_bounds_is_refused_by_name(value):
    with pytest.raises(UsageError, match=r"^mst: iterations must be a whole number from 0 to 10, not "):
        check_integer("mst: iterations", value, 0, 10)


def test_the_offending_value_is_named():
    with pytest.raises(UsageError, match=r"^mst: iterations must be a whole number of at least 1, not 0\.5\.$"):
        check_integer("mst: iterations", 0.5, 1)
    with pytest.raises(UsageError, match=r"^the seed must be a whole number of at least 0, not -3\.$"):
        check_seed(-3)


@pytest.mark.parametrize(
    ("ends", "inside", "outside", "words"),
    [
        ({}, [0, -1e300, 10**300], [math.inf, math.nan, 10**400, True, "1", None], "a finite number"),
        ({"least": 0, "most": 1}, [0, 1, 0.5], [-1e-9, 1.1, math.nan], "a number from 0 to 1"),
        ({"above": 0, "below": 1}, [1e-9, 0.5], [0, 1, math.inf], "a number above 0 and below 1"),
        ({"above": 0, "most": 10}, [10], [0, 11], "a number above 0 and at most 10"),
        ({"least": 0}, [0, 1e308], [-1, math.inf], "a number of at least 0"),
    ],
    ids=str,
)
def test_numbers_keep_to_their_ends(ends, inside, outside, words):
    for value in inside:
        number("x", value, **ends)
    for value in outside:
        with pytest.raises(MechanismError, match=f"^x must be {words}, so, not "):
            number("x", value, **ends, hint=", so", error=MechanismError)


def test_words_and_flags():
    one_of("x", "a", ("a", "b"))
    for value in ("c", None, ["a"]):
        with pytest.raises(UsageError, match=r'^x must be "a" or "b", not '):
            one_of("x", value, ("a", "b"))
    flag("x", value=False)
    with pytest.raises(UsageError, match=r"^x must be true or false, not 0\.$"):
        flag("x", 0)


def test_a_text_is_no_list():
    assert is_list([1])
    assert is_list(())
    assert is_texts(["a", "b"])
    assert is_texts([])
    assert not is_list("ab")
    assert not is_list(b"ab")
    assert not is_list({"a": 1})
    assert not is_texts(["a", 1])
    assert not is_number(True)


def test_a_message_quotes_plain_values_only():
    """A frame given by mistake for a number holds rows."""
    rows = pd.DataFrame({"x": ["secret"]})
    assert "secret" not in quoted_value(rows) + quoted_value(["secret"]) + quoted_value({"a": "secret"})
    assert len(quoted_value("x" * 1000)) < 40
    assert quoted_value(10**5000) == "a number that large"


def test_what_is_optional_may_be_left_out():
    check_integer("x", None, 1, optional=True)
    number("x", None, above=0, optional=True)
    with pytest.raises(UsageError, match="whole number"):
        check_integer("x", 0, 1, optional=True)
    with pytest.raises(UsageError, match="above 0"):
        number("x", 0, above=0, optional=True)
