"""Private values planted in the rows are found nowhere: not in a release, not in what is printed or left behind."""

import gzip
import json
import os
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import small
from helpers.command import python
from helpers.crash import TESTS
from helpers.search import found, found_below

TEXT, NUMBER, LEVEL, AGE, BROKEN = (
    "canaryTEXTqx7",
    "7203685477580714",
    "canaryLEVELqx8",
    "8113685477580712",
    "canaryBYTESqx9",
)
NEEDLES = [TEXT, NUMBER, LEVEL, AGE, BROKEN]


def planted():
    """A file with columns that the schema does not know, and values it does not know in those it does."""
    people = small.people()
    people["canary_text"] = TEXT
    people["canary_number"] = NUMBER
    people = people.astype(object)
    people.loc[::3, "WORK"] = LEVEL
    people.loc[1::3, "GROUP"] = LEVEL  # no policy for these: the row is left out
    people.loc[::2, "AGE"] = AGE
    text = people.to_csv(index=False)
    return text.encode() + f'1,a,"{BROKEN},\n1,{BROKEN}\xff,3\n2,a,{BROKEN},yes,{TEXT},,,,\n'.encode("latin-1")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Every command on the planted file, in a place of its own; inputs lie elsewhere."""
    place = tmp_path_factory.mktemp("place")
    folders = {name: place / name for name in ("home", "temp", "work")}
    for folder in folders.values():
        folder.mkdir()
    env = {**os.environ, "HOME": str(folders["home"]), "TMPDIR": str(folders["temp"])}
    env |= {"XDG_CACHE_HOME": str(folders["home"] / "cache")}
    inputs = tmp_path_factory.mktemp("inputs")
    recipe = small.write_recipe(inputs)
    (inputs / "people.csv").write_bytes(planted())
    (inputs / "cut.csv.gz").write_bytes(gzip.compress(planted(), 0)[:-400])
    cut = inputs / "cut.toml"
    cut.write_text(recipe.read_text(encoding="utf-8").replace("people.csv", "cut.csv.gz"), encoding="utf-8")
    lacking = inputs / "lacking.toml"
    lacking.write_text(
        recipe.read_text(encoding="utf-8").replace('["SEX", "GROUP"]', '["SEX", "NOBODY"]'), encoding="utf-8"
    )
    lists = pa.table({**{c: [LEVEL] for c in ("SEX", "GROUP", "AGE")}, "WORK": [[LEVEL]]})
    pq.write_table(lists, inputs / "lists.parquet")
    nested = inputs / "lists.toml"
    nested.write_text(recipe.read_text(encoding="utf-8").replace("people.csv", "lists.parquet"), encoding="utf-8")

    commands = {
        "fit": ("fit", recipe, "-o", "release"),
        "sample": ("sample", "release", "-n", 500, "-o", "more.parquet"),
        "certificate": ("certificate", "release"),
        "fit again": ("fit", recipe, "-o", "release"),
        "fit a file cut short": ("fit", cut, "-o", "other"),
        "fit by a column that is not there": ("fit", lacking, "-o", "other"),
        "fit a column of lists": ("fit", nested, "-o", "other"),
        "sample by a level that is not there": ("sample", "release", "-n", 5, "--where", "WORK=x", "-o", "m.csv"),
    }
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    done = python(TOGETHER, json.dumps(list(commands.values()), default=str), cwd=folders["work"], env=env)
    assert done.returncode == 0, done.stderr
    ended = [subprocess.CompletedProcess(*each) for each in json.loads(done.stdout)]
    return folders, dict(zip(commands, ended, strict=True))


TOGETHER = """
import json, sys
from helpers.command import stratsynth
ended = [stratsynth(*arguments, cwd=".") for arguments in json.loads(sys.argv[1])]
print(json.dumps([(each.args, each.returncode, each.stdout, each.stderr) for each in ended]))
"""
"""Commands one after another in a process of their own, which spares the imports; their homes are the process's."""


def test_the_commands_did_what_they_should(runs):
    _, done = runs
    codes = {name: run.returncode for name, run in done.items()}
    good = ["fit", "sample", "certificate"]
    assert [codes[name] for name in good] == [0, 0, 0], done["fit"].stderr
    assert all(code in {1, 2} for name, code in codes.items() if name not in good), codes


def test_no_file_made_anywhere_holds_a_planted_value(runs):
    folders, _ = runs
    made = [p for p in folders["work"].rglob("*") if p.is_file()]
    assert len(made) >= 6
    assert found_below(NEEDLES, *folders.values()) == []


def test_nothing_printed_holds_a_planted_value(runs):
    _, done = runs
    for name, run in done.items():
        assert found(NEEDLES, name, (run.stdout + run.stderr).encode()) == []


def test_a_run_leaves_nothing_behind_but_its_output(runs):
    folders, _ = runs
    assert sorted(p.name for p in folders["work"].iterdir()) == ["more.parquet", "release"]
    assert [p for p in folders["temp"].rglob("*") if p.is_file()] == []
    assert [p for p in folders["home"].rglob("*") if p.is_file()] == []


@pytest.mark.parametrize("needle", [TEXT, NUMBER])
def test_the_search_finds_what_is_there(needle, tmp_path):
    """Or the tests above would prove nothing."""
    pq.write_table(pa.table({"a": [needle] * 50}), tmp_path / "a.parquet", compression="zstd")
    np.savez_compressed(tmp_path / "b.npz", a=np.array([needle] * 50))
    (tmp_path / "c.txt").write_text(f"x{needle}y", encoding="utf-16")
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(f"{needle}\n".encode()))
    (tmp_path / f"{needle}.txt").write_bytes(b"")
    assert len(found_below([needle], tmp_path)) == 5
    assert needle in small.SCHEMA.names or found([needle], "nothing", b"nothing") == []


def test_huge_numbers_are_found_as_numbers(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.array([int(NUMBER)]))
    pq.write_table(pa.table({"a": [float(AGE)]}), tmp_path / "b.parquet", compression="none")
    assert found_below([NUMBER], tmp_path)
    assert found_below([AGE], tmp_path)
