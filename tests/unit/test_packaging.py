"""The installed files are those of the source tree, and the locks name the packages that they run on."""

import ast
import importlib.metadata
import importlib.util
import os
import re
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "stratsynth": "stratsynth",
    "stratsynth.adapters": "adapters",
    "stratsynth.evaluation": "evaluation",
}
LABORATORY = ("scripts/studies", "scripts/benches")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
INSTALLED_BY_SCRIPT = "STRATSYNTH_TEST_INSTALLED" in os.environ


def canonical(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def pins(lock: str) -> set[str]:
    lines = (ROOT / "locks" / lock).read_text(encoding="utf-8").splitlines()
    return {line.removesuffix("\\").strip() for line in lines if re.match(r"[a-z0-9]", line)}


def test_every_package_folder_is_listed():
    folders = {
        ".".join([package, *init.parent.relative_to(ROOT / folder).parts])
        for package, folder in FOLDERS.items()
        for init in (ROOT / folder).rglob("__init__.py")
    }
    listed = PROJECT["tool"]["setuptools"]["packages"]
    assert sorted(folders) == listed, "list these in pyproject.toml, tool.setuptools.packages"


def test_every_module_lies_in_a_package():
    """A folder without __init__.py would be left out of the wheel without a word, or of mypy's look at a laboratory."""
    strays = [
        path.relative_to(ROOT)
        for folder in (*FOLDERS.values(), *LABORATORY)
        for path in (ROOT / folder).rglob("*.py")
        if not (path.parent / "__init__.py").exists()
    ]
    assert strays == []


NAMED_OTHERWISE = {"dp-accounting": "dp_accounting", "scikit-learn": "sklearn"}
"""Modules of declared packages whose name is not the package's."""
BESIDE = {"dpmm", "opendp", "polars", "snsynth"}
"""Packages of others that `External` hands rows to, which their users install."""


def imported(folder: Path) -> set[str]:
    """Packages that the code in a folder imports, at the top of files and in functions."""
    found = set[str]()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"stratsynth"}


def test_whatever_the_code_imports_is_declared():
    """A package that is there only because another one needs it goes when that one does."""
    project = PROJECT["project"]
    extras = [r for name, wanted in project["optional-dependencies"].items() if name != "test" for r in wanted]
    names = {canonical(r) for r in [*project["dependencies"], *extras]}
    declared = {NAMED_OTHERWISE.get(name, name.replace("-", "_")) for name in names}
    found = set[str]().union(*(imported(ROOT / folder) for folder in FOLDERS.values()))
    assert found - declared - BESIDE == set()
    assert declared - found == {"distributed", "folktables", "ray"}  # two are found by name, one by its users


@pytest.mark.skipif(not INSTALLED_BY_SCRIPT, reason="a developer's own environment may be editable or old")
def test_the_laboratory_is_not_installed():
    files = importlib.metadata.files("stratsynth") or []
    assert {file.parts[0] for file in files if file.suffix == ".py"} == {"stratsynth"}
    for folder in LABORATORY:
        assert not Path(sysconfig.get_path("purelib"), Path(folder).name).exists()


@pytest.mark.skipif(not INSTALLED_BY_SCRIPT, reason="a developer's own environment may be editable or old")
@pytest.mark.parametrize(("package", "folder"), FOLDERS.items())
def test_the_installed_files_are_the_source_files(package: str, folder: str):
    """Nothing is missing (a template, py.typed), nothing is stale."""
    spec = importlib.util.find_spec(package)
    assert spec
    assert spec.origin
    installed = Path(spec.origin).parent
    assert installed == Path(sysconfig.get_path("purelib"), *package.split("."))
    for path in sorted((ROOT / folder).rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            copy = installed / path.relative_to(ROOT / folder)
            assert copy.exists(), f"{copy} is not in the wheel"
            assert copy.read_bytes() == path.read_bytes(), copy
    for copy in installed.rglob("*.py"):
        inner = copy.relative_to(installed)
        if package == "stratsynth" and inner.parts[0] in {"adapters", "evaluation"}:
            continue
        assert (ROOT / folder / inner).exists(), f"{copy} has no source"


def test_the_version_is_said_once_and_meant_everywhere():
    version = PROJECT["project"]["version"]
    assert importlib.metadata.version("stratsynth") == version
    assert f'\nversion: "{version}"\n' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_readme_is_the_project_page():
    if (ROOT / "README.md").exists():
        assert PROJECT["project"].get("readme") == "README.md", 'add readme = "README.md" to pyproject.toml'


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, id=f"{entry.group}:{entry.name}")
        for entry in importlib.metadata.distribution("stratsynth").entry_points
    ],
)
def test_every_entry_point_loads(entry: importlib.metadata.EntryPoint):
    assert callable(entry.load())


@pytest.mark.parametrize("lock", ["run.txt", "test.txt"])
def test_the_lock_covers_the_requirements(lock: str):
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]]
    if lock == "test.txt":
        wanted += PROJECT["project"]["optional-dependencies"]["test"]
    assert {canonical(line) for line in wanted} <= {canonical(pin) for pin in pins(lock)}, "run scripts/lock"


@pytest.mark.parametrize("lock", ["run.txt", "test.txt", "audit.txt", "rivals.txt"])
def test_the_lock_is_pinned_hashed_and_names_no_place(lock: str):
    text = (ROOT / "locks" / lock).read_text(encoding="utf-8")
    requirements = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert all(re.match(r"[a-z0-9-]+==\S+", each) and "--hash=sha256:" in each for each in requirements)
    assert "://" not in text
    assert "index-url" not in text
    assert "find-links" not in text


def test_the_tests_run_on_what_users_get():
    assert pins("run.txt") <= pins("test.txt"), "run scripts/lock"


def test_the_build_is_locked_as_declared():
    assert set(PROJECT["build-system"]["requires"]) <= set(PROJECT["dependency-groups"]["build"])


@pytest.mark.parametrize(
    "script",
    [
        *(f"scripts/{name}" for name in ("audit", "demo", "lock", "mutants", "reproduce_means", "test", "wheel")),
        ".ci/run",
    ],
)
def test_the_scripts_can_be_run(script: str):
    assert os.access(ROOT / script, os.X_OK)


def test_continuous_integration_runs_the_test_script_and_nothing_else():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines == ["#!/usr/bin/env bash", 'cd "$(dirname "$0")/.." && exec scripts/test']
