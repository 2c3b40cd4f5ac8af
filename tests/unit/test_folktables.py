"""Door to folktables: its sources and problems as a private table, and synthetic rows as its frames."""

import types

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import bureau
from stratsynth.census import acs
from stratsynth.errors import UsageError

folktables = pytest.importorskip("folktables")

BUDGET = ss.Budget(epsilon=4, delta=1e-9)


@pytest.fixture
def source(tmp_path):
    """A source of folktables with Pennsylvania's file of 2018 in the folder where folktables looks for it."""
    bureau.csv(tmp_path / "2018" / "1-Year" / "psam_p42.csv", 600, 2018)
    return folktables.ACSDataSource(survey_year="2018", horizon="1-Year", survey="person", root_dir=str(tmp_path))


def opened(problem, source, **keys):
    return ss.census.from_folktables(problem, source, **{"states": ["PA"], "public": True, **keys})


def test_synthetic_rows_go_where_the_sources_frame_went(source):
    table = opened(folktables.ACSEmployment, source, declared_size=600)
    assert set(table.schema.names) == set(acs.schema(task="ACSEmployment", year=2018).names)
    release = ss.fit("independent", table, BUDGET, seed=1)
    frame = ss.census.to_folktables(release.sample(500, seed=1), table.schema)
    features, label, group = folktables.ACSEmployment.df_to_pandas(frame)
    real, _, _ = folktables.ACSEmployment.df_to_pandas(source.get_data(states=["PA"]))
    assert list(features.columns) == list(real.columns)
    assert features.shape == (500, 16)
    assert features.dtypes.equals(real.dtypes)
    assert 0 < label["ESR"].mean() < 1
    assert set(group["RAC1P"]) <= set(range(1, 10))


def test_frames_come_back_as_they_were(source):
    raw = source.get_data(states=["PA"])
    table = opened(folktables.ACSEmployment, source)
    texts = pd.DataFrame({name: _as_sampled(raw[name], table.schema.column(name)) for name in table.schema.names})
    back = ss.census.to_folktables(texts, table.schema)
    for name in table.schema.names:
        np.testing.assert_array_equal(back[name].astype(float), raw[name].astype(float), err_msg=name)
    assert (back["PWGTP"] == 1).all()


def _as_sampled(values, column):
    """Values of folktables in the spelling of a release: levels of the schema, numbers as they are."""
    if isinstance(column, ss.Numeric):
        return values
    spelt = {float(level): level for level in column.levels if level != "N"}
    return values.map(lambda value: "N" if np.isnan(value) else spelt[value])


def test_a_task_keeps_its_records_and_another_problem_keeps_all(tmp_path, source):
    raw = bureau.people(600, 2018).assign(FER="", PUBCOV="1")
    raw.to_csv(tmp_path / "2018" / "1-Year" / "psam_p42.csv", index=False)
    kept = folktables.ACSPublicCoverage.df_to_pandas(source.get_data(states=["PA"]))[0]
    assert _rows(opened(folktables.ACSPublicCoverage, source)) == len(kept) < len(raw)
    own = folktables.BasicProblem(
        features=["AGEP", "SEX"], target="PINCP", preprocess=lambda frame: frame.head(10), group=None
    )
    assert _rows(opened(own, source)) == len(raw)


def test_code_lists_come_from_the_definitions_that_the_source_keeps(tmp_path, source):
    problem = folktables.BasicProblem(features=["SEX"], target="POBP")
    with pytest.raises(UsageError, match="the codes of POBP in 2018 are not in this package"):
        opened(problem, source)
    definitions = tmp_path / "2018" / "1-Year" / "definition.csv"
    definitions.write_text(bureau.DICTIONARY, encoding="utf-8")
    assert opened(problem, source).schema.column("POBP").levels == ("001", "042", "303")
    elsewhere = definitions.rename(tmp_path / "dictionary.csv")
    assert opened(problem, source, dictionary=elsewhere).schema.column("POBP").levels == ("001", "042", "303")


def _rows(table):
    """Number of records of a table declared public: a fit at epsilon 25 counts them within 10."""
    release = ss.fit("independent", table, ss.Budget(epsilon=25, delta=1e-3), seed=1)
    found = release.query(["SEX"])["estimate"].sum()
    return pytest.approx(found, abs=10)


def test_a_frame_of_get_data_serves_too_with_its_year(source):
    raw = source.get_data(states=["PA"])
    problem = folktables.BasicProblem(features=["AGEP", "SEX"], target="ESR", group="RAC1P")
    table = ss.census.from_folktables(problem, raw, year=2018, columns=["PWGTP", "MAR"], public=True)
    assert table.schema.names == ("AGEP", "SEX", "ESR", "RAC1P", "MAR")
    with pytest.raises(UsageError, match="of which survey year"):
        ss.census.from_folktables(problem, raw, public=True)
    with pytest.raises(UsageError, match="the frame has no column RAC1P"):
        ss.census.from_folktables(problem, raw.drop(columns="RAC1P"), year=2018, public=True)


@pytest.mark.parametrize(
    ("problem", "keys", "message"),
    [
        ("ACSEmployment", {}, "a problem of folktables is wanted, such as ACSEmployment, not 'ACSEmployment'"),
        (None, {"states": None}, "which states"),
        (None, {"states": "PA"}, "a list of two letters"),
        (None, {"states": ["XX"]}, "'XX' is no state"),
        (None, {"states": ["NY"]}, r"finds no psam_p36.csv in .*2018/1-Year. Get https.*csv_pny.zip"),
        (None, {"year": 2019}, "this source is of 2018, and year=2019"),
        (None, {"columns": "MAR"}, "columns is a list"),
        (None, {"columns": ["NOSUCH"]}, "NOSUCH"),
    ],
)
def test_refusals_say_what_to_do(source, problem, keys, message):
    with pytest.raises(UsageError, match=message):
        opened(problem or folktables.ACSEmployment, source, **keys)


def test_other_sources_and_years_are_refused(source, tmp_path):
    with pytest.raises(UsageError, match="a source of folktables is wanted"):
        opened(folktables.ACSEmployment, "data")
    homes = folktables.ACSDataSource(survey_year="2018", horizon="1-Year", survey="household", root_dir=str(tmp_path))
    with pytest.raises(UsageError, match="of housing units"):
        opened(folktables.ACSEmployment, homes)
    later = folktables.ACSDataSource(survey_year="2022", horizon="1-Year", survey="person", root_dir=str(tmp_path))
    bureau.csv(tmp_path / "2022" / "1-Year" / "psam_p42.csv", 20, 2022)
    with pytest.raises(UsageError, match="has RELSHIPP in place of RELP"):
        opened(folktables.ACSEmployment, later)
    with pytest.raises(UsageError, match="has no survey year"):
        opened(folktables.ACSEmployment, types.SimpleNamespace(get_data=lambda **_: None))


def test_rows_of_another_schema_are_refused(source):
    table = opened(folktables.ACSEmployment, source)
    with pytest.raises(UsageError, match="the rows have no column AGEP"):
        ss.census.to_folktables(pd.DataFrame({"SEX": ["1"]}), table.schema)


def test_codes_that_are_no_numbers_stay_texts():
    schema = ss.Schema(
        {"CODE": ss.Categorical(("N", "1A", "2B"), not_applicable="N"), "SEX": ss.Categorical(("1", "2"))}
    )
    found = ss.census.to_folktables(pd.DataFrame({"CODE": ["1A", "N"], "SEX": ["1", "2"]}), schema)
    assert found["CODE"].tolist() == ["1A", "N"]
    assert found["SEX"].tolist() == [1, 2]
