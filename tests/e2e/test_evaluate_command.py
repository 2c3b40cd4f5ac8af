"""`stratsynth evaluate`, as a user starts it."""

import json

import pandas as pd
import pytest

from helpers import small
from helpers.command import complaint, stratsynth
from helpers.pages import Page
from helpers.releases import saved
from stratsynth import Schema, census, cli

COLUMNS = ("AGEP", "SEX", "RAC1P", "ESR", "DIS", "SCHL")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A private table, a release folder, a hold-out and their schema."""
    place = tmp_path_factory.mktemp("evaluate")
    schema = census.schema().restrict(COLUMNS)
    schema.write_toml(place / "schema.toml")
    census.make(800)[list(COLUMNS)].to_csv(place / "people.csv", index=False)
    (place / "release").mkdir()
    census.make(600, offset=5000)[list(COLUMNS)].to_parquet(place / "release" / "synthetic.parquet")
    certificate = dict(small.small_release(seed=1).certificate)
    (place / "release" / "certificate.json").write_text(json.dumps(certificate), encoding="utf-8")
    census.holdout(400)[list(COLUMNS)].to_parquet(place / "others.parquet")
    return place


def ask(*more, out="out", **instead):
    settings = {"real": "people.csv", "synthetic": "release", "schema": "schema.toml", "by": "SEX,RAC1P"} | instead
    options = [part for name, value in settings.items() for part in (f"--{name}", value)]
    return ["evaluate", *options, "-o", out, *more]


def test_every_metric_is_written_stamped_and_summed_up(folder):
    more = ["--holdout", "others.parquet", "--target", "employment", "-k", "2", "--area", "RAC1P"]
    done = stratsynth(*ask(*more, out="full"), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("INTERNAL")
    assert done.stdout.count("not estimable") >= 1  # nobody of some group
    assert "On 400 held-out real rows" in done.stdout
    out = folder / "full"
    said = json.loads((out / "evaluation.json").read_text(encoding="utf-8"))
    assert said["facts"]["real_rows"] == 800
    assert "INTERNAL" in said["facts"]["stamp"]
    for name in said["frames"]:
        frame = pd.read_csv(out / f"{name}.csv", dtype=str)
        assert set(frame["stamp"]) == {"INTERNAL"}
        if "scope" in frame and name != "areas":
            groups = frame[frame["scope"] == "group"]
            assert len(groups[["SEX", "RAC1P"]].drop_duplicates()) == 18
    assert "INTERNAL" in (out / "INTERNAL.txt").read_text(encoding="utf-8")
    page = Page((out / "report.html").read_text(encoding="utf-8")).check()
    assert "What it is good for" in page.text
    assert "Epsilon is 1" in page.text, "the certificate of the release folder"


def test_another_release_can_stand_beside_it(folder):
    more = ["-k", "2", "--cliques", "5", "--beside", "vanilla=others.parquet"]
    done = stratsynth(*ask(*more, out="two"), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "vanilla" in done.stdout
    page = Page((folder / "two" / "report.html").read_text(encoding="utf-8")).check()
    assert "The smallest groups are" in page.text
    table, _ = page.numbers("INTERNAL-disparity-card")
    assert {"vanilla error", "this release error"} <= table[0].keys()


def test_a_program_can_read_the_answer(folder):
    done = stratsynth(*ask("--json", "-k", "2", "--cliques", "5", out="json"), cwd=folder)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["INTERNAL"] is True
    assert said["facts"]["cliques"] == 5
    assert len(said["groups"]) == 19
    assert said["groups"][-1]["scope"] == "everybody"
    assert said["facts"]["headline"]["mean"]["variable"] == "AGEP"
    means = [row for row in said["numbers"] if row["statistic"] == "mean"]
    assert len(means) == 19
    assert means[-1]["n"] == 800


def test_shares_above_stated_thresholds_are_compared(folder):
    more = ["--threshold", "AGEP=17,64", "-k", "1", "--cliques", "5"]
    done = stratsynth(*ask(*more, out="above", by="SEX"), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "above 64" in done.stdout
    frame = pd.read_csv(folder / "above" / "numbers.csv")
    row = frame[(frame["statistic"] == "above 64") & (frame["scope"] == "everybody")].iloc[0]
    ages = (
        pd.read_csv(folder / name, usecols=["AGEP"]) if name.endswith("csv") else pd.read_parquet(folder / name)
        for name in ("people.csv", "release/synthetic.parquet")
    )
    assert [row["real"], row["synthetic"]] == pytest.approx([(t["AGEP"].astype(int) > 64).mean() for t in ages])


@pytest.mark.parametrize("out", ["release", "release/evaluation", "release/a/b"])
def test_nothing_internal_is_written_into_a_release(folder, out):
    before = sorted((folder / "release").rglob("*"))
    assert "release" in complaint(stratsynth(*ask(out=out), cwd=folder), 2)
    assert sorted((folder / "release").rglob("*")) == before


def test_what_exists_is_not_overwritten(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("dear diary", encoding="utf-8")
    for out in ("mine", "people.csv"):
        assert cli.run(ask(out=out)) == 2
        assert "exists already" in capsys.readouterr().err
    assert [path.name for path in (folder / "mine").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("more", "instead", "says"),
    [
        (["--target", "ESR"], {}, "hold-out"),
        (["--holdout", "people.csv", "--target", "DIS"], {}, "hold-out"),
        (["--holdout", "others.parquet", "--target", "ESR"], {}, "positive"),
        (["--positive", "1"], {}, "target"),
        (["--area", "PUMA"], {}, "PUMA"),
        ([], {"by": "SEX,RACE"}, "RAC"),
        ([], {"real": "nobody.csv"}, "no such file"),
        ([], {"synthetic": "people.txt"}, ".parquet"),
        ([], {"schema": "schema.yaml"}, "schema"),
        (["--beside", "others.parquet"], {}, "NAME=RELEASE"),
        (["--threshold", "AGEP"], {}, "COLUMN=NUMBER"),
        (["--threshold", "AGEP=old"], {}, "COLUMN=NUMBER"),
        (["--threshold", "SEX=1"], {}, "no column of numbers"),
        (["--threshold", "AGEP=1", "--marginals-only"], {}, "--threshold needs the rows"),
        (["--beside", "subsample=others.parquet"], {}, "rename"),
    ],
)
def test_wrong_requests_are_refused_in_a_line_and_leave_nothing(folder, capsys, monkeypatch, more, instead, says):
    monkeypatch.chdir(folder)
    assert cli.run(ask("-k", "2", *more, out="never", **instead)) == 2
    error = capsys.readouterr().err
    assert says in error
    assert len(error.splitlines()) <= 2
    assert not (folder / "never").exists()


def test_a_table_that_lacks_a_column_is_refused_by_name(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    Schema.load("schema.toml").restrict(["AGEP", "SEX"]).write_toml("few.toml")
    pd.read_csv("people.csv").drop(columns="SEX").to_csv("few.csv", index=False)
    assert cli.run(ask(real="few.csv", schema="few.toml", by="AGEP")) == 2
    assert "SEX" in capsys.readouterr().err


def test_intervals_of_a_release_are_checked_by_group(tmp_path):
    folder = saved(small.stratified(), tmp_path / "release", rows=60)
    small.people().to_csv(tmp_path / "real.csv", index=False)
    small.SCHEMA.write_toml(tmp_path / "schema.toml")
    arguments = ("--real", "real.csv", "--schema", "schema.toml", "--by", "SEX", "-k", "1", "-o", "found")
    done = stratsynth("evaluate", "--synthetic", folder, *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    coverage = pd.read_csv(tmp_path / "found" / "coverage.csv")
    assert coverage.n.tolist() == [8, 8]
    assert set(coverage.stamp) == {"INTERNAL"}
    assert "Whether its intervals hold" in (tmp_path / "found" / "report.html").read_text(encoding="utf-8")
