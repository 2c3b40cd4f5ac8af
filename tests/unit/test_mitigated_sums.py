"""The sums of a step of group-aware descent: right by finite differences, clipped as one, each row by itself."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from helpers.exactly import exact_sums
from helpers.regressing import SCHEMA, people
from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.errors import MechanismError
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Coded, Gradients, Mitigated, NetworkGradients, Total
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact
from stratsynth.questions.sums.base import GRID, check_query

RNG = np.random.default_rng(0)
CODED, OTHER = Coded(("G", "X", "C")), Coded(("X", "D"))
ONE, THREE = RNG.normal(size=5), RNG.normal(size=(3, 3))
EVERY = ("tally", "boundary", "pulls", "excess")
USUAL = {
    "by": ("G",),
    "statistics": EVERY,
    "threshold": 0.5,
    "wide": 2.0,
    "noise_slopes": np.array([0.7, -1.5]),
    "clip_slopes": np.array([-0.8, 2.0]),
}
HIDDEN = 3
MANY, FEW = HIDDEN * 3 + 4 * 3, HIDDEN * 5 + 4
"""Weights of a network of three levels, and of one of two."""
QUERIES = {
    "logistic": Mitigated(CODED, "D", "logistic", ONE, 0.6, **USUAL, direction=RNG.normal(size=5)),
    "softmax": Mitigated(OTHER, "C", "softmax", THREE, 0.6, **USUAL, direction=RNG.normal(size=(3, 3))),
    "cuts": Mitigated(CODED, "D", "logistic", ONE, 0.8, ("G",), ("tally",), 0.5, cuts=np.array([1.0, 0.4])),
    "two columns": Mitigated(OTHER, "C", "softmax", THREE, 0.6, ("G", "D"), ("tally", "boundary"), 0.5),
    "network": Mitigated(
        CODED, "D", "network", RNG.normal(size=FEW), 0.6, **USUAL, direction=RNG.normal(size=FEW), hidden=HIDDEN
    ),
    "network of three": Mitigated(
        OTHER, "C", "network", RNG.normal(size=MANY), 0.6, **USUAL, direction=RNG.normal(size=MANY), hidden=HIDDEN
    ),
    "network, cuts": Mitigated(
        CODED,
        "D",
        "network",
        RNG.normal(size=FEW),
        0.8,
        ("G",),
        ("tally",),
        0.5,
        cuts=np.array([1.0, 0.4]),
        hidden=HIDDEN,
    ),
    "nobody's group": Mitigated(CODED, "D", "logistic", ONE, 0.6, (), ("tally",), 0.5),
}


exact = partial(exact_sums, schema=SCHEMA)


def features(design, frame):
    x = frame.X.to_numpy()
    plain = {"G": [frame.G == "b"], "X": [x], "C": [frame.C == "q", frame.C == "r"], "D": [frame.D == "yes"]}
    return np.column_stack([np.ones(len(frame)), *(one for name in design.columns for one in plain[name])]).astype(
        float
    )


def split(query, theta):
    """Hidden and output weights of a network."""
    cut = query.hidden * len(query.design.names(SCHEMA))
    return theta[:cut].reshape(query.hidden, -1), theta[cut:].reshape(query.hidden + 1, -1)


def probabilities(query, x, theta):
    z = x @ theta if not query.hidden else None
    if query.hidden:
        hidden, output = split(query, theta)
        z = np.column_stack([np.tanh(x @ hidden.T), np.ones(len(x))]) @ output
    z = z.reshape(len(x), -1)
    z = z if z.shape[1] > 1 else np.column_stack([np.zeros(len(x)), z])
    power = np.exp(z - z.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def codes(frame, name):
    return frame[name].map({level: i for i, level in enumerate(SCHEMA.levels(name))}).to_numpy()


def plain_gradients(query, frame):
    """By hand, one line a row."""
    x, theta = features(query.design, frame), query.theta
    p = probabilities(query, x, theta)
    residual = p - np.eye(p.shape[1])[codes(frame, query.target)]
    if query.hidden:
        hidden, output = split(query, theta)
        h = np.tanh(x @ hidden.T)
        residual = residual[:, -output.shape[1] :]
        inner = (residual @ output[:-1].T * (1 - h * h))[:, :, None] * x[:, None, :]
        outer = np.column_stack([h, np.ones(len(x))])[:, :, None] * residual[:, None, :]
        return np.column_stack([inner.reshape(len(x), -1), outer.reshape(len(x), -1)])
    if theta.ndim == 1:
        return x * residual[:, 1:]
    return (x[:, :, None] * residual[:, None, :]).reshape(len(frame), -1)


def by_hand(query, frame):
    """The clipped sum by finite differences of what each row minimises, then the statistics."""
    x, theta = features(query.design, frame), query.theta
    rows, levels = np.arange(len(frame)), codes(frame, query.target)
    cell = np.zeros(len(frame), int)
    for name in query.by:
        cell = cell * SCHEMA.size(name) + codes(frame, name)

    def value(theta):
        p = probabilities(query, x, theta)
        found = -np.log(p[rows, levels])
        if query.noise_slopes is not None:
            found = found + query.noise_slopes.ravel()[cell] * (1 - (p**2).sum(axis=1))
        if query.clip_slopes is not None:
            g = plain_gradients(replace(query, theta=theta), frame)
            found = found + query.clip_slopes.ravel()[cell] * (g @ query.direction.ravel())
        return found

    step, gradient = 1e-6, np.zeros((len(frame), theta.size))
    for i in range(theta.size):
        up = (np.eye(theta.size)[i] * step).reshape(theta.shape)
        gradient[:, i] = (value(theta + up) - value(theta - up)) / (2 * step)
    most = query.clip * (1.0 if query.cuts is None else query.cuts.ravel()[cell][:, None])
    plain = plain_gradients(query, frame)
    norms = np.linalg.norm(plain, axis=1)
    groups = range(SCHEMA.cells(query.by))
    p = probabilities(query, x, theta)
    found = {
        "tally": [((norms > query.threshold) == above)[cell == k].sum() for k in groups for above in (False, True)],
        "boundary": [(1 - (p**2).sum(axis=1))[cell == k].sum() for k in groups],
        "pulls": [clip(plain, query.wide)[cell == k].sum(axis=0) for k in groups],
        "excess": clip(plain - clip(plain, query.clip), query.wide - query.clip).sum(axis=0),
    }
    return [clip(gradient, most).sum(axis=0), *(np.ravel(found[name]) for name in query.statistics)]


def clip(vectors, most):
    return vectors * np.minimum(1, most / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300))


@pytest.mark.parametrize("name", QUERIES)
def test_every_sum_is_what_it_says(name):
    query, frame = QUERIES[name], people(300)
    blocks = query.blocks(SCHEMA)
    for found, block, hand in zip(exact(query, frame), blocks, by_hand(query, frame), strict=True):
        assert np.allclose(found * (block.clip / GRID), hand, atol=2e-3 * 300**0.5 * max(1, block.clip))


def test_without_slopes_it_is_the_gradient_of_the_loss():
    frame = people(400)
    (plain,) = exact(Gradients(CODED, "D", "logistic", ONE[None], 0.6), frame)
    assert (exact(Mitigated(CODED, "D", "logistic", ONE, 0.6), frame)[0] == plain).all()
    (plain,) = exact(Gradients(OTHER, "C", "softmax", THREE[None], 0.6), frame)
    assert (exact(Mitigated(OTHER, "C", "softmax", THREE, 0.6), frame)[0] == plain).all()
    query = QUERIES["network of three"]
    (plain,) = exact(NetworkGradients(OTHER, "C", *split(query, query.theta), 0.6), frame)
    assert (exact(Mitigated(OTHER, "C", "network", query.theta, 0.6, hidden=HIDDEN), frame)[0] == plain).all()


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e12])
@pytest.mark.parametrize("name", QUERIES)
def test_one_row_adds_at_most_the_clip_to_each_block(name, size):
    """Whatever the coefficients, slopes and direction: norms are checked in exact integers."""
    query = QUERIES[name]
    larger = {
        key: getattr(query, key) * size
        for key in ("theta", "noise_slopes", "clip_slopes", "direction")
        if getattr(query, key) is not None
    }
    query = replace(query, **larger)
    for seed in range(20):
        for block in exact(query, people(1, seed)):
            assert int((block.astype(object) ** 2).sum()) <= GRID**2


@pytest.mark.parametrize("name", QUERIES)
def test_a_rows_part_depends_on_that_row_alone_to_the_last_bit(name):
    frame, query = people(80), QUERIES[name]
    alone = [exact(query, frame.iloc[[i]]) for i in range(len(frame))]
    for i, block in enumerate(exact(query, frame.sample(frac=1, random_state=1))):
        assert (block == np.sum([one[i] for one in alone], axis=0)).all()


@pytest.mark.parametrize("name", ["cuts", "network, cuts"])
def test_a_groups_own_clip_bounds_its_rows(name):
    query = QUERIES[name]
    frame = people(200)
    for i in range(40):
        row = frame.iloc[[i]]
        length = math.sqrt(int((exact(query, row)[0].astype(object) ** 2).sum()))
        assert length <= GRID * (1.0 if row.G.item() == "a" else 0.4)


def test_a_tally_counts_the_rows():
    frame = people(200)
    tally = exact(QUERIES["two columns"], frame)[1].reshape(2, 2, 2).sum(axis=2)
    counted = [[(frame.G.eq(g) & frame.D.eq(d)).sum() for d in ("no", "yes")] for g in "ab"]
    assert (tally == np.array(counted) * GRID).all()


@pytest.mark.parametrize("name", ["logistic", "softmax", "network"])
def test_an_exchange_moves_the_sums_by_no_more_than_is_charged(name):
    query = QUERIES[name]
    blocks = query.blocks(SCHEMA)
    for seed in range(20):
        both = [exact(query, people(1, s)) for s in (seed, seed + 100)]
        for block, one, other in zip(blocks, *both, strict=True):
            moved = int(((one.astype(object) - other) ** 2).sum()) / GRID**2
            assert moved <= block.reach(Neighbours.REPLACE) ** 2 * (1 + 1e-12)


@pytest.mark.parametrize("name", ["logistic", "network"])
@pytest.mark.parametrize("weights", [None, (6.0, 1.0, 1.0, 1.0, 1.0)])
def test_a_row_that_fills_every_block_costs_one_step(weights, name):
    query = QUERIES[name]
    question = Total(query, 1.5, Currency.SAMPLED, weights, rate=0.1)
    at, blocks = Setting(SCHEMA, Neighbours.ADD_REMOVE), query.blocks(SCHEMA)
    empty = Exact(sums=[[np.zeros(block.size, np.int64) for block in blocks]])
    filled = Exact(sums=[[np.eye(1, block.size, dtype=np.int64)[0] * GRID for block in blocks]])
    answer = question.answer(at, empty, SeededEntropy(1), {})
    cost = question.cost(at, empty, filled, answer)
    assert cost <= 1
    assert cost == pytest.approx(Fraction(1), rel=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"theta": ONE[:3]}, "of shape"),
        ({"theta": ONE + np.inf}, "finite"),
        ({"noise_slopes": np.zeros(3)}, "noise_slopes"),
        ({"noise_slopes": np.full(2, np.nan)}, "noise_slopes"),
        ({"direction": None}, "go together"),
        ({"direction": np.zeros(2)}, "direction"),
        ({"cuts": np.array([0.5, 1.5])}, "cuts"),
        ({"by": ("Q",)}, "not in the schema"),
        ({"link": "linear"}, "link"),
        ({"target": "Y"}, "categorical"),
        ({"target": "C", "design": OTHER}, "levels"),
        ({"clip": 0.0}, "clip"),
        ({"clip": 2.0}, "nothing up to"),
        ({"threshold": -1.0}, "threshold"),
        ({"statistics": ("boundary", "tally")}, "in this order"),
        ({"statistics": ("means",)}, "among"),
        ({"hidden": 2}, "of a network"),
        ({"link": "network"}, "hidden"),
        ({"link": "network", "hidden": 2}, "of shape"),
    ],
)
def test_what_is_malformed_is_refused_by_the_schema_alone(change, words):
    with pytest.raises(MechanismError, match=words):
        check_query("total", replace(QUERIES["logistic"], **change), SCHEMA)


def test_arrays_that_are_checked_cannot_be_changed_afterwards():
    slopes = np.zeros(2)
    query = Mitigated(CODED, "D", "logistic", ONE, 1.0, ("G",), noise_slopes=slopes)
    slopes[:] = np.nan
    check_query("total", query, SCHEMA)
    with pytest.raises(ValueError, match="read-only"):
        query.noise_slopes[:] = 1
