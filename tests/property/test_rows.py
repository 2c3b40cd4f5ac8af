"""Exact counts of rows in memory, against counting them one by one."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratsynth.driver import counting, rows
from stratsynth.driver.rows import StoredRows
from stratsynth.schema import Categorical, Schema
from stratsynth.schema.rows import CodedRows
from stratsynth.strata import Stratum

SIZES = {"A": 2, "B": 3, "C": 1, "D": 300}
SCHEMA = Schema({name: Categorical(levels=tuple(f"{name}{i}" for i in range(n))) for name, n in SIZES.items()})

records = st.lists(st.tuples(*(st.integers(0, n - 1) for n in SIZES.values())), max_size=25)


@st.composite
def paths_and_cliques(draw):
    """A path of splits, merges among them, and a clique of the columns that still vary there, both in any order."""
    order = draw(st.permutations(list(SIZES)))
    cuts = sorted(draw(st.lists(st.integers(0, 3), max_size=2)))
    steps = [order[a:b] for a, b in itertools.pairwise([0, *cuts]) if a < b]
    levels = {c: st.sets(st.integers(0, min(n, 4) - 1), min_size=1, max_size=3).map(sorted) for c, n in SIZES.items()}
    path = tuple(Stratum.of({c: [f"{c}{i}" for i in draw(levels[c])] for c in step}) for step in steps)
    merged = [c for stratum in path for c, several in stratum.items if len(several) > 1]
    left = [*order[sum(map(len, steps)) :], *merged]
    return path, tuple(left[: draw(st.integers(1, len(left)))])


def codes(table):
    columns = zip(*table, strict=True) if table else [()] * len(SIZES)
    return {
        name: np.array(column, dtype=np.min_scalar_type(SIZES[name] - 1))
        for name, column in zip(SIZES, columns, strict=True)
    }


def memory(columns, size):
    return StoredRows([CodedRows(SCHEMA, columns, {}, size)])


def by_hand(table, path, clique):
    names = list(SIZES)
    wanted = {c: [SCHEMA.index(c, level) for level in levels] for stratum in path for c, levels in stratum.items}
    here = [r for r in table if all(r[names.index(c)] in codes for c, codes in wanted.items())]
    expected = np.zeros([SIZES[c] for c in clique], dtype=np.int64)
    for cell, number in Counter(tuple(r[names.index(c)] for c in clique) for r in here).items():
        expected[cell] = number
    return expected[np.ix_(*(wanted.get(c, range(SIZES[c])) for c in clique))]


@given(records, st.lists(paths_and_cliques(), min_size=1, max_size=5))
def test_counts_are_those_of_counting_by_hand(table, asked):
    rows = memory(codes(table), len(table))
    answers = rows.counts([(path, [clique]) for path, clique in asked])
    for (path, clique), (answer,) in zip(asked, answers, strict=True):
        assert answer.dtype == np.int64
        np.testing.assert_array_equal(answer, by_hand(table, path, clique))


@given(records, paths_and_cliques())
def test_blocks_change_nothing(table, asked):
    path, clique = asked
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "BLOCK", 3)  # three rows a block, and five before the next table
        patch.setattr(rows, "BLOCK", 3)
        patch.setattr(counting, "STEP", 5)
        ((answer,),) = memory(codes(table), len(table)).counts([(path, [clique])])
    np.testing.assert_array_equal(answer, by_hand(table, path, clique))


@given(records)
def test_every_record_is_in_one_stratum_of_a_split(table):
    rows = memory(codes(table), len(table))
    strata = [Stratum.of({"B": f"B{b}", "A": f"A{a}"}) for b in range(3) for a in range(2)]
    answers = rows.counts([((stratum,), [("C",)]) for stratum in strata])
    assert sum(int(answer.sum()) for (answer,) in answers) == len(table)


def test_counting_leaves_the_codes_as_they_were():
    table = [(i % 2, i % 3, 0, i) for i in range(30)]
    given_codes = codes(table)
    before = {name: array.copy() for name, array in given_codes.items()}
    rows = memory(given_codes, 30)
    rows.counts([((), [("A", "B", "D")]), ((Stratum.of({"B": "B1"}),), [("D", "A")])])
    for name, array in given_codes.items():
        np.testing.assert_array_equal(array, before[name])
