"""A group's part in a step of fair learning: right by hand, never longer than its clip, and a row's own."""

from functools import partial

import numpy as np
import pytest

from helpers.attribute import SCHEMA
from helpers.exactly import exact_sums
from helpers.regressing import people
from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.errors import MechanismError
from stratsynth.questions import AttributeGradients, Coded, FairGradients, Total
from stratsynth.questions.sums.base import GRID, check_query
from stratsynth.questions.sums.fairness import reach

RNG = np.random.default_rng(0)
CODED, OTHER = Coded(("X", "C")), Coded(("X", "D"))
TWO, THREE = RNG.normal(size=(2, 4)), RNG.normal(size=(2, 3, 3))
WIDE = 20.0
"""A clip that nothing exceeds."""
QUERIES = {
    "parity": AttributeGradients(CODED, "D", "logistic", TWO, 0.1, ("G",), (), RNG.normal(size=(2, 2, 2))),
    "odds": AttributeGradients(CODED, "D", "logistic", TWO, 0.1, ("G",), ("D",), RNG.normal(size=(2, 2, 2, 2))),
    "softmax": AttributeGradients(OTHER, "C", "softmax", THREE, 0.1, ("G",), (), RNG.normal(size=(2, 2, 3))),
    "groups of two columns": AttributeGradients(
        Coded(("X",)), "D", "logistic", TWO[:, :2], 0.1, ("G", "C"), (), RNG.normal(size=(2, 2, 3, 2))
    ),
    "odds of two columns": AttributeGradients(
        Coded(("X",)),
        "D",
        "softmax",
        RNG.normal(size=(1, 2, 2)),
        0.1,
        ("G", "C"),
        ("D",),
        RNG.normal(size=(1, 2, 3, 2, 2)),
    ),
}


def changed(query, **fields):
    own = {n: getattr(query, n) for n in ("design", "target", "link", "thetas", "clip", "groups", "given", "slopes")}
    return AttributeGradients(**{**own, **fields})


exact = partial(exact_sums, schema=SCHEMA)


def by_fair(query, frame):
    """Sums from `FairGradients` of each row in each group: its own group's less the mean over all of them."""
    shape, names = SCHEMA.shape(query.groups), query.groups
    worlds = []
    for cell in np.ndindex(shape):
        asked = FairGradients(query.design, query.target, query.link, query.thetas, WIDE, query.by, query.slopes)
        there = frame.assign(**{n: SCHEMA.levels(n)[i] for n, i in zip(names, cell, strict=True)})
        worlds.append(
            [
                np.array([exact(asked, there.iloc[[i]])[b] for i in range(len(frame))], float)
                for b in range(2 * len(query.thetas))
            ]
        )
    own = [int(np.ravel_multi_index([SCHEMA.index(n, row[n]) for n in names], shape)) for _, row in frame.iterrows()]
    found = []
    for block in range(2 * len(query.thetas)):
        every = np.array([world[block] for world in worlds])
        found.append(sum(every[g, i] - every[:, i].mean(axis=0) for i, g in enumerate(own)))
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_it_is_what_the_group_adds_to_the_mean_over_all_groups(name):
    query, frame = changed(QUERIES[name], clip=WIDE), people(12)
    if "C" in query.groups:
        frame = frame.assign(C=list("pqrp") * 3)
    found, wanted = exact(query, frame), by_fair(query, frame)
    far = reach(SCHEMA.cells(query.groups))
    for model in range(len(query.thetas)):
        assert np.allclose(found[2 * model], wanted[2 * model], rtol=0, atol=12 * 4096 * 4)
        assert np.abs(wanted[2 * model]).max() > 10 * 12 * 4096 * 4  # which is little beside what is compared
        assert np.allclose(found[2 * model + 1] * far, wanted[2 * model + 1], rtol=0, atol=12 * 8)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e12])
@pytest.mark.parametrize("name", QUERIES)
def test_one_row_adds_at_most_the_clip_to_each_block(name, size):
    """In exact integers, whatever the coefficients and slopes: a row on a Poisson sample shows by its length."""
    query = QUERIES[name]
    query = changed(query, thetas=query.thetas * size, slopes=query.slopes * size)
    for seed in range(25):
        for block in exact(query, people(1, seed)):
            assert int((block.astype(object) ** 2).sum()) <= GRID**2


@pytest.mark.parametrize("name", QUERIES)
def test_an_attribute_moves_a_block_by_at_most_two_clips_and_the_sums_by_root_two(name):
    """In exact integers: the sums move by sqrt(2) in their own unit, whatever the number of groups."""
    query, longest = changed(QUERIES[name], slopes=QUERIES[name].slopes * 50), 0
    far = reach(SCHEMA.cells(query.groups))
    for seed in range(25):
        frame = people(1, seed)
        one, other = exact(query, frame.assign(G="a")), exact(query, frame.assign(G="b"))
        for block, (x, y) in enumerate(zip(one, other, strict=True)):
            moved = int(((x.astype(object) - y.astype(object)) ** 2).sum())
            assert moved <= 4 * GRID**2
            if block % 2:
                assert moved * far**2 <= 2 * GRID**2 * (1 + 1e-12)
                longest = max(longest, moved)
    assert longest * far**2 > 0.5 * GRID**2  # and not by next to nothing


def test_rounding_never_lengthens_a_row(monkeypatch):
    """The check is one of integers: probabilities that add up to more would not pass it."""
    from stratsynth.questions.sums import fairness

    monkeypatch.setattr(fairness, "SHRUNK", 2.0)
    sums = exact(QUERIES["parity"], people(30))[1::2]
    assert all((block == 0).all() for block in sums)


@pytest.mark.parametrize("name", QUERIES)
def test_a_rows_part_depends_on_that_row_alone_to_the_last_bit(name):
    frame, query = people(80), QUERIES[name]
    alone = [exact(query, frame.iloc[[i]]) for i in range(len(frame))]
    for i, block in enumerate(exact(query, frame.sample(frac=1, random_state=1))):
        assert (block == np.sum([one[i] for one in alone], axis=0)).all()


@pytest.mark.parametrize("name", QUERIES)
def test_an_attribute_costs_what_an_exchange_costs_and_more_than_a_record(name):
    question = Total(QUERIES[name], 0.01)
    one, more, changed_ = (
        question.scales(SCHEMA, n.priced) for n in (Neighbours.ADD_REMOVE, Neighbours.REPLACE, Neighbours.ATTRIBUTE)
    )
    assert more == changed_
    assert [b / a for a, b in zip(one, more, strict=True)] == pytest.approx([2.0] * len(one))
    step = Total(QUERIES[name], 1.5, Currency.SAMPLED, None, 0.1)
    assert step.scales(SCHEMA, Neighbours.REPLACE) == pytest.approx(
        [GRID * 1.5 * len(one) ** 0.5] * len(one)
    )  # the clip of one row; that it may be exchanged is in the multiplier's price


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"thetas": TWO[:, :3]}, "of shape"),
        ({"thetas": TWO + np.inf}, "finite"),
        ({"slopes": np.zeros((2, 3, 2))}, "cell of `by` and class"),
        ({"slopes": np.full((2, 2, 2), np.nan)}, "cell of `by` and class"),
        ({"groups": ("Q",)}, "not in the schema"),
        ({"groups": ()}, "not a tuple"),
        ({"given": ("G",)}, "not a tuple of different"),
        ({"link": "linear"}, "link"),
        ({"target": "C", "design": OTHER}, "two levels"),
        ({"clip": 0.0}, "clip"),
    ],
)
def test_what_is_malformed_is_refused_by_the_schema_alone(change, words):
    with pytest.raises(MechanismError, match=words):
        check_query("x", changed(QUERIES["parity"], **change), SCHEMA)
