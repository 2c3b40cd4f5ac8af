"""Every registered mechanism passes the contract, alone and stratified. A new one is tested by being registered."""

import pandas as pd
import pytest

from stratsynth import Categorical, Numeric, Schema, Stratified, Weights
from stratsynth.mechanism import installed, make
from stratsynth.strata import crossing
from stratsynth.testing import World, check_contract, worlds

TINY = {}
"""Settings that make a mechanism quick, by its name; the defaults where nothing is said."""
NUMBERS = {"clipped_mean", "coinpress"}
"""Mechanisms that need a numeric column, in every stratum too."""


def among(name):
    """The worlds that a mechanism can work in; none means the usual ones."""
    return numeric_worlds() if name in NUMBERS else ()


def numeric_worlds():
    """The usual worlds with numbers, and one with two, of which one is on a scale and the other is never missing."""
    usual = [w for w in worlds() if any(isinstance(w.schema.column(c), Numeric) for c in w.schema.names)]
    schema = Schema({
        "PAY": Numeric(lower=-20, upper=50, transform="log", transform_unit=5, not_applicable="N"),
        "GROUP": Categorical(levels=("a", "b")),
        "AGE": Numeric(lower=0, upper=40, bins=3),
    })  # fmt: skip
    return [*usual, World(schema, ("GROUP",), even_shares(schema, ["GROUP"]))]


@pytest.mark.parametrize("name", installed())
def test_vanilla(name):
    assert check_contract(lambda world, rows: make(name, TINY.get(name, {})), among=among(name)) == []


@pytest.mark.parametrize("name", installed())
def test_stratified(name):
    def build(world, rows):
        return Stratified(make(name, TINY.get(name, {})), world.by, world.weights)

    assert check_contract(build, among=among(name)) == []


MEANS = [
    ("coinpress", {"joint": True, "tail": "exact", "shares": [1, 1, 2]}),
    ("coinpress", {"variance": "bounded", "scale": {"AGE": 3}, "columns": ["AGE"]}),
    ("coinpress", {"count": "declared", "columns": ["AGE"]}),
    ("clipped_mean", {"count": "declared", "columns": ["AGE"], "tail": "paper", "radius": {"AGE": 2}}),
    ("clipped_mean", {"variance": "bounded"}),
]


@pytest.mark.parametrize(("name", "settings"), MEANS)
def test_means_with_other_settings(name, settings):
    """In the world whose AGE is never missing, so that a declared size will do."""

    def build(world, rows):
        return Stratified(make(name, settings), world.by, world.weights)

    assert check_contract(build, among=numeric_worlds()[-1:], tables=4, neighbours=4) == []


def test_strata_within_strata():
    """A stratified mechanism may be stratified again."""

    def build(world, rows):
        others = [name for name in world.schema.names if name not in world.by][:-1][:1]
        if not others:  # every column but one is a stratum's already
            return Stratified(make("independent", {}), world.by, world.weights)
        return Stratified(
            Stratified(make("independent", {}), others, even_shares(world.schema, others)), world.by, world.weights
        )

    assert check_contract(build, tables=9, neighbours=5) == []


def test_means_of_strata_within_strata():
    def build(world, rows):
        others = [name for name in world.schema.names if name not in (*world.by, "AGE")][:1]
        inner = Stratified(make("coinpress", {"columns": ["AGE"]}), others, even_shares(world.schema, others))
        return Stratified(inner, world.by, world.weights)

    assert check_contract(build, among=numeric_worlds()[:2], tables=4, neighbours=4) == []


def even_shares(schema, by):
    strata = crossing(schema, by)
    rows = [{**stratum.to_dict(), "share": 1 / len(strata)} for stratum in strata]
    return Weights.public(pd.DataFrame(rows), citation="made up for testing")
