"""Every Python snippet of the README runs, in order, as one program; every command it names exists."""

import re
from pathlib import Path

import pytest

from helpers.command import stratsynth
from stratsynth.recipes.recipe import Recipe

README = Path(__file__).parents[2] / "README.md"


def snippets(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NotPrivateWarning", "ignore::stratsynth.errors.DraftWarning")
def test_the_python_snippets_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(snippets("python")) >= 3
    program = "\n".join(snippets("python"))
    exec(compile(program, str(README), "exec"), {"__name__": "readme"})  # noqa: S102 - our own README


@pytest.mark.parametrize(
    "command",
    sorted(set(re.findall(r"^stratsynth ((?:schema |ledger )?\w+)", "\n".join(snippets("sh")), re.MULTILINE))),
)
def test_the_commands_exist(command, tmp_path):
    assert stratsynth(*command.split(), "--help", cwd=tmp_path).returncode == 0


def test_the_recipe_is_one(tmp_path):
    recipes = [text for text in snippets("toml") if "[data]" in text]
    assert len(recipes) == 1
    (tmp_path / "recipe.toml").write_text(recipes[0], encoding="utf-8")
    (tmp_path / "shares.csv").write_text("SEX,RAC1P,share\n1,1,1\n", encoding="utf-8")
    recipe = Recipe.read(tmp_path / "recipe.toml")
    assert recipe.budget().epsilon == 1
    assert recipe.how().needs
    assert recipe.rows == 50_000
