"""Small budgets: one-way tables without noise that is large, independent columns as a base, and the rule for pairs."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.byhand import ByHand, schema_of
from stratsynth import Budget, Neighbours, Stratified, Weights, fit, open_table
from stratsynth.adapters.aim import AIM
from stratsynth.adapters.engine import MeasuredTable
from stratsynth.adapters.engine.product import product
from stratsynth.adapters.independent import Product
from stratsynth.adapters.mst import MST
from stratsynth.adapters.shared.denoised import MUCH, denoised, denoised_columns, is_noisy, posterior, projected
from stratsynth.adapters.shared.few import only_columns
from stratsynth.mechanisms import Public
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Choose, Counts, NoisyTable

LEVELS = {"a": 10, "b": 10, "c": 10, "d": 10}


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=40), st.floats(0.5, 1e5))
def test_projected_counts_are_the_nearest_of_at_least_zero_with_the_total(values, total):
    found = projected(np.array(values), total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, rel=1e-9)
    # nearest: what is taken off is equal where a count stays above 0, and no less than the count where it does not
    off = np.array(values) - found
    above = found > 1e-9 * total
    assert np.ptp(off[above]) == pytest.approx(0, abs=1e-6 * max(total, 1e4))
    assert (off[~above] <= off[above].max() + 1e-6 * max(total, 1e4)).all()


def test_the_posterior_mean_of_one_count_is_the_count():
    assert posterior(np.array([50.0]), 1.0) == pytest.approx([50], abs=0.2)
    assert posterior(np.array([-3.0]), 1.0)[0] < 0.05  # below zero no record can be


def test_many_levels_of_equal_counts_cost_the_time_of_one():
    """60,000 levels take no gigabytes: counts are integers, most of them within a few sigma of 0."""
    noisy = np.tile([0, 1, 50], 20_000)
    found = posterior(noisy, 1.0)
    assert found.shape == noisy.shape
    assert np.array_equal(found, np.tile(found[:3], 20_000))
    assert found[:3] == pytest.approx(posterior(noisy[:3], 1.0), rel=1e-9)


def test_posterior_means_of_two_kinds_of_levels_are_those_by_hand():
    """Half of the levels have 0 records and half 6 sigma: the prior has two points, and Bayes' rule is a fraction."""
    rng = np.random.default_rng(3)
    true = np.repeat([0.0, 6.0], 2_000)
    noisy = true + rng.normal(size=true.size)
    by_hand = 6 / (1 + np.exp(-((noisy**2 - (noisy - 6) ** 2) / 2)))
    found = posterior(noisy, 1.0)
    assert np.abs(found - by_hand).mean() < 0.12
    assert ((found - true) ** 2).mean() < 0.5 * ((np.maximum(noisy, 0) - true) ** 2).mean()


def test_many_small_levels_are_nearer_the_truth_without_their_noise():
    rng = np.random.default_rng(0)
    true = 2_000 * rng.dirichlet(np.full(60, 2.0))
    errors = {"denoised": 0.0, "projected": 0.0}
    for _ in range(20):
        table = NoisyTable(("a",), np.rint(true + rng.normal(0, 60, 60)).astype(np.int64), 60.0)
        assert is_noisy(table, 2_000)
        errors["denoised"] += np.abs(denoised(table, 2_000) - true).sum()
        errors["projected"] += np.abs(projected(table.values, 2_000) - true).sum()
    assert errors["denoised"] < 0.85 * errors["projected"]


def test_a_table_is_noisy_by_the_length_of_its_noise():
    table = MeasuredTable(("a",), np.zeros(25, dtype=np.int64), 2.0)
    assert is_noisy(table, 10 / MUCH - 1)
    assert not is_noisy(table, 10 / MUCH + 1)


def test_only_noisy_columns_are_replaced_for_a_fit_and_pairs_never():
    noisy = MeasuredTable(("a",), np.array([-40, 90, 30]), 40.0)
    sharp = MeasuredTable(("b",), np.array([-1, 51, 50]), 1.0)
    pair = MeasuredTable(("a", "b"), np.full((3, 3), 11), 40.0)
    found = denoised_columns([noisy, sharp, pair], 100)
    assert found[1] is sharp
    assert found[2] is pair
    assert found[0].clique == ("a",)
    assert found[0].sigma == 40
    assert found[0].values.min() >= 0
    assert found[0].values.sum() == pytest.approx(100)


def test_the_base_is_the_product_of_its_columns():
    solution = product((("a", 2), ("b", 3)), {"a": np.array([1.0, 3]), "b": np.array([0.0, 5, 5])}, 10.0)
    tables = dict(zip(solution.tree.cliques, map(np.exp, solution.potentials), strict=True))
    assert tables["a",] == pytest.approx([0.25, 0.75])
    assert tables["b",] == pytest.approx([0, 0.5, 0.5], abs=1e-3)
    assert (tables["b",] > 0).all()  # a pair may still raise it
    assert product((), {}, 10.0) is None


# the rule for pairs


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_pairs_are_left_out_where_their_mean_noise_is_all_records(neighbours):
    """Cells 100, three pairs of four columns: sigma = sqrt(3 / (.9 rho)), stretched by sqrt(2) under exchange."""
    schema = schema_of(LEVELS)
    stretch = np.sqrt(2) if neighbours == Neighbours.REPLACE else 1
    limit = np.sqrt(2 / np.pi) * np.sqrt(3 / 0.9) * stretch * 100
    for size, only in ((int(limit * 0.99), True), (int(limit * 1.01), False)):
        assert only_columns(Public(schema, size, neighbours), 1.0) is only
    assert not only_columns(Public(schema, None, neighbours), 1.0)
    assert not only_columns(Public(schema.without(["a", "b"]), 1, neighbours), 1.0)


def test_sizes_that_answers_give_decide_nothing():
    """MST says that no answer decides which questions are asked: with noisy shares of strata that is still so."""
    schema = schema_of(LEVELS)
    assert only_columns(Public(schema, 20), 1.0)
    assert not only_columns(Public(schema, 20, exact=False), 1.0)
    how, budget = Stratified(MST(), ["a"], Weights.private(share=0.1)), Budget(0.1, 1e-9, first=0)
    schema, asked = schema_of({"a": 2, "b": 3, "c": 3, "d": 5}), []
    for part in (0.5, 0.02):
        first = np.arange(4_000) < 4_000 * part
        codes = {"a": first.astype(int), **{name: np.arange(4_000) % 3 for name in "bcd"}}
        frame = pd.DataFrame({name: np.array(schema.levels(name))[codes[name]] for name in "abcd"})
        release = fit(how, open_table(frame, schema=schema, declared_size=4_000), budget, entropy=SeededEntropy(1))
        asked.append([(charge["path"], charge["kind"], charge["rho"]) for charge in release.certificate["charges"]])
    assert sorted(asked[0], key=str) == sorted(asked[1], key=str)


@pytest.mark.parametrize("mechanism", [MST(), AIM()], ids=["mst", "aim"])
def test_columns_get_all_of_the_budget_then_and_rehearsals_ask_for_the_same(mechanism):
    for size, pairs in ((100, False), (100_000, True)):
        schema = schema_of(LEVELS)
        rows = {name: np.zeros(10, dtype=int) for name in LEVELS}
        asked = {}
        for way in ("steps", "rehearsal"):
            driver = ByHand(schema, rows)
            driver.run(mechanism, rho=1.0, size=size, way=way)
            asked[way] = driver
            assert bool(driver.of(Choose)) is pairs
            ones = driver.of(Counts)[0]
            assert ones.cliques == schema.oneways
            assert (ones.rho == 1.0) is not pairs
            assert (len(driver.of(Counts)) == 1) is not pairs


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_a_product_of_noisy_columns_is_a_distribution(seed):
    rng = np.random.default_rng(seed)
    schema = schema_of({"a": 7, "b": 2})
    sigma = float(rng.uniform(0.1, 1e4))
    tables = [
        NoisyTable((name,), np.rint(rng.normal(0, sigma, schema.size(name))).astype(np.int64), sigma) for name in "ab"
    ]
    for total in (None, 1.0, 1e4):
        model = Product.of(schema, tables, total)
        for name in "ab":
            assert model.probabilities[name].min() >= 0
            assert model.probabilities[name].sum() == pytest.approx(1, abs=1e-12)
