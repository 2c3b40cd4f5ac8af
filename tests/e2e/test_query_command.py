"""`stratsynth query`: what it prints and writes, and how wrong questions end."""

import csv
import json

import pytest

from helpers import small
from helpers.command import complaint, stratsynth
from helpers.releases import saved
from stratsynth.adapters import MST
from stratsynth.cli import queries
from stratsynth.errors import UsageError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One whose noise is small enough for every quotient to have an interval."""
    return small.clear_release().save(tmp_path_factory.mktemp("query") / "release", rows=20)


def test_answers_are_printed_and_written(folder, tmp_path):
    done = stratsynth("query", folder, "--columns", "WORK", "--by", "SEX", "--where", "GROUP=a", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["SEX", "WORK", "estimate", "noise_sd", "noise_low", "noise_high", "low", "high", "status"]
    assert len(lines) == 6
    rows = json.loads(stratsynth("query", folder, "--columns", "WORK", "--json", cwd=tmp_path).stdout)
    assert [row["WORK"] for row in rows] == ["N", "yes", "no"]
    assert rows[0]["noise_low"] < rows[0]["estimate"] < rows[0]["noise_high"]
    assert rows[0]["model"] is None
    mean = ("--columns", "AGE", "--statistic", "mean", "--by", "SEX", "--versus", "SEX=1", "--level", "0.9")
    done = stratsynth("query", folder, *mean, "-o", "mean.csv", cwd=tmp_path)
    assert done.stdout == "2 results written to mean.csv\n"
    first, second = csv.DictReader((tmp_path / "mean.csv").read_text(encoding="utf-8").splitlines())
    assert (first["estimate"], second["SEX"]) == ("0.0", "2")
    assert stratsynth("query", folder, *mean, "-o", "mean.csv", cwd=tmp_path).returncode == 2


def test_what_no_table_covers_says_so(folder, tmp_path):
    rows = json.loads(stratsynth("query", folder, "--columns", "WORK,AGE", "--json", cwd=tmp_path).stdout)
    assert {row["status"] for row in rows} == {"not_estimable"}
    assert rows[0]["estimate"] is None
    assert rows[0]["model"] is not None
    assert rows[0]["note"] == "no measured table covers WORK x AGE; there are WORK; AGE"


def test_many_questions_come_from_a_file(folder, tmp_path):
    asked = [{"columns": ["WORK"], "where": {"SEX": "1"}}, {"columns": "AGE", "statistic": "quantile", "quantile": 0.9}]
    (tmp_path / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    rows = json.loads(stratsynth("query", folder, "--queries", "asked.json", "--json", cwd=tmp_path).stdout)
    assert [(row["query"], row["cell"]) for row in rows] == [(0, "WORK=N"), (0, "WORK=yes"), (0, "WORK=no"), (1, "")]


def test_choices_of_tables_are_said(tmp_path):
    folder = saved(MST(), tmp_path / "release", rows=20)
    done = stratsynth("query", folder, "--columns", "WORK", cwd=tmp_path)
    assert "Which tables were measured was chosen from earlier noisy answers." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--columns", "WORKS"], "did you mean 'WORK'"),
        (["--columns", "WORK", "--where", "SEX"], "is not COLUMN=LEVEL"),
        (["--columns", "WORK", "--where", "SEX=9"], "no level '9'"),
        (["--columns", "WORK", "--statistic", "median"], 'must be "count" or'),
        (["--columns", "WORK", "--versus", "SEX=1", "--versus", "SEX=2"], "names SEX twice"),
        (["--queries", "none.json"], "cannot be read"),
        (["--queries", "bad.json"], "a JSON list"),
        (["--queries", "key.json"], "did you mean 'columns'"),
        (["--queries", "key.json", "--columns", "WORK"], "not both"),
    ],
)
def test_wrong_questions_end_with_the_remedy(folder, tmp_path, arguments, message):
    (tmp_path / "bad.json").write_text('{"columns": ["WORK"]}', encoding="utf-8")
    (tmp_path / "key.json").write_text('[{"column": ["WORK"]}]', encoding="utf-8")
    assert message in complaint(stratsynth("query", folder, *arguments, cwd=tmp_path), 2)


@pytest.mark.parametrize(
    ("item", "levels"),
    [
        ("SEX=2", {"SEX": ["2"]}),
        ("AGEP>=65", {"AGEP": ["65.."]}),
        ("AGEP <= 17", {"AGEP": ["..17"]}),
        ("A>B=2", {"A>B": ["2"]}),
        ("JOB=a=b", {"JOB": ["a=b"]}),
        ("JOB=>5", {"JOB": [">5"]}),
        ("AGEP=65..80", {"AGEP": ["65..80"]}),
    ],
)
def test_a_condition_is_a_level_or_a_range(item, levels):
    assert queries.levels([item], "--where") == levels


@pytest.mark.parametrize(
    ("item", "several", "says"),
    [
        ("AGEP>65", True, "is not COLUMN=LEVEL, COLUMN>=NUMBER or COLUMN<=NUMBER; ranges include their ends"),
        ("AGEP>=65", False, "is not COLUMN=LEVEL; ranges"),
        ("=2", True, "is not COLUMN=LEVEL"),
        ("SEX", True, "is not COLUMN=LEVEL"),
    ],
)
def test_a_condition_of_another_form_is_refused(item, several, says):
    with pytest.raises(UsageError, match=says):
        queries.levels([item], "--where", several=several)
