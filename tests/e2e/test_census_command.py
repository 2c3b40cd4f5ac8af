"""`stratsynth census`, from a state's file to a release, as docs/census.md has it."""

import json
import re

import pytest

from helpers import bureau
from stratsynth import cli

RECIPE = """\
[data]
path = "pa.parquet"
schema = "schema.toml"
declared_size = 3000
[strata]
by = ["SEX", "RAC1P"]
[weights]
source = "public"
path = "shares.csv"
citation = "made up"
[mechanism]
name = "independent"
[budget]
epsilon = 1
delta = 1e-9
ledger = "pa.ledger"
[release]
rows = 2000
seed = 1
"""


def ran(capsys, *arguments):
    """Exit code, output and errors of a command, in this process."""
    code = cli.run(["census", *map(str, arguments)])
    found = capsys.readouterr()
    return code, found.out, found.err


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_from_a_states_file_to_a_release_and_a_check(tmp_path, capsys):
    bureau.archive(tmp_path / "data" / "2018" / "1-Year" / "csv_ppa.zip", "psam_p42.csv", 3000, 2018)
    bureau.csv(tmp_path / "earlier.csv", 3000, 2017)

    def done(*arguments):
        code, out, err = ran(capsys, *arguments)
        assert code == 0, err
        return out

    assert "3,000 records, 18 columns" in done(
        "load", "--state", "PA", "--year", 2018, "--task", "ACSEmployment", "-o", "pa.parquet"
    )
    said = done("schema", "--task", "ACSEmployment", "--year", 2018, "-o", "schema.toml")
    assert "17 columns and 17 rules" in said
    said = done("shares", "--from", "earlier.csv", "--by", "SEX,RAC1P", "--year", 2017, "-o", "shares.csv")
    assert 'citation = "U.S. Census Bureau, American Community Survey 2017' in said
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    assert "0 of them broken" in done("check", "pa.parquet", "--schema", "schema.toml", "--year", 2018)
    assert cli.run(["fit", "recipe.toml"]) == 0
    assert "ACSMobility" in done("tasks")


def test_a_check_of_another_year_ends_with_2_and_of_broken_rules_with_1(tmp_path, capsys):
    bureau.csv(tmp_path / "old.csv", 30, 2018)
    ran(capsys, "schema", "--task", "ACSEmployment", "--year", 2019, "-o", "s.toml")
    code, out, _ = ran(capsys, "check", "old.csv", "--schema", "s.toml", "--year", 2019, "--json")
    assert code == 2
    assert "RELP" in json.loads(out)["missing"][0]
    bureau.people(300, 2019).assign(MIL="4").to_csv(tmp_path / "new.csv", index=False)
    code, out, _ = ran(capsys, "check", "new.csv", "--schema", "s.toml", "--year", 2019)
    assert code == 1
    assert "INTERNAL" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["schema", "--year", 2018, "-o", "s.toml"], "columns, or a task"),
        (["schema", "--task", "ACSEmployment", "--year", 2010, "-o", "s.toml"], "2,014 to 2,024|2014"),
        (["schema", "--task", "Employment", "--year", 2018, "-o", "s.toml"], "there is no task"),
        (["schema", "--columns", "OCCP", "--year", 2018, "--codes", "OCCP", "-o", "s.toml"], "COLUMN=FILE"),
        (["schema", "--columns", "SEX", "--year", 2018, "-o", "none/s.toml"], "no folder"),
        (["schema", "--columns", "SEX", "--year", 2018, "-o", "here.toml"], "exists already"),
        (["load", "--state", "PA", "--year", 2018, "-o", "pa.parquet"], "psam_p42.csv"),
        (["load", "--state", "XX", "--year", 2018, "-o", "pa.parquet"], "no state"),
        (["shares", "--from", "x.csv", "--by", "SEX", "--year", 2018, "-o", "shares.txt"], "csv"),
        (["shares", "--from", "x.csv", "--by", "SEX", "--year", 2018, "-o", "shares.csv"], "x.csv"),
        (["shares", "--from", "x.csv", "--by", "", "--year", 2018, "-o", "shares.csv"], "columns"),
    ],
)
def test_wrong_input_is_answered_in_a_line_or_two(tmp_path, capsys, arguments, says):
    (tmp_path / "here.toml").write_text("", encoding="utf-8")
    code, out, err = ran(capsys, *arguments)
    assert (code, out) == (2, "")
    assert re.search(says, err)
    assert len(err.splitlines()) <= 2
