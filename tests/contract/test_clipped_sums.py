"""Mechanisms whose fits ask sums of numbers pass the contract, in worlds that are declared large enough for them."""

import dataclasses

import pytest

from helpers.contract import caught, violations
from stratsynth import Budget, Numeric, Schema, Stratified
from stratsynth.accounting.budget import Neighbours
from stratsynth.mechanisms import make, prepare
from stratsynth.mechanisms.with_sums import WithSums
from stratsynth.questions.sums import within_bins
from stratsynth.questions.sums.base import Block
from stratsynth.testing import worlds

LARGE = 10**5
"""Declared size at which strata are asked; the rows are some hundreds, whatever is declared."""


def clipped(world):
    columns = {
        name: dataclasses.replace(column, clip=25, places=0.2, heaps=(10, 5)) if isinstance(column, Numeric) else column
        for name, column in world.schema.columns.items()
    }
    return dataclasses.replace(world, schema=Schema(columns), declared_size=LARGE)


WORLDS = [clipped(world) for world in worlds() if any(isinstance(c, Numeric) for c in world.schema.columns.values())]


def build(how):
    def built(world, rows):
        if how == "pooled":
            return make("pooled", {"base": "mst", "share": 0.5, "by": world.by, "weights": world.weights})
        return Stratified(make("mst", {}), world.by, world.weights) if how == "strata" else make(how, {})

    return built


@pytest.mark.parametrize("how", ["independent", "aim", "strata", "pooled"])
def test_sums_beside_a_mechanism_pass_the_contract(how):
    assert violations(build(how), among=WORLDS, tables=4) == []


def test_these_worlds_have_sums_of_everybody_and_of_strata():
    for world in WORLDS:
        prepared = prepare(build("strata")(world, None), world.schema, Budget(3, 1e-6), LARGE)
        assert isinstance(prepared.mechanism, WithSums)
        assert prepared.sums.strata
        assert [bool(q.multiples) for q in prepared.bin_sums.questions] == [False, True]


@pytest.mark.parametrize("planted", ["the grid", "the neighbours"])
def test_the_suite_asks_the_sums_and_finds_one_that_a_record_moves_too_far(planted, monkeypatch):
    """A contract of the mechanism inside alone would ask none, and find nothing."""
    if planted == "the grid":
        monkeypatch.setattr(within_bins, "GRID", 2 * within_bins.GRID)
        assert "sensitivity" in caught(build("independent"), among=WORLDS[:1], orders=0)
    else:
        exchanged = dataclasses.replace(WORLDS[0], neighbours=Neighbours.REPLACE)
        monkeypatch.setattr(Block, "reach", lambda *_: 1.0)
        assert "sensitivity" in caught(build("independent"), among=[exchanged], orders=0)
