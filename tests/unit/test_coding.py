"""Synthetic rows in the coding of another file: `sample --as`."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import small
from stratsynth import Categorical, Numeric, Schema, Temporal, cli
from stratsynth.errors import UsageError
from stratsynth.release.coding import recoded
from stratsynth.schema.codec import decode
from stratsynth.schema.encoding import encode

SCHEMA = Schema(
    {
        "sex": Categorical(levels=("1", "2"), labels={"1": "Male", "2": "Female"}, dtype="int64", outside="missing"),
        "area": Categorical(levels=("1", "2", "3"), dtype="int64"),
        "vet": Categorical(levels=("N", "0", "1"), not_applicable="N", dtype="int64"),
        "flag": Categorical(levels=("false", "true"), dtype="bool"),
        "income": Numeric(lower=0, upper=90_000, bins=3, integer=True, not_applicable="N", special=("-9",)),
        "rate": Numeric(lower=0, upper=1, bins=2, digits=3, missing=True),
        "born": Temporal(lower="2000-01-01", upper="2009-12-31", bins=10),
        "more": Categorical(levels=("a",)),
    }
)
OTHER = """\
rate,extra,sex,area,vet,flag,income,born
0.50,x,Male,01,N,True,15400.0,2001-01-01
NA,y,female,02,1.0,False,N,2002-01-01
0.25,z,Male,01,0.0,False,7.5,2002-01-01
"""
ROWS = 60


def rows():
    codes = {name: np.arange(ROWS) % column.size for name, column in SCHEMA.columns.items()}
    return decode(SCHEMA, codes, np.random.default_rng(0)), codes


def test_values_are_written_as_the_file_spells_them(tmp_path):
    (tmp_path / "other.csv").write_text(OTHER, encoding="utf-8")
    table, _ = rows()
    found = recoded(table, SCHEMA, tmp_path / "other.csv")
    assert found.lacking == ("extra",)
    assert found.dropped == ("more",)
    texts = found.table.to_pydict()
    assert list(texts) == ["rate", "sex", "area", "vet", "flag", "income", "born"]
    assert texts["sex"][:3] == ["Male", "female", None], "by its label; nothing there is missing"
    assert set(texts["area"]) == {"01", "02", "3"}, "a level that the file has not stays as it is"
    assert texts["vet"][:3] == ["N", "0.0", "1.0"]
    assert texts["flag"][:2] == ["False", "True"]
    assert set(texts["income"][3::5]) == {"-9"}
    assert set(texts["income"][4::5]) == {"N"}
    assert all(text.endswith(".0") for text in texts["income"][0::5])
    assert set(texts["rate"][2::3]) == {"NA"}
    assert {len(text.partition(".")[2]) for text in texts["rate"][0::3]} == {2}
    assert texts["born"][0].startswith("2000-")


def test_the_recoded_rows_mean_what_they_meant(tmp_path):
    (tmp_path / "other.csv").write_text(OTHER.replace("Male", "1").replace("female", "02"), encoding="utf-8")
    table, codes = rows()
    found = recoded(table, SCHEMA, tmp_path / "other.csv").table
    kept = SCHEMA.restrict([name for name in found.column_names if name != "rate"])  # whose thousandths are cut
    again = encode(kept, found)
    assert {name: again.codes[name].tolist() for name in kept.names} == {n: codes[n].tolist() for n in kept.names}


def test_zeros_in_front_are_kept():
    schema = Schema({"code": Numeric(lower=0, upper=99_999, integer=True, bins=5)})
    table = pa.table({"code": [7, 12_345]})
    other = pd.DataFrame({"code": ["00012", "00800"]})
    assert recoded(table, schema, other).table["code"].to_pylist() == ["00007", "12345"]


def test_a_file_of_other_columns_is_refused():
    with pytest.raises(UsageError, match="no column of this release"):
        recoded(rows()[0], SCHEMA, pd.DataFrame({"q": ["1"]}))


def test_the_command(tmp_path, capsys):
    release = small.clear_release().save(tmp_path / "release", rows=10)
    (tmp_path / "other.csv").write_text("GROUP,SEX,Z\nA,1.0,5\nb,2.0,6\n", encoding="utf-8")
    out = tmp_path / "rows.csv"
    assert cli.run(["sample", str(release), "-n", "30", "--as", str(tmp_path / "other.csv"), "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert "30 rows written" in said.out
    assert "lacks the column Z" in said.err
    assert "has columns that that file lacks: AGE, WORK" in said.err
    found = pd.read_csv(out, dtype=str)
    assert list(found.columns) == ["GROUP", "SEX"]
    assert set(found["SEX"]) == {"1.0", "2.0"}
    assert cli.run(["sample", str(release), "-n", "3", "--as", "nowhere.csv", "-o", str(tmp_path / "b.csv")]) == 2
    assert "nowhere.csv" in capsys.readouterr().err
    assert not (tmp_path / "b.csv").exists()


def test_a_parquet_file_gives_its_types_and_its_nulls(tmp_path):
    """A level that the release calls not applicable is null where the file has no word for it, as in rows of CSV."""
    other = pa.table(
        {
            "sex": pa.array([1, 2], pa.int8()),
            "area": pa.array(["1", "2"]).dictionary_encode(),
            "vet": pa.array([None, 1.0], pa.float64()),
            "flag": pa.array([True, False]),
            "income": pa.array([None, 12_000], pa.int32()),
            "rate": pa.array([None, 0.25], pa.float32()),
            "born": pa.array([dt.date(2001, 2, 3), None]),
        }
    )
    pq.write_table(other, tmp_path / "other.parquet")
    table, codes = rows()
    found = recoded(table, SCHEMA, tmp_path / "other.parquet")
    assert found.texts == ()
    assert [field.type for field in found.table.schema] == [field.type for field in other.schema]
    for name in ("vet", "income"):
        levels = np.array(SCHEMA.columns[name].all_levels)[codes[name]]
        assert (np.asarray(found.table[name].is_null()) == (levels == "N")).all(), name
    assert found.table["rate"].null_count == ROWS // 3
    again = encode(SCHEMA.restrict(["vet", "income", "born"]), found.table)
    assert all(again.codes[name].tolist() == codes[name].tolist() for name in ("vet", "income", "born"))


def test_values_that_a_type_cannot_hold_stay_texts_and_are_named():
    schema = Schema({"age": Categorical(levels=("1", "90+"))})
    found = recoded(pa.table({"age": ["1", "90+"]}), schema, pa.table({"age": [1, 2]}))
    assert found.texts == ("age",)
    assert found.table["age"].to_pylist() == ["1", "90+"]
