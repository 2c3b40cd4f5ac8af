"""A model given the levels of some columns, against enumeration of the whole table."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stratsynth import Categorical, Schema
from stratsynth.adapters.engine import Graphical, junction_tree
from stratsynth.adapters.engine.condition import condition
from stratsynth.adapters.engine.forest import NEVER
from stratsynth.adapters.engine.solve import Solution

SIZES = (("a", 3), ("b", 2), ("c", 4), ("d", 2))
CLIQUES = (("a", "b"), ("b", "c"), ("c", "d"))


def solution(seed, never=()):
    rng, tree = np.random.default_rng(seed), junction_tree(SIZES, CLIQUES)
    tables = [rng.normal(0, 1, tree.shape(clique)) for clique in tree.cliques]
    for i, cell in never:
        tables[i][cell] = NEVER
    return Solution(tree, tuple(tables), 100.0, 0.0, 0)


def joint(found):
    columns = {name: Categorical(levels=tuple(map(str, range(size)))) for name, size in found.tree.sizes}
    model = Graphical.of(Schema(columns), found)
    return model.marginal(tuple(name for name, _ in found.tree.sizes))


@given(
    st.integers(0, 1000),
    st.fixed_dictionaries(
        {},
        optional={
            "a": st.sets(st.integers(0, 2), min_size=1),
            "b": st.sets(st.integers(0, 1), min_size=1),
            "c": st.sets(st.integers(0, 3), min_size=1),
            "d": st.sets(st.integers(0, 1), min_size=1),
        },
    ),
)
def test_it_is_the_part_of_the_table_that_has_these_levels(seed, levels):
    levels = {column: sorted(some) for column, some in levels.items()}
    whole = solution(seed)
    part = joint(whole)[np.ix_(*(levels.get(name, range(size)) for name, size in SIZES))]
    found = condition(whole, levels)
    gone = [name for name, _ in SIZES if len(levels.get(name, ())) == 1]
    assert [name for name, _ in found.tree.sizes] == [name for name, _ in SIZES if name not in gone]
    np.testing.assert_allclose(joint(found).ravel(), (part / part.sum()).ravel(), rtol=1e-9)


def test_what_cannot_occur_stays_out():
    tree = solution(0).tree
    place = tree.cliques.index(("a", "b"))
    found = condition(solution(0, [(place, (2, 1))]), {"b": [1]})
    assert joint(found).sum(axis=(1, 2))[2] == 0
