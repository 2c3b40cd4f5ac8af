"""Households of the built-in census: whole, believable, and the same whatever else is made."""

import numpy as np
import pandas as pd
import pytest

from stratsynth import census
from stratsynth.errors import UsageError
from stratsynth.models.rules import broken
from stratsynth.schema.encoding import encode


@pytest.fixture(scope="module")
def tables():
    return census.make_households(20_000, seed=2)


@pytest.fixture(scope="module")
def joined(tables):
    households, persons = tables
    return persons.merge(households, on="SERIALNO")


def first(joined):
    return joined[joined["SPORDER"] == 1].set_index("SERIALNO")


def second(joined):
    return joined[joined["SPORDER"] == 2].set_index("SERIALNO")


def test_a_household_depends_on_seed_and_number_alone(tables):
    for start in (0, 5_000, 19_990):
        households, persons = census.make_households(10, seed=2, offset=start)
        own = tables[0].iloc[start : start + 10].reset_index(drop=True)
        pd.testing.assert_frame_equal(households, own)
        theirs = tables[1][tables[1]["SERIALNO"].isin(own["SERIALNO"])].reset_index(drop=True)
        pd.testing.assert_frame_equal(persons, theirs)
    other = census.make_households(10, seed=3)[0]
    assert not other["HINCP"].equals(tables[0]["HINCP"].head(10))


@pytest.mark.parametrize("rows", [0, 1])
def test_nobody_and_one(rows):
    households, persons = census.make_households(rows)
    assert len(households) == rows
    assert persons["SERIALNO"].nunique() == rows


@pytest.mark.parametrize("keys", [{"rows": -1}, {"rows": 1, "seed": "a"}, {"rows": 1, "offset": 0.5}])
def test_bad_numbers_are_refused(keys):
    with pytest.raises(UsageError):
        census.make_households(**keys)


@pytest.mark.parametrize("which", [0, 1], ids=["households", "persons"])
def test_every_row_is_of_the_schema_and_keeps_its_rules(tables, which):
    import pyarrow as pa

    schema = (census.household_schema(), census.person_schema())[which]
    assert list(tables[which].columns)[1 + which :] == list(schema.names)
    coded = encode(schema, pa.Table.from_pandas(tables[which], preserve_index=False))
    assert len(coded.codes[schema.names[0]]) == len(tables[which])
    assert not broken(schema, dict(coded.codes)).any()


def test_counts_and_sums_are_those_of_the_persons(tables):
    households, persons = tables
    index, by = households["SERIALNO"], persons.groupby("SERIALNO")
    assert (by.size().reindex(index).to_numpy() == households["NP"].to_numpy()).all()
    assert (by["PINCP"].sum().reindex(index).to_numpy() == households["HINCP"].to_numpy()).all()
    young = ((persons["AGEP"] < 18) & (persons["SPORDER"] > 1)).groupby(persons["SERIALNO"]).sum()
    assert (young.reindex(index).to_numpy() == households["N18"].to_numpy()).all()
    assert (persons["SPORDER"] == by.cumcount() + 1).all()


def test_types_of_households_are_what_they_say(joined):
    ref, next_ = first(joined), second(joined)
    couple = next_["HHT"] == "1"
    assert (next_["MAR"][couple] == "1").all()
    assert (ref.loc[next_.index]["MAR"][couple] == "1").all()
    assert ((ref["NP"] == 1) == ref["HHT"].isin(["4", "6"])).all()
    men = ref["HHT"].isin(["2", "4", "5"])
    assert (ref["SEX"][men] == "1").all()
    assert (ref["SEX"][ref["HHT"].isin(["3", "6", "7"])] == "2").all()


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("couples within five years", 0.75, 0.9),
        ("same race of couples", 0.9, 0.97),
        ("same sex of couples", 0.005, 0.02),
        ("65 and over alone", 0.07, 0.13),
        ("one parent", 0.03, 0.07),
        ("size", 2.1, 2.6),
        ("white", 0.68, 0.78),
    ],
)
def test_structures_are_believable(joined, name, low, high):
    ref, next_ = first(joined), second(joined)
    couple = next_[next_["HHT"] == "1"]
    beside = ref.loc[couple.index]
    adults = (joined["AGEP"] >= 18).groupby(joined["SERIALNO"]).sum()
    found = {
        "couples within five years": ((couple["AGEP"] - beside["AGEP"]).abs() <= 5).mean(),
        "same race of couples": (couple["RAC1P"] == beside["RAC1P"]).mean(),
        "same sex of couples": (couple["SEX"] == beside["SEX"]).mean(),
        "65 and over alone": ((ref["NP"] == 1) & (ref["AGEP"] >= 65)).mean(),
        "one parent": ((ref["N18"] > 0) & (adults == 1)).mean(),
        "size": ref["NP"].mean(),
        "white": (joined["RAC1P"] == "1").mean(),
    }[name]
    assert low < found < high


def test_children_are_younger_than_the_householder(joined):
    young = joined[(joined["AGEP"] < 18) & (joined["SPORDER"] > 1)]
    gap = first(joined)["AGEP"].loc[young["SERIALNO"]].to_numpy() - young["AGEP"]
    assert gap.min() >= 15
    assert 24 < gap.median() < 36
    assert np.quantile(gap, 0.9) < 45
