"""Every mechanism that starts from a prior passes the contract with one; and a prior costs its guarantee nothing."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.contract import violations
from stratsynth import Prior, PublishedTable, Stratified, StratsynthError
from stratsynth.evaluation.audit import audit_mechanism
from stratsynth.mechanisms import Mechanism, installed, load, make
from stratsynth.stratified import makes_strata
from stratsynth.testing import World, worlds

TINY = {
    "gem": {"components": 4, "hidden": [3], "latent": 2, "iterations": 1, "rounds": 2, "least": 20},
    "pooled": {"base": "mst", "share": 0.5},
}
"""Settings that make a mechanism quick."""
STARTING = ("aim", "gem", "independent", "mst", "pooled")


def with_prior(world: World) -> World:
    """World with public rows, of which the schema knows only some; one column is missing."""
    without = [world.schema.names[-1]]
    frame = world.table(np.random.default_rng(5), "any").drop(columns=without)
    return replace(world, prior=Prior.public(frame, citation="made up for testing", without=without, unknown="drop"))


def with_tables(world: World) -> World:
    """World with a published table of two columns, and another of one."""
    tables = []
    for columns in (list(world.schema.names[:2]), [world.schema.names[-1]]):
        cells = pd.MultiIndex.from_product([world.schema.levels(c) for c in columns], names=columns).to_frame(
            index=False
        )
        tables.append(PublishedTable(cells.assign(count=1.0 + np.arange(len(cells)), error=0.5), "made up for testing"))
    return replace(world, prior=Prior.tables(tables))


WORLDS = [with_prior(world) for world in worlds()]
TABLED = [with_tables(world) for world in worlds()]


def made(name: str, world: World):
    """The mechanism, with the world's strata where it makes strata itself."""
    strata = {"by": world.by, "weights": world.weights} if makes_strata(name) else {}
    return make(name, {**TINY.get(name, {}), **strata})


def test_the_mechanisms_that_start_from_a_prior_are_known():
    """`linked` takes a prior of two tables: tests/unit/test_linked_prior.py."""
    assert {name for name in installed() if _takes(name)} == {*STARTING, "linked"}


def _takes(name: str) -> bool:
    try:
        return made(name, WORLDS[0]).takes_prior
    except (TypeError, StratsynthError):  # what it needs besides: a target, say
        return load(name).takes_prior is not Mechanism.takes_prior


@pytest.mark.parametrize("name", STARTING)
def test_alone(name: str):
    assert violations(lambda world, _: made(name, world), among=WORLDS) == []


@pytest.mark.parametrize("name", STARTING)
def test_with_published_tables(name: str):
    assert violations(lambda world, _: made(name, world), among=TABLED, tables=3) == []


@pytest.mark.parametrize("name", [name for name in STARTING if not makes_strata(name)])
def test_stratified(name: str):
    def build(world, _):
        return Stratified(make(name, TINY.get(name, {})), world.by, world.weights)

    assert violations(build, among=WORLDS, tables=3, neighbours=4) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTING)
def test_audited(name: str):
    report = audit_mechanism(lambda world: made(name, world), world=WORLDS[0], runs=10_000, tables=0)
    assert report.passed
