"""Drawing two linked tables by conditions on either, and a block at a time into files."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import stratsynth as ss
from helpers import homes, small
from stratsynth import cli
from stratsynth.adapters import Linked
from stratsynth.errors import SchemaError, UsageError
from stratsynth.release import linked_draw, linked_files
from stratsynth.release.linked_where import LinkedWhere


@pytest.fixture(scope="module")
def release():
    table = ss.open_tables(*homes.tables(400), schema=homes.SCHEMA, declared_size=400)
    return ss.fit(Linked(base="mst", children="chain"), table, ss.Budget(4, 1e-9), seed=0)


@pytest.fixture(scope="module")
def large(release):
    return release.sample_tables(10_000, seed=2)


def whole(parents, persons):
    """True if keys count the parents, and each has as many persons, and as large a sum, as it says."""
    by = persons.groupby("SERIALNO")
    return (
        parents["SERIALNO"].tolist() == list(range(1, len(parents) + 1))
        and (by.size().to_numpy() == parents["NP"].to_numpy()).all()
        and (by["PINCP"].sum().to_numpy() == parents["HINCP"].to_numpy()).all()
        and by["SPORDER"].apply(lambda places: list(places) == list(range(1, len(places) + 1))).all()
    )


CASES = {
    "own column": ({"TEN": 2}, lambda p, c: p["TEN"].eq("2")),
    "size": ({"NP": ["2", "3"]}, lambda p, c: p["NP"].isin([2, 3])),
    "count": ({"N18": "1"}, lambda p, c: p["N18"].eq(1)),
    "sum": ({"HINCP": "25000..59999"}, lambda p, c: p["HINCP"].between(25_000, 59_999)),
    "first person": ({"R_SEX": "1", "R_AGEP": "65.."}, lambda p, c: has(p, c[(c["SPORDER"] == 1) & (c["AGEP"] > 64)])),
    "a person": ({"AGEP": "..4"}, lambda p, c: has(p, c[c["AGEP"] < 5])),
    "one person, both": ({"AGEP": "65..", "SEX": 2}, lambda p, c: has(p, c[(c["AGEP"] > 64) & (c["SEX"] == "2")])),
    "both tables": ({"TEN": "1", "AGEP": "..4"}, lambda p, c: p["TEN"].eq("1") & has(p, c[c["AGEP"] < 5])),
}


def has(parents, persons):
    return parents["SERIALNO"].isin(persons["SERIALNO"])


@pytest.mark.parametrize("case", CASES)
def test_every_household_that_is_drawn_meets_the_condition_and_is_whole(release, case):
    where, met = CASES[case]
    parents, persons = release.sample_tables(60, seed=1, where=where)
    assert len(parents) == 60
    assert met(parents, persons).all()
    assert whole(parents, persons)


@pytest.mark.parametrize("case", ["size", "sum", "a person", "both tables"])
def test_what_is_drawn_is_what_a_condition_leaves_of_a_large_sample(release, large, case):
    where, met = CASES[case]
    parents, persons = large
    kept = parents[met(parents, persons)]
    given, _ = release.sample_tables(2_000, seed=3, where=where)
    for name in ("TEN", "NP", "N18"):
        one, other = (frame[name].value_counts(normalize=True) for frame in (kept, given))
        assert one.sub(other, fill_value=0).abs().sum() / 2 < 0.05


def test_a_model_that_serves_no_evidence_has_its_parents_kept_or_left(release, monkeypatch):
    monkeypatch.setattr(type(release.model), "linked_evidence", lambda *_: {})
    parents, persons = release.sample_tables(40, seed=1, where={"TEN": "1", "R_SEX": "1"})
    assert set(parents["TEN"]) == {"1"}
    assert set(persons[persons["SPORDER"] == 1]["SEX"]) == {"1"}
    assert whole(parents, persons)


def test_a_count_that_the_parent_lacks_is_a_condition_too():
    table = ss.open_tables(*homes.tables(200), schema=homes.PLAIN, declared_size=200)
    release = ss.fit(Linked(base="mst"), table, ss.Budget(4, 1e-9), seed=0)
    _, persons = release.sample_tables(50, seed=1, where={"SIZE": "3"})
    assert set(persons.groupby("SERIALNO").size()) == {3}
    assert LinkedWhere.of(homes.PLAIN, {"SIZE": "5+"}).evidence() == {"SIZE": frozenset({4})}
    assert LinkedWhere.of(homes.SCHEMA, {"N18": "1", "HINCP": "25000..59999"}).evidence() == {}


@pytest.mark.parametrize(
    ("where", "error", "why"),
    [
        ({"AGE": 3}, SchemaError, "neither table has a column 'AGE'; did you mean 'AGEP'"),
        ({"SERIALNO": 3}, SchemaError, "neither table has a column"),
        ({"TEN": "9"}, SchemaError, "where: column TEN"),
        ({"AGEP": "..7"}, SchemaError, "where: .*bins"),
        ({"R_SEX": "9"}, SchemaError, "where: column SEX"),
        ({"AGEP": []}, UsageError, "where: a condition on AGEP"),
        ("AGEP", UsageError, "where is a table from columns to levels"),
    ],
)
def test_conditions_that_cannot_be_meant_are_refused(release, where, error, why):
    with pytest.raises(error, match=why):
        release.sample_tables(5, where=where)


def test_conditions_that_nobody_meets_end_at_a_declared_limit(release, monkeypatch):
    monkeypatch.setattr(linked_draw, "BLOCK", 200)
    monkeypatch.setattr(linked_draw, "TRIES", 10)
    with pytest.raises(UsageError, match=r"drawn 0 meet it, and no more than 10 are drawn .*and 200 beside"):
        release.sample_tables(3, seed=0, where={"NP": "1", "AGEP": "..4", "PINCP": "79000..100000"})
    with pytest.raises(UsageError, match="no weight"):
        release.sample_tables(3, seed=0, where={"KIND": "2"})


def test_blocks_make_one_sample_and_what_was_given_up_is_added_up(release, monkeypatch, tmp_path):
    monkeypatch.setattr(linked_draw, "BLOCK", 100)
    monkeypatch.setattr(linked_files, "BLOCK", 100)
    parents, persons = release.sample_tables(250, seed=4)
    assert whole(parents, persons)
    drawing = linked_draw.LinkedDrawing.of(release, 250, 4)
    counted = {}
    sizes = [next(iter(block.values())).num_rows for block in drawing.blocks(counted)]
    assert sizes == [100, 100, 50]
    assert (counted["parents"], counted["rows"]) == (250, len(persons))
    for csv, ending in ((False, "parquet"), (True, "csv")):
        rows, _ = linked_files.write_linked(drawing, tmp_path / ending, csv=csv)
        assert rows == {f"household.{ending}": 250, f"person.{ending}": len(persons)}
        found = tmp_path / ending / f"person.{ending}"
        frame = (pq.read_table(found) if not csv else pyarrow.csv.read_csv(found)).to_pandas()
        assert frame["SERIALNO"].tolist() == persons["SERIALNO"].tolist()
        assert np.array_equal(frame["PINCP"].astype(float), persons["PINCP"].astype(float), equal_nan=True)
    assert (tmp_path / "csv" / "household.csv").read_text().startswith("SERIALNO,TEN,HINCP,KIND,NP,N18\n1,")
    given = linked_draw.linked_draw(release, 40, 1, counted, {"AGEP": "..4"})
    assert given["household"].num_rows == 40
    assert counted["parents"] > 40


def test_texts_are_quoted_throughout_where_a_level_needs_it(release, tmp_path):
    odd = ss.Schema({"TEN": ss.Categorical(levels=("own, free", "rent"))})
    file = linked_files._CsvFile(tmp_path / "x.csv", odd)
    with file:
        for name in ("rent", "own, free"):
            file.write_table(pa.table({"SERIALNO": [1], "TEN": [name]}))
    assert pd.read_csv(tmp_path / "x.csv")["TEN"].tolist() == ["rent", "own, free"]


def test_the_command_draws_by_condition_and_says_what_it_took(release, tmp_path, capsys):
    folder = release.save(tmp_path / "release", rows=5, seed=5)

    def command(*words):
        return cli.run([str(word) for word in ("sample", folder, "-n", 30, *words)])

    assert command("-o", tmp_path / "young", "--where", "AGEP=..4", "--where", "TEN=1", "--csv") == 0
    said = " ".join(capsys.readouterr().out.split())
    persons = pd.read_csv(tmp_path / "young" / "person.csv")
    assert persons[persons["AGEP"] < 5]["SERIALNO"].nunique() == 30
    assert "household.csv 30" in said
    assert "households were drawn for these" in said
    assert "without some of what is known of their household" in said
    assert command("-o", tmp_path / "none", "--where", "AGE=3") == 2
    assert "did you mean 'AGEP'" in capsys.readouterr().err
    assert command("-o", tmp_path / "x", "--balance", "TEN") == 2
    one = small.small_release(seed=1).save(tmp_path / "one", rows=5)
    assert cli.run(["sample", str(one), "-n", "3", "-o", str(tmp_path / "y.csv"), "--csv"]) == 2
    assert not (tmp_path / "none").exists()
