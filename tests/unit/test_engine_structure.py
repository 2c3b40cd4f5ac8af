"""Junction trees of known graphs, and models that are too large."""

import math
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from stratsynth.adapters.engine import MeasuredTable, Problem, junction_tree, solve
from stratsynth.adapters.engine.structure import check_size
from stratsynth.errors import Unsupported


def tree_of(edges, levels=3, lone=()):
    names = sorted({c for edge in edges for c in edge} | set(lone))
    return junction_tree(tuple((name, levels) for name in names), tuple(edges))


def widths(tree):
    return sorted(map(len, tree.cliques))


def names(number):
    return [f"c{i:02}" for i in range(number)]


def test_a_chain_is_its_pairs():
    tree = tree_of(list(pairwise(names(60))))
    assert widths(tree) == [2] * 59
    assert widths(tree_of([("hub", name) for name in names(40)])) == [2] * 40


def test_a_cycle_needs_triples_and_no_more():
    ring = names(12)
    assert widths(tree_of([*pairwise(ring), (ring[-1], ring[0])])) == [3] * 10


def test_a_grid_of_four_by_four_needs_no_clique_of_more_than_five():
    edges = [((i, j), (i + a, j + b)) for i in range(4) for j in range(4) for a, b in ((0, 1), (1, 0))]
    inside = [(f"{i}{j}", f"{k}{m}") for (i, j), (k, m) in edges if k < 4 and m < 4]
    assert max(widths(tree_of(inside))) == 5  # its treewidth is 4


def test_parts_that_share_nothing_are_joined_by_an_empty_separator():
    tree = tree_of([("a", "b"), ("c", "d")], lone=["e"])
    assert {frozenset(c) for c in tree.cliques} == {frozenset("ab"), frozenset("cd"), frozenset("e")}
    assert tree.separators == ((), (), ())
    assert tree.parents.count(-1) == 1


def test_no_column_at_all_is_one_clique_of_one_cell():
    """A stratum that is defined by all columns has none left."""
    tree = junction_tree((), ())
    assert (tree.cliques, tree.parents, tree.separators, tree.cells) == (((),), (-1,), ((),), 1)


def test_columns_within_a_clique_keep_the_schemas_order():
    tree = junction_tree((("z", 2), ("a", 2), ("m", 2)), (("m", "z"), ("a", "m")))
    assert {("z", "m"), ("a", "m")} == set(tree.cliques)


def test_a_clique_lives_in_the_smallest_one_that_holds_it():
    tree = junction_tree((("a", 2), ("b", 9), ("c", 3)), (("a", "b"), ("a", "c")))
    assert tree.cliques[tree.home(("a",))] == ("a", "c")


def test_the_same_graph_gives_the_same_tree_in_every_process():
    """Sets of texts have another order in each process; a resumed fit must not notice."""
    code = (
        "from stratsynth.adapters.engine import junction_tree;"
        "n = [f'c{i}' for i in range(12)];"
        "e = [(n[i], n[(i * 5 + 3) % 12]) for i in range(12) if i != (i * 5 + 3) % 12] + [(n[0], n[7], n[4])];"
        "print(junction_tree(tuple((c, 3) for c in n), tuple(e)))"
    )
    seen = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        seen.add(subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True).stdout)
    assert len(seen) == 1


def test_a_model_that_is_too_large_is_refused_by_name_and_one_that_just_fits_is_not():
    tree = tree_of([("a", "b", "c"), ("c", "d")], levels=10)
    assert tree.cells == 1100
    check_size(tree, 1100)
    with pytest.raises(Unsupported, match=r"1,100 numbers.*a,b,c.*fewer bins"):
        check_size(tree, 1099)


def test_solving_refuses_a_model_that_is_too_large_before_it_makes_anything():
    sizes = tuple((c, 400) for c in "abc")
    ring = [("a", "b"), ("b", "c"), ("a", "c")]
    tables = tuple(MeasuredTable(pair, np.broadcast_to(np.int64(0), (400, 400)), 1.0) for pair in ring)
    assert math.prod((400, 400, 400)) > 2**24
    with pytest.raises(Unsupported, match="too large"):
        solve([Problem(sizes, tables)])
