"""The fitted model: drawing rows, conditions, and its stored form."""

import dataclasses
import itertools
import json
import math
import random

import numpy as np
import pytest
from scipy import stats

from stratsynth import Categorical, Schema
from stratsynth.adapters.engine import Graphical, junction_tree
from stratsynth.adapters.engine.drawing import Draws
from stratsynth.adapters.engine.forest import NEVER
from stratsynth.adapters.engine.marginals import Marginals
from stratsynth.adapters.engine.model import RecentModels
from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.models import State, TableModel, files
from stratsynth.testing.record import identical

SIZES = (("left", 4), ("top", 3), ("right", 5), ("far", 2), ("alone", 3))
CLIQUES = (("left", "top"), ("top", "right"), ("right", "far"))
"""Two siblings below `top`, a grandchild, and a column that nothing is joined to."""


def schema_of(sizes):
    return Schema({name: Categorical(levels=tuple(map(str, range(size)))) for name, size in sizes})


def graphical(seed=0, scale=1.0, never=None):
    rng, tree = np.random.default_rng(seed), junction_tree(SIZES, CLIQUES)
    potentials = [rng.normal(0, scale, tree.shape(clique)) for clique in tree.cliques]
    for clique, table in zip(tree.cliques, potentials, strict=True):
        if clique in (never or {}):
            table[never[clique]] = NEVER
    return Graphical(schema_of(SIZES), tree, tuple(potentials), 1000.0, 12.5, 30)


@pytest.fixture(scope="module")
def model():
    return graphical()


def table(rows, clique):
    shape = [dict(SIZES)[c] for c in clique]
    return np.bincount(np.ravel_multi_index([rows[c] for c in clique], shape), minlength=math.prod(shape)).reshape(
        shape
    )


# drawing rows


def test_it_is_a_table_model(model):
    assert isinstance(model, TableModel)


@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_exactly_n_rows_of_all_columns_in_the_schemas_order(model, n):
    for where in (None, {}, {"top": frozenset({1})}):
        rows = model.sample(n, np.random.default_rng(0), where)
        assert list(rows) == [name for name, _ in SIZES]
        for name, size in SIZES:
            assert rows[name].shape == (n,)
            assert rows[name].dtype == np.min_scalar_type(size - 1)
            assert not n or 0 <= rows[name].min() <= rows[name].max() < size


@pytest.mark.parametrize("n", [10, 1000, 100_000])
@pytest.mark.parametrize("where", [None, {"right": frozenset({0, 3}), "left": frozenset({1, 2})}], ids=str)
def test_counts_are_those_of_the_model_rounded(model, n, where):
    """Among the rows that share a separator cell, each cell gets the floor or the ceiling of what it is due."""
    rows, exact = model.sample(n, np.random.default_rng(n), where), model._calibrate(where or {})[0]
    for clique, separator, due in zip(model.tree.cliques, model.tree.separators, exact, strict=True):
        axes = tuple(i for i, column in enumerate(clique) if column not in separator)
        whole = due.sum(axis=axes, keepdims=True)
        share = np.divide(due, whole, out=np.zeros_like(due), where=whole > 0)
        drawn = table(rows, clique)
        assert np.abs(drawn - drawn.sum(axis=axes, keepdims=True) * share).max() < 1 + 1e-9 * n
    assert not where or all(set(rows[column]) <= levels for column, levels in where.items())


def test_each_row_follows_the_model_exactly(model):
    """The first row of many small tables: independent draws, whose cells chi-square must not tell from the model."""
    first = [model.sample(3, np.random.default_rng(seed)) for seed in range(3000)]
    rows = {name: np.array([drawn[name][0] for drawn in first]) for name, _ in SIZES}
    for clique in (*CLIQUES, ("left", "right"), ("top", "far"), ("alone", "top")):
        observed, expected = table(rows, clique).ravel(), model.marginal(clique).ravel() * 3000
        rare = expected < 5
        observed, expected = (np.append(x[~rare], x[rare].sum()) for x in (observed, expected))
        keep = expected > 0
        assert stats.chisquare(observed[keep], expected[keep], sum_check=False).pvalue > 1e-4, clique


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("one", "other", "given"),
    [("left", "right", "top"), ("top", "far", "right"), ("alone", "far", "right"), ("left", "alone", "top")],
)
def test_columns_are_independent_given_what_separates_them(model, one, other, given, seed):
    """Rounding must not couple them: rows ranked alike in two tables would make siblings depend on each other."""
    rows = model.sample(100_000, np.random.default_rng(seed))
    for level, part in enumerate(table(rows, (given, one, other))):
        assert stats.chi2_contingency(part, correction=False).pvalue > 1e-4, level


def test_rounding_adds_less_noise_than_independent_rows_would(model):
    pair, n = ("left", "top"), 400
    due = model.marginal(pair) * n
    off = [((table(model.sample(n, np.random.default_rng(s)), pair) - due) ** 2).sum() for s in range(100)]
    assert np.mean(off) < 0.1 * (due * (1 - due / n)).sum()


def test_a_line_of_no_weight_before_or_behind_is_never_drawn():
    """Lines side by side in one search: a position at the very end of one must not fall into the next."""

    class Edge:
        permutation = staticmethod(np.arange)

        def __init__(self, offset):
            self.random = lambda size: np.full(size, offset)

    weights = np.array([[0, 3.0, 0], [0.1, 0, 0], [0, 0, 7.0], [1e-300, 0, 1e-300]])
    given = np.repeat(np.arange(4), 50)
    for offset in (0.0, np.nextafter(1, 0)):
        drawn = Draws(len(given), Edge(offset)).draw(weights, given)
        assert (weights[given, drawn] > 0).all()


def test_structural_zeros_are_never_drawn():
    never = {("left", "top"): (slice(2, 4), 1), ("top", "right"): (0, [0, 4])}
    model = graphical(1, 5.0, never)
    for where in (None, {"top": frozenset({0, 1})}, {"left": frozenset({2, 3})}, {"alone": frozenset({2})}):
        rows = model.sample(100_000, np.random.default_rng(0), where)
        for clique, cells in never.items():
            assert not table(rows, clique)[cells].any()


def test_a_seed_gives_the_same_rows_and_no_global_state_is_touched(model):
    np.random.seed(0)  # noqa: NPY002 - looked at, not used
    before = random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002
    one, two, other = (model.sample(50, np.random.default_rng(s)) for s in (1, 1, 2))
    after = random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002
    assert all((one[c] == two[c]).all() for c in one)
    assert any((one[c] != other[c]).any() for c in one)
    assert before[0] == after[0]
    assert identical(State(arrays=before[1]["state"]), State(arrays=after[1]["state"]))


# conditions


def test_mass_is_the_share_of_rows_that_meet_a_condition(model):
    assert model.mass({}) == 1
    assert model.mass({"top": frozenset(range(3))}) == pytest.approx(1)
    assert model.mass({"top": frozenset()}) == 0
    both = {"left": frozenset({1, 3}), "far": frozenset({0})}
    assert model.mass(both) == pytest.approx(model.marginal(("left", "far"))[[1, 3], 0].sum())


def test_a_condition_changes_the_rest_as_conditioning_does(model):
    where = {"far": frozenset({1}), "left": frozenset({0, 2})}
    due = model.marginal(("left", "far", "top"))[[0, 2], 1].sum(axis=0)
    n = 50_000
    drawn = table(model.sample(n, np.random.default_rng(0), where), ("top",))
    np.testing.assert_allclose(drawn, n * due / due.sum(), atol=5)


def test_a_condition_that_no_row_can_meet_is_refused():
    model = graphical(never={("left", "top"): (2, slice(None))})
    for where in ({"left": frozenset({2})}, {"top": frozenset()}):
        assert model.mass(where) == 0
        with pytest.raises(MechanismError, match="no row can meet"):
            model.sample(5, np.random.default_rng(0), where)


# the stored form


def test_a_model_comes_back_equal_and_draws_the_same(model, tmp_path):
    files.save(model, tmp_path / "model")
    again = files.load(tmp_path / "model")
    assert type(again) is Graphical
    assert identical(again.state(), model.state())
    assert (again.tree, again.total, again.objective, again.steps) == (model.tree, 1000.0, 12.5, 30)
    rows, same_rows = (m.sample(1000, np.random.default_rng(3), {"top": frozenset({1, 2})}) for m in (model, again))
    assert all((rows[c] == same_rows[c]).all() for c in rows)


def test_its_facts_are_plain(model):
    assert json.loads(json.dumps(model.state().facts, allow_nan=False)) == model.state().facts


def test_a_model_of_no_column_comes_back_and_draws_nothing(tmp_path):
    """Schema left in a stratum that is defined by every column."""
    empty = Graphical(Schema({}), junction_tree((), ()), (np.zeros(()),), 5.0)
    assert (empty.sample(7, np.random.default_rng(0)), empty.mass({})) == ({}, 1)
    again = files.restore("graphical", Schema({}), empty.state())
    assert identical(again.state(), empty.state())


FACTS = {
    "no cliques": lambda facts: facts.pop("cliques"),
    "no total": lambda facts: facts.pop("total"),
    "a total that is no number": lambda facts: facts.update(total="many"),
    "a total that is NaN": lambda facts: facts.update(total=math.nan),
    "a total below zero": lambda facts: facts.update(total=-1.0),
    "an objective that is infinite": lambda facts: facts.update(objective=math.inf),
    "steps that are a list": lambda facts: facts.update(steps=[3]),
    "cliques that are a number": lambda facts: facts.update(cliques=3),
    "none of the cliques": lambda facts: facts.update(cliques=[], parents=[], separators=[]),
    "a clique too many": lambda facts: facts["cliques"].append(["top"]),
    "an unknown column": lambda facts: facts["cliques"].__setitem__(0, ["left", "nobody"]),
    "a column twice": lambda facts: facts["cliques"].__setitem__(0, ["left", "left"]),
    "a clique of numbers": lambda facts: facts["cliques"].__setitem__(0, [0, 1]),
    "a column that is missing": lambda facts: [facts[key].pop() for key in ("cliques", "parents", "separators")],
    "a parent that comes later": lambda facts: facts["parents"].__setitem__(1, 3),
    "a parent of its own": lambda facts: facts["parents"].__setitem__(1, 1),
    "no root": lambda facts: facts["parents"].__setitem__(0, 0),
    "two roots": lambda facts: facts["parents"].__setitem__(1, -1),
    "a parent that is a text": lambda facts: facts["parents"].__setitem__(1, "0"),
    "a parent too few": lambda facts: facts["parents"].pop(),
    "a parent too many": lambda facts: facts["parents"].append(0),
    "an empty separator": lambda facts: facts["separators"].__setitem__(1, []),
    "a separator that is not shared": lambda facts: facts["separators"].__setitem__(1, ["left"]),
    "a column that comes in twice": lambda facts: (
        facts["parents"].__setitem__(3, 0),
        facts["separators"].__setitem__(3, []),
    ),
    "facts that are a list": None,
}


@pytest.mark.parametrize("case", FACTS)
def test_facts_that_make_no_model_raise_release_error(case, model):
    state = model.state()
    if FACTS[case] is None:
        state = dataclasses.replace(state, facts=[state.facts])
    else:
        FACTS[case](state.facts)
    with pytest.raises(ReleaseError):
        files.restore("graphical", model.schema, state)


ARRAYS = {
    "a table is missing": lambda tables: tables.pop("1"),
    "another shape": lambda tables: tables.update({"1": tables["1"].T.copy()}),
    "flat": lambda tables: tables.update({"1": tables["1"].ravel()}),
    "whole numbers": lambda tables: tables.update({"1": np.zeros(tables["1"].shape, dtype=np.int64)}),
    "single precision": lambda tables: tables.update({"1": tables["1"].astype(np.float32)}),
    "NaN": lambda tables: tables["1"].__setitem__((0, 0), np.nan),
    "infinite": lambda tables: tables["1"].__setitem__((0, 0), -np.inf),
    "so large that sums overflow": lambda tables: [t.fill(1e308) for t in tables.values()],
    "so small that conditions are lost": lambda tables: [t.fill(-1e12) for t in tables.values()],
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_make_no_model_raise_release_error(case, model):
    state = model.state()
    tables = {name: array.copy() for name, array in state.arrays.items()}
    ARRAYS[case](tables)
    with pytest.raises(ReleaseError):
        files.restore("graphical", model.schema, State(state.facts, tables))


def test_another_schema_is_refused(model):
    for other in (schema_of(SIZES[:-1]), schema_of((*SIZES, ("more", 2))), schema_of((("left", 9), *SIZES[1:]))):
        with pytest.raises(ReleaseError):
            files.restore("graphical", other, model.state())


def test_columns_of_independent_parts_have_the_product_of_their_tables():
    """Whatever parts a wanted set of columns falls into, and in whatever order it names them."""
    sizes = (("A", 2), ("B", 3), ("C", 2), ("D", 4), ("E", 2))
    rng = np.random.default_rng(1)
    tree = junction_tree(sizes, (("A", "B"), ("C", "D")))
    tables = [rng.random(tree.shape(clique)) for clique in tree.cliques]
    tables = [table / table.sum() for table in tables]
    whole, names = np.ones(()), []
    for clique, table in zip(tree.cliques, tables, strict=True):
        whole, names = np.multiply.outer(whole, table), [*names, *clique]
    found = Marginals(tree, tables)
    columns = [name for name, _ in sizes]
    for number in range(1, 5):
        wanted = list(itertools.permutations(columns, number))
        for clique, table in zip(wanted, found.tables(wanted), strict=True):
            summed = whole.sum(axis=tuple(i for i, name in enumerate(names) if name not in clique))
            left = [name for name in names if name in clique]
            np.testing.assert_allclose(table, np.transpose(summed, [left.index(name) for name in clique]), atol=1e-12)


def test_models_asked_long_ago_forget_their_tables_and_say_the_same_again(monkeypatch):
    models = [graphical(seed) for seed in range(4)]
    monkeypatch.setattr("stratsynth.adapters.engine.model.ASKED", RecentModels(2 * models[0].tree.cells))
    first = [model.oneway("top") for model in models]
    for kept in ("_calibrated", "_marginals"):
        assert [kept in vars(model) for model in models] == [False, False, True, True]
    for model, due in zip(models, first, strict=True):
        np.testing.assert_array_equal(model.oneway("top"), due)
    monkeypatch.setattr("stratsynth.adapters.engine.model.ASKED", RecentModels(1))  # one alone may be larger
    drawn = [models[0].sample(50, np.random.default_rng(0))["top"] for _ in range(2)]
    np.testing.assert_array_equal(*drawn)
