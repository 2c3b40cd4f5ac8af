"""Output perturbation in all its ways on neighbouring tables; and the planted leaks that this must catch."""

from dataclasses import replace

import pytest

from helpers.broken_kinds import planted
from helpers.contract import violations
from helpers.small import even
from stratsynth import Categorical, Numeric, Schema, Stratified
from stratsynth.mechanisms import make
from stratsynth.questions import minimiser
from stratsynth.questions.minimiser import Minimiser
from stratsynth.testing import World, check_contract

SCHEMA = Schema(
    {
        "GROUP": Categorical(levels=("a", "b", "c")),
        "AREA": Categorical(levels=("n", "s")),
        "AGE": Numeric(lower=0, upper=40, bins=3, missing=True),
        "JOB": Categorical(levels=("x", "y", "z")),
        "WORK": Categorical(levels=("no", "yes"), outside="no"),
    }
)
WORLD = World(SCHEMA, ("GROUP",), even(SCHEMA, "GROUP"))
WAYS = {
    "linear": {"model": "linear", "strength": 30.0},
    "softmax, rows cut": {"target": "JOB", "clip": 0.5},
    "groups that count alike": {"objective": "balanced", "groups": ["GROUP", "AREA"]},
    "products of features": {"features": ["AREA", "AGE"], "interactions": [["AREA", "AGE"]], "strength": 2.0},
}


def checked(settings, check=violations, tables=3):
    return check(lambda world, rows: make("output_perturbation", settings), among=[WORLD], tables=tables, neighbours=4)


@pytest.mark.parametrize("way", WAYS)
def test_it_keeps_the_contract(way):
    assert checked(WAYS[way]) == []


def test_within_strata_of_another_column():
    def build(world, rows):
        inner = make("output_perturbation", {"objective": "balanced", "groups": ["GROUP"], "target": "WORK"})
        return Stratified(inner, ["AREA"], even(SCHEMA, "AREA"))

    assert violations(build, among=[WORLD], tables=3) == []


def kinds(settings, tables=4):
    return {finding.kind for finding in checked(settings, check_contract, tables)}


class Quieter:
    """States and adds four tenths of the noise that was charged."""

    kind = Minimiser

    def scale(self, proper, *given):
        return 0.4 * proper(self, *given)


def test_less_noise_than_is_charged_is_caught():
    with planted(Quieter):
        assert "sensitivity" in kinds({"model": "linear", "strength": 1e4, "features": ["JOB"]}, tables=8)


def test_a_penalty_by_the_private_number_of_rows_is_caught(monkeypatch):
    """The mean loss of paper 001, with a fixed factor: one row more moves the minimiser by far more than is charged."""
    proper = minimiser.minimised
    monkeypatch.setattr(
        minimiser,
        "minimised",
        lambda asked, rows: proper(replace(asked, strength=asked.strength / (1 + rows.size)), rows),
    )
    assert "sensitivity" in kinds({"model": "linear", "strength": 1000.0})
