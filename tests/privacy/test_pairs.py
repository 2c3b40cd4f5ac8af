"""Pairs of columns as candidates are the distances that they stand for: same scores, same price, same checks."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.byhand import ByHand, frame_of, rows_of, schema_of
from helpers.small import BUDGET, even
from stratsynth import Neighbours, Stratified, fit, open_table
from stratsynth.accounting.budget import PRICED
from stratsynth.adapters import MST
from stratsynth.driver.lockstep import Asked
from stratsynth.driver.private import exact_key
from stratsynth.driver.rows import StoredRows
from stratsynth.errors import MechanismError
from stratsynth.questions import Choose, Distance, Independence, Pairs
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact
from stratsynth.questions.scores import WEIGHT_UNIT

LEVELS = {"a": 3, "b": 2, "c": 2, "d": 4}
SCHEMA = schema_of(LEVELS)
CLIQUES = tuple(combinations(LEVELS, 2))
TOLD = ((("a", "c"), np.arange(6.0).reshape(3, 2)),)
AT = Setting(SCHEMA, Neighbours.ADD_REMOVE)


def shares(seed=0):
    return tuple(np.random.default_rng(seed).dirichlet(np.ones(size)) for size in LEVELS.values())


def independence(**parts):
    return Independence(**{"cliques": CLIQUES, "shares": shares(), "columns": tuple(LEVELS), "total": 40.0, **parts})


def pairs(which=None, **parts):
    return Pairs(independence(**parts), tuple(range(len(CLIQUES))) if which is None else which)


def exact(asked, rows):
    return Exact([ByHand(SCHEMA, rows).table(clique) for clique in asked.cliques])


def changed(thing, **parts):
    """Change the object as a program could, which holds it after asking."""
    for name, value in parts.items():
        object.__setattr__(thing, name, value)


@pytest.mark.parametrize("told", [(), TOLD], ids=["", "told"])
@pytest.mark.parametrize("which", [(0, 1, 2, 3, 4, 5), (1, 4)], ids=len)
def test_pairs_are_the_distances_that_they_stand_for(which, told):
    compact = pairs(which, told=told)
    written = tuple(compact)
    assert {type(one) for one in written} == {Distance}
    found = exact(compact, rows_of(50))
    for neighbours in PRICED:
        at = Setting(SCHEMA, neighbours)
        units, reach = compact.units(found, at, {})
        plain, plain_reach = Distance.units(written, found, at, {})
        assert ([WEIGHT_UNIT * unit for unit in units], WEIGHT_UNIT * reach) == (plain, plain_reach)
    one, other = Choose(compact, 0.1), Choose(written, 0.1)
    for each in (one, other):
        each.check(SCHEMA)
    assert one.charges(SCHEMA, (), Neighbours.ADD_REMOVE) == other.charges(SCHEMA, (), Neighbours.ADD_REMOVE)
    assert list(one.wanted().cliques) == list(other.wanted().cliques)
    known = one.replayed(), exact_key([Asked((), SCHEMA, one)])
    assert known == (other.replayed(), exact_key([Asked((), SCHEMA, other)]))


@given(st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_a_record_moves_every_pair_by_at_most_what_is_priced(size, seed):
    rng = np.random.default_rng(seed)
    rows = {name: rng.integers(levels, size=size + 1) for name, levels in LEVELS.items()}
    asked = pairs(shares=shares(seed), told=TOLD)
    here, reach = asked.units(exact(asked, rows), AT, {})
    there, _ = asked.units(exact(asked, {name: codes[:-1] for name, codes in rows.items()}), AT, {})
    assert max(abs(x - y) for x, y in zip(here, there, strict=True)) <= reach


def test_what_was_compared_is_remembered_and_no_table_is_read_again():
    memory, rows = {}, rows_of(50)
    first = pairs()
    units, _ = first.units(exact(first, rows), AT, memory)
    later = Pairs(first.expected, (1, 4))
    assert Choose(later, 0.1).remembers(memory)
    assert later.units(Exact(), AT, memory)[0] == [units[1], units[4]]
    assert not Choose(tuple(later), 0.1).remembers(memory)


def test_a_distance_is_not_given_again_for_another():
    memory, rows = {}, rows_of(50)
    first, other = pairs(), pairs(shares=shares(1))
    before = first.units(exact(first, rows), AT, memory)
    assert not other.remembered(memory)
    changed(first, expected=other.expected)
    assert not first.remembered(memory)
    assert first.units(exact(first, rows), AT, memory) == other.units(exact(other, rows), AT, {}) != before


def test_a_pair_that_was_not_compared_before_is_read():
    memory, rows = {}, rows_of(50)
    first = pairs((0, 1))
    first.units(exact(first, rows), AT, memory)
    more = Pairs(first.expected, (1, 2))
    assert not more.remembered(memory)
    assert more.units(exact(more, rows), AT, memory) == more.units(exact(more, rows), AT, {})


def test_another_form_of_the_same_distribution_is_found():
    """Of an array that nobody can write to, the shape can change: a table would be compared with one of another."""
    question = Choose(pairs(), 0.1)
    question.scores.expected.shares[0].shape = (1, 3)
    with pytest.raises(MechanismError, match="has not the column's shape"):
        Asked((), SCHEMA, question)


def test_a_change_of_what_was_asked_reaches_neither_this_question_nor_the_next():
    """The copies of the last question stand for their originals, whatever has become of these."""
    original, copies = pairs(), {}
    first = Asked((), SCHEMA, Choose(original, 0.1), copies)
    admitted = first.question.scores.expected
    before = exact_units(first)
    original.expected.shares[0].shape = (1, 3)
    changed(original.expected, total=2.0**43, check=lambda schema: None)
    later = Asked((), SCHEMA, Choose(Pairs(original.expected, (1, 4)), 0.1), copies)
    assert later.question.scores.expected is admitted
    assert exact_units(later) == [before[1], before[4]]
    with pytest.raises(MechanismError):
        Asked((), SCHEMA, Choose(Pairs(original.expected, (1, 4)), 0.1))


def exact_units(asked):
    scores = asked.question.scores
    return scores.units(exact(scores, rows_of(50)), AT, {})[0]


UNSOUND = {
    "other columns": {"columns": ("a", "b", "c", "z")},
    "a column twice": {"columns": ("a", "b", "c", "c")},
    "a column alone": {"cliques": (("a",),)},
    "one column as two": {"cliques": (("a", "a"),)},
    "a column without a distribution": {"cliques": (("a", "z"),)},
    "a list": {"cliques": list(CLIQUES)},
    "none": {"cliques": ()},
    "a text of one's own": {"cliques": ((type("Own", (str,), {})("a"), "b"),)},
    "a distribution too few": {"shares": shares()[:3]},
    "floats of another size": {"shares": tuple(share.astype(np.float32) for share in shares())},
    "no number": {"shares": (np.full(3, np.nan), *shares()[1:])},
    "an end nowhere": {"shares": (np.full(3, np.inf), *shares()[1:])},
    "too large": {"shares": (np.full(3, 2.0**40), *shares()[1:])},
    "too many records": {"total": 2.0**43},
    "records that are no number": {"total": float("nan")},
    "records below 0": {"total": -1.0},
    "a table of another shape": {"told": ((("a", "b"), np.zeros(6)),)},
    "a table of no clique": {"told": ((("a", "z"), np.zeros((3, 2))),)},
    "tables in a list": {"told": [(("a", "b"), np.zeros((3, 2)))]},
}


@pytest.mark.parametrize("parts", UNSOUND.values(), ids=UNSOUND)
def test_what_is_unsound_is_refused_also_where_it_was_sound_once(parts):
    with pytest.raises(MechanismError):
        Choose(pairs(**parts), 0.1).check(SCHEMA)
    question = Choose(pairs(), 0.1)
    question.check(SCHEMA)
    changed(question.scores.expected, **parts)
    with pytest.raises(MechanismError):
        Asked((), SCHEMA, question)


@pytest.mark.parametrize(
    "which", [(), [0, 1], (1, 0), (0, 0), (-1, 0), (0, 6), (0.0, 1.0), (True,), (np.int64(0), np.int64(1))], ids=repr
)
def test_candidates_are_places_among_the_pairs_each_once(which):
    with pytest.raises(MechanismError, match="place"):
        Choose(pairs(which), 0.1).check(SCHEMA)


@pytest.mark.parametrize("kind", [Pairs, Independence])
@pytest.mark.parametrize("name", ["check", "check_all", "_check", "most_moved", "units", "tables"])
def test_a_method_that_is_written_into_pairs_is_refused(name, kind):
    asked = pairs()
    question = Choose(asked, 0.1)
    question.check(SCHEMA)
    changed(asked if kind is Pairs else asked.expected, **{name: lambda *_: None})
    with pytest.raises(MechanismError, match="written into it"):
        Asked((), SCHEMA, question)


@pytest.mark.parametrize("name", ["cells", "_sound_for"])
def test_a_forged_finding_is_not_taken(name):
    """A mark that its own check leaves, and a number that is worked out once: the copy has neither from outside."""
    asked = pairs(shares=tuple(np.full(size, np.nan) for size in LEVELS.values()))
    vars(asked.expected)[name] = 1 if name == "cells" else [SCHEMA]
    with pytest.raises(MechanismError, match="not finite"):
        Asked((), SCHEMA, Choose(asked, 0.1))


def test_another_class_is_no_independence():
    class Own(Independence):
        pass

    own = Own(CLIQUES, shares(), tuple(LEVELS), 40.0)
    with pytest.raises(MechanismError, match="Independence"):
        Choose(Pairs(own, (0, 1)), 0.1).check(SCHEMA)


def test_the_rows_of_each_stratum_are_counted_by_themselves_and_once_for_all_choices(monkeypatch):
    """Tables of thousands of strata at once would fill the memory."""
    counted, proper = [], StoredRows.counts
    schema = schema_of({"g": 3, **LEVELS})
    rows = {"g": np.arange(900) % 3, **{name: codes for name, codes in rows_of(900).items() if name in LEVELS}}

    def counts(self, asked):
        counted.append([(len(path), len(cliques)) for path, cliques in asked])
        return proper(self, asked)

    monkeypatch.setattr(StoredRows, "counts", counts)
    table = open_table(frame_of(rows), schema=schema, declared_size=900)
    fit(Stratified(MST(), ["g"], even(schema, "g")), table, BUDGET)
    assert counted == [[(1, 4)]] * 3 + [[(1, 6)]] * 3 + [[(1, 3)]] * 3


@pytest.mark.parametrize("part", ["shares", "told"])
def test_other_contents_of_what_was_found_sound_are_not_compared_with(part):
    """Nobody can write to these arrays, and their owner can still give them another memory."""
    original = pairs(told=TOLD)
    asked = Asked((), SCHEMA, Choose(original, 0.1))
    before = exact_units(asked)
    array = original.expected.shares[0] if part == "shares" else original.expected.told[0][1]
    other = np.full(array.shape, -(2.0**47))
    array.__setstate__((1, array.shape, array.dtype, False, other.tobytes()))
    assert exact_units(asked) == before
    with pytest.raises(MechanismError, match="too large"):
        Asked((), SCHEMA, Choose(original, 0.1))


def test_a_distribution_that_is_too_large_is_refused_in_words():
    with pytest.raises(MechanismError, match="too large"):
        Choose(pairs(shares=(np.full(3, 1e200), *shares()[1:])), 0.1).check(SCHEMA)
