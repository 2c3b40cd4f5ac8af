"""Lengths of a question's and a fit's walk through our own code: counted in a fresh process, never above the table."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from helpers.walks import Walk

TESTS = Path(__file__).parents[1]
MOST = {
    "a question, the driver's part": {"functions": 155, "files": 35, "jumps": 157},
    "a question, the driver's part, no rows to be loaded": {"functions": 87, "files": 21, "jumps": 67},
    "a question, from program to program": {"functions": 182, "files": 39, "jumps": 176},
    "a question, from program to program, no rows to be loaded": {"functions": 114, "files": 25, "jumps": 86},
    "mst": {"functions": 969, "files": 145},
    "group_regression": {"functions": 914, "files": 149},
    "fermi": {"functions": 730, "files": 126},
}
"""The most functions entered, files they lie in, and calls from one file into another; of recipes, from the recipe's
file to the release folder. Lower a figure when a walk has become shorter; a longer walk needs a reason.

The reason for the last ten files of a recipe: a file is in the trusted base or it is not (docs/privacy.md), so words,
files and editing helpers lie beside the code that the guarantee rests on, and not in it. The reason for
one file and two functions more: a page writes the papers that it cites by `stratsynth.references`. The reason for
four files and up to 29 functions more: sizes by least squares, their comparison with declared ones, its table, and the
question after a fit that is done. The reason for ten files and up to 39 functions more: the first question, whose
price is settled before anything is read, and marks of the rows, by which a copy of them is known. The reason for 16 to
20 files and up to 126 functions more: a page answers means and quantiles besides counts, and bounds where strata lack a
table; laws of numbers within bins, sums, bands and totals are asked for even where a schema declares none, and
the built-in census declares a Pareto tail. The reason for four files and up to 23 functions more: a table may be two
linked ones, tables of everybody may be asked beside strata, and epsilons of public data have a class of their own. The
reason for one function and one jump of a question, one file and up to 14 functions of a recipe: the currency of a fit,
zCDP or the exact curve, is checked with each question and stated."""


@pytest.fixture(scope="module")
def walks(tmp_path_factory):
    """Counts made in a process of its own, where imports and hashes are the same each time."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-m", "helpers.walks"],
        cwd=tmp_path_factory.mktemp("walks"),
        env={**os.environ, **single, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_walk_is_bounded(walks):
    assert set(walks) == set(MOST)


@pytest.mark.parametrize("name", MOST)
def test_a_walk_is_no_longer_than_stated(walks, name):
    found = {key: walks[name][key] for key in MOST[name]}
    assert all(found[key] <= most for key, most in MOST[name].items()), found


def test_of_a_walk_functions_files_and_jumps_are_counted(tmp_path, monkeypatch):
    """Two files: a calls b twice and has itself called back; comprehensions, lambdas and classes are no functions."""
    folder = tmp_path / "walked"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "a.py").write_text(
        "from walked import b\n"
        "def start():\n    class Here:\n        pass\n"
        "    return [b.twice(i) for i in range(2)] + list(map(lambda i: near(i), [1]))\n"
        "def near(i):\n    return i\n",
        encoding="utf-8",
    )
    (folder / "b.py").write_text(
        "def twice(i):\n    from walked.a import near\n    return sorted([near(i), i], key=own)\n"
        "def own(i):\n    return i\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    start = import_module("walked.a").start
    with Walk(str(folder)).on() as walk:
        start()
    # start, near, twice, own; jumps: two calls of twice, and near from each of them
    assert walk.figures == {"functions": 4, "files": 2, "jumps": 4}
    with Walk(str(folder), ("b.py", "twice")).on() as inside:
        start()
    assert inside.figures == {"functions": 3, "files": 2, "jumps": 2}
