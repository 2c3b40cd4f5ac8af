"""Pairs of columns that go together, for which MST is made. Noise is seeded, so the figures are the same every time."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from helpers.small import even
from stratsynth import Budget, Categorical, Schema, Stratified, fit, open_table
from stratsynth.adapters.independent import Independent
from stratsynth.adapters.mst import MST
from stratsynth.noise import SeededEntropy

LEVELS = {"group": 3, "age": 8, "school": 5, "work": 4, "money": 6}
SCHEMA = Schema({name: Categorical(levels=tuple(map(str, range(size)))) for name, size in LEVELS.items()})
ROWS = 6000


@pytest.fixture(scope="module")
def people():
    """Each column follows another one, differently in each group."""
    rng = np.random.default_rng(2026)
    rows = {"group": rng.choice(3, size=ROWS, p=[0.8, 0.17, 0.03]), "age": rng.integers(8, size=ROWS)}
    for old, new in (("age", "school"), ("school", "work"), ("work", "money")):
        strict = rng.random(ROWS) < np.array([0.85, 0.7, 0.85])[rows["group"]]
        follows = (rows[old] + rows["group"]) % LEVELS[new]
        rows[new] = np.where(strict, follows, rng.integers(LEVELS[new], size=ROWS))
    return rows


def error(real, drawn, within=None):
    """The mean, over pairs of columns, of the L1 distance (0 to 2) of two tables' shares; perhaps of one group."""
    found = []
    for clique in combinations(LEVELS, 2):
        shares = []
        for rows in (real, drawn):
            table = np.zeros([LEVELS[c] for c in clique])
            kept = slice(None) if within is None else rows["group"] == within
            np.add.at(table, tuple(rows[c][kept] for c in clique), 1)
            shares.append(table / table.sum())
        found.append(np.abs(shares[0] - shares[1]).sum())
    return float(np.mean(found))


def drawn(mechanism, people, epsilon, seed):
    frame = pd.DataFrame({name: codes.astype(str) for name, codes in people.items()})
    table = open_table(frame, schema=SCHEMA, declared_size=ROWS)
    release = fit(mechanism, table, Budget(epsilon, 1e-9), entropy=SeededEntropy(seed))
    return release.model.sample(ROWS, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_far_closer_than_with_independent_columns(people, seed):
    ours, independent = (error(people, drawn(m, people, 5, seed)) for m in (MST(), Independent()))
    assert independent > 0.3
    assert ours < 0.3 * independent


@pytest.mark.parametrize("seed", range(3))
def test_the_error_falls_with_the_budget(people, seed):
    errors = [error(people, drawn(MST(), people, epsilon, seed)) for epsilon in (0.05, 1, 20)]
    assert errors[0] > 1.3 * errors[1]
    assert errors[1] > errors[2]


@pytest.mark.parametrize("seed", range(3))
def test_strata_learn_what_sets_a_small_group_apart(people, seed):
    """Three in a hundred people follow another rule, which a tree of pairs for everybody cannot hold."""
    stratified = Stratified(MST(), ["group"], even(SCHEMA, "group"))
    apart, pooled = (error(people, drawn(m, people, 5, seed), within=2) for m in (stratified, MST()))
    assert apart < 0.6 * pooled
