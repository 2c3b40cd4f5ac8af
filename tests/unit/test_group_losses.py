"""Losses of probabilities by group and label: right, cut, moved by no more than is said, and refused if malformed."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.regressing import SCHEMA, people
from stratsynth.accounting.budget import PRICED, Currency
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.errors import MechanismError, UsageError
from stratsynth.questions import Coded, Design, GroupLosses, Losses, Total
from stratsynth.questions.sums.base import GRID, check_query

DESIGN = Coded(("X",))
THETAS = np.array([[0.0, 1.0], [0.1, -4.0], [2.0, 9.0]])
CLIPS = {"squared": 1.0, "log": 2.0}
CELLS = tuple(itertools.product("ab", ("no", "yes")))


def exact(query, frame):
    rows = load_rows(SCHEMA, open_source(frame))
    return [np.asarray(x) for x in rows.sums([((), query, 1.0)], None)[0]]


def asked(measure, clip=None, thetas=THETAS, by=("G",)):
    return GroupLosses(DESIGN, "D", thetas, clip or CLIPS[measure], measure, by)


def by_hand(measure, theta, frame):
    """Each record's loss, in floats."""
    p = 1 / (1 + np.exp(-(theta[0] + theta[1] * frame.X)))
    own = np.where(frame.D == "yes", p, 1 - p)
    return np.minimum((1 - own) ** 2 if measure == "squared" else -np.log(own), CLIPS[measure])


@pytest.mark.parametrize("measure", CLIPS)
def test_sums_are_those_of_the_formula(measure):
    frame = people(400)
    for theta, found in zip(THETAS, exact(asked(measure), frame), strict=True):
        loss = by_hand(measure, theta, frame)
        hand = [loss[(g == frame.G) & (d == frame.D)].sum() for g, d in CELLS]
        assert np.allclose(found * CLIPS[measure] / GRID, hand, rtol=2e-3)
        assert np.ptp(loss) > 0


@pytest.mark.parametrize("measure", CLIPS)
def test_cells_add_up_to_the_losses_of_everybody(measure):
    frame = people(100)
    whole = exact(Losses(DESIGN, "D", "logistic", THETAS, CLIPS[measure], measure), frame)
    for by in ((), ("G",), ("C", "G")):
        for block, one in zip(exact(asked(measure, by=by), frame), whole, strict=True):
            assert block.sum() == one[0]


@settings(max_examples=30)
@given(
    st.sampled_from(sorted(CLIPS)),
    st.integers(0, 500),
    st.sampled_from([1e-9, 0.3, 1.0, 50.0]),
    st.sampled_from([1.0, 1e12, -1e300]),
)
def test_a_row_adds_to_one_cell_and_no_more_than_the_clip(measure, seed, clip, scale):
    frame = people(1, seed)
    for block in exact(asked(measure, clip, THETAS * scale, ("G", "C")), frame):
        assert 0 <= block.min() <= block.max() <= GRID
        assert (block != 0).sum() <= 1
        cell = (("a", "b").index(frame.G[0]), ("p", "q", "r").index(frame.C[0]), ("no", "yes").index(frame.D[0]))
        assert block.reshape(2, 3, 2)[cell] == block.sum()


@settings(max_examples=30)
@given(st.sampled_from(sorted(CLIPS)), st.integers(0, 500), st.integers(501, 1000))
def test_an_exchanged_row_moves_a_block_by_the_square_root_of_two_clips(measure, one, other):
    query = asked(measure, 0.1, THETAS * 20)
    for block in query.blocks(SCHEMA):
        assert [block.sensitivity(n) for n in PRICED] == pytest.approx([0.1, 0.1 * math.sqrt(2)])
    for here, there in zip(exact(query, people(1, one)), exact(query, people(1, other)), strict=True):
        moved = (here - there).astype(object)
        assert moved @ moved <= 2 * GRID**2


def test_the_bound_of_an_exchange_is_reached():
    """Two records that every bound cuts, in different cells."""
    one, other = (people(1).assign(G=group, X=0.5) for group in "ab")
    moved = (exact(asked("log", 0.1), one)[0] - exact(asked("log", 0.1), other)[0]).astype(object)
    assert moved @ moved == 2 * GRID**2


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (GroupLosses(DESIGN, "C", THETAS, 1.0), "two levels"),
        (GroupLosses(DESIGN, "Y", THETAS, 1.0), "categorical"),
        (asked("log", by=("D",)), "among the groups"),
        (asked("log", by=("W",)), "'W'"),
        (asked("log", thetas=THETAS[:, :1]), r"of shape \(2,\)"),
        (asked("log", thetas=THETAS * np.nan), "finite"),
        (asked("log", thetas=THETAS[:0]), "one entry"),
        (asked("log", -1.0), "clip"),
        (asked("log", math.nan), "clip"),
        (GroupLosses(DESIGN, "D", THETAS, 1.0, "hinge"), "measure"),
        (GroupLosses(Design(("W",)), "D", THETAS, 1.0), "'W'"),
    ],
)
def test_what_is_malformed_is_refused_by_the_schema_alone(query, words):
    with pytest.raises((MechanismError, UsageError), match=words):
        check_query("total", query, SCHEMA)


def test_pure_epsilon_is_refused_and_a_subclass_is():
    with pytest.raises(MechanismError, match="l1"):
        Total(asked("log"), 0.3, Currency.PURE).check(SCHEMA)

    class Mine(GroupLosses):
        pass

    with pytest.raises(MechanismError, match="known"):
        check_query("total", Mine(DESIGN, "D", THETAS, 1.0), SCHEMA)


def test_two_thetas_are_one_question_and_two_clips_are_not():
    assert asked("log").replayed() == asked("log", thetas=THETAS + 1).replayed()
    others = [asked("log", 3.0), asked("squared", 2.0), asked("log", by=()), asked("log", thetas=THETAS[:2])]
    assert all(other.replayed() != asked("log").replayed() for other in others)
