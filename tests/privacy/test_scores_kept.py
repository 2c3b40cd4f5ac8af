"""What is remembered of a candidate that is asked about again holds for that candidate as it is, and no other."""

import copy
import dataclasses
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stratsynth as ss
from helpers import regressing
from helpers.small import BUDGET
from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.driver.lockstep import Asked, run
from stratsynth.driver.private import bill, check_again
from stratsynth.errors import MechanismError
from stratsynth.questions import Choose, Coded, Composite, Confusions, Counts, Distance, Split, Term, Total
from stratsynth.questions.handler import Exact, Setting, Wanted
from stratsynth.questions.scores import _SOUND
from stratsynth.strata import Stratum

SCHEMA = ss.Schema({"A": ss.Categorical(levels=("1", "2")), "B": ss.Categorical(levels=("1", "2", "3"))})
OTHER = ss.Schema({"A": ss.Categorical(levels=("1", "2", "3")), "B": ss.Categorical(levels=("1", "2", "3"))})
TABLE = np.array([[3, 0, 0], [0, 0, 1]])
AT = Setting(SCHEMA, Neighbours.ADD_REMOVE)


def changed(score, **parts):
    """As a program could, which holds the object that it asked with."""
    for name, value in parts.items():
        object.__setattr__(score, name, value)


def checked():
    score = Distance(("A", "B"), np.zeros((2, 3)))
    question = Choose((score,), 0.1)
    question.check(SCHEMA)
    return score, question


def test_another_form_of_the_same_reference_is_found():
    """Against a column, each cell of a table is compared with several: one record would move more than its price."""
    score, question = checked()
    score.reference.shape = (6, 1)
    with pytest.raises(MechanismError, match="shape"):
        question.check(SCHEMA)


def far(array):
    """Other contents, such that a count wraps around when it grows by one."""
    found = np.zeros(array.shape)
    found.flat[0] = -(2.0**47) + 50
    return found


def refill(array):
    array.__setstate__((1, array.shape, array.dtype, False, far(array).tobytes()))


@pytest.mark.parametrize("norm", ["l1", "largest"])
def test_other_contents_of_what_was_found_sound_are_not_compared_with(norm):
    score = Distance(("A", "B"), np.zeros((2, 3)), norm=norm)
    Choose((score,), 0.1).check(SCHEMA)
    refill(score.reference)
    assert score.unchanged(SCHEMA)  # as far as its parts tell
    with pytest.raises(MechanismError, match="after it was checked"):
        Distance.units([score], Exact([TABLE]), AT, {})


@pytest.mark.parametrize("strides", [(24, 8), (8, 16), (0, 8)])
def test_another_layout_of_what_was_found_sound_is_taken_as_it_is(strides):
    """The cells that are compared are those that the layout shows now, as many as a table has."""
    score, _ = checked()
    other = np.lib.stride_tricks.as_strided(np.arange(6.0), (2, 3), strides)
    changed(score, reference=other)
    assert score.away(TABLE) == 2**16 * sum(abs(int(TABLE[i]) - int(other[i])) for i in np.ndindex(2, 3))
    changed(score, reference=np.zeros((1, 2, 3)))
    with pytest.raises(MechanismError, match="after it was checked"):
        score.away(TABLE)


@pytest.mark.parametrize(
    "parts",
    [
        {"weight": float("nan")}, {"norm": "none"}, {"offset": float("inf")}, {"clique": ("A",)},
        {"clique": ("A", "A")}, {"reference": np.full((2, 3), 2.0**50)}, {"reference": np.zeros((2, 3), np.float32)},
    ],
    ids=str,
)  # fmt: skip
def test_whatever_is_exchanged_is_checked_again(parts):
    score, question = checked()
    changed(score, **parts)
    with pytest.raises(MechanismError):
        question.check(SCHEMA)


def test_a_forged_mark_spares_no_check():
    """A program can write into what it asks with: what was found sound stands elsewhere, and nothing may be written."""
    score, question = checked()
    assert set(vars(score)) == {field.name for field in fields(score)}
    assert set(vars(question)) == {field.name for field in fields(question)}
    forged = Distance(("A", "B"), np.full((2, 3), 2.0**50))
    array = forged.reference
    mark = SCHEMA, forged.clique, array, array.shape, array.dtype, forged.weight, forged.offset, forged.norm
    assert not forged.unchanged(SCHEMA)
    changed(forged, _sound=mark)
    assert not forged.unchanged(SCHEMA)
    with pytest.raises(MechanismError, match="written into it"):
        Choose((forged,), 0.1).check(SCHEMA)


def test_what_was_found_sound_is_forgotten_with_its_candidate():
    """A later object may have its number."""
    score, question = checked()
    key = id(score)
    assert _SOUND[key][1] == ("A", "B")
    del score, question
    assert key not in _SOUND
    score, _ = checked()
    other = copy.copy(score)
    assert other.reference is score.reference
    _SOUND[id(other)] = _SOUND[id(score)]
    assert not other.unchanged(SCHEMA)


def test_a_forged_table_is_not_read():
    _, question = checked()
    vars(question)["wanted"] = Wanted(cliques=[("A",)])
    assert question.wanted.cliques == [("A", "B")]


@pytest.mark.parametrize("name", ["check", "charges"])
@pytest.mark.parametrize(
    "question",
    [Counts((("A",),), 0.1), Choose((Distance(("A",), np.zeros(2)),), 0.1), Split({Stratum.of({"A": "1"}): iter(())})],
    ids=lambda question: type(question).__name__,
)
def test_a_method_that_is_written_into_a_question_is_refused(question, name):
    question = copy.copy(question)
    changed(question, **{name: lambda *_: ()})

    def program():
        yield question

    with pytest.raises(MechanismError, match="written into it"):
        run(program(), SCHEMA, pytest.fail)
    if type(question) is not Split:
        for ask in (check_again, lambda asked: bill(asked, BUDGET)):
            with pytest.raises(MechanismError, match="written into it"):
                ask([Asked((), SCHEMA, question)])


@pytest.mark.parametrize("name", ["check", "moved", "reach", "unchanged", "away"])
def test_a_method_that_is_written_into_a_candidate_is_refused(name):
    score, question = checked()
    changed(score, **{name: lambda *_: 0})
    with pytest.raises(MechanismError, match="written into it"):
        question.check(SCHEMA)


def composite():
    term = Term("largest", np.arange(8.0)[None] / 100, np.zeros(1))
    query = Confusions(Coded(("X",)), "D", np.zeros((1, 2)), ("G",))
    question = Choose((Composite(query, 0, (term,)),), 0.1)
    question.check(regressing.SCHEMA)
    return question, term, query


def test_how_far_a_term_moves_follows_what_is_exchanged():
    for parts in ({"weight": 1000.0}, {"slopes": np.arange(8.0)[None] * 10}, {"kind": "spread", "parameter": 1000.0}):
        question, term, _ = composite()
        first, scores = question.scores[0].moved(regressing.SCHEMA, Neighbours.ADD_REMOVE), question.scores
        changed(term, **parts)
        fresh = Composite(scores[0].query, 0, (dataclasses.replace(term),))
        expected = fresh.moved(regressing.SCHEMA, Neighbours.ADD_REMOVE)
        assert expected >= 100 * first
        assert scores[0].moved(regressing.SCHEMA, Neighbours.ADD_REMOVE) == expected
        assert Composite.most_moved(scores, regressing.SCHEMA, Neighbours.ADD_REMOVE) == expected
        assert term.value([5] * 8) == dataclasses.replace(term).value([5] * 8)


def test_how_far_a_term_moves_follows_its_form():
    """Two rows of slopes are apart by more than one row is."""
    question, term, _ = composite()
    before = term.steps
    term.slopes.shape = (2, 4)
    assert len(term.steps) == 4 != len(before)
    with pytest.raises(MechanismError, match="8 columns"):
        question.check(regressing.SCHEMA)


@pytest.mark.parametrize("name", ["steps", "check", "value", "_worked"])
def test_what_is_written_into_a_term_is_not_taken(name):
    question, term, _ = composite()
    before = question.scores[0].moved(regressing.SCHEMA, Neighbours.ADD_REMOVE)
    vars(term)[name] = (Fraction(1, 10**9),) * 8
    assert question.scores[0].moved(regressing.SCHEMA, Neighbours.ADD_REMOVE) == before
    with pytest.raises(MechanismError, match="written into it"):
        question.check(regressing.SCHEMA)


@pytest.mark.parametrize("name", ["blocks", "check", "sum"])
def test_a_method_that_is_written_into_a_query_is_refused(name):
    question, _, query = composite()
    changed(query, **{name: lambda *_: ()})
    for asked in (question, Total(query, 0.1)):
        with pytest.raises(MechanismError, match="written into it"):
            asked.check(regressing.SCHEMA)


def test_what_is_sound_in_one_schema_is_checked_in_another():
    _, question = checked()
    with pytest.raises(MechanismError, match="shape"):
        question.check(OTHER)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.25, 1.0, 3.0, 7.5]), st.sampled_from(["l1", "largest"])), min_size=1, max_size=6
    )
)
def test_the_farthest_of_all_candidates_is_that_of_each_gone_through(kinds):
    scores = [Distance(("A", "B"), np.zeros((2, 3)), weight, norm=norm) for weight, norm in kinds]
    for neighbours in PRICED:
        at, exact = Setting(SCHEMA, neighbours), Exact([TABLE] * len(scores))
        assert Distance.most_moved(scores, SCHEMA, neighbours) == max(s.moved(SCHEMA, neighbours) for s in scores)
        units, reach = Distance.units(scores, exact, at, {})
        heaviest = max(s.weight for s in scores)
        each = [max(1, round(s.weight / heaviest * 2**20)) * s.reach(SCHEMA, neighbours) * 2**16 for s in scores]
        assert reach == max(each)
        assert units == [
            max(1, round(s.weight / heaviest * 2**20)) * (4 if s.norm == "l1" else 3) * 2**16 for s in scores
        ]
