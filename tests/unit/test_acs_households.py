"""Household records of the survey: found, verified, loaded, and under a schema with their rules."""

import pandas as pd
import pytest

from helpers import bureau
from stratsynth.census import acs
from stratsynth.census.acs.source import StateFile
from stratsynth.errors import UsageError
from stratsynth.schema import Numeric

COLUMNS = ["TYPEHUGQ", "NP", "TEN", "BLD", "HHT", "HINCP"]


def test_names_and_addresses_are_the_bureaus():
    new, old = StateFile("PA", 2018, records="households"), StateFile("ny", 2016, "5-Year", "households")
    assert (new.name, new.archive) == ("psam_h42.csv", "csv_hpa.zip")
    assert (old.name, old.archive) == ("ss16hny.csv", "csv_hny.zip")


@pytest.mark.parametrize("year", [2018, 2024])
def test_households_are_loaded_with_their_key(tmp_path, year):
    raw = bureau.households(300, year)
    raw.to_csv(tmp_path / "psam_h42.csv", index=False)
    done = acs.load(tmp_path / "h.parquet", state="PA", year=year, source=tmp_path, households=True)
    frame = pd.read_parquet(tmp_path / "h.parquet")
    assert done.kept == 300
    kind = "TYPEHUGQ" if year >= 2020 else "TYPE"
    assert {"SERIALNO", "WGTP", "NP", "TEN", "BLD", "HHT", "HINCP", kind} <= set(frame)
    assert "WGTP1" not in frame
    assert frame["SERIALNO"].tolist() == raw["SERIALNO"].tolist()
    lived = (raw[kind] == "1") & (raw["NP"] > 0)
    assert (frame["HINCP"].notna() == lived).all()


@pytest.mark.parametrize("year", [2018, 2024])
def test_they_get_a_column_of_their_kind(tmp_path, year):
    raw = bureau.households(400, year)
    raw.to_csv(tmp_path / "psam_h42.csv", index=False)
    for columns in (None, ["SERIALNO", "KIND", "TEN"]):
        out = tmp_path / f"{len(columns or ())}.parquet"
        acs.load(out, state="PA", year=year, source=tmp_path, columns=columns, households=True)
        kind = pd.read_parquet(out)["KIND"]
        of, empty = raw["TYPEHUGQ" if year >= 2020 else "TYPE"], raw["NP"] == 0
        assert (kind == of.map({"1": "1", "2": "3", "3": "4"}).mask((of == "1") & empty, "2")).all()
        assert set(kind) == set("1234")
    raw.drop(columns="TYPEHUGQ" if year >= 2020 else "TYPE").to_csv(tmp_path / "psam_h42.csv", index=False)
    with pytest.raises(UsageError, match="TYPE"):
        acs.load(tmp_path / "x.csv", state="PA", year=year, source=tmp_path, columns=["KIND"], households=True)


def test_they_keep_the_rules_of_their_schema(tmp_path):
    bureau.households(500, 2024).to_csv(tmp_path / "psam_h42.csv", index=False)
    acs.load(tmp_path / "h.parquet", state="PA", year=2024, source=tmp_path, households=True)
    found = acs.check(tmp_path / "h.parquet", acs.schema(COLUMNS, year=2024), 2024)
    assert found.fits
    assert found.left_out == 0
    assert len(found.rules) == 6
    assert {count for _, count in found.rules} == {0}
    broken = pd.read_parquet(tmp_path / "h.parquet")
    broken["HHT"] = broken["HHT"].mask(broken["NP"] == 1, "1")
    broken.to_csv(tmp_path / "broken.csv", index=False)
    found = acs.check(tmp_path / "broken.csv", acs.schema(COLUMNS, year=2024), 2024)
    assert not found.fits
    assert max(count for _, count in found.rules) > 50


def test_sizes_and_incomes_are_numbers():
    schema = acs.schema(COLUMNS, year=2024)
    size, income = schema.column("NP"), schema.column("HINCP")
    assert isinstance(size, Numeric)
    assert size.all_levels[:3] == ("0", "1", "2")
    assert isinstance(income, Numeric)
    assert income.not_applicable == "N"
    assert schema.levels("HHT")[0] == "N"


def test_columns_of_other_years_are_named():
    with pytest.raises(UsageError, match="in 2018 it is TYPE"):
        acs.schema(["TYPEHUGQ"], year=2018)
    assert "Household records" in acs.make(["NP"], year=2018).notes[0]
    assert "Person records" in acs.make(["NP", "AGEP"], year=2018).notes[0]


def test_files_are_not_taken_for_one_another(tmp_path):
    persons = bureau.csv(tmp_path / "psam_p42.csv", 50, 2024)
    houses = tmp_path / "psam_h42.csv"
    bureau.households(50, 2024).to_csv(houses, index=False)
    with pytest.raises(UsageError, match="no file of household records"):
        acs.load(tmp_path / "x.csv", state="PA", year=2024, source=persons, households=True)
    with pytest.raises(UsageError, match="those of housing units"):
        acs.load(tmp_path / "x.csv", state="PA", year=2024, source=houses)
    with pytest.raises(UsageError, match="tasks are of person records"):
        acs.load(tmp_path / "x.csv", state="PA", year=2024, source=houses, households=True, task="ACSIncome")


def test_a_folder_without_them_says_which_file_is_missing(tmp_path):
    with pytest.raises(UsageError, match=r"there is no psam_h42\.csv or csv_hpa\.zip"):
        acs.load(tmp_path / "x.csv", state="PA", year=2024, source=tmp_path, households=True)
