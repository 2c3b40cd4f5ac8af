"""Drawing by group from the command line."""

import pandas as pd
import pytest

from helpers import small
from stratsynth import cli

BY = ["SEX", "GROUP"]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return small.clear_release().save(tmp_path_factory.mktemp("release") / "release", rows=40, seed=5)


def command(*arguments):
    return cli.run([str(a) for a in arguments])


def test_balance(release, tmp_path, capsys):
    assert command("sample", release, "-n", 90, "--balance", "SEX,GROUP", "-o", tmp_path / "a.csv") == 0
    assert "90 rows" in capsys.readouterr().out
    rows = pd.read_csv(tmp_path / "a.csv", dtype=str)
    assert rows[BY].value_counts().to_dict() == {("1", "a"): 30, ("1", "b"): 30, ("2", "a"): 30}


def test_by_group(release, tmp_path, capsys):
    (tmp_path / "numbers.csv").write_text("SEX,GROUP,rows\n1,b,25\n1,a,5\n", encoding="utf-8")
    numbers = tmp_path / "numbers.csv"
    assert command("sample", release, "--by-group", numbers, "--where", "WORK=yes", "-o", tmp_path / "a.csv") == 0
    assert "30 rows" in capsys.readouterr().out
    rows = pd.read_csv(tmp_path / "a.csv", dtype=str)
    assert rows[[*BY, "WORK"]].value_counts().to_dict() == {("1", "b", "yes"): 25, ("1", "a", "yes"): 5}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "-n"),
        (["-n", 5, "--balance", "SEXX"], "did you mean 'SEX'"),
        (["--balance", "SEX"], "-n"),
        (["--by-group", "nowhere.csv"], "nowhere.csv"),
        (["--by-group", "bad.csv"], "as many fields"),
        (["--by-group", "impossible.csv"], "no weight"),
        (["-n", 7, "--by-group", "good.csv"], "adds up to 3"),
        (["-n", 3, "--balance", "SEX", "--by-group", "good.csv"], "not both"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_and_nothing_written(release, tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("SEX,GROUP,rows\n1,b\n", encoding="utf-8")
    (tmp_path / "impossible.csv").write_text("SEX,GROUP,rows\n2,b,3\n", encoding="utf-8")
    (tmp_path / "good.csv").write_text("SEX,GROUP,rows\n1,b,3\n", encoding="utf-8")
    assert command("sample", release, *arguments, "-o", "a.csv") == 2
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said
    assert not (tmp_path / "a.csv").exists()
