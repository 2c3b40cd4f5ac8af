"""The loaders of public data: what they read, and what they refuse."""

import numpy as np
import pandas as pd
import pytest

from stratsynth import Numeric
from stratsynth.errors import UsageError
from studies import acs, data


@pytest.fixture
def law(tmp_path):
    """Four students; one of them did not say whether the studies were full-time."""
    frame = pd.DataFrame(
        {
            "lsat": [10.0, 29.0, 48.0, 60.0],
            "ugpa": 3.0,
            "zfygpa": 0.1,
            "zgpa": [-4.0, 0.0, 2.0, 4.0],
            "fam_inc": 3,
            "tier": 2,
            "fulltime": [1.0, 1.0, 2.0, np.nan],
            "race": ["White", "Black", "White", None],
            "pass_bar": [1, 0, 1, 1],
        }
    )
    frame.to_csv(tmp_path / "law.csv", index=False)
    return tmp_path / "law.csv"


def test_the_law_school_is_one_table_with_three_targets(law):
    wide, narrow, grades = data.law(law), data.law(law, "few", wide=False), data.grades(law)
    assert wide.schema.names == ("lsat", "ugpa", "zfygpa", "zgpa", "fam_inc", "tier", "fulltime", "race", "bar")
    assert narrow.schema.names == ("lsat", "ugpa", "fam_inc", "tier", "race", "bar")
    assert wide.frame["bar"].tolist() == narrow.frame["bar"].tolist() == ["yes", "no", "yes", "yes"]
    assert wide.schema.levels("fulltime") == ("1.0", "2.0", "missing")
    assert narrow.frame["race"].tolist() == ["White", "Black", "White", "missing"]
    assert (narrow.name, narrow.positive, grades.target) == ("few", "yes", "zgpa")
    assert isinstance(grades.schema.column("zgpa"), Numeric)
    assert grades.features == ["lsat", "ugpa", "fam_inc", "tier", "race"]


def test_features_are_scaled_by_their_bounds_and_cut(law):
    narrow = data.law(law, wide=False)
    matrix = narrow.matrix(narrow.frame)
    assert matrix.shape == (4, 4 + 2)
    assert matrix[:, 0].tolist() == [-1.0, 0.0, 1.0, 1.0]
    assert matrix[:, 4:].tolist() == [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]


def test_records_as_texts_are_whole_numbers_or_not_applicable(tmp_path):
    frame = pd.DataFrame({"ESR": [1.0, np.nan], "SEX": [1, 2], "PUMA": ["01-01301", " "], "X": [0.5, 7.0]})
    frame.to_parquet(tmp_path / "p.parquet")
    frame.to_csv(tmp_path / "p.csv", index=False)
    for path in (tmp_path / "p.parquet", tmp_path / "p.csv"):
        found = data.texts(path, ["X", "ESR", "SEX", "PUMA"])
        assert found.to_dict("list") == {
            "X": ["0.5", "7"],
            "ESR": ["1", "N"],
            "SEX": ["1", "2"],
            "PUMA": ["01-01301", "N"],
        }
        assert data.columns(path) == ["ESR", "SEX", "PUMA", "X"]
        assert data.survey(path).names == acs.pums().names
    frame.drop(columns="ESR").to_csv(tmp_path / "q.csv", index=False)
    assert data.survey(tmp_path / "q.csv").names == acs.excerpt().names
    with pytest.raises(UsageError, match="there is no file"):
        data.columns(tmp_path / "none.csv")


def test_employment_is_of_adults_by_race_and_by_sex(tmp_path):
    pd.DataFrame(
        {
            "ESR": [1.0, 3.0, 2.0, np.nan],
            "AGEP": [16, 40, 89, 15],
            "SCHL": 20,
            "MAR": 1,
            "SEX": [1, 2, 2, 1],
            "RAC1P": [1, 2, 9, 6],
            "DIS": 2,
            "CIT": 1,
            "MIL": [4.0, np.nan, 4.0, np.nan],
            "NATIVITY": 1,
        }
    ).to_parquet(tmp_path / "p.parquet")
    by_race, by_sex = data.employment(tmp_path / "p.parquet")
    assert by_race.frame["EMPLOYED"].tolist() == ["yes", "no", "yes"]
    assert by_race.frame["RACE"].tolist() == ["white", "black", "other"]
    assert by_race.frame["MIL"].tolist() == ["4.0", "N", "4.0"]
    assert (by_race.group, by_sex.group, by_sex.schema.levels("SEX")) == ("RACE", "SEX", ("female", "male"))


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (data.adult, "x.csv is not the Adult data: it lacks age, education-num"),
        (data.law, "x.csv is not the law school data: it lacks lsat"),
        (data.grades, "x.csv is not the law school data: it lacks lsat"),
        (data.employment, "x.csv is not a file of person records of the ACS: it lacks ESR, AGEP"),
        (lambda path: data.texts(path, ["a", "SEX"]), "person records of the ACS: it lacks SEX"),
    ],
)
def test_another_file_is_refused_by_what_it_lacks(load, words, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        load(tmp_path / "x.csv")
    with pytest.raises(UsageError, match=r"(?i)no file|does not exist|no such"):
        load(tmp_path / "none.csv")


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"no parquet")
    with pytest.raises(UsageError, match="is not a file of person records of the ACS"):
        data.records(tmp_path / "x.parquet", ["SEX"])
