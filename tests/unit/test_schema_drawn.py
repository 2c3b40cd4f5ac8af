"""Keys of numeric columns for the law within bins: what they admit, how files hold them, what they leave alone."""

from dataclasses import fields, replace

import numpy as np
import pytest

from stratsynth import Numeric, Schema, Temporal
from stratsynth.digest import digest
from stratsynth.errors import SchemaError
from stratsynth.schema.drawn import DrawnWithin
from stratsynth.strata.strata import narrow

INCOME = Numeric(
    lower=-10_000, upper=4_000_000, edges=(-10_000, 0, 1_000, 50_000, 300_000, 4_000_001), spikes=(0,), integer=True,
    shape="pareto", tail=(2, 6), within="prior", round=((0, 10), (1_000, 100)), clip=1_000_000, sums=0.1, places=0.1,
    heaps=(10_000, 1_000, 100),
)  # fmt: skip
OLD = Numeric(lower=0, upper=100, edges=(0, 10, 100), spikes=(0,), shape="log", transform_unit=5, digits=1)


def test_a_file_holds_every_key():
    schema = Schema({"x": INCOME})
    text = schema.to_toml()
    again = Schema.from_toml_text(text)
    assert again == schema
    assert {key.name: getattr(again.columns["x"], key.name) for key in fields(DrawnWithin)} == {
        key.name: getattr(INCOME, key.name) for key in fields(DrawnWithin)
    }
    assert "round = [[0, 10], [1000, 100]]" in text
    assert "tail = [2, 6]" in text


@pytest.mark.parametrize("key", ["tail", "within", "round", "clip", "sums", "places", "heaps"])
def test_every_key_is_part_of_the_hash_and_none_of_them_where_it_is_not_declared(key):
    default = next(field.default for field in fields(Numeric) if field.name == key)
    other = replace(INCOME, sums=None, clip=None) if key == "clip" else replace(INCOME, **{key: default})
    assert Schema({"x": INCOME}) != Schema({"x": other})
    assert key not in Schema({"x": OLD}).to_toml()


def test_schemas_of_before_keep_their_hash_and_their_digest():
    old = Schema({"x": OLD})
    assert old.sha256 == "544c13c64d63ed9946236c7e51e42c2ebcebdf8908ab36bfbd0f53986fcd171e"
    assert digest(OLD) == "7accc59c9e7d952859ee2805948494323192143fc5db508833452cc5a1d69b9e"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"shape": "pareto", "tail": (2,)}, "tail must be the smallest and the largest slope"),
        ({"shape": "pareto", "tail": (6, 2)}, "tail must be"),
        ({"shape": "pareto", "tail": (0, 2)}, "tail must be"),
        ({"shape": "pareto", "tail": (2, 51)}, "tail must be"),
        ({"shape": "pareto", "tail": 2}, "tail must be a list"),
        ({"tail": (2, 6)}, 'tail needs shape = "pareto"'),
        ({"shape": "pareto", "lower": -9, "upper": 10, "bins": 1}, "a last bin above 0"),
        ({"shape": "pareto", "edges": (0, 10), "spikes": (10,)}, "a last bin above 0"),
        ({"within": "priors"}, "did you mean 'prior'"),
        ({"round": 10}, "round must be a list"),
        ({"round": (10,)}, "pairs of a size"),
        ({"round": ((0, 0),)}, "pairs of a size"),
        ({"round": ((-1, 10),)}, "pairs of a size"),
        ({"round": ((0, "10"),)}, "pairs of a size"),
        ({"round": ((0, 10), (0, 100))}, "round must ascend"),
        ({"round": ((0, 10), (5, 10))}, "round must ascend"),
        ({"clip": 0}, "above lower and at most upper"),
        ({"clip": 11}, "above lower and at most upper"),
        ({"clip": "5"}, "above lower and at most upper"),
        ({"clip": 5.5, "integer": True}, "whole number"),
        ({"sums": 0.05}, "sums needs clip"),
        ({"clip": 5, "sums": 0.5}, "sums must be a number from 0 to below .5"),
        ({"places": 0.5}, "places must be"),
        ({"places": -0.1}, "places must be"),
        ({"heaps": 10}, "heaps must be a list"),
        ({"heaps": (10, 100)}, "heaps must descend"),
        ({"heaps": (10, 10)}, "heaps must descend"),
        ({"heaps": (0.5,)}, "whole numbers"),
        ({"heaps": (True,)}, "whole numbers"),
    ],
)
def test_keys_that_make_no_law_are_refused(keys, message):
    with pytest.raises(SchemaError, match=message):
        Numeric(**{"lower": 0, "upper": 10, **keys})


@pytest.mark.parametrize(
    "keys",
    [{"shape": "pareto"}, {"clip": 10}, {"clip": np.zeros(0)}, {"heaps": (7,)}, {"round": ((0, 7),)}, {"tail": (2, 6)}],
)
@pytest.mark.parametrize("kind", ["date", "duration"])
def test_dates_and_durations_have_no_keys_of_amounts(kind, keys):
    with pytest.raises(SchemaError, match=r"dates, times and durations|tail needs"):
        Temporal(kind=kind, lower=1, upper=100, bins=5, **keys)


def test_a_tail_without_bounds_of_the_slope_has_those_of_the_module():
    assert Numeric(lower=1, upper=10, bins=2, shape="pareto").slopes == (1.5, 6)
    assert INCOME.slopes == (2, 6)


@pytest.mark.parametrize(
    ("kept", "shape", "clip"),
    [
        (slice(0, 2), "log", 0),
        (slice(1, 3), "pareto", 999),
        (slice(3, None), "pareto", 1_000_000),
    ],
)
def test_a_narrow_column_keeps_the_keys_that_its_bounds_admit(kept, shape, clip):
    small = narrow(INCOME, INCOME.all_levels[kept])
    assert (small.shape, small.clip) == (shape, clip)
    assert small.tail == (None if shape == "log" else (2, 6))
