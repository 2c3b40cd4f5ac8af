"""GEM's generator and its training: slopes against finite differences, exact tables, same answers same result."""

import numpy as np
import pytest

from stratsynth.adapters.engine import MeasuredTable
from stratsynth.adapters.gem.adam import Adam
from stratsynth.adapters.gem.fit import TableLoss, Training, train
from stratsynth.adapters.gem.layout import LogitBlocks, marginals
from stratsynth.adapters.gem.network import LogitTable, ResidualNetwork

LAYOUT = LogitBlocks((("a", 3), ("b", 4), ("one", 1), ("c", 2), ("d", 5)))
CLIQUES = [("a",), ("one",), ("d", "a"), ("c", "one"), ("b", "a", "c"), ("a", "b", "c", "d")]


def rng(seed=0):
    return np.random.default_rng(seed)


def noisy(cliques=CLIQUES, seed=0):
    """Made-up tables, a third of whose cells do not count."""
    draw, sizes = rng(seed), dict(LAYOUT.sizes)
    found = []
    for i, clique in enumerate(cliques):
        shape = tuple(sizes[name] for name in clique)
        found.append(MeasuredTable(clique, draw.integers(-5, 50, shape), 2.0 + i, draw.random(shape) < 2 / 3))
    return tuple(found)


def sources(seed=1):
    noise = rng(seed).standard_normal((4, 6))
    return {
        "table": LogitTable(LAYOUT, 6),
        "network": ResidualNetwork(LAYOUT, noise, (7, 8)),
        "one block": ResidualNetwork(LAYOUT, noise, (5,)),
        "three blocks": ResidualNetwork(LAYOUT, noise, (5, 3, 4)),
    }


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", sources())
def test_the_slope_is_that_of_finite_differences(name, seed):
    source, goal = sources(seed)[name], TableLoss(LAYOUT, noisy(seed=seed), 100.0, np.float64)
    point = source.first(rng(seed), rng(seed).standard_normal(LAYOUT.rows))
    odds, tape = source.forward(point)
    found = source.backward(point, tape, goal.slope(odds)[1])

    def distance(where):
        return goal.slope(source.forward(where)[0])[0]

    step = 1e-6
    expected = np.array([(distance(point + h) - distance(point - h)) / (2 * step) for h in step * np.eye(point.size)])
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("name", sources())
def test_the_distance_is_that_of_its_definition(name):
    source, tables = sources()[name], noisy()
    odds, _ = source.forward(source.first(rng(), np.zeros(LAYOUT.rows)))
    goal = TableLoss(LAYOUT, tables, 100.0, np.float64)
    fitted = marginals(LAYOUT, odds, np.full(6, 1 / 6), [table.clique for table in tables])
    expected = sum(
        0.5 * (((table.values - 100 * mine) / table.sigma)[table.counted] ** 2).sum()
        for table, mine in zip(tables, fitted, strict=True)
    )
    assert goal.slope(odds)[0] * goal.unit == pytest.approx(expected, rel=1e-12)
    assert goal.floor * goal.unit == pytest.approx(sum(table.counted.sum() for table in tables) / 2)


@pytest.mark.parametrize("name", sources())
def test_every_component_is_a_distribution_for_each_column(name):
    source = sources()[name]
    odds, _ = source.forward(100 * source.first(rng(), np.zeros(LAYOUT.rows)))  # logits far apart
    assert (odds >= 0).all()
    np.testing.assert_allclose(np.add.reduceat(odds, LAYOUT.starts, axis=0), 1, atol=1e-12)


def test_marginals_are_the_means_of_products():
    odds, _ = sources()["table"].forward(rng().standard_normal(LAYOUT.rows * 6))
    weights = rng().dirichlet(np.ones(6))
    blocks = {name: odds[LAYOUT.block[name]] for name, _ in LAYOUT.sizes}
    wide, narrow, pair = marginals(LAYOUT, odds, weights, [("a", "d", "b"), ("c",), ("a", "d")])
    np.testing.assert_allclose(wide, np.einsum("k,ak,dk,bk->adb", weights, blocks["a"], blocks["d"], blocks["b"]))
    np.testing.assert_allclose(narrow, blocks["c"] @ weights)
    np.testing.assert_allclose(pair, wide.sum(axis=2))


def problem(seed):
    source = ResidualNetwork(LAYOUT, rng(seed).standard_normal((4, 6)), (7, 8))
    return Training(source, source.first(rng(seed), np.zeros(LAYOUT.rows)), noisy(seed=seed), 100.0, 20, 0.01)


def test_the_same_problem_gives_the_same_parameters_alone_or_among_others():
    alone = [train([problem(i)])[0] for i in range(4)]
    together = train([problem(i) for i in range(4)])
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(alone[0], alone[1])


def test_training_does_not_change_where_it_started():
    one = problem(0)
    before = one.point.copy()
    (trained,) = train([one])
    np.testing.assert_array_equal(one.point, before)
    assert np.abs(trained - before).max() > 0


def test_training_stops_where_noise_explains_the_misfit():
    """Tables that are the start's own, but for a little of the noise that they claim."""
    source = LogitTable(LAYOUT, 6)
    start = source.first(rng(), np.zeros(LAYOUT.rows)).astype(np.float32)
    fitted = marginals(LAYOUT, source.forward(start)[0], np.full(6, 1 / 6), [("a", "b")])[0] * 1000
    tables = (MeasuredTable(("a", "b"), np.rint(fitted).astype(np.int64), 10.0),)
    (trained,) = train([Training(source, start, tables, 1000.0, 50, 0.1)])
    np.testing.assert_array_equal(trained, start)


def test_no_table_at_all_leaves_the_start():
    source = LogitTable(LAYOUT, 3)
    start = source.first(rng(), np.zeros(LAYOUT.rows)).astype(np.float32)
    (trained,) = train([Training(source, start, (), 1.0, 10, 0.1)])
    np.testing.assert_array_equal(trained, start)


def test_adam_steps_as_published_and_finds_a_minimum():
    point = np.array([1.0, -2.0])
    Adam(point, 0.1, 100).step(point, np.array([3.0, -1e-3]))
    np.testing.assert_allclose(point, [0.9, -1.9], rtol=1e-4)  # the first step is the rate, whatever the slope
    adam, best = Adam(point, 0.1, 500), np.array([0.3, 0.7])
    for _ in range(500):
        adam.step(point, point - best)
    np.testing.assert_allclose(point, best, atol=1e-3)
