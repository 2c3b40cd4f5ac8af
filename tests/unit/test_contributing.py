"""Paths that CONTRIBUTING and its like name exist, and the hook refuses what ruff would change."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = {".venv/test", "site/"}
"""Folders that scripts make."""
INSIDE = [
    "",
    "adapters",
    "evaluation",
    "tests",
    "stratsynth",
    "stratsynth/census/acs",
    "stratsynth/questions",
    "stratsynth/release",
]
"""Places at which a path may begin: the root, the core, or the folder that its row is about."""
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.mark.parametrize(
    "name", ["CONTRIBUTING.md", "docs/design.md", "docs/reference/recipe.md", "docs/reference/schema.md"]
)
def test_paths_that_are_named_exist(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    paths = {word for word in re.findall(r"`([^`\s]+)`", text) if re.search(r"/|\.(py|toml|md)$", word)} - MADE
    assert paths
    assert [p for p in paths if "NAME" not in p and not any((ROOT / home / p).exists() for home in INSIDE)] == []


@pytest.fixture
def repository(tmp_path):
    """A repository with the hook, and a ruff that is the tests' own."""
    shutil.copytree(ROOT / ".githooks", tmp_path / ".githooks")
    ruff = tmp_path / ".venv" / "test" / "bin" / "ruff"
    ruff.parent.mkdir(parents=True)
    ruff.symlink_to(Path(sys.executable).with_name("ruff"))
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n", encoding="utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "core.hooksPath", ".githooks")
    return tmp_path


def git(folder, *arguments):
    who = {f"GIT_{role}_{key}": "tests" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    settings = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(["git", *arguments], cwd=folder, env=settings, capture_output=True, text=True, check=False)


@needs_git
@pytest.mark.parametrize(
    ("text", "taken"), [("x = 1\n", True), ("x=1\n", False), ("import os\n", False)], ids=["sound", "format", "lint"]
)
def test_the_hook_lets_sound_python_pass_and_no_other(repository, text, taken):
    (repository / "a file.py").write_text(text, encoding="utf-8")
    git(repository, "add", "-A")
    done = git(repository, "commit", "-qm", "A change")
    assert (done.returncode == 0) is taken, done.stderr


@needs_git
def test_the_hook_takes_commits_without_python(repository):
    (repository / "page.md").write_text("# A page\n", encoding="utf-8")
    git(repository, "add", "page.md")
    assert git(repository, "commit", "-qm", "A page").returncode == 0


@needs_git
def test_without_an_environment_the_hook_names_the_script(repository):
    shutil.rmtree(repository / ".venv")
    git(repository, "add", "-A")
    done = git(repository, "commit", "-qm", "A change")
    assert done.returncode != 0
    assert "run scripts/test once" in done.stderr
