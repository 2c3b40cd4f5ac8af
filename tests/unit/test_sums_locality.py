"""Functions of rows: what the data-free test refuses, and how they are called on rows."""

import warnings

import numpy as np
import pytest

from stratsynth.errors import MechanismError
from stratsynth.questions.sums.row_vectors import BLOCK, check_row_local, evaluate, frame, made_up
from stratsynth.schema import Categorical, Numeric, Schema

NAMES = [f"x{i}" for i in range(12)]
SCHEMA = Schema(
    {name: Numeric(lower=-5, upper=i + 3.7) for i, name in enumerate(NAMES)}
    | {"age": Numeric(lower=0, upper=99, integer=True, missing=True), "kind": Categorical(levels=("a", "b"))}
)
calls = []


def numbers(rows):
    return rows[NAMES[:2]].to_numpy()


def counter(rows):
    calls.append(1)
    return numbers(rows) + len(calls)


def changes(rows):
    rows["x0"] = 0.0
    return numbers(rows)


def scaled(rows):
    """The numbers themselves, off by their last digits in single precision, which go by the largest number around."""
    x = numbers(rows).astype(np.float32)
    return x / np.abs(x).max() * np.abs(x).max()


def reseeded(rows):
    return numbers(rows) + np.random.RandomState(0).normal(size=(len(rows), 2))


SOUND = {
    "numbers": numbers,
    "missing values": lambda rows: rows[["age", "x0"]].to_numpy(),
    "levels": lambda rows: np.stack([rows["kind"] == "a", rows["x1"] > 0], axis=1).astype(np.float32),
    "a frame": lambda rows: rows[NAMES[:2]] ** 2,
}
UNSOUND = {
    "the mean": lambda rows: numbers(rows) - numbers(rows).mean(axis=0),
    "the number of rows": lambda rows: numbers(rows) / len(rows),
    "sorting": lambda rows: np.sort(numbers(rows), axis=0),
    "ranks": lambda rows: rows[NAMES[:2]].rank().to_numpy(),
    "cumulative sums": lambda rows: np.cumsum(numbers(rows), axis=0),
    "the row before": lambda rows: rows[NAMES[:2]].shift(fill_value=0.0).to_numpy(),
    "the position": lambda rows: numbers(rows) + rows.index.to_numpy()[:, None],
    "the largest": lambda rows: numbers(rows) / numbers(rows).max(),
    "a filled gap": lambda rows: rows[["age", "x0"]].ffill().fillna(0.0).to_numpy(),
    "single precision": scaled,
    "random numbers": lambda rows: numbers(rows) + np.random.normal(size=(len(rows), 2)),  # noqa: NPY002
    "random numbers, seeded": reseeded,
    "a counter": counter,
    "changed rows": changes,
    "whole numbers": lambda rows: numbers(rows).astype(int),
    "text": lambda rows: rows[["kind", "kind"]].to_numpy(),
    "one number too many": lambda rows: rows[NAMES[:3]].to_numpy(),
    "one row too few": lambda rows: numbers(rows)[1:],
    "an error": lambda rows: rows["nowhere"],
}


@pytest.mark.parametrize("function", SOUND.values(), ids=SOUND.keys())
def test_row_local_functions_pass(function):
    check_row_local(function, 2, SCHEMA)


@pytest.mark.parametrize("function", UNSOUND.values(), ids=UNSOUND.keys())
def test_what_looks_at_other_rows_is_refused(function):
    with pytest.raises(MechanismError, match="row vectors: "):
        check_row_local(function, 2, SCHEMA)


def test_the_refusal_says_what_differs_and_what_to_do():
    with pytest.raises(MechanismError, match=r"when they come .*; compute each row's vector from that row alone"):
        check_row_local(UNSOUND["the mean"], 2, SCHEMA)
    with pytest.raises(MechanismError, match="second time"):
        check_row_local(counter, 2, SCHEMA)


def test_made_up_rows_have_every_level_and_the_bounds():
    codes, values = made_up(SCHEMA, BLOCK)
    rows = frame(SCHEMA, codes, values, BLOCK)
    assert set(rows["kind"]) == {"a", "b"}
    assert rows["age"].isna().any()
    assert (rows["age"].dropna() % 1 == 0).all()
    assert {-5.0, 3.7} <= set(rows["x0"])
    assert not rows[NAMES].isna().to_numpy().any()


BAD = made_up(SCHEMA, 300)[1]["x0"][[5, 290]]


def taken(n, function):
    codes, values = made_up(SCHEMA, n)
    return values["x0"], evaluate(function, 1, SCHEMA, codes, values, n)


@pytest.mark.parametrize("n", [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 3])
def test_functions_see_blocks_of_one_size(n):
    seen = []

    def function(rows):
        seen.append(len(rows))
        return rows[["x0"]].to_numpy()

    x, found = taken(n, function)
    assert found[:, 0].tolist() == x.tolist()
    assert seen == [BLOCK] * -(-n // BLOCK)


@pytest.mark.parametrize(
    "failure",
    [
        lambda rows: 1 / 0,
        lambda rows: rows[["x0"]].to_numpy()[1:],
        lambda rows: rows[["kind"]].to_numpy(),
        lambda rows: None,
        lambda rows: warnings.warn("a value", stacklevel=1),
        lambda rows: __import__("sys").exit("a value"),
        lambda rows: rows[["x0"]].where(~rows["x0"].isin(BAD)).to_numpy(),
    ],
)
def test_a_failure_concerns_its_own_row_only(failure, capfd):
    def function(rows):
        return failure(rows) if rows["x0"].isin(BAD).any() else rows[["x0"]].to_numpy()

    x, found = taken(300, function)
    assert 2 <= np.isin(x, BAD).sum() < 100
    expected = np.where(np.isin(x, BAD), np.nan, x)
    np.testing.assert_array_equal(found[:, 0], expected)
    assert capfd.readouterr() == ("", "")
