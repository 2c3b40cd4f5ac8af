"""The sums of a step of fair learning: right by finite differences, clipped as one, and no dearer than is charged."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from helpers.exactly import exact_sums
from helpers.regressing import SCHEMA, people
from stratsynth.accounting.budget import PRICED, Currency, Neighbours
from stratsynth.digest import _names
from stratsynth.errors import MechanismError
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Coded, FairGradients, Gradients, Total
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact
from stratsynth.questions.sums.base import GRID, check_query

RNG = np.random.default_rng(0)
CODED, OTHER = Coded(("G", "X", "C")), Coded(("X", "D"))
TWO = RNG.normal(size=(2, 5))
"""Two logistic models of D."""
THREE = RNG.normal(size=(2, 3, 3))
"""Two softmax models of C."""
QUERIES = {
    "logistic": FairGradients(CODED, "D", "logistic", TWO, 0.4, ("G",), RNG.normal(size=(2, 2, 2))),
    "odds": FairGradients(CODED, "D", "logistic", TWO, 0.4, ("G", "D"), RNG.normal(size=(2, 2, 2, 2))),
    "softmax": FairGradients(OTHER, "C", "softmax", THREE, 0.4, ("G",), RNG.normal(size=(2, 2, 3))),
    "softmax of two": FairGradients(CODED, "D", "softmax", RNG.normal(size=(1, 5, 2)), 0.4, ("C",), np.ones((1, 3, 2))),
    "decided": FairGradients(CODED, "D", "logistic", TWO, 0.4, ("G",), RNG.normal(size=(2, 2, 2)), decided=True),
    "decided softmax": FairGradients(
        OTHER, "C", "softmax", THREE, 0.4, ("G",), RNG.normal(size=(2, 2, 3)), decided=True
    ),
    "no penalty": FairGradients(OTHER, "C", "softmax", THREE, 0.4),
}


exact = partial(exact_sums, schema=SCHEMA)


def features(design, frame):
    """In plain numpy."""
    x = frame.X.to_numpy()
    plain = {"G": [frame.G == "b"], "X": [x], "C": [frame.C == "q", frame.C == "r"], "D": [frame.D == "yes"]}
    return np.column_stack([np.ones(len(frame)), *(one for name in design.columns for one in plain[name])]).astype(
        float
    )


def probabilities(x, theta):
    """Of each class, of one model."""
    z = x @ (np.column_stack([np.zeros(len(theta)), theta]) if theta.ndim == 1 else theta)
    power = np.exp(z - z.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def cells(query, frame):
    """The number of each row's cell."""
    codes = [frame[c].map({level: i for i, level in enumerate(SCHEMA.levels(c))}) for c in query.by]
    return np.ravel_multi_index(codes, SCHEMA.shape(query.by)) if query.by else None


def by_hand(query, frame, model):
    """The clipped sum by finite differences of each row's penalised loss, and the sum of F or decisions by cell."""
    x, theta = features(query.design, frame), query.thetas[model]
    levels = frame[query.target].map({level: i for i, level in enumerate(SCHEMA.levels(query.target))}).to_numpy()
    cell, rows = cells(query, frame), np.arange(len(frame))

    def value(theta):
        p = probabilities(x, theta)
        if cell is None:
            return -np.log(p[rows, levels])
        return -np.log(p[rows, levels]) + (p * query.slopes[model].reshape(-1, p.shape[1])[cell]).sum(axis=1)

    gradient, step = np.zeros((len(frame), theta.size)), 1e-6
    for i in range(theta.size):
        up = np.zeros(theta.size)
        up[i] = step
        up = up.reshape(theta.shape)
        gradient[:, i] = (value(theta + up) - value(theta - up)) / (2 * step)
    length = np.linalg.norm(gradient, axis=1, keepdims=True)
    clipped = gradient * np.minimum(1, query.clip / np.maximum(length, 1e-300))
    p = probabilities(x, theta)
    if query.decided:
        p = np.eye(p.shape[1])[p.argmax(axis=1)]
    sums = None if cell is None else np.array([p[cell == k].sum(axis=0) for k in range(SCHEMA.cells(query.by))])
    return clipped.sum(axis=0), sums


@pytest.mark.parametrize("name", QUERIES)
def test_each_model_gets_its_own_sums(name):
    query, frame = QUERIES[name], people(300)
    found = exact(query, frame)
    for model in range(len(query.thetas)):
        gradient, sums = by_hand(query, frame, model)
        width = 2 if query.by else 1
        assert np.allclose(found[width * model] * query.clip / GRID, gradient, atol=2e-3 * 300**0.5)
        if query.by:
            # of one row in 300, classes may be alike up to what features are rounded to
            assert np.allclose(found[2 * model + 1] / GRID, sums.ravel(), atol=1 if query.decided else 300 * 2e-4)


def test_without_slopes_it_is_the_gradient_of_the_loss():
    frame, thetas = people(400), TWO
    fair = exact(FairGradients(CODED, "D", "logistic", thetas, 0.4), frame)
    plain = exact(Gradients(CODED, "D", "logistic", thetas, 0.4), frame)
    assert all((a == b).all() for a, b in zip(fair, plain, strict=True))


def test_slopes_alike_for_all_classes_change_nothing():
    frame = people(200)
    for name in ("logistic", "softmax"):
        query = QUERIES[name]
        alike = FairGradients(
            query.design, query.target, query.link, query.thetas, 0.4, query.by, np.full(query.slopes.shape, 2.5)
        )
        plain = FairGradients(query.design, query.target, query.link, query.thetas, 0.4)
        apart = [np.abs(a - b).max() for a, b in zip(exact(alike, frame)[::2], exact(plain, frame), strict=True)]
        assert max(apart) <= 200 * 4096  # a unit of c a row, times a whole feature


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e12])
@pytest.mark.parametrize("name", QUERIES)
def test_one_row_adds_at_most_the_clip_to_each_block(name, size):
    """Whatever the coefficients and slopes: the norm is checked in exact integers."""
    query = QUERIES[name]
    slopes = None if query.slopes is None else query.slopes * size
    query = FairGradients(query.design, query.target, query.link, query.thetas * size, 0.4, query.by, slopes)
    for seed in range(25):
        for block in exact(query, people(1, seed)):
            assert int((block.astype(object) ** 2).sum()) <= GRID**2


@pytest.mark.parametrize("name", QUERIES)
def test_a_rows_part_depends_on_that_row_alone_to_the_last_bit(name):
    frame, query = people(120), QUERIES[name]
    alone = [exact(query, frame.iloc[[i]]) for i in range(len(frame))]
    for i, block in enumerate(exact(query, frame.sample(frac=1, random_state=1))):
        assert (block == np.sum([one[i] for one in alone], axis=0)).all()


def test_many_cells_are_added_up_as_few_are(monkeypatch):
    """Above some number of cells another way of adding is faster."""
    frame, query = people(200), QUERIES["softmax"]
    few = exact(query, frame)
    monkeypatch.setattr("stratsynth.questions.sums.fairness.FEW", 1)
    assert all((a == b).all() for a, b in zip(few, exact(query, frame), strict=True))


def test_predicted_probabilities_tell_how_many_rows_a_cell_has():
    frame = people(200)
    sums = exact(QUERIES["odds"], frame)[1].reshape(2, 2, 2).sum(axis=2)
    assert (
        sums == np.array([[((g == frame.G) & (d == frame.D)).sum() for d in ("no", "yes")] for g in "ab"]) * GRID
    ).all()


def test_a_decision_counts_one_in_one_cell_whatever_the_coefficients():
    for name in ("decided", "decided softmax"):
        for size in (0.0, 1.0, 1e300):
            query = replace(QUERIES[name], thetas=QUERIES[name].thetas * size)
            for seed in range(10):
                for block in exact(query, people(1, seed))[1::2]:
                    assert sorted(block) == [*[0] * (block.size - 1), GRID]
    level = exact(replace(QUERIES["decided"], thetas=np.zeros((2, 5))), people(50))[1].reshape(2, 2)
    assert (level[:, 1] == 0).all()  # the first of two that are equally likely, as models predict


def test_sums_of_decisions_are_another_question_and_those_of_probabilities_are_as_before():
    plain, decided = QUERIES["logistic"], QUERIES["decided"]
    assert decided.replayed() == (*plain.replayed(), "decided")
    assert "decided" not in _names(FairGradients)
    assert plain.blocks(SCHEMA) == decided.blocks(SCHEMA)


@pytest.mark.parametrize("name", ["softmax", "decided softmax"])
def test_an_exchange_moves_the_sums_by_no_more_than_root_two(name):
    query = QUERIES[name]
    gradient, sums, *_ = query.blocks(SCHEMA)
    assert [gradient.sensitivity(n) for n in PRICED] == [0.4, 0.8]
    assert [sums.sensitivity(n) for n in PRICED] == [1.0, math.sqrt(2)]
    for seed in range(20):
        one, other = (exact(query, people(1, s))[1].astype(object) for s in (seed, seed + 100))
        assert ((one - other) ** 2).sum() <= 2 * GRID**2


@pytest.mark.parametrize("weights", [None, (3.0, 1.0, 3.0, 1.0)])
def test_a_row_that_fills_every_block_costs_one_step(weights):
    """1 / z^2 adds up over blocks, however the step is divided among them."""
    query = QUERIES["logistic"]
    question = Total(query, 1.5, Currency.SAMPLED, weights, rate=0.1)
    at, blocks = Setting(SCHEMA, Neighbours.ADD_REMOVE), query.blocks(SCHEMA)
    empty = Exact(sums=[[np.zeros(block.size, np.int64) for block in blocks]])
    filled = Exact(sums=[[np.eye(1, block.size, dtype=np.int64)[0] * GRID for block in blocks]])
    answer = question.answer(at, empty, SeededEntropy(1), {})
    cost = question.cost(at, empty, filled, answer)
    assert cost <= 1
    assert cost == pytest.approx(Fraction(1), rel=1e-9)  # and no more noise than that
    if weights:
        assert answer[1].sigma / query.blocks(SCHEMA)[1].clip == pytest.approx(1.5 * math.sqrt(8 / 1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"thetas": TWO[:, :3]}, "of shape"),
        ({"thetas": TWO + np.inf}, "finite"),
        ({"thetas": TWO[:0]}, "finite"),
        ({"slopes": np.zeros((2, 3, 2))}, "cell of `by` and class"),
        ({"slopes": np.full((2, 2, 2), np.nan)}, "cell of `by` and class"),
        ({"slopes": None}, "go together"),
        ({"by": ("Q",)}, "not in the schema"),
        ({"link": "linear"}, "link"),
        ({"target": "Y"}, "categorical"),
        ({"target": "C", "design": OTHER}, "two levels"),
        ({"clip": 0.0}, "clip"),
    ],
)
def test_what_is_malformed_is_refused_by_the_schema_alone(change, words):
    usual = {
        "design": CODED,
        "target": "D",
        "link": "logistic",
        "thetas": TWO,
        "clip": 1.0,
        "by": ("G",),
        "slopes": np.zeros((2, 2, 2)),
    }
    with pytest.raises(MechanismError, match=words):
        check_query("total", FairGradients(**{**usual, **change}), SCHEMA)


def test_arrays_that_are_checked_cannot_be_changed_afterwards():
    slopes = np.zeros((2, 2, 2))
    query = FairGradients(CODED, "D", "logistic", TWO, 1.0, ("G",), slopes)
    slopes[:] = np.nan
    check_query("total", query, SCHEMA)
    with pytest.raises(ValueError, match="read-only"):
        query.slopes[:] = 1
