"""DP-FERMI that protects the sensitive attribute alone, on tables that differ in it; and leaks that must be caught."""

import numpy as np
import pytest

from helpers.attribute import WORLD
from helpers.contract import violations
from helpers.priced import RATE, STEPS, remember
from helpers.small import even
from stratsynth import Stratified
from stratsynth.accounting.budget import Neighbours
from stratsynth.driver import rows
from stratsynth.mechanisms import make
from stratsynth.questions.reading import PublicColumns
from stratsynth.questions.sums import fairness, kernel
from stratsynth.testing import check_contract

FEATURES = {"features": ["AGE", "AREA"]}
WAYS = {
    "parity, shares from noisy sums": {},
    "odds, shares from noisy sums": {"criterion": "odds", "warm_up": 0.5},
    "parity, public shares": {"sizes": {"a": 5, "b": 3, "c": 2}, "sizes_citation": "made up for testing"},
    "softmax, a crossing of groups": {"target": "JOB", "groups": ["GROUP", "SECOND"], "region": "ball"},
    "softmax, odds": {"target": "JOB", "criterion": "odds", "tail": 0.0},
}


@pytest.fixture(scope="module", autouse=True)
def priced():
    remember(Neighbours.ATTRIBUTE)


def checked(settings, check=violations, tables=3):
    common = {"target": "WORK", "groups": ["GROUP"], "penalty": 1.0, "iterations": STEPS, "sampling": RATE}
    common |= {"protect": "sensitive"}

    def build(world, frame):
        return make("fermi", {**common, **FEATURES, **settings})

    return check(build, among=[WORLD], tables=tables, neighbours=4)


def kinds(settings, tables=3):
    return {finding.kind for finding in checked(settings, check_contract, tables)}


@pytest.mark.parametrize("way", WAYS)
def test_it_keeps_the_contract(way):
    assert checked(WAYS[way]) == []


def test_within_strata_of_a_public_column():
    def build(world, frame):
        settings = {"target": "WORK", "features": ["AGE"], "groups": ["GROUP"], "iterations": STEPS, "sampling": RATE}
        how = make("fermi", {**settings, "penalty": 1.0, "protect": "sensitive"})
        return Stratified(how, ["AREA"], even(world.schema, "AREA"))

    assert violations(build, among=[WORLD], tables=3, neighbours=4) == []


@pytest.mark.parametrize("name", ["mst", "independent"])
def test_what_is_sound_for_an_exchange_is_sound_for_an_attribute(name):
    assert violations(lambda world, frame: make(name, {}), among=[WORLD], tables=3, neighbours=4) == []


def test_a_gradient_that_is_not_clipped_is_caught(monkeypatch):
    into_ball = kernel.into_ball
    monkeypatch.setattr(kernel, "into_ball", lambda *given: 8 * into_ball(*given))
    settings = {"penalty": 5.0, "clip": 1e-6, "ascent": 5.0, **WAYS["parity, public shares"]}
    assert "sensitivity" in kinds(settings, tables=6)


def test_sums_by_cell_that_are_twice_as_far_apart_are_caught(monkeypatch):
    added = fairness.added
    monkeypatch.setattr(fairness, "added", lambda *given: [2 * part for part in added(*given)])
    assert "sensitivity" in kinds({})


def test_a_protected_column_among_the_public_rows_is_caught(monkeypatch):
    """Public columns by the names that were asked for, with another column's values."""

    def columns(self, path, names):
        own = self._at(path)._parts[0]
        return PublicColumns(
            own.size,
            {n: own.codes["GROUP" if n == "WORK" else n].copy() for n in names},
            {n: own.numbers[n].copy() for n in names if n in own.numbers},
        )

    monkeypatch.setattr(rows.StoredRows, "columns", columns)
    assert "sensitivity" in kinds({})


def test_rows_sorted_by_a_protected_column_are_caught(monkeypatch):
    """The order of the answer tells what the rows were sorted by."""

    def columns(self, path, names):
        own = self._at(path)._parts[0]
        order = np.argsort(own.codes["GROUP"], kind="stable")
        return PublicColumns(
            own.size,
            {n: own.codes[n][order] for n in names},
            {n: own.numbers[n][order] for n in names if n in own.numbers},
        )

    monkeypatch.setattr(rows.StoredRows, "columns", columns)
    assert "sensitivity" in kinds({})
