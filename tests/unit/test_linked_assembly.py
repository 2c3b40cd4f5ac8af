"""Households assembled from models: counts and sums are exact, rules hold, and structures are those of the data."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers import two_tables
from stratsynth.adapters.linked import Assembly, SumRole
from stratsynth.adapters.linked.tables import to_tables
from stratsynth.census import household_schema, make_households, person_schema
from stratsynth.errors import MechanismError, SchemaError, Unsupported

CHILD = person_schema().restrict(["AGEP", "SEX", "MAR", "PINCP"])
PARENT = household_schema().without(["AREA"])
COLUMNS = ["SERIALNO", "SPORDER", *CHILD.names]


@pytest.fixture(scope="module")
def homes():
    households, persons = make_households(3_000, seed=1)
    return households[["SERIALNO", *PARENT.names]], persons[COLUMNS]


@pytest.fixture(scope="module")
def roles():
    return two_tables.household_roles(PARENT, CHILD)


@pytest.fixture(scope="module")
def models(roles, homes):
    return two_tables.household_models(roles, two_tables.Counted(roles, *homes, "SERIALNO", "SPORDER"))


@pytest.fixture(scope="module")
def drawn(roles, models):
    return Assembly(roles, models).draw(6_000, np.random.default_rng(0))


@pytest.fixture(scope="module")
def frames(roles, drawn):
    tables = to_tables(roles, drawn[0], np.random.default_rng(1), key="SERIALNO", order="SPORDER")
    return tuple(table.to_pandas() for table in tables)


def share(values):
    return values.value_counts(normalize=True)


def distance(real, synthetic):
    return share(real).sub(share(synthetic), fill_value=0).abs().sum() / 2


def pairs(persons):
    """The reference person beside the second one."""
    first, second = (persons[persons["SPORDER"] == i].set_index("SERIALNO") for i in (1, 2))
    return first.loc[second.index], second


# exact


def test_sums_and_counts_are_those_of_the_persons(drawn, frames):
    households, persons = frames
    assert drawn[1].parents == len(households) == 6_000
    assert drawn[1].rows == len(persons)
    by = persons.groupby("SERIALNO")
    index = households["SERIALNO"]
    assert (by["PINCP"].sum().reindex(index).to_numpy() == households["HINCP"].to_numpy()).all()
    assert (by.size().reindex(index).to_numpy() == households["NP"].to_numpy()).all()
    young = ((persons["AGEP"] < 18) & (persons["SPORDER"] > 1)).groupby(persons["SERIALNO"]).sum()
    assert (young.reindex(index).to_numpy() == households["N18"].to_numpy()).all()
    assert (persons["SPORDER"] == by.cumcount() + 1).all()


def test_children_are_as_many_as_the_parent_model_drew(drawn):
    rows = drawn[0]
    assert (np.minimum(rows.counts["N18"], 5) == rows.parent["N18"]).all()
    assert (np.minimum(rows.counts["NP"], 8) - 1 == rows.parent["NP"]).all()


def test_numbers_lie_in_the_bins_of_their_codes(roles, drawn):
    rows = drawn[0]
    for name, numbers in rows.numbers.items():
        column = roles.number(name)
        real = ~np.isnan(numbers)
        assert (real == (rows.child[name] < len(column.extents))).all()
        low, top = np.array(column.extents)[rows.child[name][real]].T
        assert ((low <= numbers[real]) & (numbers[real] <= top)).all()


def test_no_rule_is_broken(homes, frames):
    for households, persons in (homes, frames):
        second = pairs(persons)[1]
        kind = households.set_index("SERIALNO")["HHT"]
        assert (second["MAR"][kind.loc[second.index] == "1"] == "1").all()
        young = persons["AGEP"] < 15
        later = persons["SPORDER"] > 1
        assert (persons["MAR"][young & later] == "5").all()
        assert (persons["PINCP"].isna() == young)[later].all()
        alone = households[households["NP"] == 1]
        assert set(alone["HHT"]) <= {"4", "6"}
        assert not set(households["HHT"][households["NP"] > 1]) & {"4", "6"}


# right


@pytest.mark.parametrize(
    ("limit", "table"),
    [
        (0.05, lambda h, p: h["NP"]),
        (0.05, lambda h, p: h["HHT"]),
        (0.06, lambda h, p: h["N18"]),
        (0.10, lambda h, p: pairs(p)[1]["AGEP"] // 10),
        (0.06, lambda h, p: p["AGEP"] // 10),
        (0.05, lambda h, p: p["MAR"]),
        (0.12, lambda h, p: ((pairs(p)[0]["AGEP"] - pairs(p)[1]["AGEP"]) // 5).clip(-6, 6)),
        (0.10, lambda h, p: h["HINCP"] // 20_000),
    ],
    ids=["size", "type", "children", "second", "ages", "marriage", "difference", "income"],
)
def test_tables_are_near_those_of_the_data(homes, frames, limit, table):
    assert distance(table(*homes), table(*frames)) < limit


def test_couples_are_of_an_age_and_the_sum_is_mostly_in_its_band(homes, drawn, frames):
    for households, persons in (homes, frames):
        first, second = pairs(persons)
        couple = households.set_index("SERIALNO")["HHT"].loc[second.index] == "1"
        assert 0.75 < ((first["AGEP"] - second["AGEP"]).abs() <= 5)[couple].mean() < 0.9
    assert drawn[1].other_bands < 0.1 * drawn[1].parents
    assert sum(drawn[1].backed_off.values()) < 0.02 * drawn[1].rows


# conditions, blocks and nobody


def test_a_condition_holds_on_derived_columns_too(roles, models):
    for where in ({"NP": {4, 5}}, {"HINCP": {9, 10}, "HHT": {0}}, {"N18": {2}}):
        rows, _ = Assembly(roles, models).draw(300, np.random.default_rng(0), where)
        total = np.searchsorted(PARENT.column("HINCP").breaks, rows.total, side="right") - 1
        found = {"NP": rows.counts["NP"] - 1, "N18": rows.counts["N18"], "HINCP": total, "HHT": rows.parent["HHT"]}
        assert all(set(found[name]) <= codes for name, codes in where.items())
        assert len(rows.counts["NP"]) == 300


def test_an_impossible_condition_is_an_error(roles, models):
    with pytest.raises(MechanismError, match="condition"):
        Assembly(roles, models).draw(3, np.random.default_rng(0), {"NP": {0}, "HHT": {0}})


REST = (("HHT", "AGEP"), ("R_AGEP", "AGEP"), ("AGEP", "MAR"), ("AGEP", "PINCP"), ("SHR", "PINCP"), ("AGEP", "SEX"))
"""Tables of a model that draws every further person by itself."""


def test_persons_drawn_by_themselves_add_up_to_the_household_too(roles, models, homes):
    counted = two_tables.Counted(roles, *homes, "SERIALNO", "SPORDER")
    further = pd.concat([counted.frame("second"), counted.frame("others")])
    rest = two_tables.fitted(roles, further, REST, two_tables.person_rules(roles.child, ""))
    alone = replace(models, second=None, others=rest)
    rows, given_up = Assembly(roles, alone).draw(3_000, np.random.default_rng(0))
    assert (np.minimum(rows.counts["N18"], 5) == rows.parent["N18"]).all()
    assert (rows.total == np.bincount(rows.owner, np.nan_to_num(rows.numbers["PINCP"]))).all()
    assert given_up.other_bands < 0.15 * given_up.parents
    column = roles.number("PINCP")
    real = ~np.isnan(rows.numbers["PINCP"])
    low, top = np.array(column.extents)[rows.child["PINCP"][real]].T
    assert ((low <= rows.numbers["PINCP"][real]) & (rows.numbers["PINCP"][real] <= top)).all()


def test_without_the_others_sum_incomes_are_as_they_are_drawn(roles, models, homes):
    counted = two_tables.Counted(roles, *homes, "SERIALNO", "SPORDER")
    cliques = [tuple(c for c in clique if c != "SHR") for clique in two_tables.HOUSEHOLD]
    parent = two_tables.fitted(roles, counted.frame("parent"), cliques)
    further = pd.concat([counted.frame("second"), counted.frame("others")])
    others = two_tables.fitted(roles, further, [c for c in REST if "SHR" not in c])
    rows, _ = Assembly(roles, replace(models, parent=parent, second=None, others=others)).draw(
        500, np.random.default_rng(0)
    )
    assert (rows.total == np.bincount(rows.owner, np.nan_to_num(rows.numbers["PINCP"]))).all()


def test_blocks_are_drawn_one_after_another(roles, models):
    parts = list(Assembly(roles, models).blocks(250, np.random.default_rng(0), block=100))
    assert [len(part.counts["NP"]) for part in parts] == [100, 100, 50]
    first, second = (
        to_tables(roles, part, np.random.default_rng(1), key="K", start=s)[1]
        for part, s in zip(parts, (0, 100), strict=False)
    )
    assert set(first["K"].to_pylist()) == set(range(1, 101))
    assert set(second["K"].to_pylist()) == set(range(101, 201))


def test_one_seed_is_one_draw(roles, models):
    one, two = (Assembly(roles, models).draw(200, np.random.default_rng(5))[0] for _ in range(2))
    assert all((one.child[name] == two.child[name]).all() for name in one.child)
    assert (one.total == two.total).all()


def test_nobody(roles, models):
    rows, counted = Assembly(roles, models).draw(0, np.random.default_rng(0))
    assert [len(table) for table in to_tables(roles, rows, np.random.default_rng(0), key="K")] == [0, 0]
    assert counted.to_dict()["rows"] == 0


def test_sizes_beyond_the_last_level_follow_the_public_tail(roles, models):
    tailed = replace(roles, tail=(0.5, 0.5), most=9)
    rows, _ = Assembly(tailed, models).draw(4_000, np.random.default_rng(0), {"NP": {7}})
    assert abs((rows.counts["NP"] == 9).mean() - 0.5) < 0.06
    assert set(rows.counts["NP"]) == {8, 9}


# what is refused


def test_a_model_of_further_rows_is_needed_where_there_are_any(roles, models):
    with pytest.raises(Unsupported, match="third child row"):
        Assembly(roles, replace(models, others=None)).draw(50, np.random.default_rng(0))


@pytest.mark.parametrize(
    "keys",
    [
        {"size": "N18"},
        {"size": "none"},
        {"state": "NP"},
        {"stepped": "SEX"},
        {"differences": (1, 1)},
        {"tail": ()},
        {"tail": (-1.0,)},
        {"summed": SumRole(column="HINCP", of="MAR", ends=(0,))},
    ],
    ids=str,
)
def test_roles_are_checked(roles, keys):
    with pytest.raises(SchemaError):
        replace(roles, **keys)
