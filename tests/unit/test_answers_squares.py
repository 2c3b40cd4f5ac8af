"""Least squares over all tables in closed form, against the dense solution of the same problem."""

import itertools

import numpy as np
import pytest

from stratsynth import Categorical, Schema
from stratsynth.answers.across import slices
from stratsynth.answers.squares import Functions, Squares
from stratsynth.answers.tables import Leaf, Noisy, Tables

SIZES = {"G": 3, "A": 2, "B": 3, "C": 2}
SCHEMA = Schema({name: Categorical(levels=tuple(map(str, range(size)))) for name, size in SIZES.items()})
CELLS = list(itertools.product(*map(range, SIZES.values())))


def world(strata, tables, everybody, seed=0):
    """Tables of strata (lists of codes of G) and of everybody, each of columns and variance, with random values."""
    rng = np.random.default_rng(seed)
    leaves, rows = [], []

    def drawn(columns, variance, codes):
        shape = tuple(len(codes) if name == "G" else SIZES[name] for name in columns)
        values = rng.normal(0, 10, shape)
        rows.extend((columns, cell, codes, values[cell], variance) for cell in np.ndindex(shape))
        return Noisy(columns, values, variance)

    for codes, own in zip(strata, tables, strict=True):
        found = [drawn(columns, variance, codes) for columns, variance in own]
        leaves.append(Leaf(str(codes), {"G": list(codes)} if len(strata) > 1 else {}, found))
    pooled = [drawn(columns, variance, (0, 1, 2)) for columns, variance in everybody]
    by = frozenset({"G"}) if len(strata) > 1 else frozenset()
    return Squares(Tables(SCHEMA, by, tuple(leaves), tuple(pooled))), rows


def dense(rows, functions):
    """Estimates and covariances of functions by one linear system in the cells of all columns; None: not estimable."""
    names = tuple(SIZES)
    design = np.zeros((len(rows), len(CELLS)))
    for i, (columns, cell, codes, _, _) in enumerate(rows):
        for j, joint in enumerate(CELLS):
            at = dict(zip(names, joint, strict=True))
            place = {name: codes.index(at["G"]) if name == "G" and at["G"] in codes else at[name] for name in columns}
            design[i, j] = at["G"] in codes and all(place[n] == c for n, c in zip(columns, cell, strict=True))
    values, variances = np.array([r[3] for r in rows]), np.array([r[4] for r in rows])
    normal = design.T @ (design / variances[:, None])
    inverse = np.linalg.pinv(normal, rcond=1e-10, hermitian=True)
    weights = np.ones((functions.number, len(CELLS)))
    for name, factor in functions.factors.items():
        weights *= factor[:, [joint[names.index(name)] for joint in CELLS]]
    known = np.abs(weights @ (np.eye(len(CELLS)) - inverse @ normal)).max(axis=1) < 1e-8
    return weights @ inverse @ (design.T @ (values / variances)), weights @ inverse @ weights.T, known


def asked(rng, names, number=12):
    """Functions of some columns: levels, sets of levels, and arbitrary numbers."""
    factors = {}
    for name in names:
        kinds = [
            np.eye(SIZES[name])[rng.integers(SIZES[name])],
            rng.integers(0, 2, SIZES[name]) * 1.0,
            rng.normal(size=SIZES[name]),
            np.ones(SIZES[name]),
        ]
        factors[name] = np.stack([kinds[rng.integers(4)] for _ in range(number)])
    return Functions(number, factors)


FULL = [(("A", "B"), 4.0), (("B", "C"), 9.0), (("A",), 1.0), (("C",), 2.0)]
WORLDS = {
    "one table of two columns and their margins": ([(0, 1, 2)], [[*FULL, (("G", "A"), 3.0)]], []),
    "strata that measured the same": ([(0,), (1,), (2,)], [FULL, FULL, FULL], []),
    "strata of other tables": ([(0,), (1,), (2,)], [FULL, FULL[:2], [(("A", "B", "C"), 5.0)]], []),
    "everybody too": ([(0,), (1,), (2,)], [FULL, FULL[:2], FULL[1:]], [(("A", "B"), 2.0), (("C",), 7.0)]),
    "strata that measured nothing": ([(0,), (1,), (2,)], [FULL, [], []], [(("A", "B"), 2.0), (("C",), 7.0)]),
    "a merge": ([(0, 2), (1,)], [[*FULL, (("G", "A"), 3.0), (("B", "G"), 2.0)], FULL], []),
    "a merge and everybody": ([(0, 2), (1,)], [[*FULL, (("A", "G"), 3.0)], []], [(("A", "B"), 2.0), (("C",), 7.0)]),
}


@pytest.mark.parametrize("case", WORLDS)
def test_estimates_and_covariances_are_those_of_the_dense_solution(case):
    squares, rows = world(*WORLDS[case])
    rng, some = np.random.default_rng(1), 0
    for names in [(), ("A",), ("G",), ("A", "B"), ("G", "A"), ("G", "B"), ("A", "C"), ("G", "A", "B", "C")]:
        one, other = asked(rng, names), asked(rng, names[:1])
        both = Functions(
            24, {n: np.concatenate([one.factors[n], other.factors.get(n, np.ones((12, SIZES[n])))]) for n in names}
        )
        values, covariance, known = dense(rows, both)
        found, sure = squares.estimate(one)
        assert (sure == known[:12]).all(), (case, names)
        some += int(sure.sum())
        assert np.allclose(found[sure], values[:12][sure], atol=1e-9, rtol=1e-9)
        assert np.allclose(squares.covariance(one, one)[sure], np.diag(covariance)[:12][sure], atol=1e-9, rtol=1e-9)
        pairs = sure & known[12:]
        between = np.diag(covariance[:12, 12:])
        assert np.allclose(squares.covariance(one, other)[pairs], between[pairs], atol=1e-9, rtol=1e-9)
    assert some > 30


def test_functions_of_groups_add_up_to_everybodys():
    squares, _ = world(*WORLDS["everybody too"])
    groups = Functions(3, {"G": np.eye(3), "A": np.tile([1.0, 0.0], (3, 1))})
    everybody = Functions(1, {"A": np.array([[1.0, 0.0]])})
    assert squares.estimate(groups)[0].sum() == pytest.approx(squares.estimate(everybody)[0][0], abs=1e-9)


TWO = {"G": 2, "H": 3, "A": 2, "B": 3}
BOTH = Schema({name: Categorical(levels=tuple(map(str, range(size)))) for name, size in TWO.items()})
JOINT = list(itertools.product(*map(range, TWO.values())))
CROSSED = [((g,), (h,)) for g in range(2) for h in range(3)]
MERGED = {
    "one merge": [((0,), (0, 2)), ((0,), (1,)), ((1,), (0,)), ((1,), (1,)), ((1,), (2,))],
    "merges that overlap": [((0,), (0, 1)), ((0,), (2,)), ((1,), (0,)), ((1,), (1, 2))],
    "merges of both columns": [((0, 1), (0,)), ((0,), (1, 2)), ((1,), (1, 2))],
}
WIDE = [(("A", "G"), 3.0), (("H", "A"), 2.0), (("G", "B"), 1.0), (("G",), 5.0)]
"""Tables of everybody over one of the two columns that define strata."""


def across(groups, measured, noise, seed=3):
    """Squares of strata by G and H, of which those measured have tables, and of `WIDE`; rows; true counts."""
    rng, rows, leaves = np.random.default_rng(seed), [], []
    true = rng.integers(1, 50, tuple(TWO.values())).astype(float)

    def drawn(columns, variance, codes):
        there = true[np.ix_(*(codes.get(name, range(size)) for name, size in TWO.items()))]
        values = there.sum(axis=tuple(i for i, name in enumerate(TWO) if name not in columns))
        order = [name for name in TWO if name in columns]
        values = values.transpose([order.index(name) for name in columns])
        values = values + noise * rng.normal(0, np.sqrt(variance), values.shape)
        for cell in np.ndindex(values.shape):
            at = {n: codes[n][c] if n in codes else c for n, c in zip(columns, cell, strict=True)}
            rows.append(({**codes, **{name: [code] for name, code in at.items()}}, values[cell], variance))
        return Noisy(columns, values, variance)

    for number, (g, h) in enumerate(groups):
        codes, own = {"G": list(g), "H": list(h)}, [("A", "B")] if number % 2 else [("A",), ("B",)]
        there = measured == "all" or (measured.startswith("some") and number % 3 == 0)
        leaves.append(Leaf(str(number), codes, [drawn(c, 2.0 + number, codes) for c in own] if there else []))
    by = frozenset({"G", "H"})
    wide = [each for columns, variance in WIDE for each in slices(drawn(columns, variance, {}), leaves, by)]
    pooled = (drawn(("A", "B"), 4.0, {}),) if measured.endswith("everybody") else ()
    return Squares(Tables(BOTH, by, tuple(leaves), pooled, across=tuple(wide))), rows, true


def of_groups():
    """Functions of cells of the strata's columns and of others, with their weights of all cells."""
    rng = np.random.default_rng(1)
    for names in [(), ("G",), ("H",), ("A",), ("G", "A"), ("H", "A"), ("G", "B"), ("H", "B"), ("G", "H", "A")]:
        factors = {n: np.stack([np.eye(TWO[n])[rng.integers(TWO[n])] for _ in range(8)]) for n in names}
        weights = np.ones((8, len(JOINT)))
        for name, factor in factors.items():
            weights *= factor[:, [cell["GHAB".index(name)] for cell in JOINT]]
        yield names, Functions(8, factors), weights


@pytest.mark.parametrize("measured", ["all", "some", "none", "some and everybody"])
def test_tables_over_some_of_the_columns_of_strata_count_as_in_the_dense_solution(measured):
    squares, rows, _ = across(CROSSED, measured, 1.0)
    design = np.array([[all(c["GHAB".index(n)] in some for n, some in at.items()) for c in JOINT] for at, _, _ in rows])
    values, variances = (
        np.array(found) for found in zip(*((value, variance) for _, value, variance in rows), strict=True)
    )
    design = design * 1.0
    normal = design.T @ (design / variances[:, None])
    inverse, answered = np.linalg.pinv(normal, rcond=1e-10, hermitian=True), set()
    for names, asked, weights in of_groups():
        known = np.abs(weights @ (np.eye(len(JOINT)) - inverse @ normal)).max(axis=1) < 1e-8
        found, sure = squares.estimate(asked)
        assert (sure == known).all(), names
        assert np.allclose(found[sure], (weights @ inverse @ (design.T @ (values / variances)))[sure])
        covariance = np.diag(weights @ inverse @ weights.T)
        assert np.allclose(squares.covariance(asked, asked)[sure], covariance[sure])
        answered |= {names} if sure.all() else set()
    assert answered >= {(), ("G",), ("H",), ("A",), ("G", "A"), ("H", "A"), ("G", "B")}
    assert (("H", "B") in answered, ("G", "H", "A") in answered) == (measured == "all", measured == "all")


@pytest.mark.parametrize("groups", MERGED)
@pytest.mark.parametrize("measured", ["all", "some", "none"])
def test_levels_that_are_merged_in_a_stratum_are_told_apart_by_its_own_tables_alone(groups, measured):
    squares, _, true = across(MERGED[groups], measured, 0.0)
    answered = 0
    for names, asked, weights in of_groups():
        found, sure = squares.estimate(asked)
        assert np.allclose(found[sure], (weights @ true.ravel())[sure]), names
        answered += int(sure.sum())
        assert names != ("A",) or sure.all()
    assert answered >= 8


def test_slices_of_merged_levels_have_the_noise_of_all_of_them():
    leaves = [Leaf(str(i), {"G": list(g), "H": list(h)}) for i, (g, h) in enumerate(MERGED["merges that overlap"])]
    values = np.arange(6.0).reshape(3, 2)
    found = slices(Noisy(("H", "A"), values, 2.0), leaves, frozenset({"G", "H"}))
    assert [(each.leaves, each.table.variance) for each in found] == [((0, 1, 2, 3), 6.0)]
    assert found[0].table.values.tolist() == values.sum(axis=0).tolist()
    apart = slices(Noisy(("G", "A"), values[:2], 2.0), leaves, frozenset({"G", "H"}))
    assert [(each.leaves, each.table.variance) for each in apart] == [((0, 1), 2.0), ((2, 3), 2.0)]
