"""The graphical-model engine on random structures and potentials, against enumeration of the whole table."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stratsynth import Categorical, Schema
from stratsynth.adapters.engine import Graphical, MeasuredTable, Problem, Solution, junction_tree, solve
from stratsynth.adapters.engine.dense import Dense
from stratsynth.adapters.engine.forest import NEVER, Forest
from stratsynth.adapters.engine.marginals import Marginals
from stratsynth.adapters.engine.structure import model_cells, taken_in
from stratsynth.testing.record import identical

NAMES = "abcdef"


@st.composite
def structures(draw, columns=6, levels=4, widest=3):
    """Columns with sizes, and cliques of some of them."""
    names = NAMES[: draw(st.integers(1, columns))]
    sizes = tuple((name, draw(st.integers(1, levels))) for name in names)
    clique = st.lists(st.sampled_from(names), min_size=1, max_size=widest, unique=True).map(tuple)
    return sizes, tuple(sorted(draw(st.sets(clique, max_size=6))))


@st.composite
def models(draw):
    """A junction tree and potentials: flat, lively or very peaked, one row at least being possible."""
    sizes, cliques = draw(structures())
    tree = junction_tree(sizes, cliques)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale, banned = draw(st.sampled_from([0.0, 1.0, 300.0])), draw(st.sampled_from([0.0, 0.3]))
    row = {name: rng.integers(size) for name, size in sizes}
    potentials = []
    for clique in tree.cliques:
        table = rng.normal(0, scale, tree.shape(clique))
        never = rng.random(table.shape) < banned
        never[tuple(row[c] for c in clique)] = False
        potentials.append(np.where(never, NEVER, table))
    return tree, tuple(potentials)


def flat(potentials):
    return np.concatenate([table.ravel() for table in potentials])


def enumerated(tree, potentials):
    """The probability of every row, one axis a column."""
    names = [name for name, _ in tree.sizes]
    logs = np.zeros([size for _, size in tree.sizes])
    for clique, table in zip(tree.cliques, potentials, strict=True):
        order = sorted(clique, key=names.index)
        view = [size if name in clique else 1 for name, size in tree.sizes]
        logs = logs + np.transpose(table, [clique.index(c) for c in order]).reshape(view)
    joint = np.exp(logs - logs.max())
    return joint / joint.sum()


def projected(tree, joint, columns):
    names = [name for name, _ in tree.sizes]
    kept = [name for name in names if name in columns]
    table = joint.sum(axis=tuple(i for i, name in enumerate(names) if name not in columns))
    return np.transpose(table, [kept.index(c) for c in columns])


def calibrated(tree, potentials):
    cells = Forest([tree]).calibrated(flat(potentials))[0]
    ends = np.cumsum([table.size for table in potentials])[:-1]
    return [part.reshape(t.shape) for part, t in zip(np.split(cells, ends), potentials, strict=True)]


def schema_of(sizes):
    return Schema({name: Categorical(levels=tuple(map(str, range(size)))) for name, size in sizes})


# structure


@given(structures(columns=6))
def test_a_junction_tree_holds_every_clique_and_keeps_shared_columns_connected(structure):
    sizes, cliques = structure
    tree = junction_tree(sizes, cliques)
    sets = [set(clique) for clique in tree.cliques]
    assert all(any(set(clique) <= whole for whole in sets) for clique in cliques)
    assert set().union(*sets) == {name for name, _ in sizes}
    assert not any(a < b for a in sets for b in sets)
    assert tree.parents[0] == -1
    assert all(0 <= parent < i for i, parent in enumerate(tree.parents) if i)
    shared = [sets[i] & sets[parent] if i else set() for i, parent in enumerate(tree.parents)]
    assert [set(separator) for separator in tree.separators] == shared
    for name, _ in sizes:  # running intersection: each column enters the tree once
        assert sum(name in sets[i] and name not in shared[i] for i in range(len(sets))) == 1


@given(st.lists(st.integers(1, 9), min_size=2, max_size=9), st.randoms(use_true_random=False))
def test_a_tree_of_pairs_stays_a_tree_of_pairs(levels, random):
    """Whatever the sizes: a model of pairs must not grow because a column in the middle is a small one."""
    sizes = tuple((f"c{i}", size) for i, size in enumerate(levels))
    pairs = {(f"c{random.randrange(i)}", f"c{i}") for i in range(1, len(levels))}
    assert {frozenset(c) for c in junction_tree(sizes, tuple(sorted(pairs))).cliques} == set(map(frozenset, pairs))


@given(structures(), st.data())
def test_the_size_of_a_model_is_known_without_its_tree(structure, data):
    sizes, held = structure
    assert model_cells(sizes, held) == junction_tree(sizes, held).cells
    subset = st.lists(st.sampled_from([name for name, _ in sizes]), min_size=1, max_size=4, unique=True).map(tuple)
    cliques, most = data.draw(st.lists(subset, max_size=8)), data.draw(st.integers(1, 200))
    due = [junction_tree(sizes, (*held, clique)).cells <= most for clique in cliques]
    assert taken_in(sizes, held, cliques, most) == due


# message passing


@given(models())
def test_clique_marginals_equal_enumeration(model):
    tree, potentials = model
    joint = enumerated(tree, potentials)
    for clique, table in zip(tree.cliques, calibrated(tree, potentials), strict=True):
        np.testing.assert_allclose(table, projected(tree, joint, clique), rtol=1e-9, atol=1e-12)


@given(models(), st.data())
def test_marginals_of_any_columns_equal_enumeration(model, data):
    tree, potentials = model
    names = [name for name, _ in tree.sizes]
    columns = tuple(data.draw(st.lists(st.sampled_from(names), unique=True)))
    found = Marginals(tree, calibrated(tree, potentials)).table(columns)
    np.testing.assert_allclose(found, projected(tree, enumerated(tree, potentials), columns), rtol=1e-9, atol=1e-12)


@given(models(), st.data())
def test_many_marginals_at_once_equal_enumeration(model, data):
    tree, potentials = model
    names = [name for name, _ in tree.sizes]
    subset = st.lists(st.sampled_from(names), unique=True, max_size=4).map(tuple)
    cliques = data.draw(st.lists(subset, max_size=40))
    joint = enumerated(tree, potentials)
    for clique, table in zip(cliques, Marginals(tree, calibrated(tree, potentials)).tables(cliques), strict=True):
        np.testing.assert_allclose(table, projected(tree, joint, clique), rtol=1e-9, atol=1e-12)


@given(st.lists(models(), min_size=2, max_size=5))
def test_trees_that_go_together_are_what_they_are_alone(several):
    together = Forest([tree for tree, _ in several]).calibrated(np.concatenate([flat(p) for _, p in several]))[0]
    alone = np.concatenate([Forest([tree]).calibrated(flat(p))[0] for tree, p in several])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)


@given(models(), st.data())
def test_a_large_tree_is_passed_over_as_in_a_forest(model, data):
    tree, potentials = model
    forest, dense = Forest([tree]), Dense(tree)
    for found, due in zip(dense.calibrated(flat(potentials)), forest.calibrated(flat(potentials)), strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-9, atol=1e-9)
    cliques = data.draw(st.lists(st.sampled_from(tree.cliques).flatmap(st.permutations), max_size=6))
    tables = [(0, tuple(clique[: data.draw(st.integers(1, len(clique)))])) for clique in cliques]
    terms = np.arange(sum(math.prod(tree.shape(clique)) for _, clique in tables), dtype=np.float64)
    theirs, ours = forest.maps(tables), dense.maps(tables)
    # a term of columns that several cliques have may go to any of these: the model is the same
    found, due = dense.calibrated(ours.spread(terms))[0], forest.calibrated(theirs.spread(terms))[0]
    np.testing.assert_allclose(found, due, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.gather(due), theirs.gather(due), rtol=1e-9, atol=1e-12)
    # cells that do not agree on shared columns: only what a single clique has is the same, read from any of its homes
    homes = [sum(set(columns) <= set(clique) for clique in tree.cliques) for _, columns in tables]
    one = np.repeat(np.array(homes, int) == 1, [math.prod(tree.shape(columns)) for _, columns in tables])
    found, due = (maps.gather(flat(potentials))[one] for maps in (ours, theirs))
    np.testing.assert_allclose(found, due, rtol=1e-9, atol=1e-9)
    # and what is read is read from where it would be added
    cells = np.random.default_rng(terms.size).normal(size=tree.cells)
    for maps in (ours, theirs):
        np.testing.assert_allclose(maps.gather(cells) @ terms, maps.spread(terms) @ cells, rtol=1e-9, atol=1e-6)


@given(models(), st.data())
def test_the_mass_of_a_condition_equals_enumeration_and_rows_meet_it(model, data):
    tree, potentials = model
    names = [name for name, _ in tree.sizes]
    joint, sizes = enumerated(tree, potentials), dict(tree.sizes)
    where = {
        name: data.draw(st.frozensets(st.integers(0, sizes[name] - 1), max_size=sizes[name]))
        for name in data.draw(st.sets(st.sampled_from(names)))
    }
    due = joint[np.ix_(*(sorted(where.get(name, range(sizes[name]))) for name in names))].sum()
    graphical = Graphical(schema_of(tree.sizes), tree, potentials, 1.0)
    assert abs(graphical.mass(where) - due) < 1e-9
    if due > 1e-6:
        rows = graphical.sample(50, np.random.default_rng(0), where)
        assert all(set(rows[name]) <= allowed for name, allowed in where.items())
        assert (joint[tuple(rows[name] for name in names)] > 0).all()


# fitting


def joint_of(solution):
    """The probability of every row."""
    return enumerated(solution.tree, solution.potentials)


@given(models(), st.data())
@settings(max_examples=30)
def test_a_model_that_is_moved_to_one_exact_table_is_the_projection_of_the_base(model, data):
    """With prior 1 and hardly any noise: base(x) m(x_c) / base(x_c); with a huge prior, the base itself."""
    tree, potentials = model
    names = [name for name, _ in tree.sizes]
    clique = tuple(data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)))
    base = Solution(tree, potentials, 1.0, 0.0, 0)
    before = joint_of(base)
    own = projected(tree, before, clique)
    # counts that the base allows and that are nowhere near its corners
    shape = tuple(dict(tree.sizes)[name] for name in clique)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    values = np.where(own > 1e-6, np.rint(rng.uniform(100, 300, shape)), 0).astype(np.int64)
    for prior, sigma in ((1.0, 1e-3), (1e12, 1.0)):
        table = MeasuredTable(clique, values, sigma)
        problem = Problem(tree.sizes, (table,), None, {}, base=base, prior=prior, iterations=5000, tolerance=0.0)
        after = joint_of(solve([problem])[0])
        order = sorted(clique, key=names.index)
        ratio = np.divide(values / values.sum(), own, out=np.zeros_like(own), where=own > 1e-6)
        view = [size if name in clique else 1 for name, size in tree.sizes]
        moved = np.transpose(ratio, [clique.index(c) for c in order]).reshape(view)
        due = before * moved if prior == 1 else before
        np.testing.assert_allclose(after, due, atol=1e-3)


@st.composite
def problems(draw):
    """Noise, and little else: tables of every size of noise, with cells that cannot occur. One row always can."""
    sizes, cliques = draw(structures(columns=4, widest=2))
    levels = dict(sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sigma, total = draw(st.sampled_from([0.1, 5.0, 500.0])), draw(st.sampled_from([1.0, None, 1e4]))
    row = {name: rng.integers(size) for name, size in sizes}
    tables, forbidden = [], {}
    for clique in {*cliques, *((name,) for name in levels)}:
        shape = tuple(levels[c] for c in clique)
        tables.append(MeasuredTable(clique, np.rint(rng.normal(0, sigma + 1, shape)).astype(np.int64), sigma))
        never = rng.random(shape) < draw(st.sampled_from([0, 0.4]))
        never[tuple(row[c] for c in clique)] = False
        if never.any():
            forbidden[clique] = np.flatnonzero(never)
    return Problem(sizes, tuple(tables), total, forbidden), row


@given(st.lists(problems(), min_size=1, max_size=3))
@settings(max_examples=150)
def test_fits_to_pure_noise_stay_finite_and_never_allow_what_cannot_occur(several):
    """Tables of a stratum without rows: the best fit lies in a corner, and steps could run away."""
    for (problem, row), solution in zip(several, solve([p for p, _ in several]), strict=True):
        model = Graphical.of(schema_of(problem.sizes), solution)
        assert np.isfinite(flat(solution.potentials)).all()
        assert np.isfinite(solution.objective)
        assert identical(Graphical.from_state(model.schema, model.state()).state(), model.state())
        for clique, never in problem.forbidden.items():
            assert not model.marginal(clique).ravel()[never].any()
        where = {name: frozenset({int(code)}) for name, code in row.items()}
        if model.mass(where) > 0:
            rows = model.sample(3, np.random.default_rng(0), where)
            assert all(set(rows[name]) == codes for name, codes in where.items())
