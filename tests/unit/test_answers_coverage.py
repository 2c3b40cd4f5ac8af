"""The bench of intervals: what counts as covered, what is judged, and going on after an interruption."""

import dataclasses

import numpy as np
import pytest

from benches import coverage
from benches.coverage import LEVELS, QUERIES, Truth, chunk, held, judged
from stratsynth import census
from stratsynth.errors import UsageError

SCHEMA = census.schema().restrict(coverage.COLUMNS)
EXPECTED = np.array([3500.0, 700.0, 50.0, 5.0, 5.0, 300.0, 5.0, 250.0, 150.0])
CELLS = sum(SCHEMA.cells(query.cells) for query in QUERIES)


def figures(level, fits=2_000, *, shared=False, known=1.0):
    rng = np.random.default_rng(0)
    shape = (fits, 2 * len(LEVELS), 1 if shared else CELLS)
    hits = np.broadcast_to((rng.random(shape) < level).astype(np.int8), (fits, 2 * len(LEVELS), CELLS)).copy()
    hits[rng.random(fits) >= known] = -1
    return {figure.name: figure for figure in judged("made", hits, SCHEMA, EXPECTED)}


def test_what_holds_as_often_as_it_says_is_reached_and_what_does_not_is_missed():
    good = figures(0.95)["made: coverage at 95 % of noise, rates, groups of under 100"]
    assert good.reached is True
    assert good.value == pytest.approx(95, abs=1)
    assert figures(0.92)["made: coverage at 95 % of noise, rates, groups of under 100"].reached is False
    assert figures(0.98)["made: coverage at 95 % of noise, counts of everybody"].reached is False
    assert figures(0.93)["made: coverage at 95 % of noise and sampling, counts of everybody"].reached is True


def test_intervals_of_one_fit_are_no_independent_trials():
    name = "made: coverage at 95 % of noise, shares of everybody"
    alone, together = (figures(0.95, shared=shared)[name].against for shared in (False, True))
    error = [float(text.split("error ")[1].split(";")[0]) for text in (alone, together)]
    assert error[1] == pytest.approx(100 * (0.95 * 0.05 / 2_000) ** 0.5, rel=0.1)
    assert error[0] < error[1] / 3


def test_few_intervals_are_not_judged_and_what_is_not_estimable_is_printed():
    found = figures(0.95, fits=100, known=0.05)
    assert found["made: coverage at 95 % of noise, rates, groups of 1,000 and more"].reached is None
    assert found["made: not estimable, rates, groups of 1,000 and more"].value == pytest.approx(95, abs=4)


def test_a_cell_compared_with_itself_is_in_no_class():
    places = dict(coverage._places(SCHEMA, EXPECTED))
    assert ("differences of rates", ", groups of 1,000 and more") not in places
    assert places["differences of rates", ", groups of under 100"].sum() == 4 * SCHEMA.size("PUBCOV")


def test_results_are_kept_and_those_of_other_questions_refused(tmp_path, monkeypatch):
    truth = Truth([np.zeros(SCHEMA.cells(query.cells)) for query in QUERIES], EXPECTED)
    done = []
    monkeypatch.setattr(coverage, "held", lambda name, fit, _: done.append((name, fit)) or np.full((4, CELLS), fit % 2))
    first = chunk("fixed", 25, 3, truth, tmp_path)
    assert np.array_equal(chunk("fixed", 25, 3, truth, tmp_path), first)
    assert done == [("fixed", 25), ("fixed", 26), ("fixed", 27)]
    assert [path.name for path in tmp_path.iterdir()] == ["fixed-25-3.npz"]
    monkeypatch.setattr(coverage, "QUERIES", [dataclasses.replace(query, level=0.5) for query in QUERIES])
    with pytest.raises(UsageError, match="other questions"):
        chunk("fixed", 25, 3, truth, tmp_path)


def test_a_fit_is_held_against_its_own_people_and_the_population():
    truth = Truth([np.full(SCHEMA.cells(query.cells), -1e9) for query in QUERIES], EXPECTED)
    hits = held("fixed", 0, truth)
    assert hits.shape == (4, CELLS)
    assert (hits[0] == 1).mean() > 0.5
    assert not (hits[1] == 1).any()
    assert not (hits[3] == 1).any()
