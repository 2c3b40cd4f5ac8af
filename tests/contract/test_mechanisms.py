"""Every registered mechanism passes the contract, alone and stratified. A new one is tested by being registered."""

import pandas as pd
import pytest

from stratsynth import Stratified, Weights
from stratsynth.mechanism import installed, make
from stratsynth.strata import crossing
from stratsynth.testing import check_contract

TINY = {}
"""Settings that make a mechanism quick, by its name; the defaults where nothing is said."""


@pytest.mark.parametrize("name", installed())
def test_vanilla(name):
    assert check_contract(lambda world, rows: make(name, TINY.get(name, {}))) == []


@pytest.mark.parametrize("name", installed())
def test_stratified(name):
    def build(world, rows):
        return Stratified(make(name, TINY.get(name, {})), world.by, world.weights)

    assert check_contract(build) == []


def test_strata_within_strata():
    """A stratified mechanism may be stratified again."""

    def build(world, rows):
        others = [name for name in world.schema.names if name not in world.by][:-1][:1]
        if not others:  # every column but one is a stratum's already
            return Stratified(make("independent", {}), world.by, world.weights)
        return Stratified(Stratified(make("independent", {}), others, even(world, others)), world.by, world.weights)

    assert check_contract(build, tables=9, neighbours=5) == []


def even(world, by):
    strata = crossing(world.schema, by)
    rows = [{**stratum.to_dict(), "share": 1 / len(strata)} for stratum in strata]
    return Weights.public(pd.DataFrame(rows), citation="made up for testing")
