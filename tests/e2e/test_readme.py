"""Examples of README and the pages run: their Python as one program a page, their commands and recipes.

`scripts/docs` runs the tutorials; here they are read, and run with --slow.
"""

import ast
import re
from pathlib import Path

import pytest

import stratsynth as ss
from helpers.command import stratsynth
from stratsynth.recipes.recipe import Recipe

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TUTORIALS = [page for page in PAGES if page.parent.name == "tutorials"]
COMMAND = re.compile(r"^(?:\$ )?stratsynth ((?:schema |ledger |weights |census )?\w+)([^#\n]*)", re.MULTILINE)


TENS_OF_THOUSANDS = re.compile(r"\b([1-9]\d)_000\b")
"""People that a page's program fits, which is one to read: here a tenth of them; `scripts/docs` runs it whole."""
BOUND = re.compile(r"^assert .* [<>]", re.MULTILINE)
"""A bound on a figure that noise decides, which a page states for all of its people."""


def snippets(page, language):
    return re.findall(rf"^```{language}[^\n]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands():
    for page in [README, *PAGES]:
        for text in snippets(page, "(?:sh|console)"):
            yield from COMMAND.findall(text)


def named(page):
    return str(page.relative_to(ROOT))


def runs(page):
    slow = [pytest.mark.slow] if page in TUTORIALS else []
    return pytest.param(page, id=named(page), marks=slow)


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NotPrivateWarning", "ignore::stratsynth.errors.DraftWarning")
@pytest.mark.parametrize("page", [runs(page) for page in [README, *PAGES] if snippets(page, "python")])
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for title, text in re.findall(r'^```toml title="(.*?)"\n(.*?)^```', page.read_text(), re.DOTALL | re.MULTILINE):
        Path(title).write_text(text, encoding="utf-8")
    program = "\n".join(snippets(page, "python"))
    if page != README and same_code(program, snippets(README, "python")[0]):
        return  # README's first example, which runs there
    if not BOUND.search(program):
        program = TENS_OF_THOUSANDS.sub(r"\g<1>00", program)
    exec(compile(program, str(page), "exec"), {"__name__": "page"})  # noqa: S102 - our own pages


def same_code(one, two):
    """True of programs that differ in comments and line breaks alone."""
    return ast.dump(ast.parse(one)) == ast.dump(ast.parse(two))


def test_there_is_something_to_run():
    assert len(snippets(README, "python")) == 2
    assert len(TUTORIALS) == 3
    assert all(snippets(page, "python") for page in TUTORIALS)


@pytest.mark.parametrize("command", sorted({command for command, _ in commands()}))
def test_the_commands_and_their_options_exist(command, tmp_path):
    help_text = stratsynth(*command.split(), "--help", cwd=tmp_path)
    assert help_text.returncode == 0
    for name, rest in commands():
        for option in re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", rest) if name == command else []:
            assert option in help_text.stdout, f"{command} has no {option}"


def code_lines(text):
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


def test_a_frame_becomes_a_public_release_in_five_lines_and_a_private_one_in_twelve():
    for page in (README, ROOT / "docs" / "tutorials" / "hurry.md"):
        five, *rest = snippets(page, "python")
        twelve = next(text for text in rest if "reviewed(" in text)
        assert "public=True" in five
        assert len(code_lines(five)) <= 5
        assert "public=True" not in twelve
        assert len(code_lines(twelve)) <= 12


def test_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", [README, *PAGES], ids=named)
def test_recipes_are_some(page, tmp_path):
    recipes = [text for text in snippets(page, "toml") if "[data]" in text]
    for text in recipes:
        (tmp_path / "recipe.toml").write_text(text, encoding="utf-8")
        (tmp_path / "shares.csv").write_text("SEX,RAC1P,share\n1,1,1\n", encoding="utf-8")
        ss.census.schema().write_toml(tmp_path / "schema.toml")
        recipe = Recipe.read(tmp_path / "recipe.toml")
        assert recipe.budget().epsilon in {1, 4}
        assert recipe.how().needs
        assert recipe.rows or recipe.data.child
    assert recipes or page not in {README, ROOT / "docs" / "tutorials" / "agency.md"}
