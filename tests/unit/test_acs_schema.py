"""Schemas of the survey's person records: names by year, code lists, tasks, rules, the Bureau's dictionary."""

import pandas as pd
import pytest

from helpers import bureau
from stratsynth import census
from stratsynth.census import acs
from stratsynth.census.acs import catalogue
from stratsynth.data.lost import broken_rules
from stratsynth.errors import StratsynthError, UsageError
from stratsynth.schema import Categorical, Nested, Numeric, Schema
from stratsynth.schema.encoding import encode

YEARS = range(2014, 2025)


@pytest.mark.parametrize("year", YEARS)
def test_every_column_makes_a_schema_with_rules_that_some_row_keeps(year):
    from stratsynth.schema.rules import check_rules

    names = [e.name for e in catalogue.entries() if e.valid(year) and not e.refused and not e.codes]
    schema = acs.schema(names, year=year)
    check_rules(schema)
    assert schema.names == tuple(names)
    assert schema.origin == "public"
    assert Schema.from_toml_text(schema.to_toml()) == schema


def test_columns_are_called_as_in_the_year():
    for year in YEARS:
        names = acs.schema(task="ACSEmployment", year=year).names
        assert ("RELP" in names) == (year <= 2018)
        assert ("RELSHIPP" in names) == (year >= 2019)
    assert "ST" in acs.schema(task="ACSPublicCoverage", year=2022).names
    assert "STATE" in acs.schema(task="ACSPublicCoverage", year=2023).names


@pytest.mark.parametrize(
    ("name", "year", "says"),
    [
        ("RELP", 2019, "RELP is a column of 2014 to 2018, not of 2019; in 2019 it is RELSHIPP"),
        ("RELSHIPP", 2018, "in 2018 it is RELP"),
        ("ST", 2024, "in 2024 it is STATE"),
        ("WKW", 2024, "in 2024 it is WKWN"),
        ("SERIALNO", 2024, 'unit = { column = "SERIALNO"'),
        ("PWGTP", 2024, "sampling weight.*census shares"),
        ("SEXX", 2024, "did you mean 'SEX'"),
        ("POBP", 2018, "--dictionary FILE .*PUMS_Data_Dictionary_2018.csv"),
        ("OCCP", 2015, "--codes OCCP=FILE"),
        ("PUMA", 2024, "Name the state"),
    ],
)
def test_what_cannot_be_said_honestly_is_refused_with_the_remedy(name, year, says):
    with pytest.raises(UsageError, match=says):
        acs.schema([name], year=year)


@pytest.mark.parametrize(
    "keys",
    [
        {"year": 2013, "task": "ACSEmployment"},
        {"year": "2018", "task": "ACSEmployment"},
        {"year": True, "task": "ACSEmployment"},
        {"year": 2018},
        {"year": 2018, "task": "ACSEmployment", "columns": ["SEX"]},
        {"year": 2018, "task": "Employment"},
        {"year": 2018, "columns": "SEX"},
        {"year": 2018, "columns": []},
        {"year": 2018, "columns": ["SEX", "SEX"]},
        {"year": 2018, "columns": ["SEX"], "without": ["SEX"]},
        {"year": 2018, "task": "ACSEmployment", "without": ["OCCP"]},
        {"year": 2018, "columns": ["SEX"], "state": "ZZ"},
        {"year": 2018, "columns": ["SEX"], "codes": {"OCCP": "x.csv"}},
        {"year": 2018, "columns": ["SEX"], "codes": {"SEX": "x.csv"}},
        {"year": 2018, "columns": ["SEX"], "dictionary": "none.csv"},
    ],
)
def test_arguments_that_make_no_sense_are_refused(keys):
    with pytest.raises(StratsynthError):
        acs.schema(**keys)


def test_codes_are_codes_and_go_together():
    schema = acs.schema(["OCCP", "INDP", "FOD1P", "MIGSP", "POBP", "PUMA"], year=2024, state="PA")
    assert all(isinstance(column, Nested) and column.groupings for column in schema.columns.values())
    occupation = schema.column("OCCP")
    groups = {code: name for name, codes in occupation.groupings[0].items() for code in codes}
    assert (groups["0010"], groups["2330"], groups["9830"]) == ("Management", "Education", "Military")
    assert len(occupation.groupings[0]) == 26
    assert encode(schema.restrict(["OCCP"]), _arrow(OCCP=[10, 10, None, 3255])).codes["OCCP"].tolist() == [
        schema.index("OCCP", "0010"),
        schema.index("OCCP", "0010"),
        0,
        schema.index("OCCP", "3255"),
    ]


def test_every_code_has_the_digits_of_its_list_and_one_group():
    for name, known in catalogue.code_lists().items():
        for each in known.lists:
            assert each.source
            assert len(set(each.codes)) == len(each.codes), name
            assert {len(code) for code in each.codes} == {known.digits}


def test_states_are_two_digits_with_names():
    assert len(catalogue.states()) == 52
    assert acs.schema(["STATE"], year=2024, state="PA").levels("STATE") == ("42",)
    assert acs.schema(["ST"], year=2018).column("ST").labels["06"] == "California"


def test_bins_end_where_the_tasks_of_folktables_cut():
    for name in acs.tasks():
        for text in (*acs.tasks()[name].keep, f"{acs.tasks()[name].target} {acs.tasks()[name].positive}"):
            column, sign, value = text.split()
            found = acs.schema([column], year=2018).column(column)
            if isinstance(found, Numeric):
                ends = found.breaks if sign in (">=", "<") else [end - 1 for end in found.breaks]
                assert int(value) in ends or int(value) < found.lower, text


def test_the_tasks_are_those_of_folktables():
    folktables = pytest.importorskip("folktables")
    for name, task in acs.tasks().items():
        theirs = getattr(folktables, name)
        assert set(task.features) == set(theirs.features)
        assert (task.target, task.group) == (theirs.target, theirs.group)


LISTS = "U.S. Census Bureau, code lists"


def test_a_list_of_codes_needs_a_citation_and_is_no_file_of_records(tmp_path):
    table = pd.DataFrame({"code": ["00100", "00200"]})
    with pytest.raises(UsageError, match=r"the codes of PUMA need a citation .--codes-citation.*not public"):
        acs.schema(["PUMA"], year=2024, codes={"PUMA": table})
    with pytest.raises(UsageError, match="'x' is too short"):
        acs.schema(["PUMA"], year=2024, codes={"PUMA": table}, codes_citation="x")
    with pytest.raises(UsageError, match="goes with a table"):
        acs.schema(["SEX"], year=2024, codes_citation=LISTS)
    people = bureau.people(20, 2024)
    with pytest.raises(UsageError, match=r"a column AGEP, so its lines are person records"):
        acs.schema(["PUMA"], year=2024, codes={"PUMA": people}, codes_citation=LISTS)
    table.to_csv(tmp_path / "codes.csv", index=False)
    (tmp_path / "codes.ledger").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="has an account"):
        acs.schema(["PUMA"], year=2024, codes={"PUMA": tmp_path / "codes.csv"}, codes_citation=LISTS)
    assert (
        f"PUMA: 2 codes, from {LISTS}."
        in acs.make(["PUMA"], year=2024, codes={"PUMA": table}, codes_citation=LISTS).notes
    )


def test_tables_of_codes_name_labels_and_groups(tmp_path):
    table = pd.DataFrame({"code": [10, 4720, 9130], "label": ["A", "B", "C"], "group": ["x", "x", "y"]})
    column = acs.schema(["OCCP"], year=2015, codes={"OCCP": table}, codes_citation=LISTS).column("OCCP")
    assert column.levels == ("N", "0010", "4720", "9130")
    assert column.groupings == ({"x": ("0010", "4720"), "y": ("9130",)},)
    assert column.labels["4720"] == "B"
    table.loc[2, "group"] = ""
    with pytest.raises(UsageError, match="a group for some codes"):
        acs.schema(["OCCP"], year=2015, codes={"OCCP": table}, codes_citation=LISTS)


def test_the_bureaus_table_of_tracts_has_the_areas_of_a_state():
    tracts = pd.DataFrame(
        {
            "STATEFP": ["36", "36", "36", "42"],
            "COUNTYFP": "001",
            "TRACTCE": ["1", "2", "3", "4"],
            "PUMA5CE": ["03701", "03701", "00100", "00200"],
        }
    )
    column = acs.schema(["PUMA"], year=2018, state="NY", codes={"PUMA": tracts}, codes_citation=LISTS).column("PUMA")
    assert column.levels == ("00100", "03701")
    with pytest.raises(UsageError, match="of all states"):
        acs.schema(["PUMA"], year=2018, codes={"PUMA": tracts}, codes_citation=LISTS)
    with pytest.raises(UsageError, match="has none of state 06"):
        acs.schema(["PUMA"], year=2018, state="CA", codes={"PUMA": tracts}, codes_citation=LISTS)


def test_the_dictionary_of_the_bureau_takes_the_place_of_our_lists(tmp_path):
    path = tmp_path / "PUMS_Data_Dictionary_2018.csv"
    path.write_text(bureau.DICTIONARY, encoding="utf-8")
    schema = acs.schema(["SEX", "HIMRKS", "POBP", "JWMNP"], year=2018, dictionary=path)
    assert schema.column("POBP").labels["042"] == "Pennsylvania/PA"
    assert schema.levels("POBP") == ("001", "042", "303")
    assert schema.levels("HIMRKS") == ("N", "0", "1")
    assert isinstance(schema.column("HIMRKS"), Categorical)
    assert schema.column("JWMNP").special == ("888",)
    with pytest.raises(UsageError, match="no column AGEP; is it of 2018"):
        acs.schema(["AGEP"], year=2018, dictionary=path)
    with pytest.raises(UsageError, match="no bins for it"):
        acs.schema(["YOEP"], year=2018, dictionary=path)
    with pytest.raises(UsageError, match="is the dictionary of 2018, by its name, not of 2019"):
        acs.schema(["SEX"], year=2019, dictionary=path)
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UsageError, match="neither NAME nor VAL"):
        acs.schema(["SEX"], year=2018, dictionary=path)


def test_shares_of_codes_need_a_citation_and_are_those_of_a_list():
    table = pd.DataFrame({"OCCP": ["0010", "4720"], "share": [0.25, 0.75]})
    column = acs.schema(["OCCP"], year=2024, within=[table], citation="ACS 2023").column("OCCP")
    assert column.shares == {"0010": 0.25, "4720": 0.75}
    assert column.source == "ACS 2023"
    for keys in (
        {"within": [table]},
        {"within": [table.rename(columns={"OCCP": "SEX"})], "citation": "ACS 2018"},
        {"within": [table.drop(columns="share")], "citation": "ACS 2018"},
        {"within": [table.assign(share=2.0)], "citation": "ACS 2018"},
        {"within": [table.assign(OCCP="77")], "citation": "ACS 2018"},
    ):
        with pytest.raises(StratsynthError):
            acs.schema(["OCCP"], year=2024, **keys)


@pytest.mark.parametrize("year", [2018, 2024])
def test_no_made_up_record_breaks_a_rule_and_one_that_does_is_counted(year):
    frame = bureau.people(2000, year).drop(columns=["PUMA"])
    schema = acs.schema(task="ACSEmployment", year=year)
    assert len(schema.rules) >= 15
    table = _arrow(**{c: _read(frame[c]) for c in schema.names})
    assert encode(schema, table).size == 2000
    assert sum(count for _, count in broken_rules(schema, table)) == 0
    child = {**{c: list(_read(frame[c])[:1]) for c in schema.names}, "AGEP": [2], "MIL": ["4"], "SCHL": [None]}
    assert sum(count for _, count in broken_rules(schema, _arrow(**child))) >= 1


def test_it_is_reached_from_the_census():
    assert census.acs is acs
    assert acs.tasks()["ACSIncome"].target == "PINCP"


def _arrow(**columns):
    import pyarrow as pa

    return pa.table({name: pa.array(list(values)) for name, values in columns.items()})


def _read(column):
    return [None if value == "" else str(value) for value in column]


def test_records_may_count_as_the_people_they_stand_for():
    schema = acs.schema(["SEX", "AGEP"], year=2024, weight=300, weight_mean="13_078_751/134_347")
    assert (schema.row_weight.column, schema.row_weight.most) == ("PWGTP", 300)
    assert schema.row_weight.mean == pytest.approx(97.35, abs=0.01)
    assert Schema.from_toml_text(schema.to_toml()) == schema
    assert acs.schema(["SEX"], year=2024, weight=300, weight_mean=97).row_weight.mean == 97


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"weight": 300}, r"weights need their mean, .* --weight-mean, as a number or as PEOPLE/RECORDS"),
        ({"weight_mean": 97}, "goes with the largest one"),
        ({"weight": 300, "weight_mean": "97/0"}, "is no number, and no PEOPLE/RECORDS"),
        ({"weight": 300, "weight_mean": "many"}, "is no number"),
        ({"weight": 300, "weight_mean": 400}, "mean must be a number above 0 and at most 300"),
    ],
)
def test_weights_need_a_mean(keys, says):
    with pytest.raises(UsageError, match=says):
        acs.schema(["SEX"], year=2024, **keys)


def test_the_largest_weight_follows_from_a_public_file_of_an_earlier_year(tmp_path):
    people = bureau.people(1000, 2023)
    people["PWGTP"] = [100] * 980 + [450] * 20
    people.to_csv(tmp_path / "psam_p42.csv", index=False)
    made = acs.make(["SEX"], year=2024, weight_from=tmp_path / "psam_p42.csv")
    weight = made.schema.row_weight
    beyond = 20 * (450 - weight.most) / 107_000
    assert beyond <= 0.01 < beyond + 20 / 107_000
    assert weight.mean == pytest.approx(107)
    assert "of the 107,000 people of the public-use file of 2023, PA are beyond it, and its largest weight is 450" in (
        made.to_toml()
    )
    assert acs.schema(["SEX"], year=2024, weight=300, weight_from=tmp_path / "psam_p42.csv").row_weight.most == 300
    people["PWGTP"] = [2000] * 1000
    people.to_csv(tmp_path / "heavy.csv", index=False)
    heavy = acs.make(["SEX"], year=2024, weight_from=tmp_path / "heavy.csv")
    assert heavy.schema.row_weight.most == heavy.schema.row_weight.mean == 1024
    assert "49 % of the 2,000,000 people" in heavy.notes[-1]


def test_a_file_of_the_released_year_or_with_an_account_gives_no_largest_weight(tmp_path):
    path = bureau.csv(tmp_path / "psam_p42.csv", 50, 2024)
    with pytest.raises(UsageError, match=r"is of 2024, the year of the schema: take a file of an earlier year"):
        acs.schema(["SEX"], year=2024, weight_from=path)
    path = bureau.csv(tmp_path / "old.csv", 50, 2023)
    (tmp_path / "old.ledger").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="has an account"):
        acs.schema(["SEX"], year=2024, weight_from=path)
    bureau.people(50, 2023).assign(PWGTP="").to_csv(tmp_path / "none.csv", index=False)
    with pytest.raises(UsageError, match="have no weight in the column PWGTP"):
        acs.schema(["SEX"], year=2024, weight_from=tmp_path / "none.csv")


def test_columns_of_dollars_measure_what_lies_within_their_bins_and_no_others_do():
    schema = acs.schema(["AGEP", "WKHP", "POVPIP", "PINCP", "PERNP", "WAGP"], year=2024)
    dollars = {name: schema.column(name) for name in ("PINCP", "PERNP", "WAGP")}
    for column in dollars.values():
        assert (column.shape, column.places, column.heaps) == ("pareto", 0.1, (10_000, 5_000, 1_000, 100))
    assert [column.tail for column in dollars.values()] == [(2.4, 6), (2.4, 6), (2, 6)]
    assert [column.clip for column in dollars.values()] == [1_000_000, None, None]
    assert 1_000_001 in [low for low, _ in dollars["PINCP"].extents]  # numbers above the clip have a bin of their own
    assert [bool(column.round) for column in dollars.values()] == [False, False, True]
    for name in ("AGEP", "WKHP", "POVPIP"):
        assert (schema.column(name).places, schema.column(name).heaps, schema.column(name).clip) == (0, (), None)
