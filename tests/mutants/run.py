"""Plants bugs in a copy of the sources, one at a time, and runs the tests that must notice.

The bugs are described in the TOML files beside this one, a file an area. `failures.toml` says what the failures and
findings are that they stand for, `exempt.toml` which of these no test can notice, and why. `scripts/mutants` starts
this; tests/unit/test_mutants.py keeps the files up to date. A mutant that `needs` a package, which is an extra, is
skipped where that is not installed: `scripts/mutants --with NAME` runs those of an extra in its own environment.
"""

from __future__ import annotations

import argparse
import itertools
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
LISTS = ("failures", "exempt")
"""The files that hold no mutants."""
PACKAGES = {"duckdb": "duckdb", "dask": "distributed", "ray": "ray", "spark": "pyspark"}
"""Modules installed with each extra that a mutant may need."""
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.egg-info")
SECONDS = 600
"""The longest that the tests of one mutant may take."""


@dataclass(frozen=True)
class Mutant:
    """A bug, where it is planted, and the tests that must fail with it."""

    area: str
    """The file that describes it, without its ending."""
    name: str
    finding: tuple[str, ...]
    """The failures and findings of `failures.toml` that it stands for."""
    what: str
    """The bug in one sentence."""
    file: str
    """Path of the file it is planted in, from the repository."""
    old: str
    """The text that it replaces, which occurs once in the file."""
    new: str
    tests: tuple[str, ...]
    """Node ids; each must fail. Of a parametrised test without its brackets, one case must."""
    needs: str | None = None
    """The extra without which the tests would be skipped."""

    @property
    def skipped(self) -> bool:
        """True if it cannot be judged here."""
        return self.needs is not None and find_spec(PACKAGES[self.needs]) is None

    def planted(self, text: str) -> str:
        """The file's text with the bug in it."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: `old` occurs {text.count(self.old)} times in {self.file}, not once.")
        return text.replace(self.old, self.new)


def mutants() -> list[Mutant]:
    """All of them, area by area."""
    return [
        Mutant(area=path.stem, **{key: tuple(v) if isinstance(v, list) else v for key, v in table.items()})
        for path in sorted(HERE.glob("*.toml"))
        if path.stem not in LISTS
        for table in tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
    ]


def listed(name: str) -> dict[str, Any]:
    """A list of failures: `failures` or `exempt`, by id."""
    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))


def caught(mutant: Mutant, tree: Path, stamp: int) -> tuple[dict[str, bool], str]:
    """For each test whether it failed with the bug planted in a tree of sources, and what pytest said.

    Args:
        mutant: The bug.
        tree: A copy of the sources, which is left as it was found.
        stamp: The modification time of the planted file, in seconds: a new one each time, so that Python takes no
            bytecode of another version for this one's.
    """
    file = tree / mutant.file
    text, before = file.read_bytes(), file.stat()
    file.write_text(mutant.planted(text.decode()), encoding="utf-8", newline="")
    os.utime(file, (stamp, stamp))
    try:
        with tempfile.TemporaryDirectory() as empty:
            failed, said = run_pytest(tree, Path(empty), mutant.tests)
    finally:
        file.write_bytes(text)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return {test: any(f == test or f.startswith(f"{test}[") for f in failed) for test in mutant.tests}, said


def run_pytest(tree: Path, folder: Path, tests: Sequence[str]) -> tuple[set[str], str]:
    """The node ids of what failed of some tests, run against a tree of sources, and all that pytest printed.

    What could not be started, such as a file that cannot be imported, has not failed.
    """
    work, report = folder / "empty", folder / "report.xml"
    work.mkdir()
    command = [
        *(sys.executable, "-m", "pytest", "-c", str(tree / "pyproject.toml"), "--rootdir", str(tree), "-q", "--slow"),
        *("-o", f"cache_dir={folder / 'cache'}", "--tb=short", f"--junitxml={report}", *(str(tree / t) for t in tests)),
    ]
    environment = {**os.environ, "PYTHONPATH": str(tree), "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis")}
    try:
        done = subprocess.run(
            command, cwd=work, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return set(), f"no end after {SECONDS} seconds\n"
    cases = ET.parse(report).iter("testcase") if report.exists() else ()  # noqa: S314 - pytest wrote it
    failed = [case for case in cases if case.find("failure") is not None]
    return {f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}" for case in failed}, (
        done.stdout + done.stderr
    )


def copied(tree: Path) -> Path:
    """A copy of the sources that can be imported from, with the entry points that an installation would have."""
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = tree / f"{project['name']}.egg-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "PKG-INFO").write_text(head, encoding="utf-8")
    groups = {**project["entry-points"], "console_scripts": project["scripts"]}
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for group, entries in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return tree


def wanted(names: Sequence[str], extra: str | None = None) -> list[Mutant]:
    """Mutants with one of these names, findings or areas; without any, all of them, or those of an extra."""
    every = mutants()
    if extra is not None and not names:
        return [m for m in every if m.needs == extra]
    unknown = [n for n in names if not any(n in {m.name, m.area, *m.finding} for m in every)]
    if unknown:
        sys.exit(f"scripts/mutants: no mutant, finding or area is named {', '.join(unknown)}; --list lists them.")
    return [m for m in every if not names or {m.name, m.area, *m.finding} & set(names)]


def results(chosen: Sequence[Mutant], jobs: int) -> Iterator[tuple[Mutant, dict[str, bool], str]]:
    """Each mutant with its tests, in the order given, some at a time."""
    stamps = itertools.count(int(time.time()) + 10, 10)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        trees: queue.Queue[Path] = queue.Queue()
        for tree in pool.map(copied, [Path(folder, str(i)) for i in range(jobs)]):
            trees.put(tree)

        def one(mutant: Mutant) -> tuple[Mutant, dict[str, bool], str]:
            tree = trees.get()
            try:
                return mutant, *caught(mutant, tree, next(stamps))
            except (ValueError, OSError) as error:
                return mutant, dict.fromkeys(mutant.tests, False), str(error)
            finally:
                trees.put(tree)

        yield from pool.map(one, chosen)


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant them and report: 0 when every test named fails with its bug planted, 1 otherwise."""
    parser = argparse.ArgumentParser("scripts/mutants", description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help="names, findings (F6, A1) or areas (files of tests/mutants); all")
    parser.add_argument(
        "--with",
        dest="extra",
        metavar="NAME",
        help="run where the extra NAME is installed; without names, what needs it",
    )
    parser.add_argument("--list", action="store_true", help="only say what there is")
    parser.add_argument("--verbose", action="store_true", help="show what pytest says of those not caught")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many at a time; 2 unless told")
    given = parser.parse_args(arguments)
    chosen = wanted(given.name, given.extra)
    if given.list:
        for m in chosen:
            say(f"{m.area}/{m.name} ({', '.join(m.finding)}): {m.what}")
        return 0
    skipped = [m for m in chosen if m.skipped]
    for m in skipped:
        say(f"{m.name}: skipped, as {m.needs} is not installed; scripts/mutants --with {m.needs} runs it")
    chosen = [m for m in chosen if m not in skipped]
    missed = 0
    for mutant, tests, said in results(chosen, max(1, given.jobs)):
        idle = [test for test, failed in tests.items() if not failed]
        missed += bool(idle)
        told = f"NOT CAUGHT by {', '.join(idle)}" if idle else f"caught by {', '.join(tests)}"
        say(f"{mutant.name}: {told}")
        if idle and given.verbose:
            say(said)
    say(f"{len(chosen) - missed} of {len(chosen)} caught{f', {len(skipped)} skipped' if skipped else ''}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
