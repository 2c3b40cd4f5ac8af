"""Schemas of households with their persons: of the built-in census and of the survey's two files."""

import pytest

from stratsynth import census, cli
from stratsynth.census import acs
from stratsynth.errors import UsageError
from stratsynth.schema.linked_toml import load, parse


def test_the_built_in_one_fits_the_built_in_tables():
    schema = census.linked_schema()
    households, persons = census.make_households(50)
    assert set(schema.parent.names) <= set(households)
    assert {*schema.child.names, schema.key, *schema.order} <= set(persons)
    assert schema.size == "NP"
    assert parse(schema.to_toml()) == schema


@pytest.mark.parametrize(("year", "kind"), [(2018, "TYPE"), (2024, "TYPEHUGQ")])
def test_the_surveys_counts_occupied_units(year, kind):
    schema = acs.linked_schema(year=year)
    assert schema.occupied == {kind: ("1",)}
    assert schema.parent.names == (kind, "TEN", "BLD", "HHT", "HINCP")
    assert list(schema.derived) == ["NP", "N18", "HINCP"]
    assert len(schema.rules) == 9


def test_the_surveys_vacant_units_and_quarters_are_kinds(tmp_path):
    schema = acs.linked_schema(households=["HINCP", "TEN", "BLD", "PUMA"], year=2024, state="PA", kinds=True)
    assert schema.occupied == {"KIND": ("1",)}
    assert schema.absent == ("VACS",)
    assert {name: schema.columns_of(name) for name in ("occupied", *schema.kinds)} == {
        "occupied": ("KIND", "HINCP", "TEN", "BLD", "PUMA"),
        "vacant": ("KIND", "BLD", "PUMA", "VACS"),
        "quarters": ("KIND", "PUMA"),
    }
    assert [kind.single for kind in schema.kinds.values()] == [False, True]
    out = tmp_path / "schema.toml"
    words = ["--households", "--kinds", "--household-columns", "HINCP,TEN,BLD,PUMA", "--state", "PA", "--year", "2024"]
    assert cli.run(["census", "schema", *words, "-o", str(out)]) == 0
    assert load(out) == schema
    with pytest.raises(UsageError, match="occupied units have no VACS"):
        acs.linked_schema(households=["HINCP", "VACS"], year=2024)


def test_fewer_columns_have_fewer_rules():
    schema = acs.linked_schema(["AGEP", "SEX", "PINCP"], ["HINCP", "NP"], year=2024)
    assert len(schema.rules) == 5
    assert schema.parent.names == ("TYPEHUGQ", "HINCP")


@pytest.mark.parametrize(
    ("columns", "households", "message"),
    [
        (["SEX", "PINCP"], ["HINCP"], "persons need the column AGEP"),
        (["AGEP", "PINCP"], ["TEN"], "households need the column HINCP"),
        (["AGEP", "PINCP", "TEN"], ["HINCP"], "TEN is no column of the file of persons"),
        (["AGEP", "PINCP"], ["HINCP", "SEX"], "SEX is no column of the file of households"),
        (["AGEP", "PINCP"], ["HINCP", "nothing"], "no column 'nothing'"),
    ],
)
def test_columns_of_the_other_file_are_refused(columns, households, message):
    with pytest.raises(UsageError, match=message):
        acs.linked_schema(columns, households, year=2024)


def test_the_command_writes_a_schema_of_both(tmp_path, capsys):
    out = tmp_path / "schema.toml"
    assert cli.run(["census", "schema", "--households", "--year", "2024", "--state", "PA", "-o", str(out)]) == 0
    assert "5 columns of households and 8 of persons" in capsys.readouterr().out
    assert load(out) == acs.linked_schema(year=2024, state="PA")
    more = ["--columns", "AGEP,PINCP,PUMA", "--household-columns", "HINCP,TEN"]
    out = tmp_path / "other.toml"
    assert cli.run(["census", "schema", "--households", "--year", "2024", "--state", "PA", "-o", str(out), *more]) == 0
    assert load(out).child.names == ("AGEP", "PINCP", "PUMA")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--household-columns", "TEN"], "--household-columns and --kinds go with --households"),
        (["--households", "--task", "ACSIncome"], "no other option"),
    ],
)
def test_options_of_one_table_do_not_go_with_two(options, why, tmp_path, capsys):
    assert cli.run(["census", "schema", "--year", "2024", "-o", str(tmp_path / "s.toml"), *options]) == 2
    assert why in " ".join(capsys.readouterr().err.split())
