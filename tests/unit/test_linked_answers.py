"""Questions about two linked tables: answers by counted table in units of households, and what is refused."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import stratsynth as ss
from helpers import homes
from stratsynth import cli
from stratsynth.adapters import Linked
from stratsynth.answers.linked import slot_schema, slot_tables
from stratsynth.errors import SchemaError, Unsupported, UsageError

N = 500


def fitted(children):
    table = ss.open_tables(*homes.tables(N), schema=homes.SCHEMA, declared_size=N)
    return ss.fit(Linked(base="mst", children=children), table, ss.Budget(4, 1e-9), seed=0)


@pytest.fixture(scope="module")
def release():
    return fitted("chain")


@pytest.fixture(scope="module")
def simple():
    return fitted("independent")


def true(slot, name):
    """Return the private count of each level of a column, in households, by the rows that a fit counts."""
    rows, size = homes.slots(*homes.tables(N))[slot], homes.SCHEMA.counted.size(f"{slot}.{name}")
    return np.bincount(rows.codes[name], rows.weight, minlength=size) / 60


def test_intervals_hold_of_every_counted_table(release, simple):
    held = []
    for one, slots in ((release, ("parent", "second", "others")), (simple, ("rest",))):
        for name in dict.fromkeys(one.measurements["clique"].to_pylist()):
            slot, _, column = name.partition(".")
            if "," not in name and slot in slots:
                found = one.query([name])
                exact = true(slot, column)
                held += ((found["noise_low"] <= exact) & (exact <= found["noise_high"])).tolist()
    assert len(held) > 150
    assert np.mean(held) > 0.85


def test_answers_are_in_households_with_the_noise_of_one(release):
    total, size = release.query(), release.query(["NP"])
    assert total["estimate"][0] == pytest.approx(N, abs=8 * total["noise_sd"][0])
    sigma = release.measurements.to_pandas().query("clique == 'parent.NP'")["sigma"].min() / 60
    assert size["noise_sd"].max() <= sigma * 1.01
    assert list(size["parent.NP"]) == ["1", "2", "3", "4", "5", "6+"]
    share = release.query(["parent.NP"], statistic="share")["estimate"]
    assert share[0] == pytest.approx(size["estimate"][0] / size["estimate"].sum(), abs=0.01)


def test_numbers_have_ranges_and_quantiles(release):
    old = release.query(where={"R_AGEP": "65.."})
    assert old["status"][0] == "ok"
    assert old["estimate"][0] == pytest.approx((true("parent", "R_AGEP")[5:]).sum(), abs=8 * old["noise_sd"][0])
    median = release.query(["R_AGEP"], statistic="quantile")
    assert median["status"][0] == "bounded"
    second = release.query(["second.AGEP"], statistic="quantile")
    assert second["noise_low"][0] <= 65
    assert second["noise_high"][0] >= 45
    schema = slot_schema(homes.SCHEMA.counted, "second")
    assert isinstance(schema.column("second.AGEP"), ss.Numeric)
    assert not isinstance(schema.column("second.DIF"), ss.Numeric)
    assert not isinstance(schema.column("second.N18"), ss.Numeric)


def test_parts_of_households_are_named_as_such(release, simple):
    for one, name in ((release, "others.SEX"), (simple, "rest.SEX")):
        assert set(one.query([name])["note"]) == {"a person counts as its part of the household"}
    assert set(release.query(["second.SEX"])["note"]) == {""}
    said = release.answers.conditions[0]
    assert said.startswith("Counts are of households. Columns without a table's name are of households")
    assert "1/2 for each of two, rounded down to parts of 60, so that these are no numbers of persons" in said
    assert "rest." not in said


def test_a_question_that_no_table_covers_has_the_value_of_the_model_alone(release):
    found = release.query(["TEN"], where={"R_AGEP": "65..", "N18": "1", "R_PINCP": "-5000..15999"}, versus={"TEN": "1"})
    assert set(found["status"]) == {"not_estimable"}
    assert found["noise_low"].isna().all()
    assert "no measured table covers" in found["note"][0]
    assert found["model"].notna().all()
    mean = release.query(["R_AGEP"], statistic="mean", where={"TEN": "1", "N18": "1", "R_PINCP": "16000..36999"})
    assert mean["model"].isna().all()


@pytest.mark.parametrize(
    ("asked", "error", "why"),
    [
        ({"columns": ["AGEP"]}, UsageError, "no table counts all of them: ask for R_AGEP, second.AGEP or others.AGEP"),
        ({"columns": ["second.SEX"], "where": {"others.SEX": "1"}}, UsageError, "columns of second and others"),
        ({"columns": ["rest.SEX"]}, UsageError, "the table rest was not counted in this fit"),
        ({"columns": ["TENN"]}, SchemaError, "has no column 'TENN'; did you mean 'TEN'"),
        ({"columns": ["second.TENN"]}, SchemaError, "the table second has no column 'TENN'"),
        ({"columns": ["TEN"], "statistic": "mean"}, UsageError, "not numeric"),
    ],
)
def test_what_is_asked_wrongly_is_told_what_there_is(release, asked, error, why):
    with pytest.raises(error, match=why):
        release.query(**asked)


def test_columns_of_the_parent_go_with_those_of_a_child_row(release):
    found = release.query(["second.SEX"], by=["TEN"])
    assert list(found.columns[:2]) == ["second.TEN", "second.SEX"]


def test_child_rows_in_strata_are_refused_and_households_are_not(release):
    table = release.measurements
    place = table.column_names.index("stratum")
    in_strata = table.set_column(place, "stratum", pa.array(["parent.TEN=1"] * table.num_rows))
    with pytest.raises(Unsupported, match="ask columns of households"):
        slot_tables(homes.SCHEMA.counted, "second", release.statement, in_strata)


def test_samples_with_intervals_are_refused_with_the_reason(release):
    with pytest.raises(Unsupported, match="of linked were not found to hold"):
        release.samples(3)


def test_the_command_answers_from_the_folder_and_says_what_is_counted(release, tmp_path, capsys):
    folder = release.save(tmp_path / "release", rows=20, seed=0)

    def command(*words):
        return cli.run(["query", str(folder), *map(str, words)])

    assert command("--columns", "NP", "--where", "R_AGEP>=65") == 0
    assert "Counts are of households" in " ".join(capsys.readouterr().out.split())
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps([{"columns": ["others.SEX"]}, {"where": {"TEN": "1"}}, {"columns": ["second.SEX"]}]))
    assert command("--queries", asked, "-o", tmp_path / "found.csv") == 0
    found = pd.read_csv(tmp_path / "found.csv")
    assert found["query"].tolist() == [0, 0, 1, 2, 2]
    assert found["cell"][0] == "others.SEX=1"
    expected = [*release.query(["others.SEX"])["estimate"], *release.query(where={"TEN": "1"})["estimate"]]
    assert found["estimate"][:3].tolist() == pytest.approx(expected)
    assert command("--columns", "AGEP") == 2
    assert "no table counts all of them" in " ".join(capsys.readouterr().err.split())
    assert "A record is a household here" in (folder / "report.html").read_text(encoding="utf-8")
