"""Code lists that a user gives: no records among them, cited wherever they are used, and asked about where they fit
the private records too well."""

import json

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from stratsynth import cli
from stratsynth.census import acs
from stratsynth.data.held_codes import HeldCodes, held_codes
from stratsynth.errors import SchemaError, UsageError
from stratsynth.mechanisms import prepare
from stratsynth.schema import Nested, Schema

CITED = "U.S. Census Bureau, 2018 Census occupation code list"
CODES = [f"{code:04}" for code in range(1, 301)]
ORIGIN = f"a code list from jobs.csv, cited as {CITED}"
BUDGET = ss.Budget(1, 1e-9)


def jobs(folder, codes, name="jobs.csv"):
    pd.DataFrame({"code": codes}).to_csv(folder / name, index=False)
    return folder / name


def schema(given):
    return acs.schema(["SEX", "OCCP"], year=2015, codes={"OCCP": given}, codes_citation=CITED)


def records(rows=2000, seed=1):
    """Records of a few frequent and many rare occupations, of the first 250 codes or so."""
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, len(CODES) + 1) ** 1.3
    held = rng.choice(CODES, rows, p=chance / chance.sum())
    return pd.DataFrame({"SEX": rng.choice(["1", "2"], rows), "OCCP": held})


@pytest.mark.parametrize("how", ["frame", "csv"])
@pytest.mark.parametrize("column", ["code", "OCCP"])
def test_records_of_persons_are_no_list_whatever_their_columns_are_called(tmp_path, how, column):
    """A list has each code once; records repeat some, and say so by no column's name."""
    private = records(300).rename(columns={"OCCP": column, "SEX": "WHO"})
    path = tmp_path / "jobs.csv"
    private.to_csv(path, index=False)
    with pytest.raises(UsageError, match="has a code in several lines, as records of persons have") as refused:
        schema(private if how == "frame" else path)
    assert not any(code in str(refused.value) for code in CODES)


def test_a_copy_of_rows_that_have_an_account_is_no_list(tmp_path):
    """Not even one of as many different codes as rows."""
    private = pd.DataFrame({"code": CODES, "SEX": ["1", "2"] * 150})
    private.to_parquet(tmp_path / "people.parquet", index=False)
    levels = Schema({"SEX": ss.Categorical(levels=("1", "2")), "code": ss.Categorical(levels=tuple(CODES))})
    table = ss.open_table(
        tmp_path / "people.parquet", schema=levels, declared_size=300, ledger=tmp_path / "people.ledger"
    )
    ss.fit("independent", table, BUDGET)
    private[::-1].to_csv(tmp_path / "jobs.csv", index=False)
    with pytest.raises(UsageError, match=r"jobs\.csv has the rows of people\.parquet, which has an account"):
        schema(tmp_path / "jobs.csv")
    with pytest.raises(UsageError, match=r"jobs\.csv has the rows of people\.parquet"):
        acs.schema(["OCCP"], year=2018, within=[tmp_path / "jobs.csv"], citation=CITED)


def test_file_and_citation_stand_in_schema_plan_certificate_and_report(tmp_path):
    made = schema(jobs(tmp_path, CODES))
    assert made.column("OCCP").listed == ORIGIN
    assert Schema.from_toml_text(made.to_toml()) == made
    assert made.column("OCCP").grouped(1).listed == ORIGIN, "however its codes are counted"
    plain = acs.schema(["SEX", "OCCP"], year=2018)
    assert plain.column("OCCP").listed is None
    assert "listed" not in plain.to_toml()
    assert schema(pd.DataFrame({"code": CODES})).column("OCCP").listed == f"a code list from a frame, cited as {CITED}"
    assert ORIGIN in " ".join(str(ss.plan("independent", made, BUDGET, declared_size=2000)).split())
    release = ss.fit("independent", ss.open_table(records(), schema=made, declared_size=2000), BUDGET)
    assert release.statement.code_lists[0].listed == ORIGIN
    release.save(tmp_path / "release", rows=10, seed=1)
    assert f"These are {ORIGIN}." in (tmp_path / "release" / "report.html").read_text(encoding="utf-8")
    assert ss.verify(tmp_path / "release").ok
    [stated] = prepare("independent", plain, BUDGET, 2000).code_lists
    assert "listed" not in stated.to_dict(), "as earlier versions stated them"
    with pytest.raises(SchemaError, match="listed must be text"):
        Nested(levels=("a", "b"), listed=3)


def test_a_list_that_was_read_off_the_records_is_asked_about(tmp_path):
    """It has no row that could be compared, and every one of its codes has a record."""
    private = records()
    counts = private["OCCP"].value_counts().reindex(CODES, fill_value=0)
    for codes, asked in ((sorted(set(private["OCCP"])), True), (CODES, False)):
        [found] = held_codes(private, schema(jobs(tmp_path, codes)))
        own = counts[codes]
        numbers = (len(codes), *((own == times).sum() for times in range(3)))
        assert found == HeldCodes("OCCP", ORIGIN, *numbers)
        assert found.suspicious is asked
        assert ("were the codes read off these records?" in str(found)) is asked
    assert held_codes(private, acs.schema(["SEX", "OCCP"], year=2018)) == [], "no list was given"


def test_lists_made_without_the_records_are_hardly_ever_asked_about():
    """Of laws under which about as many codes as can be have a record, and a few of them one alone."""
    rng, asked = np.random.default_rng(4), 0
    for mean in (2.0, 3.0, 4.0, 5.0) * 500:
        counts = rng.poisson(mean, 200)
        numbers = ((counts == times).sum() for times in range(3))
        asked += HeldCodes("OCCP", ORIGIN, 200, *map(int, numbers)).suspicious
    assert asked <= 2000 * np.exp(-5) + 5


def test_check_and_census_check_ask(tmp_path, capsys):
    private = records()
    recipe = small.write_recipe(tmp_path)
    schema(jobs(tmp_path, sorted(set(private["OCCP"])))).write_toml(tmp_path / "schema.toml")
    private.to_csv(tmp_path / "people.csv", index=False)
    small.edit(recipe, "declared_size = 100", "declared_size = 2000")
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text[: text.index("[strata]")] + text[text.index("[mechanism]") :], encoding="utf-8")
    assert cli.run(["check", str(recipe)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "code lists: note OCCP: every one of its" in out
    assert f"It is {ORIGIN}: were the codes read off these records?" in out
    command = ["census", "check", str(tmp_path / "people.csv"), "--schema", str(tmp_path / "schema.toml")]
    assert cli.run([*command, "--year", "2015"]) == 0
    assert "were the codes read off these records?" in capsys.readouterr().out
    assert cli.run([*command, "--year", "2015", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["lists"]) == 1


def test_shares_with_their_errors_serve_within_a_list(tmp_path):
    """`census shares` writes a standard error, and replicates, beside each share where the file has the weights."""
    shares = pd.DataFrame({"OCCP": CODES[:2], "share": [0.5, 0.25], "standard_error": 0.01, "share_1": 0.5})
    made = acs.schema(["OCCP"], year=2018, within=[shares.replace({"0001": "0010", "0002": "4720"})], citation=CITED)
    assert made.column("OCCP").shares == {"0010": 0.5, "4720": 0.25}
