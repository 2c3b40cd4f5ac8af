"""Confusion counts and the scores made of them: right, moved by no more than is said, and drawn as they should be."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from helpers.exactly import exact_sums
from helpers.regressing import SCHEMA, people
from stratsynth import Categorical, Schema
from stratsynth.accounting.budget import PRICED, Currency, Neighbours
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.answering import Reader
from stratsynth.errors import MechanismError
from stratsynth.noise import SystemEntropy
from stratsynth.questions import Choose, Coded, Composite, Confusions, Gradients, Term, Total
from stratsynth.questions.base import Setting
from stratsynth.questions.composite import KINDS
from stratsynth.questions.reading import Exact
from stratsynth.questions.sums.base import GRID, check_query

DESIGN = Coded(("X",))
THETAS = np.array([[0.0, 1.0], [0.1, -1.0], [1.0, 0.0]])
QUERY = Confusions(DESIGN, "D", THETAS, ("G",))


exact = partial(exact_sums, schema=SCHEMA)


def test_counts_are_those_of_counting_by_hand():
    frame = people(300)
    for theta, found in zip(THETAS, exact(QUERY, frame), strict=True):
        said = theta[0] + theta[1] * np.rint(frame.X * 4096) / 4096 > 0
        hand = [
            int(((g == frame.G) & (d == frame.D) & (said == p)).sum())
            for g in "ab"
            for d in ("no", "yes")
            for p in (False, True)
        ]
        assert (found == np.array(hand) * GRID).all()


LAYERS = np.random.default_rng(0).normal(size=(4, 2, 3))
LEVELS = SCHEMA.levels("C")


def test_counts_of_several_levels_are_those_of_counting_by_hand():
    """The first level of equals is predicted, as where all coefficients are 0."""
    frame, layers = people(300), np.concatenate([LAYERS, np.zeros((1, 2, 3))])
    for theta, found in zip(layers, exact(Confusions(DESIGN, "C", layers, ("G",)), frame), strict=True):
        x = np.rint(frame.X.to_numpy() * 4096) / 4096
        said = (np.column_stack([np.ones(300), x]) @ (np.rint(theta * 2**20) / 2**20)).argmax(axis=1)
        hand = [
            int(((g == frame.G) & (c == frame.C) & (said == p)).sum()) for g in "ab" for c in LEVELS for p in range(3)
        ]
        assert (found == np.array(hand) * GRID).all()
    assert not said.any()


@pytest.mark.parametrize("scale", [1.0, 1e12, -1e300])
def test_a_row_enters_exactly_one_cell_whatever_the_coefficients(scale):
    for query in (
        Confusions(DESIGN, "D", THETAS * scale, ("G", "C")),
        Confusions(DESIGN, "C", LAYERS * scale, ("G", "D")),
    ):
        for seed in range(20):
            for block in exact(query, people(1, seed)):
                assert block.sum() == block.max() == GRID
                assert (block == 0).sum() == block.size - 1


def test_an_exchanged_row_moves_a_block_by_the_square_root_of_two():
    for block in QUERY.blocks(SCHEMA):
        assert [block.sensitivity(n) for n in PRICED] == [1.0, pytest.approx(math.sqrt(2))]
    noise = Total(QUERY, 0.3).scales(SCHEMA, Neighbours.ADD_REMOVE)
    assert noise[0] == pytest.approx(GRID / math.sqrt(2 * 0.3 / 3), rel=1e-9)
    one, other = exact(QUERY, people(1, 0)), exact(QUERY, people(1, 1))
    assert max(int(((a - b) // GRID).astype(object) @ ((a - b) // GRID)) for a, b in zip(one, other, strict=True)) == 2


def test_pure_epsilon_is_for_counts_that_are_priced_in_the_l1_norm():
    with pytest.raises(MechanismError, match="l1"):
        Total(QUERY, 0.3, Currency.PURE).check(SCHEMA)
    one_norm = replace(QUERY, norm="l1")
    for block in one_norm.blocks(SCHEMA):
        assert [block.sensitivity(n) for n in PRICED] == [1.0, 2.0]
    question = Total(one_norm, 0.3, Currency.PURE)
    question.check(SCHEMA)
    scales = [question.scales(SCHEMA, n)[0] for n in PRICED]
    assert scales == pytest.approx([GRID / 0.1, 2 * GRID / 0.1], rel=1e-9)
    assert question.replayed()[0] != Total(QUERY, 0.3, Currency.PURE).replayed()[0]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (Confusions(DESIGN, "C", THETAS), r"shape \(2, 3\)"),
        (Confusions(DESIGN, "Y", THETAS), "not a categorical"),
        (Confusions(DESIGN, "D", THETAS, ("D",)), "among the groups"),
        (Confusions(DESIGN, "D", THETAS, ("W",)), "'W'"),
        (Confusions(DESIGN, "D", THETAS[:, :1]), r"shape \(2,\)"),
        (Confusions(DESIGN, "D", THETAS[..., None]), r"shape \(2,\)"),
        (Confusions(DESIGN, "D", THETAS, norm="l3"), "no norm"),
        (Confusions(DESIGN, "D", THETAS * np.nan), "finite"),
        (Confusions(DESIGN, "D", THETAS[:0]), "one entry"),
    ],
)
def test_malformed_counts_are_refused_by_the_schema_alone(query, words):
    with pytest.raises(MechanismError, match=words):
        check_query("total", query, SCHEMA)


def test_flipped_rows_count_as_if_they_had_the_other_label():
    frame, clip = people(200), 0.7
    parts, flips = np.array([[1.0, 0.5], [0.25, 1.0]]), np.array([[False, True], [True, False]])
    found = exact(Gradients(DESIGN, "D", "logistic", THETAS, clip, ("G", "D"), parts, flips), frame)
    other = {"no": "yes", "yes": "no"}
    expected = np.zeros((3, 2))
    for (g, group), (d, label) in itertools.product(enumerate("ab"), enumerate(other)):
        rows = frame[(group == frame.G) & (label == frame.D)].copy()
        if flips[g, d]:
            rows["D"] = rows.D.map(other)
        expected += parts[g, d] * np.array(exact(Gradients(DESIGN, "D", "logistic", THETAS, clip), rows))
    assert np.abs(np.array(found) - expected).max() <= 200 * 4096 * 2
    for row in range(30):
        for block in exact(
            Gradients(DESIGN, "D", "logistic", THETAS * 9, 0.1, ("G", "D"), parts, flips), people(1, row)
        ):
            assert int((block.astype(object) ** 2).sum()) <= GRID**2


@pytest.mark.parametrize("flips", [np.zeros((2, 2)), np.zeros(2, bool), [[False]]])
def test_malformed_flips_are_refused(flips):
    with pytest.raises(MechanismError, match="flips"):
        check_query(
            "total", Gradients(DESIGN, "D", "logistic", THETAS, 1.0, ("G", "D"), np.ones((2, 2)), flips), SCHEMA
        )


def by_floats(term, counts):
    """The head of the file, in floats."""
    z, s = term.slopes @ counts + term.offsets, term.parameter
    cut = np.clip(z, 0, 1)
    value = {
        "largest": z.max,
        "smooth_largest": lambda: np.log(np.exp(s * (z - z.max())).sum()) / s + z.max(),
        "spread": lambda: np.abs(z[:, None] - z).sum() / 2 - s * z.sum(),
        "harmonic_mean": lambda: len(z) / (1 / cut).sum() if cut.all() else 0.0,
        "geometric_mean": lambda: np.prod(cut + s) ** (1 / len(z)),
    }[term.kind]()
    inner = term.constant + term.sign * value
    return term.weight * (max(0.0, inner) if term.hinge else inner)


def made(kind, seed, size=4):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 4))
    return Term(
        kind,
        rng.normal(size=(rows, size)) / 6,
        rng.normal(size=rows) / 4,
        float(rng.normal() * 3),
        bool(seed % 2),
        1 if seed % 3 else -1,
        float(rng.normal() / 5),
        float(rng.uniform(0.05, 4)),
    )


terms = st.builds(made, st.sampled_from(KINDS), st.integers(0, 10_000))
tables = st.lists(st.integers(0, 9), min_size=4, max_size=4)


@given(terms, tables)
def test_a_term_is_what_its_formula_says(term, counts):
    term.check(4)
    assert float(term.value(counts)) == pytest.approx(by_floats(term, np.array(counts)), rel=1e-6, abs=1e-7)


@given(terms, tables, st.integers(0, 3))
@example(made("harmonic_mean", 1316), [3, 5, 8, 2], 2)  # moves by 2.5 times one rate of three
@example(made("geometric_mean", 5539), [1, 3, 1, 1], 3)  # moves by 2.9 times the mean of its rates
def test_a_record_moves_a_term_by_no_more_than_its_step(term, counts, cell):
    more = list(counts)
    more[cell] += 1
    assert abs(term.value(more) - term.value(counts)) <= term.steps[cell] + Fraction(1, 10**30)


@given(st.lists(terms, min_size=1, max_size=3), tables, st.integers(0, 3), st.integers(0, 3), st.integers(1, 5))
def test_integer_scores_move_by_no_more_than_their_bound(parts, counts, one, other, weight):
    from stratsynth.schema.weight import RowWeight

    schema = Schema({"D": Categorical(levels=("no", "yes")), "X": SCHEMA.column("X")}, row_weight=RowWeight(weight))
    score = Composite(Confusions(DESIGN, "D", THETAS), 0, tuple(parts))
    for notion in PRICED:
        there = (
            np.array(counts) + np.eye(4, dtype=int)[other] - (notion == Neighbours.REPLACE) * np.eye(4, dtype=int)[one]
        )
        if there.min() < 0:
            continue
        found = []
        for n in (np.array(counts), there):
            (units,), reach = Composite.units([score], Exact(sums=[[n * GRID] * 3]), Setting(schema, notion), {})
            found.append(units)
        assert abs(found[0] - found[1]) <= reach


def test_many_candidates_are_read_in_one_pass_and_found_by_their_number():
    rng = np.random.default_rng(0)
    query = Confusions(DESIGN, "D", rng.normal(size=(200, 2)), ("G",))
    wrong = np.array([[0, 1, 1, 0] * 2], float) / 500
    scores = [Composite(query, i, (Term("largest", wrong, np.zeros(1)),)) for i in range(200)]
    assert len(Composite.wanted(scores).sums) == 1
    frame, question = people(500), Choose(tuple(scores), 1e9)
    question.check(SCHEMA)
    read = Reader(load_rows(SCHEMA, open_source(frame)), SystemEntropy())
    (truth,) = read.each([((), question.wanted())])
    errors = [float((block * wrong[0]).sum()) / GRID for block in truth.sums[0]]
    at = Setting(SCHEMA, Neighbours.ADD_REMOVE)
    found = question.answer(at, truth, SystemEntropy(), {})
    assert errors[found] == pytest.approx(min(errors))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "median"}, "kind"),
        ({"slopes": np.zeros((1, 8))}, "all 0"),
        ({"slopes": np.ones((1, 3))}, "8 columns"),
        ({"slopes": np.full((1, 8), np.inf)}, "finite"),
        ({"offsets": np.zeros(2)}, "one offset"),
        ({"weight": math.nan}, "weight"),
        ({"constant": math.inf}, "constant"),
        ({"sign": 0}, "sign"),
        ({"kind": "geometric_mean"}, "parameter"),
        ({"weight": 0.0}, "no record"),
        ({"hinge": 1}, "hinge"),
        ({"slopes": np.ma.ones((1, 8))}, "numpy arrays"),
    ],
)
def test_malformed_terms_are_refused(change, words):
    settings = {"kind": "largest", "slopes": np.ones((1, 8)), "offsets": np.zeros(1), **change}
    with pytest.raises(MechanismError, match=words):
        Choose((Composite(QUERY, 0, (Term(**settings),)),), 1.0).check(SCHEMA)


def test_a_score_of_ones_own_or_a_classifier_that_is_not_there_is_refused():
    class Mine(Composite):
        pass

    class Steady(Term):
        steps = (Fraction(0),) * 8

    term = Term("largest", np.ones((1, 8)), np.zeros(1))
    steady = Steady("largest", np.ones((1, 8)), np.zeros(1))
    for score, words in (
        (Mine(QUERY, 0, (term,)), "Composite"),
        (Composite(QUERY, 3, (term,)), "number"),
        (Composite(QUERY, 0, (steady,)), "terms"),
    ):
        with pytest.raises(MechanismError, match=words):
            Choose((score,), 1.0).check(SCHEMA)


BITS = Schema({"X": Categorical(levels=("0", "1")), "D": Categorical(levels=("no", "yes"))})
ROWS = tuple(itertools.product((0, 1), repeat=2))


def all_tables(number):
    return itertools.combinations_with_replacement(ROWS, number)


@pytest.mark.parametrize("neighbours", PRICED)
@pytest.mark.parametrize("kind", ["smooth_largest", "spread", "harmonic_mean", "geometric_mean", "penalised"])
def test_no_choice_is_likelier_by_more_than_e_to_the_epsilon_on_any_neighbouring_tables_of_six(kind, neighbours):
    """Exhaustive: all tables of 6 records and all their neighbours, in exact integers of the scores."""
    query = Confusions(Coded(("X",)), "D", np.array([[-1.0, 2.0], [1.0, -2.0], [1.0, 0.0], [-1.0, 0.0]]))
    rates = np.array([[0, 1, 0, 0], [0, 0, 1, 0]], float) / 3
    error = Term("largest", np.array([[0, 1, 1, 0]]) / 6.0, np.zeros(1))
    parts = {
        "smooth_largest": (Term("smooth_largest", rates, np.zeros(2), parameter=5.0),),
        "spread": (error, Term("spread", rates, np.zeros(2), 4.0, hinge=True, parameter=0.2)),
        "harmonic_mean": (Term("harmonic_mean", -rates, np.ones(2), -1.0),),
        "geometric_mean": (error, Term("geometric_mean", -rates, np.ones(2), 2.0, True, -1, 0.8, 0.1)),
        "penalised": (error, Term("largest", np.vstack([rates, -rates]), np.full(4, -0.3), 7.0, hinge=True)),
    }[kind]
    question = Choose(tuple(Composite(query, i, parts) for i in range(4)), rho=0.5)
    question.check(BITS)
    epsilon, at = question.epsilon, Setting(BITS, neighbours)

    def chances(table):
        rows = pd.DataFrame([(BITS.levels("X")[x], BITS.levels("D")[d]) for x, d in table], columns=["X", "D"])
        truth = exact(query, rows, schema=BITS)
        units, reach = Composite.units(question.scores, Exact(sums=[truth]), at, {})
        power = np.array([epsilon * (u - max(units)) / (2 * reach) for u in units])
        return np.exp(power) / np.exp(power).sum()

    known = {table: chances(table) for n in (5, 6, 7) for table in all_tables(n)}
    worst = 0.0
    for table in all_tables(6):
        less = [tuple(table[:i] + table[i + 1 :]) for i in range(6)]
        if neighbours == Neighbours.REPLACE:
            others = [tuple(sorted((*rest, row))) for rest in less for row in ROWS]
        else:
            others = [*less, *(tuple(sorted((*table, row))) for row in ROWS)]
        for other in others:
            worst = max(worst, float(np.abs(np.log(known[table] / known[other])).max()))
    assert 0.2 * epsilon < worst <= epsilon * (1 + 1e-9)
