"""Gradients by somebody's function: what is refused on made-up rows, and that no row adds more than its clip."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from helpers.by_row import by_row, softmax
from helpers.exactly import exact_sums
from helpers.regressing import SCHEMA, people
from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.driver.lockstep import Asked
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions import Coded, FairGradients, PerRow, PerRowGradients, Total
from stratsynth.questions.sums import base, perrow
from stratsynth.questions.sums.base import GRID, check_query
from stratsynth.questions.sums.perrow import BATCH, MOST_WEIGHTS, RADIUS, RESERVE, into_ball, shares

RNG = np.random.default_rng(0)
DESIGN = Coded(("X", "Z", "D"))
WEIGHTS, SLOPES = RNG.normal(size=9), RNG.normal(size=(2, 3))
QUERY = PerRowGradients(DESIGN, "C", by_row(3, 3, 0.4), WEIGHTS, ("G",), SLOPES)
FINE = softmax(3, 3)
calls = []


exact = partial(exact_sums, schema=SCHEMA)


def test_the_sums_are_those_of_the_same_model_in_closed_form():
    frame = people(700)
    theta = np.vstack([np.zeros(3), WEIGHTS.reshape(3, 3)])[None]
    wide = PerRowGradients(DESIGN, "C", by_row(3, 3, 50.0), WEIGHTS, ("G",), SLOPES)
    closed = exact(FairGradients(DESIGN, "C", "softmax", theta, 50.0, ("G",), SLOPES[None]), frame)
    gradient, sums = exact(wide, frame)
    assert np.allclose(gradient * 50.0 / GRID, (closed[0] * 50.0 / GRID).reshape(4, 3)[1:].ravel(), atol=0.2)
    assert np.allclose(sums / RADIUS, closed[1] / GRID, atol=0.1)
    counted = (sums.reshape(2, 3) / RADIUS).sum(axis=1)
    assert np.allclose(counted, [(g == frame.G).sum() for g in "ab"], rtol=1e-6)


def test_without_slopes_there_is_the_gradient_alone():
    frame, plain = people(300), PerRowGradients(DESIGN, "C", by_row(3, 3, 0.4), WEIGHTS)
    (gradient,) = exact(plain, frame)
    level = PerRowGradients(DESIGN, "C", by_row(3, 3, 0.4), WEIGHTS, ("G",), np.zeros((2, 3)))
    assert (gradient == exact(level, frame)[0]).all()


def test_one_row_moves_nothing_by_more_than_its_clip_whatever_rows_are_beside_it():
    """Other rows lie at other places of other batches; what that changes in their last digits is in the reserve."""
    frame = people(BATCH + 40)
    whole = exact(QUERY, frame)
    for i in range(0, len(frame), 13):
        parts = zip(whole, exact(QUERY, frame.drop(index=i)), strict=True)
        assert all(int((a - b).astype(object) @ (a - b).astype(object)) <= GRID**2 for a, b in parts)


def test_one_row_alone_leaves_the_reserve_free():
    frame = people(60)
    long = PerRowGradients(DESIGN, "C", by_row(3, 3, 1e-3), WEIGHTS, ("G",), 100 * SLOPES)
    lengths = [math.isqrt(int((exact(long, frame.iloc[[i]])[0].astype(object) ** 2).sum())) for i in range(60)]
    assert RADIUS * 0.999 < max(lengths) <= RADIUS == GRID - RESERVE
    assert all(exact(long, frame.iloc[[i]])[1].sum() <= RADIUS for i in range(20))


def test_an_exchange_moves_the_probabilities_by_no_more_than_root_two():
    frame = people(40)
    one = [exact(QUERY, frame.iloc[[i]])[1].astype(object) for i in range(40)]
    assert max(int(((a - b) ** 2).sum()) for a in one for b in one) <= 2 * RADIUS**2
    gradient, sums = QUERY.blocks(SCHEMA)
    assert (gradient.reach(Neighbours.REPLACE), sums.reach(Neighbours.REPLACE)) == (2.0, math.sqrt(2))
    assert sums.clip / GRID == pytest.approx(1 / RADIUS, rel=1e-15)


@pytest.mark.parametrize(
    "wild",
    [
        lambda n, k: (np.full((n, 9), 1e300), np.full((n, 3), 1.0)),
        lambda n, k: (np.full((n, 9), np.nan), k / 0),
        lambda n, k: (np.full((n, 9), -np.inf), np.full((n, 3), np.inf)),
        lambda n, k: (np.ones((n, 8)), k),
        lambda n, k: (np.ones((n, 9)) * 1j, np.ones((n, 3))),
        lambda n, k: None,
        lambda n, k: 1 / 0,
        lambda n, k: (np.ma.masked_array(np.full((n, 9), 9.0), True), np.full((n, 3), 1 / 3)),
        lambda n, k: (np.full((n, 9), 1e300) * np.sign(k - 1)[:, :1], np.eye(3)[np.zeros(n, int)]),
    ],
)
def test_whatever_a_function_returns_for_private_rows_is_within_the_clip(wild):
    turned = []

    def function(weights, x, levels, slopes):
        return wild(len(x), slopes) if turned else FINE(weights, x, levels, slopes)

    query = PerRowGradients(DESIGN, "C", by_row(3, 3, 0.4, function), WEIGHTS, ("G",), SLOPES)
    turned.append(True)
    gradient, sums = exact(query, people(1))
    assert int((gradient.astype(object) ** 2).sum()) <= RADIUS**2
    assert 0 <= int(sums.min()) <= int(sums.sum()) <= RADIUS


def test_a_row_at_which_it_fails_is_left_out_alone_and_its_message_goes_nowhere():
    frame = people(300)
    at = float(frame.X[7])

    def function(weights, x, levels, slopes):
        if (np.abs(x[:, 0] - at) < 2**-12).any():
            raise ValueError(f"this message quotes a row: {at}")
        return FINE(weights, x, levels, slopes)

    near = np.abs(frame.X - at) < 2**-12
    query = PerRowGradients(DESIGN, "C", by_row(3, 3, 0.4, function), WEIGHTS, ("G",), SLOPES)
    for found, wanted in zip(exact(query, frame), exact(QUERY, frame[~near]), strict=True):
        assert np.abs(found - wanted).max() <= len(frame)


def counter(weights, x, levels, slopes):
    calls.append(1)
    gradients, chances = FINE(weights, x, levels, slopes)
    return gradients * (1 + 1e-6 * len(calls)), chances


def mixed(how):
    def function(weights, x, levels, slopes):
        gradients, chances = FINE(weights, x, levels, slopes)
        return how(gradients, chances, x)

    return function


UNSOUND = {
    "batch means": mixed(lambda g, p, x: (g - g.mean(axis=0), p)),
    "batch means of probabilities": mixed(lambda g, p, x: (g, 0.9 * p + 0.1 * p.mean(axis=0))),
    "the row before": mixed(lambda g, p, x: (np.roll(g, 1, axis=0), p)),
    "the position": mixed(lambda g, p, x: (g * np.linspace(1, 2, len(g))[:, None], p)),
    "a sum over rows": mixed(lambda g, p, x: (g + 1e-6 * x.sum(), p)),
    "a clip of its own for the whole batch": mixed(lambda g, p, x: (g / np.abs(g).max(), p)),
    "random numbers": mixed(lambda g, p, x: (g + 1e-6 * np.random.normal(size=g.shape), p)),  # noqa: NPY002
    "a counter": counter,
}


@pytest.mark.parametrize("name", UNSOUND)
def test_what_looks_at_other_rows_is_refused(name):
    with pytest.raises(MechanismError, match=r"made-up rows get other gradients when they .*batch statistics"):
        by_row(3, 3, function=UNSOUND[name])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (lambda g, p, x: (g.astype(np.float32), p), "finite float64"),
        (lambda g, p, x: (g[:, :2], p), "shape"),
        (lambda g, p, x: (g * np.nan, p), "finite"),
        (lambda g, p, x: (g, p / 2), "must be 1 together"),
        (lambda g, p, x: (g, p - 1), "must be 1 together"),
        (lambda g, p, x: 1 / 0, "fails on made-up rows"),
        (lambda g, p, x: (np.ma.masked_array(g), p), "finite float64"),
    ],
)
def test_what_it_returns_must_be_sound(how, words):
    with pytest.raises(MechanismError, match=words):
        by_row(3, 3, function=mixed(how))


def test_last_digits_may_depend_on_the_batch_up_to_a_unit():
    """Gradients may differ as those of matrix products do; a unit is 2^-30 of the clip."""
    assert by_row(3, 3, function=mixed(lambda g, p, x: (g * (1 + 1e-13 * len(x) * x.sum()), p))).weights == 9
    with pytest.raises(MechanismError, match="other gradients"):
        by_row(3, 3, function=mixed(lambda g, p, x: (g * (1 + 1e-7 * x.sum()), p)))


def test_too_many_weights_are_refused():
    with pytest.raises(Unsupported, match="too large: at most 262,144"):
        PerRow(FINE, 3, 3, MOST_WEIGHTS + 1, 1.0)


class Mine(PerRow):
    def __post_init__(self):
        """No test."""


CHANGES = {
    "other features": {"per_row": by_row(2, 3)},
    "other classes": {"per_row": by_row(3, 2)},
    "an untested class": {"per_row": Mine(FINE, 3, 3, 9, 1.0)},
    "few weights": {"weights": WEIGHTS[:8]},
    "weights of nothing": {"weights": WEIGHTS * np.nan},
    "single precision": {"weights": WEIGHTS.astype(np.float32)},
    "cells without slopes": {"slopes": None},
    "other slopes": {"slopes": SLOPES[:1]},
    "endless slopes": {"slopes": SLOPES * np.inf},
    "an unknown group": {"by": ("H",)},
    "a numeric target": {"target": "Y"},
    "a target among the features": {"target": "D"},
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_malformed_is_refused(change):
    usual = {
        "design": DESIGN,
        "target": "C",
        "per_row": QUERY.per_row,
        "weights": WEIGHTS,
        "by": ("G",),
        "slopes": SLOPES,
    }
    with pytest.raises(MechanismError):
        check_query("total", PerRowGradients(**{**usual, **CHANGES[change]}), SCHEMA)


def test_arrays_cannot_be_changed_after_the_check():
    weights = WEIGHTS.copy()
    query = PerRowGradients(DESIGN, "C", QUERY.per_row, weights, ("G",), SLOPES)
    weights[:] = 7
    assert (query.weights == WEIGHTS).all()
    with pytest.raises(ValueError, match="read-only"):
        query.weights[0] = 1


def test_a_release_says_that_it_is_not_proven():
    question = Total(QUERY, 1.0, Currency.SAMPLED, rate=0.5)
    assert "tested on made-up rows, not proven" in question.unverified()


def test_what_is_kept_is_given_again_to_other_weights():
    other = PerRowGradients(DESIGN, "C", QUERY.per_row, WEIGHTS + 1, ("G",), SLOPES - 1)
    assert other.replayed() == QUERY.replayed()
    assert PerRowGradients(DESIGN, "C", by_row(3, 3, 0.5), WEIGHTS, ("G",), SLOPES).replayed() != QUERY.replayed()


def test_lines_are_clipped_as_columns_are():
    vectors = RNG.normal(size=(400, 7)) * GRID * 10.0 ** RNG.integers(-12, 5, (400, 1))
    vectors[3, 2], vectors[5, 0], vectors[6, 1] = np.nan, np.inf, 1e308
    found, wanted = into_ball(vectors, RADIUS), base.into_ball(vectors.T, RADIUS).T
    assert np.abs(found - wanted).max() <= 2
    assert not found[3].any()
    assert ((found.astype(object) ** 2).sum(axis=1) <= RADIUS**2).all()


def test_the_check_of_lengths_is_exact_and_does_not_wrap():
    edge = np.array([[RADIUS, 0], [RADIUS, 1], [RADIUS, 5], [3 * 10**8, 4 * 10**8], [0, 0]])
    assert perrow._within(edge, RADIUS).tolist() == [True, False, False, True, True]
    assert not perrow._within(np.full((1, 2**18), GRID + 1), RADIUS).any()
    assert not perrow._within(np.full((1, 16), GRID), RADIUS).any()  # whose whole sum is 0 in 64 bits


def test_probabilities_beyond_one_count_as_nothing():
    found = shares(np.array([[0.5, 0.5], [1.0, 0.0], [0.7, 0.7], [np.nan, 0.5], [-1.0, 0.5]]))
    assert found.tolist() == [[RADIUS // 2, RADIUS // 2], [RADIUS, 0], [0, 0], [0, RADIUS // 2], [0, RADIUS // 2]]


def test_a_function_that_was_never_tested_is_tested_when_it_is_asked():
    """An object can be made without its class's constructor, and its finding can be forged."""
    honest = QUERY.per_row
    untested = object.__new__(PerRow)
    for name, value in {**vars(honest), "clip": float("nan"), "tested": True}.items():
        vars(untested)[name] = value
    forged = replace(QUERY, per_row=untested)
    with pytest.raises(MechanismError, match="clip"):
        Asked((), SCHEMA, Total(forged, 0.1))
