"""Mechanisms whose fits ask sums of numbers pass the contract, in worlds that are declared large enough for them."""

import dataclasses
from functools import partial

import pandas as pd
import pytest

from helpers.contract import caught, violations
from helpers.small import even
from stratsynth import Budget, Groups, Numeric, Schema, Stratified, StratumBudgets, Weights
from stratsynth.accounting.budget import Neighbours
from stratsynth.adapters import Independent
from stratsynth.mechanisms import make, prepare
from stratsynth.mechanisms.with_sums import WithSums
from stratsynth.questions.sums import columns
from stratsynth.questions.sums.base import Block
from stratsynth.schema.weight import RowWeight
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
    assert violations(build(how), among=WORLDS) == []


def test_these_worlds_have_sums_of_everybody_and_of_strata():
    for world in WORLDS:
        prepared = prepare(build("strata")(world, None), world.schema, Budget(3, 1e-6), LARGE)
        assert isinstance(prepared.mechanism, WithSums)
        assert prepared.beside.sums.strata
        assert [bool(q.multiples) for q in prepared.beside.bin_sums.questions] == [False, True]


PAY = Numeric(
    lower=-50,
    upper=1000,
    edges=(-50, 0, 10, 100, 1000),
    spikes=(0,),
    special=("-999",),
    missing=True,
    shape="log",
    transform="log",
    transform_unit=10,
    clip=300,
    sums=0.1,
    places=0.3,
    heaps=(100, 50),
)


YEARS = Numeric(lower=0, upper=99, integer=True, shape="smooth", missing=True, clip=80, places=0.3, heaps=(10, 5))
"""Ages that a fit of 20,000 people counts in bands."""


def paid(*public, neighbours=Neighbours.ADD_REMOVE, ages=None, **more):
    """The first world with amounts beside its ages, or beside `ages`, and these columns public."""
    columns = {**WORLDS[0].schema.columns, "PAY": PAY, **({} if ages is None else {"AGE": ages})}
    columns = {name: dataclasses.replace(column, public=name in public) for name, column in columns.items()}
    return dataclasses.replace(WORLDS[0], schema=Schema(columns, **more), neighbours=neighbours)


def mst_by(world, **more):
    return Stratified(make("mst", {}), world.by, world.weights, **more)


def nested(world):
    return Stratified(Stratified(Independent(), ["SEX"], even(world.schema, "SEX")), world.by, world.weights)


BANDS = Weights.public(
    pd.DataFrame({"AGE": ["0-19", "20-40", "missing"], "share": [0.5, 0.4, 0.1]}), citation="made up for testing"
)
MERGED = Groups(hierarchy={"GROUP": {"rest": ["2", "8", "9", "missing"]}}, small="merge", threshold=60_000)
OWN = StratumBudgets.factors({"2": 0.5, "8": 0.25})
CASES = {
    "exchanged": (paid(neighbours=Neighbours.REPLACE), mst_by),
    "an attribute": (paid("GROUP", "PAY", neighbours=Neighbours.ATTRIBUTE), mst_by),
    "weights of rows": (paid(row_weight=RowWeight(most=7, column="W")), mst_by),
    "budgets of their own": (paid(), partial(mst_by, budgets=OWN)),
    "merged": (paid(), partial(mst_by, groups=MERGED)),
    "strata of strata": (paid(), nested),
    "bands of a column with sums": (
        dataclasses.replace(paid(), by=("AGE",)),
        lambda _: Stratified(Independent(), ["AGE"], BANDS, Groups(bands={"AGE": [20]})),
    ),
    "ages in bands": (dataclasses.replace(paid(ages=YEARS), declared_size=20_000), mst_by),
    "tables by strata": (paid(neighbours=Neighbours.REPLACE), partial(mst_by, groups=Groups(by_tables=0.2))),
    "noisy weights": (paid(), lambda world: Stratified(make("mst", {}), world.by, Weights.private(share=0.1))),
}


@pytest.mark.parametrize("case", CASES)
def test_sums_keep_to_their_price_however_people_differ_and_are_divided(case):
    world, how = CASES[case]
    prepared = prepare(how(world), world.schema, Budget(3, 1e-6, world.neighbours), world.declared_size)
    assert (prepared.public.schema is world.schema) == (case != "ages in bands")
    assert (len(prepared.beside.sums.columns), len(prepared.beside.bin_sums.questions)) == (2, 4)
    assert (prepared.beside.by_tables is not None) == (case == "tables by strata")
    assert violations(lambda world, _: how(world), among=[world], tables=2, orders=0) == []


@pytest.mark.parametrize("planted", ["the grid", "the neighbours"])
def test_the_suite_asks_the_sums_and_finds_one_that_a_record_moves_too_far(planted, monkeypatch):
    """A contract of the mechanism inside alone would ask none, and find nothing."""
    if planted == "the grid":
        monkeypatch.setattr(columns, "GRID", 2 * columns.GRID)
        assert "sensitivity" in caught(build("independent"), among=WORLDS[:1], orders=0)
    else:
        exchanged = dataclasses.replace(WORLDS[0], neighbours=Neighbours.REPLACE)
        monkeypatch.setattr(Block, "reach", lambda *_: 1.0)
        assert "sensitivity" in caught(build("independent"), among=[exchanged], orders=0)
