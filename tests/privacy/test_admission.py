"""A question is charged and answered as it was admitted, whatever its program does to the object that it asked with."""

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
from helpers.replies import Replies
from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.driver.lockstep import Asked, run
from stratsynth.errors import MechanismError, StratsynthError
from stratsynth.questions import (
    Choose,
    Coded,
    Columns,
    Composite,
    Confusions,
    Counts,
    Distance,
    Independence,
    Pairs,
    Raw,
    Split,
    Term,
    Total,
    counts,
    split,
)
from stratsynth.questions.admission import known
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact, Wanted
from stratsynth.strata import Stratum

SCHEMA = ss.Schema({"A": ss.Categorical(levels=("1", "2")), "B": ss.Categorical(levels=("1", "2", "3"))})
OTHER = ss.Schema({"A": ss.Categorical(levels=("1", "2", "3")), "B": ss.Categorical(levels=("1", "2", "3"))})
TABLE = np.array([[3, 0, 0], [0, 0, 1]])
AT = Setting(SCHEMA, Neighbours.ADD_REMOVE)


def changed(score, **parts):
    """Change the object as a program could, which holds it after asking."""
    for name, value in parts.items():
        object.__setattr__(score, name, value)


def scored(**parts):
    score = Distance(**{"clique": ("A", "B"), "reference": np.zeros((2, 3)), **parts})
    return score, Choose((score,), 0.1)


def ask(question, schema=SCHEMA):
    """The question as the driver holds it."""
    return Asked((), schema, question).question


def units(question):
    return Distance.units(question.scores, Exact([TABLE]), AT, {})[0]


def test_another_form_of_the_same_reference_is_found():
    """Against a column, each cell of a table is compared with several: one record would move more than its price."""
    score, question = scored()
    question.check(SCHEMA)
    score.reference.shape = (6, 1)
    with pytest.raises(MechanismError, match="shape"):
        ask(question)


def far(array):
    """Other contents, such that a count wraps around when it grows by one."""
    contents = np.zeros(array.shape)
    contents.flat[0] = -(2.0**47) + 50
    return contents


def refill(array):
    array.__setstate__((1, array.shape, array.dtype, False, far(array).tobytes()))


def reshape(array):
    array.shape = (6, 1)


def retype(array):
    array.dtype = np.int64


@pytest.mark.parametrize("norm", ["l1", "largest"])
@pytest.mark.parametrize("attack", [refill, reshape, retype])
def test_nothing_that_is_done_to_a_reference_afterwards_reaches_what_is_compared(norm, attack):
    score, question = scored(norm=norm)
    admitted = ask(question)
    before = units(admitted)
    attack(score.reference)
    assert units(admitted) == before
    admitted.check(SCHEMA)
    with pytest.raises(MechanismError):
        ask(question)


@pytest.mark.parametrize("strides", [(24, 8), (8, 16), (0, 8)])
def test_another_layout_is_taken_as_it_is(strides):
    """The cells that are compared are those that the layout showed when it was asked, as many as a table has."""
    score, question = scored()
    memory = np.arange(6.0)
    other = np.lib.stride_tricks.as_strided(memory, (2, 3), strides)
    changed(score, reference=other)
    shown = other.copy()
    admitted = ask(question)
    memory[:] = -(2.0**47)
    (copy,) = admitted.scores
    assert copy.away(TABLE) == 2**16 * sum(abs(int(TABLE[i]) - int(shown[i])) for i in np.ndindex(2, 3))
    changed(score, reference=np.zeros((1, 2, 3)))
    with pytest.raises(MechanismError, match="shape"):
        ask(question)


@pytest.mark.parametrize(
    "parts",
    [
        {"weight": float("nan")},
        {"norm": "none"},
        {"offset": float("inf")},
        {"clique": ("A",)},
        {"clique": ("A", "A")},
        {"reference": np.full((2, 3), 2.0**50)},
        {"reference": np.zeros((2, 3), np.float32)},
    ],
    ids=str,
)
def test_whatever_is_exchanged_is_checked_and_reaches_no_question_that_was_asked(parts):
    score, question = scored()
    admitted = ask(question)
    before = units(admitted)
    changed(score, **parts)
    assert units(admitted) == before
    with pytest.raises(MechanismError):
        ask(question)


def test_writing_into_what_was_asked_is_refused_when_it_is_asked_again():
    score, question = scored()
    assert set(vars(score)) == {field.name for field in fields(score)}
    assert set(vars(question)) == {field.name for field in fields(question)}
    changed(score, _sound=True)
    with pytest.raises(MechanismError, match="written into it"):
        ask(question)


def test_a_field_that_was_taken_out_is_refused():
    score, question = scored()
    del vars(score)["offset"]  # the class has a default, which would be used unseen
    with pytest.raises(MechanismError, match="taken out"):
        ask(question)


def test_copies_share_what_their_originals_share():
    """Scores of one sum are computed in one pass, and told apart by the object that they share."""
    term = Term("largest", np.arange(8.0)[None] / 100, np.zeros(1))
    query = Confusions(Coded(("X",)), "D", np.zeros((2, 2)), ("G",))
    one, two = ask(Choose((Composite(query, 0, (term,)), Composite(query, 1, (term,))), 0.1), regressing.SCHEMA).scores
    assert one.query is two.query is not query
    assert one.terms[0] is two.terms[0] is not term


def test_a_forged_table_is_not_read():
    _, question = scored()
    vars(question)["wanted"] = lambda: Wanted(cliques=[("A",)])
    with pytest.raises(MechanismError, match="written into it"):
        ask(question)


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
        run(program(), SCHEMA, Replies(pytest.fail))
    with pytest.raises(MechanismError, match="written into it"):
        ask(question)


@pytest.mark.parametrize("name", ["check", "moved", "reach", "units", "away"])
def test_a_method_that_is_written_into_a_candidate_is_refused(name):
    score, question = scored()
    changed(score, **{name: lambda *_: 0})
    with pytest.raises(MechanismError, match="written into it"):
        ask(question)


def composite():
    term = Term("largest", np.arange(8.0)[None] / 100, np.zeros(1))
    query = Confusions(Coded(("X",)), "D", np.zeros((1, 2)), ("G",))
    question = Choose((Composite(query, 0, (term,)),), 0.1)
    question.check(regressing.SCHEMA)
    return question, term, query


def test_how_far_a_term_moves_follows_what_is_exchanged():
    for parts in ({"weight": 1000.0}, {"slopes": np.arange(8.0)[None] * 10}, {"kind": "spread", "parameter": 1000.0}):
        question, term, _ = composite()
        asked = ask(question, regressing.SCHEMA)
        first, value = asked.scores[0].sensitivity(regressing.SCHEMA, Neighbours.ADD_REMOVE), asked.scores[0].terms[0]
        term.steps  # noqa: B018 - worked out once, and kept in the original
        before = value.value([5] * 8)
        changed(term, **parts)
        assert asked.scores[0].sensitivity(regressing.SCHEMA, Neighbours.ADD_REMOVE) == first
        assert value.value([5] * 8) == before
        scores = ask(question, regressing.SCHEMA).scores
        fresh = Composite(question.scores[0].query, 0, (dataclasses.replace(term),))
        expected = fresh.sensitivity(regressing.SCHEMA, Neighbours.ADD_REMOVE)
        assert expected >= 100 * first
        assert scores[0].sensitivity(regressing.SCHEMA, Neighbours.ADD_REMOVE) == expected
        assert Composite.most_moved(scores, regressing.SCHEMA, Neighbours.ADD_REMOVE) == expected
        assert scores[0].terms[0].value([5] * 8) == dataclasses.replace(term).value([5] * 8)


def test_the_form_of_a_term_is_that_of_its_counts():
    """Two rows of slopes are apart by more than one row is."""
    question, term, _ = composite()
    term.slopes.shape = (2, 4)
    with pytest.raises(MechanismError, match="8 columns"):
        ask(question, regressing.SCHEMA)


@pytest.mark.parametrize("name", ["steps", "check", "value", "function"])
def test_a_method_that_is_written_into_a_term_is_refused(name):
    question, term, _ = composite()
    vars(term)[name] = (Fraction(1, 10**9),) * 8
    with pytest.raises(MechanismError, match="written into it"):
        ask(question, regressing.SCHEMA)


def test_a_forged_step_is_not_taken():
    """Steps follow from whole numbers that are worked out once, and kept beside the fields."""
    question, term, _ = composite()
    before = question.scores[0].sensitivity(regressing.SCHEMA, Neighbours.ADD_REMOVE)
    small = dataclasses.replace(term, slopes=term.slopes / 10**6)
    vars(term)["_worked"] = small._worked
    asked = ask(question, regressing.SCHEMA)
    assert asked.scores[0].sensitivity(regressing.SCHEMA, Neighbours.ADD_REMOVE) == before


@pytest.mark.parametrize("name", ["blocks", "check", "sum"])
def test_a_method_that_is_written_into_a_query_is_refused(name):
    question, _, query = composite()
    changed(query, **{name: lambda *_: ()})
    for asked in (question, Total(query, 0.1)):
        with pytest.raises(MechanismError, match="written into it"):
            ask(asked, regressing.SCHEMA)


def test_what_is_sound_in_one_schema_is_checked_in_another():
    _, question = scored()
    ask(question)
    with pytest.raises(MechanismError, match="shape"):
        ask(question, OTHER)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.25, 1.0, 3.0, 7.5]), st.sampled_from(["l1", "largest"])), min_size=1, max_size=6
    )
)
def test_the_farthest_of_all_candidates_is_that_of_each_gone_through(kinds):
    scores = [Distance(("A", "B"), np.zeros((2, 3)), weight, norm=norm) for weight, norm in kinds]
    for neighbours in PRICED:
        at, exact = Setting(SCHEMA, neighbours), Exact([TABLE] * len(scores))
        assert Distance.most_moved(scores, SCHEMA, neighbours) == max(s.sensitivity(SCHEMA, neighbours) for s in scores)
        units, reach = Distance.units(scores, exact, at, {})
        heaviest = max(s.weight for s in scores)
        each = [max(1, round(s.weight / heaviest * 2**20)) * s.reach(SCHEMA, neighbours) * 2**16 for s in scores]
        assert reach == max(each)
        assert units == [
            max(1, round(s.weight / heaviest * 2**20)) * (4 if s.norm == "l1" else 3) * 2**16 for s in scores
        ]


def among():
    """A choice among pairs, what these are compared with being asked with again and again."""
    return Choose(Pairs(Independence((("A", "B"),), (np.ones(2) / 2, np.ones(3) / 3), ("A", "B"), 9.0), (0,)), 0.1)


def test_an_original_is_kept_as_long_as_its_copy_stands_for_it():
    """A later object may have the number in memory of one that is gone."""
    copies = {}
    question = among()
    Asked((), SCHEMA, question, copies)
    number = id(question.scores.expected)
    assert [id(original) for original, _ in copies.values()] == [number]
    del question
    assert number not in {id(among().scores.expected) for _ in range(100)}


def test_copies_of_the_last_question_alone_are_kept():
    copies = {}
    one, other = among(), among()
    first = Asked((), SCHEMA, one, copies).question.scores.expected
    assert Asked((), SCHEMA, one, copies).question.scores.expected is first
    Asked((), SCHEMA, other, copies)
    assert Asked((), SCHEMA, one, copies).question.scores.expected is not first
    Asked((), SCHEMA, scored()[1], copies)
    assert copies == {}, "candidates that are new in every round would fill the memory"


def test_a_refused_question_leaves_the_copies_as_they_were():
    copies = {}
    Asked((), SCHEMA, among(), copies)
    before = dict(copies)
    assert before
    with pytest.raises(MechanismError):
        Asked((), SCHEMA, scored(weight=-1.0)[1], copies)
    assert copies == before


def test_a_derived_class_is_no_kind_of_question():
    class Cheap(Counts):
        def charges(self, schema, path, neighbours):
            return ()

    class Near(Distance):
        def moved(self, schema, neighbours):
            return 1e-9

    with pytest.raises(MechanismError, match="Cheap is no kind of question"):
        ask(Cheap((("A",),), 0.1))
    with pytest.raises(MechanismError, match="a question holds a Near"):
        ask(Choose((Near(("A", "B"), np.zeros((2, 3))),), 0.1))


def test_a_class_from_elsewhere_joins_no_closed_set():
    @dataclasses.dataclass(frozen=True)
    class Own(Counts):
        pass

    with pytest.raises(StratsynthError, match="no others"):
        known(Own)
    with pytest.raises(MechanismError, match="no kind of question"):
        ask(Own((("A",),), 0.1))


class Sly:
    """A leaf that has code of its own: it is one thing where it is checked, and another where rows are read."""

    def __lt__(self, other):
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __abs__(self):
        return 0.0

    def __iter__(self):
        return iter(("B",))

    def __eq__(self, other):
        return True

    __hash__ = None


class Text(str):
    """A text that compares otherwise than it reads."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return True


class Rate(float):
    """A number that compares otherwise than it reads."""

    __slots__ = ()
    __hash__ = float.__hash__

    def __eq__(self, other):
        return True


SUM = Columns(("X",), (0.0,), (1.0,), 1.0)
LEAVES = {
    "an offset": Choose((Distance(("A", "B"), np.zeros((2, 3)), 1.0, Sly()),), 0.1),
    "a norm of a distance": Choose((Distance(("A", "B"), np.zeros((2, 3)), norm=Text("l1")),), 0.1),
    "a norm of columns": Total(dataclasses.replace(SUM, norm=Text("l2")), 0.1),
    "a currency": Total(SUM, 0.1, Text("zcdp")),
    "a rate": Total(SUM, 0.1, rate=Rate(0.5)),
    "a kind of term": Choose(
        (
            Composite(
                Confusions(Coded(("X",)), "D", np.zeros((1, 2)), ("G",)),
                0,
                (Term(Text("largest"), np.ones((1, 8)), np.zeros(1)),),
            ),
        ),
        0.1,
    ),
    "groups": Total(Confusions(Coded(("X",)), "D", np.zeros((1, 2)), Sly()), 0.1),
    "a claim": Raw(type("Own", (), {"epsilon": 1.0, "delta": 0.0, "by": "me", "check": lambda *_, **__: None})()),
    "a price": Counts((("A",),), Rate(0.1)),
    "a column": Counts(((Text("A"),),), 0.1),
}


@pytest.mark.parametrize("question", LEAVES.values(), ids=LEAVES)
def test_a_leaf_with_code_of_its_own_is_refused_when_it_is_asked(question):
    """Its program's code would run where the question is priced, and where exact answers are."""
    with pytest.raises(MechanismError, match="a question holds a"):
        ask(question)


def test_strata_are_copied_too():
    """Whoever held them could turn them, after they were found declared, to people that nobody may ask about."""
    one, other = (Stratum.of({"A": level}) for level in "12")
    paths, keys = [], []

    def first():
        yield from counts((("B",),), rho=0.1)

    def second():
        object.__setattr__(one, "items", (("B", ("3",)),))
        yield from counts((("B",),), rho=0.1)

    def program():
        keys.extend((yield from split({one: first(), other: second()})))

    def answer(asked):
        paths.extend(a.path for a in asked)
        return [None for _ in asked]

    run(program(), SCHEMA, Replies(answer))
    assert [path[0].items for path in paths] == [(("A", ("1",)),), (("A", ("2",)),)]
    assert [stratum.items for stratum in keys] == [path[0].items for path in paths]
    assert not any(stratum is path[0] for stratum in keys for path in paths), "nor does it hold the driver's"


@pytest.mark.parametrize(("norm", "most"), [("l1", 2), ("largest", 1)])
def test_a_record_exchanged_moves_a_distance_by_as_much_as_is_priced(norm, most):
    """From the one cell that the reference has to one that it lacks: both cells move, and neither by more than one."""
    reference = np.zeros((2, 3))
    reference[0, 0] = 1.0
    here, there = reference.astype(np.int64), np.roll(reference.astype(np.int64), 1, axis=1)
    score, at = Distance(("A", "B"), reference, norm=norm), Setting(SCHEMA, Neighbours.REPLACE)
    (one,), reach = Distance.units([score], Exact([here]), at, {})
    (two,), _ = Distance.units([score], Exact([there]), at, {})
    assert abs(two - one) == reach == score.reach(SCHEMA, Neighbours.REPLACE) * 2**36
    assert score.reach(SCHEMA, Neighbours.REPLACE) == most
