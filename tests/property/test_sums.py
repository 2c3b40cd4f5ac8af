"""Sums of clipped rows: what one row can move, in exact integers; and that no row depends on another."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from strategies import examples
from stratsynth.driver import sums
from stratsynth.driver.sums import exact_sums
from stratsynth.questions import (
    Columns,
    Confusions,
    Design,
    FairGradients,
    Gradients,
    GroupLosses,
    Mitigated,
    Moments,
    NetworkGradients,
    NetworkLosses,
    RowVectors,
)
from stratsynth.questions.sums import base, design
from stratsynth.questions.sums.base import GRID, into_ball
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.weight import RowWeight

MAX = 1.7976931348623157e308
SCHEMA = Schema(
    {
        "unit": Numeric(lower=0, upper=1, missing=True),
        "wide": Numeric(lower=-MAX, upper=MAX, bins=1),
        "tiny": Numeric(lower=0, upper=5e-324, bins=1),
        "age": Numeric(lower=0, upper=99, integer=True, bins=4, missing=True, not_applicable="N"),
        "y": Numeric(lower=-3, upper=8, missing=True),
        "pay": Numeric(lower=-MAX, upper=MAX, bins=1, transform="log", transform_unit=1000),
        "root": Numeric(lower=-5, upper=MAX, bins=1, missing=True, transform="fourth-root"),
        "kind": Categorical(levels=("a", "b", "c"), outside="missing"),
        "one": Categorical(levels=("only",)),
        "yes": Categorical(levels=("no", "yes")),
        "class": Categorical(levels=("p", "q", "r", "s")),
    }
)
NUMBERS = [name for name in SCHEMA.names if isinstance(SCHEMA.columns[name], Numeric)]
DESIGN = Design(("unit", "kind", "wide", "age", "tiny", "one"))
WIDTH = len(DESIGN.names(SCHEMA))
SMALL = Design(("age",), intercept=False)
THIRD = 1 / 3
AWKWARD = np.array(
    [THIRD, math.nan, 0.0, -0.0, 1.0, -1.0, 0.6, 0.8, 3.0, 4.0, 5e-324, 1e-310, 1e308, -1e308, MAX, -MAX]
)


def row_vectors(frame):
    """Row-local, with missing values; and failing on some rows, which made-up rows do not show."""
    values = frame[["unit", "wide", "age"]].to_numpy() * np.array([3.0, 1.0, 0.1])
    if (frame["unit"] == THIRD).any():
        raise ValueError("this message would quote a row")
    return values


KINDS = SCHEMA.shape(("kind",))
CELLS = np.array([0.0, 0.3, 1.0, 0.7])


def theta(seed, *shape):
    return np.random.default_rng(seed).normal(scale=2, size=shape)


QUERIES = {
    "one column, l2": Columns(("age",), (40.0,), (1.0,), 7.5),
    "one column, l1": Columns(("unit",), (0.25,), (1e-3,), 100.0, "l1"),
    "on the sphere": Columns(("unit", "y"), (0.0, 0.0), (1.0, 1.0), 1.0),
    "on the diamond": Columns(("unit", "y", "age"), (0.0, 0.0, 3.0), (0.6, 1.0, 1.0), 2.0, "l1"),
    "extreme centre": Columns(("unit", "wide", "tiny"), (1e308, -1e308, 0.0), (1e-308, 1e308, 5e-324), 1e-99),
    "extreme clip": Columns(("wide", "y"), (-MAX, 0.0), (MAX, 5e-324), 1e99),
    "squares": Columns(("unit", "y"), (0.25, 0.0), (0.5, 0.1), 3.0, square=True),
    "square of one, l1": Columns(("age",), (40.0,), (9.0,), 4.0, "l1", square=True),
    "extreme squares": Columns(("wide", "tiny"), (1e308, 0.0), (1e-308, 5e-324), 1e-99, square=True),
    "other scales": Columns(("pay", "root"), (1.0, 0.0), (0.3, 0.7), 2.5),
    "squares on other scales": Columns(("pay", "root"), (-2.0, 0.1), (1.0, 1e60), 2.5, square=True),
    "moments": Moments(DESIGN, "y", math.sqrt(len(DESIGN.columns) + DESIGN.intercept)),
    "moments, tight": Moments(DESIGN, "y", 0.3, 0.01),
    "moments, extreme": Moments(SMALL, "wide", 1e-99, 1e-99),
    "linear": Gradients(DESIGN, "y", "linear", theta(1, 1, WIDTH), 1.0),
    "linear, extreme": Gradients(SMALL, "wide", "linear", np.full((1, len(SMALL.names(SCHEMA))), -1e308), 1e-99),
    "logistic": Gradients(DESIGN, "yes", "logistic", theta(2, 1, WIDTH), 0.5),
    "logistic, extreme": Gradients(DESIGN, "yes", "logistic", theta(3, 1, WIDTH) * 1e307, 1e-99),
    "softmax": Gradients(DESIGN, "class", "softmax", theta(4, 1, WIDTH, 4), 0.7),
    "softmax, extreme": Gradients(DESIGN, "class", "softmax", theta(5, 1, WIDTH, 4) * 1e300, 1e-3),
    "confusions": Confusions(DESIGN, "yes", theta(6, 3, WIDTH), ("kind", "class")),
    "confusions, extreme": Confusions(DESIGN, "yes", theta(7, 2, WIDTH) * 1e300),
    "group losses, squared": GroupLosses(DESIGN, "yes", theta(6, 3, WIDTH), 0.7, "squared", ("kind", "class")),
    "group losses, log": GroupLosses(DESIGN, "yes", theta(6, 3, WIDTH), 3.0, "log", ("class",)),
    "group losses, extreme": GroupLosses(DESIGN, "yes", theta(7, 2, WIDTH) * 1e300, 1e-99, "log"),
    "flipped gradients": Gradients(
        DESIGN,
        "yes",
        "logistic",
        theta(8, 2, WIDTH),
        0.5,
        ("kind", "yes"),
        np.random.default_rng(8).random((4, 2)),
        np.random.default_rng(9).random((4, 2)) < 0.5,
    ),
    "network": NetworkGradients(DESIGN, "yes", theta(6, 3, WIDTH), theta(7, 4, 1), 0.5),
    "network, softmax": NetworkGradients(DESIGN, "class", theta(8, 3, WIDTH), theta(9, 4, 4), 0.7),
    "network, parts": NetworkGradients(DESIGN, "yes", theta(6, 3, WIDTH), theta(7, 4, 1), 0.5, ("class",), CELLS),
    "network, extreme": NetworkGradients(SMALL, "class", theta(10, 2, 3) * 1e307, theta(11, 3, 4) * 1e300, 1e-99),
    "network, losses": NetworkLosses(DESIGN, "class", theta(8, 3, WIDTH), theta(9, 4, 4), 1.0),
    "network, residuals": NetworkLosses(DESIGN, "yes", theta(6, 3, WIDTH), theta(7, 4, 1), 0.5, "squared"),
    "fair": FairGradients(DESIGN, "yes", "logistic", theta(12, 2, WIDTH), 0.5, ("kind",), theta(13, 2, *KINDS, 2)),
    "fair, odds": FairGradients(
        DESIGN, "class", "softmax", theta(14, 2, WIDTH, 4), 0.7, ("yes", "class"), theta(15, 2, 2, 4, 4)
    ),
    "fair, extreme": FairGradients(
        DESIGN, "class", "softmax", theta(16, 1, WIDTH, 4) * 1e307, 1e-99, ("yes",), theta(17, 1, 2, 4) * 1e307
    ),
    "mitigated": Mitigated(
        DESIGN,
        "yes",
        "logistic",
        theta(12, WIDTH),
        0.5,
        ("class",),
        ("tally", "boundary", "pulls", "excess"),
        0.4,
        3.0,
        theta(13, 4),
        theta(14, 4),
        theta(15, WIDTH),
        CELLS,
    ),
    "mitigated, extreme": Mitigated(
        DESIGN,
        "class",
        "softmax",
        theta(16, WIDTH, 4) * 1e300,
        1e-99,
        ("yes",),
        ("boundary", "excess"),
        1.0,
        1e9,
        theta(17, 2) * 1e307,
        theta(18, 2) * 1e200,
        theta(19, WIDTH, 4) * 1e300,
    ),
    "row vectors, l2": RowVectors(row_vectors, 3, 2.0),
    "row vectors, l1": RowVectors(row_vectors, 3, 1e-4, "l1"),
}
MOST = 1000
"""The largest weight of a row, where rows have weights of their own."""
HEAVY = replace(SCHEMA, row_weight=RowWeight(MOST, "W"))
ROWS = 24
WORLDS = 15
"""24 rows in 15 worlds are 360 pairs a query, and more than 10,000 in all."""

queries = pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
seeds = st.integers(0, 2**63)


def world(seed, size=ROWS, *, lawful=True):
    """Rows of every kind; when not `lawful`, numbers outside the bounds and infinite ones too."""
    rng = np.random.default_rng(seed)
    numbers = {}
    for name in NUMBERS:
        column = SCHEMA.columns[name]
        lower, upper = float(column.lower), float(column.upper)
        share = rng.random(size)
        drawn = np.where(rng.random(size) < 0.5, lower * (1 - share) + upper * share, rng.choice(AWKWARD, size))
        drawn = np.where(rng.random(size) < 0.2, rng.choice([lower, upper], size), drawn)
        if lawful:
            drawn = np.clip(drawn, lower, upper)
        else:
            drawn[rng.random(size) < 0.1] = rng.choice([math.inf, -math.inf])
        numbers[name] = drawn
    codes = {name: rng.integers(SCHEMA.size(name), size=size).astype(np.uint8) for name in SCHEMA.names}
    return CodedRows(SCHEMA, codes, numbers, size)


def parts(query, rows, chosen=None):
    return [np.asarray(block).tolist() for block in exact_sums(query, rows, chosen)]


def single(query, rows):
    """The contribution of each row: the sum with it less the sum without it."""
    everything = np.arange(rows.size)
    whole = exact_sums(query, rows)
    return [[w - p for w, p in zip(whole, exact_sums(query, rows, everything != i), strict=True)] for i in everything]


def length(vector, norm):
    """The L1 norm, or the square of the L2 norm, in whole numbers of any size."""
    values = [int(v) for v in vector]
    return sum(map(abs, values)) if norm == "l1" else sum(v * v for v in values)


@queries
@given(seeds)
@examples(WORLDS, slow=30)
def test_a_row_moves_a_sum_by_no_more_than_declared(query, seed):
    query.check(SCHEMA)
    rows = world(seed, lawful=seed % 4 > 0)
    norm = getattr(query, "norm", "l2")
    blocks = query.blocks(SCHEMA)
    contributions = single(query, rows)
    for i, contribution in enumerate(contributions):
        exchanged = contributions[i - 1]
        for block, mine, other in zip(blocks, contribution, exchanged, strict=True):
            assert mine.shape == (block.size,)
            assert length(mine, norm) <= (GRID if norm == "l1" else GRID**2)
            reach = Fraction(block.exchange) * GRID
            assert length(mine - other, norm) <= (reach if norm == "l1" else reach**2)


@queries
@given(seeds, st.data())
@settings(max_examples=8)
def test_sums_add_up_over_any_split_in_any_order(query, seed, data):
    rows = world(seed, data.draw(st.integers(0, 40)))
    order = np.array(data.draw(st.permutations(range(rows.size))), np.intp)
    cut = data.draw(st.integers(0, rows.size))
    whole = parts(query, rows)
    one, other = (exact_sums(query, rows.take(order[part])) for part in (slice(cut), slice(cut, None)))
    assert [(a + b).tolist() for a, b in zip(one, other, strict=True)] == whole
    assert parts(query, rows, order) == whole
    mask = np.zeros(rows.size, bool)
    mask[order[:cut]] = True
    assert parts(query, rows, mask) == parts(query, rows, order[:cut]) == [a.tolist() for a in one]


@queries
@given(seeds)
@settings(max_examples=3)
def test_a_row_contributes_the_same_alone_and_among_others(query, seed):
    rows = world(seed)
    for i, contribution in enumerate(single(query, rows)):
        alone = CodedRows(
            SCHEMA, {c: a[[i]] for c, a in rows.codes.items()}, {c: a[[i]] for c, a in rows.numbers.items()}, 1
        )
        assert parts(query, alone) == [mine.tolist() for mine in contribution]


@queries
@given(seeds)
@settings(max_examples=3)
def test_neither_pieces_nor_the_cache_change_anything(query, seed):
    rows = world(seed)
    before = [{name: column.tobytes() for name, column in held.items()} for held in (rows.codes, rows.numbers)]
    chosen = np.array([3, 1, 20, 7, 11])
    expected = parts(query, rows), parts(query, rows, chosen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "ROWS", 5)
        patch.setattr(design, "ROWS", 7)
        assert (parts(query, rows.take(slice(None))), parts(query, rows, chosen)) == expected
        patch.setattr(design, "KEPT", 0)
        other = rows.take(slice(None))
        assert (parts(query, other), parts(query, other, chosen)) == expected
    after = [{name: column.tobytes() for name, column in held.items()} for held in (rows.codes, rows.numbers)]
    assert before == after


@queries
def test_no_rows_sum_to_zero(query):
    empty = world(0, 0)
    sizes = [block.size for block in query.blocks(SCHEMA)]
    assert parts(query, empty) == parts(query, world(0), np.zeros(ROWS, bool)) == [[0] * size for size in sizes]
    assert parts(query, world(0), np.empty(0, np.intp)) == [[0] * size for size in sizes]


@queries
def test_a_query_sees_its_rows(query):
    """The tests above would pass if every sum were zero."""
    assert any(any(block) for block in parts(query, world(7, 200)))


any_floats = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 5), st.integers(1, 6)),
    elements=st.floats() | st.sampled_from([GRID, GRID - 0.5, 0.6 * GRID, 0.8 * GRID, -GRID / 2]) | st.floats(-9, 9),
)


@given(any_floats, st.sampled_from([1, 2, 5, 1 << 15, GRID - 1, GRID]), st.sampled_from(["l1", "l2"]))
@settings(max_examples=500)
def test_into_ball_is_exact(vectors, radius, norm):
    units = into_ball(vectors, radius, norm)
    for v, u in zip(vectors.T, units.T, strict=True):
        assert length(u, norm) <= (radius if norm == "l1" else radius**2)
        if np.isnan(v).any():
            assert not u.any()
            continue
        assert all(a == 0 or (a > 0) == (b > 0) for a, b in zip(u.tolist(), v.tolist(), strict=True))
        assert (np.abs(u) <= np.abs(v)).all()
        if np.isfinite(v).all() and length([math.ceil(abs(x)) for x in v], norm) <= (
            radius if norm == "l1" else radius**2
        ):
            assert u.tolist() == [int(x) for x in v]


@given(any_floats.filter(lambda v: v.shape[0] == 1), st.sampled_from([1, 3, 1 << 15, GRID]))
def test_one_coordinate_is_cut_exactly_at_the_radius(vectors, radius):
    expected = [0 if math.isnan(x) else int(min(max(x, -radius), radius)) for x in vectors[0]]
    assert into_ball(vectors, radius)[0].tolist() == into_ball(vectors, radius, "l1")[0].tolist() == expected


@given(any_floats, st.sampled_from(["l1", "l2"]), st.sampled_from([0.0, 1e-3, 1e300, math.nan, math.inf]))
def test_the_bound_does_not_rest_on_floats(vectors, norm, wrong):
    """Lengths that are wrong in every way cannot make a row longer than the clip."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "sqrt", lambda x: x * 0 + wrong)
        patch.setattr(np, "abs", lambda x: np.absolute(x) * (wrong if x.dtype.kind == "f" else 1))
        units = into_ball(vectors, GRID, norm)
    assert all(length(u, norm) <= (GRID if norm == "l1" else GRID**2) for u in units.T)


def test_a_coordinate_rounded_up_to_the_radius_is_taken_back():
    assert math.sqrt(float(GRID**2 + 25)) == GRID  # what floats think
    vectors = np.array([[GRID, 2e8, GRID], [5.0, 1.0, 0.5]])
    assert into_ball(vectors, GRID).T.tolist() == [[GRID - 1, 4], [200_000_000, 1], [GRID, 0]]


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_long_vectors_do_not_overflow_the_check(norm):
    """The squares of 16 coordinates add up to 2^64, which 64 bits take for 0."""
    units = np.full((16, 1), GRID)
    assert not base._within(units, GRID, norm).any()
    assert base._within(units // 16, GRID, norm).all()


def weighed(rows, weights):
    """Rows with weights of their own."""
    return CodedRows(HEAVY, rows.codes, rows.numbers, rows.size, np.asarray(weights, np.int64))


@queries
def test_a_weighted_row_counts_as_that_many_rows(query):
    """Exactly, in whole units: the sum of rows that are there as often as their weight says."""
    rows, weights = world(3), np.random.default_rng(3).choice([0, 1, 2, 3, 7, 64, MOST], ROWS)
    found = exact_sums(query, weighed(rows, weights))
    repeated = exact_sums(query, rows.take(np.repeat(np.arange(ROWS), weights)))
    for ours, theirs in zip(found, repeated, strict=True):
        assert [int(x) for x in ours] == theirs.tolist()
    some = np.flatnonzero(np.arange(ROWS) % 3)
    for ours, theirs in zip(
        exact_sums(query, weighed(rows, weights), some),
        exact_sums(query, weighed(rows.take(some), weights[some])),
        strict=True,
    ):
        assert ours.tolist() == theirs.tolist()


@queries
def test_a_weighted_row_moves_a_sum_by_no_more_than_its_weight_in_clips(query):
    rows = world(4)
    weights = np.random.default_rng(4).integers(0, MOST + 1, ROWS)
    everybody = exact_sums(query, weighed(rows, weights))
    for i in (0, 7, 23):
        less = exact_sums(query, weighed(rows.take(np.flatnonzero(np.arange(ROWS) != i)), np.delete(weights, i)))
        alone = exact_sums(query, rows.take(np.array([i])))
        for whole, rest, own in zip(everybody, less, alone, strict=True):
            assert (whole - rest).tolist() == (int(weights[i]) * own.astype(object)).tolist()
            assert sum(int(x) ** 2 for x in whole - rest) <= (MOST * GRID) ** 2


def test_weighted_sums_do_not_wrap_around(monkeypatch):
    """2^32 rows come to 2^62 units, and with weights beyond 64 bits: a score of such a sum must not jump back."""
    query, rows = Columns(("unit",), (0.0,), (1e-9,), 1.0), world(5, 4)
    monkeypatch.setattr(sums, "_plain_sums", lambda *_: [np.array([2**62])])
    (found,) = exact_sums(query, weighed(rows, [1, 2, 3, MOST]))
    assert found.tolist() == [2**62 * (2 ** MOST.bit_length() - 1)]
