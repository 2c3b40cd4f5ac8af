"""Raking: consistent controls are reached, contradictory ones are not; whole rows have their totals but for a few."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import small
from strategies import examples
from stratsynth import Benchmark, ControlTable
from stratsynth.errors import UsageError
from stratsynth.models.controls import CONVERGED, chosen_rows, distances, kinds_of, raked, whole_numbers

CELLS = st.lists(st.floats(0.01, 100) | st.sampled_from([0.01, 100.0]), min_size=24, max_size=24)
SHAPE = (2, 3, 4)
SIDES = st.lists(st.sampled_from([(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]), min_size=1, max_size=4, unique=True)


def places_of(sides):
    inside = np.indices(SHAPE).reshape(3, -1)
    shapes = [[SHAPE[axis] for axis in side] for side in sides]
    return [
        np.ravel_multi_index([inside[axis] for axis in side], shape) for side, shape in zip(sides, shapes, strict=True)
    ]


def targets_of(places, shares):
    return [np.bincount(place, shares) for place in places]


@given(CELLS, CELLS, SIDES)
def test_controls_of_any_population_are_reached_from_any_model_that_has_all_rows(model, people, sides):
    start, truth = np.array(model) / sum(model), np.array(people) / sum(people)
    places = places_of(sides)
    targets = targets_of(places, truth)
    found = raked(start, places, targets)
    assert found.reached
    assert distances(start * found.ratios, places, targets).max() <= CONVERGED
    product = np.prod([f[p] for f, p in zip(found.factors, places, strict=True)], axis=0)
    assert found.ratios == pytest.approx(product), "a row's ratio is the product of its cells' factors"


@given(CELLS, CELLS, SIDES, st.floats(1.01, 3))
def test_no_ratio_is_above_the_bound_whatever_is_asked(model, people, sides, most):
    start, truth = np.array(model) / sum(model), np.array(people) / sum(people)
    places = places_of(sides)
    found = raked(start, places, targets_of(places, truth), most, rounds=50)
    assert found.ratios.max() <= most
    assert found.missed == pytest.approx(distances(start * found.ratios, places, targets_of(places, truth)))


@examples(5, 200)
@given(CELLS, st.floats(0.001, 0.2))
def test_tables_that_no_population_has_are_refused_by_name(people, off):
    truth = np.array(people).reshape(SHAPE)[:, :, :2].sum(axis=2)  # SEX x AGE
    sex = truth.sum(axis=1)
    moved = (1 - off) * sex + off * sex.sum() * (np.arange(2) == np.argmin(sex))
    ages = ("0..2", "3..5", "6..9")
    both = pd.DataFrame([(str(i + 1), ages[j], truth[i, j]) for i in range(2) for j in range(3)])
    one = ControlTable(both.set_axis(["SEX", "AGE", "count"], axis=1), citation="Yearbook, table one")
    right = ControlTable(pd.DataFrame({"SEX": ["1", "2"], "count": sex}), citation="Yearbook, table two")
    wrong = ControlTable(pd.DataFrame({"SEX": ["1", "2"], "count": moved}), citation="Yearbook, table three")
    assert len(Benchmark([one, right]).read(small.SCHEMA)) == 2
    with pytest.raises(UsageError, match="Yearbook, table one and Yearbook, table three contradict each other"):
        Benchmark([one, wrong]).read(small.SCHEMA)


@given(CELLS, SIDES, st.integers(0, 5000), st.integers(0, 2**32))
def test_whole_rows_add_up_and_every_cell_is_off_by_a_few(people, sides, n, seed):
    shares, places, rng = np.array(people) / sum(people), places_of(sides), np.random.default_rng(seed)
    sizes = [int(place.max()) + 1 for place in places]
    numbers = whole_numbers(shares * n, places, sizes, n, rng)
    assert numbers.sum() == n
    assert np.abs(numbers - shares * n).max() <= 2
    for place in places:
        assert np.abs(np.bincount(place, numbers) - np.bincount(place, shares * n)).max() <= 5
    kinds = rng.integers(0, 24, 500)
    kinds[:24] = range(24)
    assert np.bincount(kinds[chosen_rows(kinds, numbers, rng)], minlength=24).tolist() == numbers.tolist()


@given(SIDES, st.integers(0, 2**32))
def test_kinds_are_the_combinations_of_cells(sides, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 24, 100)
    places = [place[rows] for place in places_of(sides)]
    kinds, inside = kinds_of(places, [24] * len(places))
    assert all((cell[kinds] == place).all() for cell, place in zip(inside, places, strict=True))
    assert len({tuple(cell) for cell in zip(*inside, strict=True)}) == len(inside[0])
