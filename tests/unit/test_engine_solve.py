"""Fitting noisy tables: known answers, an independent solver on the whole table, and awkward input."""

import dataclasses
import math
import sys
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import nnls

from stratsynth import Categorical, Schema
from stratsynth.adapters.engine import Graphical, MeasuredTable, Problem, dense, junction_tree, solve
from stratsynth.adapters.engine.forest import NEVER, Forest
from stratsynth.adapters.engine.goal import Objectives
from stratsynth.adapters.engine.solve import engine
from stratsynth.models import files
from stratsynth.questions import NoisyTable
from stratsynth.testing.record import identical

SIZES = (("a", 3), ("b", 2), ("c", 4))
EXACT = {"iterations": 20_000, "tolerance": 0.0}


@pytest.fixture(autouse=True, params=[dense.LARGE, 0], ids=["together", "alone"])
def _both_ways(request, monkeypatch):
    """Solve all models as small ones are solved, then as large ones are."""
    monkeypatch.setattr(dense, "LARGE", request.param)


def measured(clique, values, sigma=1.0, **more):
    return MeasuredTable(tuple(clique), np.array(values), sigma, **more)


def noisy(cliques, seed, *, sigma=5.0, mean=10.0, sizes=SIZES):
    """Tables that fit nothing in particular, many cells below zero."""
    rng, levels = np.random.default_rng(seed), dict(sizes)
    return tuple(
        measured(c, np.rint(rng.normal(mean, 10, [levels[x] for x in c])).astype(int), sigma * rng.uniform(0.5, 2))
        for c in cliques
    )


def model(solution):
    columns = {n: Categorical(levels=tuple(map(str, range(size)))) for n, size in solution.tree.sizes}
    return Graphical.of(Schema(columns), solution)


def counts(solution, clique):
    return model(solution).marginal(tuple(clique)) * solution.total


def one(*tables, sizes=SIZES, **settings):
    return solve([Problem(sizes, tables, **settings)])[0]


def worth(solution, tables):
    """The objective, from the definition."""
    return (
        sum(
            (((counts(solution, t.clique) - t.values) ** 2)[... if t.counted is None else t.counted]).sum() / t.sigma**2
            for t in tables
        )
        / 2
    )


def best(problem, total):
    """The least objective over all tables of the whole domain, by another algorithm (Lawson and Hanson's)."""
    names, shape = [n for n, _ in problem.sizes], [size for _, size in problem.sizes]
    grid = np.indices(shape).reshape(len(shape), -1)
    possible = np.ones(grid.shape[1], dtype=bool)

    def cell(clique):
        axes = [names.index(c) for c in clique]
        return np.ravel_multi_index([grid[a] for a in axes], [shape[a] for a in axes])

    for clique, never in problem.forbidden.items():
        possible &= ~np.isin(cell(clique), never)
    lines, due = [np.full(possible.sum(), 1e4)], [1e4 * total]  # a heavy weight keeps the total
    for t in problem.tables:
        where = cell(t.clique)[possible]
        for i in np.flatnonzero(np.ones(t.values.size) if t.counted is None else t.counted):
            lines.append((where == i) / t.sigma)
            due.append(t.values.ravel()[i] / t.sigma)
    table = np.zeros(possible.size)
    table[possible], _ = nnls(np.array(lines), np.array(due))
    return table.reshape(shape)


# known answers


def test_an_exact_pair_table_comes_back_whatever_its_zeros():
    table = np.array([[120, 0, 35, 1], [3, 77, 0, 240]])
    solution = one(measured("bc", table), measured("b", table.sum(1)), measured("c", table.sum(0)), **EXACT)
    assert solution.total == table.sum()
    assert solution.objective < 1e-3
    np.testing.assert_allclose(counts(solution, "bc"), table, atol=0.05)


def test_consistent_tables_of_a_tree_are_all_met():
    rng = np.random.default_rng(0)
    rows = rng.integers(1, 40, (3, 2, 4))
    tables = [measured("ab", rows.sum(2)), measured("cb", rows.sum(0).T), measured("a", rows.sum((1, 2)))]
    solution = one(*tables, **EXACT)
    assert solution.objective < 1e-6
    for table in tables:
        np.testing.assert_allclose(counts(solution, table.clique), table.values, atol=1e-2)


def test_a_column_measured_twice_is_the_inverse_variance_mean():
    first, second = np.array([100, 40, 7]), np.array([92, 55, 11])
    solution = one(measured("a", first, 2.0), measured("a", second, 6.0), **EXACT)
    np.testing.assert_allclose(counts(solution, "a"), (9 * first + second) / 10, rtol=1e-5)


def test_counts_below_zero_are_zero_and_the_others_bear_it_evenly():
    """The closest point of the simplex: (62, -7, 45) with total 100 is (58.5, 0, 41.5)."""
    solution = one(measured("a", [62, -7, 45], 3.0), total=100, **EXACT)
    np.testing.assert_allclose(counts(solution, "a"), [58.5, 0, 41.5], atol=1e-3)


def test_what_was_not_measured_is_uniform_and_independent():
    solution = one(measured("a", [10, 20, 30]))
    np.testing.assert_allclose(counts(solution, "bc"), np.full((2, 4), 60 / 8), rtol=1e-6)
    np.testing.assert_allclose(counts(solution, "ab"), np.outer(counts(solution, "a"), [0.5, 0.5]), rtol=1e-6)


def test_the_total_is_the_tables_best_guess_unless_it_is_given():
    """Sums of k cells have variance k sigma^2: 90 with 3 * 4, 120 with 2 * 1."""
    tables = measured("a", [30, 30, 30], 2.0), measured("b", [60, 60], 1.0)
    assert one(*tables).total == pytest.approx((90 / 12 + 120 / 2) / (1 / 12 + 1 / 2))
    assert one(*tables, total=500).total == 500
    assert one(*tables, total=0).total == one(measured("a", [-5, -5, -5])).total == one().total == 1


# against an independent solver


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cliques", [["a", "ab", "bc"], ["ab", "bc", "ca", "b"], ["a", "c", "abc", "ca"]], ids=str)
def test_the_fit_is_as_good_as_an_independent_solvers(cliques, seed):
    problem = Problem(SIZES, noisy(map(tuple, cliques), seed), total=60.0, **EXACT)
    (solution,) = solve([problem])
    table = best(problem, 60.0)
    flat = dataclasses.replace(solution, tree=junction_tree(SIZES, (("a", "b", "c"),)))
    with np.errstate(divide="ignore"):
        logs = np.log(table / table.sum())
    reference = dataclasses.replace(flat, potentials=(np.maximum(logs, NEVER),))
    least = worth(reference, problem.tables)
    assert solution.objective == pytest.approx(worth(solution, problem.tables), rel=1e-9)
    assert solution.objective <= least * (1 + 1e-4)
    assert solution.objective >= least * (1 - 1e-4)
    for t in problem.tables:
        np.testing.assert_allclose(counts(solution, t.clique), counts(reference, t.clique), atol=0.6)


@pytest.mark.parametrize("seed", range(3))
def test_forbidden_and_uncounted_cells_are_left_out_as_an_independent_solver_does(seed):
    rng = np.random.default_rng(seed)
    tables = tuple(
        dataclasses.replace(t, counted=rng.random(t.values.shape) < 0.7) if len(t.clique) > 1 else t
        for t in noisy([("a",), ("a", "b"), ("c", "b")], seed)
    )
    problem = Problem(SIZES, tables, 80.0, {("a", "c"): np.array([0, 5, 6]), ("b",): np.array([1])}, **EXACT)
    (solution,) = solve([problem])
    reference = best(problem, 80.0)
    assert (reference.sum((0, 2))[1], counts(solution, "b")[1]) == (0, 0)
    assert not counts(solution, "ac").ravel()[[0, 5, 6]].any()
    np.testing.assert_allclose(counts(solution, "a"), reference.sum((1, 2)), atol=0.6)


# properties of the search


def test_problems_solved_together_are_solved_as_they_are_alone():
    """Whatever else is in the batch and whenever it is done: a stratum's model depends on its own tables only."""
    limits = [1000, 3, 40, 13, 1000, 200]
    several = [
        Problem(SIZES, noisy([("a", "b"), ("b", "c")], seed, sigma=0.5 + seed), mean, iterations=limit, tolerance=1e-7)
        for seed, (mean, limit) in enumerate(zip([None, 50, 2, None, 400, 1], limits, strict=True))
    ]
    several.append(Problem((("x", 5),), noisy([("x",)], 9, sizes=(("x", 5),)), iterations=7))
    together = solve(several)
    assert len({solution.iterations for solution in together}) > 4
    for problem, solution in zip(several, together, strict=True):
        (alone,) = solve([problem])
        assert (solution.iterations, solution.tree) == (alone.iterations, alone.tree)
        assert solution.objective == pytest.approx(alone.objective, rel=1e-9)
        for a, b in zip(solution.potentials, alone.potentials, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    assert solve([]) == []


def test_a_warm_start_begins_where_the_other_fit_ended():
    first = noisy([("a",), ("b",), ("a", "b")], 3)
    start = one(*first, total=70)
    again = one(*first, total=70, start=start, iterations=1)
    assert again.objective <= start.objective
    wider = (*first, *noisy([("b", "c")], 4))
    cold, warm = (one(*wider, total=70, start=s, iterations=15) for s in (None, start))
    assert warm.objective <= cold.objective
    settled = [one(*wider, total=70, start=s, **EXACT).objective for s in (None, start)]
    assert settled[0] == pytest.approx(settled[1], rel=1e-6)


def test_a_warm_start_takes_over_what_its_tables_added_also_of_tables_measured_twice():
    """Measured again, a clique begins where it was; of two tables of one clique the first takes what both added."""
    pair, lone = noisy([("a", "b"), ("c",)], 3)
    again = dataclasses.replace(pair, values=pair.values + 4)
    for first, then in (
        ((pair, lone), (pair, lone, again)),
        ((pair, again, lone), (lone, pair, again)),
        ((pair, again, lone), (again, lone)),
    ):
        start = one(*first, total=70)
        problem = Problem(SIZES, then, 70, start=start)
        goal = Objectives(Forest([problem.tree()]), [problem], np.array([70.0]))
        terms = goal.first()
        assert dict(start.terms).keys() == {("a", "b"), ("c",)}
        cells, _ = Forest([problem.tree()]).calibrated(goal.potentials(terms))
        begun = dataclasses.replace(start, tree=problem.tree(), potentials=shaped(problem.tree(), np.log(cells)))
        for clique in ("ab", "c"):
            np.testing.assert_allclose(joint(begun, clique), counts(start, clique), rtol=1e-9)


def shaped(tree, flat):
    """A flat array as one table for each clique."""
    sizes = np.cumsum([0, *(math.prod(tree.shape(c)) for c in tree.cliques)])
    return tuple(flat[a:b].reshape(tree.shape(c)) for (a, b), c in zip(pairwise(sizes), tree.cliques, strict=True))


def joint(solution, clique):
    """A clique's counts from log probabilities of maximal cliques."""
    home = solution.tree.cliques[solution.tree.home(tuple(clique))]
    table = np.exp(solution.potentials[solution.tree.home(tuple(clique))]) * solution.total
    return table.sum(axis=tuple(i for i, c in enumerate(home) if c not in clique))


def test_a_base_keeps_structure_and_takes_new_structural_zeros():
    base = one(*noisy([("a", "b")], 5), total=70)
    solution = one(*noisy([("b", "c")], 6), total=70, base=base, forbidden={("a", "b"): np.array([0, 3])})
    assert {("a", "b"), ("b", "c")} == set(solution.tree.cliques)
    kept = one(*noisy([("b", "c")], 6), total=70, base=base)
    assert kept.tree == solution.tree
    assert not counts(solution, "ab").ravel()[[0, 3]].any()


def test_cells_that_do_not_count_have_no_influence():
    counted = np.array([[True, False], [True, True], [False, True]])
    base = noisy([("a", "b")], 7)[0]
    results = []
    for junk in (0, 10**6):
        table = dataclasses.replace(base, values=np.where(counted, base.values, junk), counted=counted)
        results.append(counts(one(table, total=50), "ab"))
    np.testing.assert_array_equal(*results)


def test_a_released_table_is_fitted_as_it_is():
    table = NoisyTable(("b", "a"), np.arange(6).reshape(2, 3), 2.5)
    seen = MeasuredTable.of(table)
    assert (seen.clique, seen.sigma, seen.counted) == (("b", "a"), 2.5, None)
    assert seen.values is table.values


def test_the_search_stops_where_progress_ends_and_never_beyond_its_limit():
    tables = noisy([("a", "b"), ("b", "c")], 8)
    assert one(*tables).iterations < 1000
    assert one(*tables, tolerance=0.0, iterations=60).iterations == 60
    objectives = [one(*tables, iterations=n, tolerance=0.0).objective for n in (1, 10, 100, 1000)]
    assert objectives == sorted(objectives, reverse=True)


def test_the_engine_is_found_by_name():
    assert engine("numpy").solve is solve


# awkward input

AWKWARD = {
    "nothing above zero": ([[-9, -5], [-1, -70], [-3, -3]], 10.0, None),
    "all zero": ([[0, 0], [0, 0], [0, 0]], 1.0, None),
    "one record": ([[0, 0], [1, 0], [0, 0]], 0.5, 1.0),
    "noise and one record": ([[40, -35], [12, 9], [-51, 8]], 30.0, 1.0),
    "immense noise": ([[10**9, -(10**9)], [5, 10**8], [0, -7]], 1e9, None),
    "hardly any noise": ([[10**6, 0], [5, 10**5], [0, 7]], 1e-3, None),
    "hardly any noise and the wrong total": ([[10**6, 0], [5, 10**5], [0, 7]], 1e-3, 10.0),
    "one cell that holds all": ([[0, 0], [0, 0], [0, 10**9]], 1.0, None),
}


@pytest.mark.parametrize("case", AWKWARD)
def test_awkward_tables_give_a_distribution(case):
    values, sigma, total = AWKWARD[case]
    tables = measured("ab", values, sigma), measured("a", np.sum(values, axis=1), sigma)
    solution = one(*tables, total=total)
    found = model(solution).marginal(("a", "b"))
    assert np.isfinite(solution.objective)
    assert all(np.isfinite(table).all() for table in solution.potentials)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-9)
    uniform = sum(((solution.total * t.values.size**-1 - t.values) ** 2).sum() / sigma**2 / 2 for t in tables)
    assert solution.objective <= uniform * (1 + 1e-12)


CORNERS = {
    "a pull on what is forbidden": (
        (("a", 1), ("b", 3)),
        14.8,
        1.0,
        {("b", "a"): [1]},
        {"a": [15], "b": [17, 15, -8], "ba": [[-3], [28], [3]]},
    ),
    "an estimated total of one": (
        (("a", 4), ("b", 3), ("c", 1)),
        4.5,
        None,
        {("c", "a"): [0]},
        {
            "a": [4, 2, -5, -6],
            "b": [5, -12, 1],
            "c": [4],
            "ca": [[3, 4, -5, 9]],
            "ba": [[7, 6, 10, -10], [-2, 2, -12, -4], [6, -4, 5, 3]],
        },
    ),
    "several columns": (
        (("a", 3), ("b", 3), ("c", 4)),
        157.9,
        1.0,
        {("b", "a"): [5], ("b", "c"): [8]},
        {
            "a": [109, -6, 87],
            "b": [-36, 63, 284],
            "c": [60, 152, -130, -18],
            "ba": [[86, 54, -100], [64, 28, -240], [5, 199, -130]],
            "bc": [[40, 83, -115, 126], [-212, -164, 100, -161], [334, 69, 159, 170]],
        },
    ),
}
"""Noise of strata without rows, found by search: the best fit is one row, which steps approach without end."""


@pytest.mark.parametrize("case", CORNERS)
@pytest.mark.parametrize("settings", [{}, EXACT], ids=["default", "to the end"])
def test_where_one_row_fits_best_the_steps_do_not_run_over_what_is_forbidden(case, settings):
    sizes, sigma, total, forbidden, tables = CORNERS[case]
    cells = {clique: np.array(never) for clique, never in forbidden.items()}
    solution = one(
        *(measured(c, v, sigma) for c, v in tables.items()), sizes=sizes, total=total, forbidden=cells, **settings
    )
    fitted, rng = model(solution), np.random.default_rng(0)
    rows = fitted.sample(100_000, rng)
    allowed = {"a": frozenset({int(rows["a"][0])})}
    for clique, never in cells.items():
        shape = [dict(sizes)[c] for c in clique]
        assert not fitted.marginal(clique).ravel()[never].any()
        for drawn in (rows, fitted.sample(1000, rng, allowed)):
            assert not np.isin(np.ravel_multi_index([drawn[c] for c in clique], shape), never).any()
    assert set(fitted.sample(100, rng, allowed)["a"]) == allowed["a"]
    assert identical(files.restore("graphical", fitted.schema, fitted.state()).state(), fitted.state())


def test_a_prior_makes_noise_even_and_leaves_what_is_known():
    """With few people in much noise the best fit alone is the noise's favourite cell; a prior spreads it out."""
    rng = np.random.default_rng(0)
    for people, least, most in ((5, 0.5, 1.0), (50_000, 0.0, 0.01)):
        truth = np.array([0.7, 0.1, 0.1, 0.1])
        table = MeasuredTable(("a",), np.rint(people * truth + rng.normal(0, 50, 4)).astype(np.int64), 50.0)
        alone, spread = (
            Graphical.of(
                Schema({"a": Categorical(levels=tuple("0123"))}),
                solve([Problem((("a", 4),), (table,), float(people), prior=prior)])[0],
            ).marginal(("a",))
            for prior in (0.0, 1.0)
        )
        assert least <= np.abs(alone - spread).sum()
        if people > 5:
            assert np.abs(spread - truth).sum() < most
        else:
            assert np.abs(spread - 0.25).sum() < 0.2 < np.abs(alone - 0.25).sum()


@pytest.mark.parametrize(("fit", "most"), [(1, 1), (2, 2), (3, 3), (9, 5)])
def test_large_models_are_fitted_side_by_side_as_far_as_memory_allows(fit, most, monkeypatch):
    """Of five models, as many as fit into the bound together, whatever the number of cores."""
    module, running, seen = sys.modules["stratsynth.adapters.engine.solve"], [], []
    problems = [
        Problem((("A", 100), ("B", 100)), (MeasuredTable(("A", "B"), np.full((100, 100), i), 1.0),)) for i in range(5)
    ]
    cells = problems[0].tree().cells
    assert dense.is_large(problems[0].tree())

    def slowly(problems, trees):
        running.append(threading.get_ident())
        seen.append(len(running))
        time.sleep(0.05)
        running.pop()
        return [(problem, tree) for problem, tree in zip(problems, trees, strict=True)]

    monkeypatch.setattr(module, "_together", slowly)
    monkeypatch.setattr(module, "MOST_CELLS", fit * cells)
    monkeypatch.setattr(module.os, "cpu_count", lambda: 8)
    assert [problem for problem, _ in solve(problems)] == problems
    assert max(seen) == most
