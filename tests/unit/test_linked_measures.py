"""Scores of two linked tables: 0 for the same rows, the ceiling for people at random, and floors by bootstrap."""

import numpy as np
import pandas as pd
import pytest

from stratsynth.census import acs, household_schema, linked_schema, make_households, person_schema
from stratsynth.errors import UsageError
from stratsynth.evaluation import LinkedColumns, broken_rules, household_shares, linked_errors, linked_means
from stratsynth.evaluation.linked.rows import LinkedCodes
from stratsynth.evaluation.linked.tables import KINDS, tables_of
from stratsynth.schema import Rule

COLUMNS = LinkedColumns(
    parent=household_schema().restrict(["NP", "HHT", "HINCP"]),
    child=person_schema().restrict(["AGEP", "SEX", "RAC1P", "PINCP"]),
    key="SERIALNO",
    order="SPORDER",
    difference="AGEP",
    counted={"children": {"AGEP": "..17"}},
    summed=("HINCP", "PINCP"),
    group="RAC1P",
    rules={"parent": (Rule(when={"HHT": ("4", "6")}, never={"NP": ">= 2"}),)},
)
ROWS = {
    "households": [("a", 3, "1", 90), ("b", 1, "4", 10), ("c", 4, "3", 30), ("empty", 1, "4", 0)],
    "persons": [
        ("c", 2, 12, "1", "1", None),
        ("a", 2, 44, "2", "1", 40),
        ("a", 1, 40, "1", "1", 50),
        ("a", 3, 10, "1", "2", None),
        ("b", 1, 70, "1", "2", 10),
        ("c", 1, 45, "2", "1", 20),
        ("c", 4, 1, "1", "1", None),
        ("c", 3, 20, "2", "1", 10),
        ("nobody", 1, 30, "1", "1", 0),
    ],
}


@pytest.fixture(scope="module")
def real():
    return make_households(4_000, seed=7)


@pytest.fixture(scope="module")
def small():
    households = pd.DataFrame(ROWS["households"], columns=["SERIALNO", "NP", "HHT", "HINCP"])
    names = ["SERIALNO", "SPORDER", "AGEP", "SEX", "RAC1P", "PINCP"]
    return households, pd.DataFrame(ROWS["persons"], columns=names)


def by_table(kind):
    return {table.name: table for table in tables_of(COLUMNS, (kind,))}


def test_rows_lie_by_parent_and_in_order_without_orphans(small):
    rows = LinkedCodes.read(*small, COLUMNS)
    assert rows.size.tolist() == [3, 1, 4]
    assert rows.place.tolist() == [0, 1, 2, 0, 0, 1, 2, 3]
    assert rows.numbers["AGEP"].tolist() == [40, 44, 10, 70, 45, 12, 20, 1]


def counts(rows, name, kind="W"):
    cells = by_table(kind)[name].cells(rows)
    return cells.size, sorted(cells.cell.tolist())


def test_tables_within_a_household_pair_the_right_rows(small):
    rows = LinkedCodes.read(*small, COLUMNS)
    sex = {"first x second": [(0, 1), (1, 0)], "first x later": [(0, 0), (1, 1), (1, 0)]}
    sex["row before x later"] = [(1, 0), (0, 1), (1, 0)]
    for name, pairs in sex.items():
        assert counts(rows, f"SEX: {name}") == (4, sorted(2 * a + b for a, b in pairs))
    ends = np.array(COLUMNS.ends)
    apart = {"first x second": [4, -33], "first x later": [-30, -25, -44], "row before x later": [-34, 8, -19]}
    for name, years in apart.items():
        found = sorted(np.searchsorted(ends, years, side="right").tolist())
        assert counts(rows, f"AGEP: difference, {name}") == (len(ends) + 1, found)
    # one child of three, none of one, two of four
    assert counts(rows, "children x size")[1] == sorted([1 * 8 + 2, 0, 2 * 8 + 3])


def test_the_same_rows_in_another_order_have_no_error(real):
    households, persons = real
    again = households.sample(frac=1, random_state=1), persons.sample(frac=1, random_state=2)
    errors = linked_errors(real, again, COLUMNS, repetitions=1)
    assert set(errors["kind"]) == set(KINDS)
    assert errors["value"].max() == 0
    assert (linked_means(errors)["floor"] > 0).all()


def test_other_households_are_near_the_floor_and_people_at_random_at_the_ceiling(real):
    others = make_households(4_000, seed=8)
    rng = np.random.default_rng(0)
    mixed = real[1].copy()
    names = list(COLUMNS.child.names)
    mixed[names] = mixed[names].iloc[rng.permutation(len(mixed))].to_numpy()
    near, far = (
        linked_means(linked_errors(real, made, COLUMNS)).set_index("kind") for made in (others, (real[0], mixed))
    )
    # two samples differ by some sqrt(2) times what a bootstrap does
    assert (near["value"] < 2.2 * near["floor"]).all()
    assert (near["value"] < near["ceiling"])[["W", "S", "G", "HP"]].all()
    assert np.allclose(far["value"][["W", "S", "HP"]], far["ceiling"][["W", "S", "HP"]], atol=0.02)
    assert (far["value"][["H", "P2", "P3"]] == 0).all()
    assert far["value"]["W"] > 5 * near["value"]["W"]


def test_structures_by_hand(small):
    found = household_shares(small, small, COLUMNS).set_index("structure")
    assert found["real"].to_dict() == pytest.approx(
        {
            "couples within 5 years": 1.0,
            "one adult with children": 0.0,
            "65 and over, alone": 1 / 3,
            "three generations": 1 / 2,
            "all of one RAC1P": 1 / 2,
            "HINCP is the sum": 1.0,
        }
    )
    assert found["synthetic"].equals(found["real"])


def test_structures_of_households_have_chance_beside_them(real):
    found = household_shares(real, make_households(4_000, seed=9), COLUMNS).set_index("structure")
    assert (found["chance"] < 0.02).all()
    assert ((found["real"] - found["synthetic"]).abs() <= 6 * 1.5 * found["chance"] + 1e-9).all()


def test_broken_rules_are_counted_where_they_are(small, real):
    assert set(broken_rules(real, COLUMNS).values()) == {0}
    wrong = small[0].assign(HHT="4", NP=[3, 1, 4, 1])
    assert broken_rules((wrong, small[1]), COLUMNS) == {"parent": 2, "child": 0, "across, parent": 2}


def test_nothing_to_compare_is_not_estimable(small):
    errors = linked_errors(small, (small[0].head(0), small[1].head(0)), COLUMNS, repetitions=1)
    assert set(errors["status"]) == {"not_estimable"}
    assert errors["value"].isna().all()
    assert len(linked_means(errors)) == 0


def test_a_table_without_a_column_is_refused(small):
    with pytest.raises(UsageError, match="lacks the column SEX"):
        linked_errors(small, (small[0], small[1].drop(columns="SEX")), COLUMNS)


def test_columns_come_from_a_linked_schema():
    columns = LinkedColumns.of(linked_schema(), group="RAC1P")
    assert columns.counted == {"N18": {"AGEP": "..17"}}
    assert (columns.summed, columns.difference, columns.key, columns.order) == (
        ("HINCP", "PINCP"),
        "AGEP",
        "SERIALNO",
        "SPORDER",
    )
    kinds = LinkedColumns.of(acs.linked_schema(year=2024))
    assert "TYPEHUGQ" not in kinds.parent.columns
