"""The page on the five papers: what it names is there, its commands answer, nothing numbered is missing."""

import importlib.util
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stratsynth.cli.app import app

ROOT = Path(__file__).parents[2]


def script():
    spec = importlib.util.spec_from_file_location("_papers", ROOT / "scripts" / "_papers.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["_papers"] = module
    spec.loader.exec_module(module)
    return module


papers = script()
EVERY = papers.every()
ITEMS = [pytest.param(item, id=f"{paper.key}: {item.name[:60]}") for paper in EVERY for item in paper.items]
COMMANDS = sorted(
    {item.run for paper in EVERY for item in paper.items if item.run and not item.run.startswith("tests/")}
)


def test_the_page_is_the_one_that_the_files_make():
    assert (ROOT / "docs" / "papers.md").read_text(encoding="utf-8") == papers.page(), "run scripts/docs --papers"


@pytest.mark.parametrize("item", ITEMS)
def test_an_item_has_code_and_a_repetition_or_a_reason(item):
    assert item.kind in papers.KINDS
    assert "|" not in item.name + item.found + item.but
    if item.where:
        assert item.run, "whatever is here is repeated by something"
    else:
        assert not item.run
        assert item.but.startswith("Left out")


@pytest.mark.parametrize("place", sorted({place for paper in EVERY for item in paper.items for place in item.where}))
def test_code_that_is_named_is_there(place):
    module, _, name = place.partition(":")
    assert hasattr(import_module(module), name)


@pytest.mark.parametrize("run", sorted({i.run for p in EVERY for i in p.items if i.run.startswith("tests/")}))
def test_a_test_that_is_named_is_there(run):
    file, _, name = run.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert not name or re.search(rf"^def {name}\(", text, re.MULTILINE)


@pytest.fixture(scope="module")
def helps():
    """Help of each program among the commands, asked once."""
    found = {}
    for program in sorted({" ".join(words(command)[0]) for command in COMMANDS}):
        if program.startswith("scripts/"):
            module = program.removeprefix("scripts/reproduce_")
            done = subprocess.run(
                [sys.executable, "-P", "-m", "studies", module, "--help"],
                cwd=ROOT / "scripts",
                env={"PYTHONPATH": str(ROOT / "scripts"), "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                check=False,
            )
            found[program] = (done.returncode, done.stdout)
        else:
            done = CliRunner().invoke(app, [*program.split()[1:], "--help"])
            found[program] = (done.exit_code, done.output)
    return found


def words(command):
    """The program of a command, and its options."""
    parts = command.split()
    program = parts[:1] if parts[0].startswith("scripts/") else parts[:2]
    return program, [part for part in parts if part.startswith("--")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_answers_help_and_has_its_options(helps, command):
    program, options = words(command)
    if program[0].startswith("scripts/"):
        assert (ROOT / program[0]).is_file()
    code, said = helps[" ".join(program)]
    assert code == 0
    assert set(options) <= set(re.findall(r"--[\w-]+", said))


@pytest.mark.parametrize("paper", EVERY, ids=lambda paper: paper.key)
def test_every_algorithm_figure_and_table_is_named(paper):
    """By its number, alone or in a range: `Figures 2, 3 and 6`, `Tables 1 to 3`."""
    for what, most in paper.counts.items():
        numbers = set()
        for item in paper.items:
            for listed in re.findall(rf"\b{what}s? ((?:\d+(?:, | and | to )?)+)", item.name):
                for first, last in re.findall(r"(\d+)(?: to (\d+))?", listed):
                    numbers |= set(range(int(first), int(last or first) + 1))
        assert numbers >= set(range(1, most + 1)), what


def test_the_page_names_the_five_papers_in_their_order():
    headings = re.findall(r"^## (.+)$", papers.page(), re.MULTILINE)
    from stratsynth.papers import PAPERS

    assert headings == [paper.title for paper in PAPERS[:5]]
