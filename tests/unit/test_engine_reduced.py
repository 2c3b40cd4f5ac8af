"""A fit that moves a base is that of the measured columns alone, put into the base."""

import numpy as np
import pytest

from stratsynth.adapters.engine import Problem, solve
from stratsynth.adapters.engine.marginals import Marginals
from stratsynth.adapters.engine.restricted_fit import extended, marginals_of, reduced
from stratsynth.adapters.engine.single_update import updated
from stratsynth.adapters.engine.solve import MeasuredTable, _solved

SIZES = tuple((column, 4) for column in "ABCDEFGH")
RNG = np.random.default_rng(0)


def table(columns, people, sigma):
    cells = RNG.dirichlet(np.ones(4 ** len(columns))).reshape([4] * len(columns))
    return MeasuredTable(tuple(columns), np.rint(people * cells).astype(np.int64), sigma)


@pytest.fixture(scope="module")
def base():
    zero = np.arange(16)  # the first level of A does not occur
    (found,) = solve(
        [
            Problem(
                SIZES,
                (table("ABC", 1e4, 3.0), table("CDE", 1e4, 3.0), table("EFGH", 1e4, 3.0)),
                1e4,
                forbidden={("A", "B", "C"): zero},
                prior=1.0,
            )
        ]
    )
    return found


@pytest.mark.parametrize(
    "measured", [["AF"], ["B"], ["AF", "B", "AF"], ["AB", "CD", "GH"]], ids=["pair", "one", "twice", "apart"]
)
def test_the_reduced_fit_is_the_whole_one(base, measured):
    tables = tuple(table(columns, 300, 5.0) for columns in measured)
    problem = Problem(SIZES, tables, 300.0, base=base, prior=20.0, tolerance=1e-10, iterations=3000)
    if len(measured) < 3 or measured[0] == measured[-1]:
        assert reduced(problem) is not None
    (one,), (other,) = _solved([problem]), solve([problem])
    assert other.tree == one.tree
    assert other.objective == pytest.approx(one.objective, rel=1e-4)
    for columns in ("AF", "BG", "D", "CHA", "EFG"):
        here, there = (marginals_of(solution).table(tuple(columns)) for solution in (one, other))
        np.testing.assert_allclose(here, there, atol=2e-6)
    assert marginals_of(other).table(("A",))[0] == 0  # what the base rules out stays out


def test_each_is_solved_as_if_alone(base):
    problems = [
        Problem(SIZES, (table(columns, 300, 5.0),), 300.0, base=base, prior=20.0) for columns in ("AF", "BG", "C")
    ]
    together = solve(problems)
    for problem, found in zip(problems, together, strict=True):
        (alone,) = solve([problem])
        for here, there in zip(alone.potentials, found.potentials, strict=True):
            np.testing.assert_array_equal(here, there)


def test_what_does_not_pay_is_left_as_it_is(base):
    pair = table("AF", 300, 5.0)
    assert reduced(Problem(SIZES, (pair,), 300.0)) is None
    assert reduced(Problem(SIZES, (pair,), 300.0, base=base, iterations=1)) is None
    assert reduced(Problem(SIZES, (), 300.0, base=base)) is None
    assert reduced(Problem(SIZES, (table("ABCDEFG", 300, 5.0),), 300.0, base=base)) is None
    assert reduced(Problem(SIZES, (pair,), 300.0, base=base, forbidden={("A", "B"): np.array([0])})) is None
    assert reduced(Problem((*SIZES, ("I", 2)), (pair,), 300.0, base=base)) is None  # a column that the base lacks


def test_the_solution_is_of_the_whole_problem(base):
    problem = Problem(SIZES, (table("AF", 300, 5.0),), 300.0, base=base, prior=20.0)
    (solved,) = _solved([reduced(problem)])
    assert solved.tree.sizes == (("A", 4), ("F", 4))
    found = extended(problem, solved)
    assert found.tree == problem.tree()
    assert (found.terms, found.objective, found.total) == (solved.terms, solved.objective, solved.total)
    assert found.iterations == solved.iterations > 0


@pytest.mark.parametrize(("measured", "moved"), [(["B"], 1), (["FE"], 1), (["B", "G"], 2), (["AF"], None)], ids=str)
def test_tables_that_no_term_belongs_to_are_the_bases_own(base, measured, moved):
    """One object, which a model's file holds once for all strata; a stratum that joins two of them has one more."""
    tables = tuple(table(columns, 300, 5.0) for columns in measured)
    (found,) = solve([Problem(SIZES, tables, 300.0, base=base, prior=20.0)])
    kept = {id(one) for one in base.potentials}
    own = [one for one in found.potentials if id(one) not in kept]
    if moved is None:
        assert found.tree != base.tree
        assert len(own) < len(found.potentials)
    else:
        assert found.tree == base.tree
        assert len(own) == moved


def test_terms_do_not_write_into_the_base(base):
    before = [one.copy() for one in base.potentials]
    solve([Problem(SIZES, (table("AB", 300, 5.0), table("AF", 300, 5.0)), 300.0, base=base, prior=20.0)])
    for here, there in zip(before, base.potentials, strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("own", ["AF", "FA", "D"])
def test_one_table_moves_all_marginals_of_a_base_as_in_the_whole_model(base, own):
    noisy = np.random.default_rng(5).integers(0, 200, (4,) * len(own))
    (solution,) = solve([Problem(SIZES, (MeasuredTable(tuple(own), noisy, 5.0),), 1000.0, base=base, prior=20.0)])
    cliques = [("D",), ("F", "A"), ("H", "B", "A"), ("G",), ("D", "E")]
    whole, found = marginals_of(solution).tables(cliques), updated(base, solution, cliques)
    for table, due in zip(found, whole, strict=True):
        np.testing.assert_allclose(table, due, rtol=1e-9, atol=1e-13)
    assert updated(base, solution, [tuple("BCDEGH")]) is None  # too large a table of the base
    assert updated(base, base, cliques) is None


def test_kept_tables_do_not_depend_on_what_was_asked_before(base, monkeypatch):
    cliques = [("A", "H"), ("B",), ("C", "G", "E"), ("A", "B")]
    fresh = [Marginals(base.tree, marginals_of(base).calibrated) for _ in range(3)]
    due = fresh[0].kept(cliques)
    np.testing.assert_allclose(
        np.concatenate([t.ravel() for t in due]),
        np.concatenate([t.ravel() for t in fresh[0].tables(cliques)]),
        rtol=1e-12,
    )
    monkeypatch.setattr("stratsynth.adapters.engine.marginals.MOST_KEPT", 130)
    for clique in reversed(cliques):
        fresh[1].kept([clique])
    assert fresh[1]._held <= 130 < sum(table.size for table in fresh[0]._kept.values()) + 64
    for one in (fresh[1].kept(cliques[:2]), fresh[2].kept(cliques[:2])):
        assert all(np.array_equal(table, other) for table, other in zip(one, due, strict=False))
    with pytest.raises(ValueError, match="read-only"):
        due[0][...] = 0
