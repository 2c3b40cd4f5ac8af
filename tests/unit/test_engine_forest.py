"""Message passing where numbers or structures are extreme."""

import inspect
import sys
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest

from stratsynth.adapters.engine import junction_tree
from stratsynth.adapters.engine.forest import NEVER, Forest
from stratsynth.adapters.engine.marginals import Marginals


def tables(tree, potentials):
    """Calibrated tables by clique, from potentials by clique."""
    forest = Forest([tree])
    cells = forest.calibrated(np.concatenate([potentials[clique].ravel() for clique in tree.cliques]))[0]
    assert np.isfinite(cells).all()
    return {
        clique: cells[start : start + potentials[clique].size].reshape(potentials[clique].shape)
        for clique, start in zip(tree.cliques, forest.offsets[0], strict=True)
    }


def chain(levels, rng, scale=1.0):
    names = [f"c{i:02}" for i in range(len(levels))]
    sizes = tuple(zip(names, levels, strict=True))
    tree = junction_tree(sizes, tuple(pairwise(names)))
    return tree, {clique: rng.normal(0, scale, tree.shape(clique)) for clique in tree.cliques}


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_a_chain_of_sixty_columns_equals_forward_and_backward_recursion(scale):
    rng = np.random.default_rng(0)
    levels = rng.integers(1, 6, 60)
    tree, potentials = chain(levels, rng, scale)
    order = sorted(tree.cliques)
    forward = [np.zeros(levels[0])]  # log sums of all that lies to the left
    for clique in order:
        forward.append(np.logaddexp.reduce(forward[-1][:, None] + potentials[clique], axis=0))
    backward = [np.zeros(levels[-1])]
    for clique in reversed(order):
        backward.append(np.logaddexp.reduce(potentials[clique] + backward[-1][None, :], axis=1))
    backward.reverse()
    whole = np.logaddexp.reduce(forward[-1])
    found = tables(tree, potentials)
    for i, clique in enumerate(order):
        due = np.exp(forward[i][:, None] + potentials[clique] + backward[i + 1][None, :] - whole)
        np.testing.assert_allclose(found[clique], due, rtol=1e-8, atol=1e-12)


def test_marginals_across_a_chain_of_four_hundred_pairs_need_no_deep_recursion():
    """All that lies between is a product of matrices; each clique asks its neighbour, who asks the next."""
    tree, potentials = chain([2] * 401, np.random.default_rng(0))
    assert len(tree.cliques) == 400
    names, found = [name for name, _ in tree.sizes], tables(tree, potentials)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        marginals = Marginals(tree, [found[clique] for clique in tree.cliques])
        ends, three = marginals.tables([(names[0], names[400]), (names[400], names[200], names[0])])
    finally:
        sys.setrecursionlimit(limit)
    steps = [found[pair] / found[pair].sum(axis=1, keepdims=True) for pair in pairwise(names)]
    start = np.diag(found[names[0], names[1]].sum(axis=1))
    np.testing.assert_allclose(ends, reduce(np.matmul, steps, start), atol=1e-12)
    half = reduce(np.matmul, steps[:200], start)
    np.testing.assert_allclose(three.sum(axis=0).T, half, atol=1e-12)
    np.testing.assert_allclose(three.sum(axis=1).T, ends, atol=1e-12)


def test_the_ends_of_a_long_chain_are_joined_by_elimination_and_not_by_a_huge_table():
    rng = np.random.default_rng(1)
    tree, potentials = chain([3] * 60, rng)
    found = tables(tree, potentials)
    ends = Marginals(tree, [found[clique] for clique in tree.cliques]).table(("c59", "c00"))
    joint = found[("c00", "c01")]
    for name, following in pairwise([f"c{i:02}" for i in range(1, 60)]):
        pair = found[(name, following)]
        joint = joint @ (pair / pair.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(ends, joint.T, rtol=1e-9)


def test_a_star_weighs_its_hub_by_all_leaves():
    rng = np.random.default_rng(2)
    leaves = [f"leaf{i:02}" for i in range(40)]
    tree = junction_tree((("hub", 3), *((leaf, 2) for leaf in leaves)), tuple(("hub", leaf) for leaf in leaves))
    potentials = {clique: rng.normal(0, 1, (3, 2)) for clique in tree.cliques}
    weight = sum(np.logaddexp.reduce(potentials[clique], axis=1) for clique in tree.cliques)
    hub = np.exp(weight - np.logaddexp.reduce(weight))
    for clique, table in tables(tree, potentials).items():
        np.testing.assert_allclose(table.sum(axis=1), hub, rtol=1e-9)
        conditional = np.exp(potentials[clique] - np.logaddexp.reduce(potentials[clique], axis=1)[:, None])
        np.testing.assert_allclose(table, hub[:, None] * conditional, rtol=1e-9)


def test_large_columns_columns_of_one_level_and_columns_apart_are_nothing_special():
    rng = np.random.default_rng(3)
    tree = junction_tree((("large", 400), ("one", 1), ("two", 2), ("apart", 3)), (("large", "two"), ("one", "two")))
    potentials = {clique: rng.normal(0, 2, tree.shape(clique)) for clique in tree.cliques}
    found = tables(tree, potentials)
    joint = np.exp(potentials[("large", "two")] + potentials[("one", "two")])
    np.testing.assert_allclose(found[("large", "two")], joint / joint.sum(), rtol=1e-9)
    apart = np.exp(potentials[("apart",)])
    np.testing.assert_allclose(found[("apart",)], apart / apart.sum(), rtol=1e-9)
    np.testing.assert_allclose(found[("one", "two")].sum(), 1)


@pytest.mark.parametrize("peak", [700, 1e4, 1e6])
def test_peaks_neither_overflow_nor_vanish(peak):
    """exp(710) is too large for a float, exp(-750) too small: both must cancel in the logarithm."""
    tree, potentials = chain([2, 2, 2], np.random.default_rng(0), 0.0)
    potentials[("c00", "c01")][:] = [[peak, -peak], [-peak, peak + 1]]
    potentials[("c01", "c02")][:] = [[-peak, peak], [peak, -peak]]
    found = tables(tree, potentials)
    odds = np.array([1, np.e]) / (1 + np.e)
    np.testing.assert_allclose(found[("c00", "c01")], np.diag(odds), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found[("c01", "c02")], np.diag(odds)[:, ::-1], rtol=1e-6, atol=1e-12)


def test_what_is_forbidden_on_both_sides_of_a_separator_has_no_mass_and_spoils_none():
    """A whole separator cell ruled out by several cliques: messages of -1e9 meet and are divided out again."""
    names = ("mid", "a", "b", "c")
    tree = junction_tree(tuple((c, 2) for c in names), tuple((c, "mid") for c in "abc"))
    potentials = {clique: np.zeros((2, 2)) for clique in tree.cliques}
    for clique in tree.cliques:
        potentials[clique][0] = NEVER  # mid = 0
    potentials[("mid", "a")][1] = [0, np.log(3)]
    found = tables(tree, potentials)
    np.testing.assert_allclose(found[("mid", "a")], [[0, 0], [0.25, 0.75]], atol=1e-12)
    np.testing.assert_allclose(found[("mid", "b")], [[0, 0], [0.5, 0.5]], atol=1e-12)
    assert not any(table[0].any() for table in found.values())


def test_the_partition_sums_of_all_trees_come_in_their_order():
    trees = [junction_tree((("a", n), ("b", 2)), (("a", "b"),)) for n in (3, 5)]
    _, constants = Forest(trees).calibrated(np.zeros(16))
    np.testing.assert_allclose(np.exp(constants), [6, 10])


def test_no_tree_at_all_is_no_cells():
    assert Forest([]).calibrated(np.zeros(0))[0].size == 0
