"""Schemas of two linked tables: what they declare, what is counted by them, and what they refuse."""

from dataclasses import replace

import pytest

import stratsynth as ss
from helpers import homes
from stratsynth.adapters.engine.structure import forbidden
from stratsynth.errors import SchemaError
from stratsynth.schema.counted_tables import REST, SLOTS, CountedTables, SharedWeight, slot_levels
from stratsynth.schema.linked import DIFFERENCES, LinkedSchema
from stratsynth.schema.weight import RowWeight

RULED = replace(
    homes.SCHEMA,
    parent=replace(
        homes.HOUSEHOLD,
        columns={**homes.HOUSEHOLD.columns, "NP": ss.Numeric(1, 20, integer=True, edges=(1, 2, 3, 8, 21))},
        rules=(ss.schema.Rule(when={"NP": ">= 3"}, never={"TEN": "2"}),),
    ),
    rules=(ss.schema.Rule(when={"second.TEN": "1"}, never={"second.SEX": "2"}),),
)


@pytest.mark.parametrize("schema", [homes.SCHEMA, homes.PLAIN, RULED], ids=["all", "least", "rules"])
def test_a_file_holds_all_of_it(schema, tmp_path):
    file = tmp_path / "homes.toml"
    file.write_text(schema.to_toml(), encoding="utf-8")
    assert LinkedSchema.load(file) == schema
    assert hash(LinkedSchema.load(file)) == hash(schema)
    counted = ss.Schema.load(file)  # as a release's model folder has it
    assert isinstance(counted, CountedTables)
    assert counted == schema.counted
    assert counted.to_toml() == schema.to_toml()


def test_other_schemas_have_other_hashes():
    others = [
        replace(homes.SCHEMA, most=8),
        replace(homes.SCHEMA, differences=(0.0, 5.0)),
        replace(homes.SCHEMA, occupied={}),
        replace(homes.SCHEMA, previous=(18.0, 65.0)),
        replace(homes.SCHEMA, weight=12),
        replace(homes.SCHEMA, derived={**homes.SCHEMA.derived, "N18": ss.ChildCount(where={"AGEP": "..29"})}),
    ]
    hashes = {each.counted.sha256 for each in (homes.SCHEMA, *others)}
    assert len(hashes) == 7
    assert homes.SCHEMA.counted.of("second").sha256 != homes.SCHEMA.counted.of("others").sha256


def test_a_file_says_every_band_so_that_other_defaults_change_no_release():
    text = homes.SCHEMA.to_toml()
    assert "previous = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]" in text
    assert "left = [0.0, 1.0," in text
    assert "weight = 60" in text
    assert replace(homes.SCHEMA, weight=12).counted.row_weight.most == 12


def test_a_comparison_is_a_condition_of_a_count():
    text = homes.SCHEMA.to_toml().replace('[tables.household.derived.N18.where]\nAGEP = "..17"', "")
    text = text.replace('count = "person"\nbesides', 'count = "person"\nwhere = "AGEP < 18"\nbesides')
    from stratsynth.schema.linked_toml import parse

    assert parse(text) == homes.SCHEMA
    with pytest.raises(SchemaError, match="no comparison"):
        parse(text.replace("AGEP < 18", "young"))


def test_counted_tables_have_these_columns():
    names = {slot: list(slot_levels(homes.SCHEMA, slot)) for slot in SLOTS}
    parent = ["TEN", "HINCP", "KIND", "NP", "N18", "R_AGEP", "R_SEX", "R_PINCP", "SHR"]
    assert names["parent"] == parent
    assert names["second"] == [*parent, "AGEP", "SEX", "PINCP", "DIF", "ALL"]
    assert names["others"] == [*parent, "ST", "REM", "PREV", "AGEP", "SEX", "PINCP", "DIF", "ALL"]
    assert names[REST] == [*parent, "AGEP", "SEX", "PINCP"]
    levels = slot_levels(homes.SCHEMA, "others")
    assert levels["NP"] == ("1", "2", "3", "4", "5", "6+")
    assert levels["N18"] == ("0", "1", "2", "3+")
    assert levels["ST"] == ("0/1", "0/2+", "1/0", "1/1", "1/2+", "2+/0", "2+/1", "2+/2+")
    assert len(levels["DIF"]) == len(DIFFERENCES) + 2
    assert homes.PLAIN.size == "SIZE"
    assert slot_levels(homes.PLAIN, "others")["ST"] == ("1", "2+")


def test_the_unit_is_a_key_that_weighs_as_one_row():
    unit = homes.SCHEMA.counted.unit
    assert isinstance(unit, SharedWeight)
    assert (unit.column, unit.max_rows, unit.tables) == ("SERIALNO", 1, ("household", "person"))
    assert homes.SCHEMA.counted.row_weight.most == 60


def test_rules_are_those_of_counted_levels():
    found = [(dict(rule.when), dict(rule.never)) for rule in RULED.counted.rules]
    assert ({"parent.NP": ("3", "4", "5", "6+")}, {"parent.TEN": ("2",)}) in found
    assert ({"second.TEN": "1"}, {"second.SEX": "2"}) in found
    assert any(never == {"parent.KIND": ("2",)} for _, never in found)  # of a kind that is not counted


@pytest.mark.parametrize("schema", [homes.SCHEMA, replace(homes.SCHEMA, differences=(-7.5, 0.0, 0.5, 20.0))])
def test_no_row_that_there_can_be_breaks_a_rule_of_its_numbers(schema):
    """Differences and sums of made-up households lie in no cell that the counted columns' meaning forbids."""
    rows = homes.rows(*homes.tables(2_000, seed=3), schema)
    zeros = forbidden(schema.counted)
    for clique in (
        ("parent.HINCP", "parent.R_PINCP", "parent.SHR"),
        ("second.R_AGEP", "second.AGEP", "second.DIF"),
        ("others.PREV", "others.AGEP", "others.DIF"),
        ("second.SHR", "second.PINCP", "second.ALL"),
        ("others.REM", "others.PINCP", "others.ALL"),
    ):
        (found,) = rows.counts([((), [clique])])[0]
        assert not found.ravel()[zeros[clique]].any()
        assert len(zeros[clique]) > found.size / 4  # and many cells are forbidden
        assert found.any()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"parent": "households.toml"}, "must be a Schema"),
        ({"child": replace(homes.PERSON, unit=ss.Unit(column="P", max_rows=2))}, "leave `unit`"),
        ({"parent": replace(homes.HOUSEHOLD, row_weight=RowWeight(9, "WGTP"))}, "not proven; leave `weight` out"),
        ({"key": "TEN"}, "must not be released"),
        ({"order": ()}, "must not be empty"),
        ({"order": "SERIALNO"}, "is the key"),
        ({"most": 0}, "whole number"),
        ({"weight": 2_000}, "weight must be"),
        ({"previous": (30.0, 20.0)}, "ascending"),
        ({"most": 4}, "its top must be at most 4"),
        ({"names": ("home", "home")}, "two different words"),
        ({"names": ("a home", "person")}, "two different words"),
        ({"derived": {"HINCP": ss.ChildSum(column="SEX")}}, "no numeric column"),
        ({"derived": {"TEN": ss.ChildSum(column="PINCP")}}, "numeric column of that name"),
        ({"derived": {"N": ss.ChildCount(where={"AGEP": "..20"})}}, "counted in bins"),
        ({"derived": {"N": ss.ChildCount(where={"AGE": "..17"})}}, "no column 'AGE'"),
        ({"derived": {"N": 3}}, "ChildCount"),
        ({"difference": "SEX"}, "no numeric column"),
        ({"differences": (3, 1)}, "ascending"),
        ({"occupied": {"KIND": ("9",)}}, "no level '9'"),
        ({"occupied": {"KIND": ("1",), "TEN": ("1",)}}, "one column"),
        ({"rules": (ss.schema.Rule(when={"second.SEX": "1"}, never={"parent.TEN": "1"}),)}, "one counted table"),
        ({"rules": (ss.schema.Rule(when={"second.SEX": "1"}, never={"second.NO": "1"}),)}, "second.NO"),
        ({"child": ss.Schema({"TEN": ss.Categorical(levels=("1",))}), "derived": {}, "difference": None}, "rename it"),
    ],
)
def test_what_cannot_be_meant_is_refused(change, why):
    with pytest.raises(SchemaError, match=why):
        replace(homes.SCHEMA, **change)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('parent = "household"', "", "one names the other as its parent"),
        ('table = "household"', 'table = "person"', "protect a household with all its rows"),
        ('"second"', '"partner"', "slots must be"),
        ('sum = "person.PINCP"', 'sum = "household.PINCP"', "column of the person"),
        ('count = "person"\ntop', 'count = "people"\ntop', 'count must be "person"'),
        ("key =", "keys =", "unknown key 'keys'"),
        ('format = "stratsynth-schema/2"', 'format = "stratsynth-schema/3"', "format must be"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(old, new, why):
    from stratsynth.schema.linked_toml import parse

    assert old in homes.SCHEMA.to_toml()
    with pytest.raises(SchemaError, match=why):
        parse(homes.SCHEMA.to_toml().replace(old, new, 1))
