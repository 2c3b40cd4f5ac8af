"""Every script says what it does without an environment of its own, from any folder."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stratsynth.evaluation.commands import demo

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.name for path in (ROOT / "scripts").iterdir() if path.is_file() and os.access(path, os.X_OK))
MADE_BY_PYTHON = ("bench", "mutants")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy in which no environment was ever made."""
    root = tmp_path_factory.mktemp("source")
    for folder in ("scripts", "tests/mutants"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def usage(copy, script, *arguments):
    settings = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(
        [copy / "scripts" / script, *arguments],
        cwd=copy.parent,
        env=settings,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not (copy / ".venv").exists()
    assert not list(copy.rglob("__pycache__"))
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_needs_no_environment(copy, script):
    said = usage(copy, script, "--help")
    assert said.startswith(f"usage: scripts/{script}")
    if script in MADE_BY_PYTHON or script.startswith("reproduce_"):
        assert "show this help message" in said


def test_help_is_answered_wherever_it_is_asked_for(copy):
    assert usage(copy, "bench", "door", "-h") == usage(copy, "bench", "--help")


def test_the_options_of_the_demonstration_are_those_of_the_command(copy):
    said = usage(copy, "demo", "-h")
    parameters = inspect.signature(demo).parameters
    assert {word.strip("[]") for word in said.split() if word.strip("[").startswith("--")} == {
        f"--{n}" for n in parameters
    }
    assert f"{parameters['rows'].default:,}" in said
