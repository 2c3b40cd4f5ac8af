"""Every registered mechanism passes the contract, alone and stratified. A new one is tested by being registered."""

import dataclasses

import numpy as np
import pytest

from helpers.contract import REGISTERED, violations
from helpers.priced import RATE, STEPS, remember
from helpers.small import even
from stratsynth import Categorical, Groups, Numeric, Schema, Stratified, StratumBudgets, Weights
from stratsynth.mechanisms import installed, load, make
from stratsynth.schema.weight import RowWeight
from stratsynth.strata import crossing
from stratsynth.testing import World, check_contract, worlds

TINY = {
    "adassp": {"rounds": 2},
    "fair_sgd": {"groups": ["GROUP"], "iterations": STEPS, "sampling": RATE},
    "fermi": {"groups": ["GROUP"], "penalty": 1.0, "iterations": STEPS, "sampling": RATE},
    "gem": {"components": 4, "hidden": [3], "latent": 2, "iterations": 1, "rounds": 2, "least": 20},
    "group_regression": {"iterations": 2},
    "pooled": {"base": "mst", "share": 0.5},
    "reductions": {"iterations": 2, "inner_steps": 1, "start_steps": 1},
}
"""Settings that make a mechanism quick, by its name; the defaults where nothing is said."""
NUMBERS = {"adassp", "clipped_mean", "coinpress", "group_regression"}
"""Mechanisms that need a numeric column, in every stratum too."""
BINARY = {"reductions"}
"""Mechanisms that need a categorical column of two levels, in every stratum too."""


def among(name):
    """The worlds that a mechanism can work in; none means the usual ones."""
    if name in BINARY:
        return [w for w in worlds() if any(w.schema.size(c) == 2 for c in w.schema.names if c not in w.by)]
    if name in {"fair_sgd", "fermi"}:
        remember()
    if name in {"fair_sgd", "fermi", "output_perturbation"}:
        return [classes_world()]
    return numeric_worlds() if name in NUMBERS else ()


def classes_world():
    """A target, a sensitive attribute, and another column to stratify by."""
    schema = Schema(
        {
            "AREA": Categorical(levels=("n", "s")),
            "GROUP": Categorical(levels=("a", "b")),
            "AGE": Numeric(lower=0, upper=40, bins=3, missing=True),
            "WORK": Categorical(levels=("no", "yes"), outside="no"),
        }
    )
    return World(schema, ("AREA",), even(schema, "AREA"))


def numeric_worlds():
    """The usual worlds with numbers, and one with two, of which one is on a scale and the other is never missing."""
    usual = [w for w in worlds() if any(isinstance(w.schema.column(c), Numeric) for c in w.schema.names)]
    schema = Schema(
        {
            "PAY": Numeric(lower=-20, upper=50, transform="log", transform_unit=5, not_applicable="N"),
            "GROUP": Categorical(levels=("a", "b")),
            "AGE": Numeric(lower=0, upper=40, bins=3),
        }
    )
    return [*usual, World(schema, ("GROUP",), even(schema, "GROUP"))]


ONE_TABLE = [name for name in installed() if load(name).takes_linked is not True]
"""Mechanisms for one table; tests/privacy/test_linked_fits.py looks at the one for two."""
GROUPWISE = [name for name in installed() if "by" in {f.name for f in dataclasses.fields(load(name))}]
"""Mechanisms that make strata themselves."""


@pytest.mark.parametrize("name", ONE_TABLE)
def test_alone(name):
    def build(world, rows):
        strata = {"by": world.by, "weights": world.weights} if name in GROUPWISE else {}
        return make(name, {**TINY.get(name, {}), **strata})

    assert violations(build, **REGISTERED, orders=None, among=among(name)) == []


@pytest.mark.parametrize("name", [name for name in ONE_TABLE if name not in GROUPWISE])
def test_stratified(name):
    def build(world, rows):
        return Stratified(make(name, TINY.get(name, {})), world.by, world.weights)

    assert violations(build, among=among(name)) == []


def weighed(world):
    """The world whose rows have weights of their own, from 0 to 5."""
    return dataclasses.replace(world, schema=dataclasses.replace(world.schema, row_weight=RowWeight(5, "PWGTP")))


@pytest.mark.parametrize("name", ONE_TABLE)
def test_weighted(name):
    """Every row counts as its weight, which is one of many sound and broken ones. On tables that show planted bugs."""

    def build(world, rows):
        made = make(name, {**TINY.get(name, {}), **({"by": world.by, "weights": world.weights} if grouped else {})})
        return made if grouped else Stratified(made, world.by, world.weights)

    grouped = name in GROUPWISE
    heavy = [weighed(world) for world in among(name) or worlds()]
    assert check_contract(build, among=heavy, tables=3, neighbours=3) == []


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

    assert violations(build, among=numeric_worlds()[-1:], tables=3) == []


def merge_two(world):
    """The first two levels of the first column, always together."""
    column = world.by[0]
    return Groups(merge={column: {"two": world.schema.levels(column)[:2]}})


def one_way(world):
    """The smaller half of the groups by public size."""
    sizes = sorted(world.weights.resolve(crossing(world.schema, world.by)).shares.values())
    return Groups(small="one-way", threshold=world.declared_size * 3 * sizes[len(sizes) // 2])


def ladder(world):
    """All levels of the first column together, where one is small."""
    column = world.by[0]
    return Groups(hierarchy={column: {"all": world.schema.levels(column)}}, small="merge", threshold=30)


def cheaper(world):
    return StratumBudgets.factors({crossing(world.schema, world.by)[0].label: 0.5})


def holdout(world):
    return Weights.holdout(world.table(np.random.default_rng(5)), confidential=True)


CHOICES = {
    "a merge": lambda w: {"groups": merge_two(w)},
    "a hierarchy": lambda w: {"groups": ladder(w)},
    "small groups one-way": lambda w: {"groups": one_way(w)},
    "budgets of strata": lambda w: {"budgets": cheaper(w)},
    "private weights": lambda w: {"weights": Weights.private(share=0.2)},
    "private weights, a hierarchy, budgets": lambda w: {
        "weights": Weights.private(share=0.1, prior=w.weights),
        "groups": ladder(w),
        "budgets": cheaper(w),
    },
    "a holdout": lambda w: {"weights": holdout(w)},
}


@pytest.mark.parametrize("choice", CHOICES)
def test_strata_and_weights_of_every_kind(choice):
    """Merges, budgets and questions depend on public facts and answers alone."""

    def build(world, rows):
        settings = {"weights": world.weights, **CHOICES[choice](world)}
        return Stratified(make("independent", {}), world.by, **settings)

    assert violations(build) == []


@pytest.mark.parametrize("choice", [choice for choice in CHOICES if choice != "small groups one-way"])
def test_means_in_strata_of_every_kind(choice):
    def build(world, rows):
        settings = {"weights": world.weights, **CHOICES[choice](world)}
        return Stratified(make("coinpress", {}), world.by, **settings)

    assert violations(build, among=numeric_worlds()) == []


@pytest.mark.parametrize("choice", ["a merge", "private weights, a hierarchy, budgets"])
def test_a_mechanism_that_chooses_in_merges(choice):
    def build(world, rows):
        settings = {"weights": world.weights, **CHOICES[choice](world)}
        return Stratified(make("mst", {}), world.by, **settings)

    assert violations(build) == []


def test_pooled_on_a_generator():
    """Its strata keep one network or train it on, by public sizes."""

    def build(world, rows):
        base = {"name": "gem", **TINY["gem"]}
        return make("pooled", {"base": base, "share": 0.5, "by": world.by, "weights": world.weights})

    assert violations(build) == []


def test_strata_within_strata():
    """A stratified mechanism may be stratified again."""

    def build(world, rows):
        others = [name for name in world.schema.names if name not in world.by][:-1][:1]
        if not others:  # every column but one is a stratum's already
            return Stratified(make("independent", {}), world.by, world.weights)
        return Stratified(
            Stratified(make("independent", {}), others, even(world.schema, *others)), world.by, world.weights
        )

    assert violations(build) == []


def test_means_of_strata_within_strata():
    def build(world, rows):
        others = [name for name in world.schema.names if name not in (*world.by, "AGE")][:1]
        inner = Stratified(make("coinpress", {"columns": ["AGE"]}), others, even(world.schema, *others))
        return Stratified(inner, world.by, world.weights)

    assert violations(build, among=numeric_worlds()[:2], tables=3) == []
