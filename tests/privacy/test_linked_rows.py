"""Rows of linked tables: a counted row is a function of one household alone, and a household weighs what a row may."""

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stratsynth as ss
from helpers import homes
from stratsynth.accounting.budget import Neighbours
from stratsynth.data.linked_rows import LinkedRows, shared
from stratsynth.data.linked_slots import Slot
from stratsynth.driver.answering import Reader
from stratsynth.errors import StratsynthError
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Choose, Counts, Distance
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Wanted
from stratsynth.schema.counted_tables import CountedTables
from stratsynth.strata import Stratum

W = 60
PARENT = st.tuples(st.sampled_from([0, 1, 2, 3, None]), st.sampled_from([1, 2, 7]), st.sampled_from([1, 1, 1, 2]))
CHILD = st.tuples(
    st.sampled_from([0, 1, 2, 3, 4, None]),
    st.sampled_from([1, 2, 2, None]),
    st.sampled_from([3, 17, 18, 40, 40, 90]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([None, 0, 500, -200, 99_999]),
)


def frames(parents, persons):
    """Return two frames of tuples: key, tenure and kind; key, order, age, sex and income."""
    above = pd.DataFrame(parents, columns=["SERIALNO", "TEN", "KIND"]).assign(HINCP=0)
    below = pd.DataFrame(persons, columns=["SERIALNO", "SPORDER", "AGEP", "SEX", "PINCP"])
    return above.astype({"SERIALNO": "Int64"}), below.astype({"SERIALNO": "Int64"})


def read(parents, persons):
    return homes.lines(homes.slots(*frames(parents, persons)))


def added(*several):
    """Return the rows of several worlds together, table by table."""
    return {slot: sorted(itertools.chain(*(each[slot] for each in several))) for slot in several[0]}


@settings(max_examples=20)
@given(st.lists(PARENT, max_size=8), st.lists(CHILD, max_size=16))
def test_all_rows_of_a_key_come_from_that_key_alone_whatever_the_files_hold(parents, persons):
    """Duplicate keys, orphans, empty and unknown ones, ties, values outside the schema, parents without child rows."""
    keys = {row[0] for row in (*parents, *persons)}
    alone = [read([p for p in parents if p[0] == k], [c for c in persons if c[0] == k]) for k in keys]
    assert read(parents, persons) == (added(*alone) if alone else read([], []))


@settings(max_examples=20)
@given(st.lists(PARENT, max_size=6), st.lists(CHILD, max_size=10), st.randoms(use_true_random=False))
def test_the_order_of_the_files_leaves_no_trace(parents, persons, random):
    before = read(parents, persons)
    parents, persons = random.sample(parents, len(parents)), random.sample(persons, len(persons))
    assert read(parents, persons) == before


@settings(max_examples=20)
@given(st.lists(PARENT, max_size=6), st.lists(CHILD, max_size=14))
def test_no_key_weighs_more_than_a_row_may(parents, persons):
    for slot, found in homes.slots(*frames(parents, persons)).items():
        together = Counter()
        for owner, weight in zip(found.owner.tolist(), found.weight.tolist(), strict=True):
            assert weight >= 0
            together[owner] += weight
        assert all(weight <= W for weight in together.values()), slot


def test_what_a_household_becomes():
    """By hand: a reference of 50, a partner of 47 with no income, children of 10 and 20, the elder with half."""
    parents = [(7, 2, 1)]
    persons = [(7, 4, 20, 1, 10_000), (7, 1, 50, 2, 10_000), (7, 3, 10, 2, None), (7, 2, 47, 1, 0)]
    found, schema = homes.slots(*frames(parents, persons)), homes.SCHEMA.counted

    def named(slot):
        codes = found[slot].codes
        return [
            {name: schema.levels(f"{slot}.{name}")[codes[name][i]] for name in codes} | {"weight": int(weight)}
            for i, weight in enumerate(found[slot].weight)
        ]

    (parent,), (second,), others, rest = (named(slot) for slot in ("parent", "second", "others", "rest"))
    assert [parent[name] for name in ("TEN", "NP", "N18", "R_AGEP", "R_SEX", "weight")] == [
        "2", "4", "1", "45-64", "2", 60,
    ]  # fmt: skip
    assert parent["HINCP"] == homes.HOUSEHOLD.levels("HINCP")[0]  # 20,000 in all
    assert [second[name] for name in ("AGEP", "DIF", "ALL", "weight")] == ["45-64", "[-5,-2)", "0", 60]
    assert [other["ST"] for other in others] == ["1/1", "0/1"]
    assert [other["PREV"] for other in others] == ["[40,50)", "[10,20)"]
    assert [other["DIF"] for other in others] == ["[-40,-35)", "[6,11)"]
    assert [other["ALL"] for other in others] == ["0", "1"]
    assert [other["weight"] for other in others] == [30, 30]
    assert [(other["AGEP"], other["weight"]) for other in rest] == [("45-64", 20), ("5-17", 20), ("18-29", 20)]


def test_a_key_of_two_parent_rows_is_left_out_with_all_its_rows():
    one, two = [(7, 1, 1)], [(7, 1, 1), (7, 2, 1)]
    persons = [(7, 1, 40, 1, 0), (7, 2, 40, 2, 0)]
    assert len(read(one, persons)["parent"]) == 1
    assert not any(read(two, persons).values())


def test_rows_without_a_counted_parent_and_parents_without_a_row_are_left_out():
    assert not any(read([(7, 1, 2)], [(7, 1, 40, 1, 0)]).values())  # of a kind that is not counted
    assert not any(read([(7, 1, 1)], [(8, 1, 40, 1, 0), (None, 1, 40, 1, 0)]).values())
    assert not any(read([(None, 1, 1)], [(None, 1, 40, 1, 0)]).values())
    assert not any(read([(7, 1, 1)], [(7, 1, 40, 3, 0)]).values())  # its one person has an unknown sex


def test_ties_in_the_order_are_broken_by_what_the_rows_hold():
    persons = [(7, 1, 40, 2, 5), (7, 1, 40, 1, 9), (7, 1, 3, 1, None)]
    found = [read([(7, 1, 1)], list(each)) for each in itertools.permutations(persons)]
    assert all(each == found[0] for each in found)


def test_no_other_household_touches_the_last_digit_of_a_sum():
    """Incomes of tenths beside incomes of fifteen digits: a running sum of reals would lose the tenths."""
    income = ss.Numeric(0, 1e15, bins=3)
    schema = replace(
        homes.SCHEMA,
        parent=replace(homes.HOUSEHOLD, columns={**homes.HOUSEHOLD.columns, "HINCP": income}),
        child=replace(homes.PERSON, columns={**homes.PERSON.columns, "PINCP": income}),
    )
    mine = [(7, 1, 40, 1, 0.1), (7, 2, 40, 2, 0.2), (7, 3, 40, 2, 0.3)]
    parents, others = [(i, 1, 1) for i in range(8)], [(i, 1, 40, 1, 1e15 - i) for i in range(7)]
    alone = homes.lines(homes.slots(*frames(parents[7:], mine), schema))
    among = homes.lines(homes.slots(*frames(parents, [*others, *mine]), schema))
    assert set(alone["others"]) <= set(among["others"])
    assert set(alone["second"]) <= set(among["second"])


def test_keys_are_one_in_both_files_however_they_are_spelt():
    parents, persons = homes.tables(20)
    spelt = persons.assign(SERIALNO=[f"0{key}" if key % 2 else str(key) for key in persons["SERIALNO"]])
    assert homes.lines(homes.slots(parents, spelt)) == homes.lines(homes.slots(parents, persons))


# Weights, whoever made them


def test_rows_of_a_key_that_weigh_too_much_count_nothing():
    owner, weights = np.array([0, 0, 1, 1, 2]), np.array([30, 30, 31, 30, 61])
    assert shared(owner, weights, 60).tolist() == [30, 30, 0, 0, 60]  # a single weight is cut
    assert shared(owner, -weights, 60).tolist() == [0] * 5


def test_the_rows_that_are_counted_keep_to_the_weight_of_the_schema():
    """A derivation that counts children twice moves no table by more than is paid for."""
    slots = homes.slots(*homes.tables(60))
    planted = {
        name: Slot(
            {column: np.concatenate([codes, codes]) for column, codes in slot.codes.items()},
            np.concatenate([slot.owner, slot.owner]),
            np.concatenate([slot.weight, slot.weight]),
        )
        for name, slot in slots.items()
    }
    rows = LinkedRows(homes.SCHEMA.counted, planted)
    tables = rows.counts([((), [(f"{slot}.SEX",) for slot in ("second", "others", "rest")])])[0]
    assert [int(table.sum()) for table in tables] == [0, 0, 0]


# What a question may read


def test_a_table_has_the_columns_of_one_counted_table_and_of_all_its_rows():
    rows = homes.rows(*homes.tables(30))
    with pytest.raises(StratsynthError, match="one counted table"):
        rows.counts([((), [("parent.TEN", "second.SEX")])])
    with pytest.raises(StratsynthError, match="by those of a key"):
        rows.counts([((), [("TEN",)])])
    for reading in (rows.sums, rows.columns, rows.frame):
        with pytest.raises(StratsynthError, match="counted"):
            reading(())


def test_what_cannot_be_read_is_told_in_one_sentence_that_quotes_nothing():
    parents, persons = homes.tables(5)
    with pytest.raises(StratsynthError, match="could not be read") as found:
        homes.rows(parents, persons.drop(columns="SEX"))
    assert found.value.__cause__ is None


@pytest.mark.parametrize("column", ["SEX", "AGEP", "DIF", "ST", "parent.TEN", "second.SEX"])
def test_strata_are_by_columns_of_which_a_household_has_one_value(column):
    """Rows of one household in several strata would be charged as if these were of others."""
    rows, levels = homes.rows(*homes.tables(30)), homes.SCHEMA.counted
    name = column if "." in column else f"others.{column}"
    path = (Stratum.of({column: levels.levels(name)[0]}),)
    for slot in ("second", "others", "rest"):
        with pytest.raises(StratsynthError, match="by those of a key"):
            rows.counts([(path, [(f"{slot}.NP",)])])


@pytest.mark.parametrize("column", ["TEN", "NP", "N18", "R_SEX", "R_AGEP", "HINCP"])
def test_all_rows_of_a_household_are_in_one_stratum_in_every_counted_table(column):
    """Strata of one household: in every counted table all of its weight is in the same one of them."""
    parents, persons = homes.tables(40)
    levels = homes.SCHEMA.counted.levels(column)
    cliques = [(f"{slot}.{other}",) for slot, other in (("parent", "KIND"), ("second", "SEX"), ("others", "ST"))]
    strata = [(Stratum.of({column: level}),) for level in levels]
    for key in parents["SERIALNO"][:12]:
        rows = homes.rows(parents[parents["SERIALNO"] == key], persons[persons["SERIALNO"] == key])
        found = np.array([[int(t.sum()) for t in each] for each in rows.counts([(path, cliques) for path in strata])])
        whole = [int(table.sum()) for table in rows.counts([((), cliques)])[0]]
        assert found.sum(axis=0).tolist() == whole
        assert (found.max(axis=0) == whole).all()
        assert len({int(place) for place, total in zip(found.argmax(axis=0), whole, strict=True) if total}) == 1


UNIT = st.tuples(
    st.sampled_from([0, 1, 2, 3, None]),
    st.sampled_from([1, 1, 2, 3, 4, 7]),
    st.sampled_from([1, 2, None]),
    st.sampled_from(["n", "s", None]),
    st.sampled_from(["rent", "sale", None]),
)


def units(parents, persons):
    """Return two frames of tuples: key, kind, tenure, area and vacancy; those of `frames` for persons."""
    above = pd.DataFrame(parents, columns=["SERIALNO", "KIND", "TEN", "AREA", "VACS"])
    return above.astype({"SERIALNO": "Int64", "TEN": "Int64"}), frames([], persons)[1]


def read_units(parents, persons):
    return homes.lines(homes.slots(*units(parents, persons), homes.OF_KINDS))


@settings(max_examples=120)
@given(st.lists(UNIT, max_size=8), st.lists(CHILD, max_size=14), st.randoms(use_true_random=False))
def test_units_of_all_kinds_come_from_one_key_alone_and_each_key_is_of_one_kind(parents, persons, random):
    keys = {row[0] for row in (*parents, *persons)}
    alone = [read_units([p for p in parents if p[0] == k], [c for c in persons if c[0] == k]) for k in keys]
    whole = read_units(parents, persons)
    assert whole == (added(*alone) if alone else read_units([], []))
    assert whole == read_units(random.sample(parents, len(parents)), random.sample(persons, len(persons)))
    for each in alone:
        of_kinds = [bool(each["parent"]), bool(each["vacant"]), bool(each["quarters"])]
        assert sum(of_kinds) <= 1
        assert of_kinds[0] or not (each["second"] or each["others"] or each["rest"])
        assert all(sum(row[-1] for row in rows) <= W for rows in each.values())


def test_what_units_of_other_kinds_become():
    """By hand: a vacant unit with a person of its key, quarters with two, one without any, and one without an area."""
    parents = [(1, 2, None, "s", "sale"), (2, 4, None, "n", None), (3, 3, None, "n", None), (4, 2, None, None, "rent")]
    persons = [(1, 1, 40, 1, None), (2, 2, 3, 2, None), (2, 1, 90, 1, None)]
    found, schema = homes.slots(*units(parents, persons), homes.OF_KINDS), homes.OF_KINDS.counted
    named = {
        slot: [
            {name: schema.levels(f"{slot}.{name}")[codes[i]] for name, codes in found[slot].codes.items()}
            for i in range(len(found[slot].owner))
        ]
        for slot in ("vacant", "quarters", "parent")
    }
    assert named == {
        "vacant": [{"KIND": "2", "AREA": "s", "VACS": "sale"}],
        "quarters": [{"KIND": "4", "AREA": "n", "R_AGEP": "65-99", "R_SEX": "1"}],
        "parent": [],
    }
    assert found["vacant"].weight.tolist() == found["quarters"].weight.tolist() == [W]


# Sensitivity, by enumeration of small worlds

PERSONS = (1, 2)  # sex, by which ties in the order are broken
HOUSEHOLDS = [
    (tenure, persons)
    for tenure in (1, 2)
    for size in range(1, 6)
    for persons in itertools.combinations_with_replacement(PERSONS, size)
]
CLIQUES = [
    ("parent.TEN", "parent.SIZE"),
    ("parent.R_SEX",),
    ("second.SEX", "second.TEN"),
    ("others.SEX", "others.ST"),
    ("others.SEX", "others.SIZE"),
    ("rest.SEX", "rest.R_SEX"),
]


@pytest.fixture(scope="module")
def one_household():
    """Table of each clique for each household of up to five persons: what it adds to a file's."""
    above = pd.DataFrame([(i, tenure) for i, (tenure, _) in enumerate(HOUSEHOLDS)], columns=["SERIALNO", "TEN"])
    below = pd.DataFrame(
        [(i, 1, sex) for i, (_, persons) in enumerate(HOUSEHOLDS) for sex in persons],
        columns=["SERIALNO", "SPORDER", "SEX"],
    )
    found = []
    for i in range(len(HOUSEHOLDS)):
        mine = (above[above["SERIALNO"] == i], below[below["SERIALNO"] == i])
        found.append(homes.rows(*mine, homes.PLAIN).counts([((), CLIQUES)])[0])
    whole = homes.rows(above, below, homes.PLAIN).counts([((), CLIQUES)])[0]
    for i, table in enumerate(whole):  # households add up
        assert np.array_equal(table, sum(each[i] for each in found))
    return found


def test_a_household_adds_at_most_the_weight_of_a_row_to_a_table_and_some_add_all_of_it(one_household):
    for i, clique in enumerate(CLIQUES):
        sums = [int(tables[i].sum()) for tables in one_household]
        assert min(int(tables[i].min()) for tables in one_household) >= 0
        assert max(sums) == W, clique


def test_an_exchange_moves_a_table_by_at_most_the_root_of_two_weights(one_household):
    for i in range(len(CLIQUES)):
        farthest = max(int(((one[i] - other[i]) ** 2).sum()) for one, other in itertools.combinations(one_household, 2))
        assert farthest <= 2 * W**2
    assert farthest == 2 * W**2


def persons_apart():
    """Yield pairs of numbers of households that differ in one person: one more, or another in its place."""
    known = {household: number for number, household in enumerate(HOUSEHOLDS)}
    for (tenure, persons), number in known.items():
        for more in PERSONS:
            grown = tenure, tuple(sorted((*persons, more)))
            if grown in known:
                yield number, known[grown]
            for i in range(len(persons)):
                yield number, known[tenure, tuple(sorted((*persons[:i], more, *persons[i + 1 :])))]


def test_a_person_more_or_other_is_within_an_exchange_and_changes_more_than_one_row(one_household):
    """The price of an exchanged household covers one person; that of a household more or fewer does not."""
    found = {
        i: max(int(((one_household[a][i] - one_household[b][i]) ** 2).sum()) for a, b in persons_apart())
        for i in range(len(CLIQUES))
    }
    assert max(found.values()) <= 2 * W**2
    assert found[0] == 2 * W**2  # its size is another


STEPS = {Neighbours.ADD_REMOVE: 0, Neighbours.REPLACE: 1}


@pytest.mark.parametrize("norm", ["l1", "largest"])
@pytest.mark.parametrize("neighbours", STEPS)
def test_scores_of_choices_move_by_no_more_than_their_price(norm, neighbours, one_household):
    """All files of one household more, or with one exchanged, beside two others that stay: in exact integers."""
    schema, rng = homes.PLAIN.counted, np.random.default_rng(0)
    at = Setting(schema, neighbours)
    farthest = Fraction(0)
    for i, clique in enumerate(CLIQUES):
        around = one_household[3][i] + one_household[-1][i]
        reference = around + rng.integers(-40, 40, around.shape)
        question = Choose((Distance(clique, reference.astype(float), norm=norm),), 1.0)
        question.check(schema)
        tables = [around + tables[i] for tables in one_household]
        pairs = (
            ((around, each) for each in tables)
            if neighbours == Neighbours.ADD_REMOVE
            else (itertools.combinations(tables, 2))
        )
        scores = {id(each): Distance.units(question.scores, _exact(each), at, {})[0][0] for each in (around, *tables)}
        _, reach = Distance.units(question.scores, _exact(around), at, {})
        moved = max(abs(scores[id(one)] - scores[id(other)]) for one, other in pairs)
        assert moved <= reach
        farthest = max(farthest, Fraction(moved, reach))
    assert farthest > (Fraction(1, 3) if norm == "l1" else Fraction(1, 2))


def _exact(table):
    from stratsynth.questions.reading import Exact

    return Exact([table])


def test_tables_cost_what_a_household_moves_and_not_the_square_of_its_persons(one_household):
    schema = homes.PLAIN.counted
    at = Setting(schema, Neighbours.ADD_REMOVE)
    for i, clique in enumerate(CLIQUES):
        question = Counts((clique,), 0.5)
        (charge,) = question.charges(schema, (), Neighbours.ADD_REMOVE)
        assert charge.sensitivity[Neighbours.ADD_REMOVE] == W
        empty = np.zeros_like(one_household[0][i])
        answer = question.answer(at, _exact(empty), SeededEntropy(0), {})
        costs = [question.cost(at, _exact(empty), _exact(tables[i]), answer) for tables in one_household]
        assert max(costs) <= charge.amount
        assert max(costs) > charge.amount * 0.999


def test_all_rows_of_the_schema_are_read_by_it_and_by_no_other():
    assert isinstance(homes.SCHEMA.counted, CountedTables)
    rows, wanted = homes.rows(*homes.tables(40)), Wanted(cliques=[("parent.NP",), ("rest.AGEP", "rest.NP")])
    (exact,) = Reader(rows, SeededEntropy(0)).each([((), wanted)])
    assert [int(table.sum()) % W for table in exact.tables[:1]] == [0]
