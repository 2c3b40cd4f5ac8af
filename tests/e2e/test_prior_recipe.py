"""A recipe with a prior, from the command line, with wrong input too."""

import json

import pandas as pd
import pytest

from helpers import small
from stratsynth import cli
from stratsynth.fitting import request_of
from stratsynth.recipes.recipe import Recipe

PRIOR = '[prior]\npath = "last.csv"\ncitation = "made up, the year before"\n'


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    path = small.write_recipe(tmp_path)
    last = small.people().sample(frac=0.8, random_state=1)
    last.to_csv(tmp_path / "last.csv", index=False)
    path.write_text(f"{path.read_text()}\n{PRIOR}")
    monkeypatch.chdir(tmp_path)
    return path


def test_plan_fit_and_certificate_name_the_prior(recipe, tmp_path, capsys):
    assert cli.run(["plan", "recipe.toml"]) == 0
    assert "Prior public: made up, the year before; " in " ".join(capsys.readouterr().out.split())
    assert cli.run(["fit", "recipe.toml"]) == 0
    assert cli.run(["certificate", "release"]) == 0
    assert "rows of the prior" in " ".join(capsys.readouterr().out.split())
    stated = json.loads((tmp_path / "release" / "certificate.json").read_text())
    assert stated["prior"]["citation"] == "made up, the year before"
    assert cli.run(["verify", "release"]) == 0
    assert cli.run(["sample", "release", "-n", "20", "-o", "more.csv"]) == 0


def test_an_earlier_release_is_a_prior_by_its_folder(recipe, capsys):
    assert cli.run(["fit", "recipe.toml", "-o", "first"]) == 0
    small.edit(recipe, PRIOR, '[prior]\npath = "first"\norigin = "release"\n')
    assert cli.run(["fit", "recipe.toml", "-o", "second"]) == 0
    capsys.readouterr()
    assert cli.run(["certificate", "second", "--json"]) == 0
    stated = json.loads(capsys.readouterr().out)
    assert stated["prior"]["origin"] == "release"


def test_a_plan_refuses_the_private_file_before_it_is_read(recipe, tmp_path, capsys):
    small.people().assign(SEX="secret-code").to_csv(tmp_path / "people.csv", index=False)
    small.edit(recipe, "last.csv", "people.csv")
    assert cli.run(["plan", "recipe.toml"]) == 2
    said = capsys.readouterr().err
    assert "private table itself" in said
    assert "secret" not in said


WRONG = {
    "confidential": (PRIOR, f'{PRIOR}origin = "confidential"\n', "is not protected"),
    "no citation": ('citation = "made up, the year before"\n', "", "citation"),
    "a template's citation": ("made up, the year before", "TODO", "template"),
    "no file": ("last.csv", "lost.csv", "lost.csv"),
    "no path": ('path = "last.csv"\n', "", "path is missing"),
    "the private file": ("last.csv", "people.csv", "private table itself"),
    "another key": ('path = "last.csv"', 'path = "last.csv"\nrenamed = {}', "renamed"),
    "another origin": (PRIOR, f'{PRIOR}origin = "secret"\n', "origin"),
    "a release with a citation": (PRIOR, f'{PRIOR}origin = "release"\n', "leave the citation out"),
    "a rule for no column": (PRIOR, f'{PRIOR}without = ["AGEP"]\n', "no column of the schema"),
    "a rule of another kind": (PRIOR, f"{PRIOR}without = 3\n", "without"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_prior_is_refused_before_anything_is_charged(recipe, case, capsys):
    old, new, words = WRONG[case]
    small.edit(recipe, old, new)
    before = small.tree(recipe.parent)
    assert cli.run(["fit", "recipe.toml"]) == 2
    said = capsys.readouterr().err
    assert words in " ".join(said.split())
    assert "Traceback" not in said
    assert small.tree(recipe.parent) == before


def test_a_fit_with_another_prior_is_another_fit(recipe):
    def identity():
        return request_of(Recipe.read(recipe).prepared, 1).identity

    one = identity()
    small.edit(recipe, "made up, the year before", "made up, two years before")
    two = identity()
    small.edit(recipe, PRIOR.replace("the year", "two years"), "")
    assert len({one, two, identity()}) == 3


COMPARE = """
[compare]
mechanisms = ["mst", { name = "mst", from_prior = true }]
stratifications = [[]]
seeds = 1
k = 2
"""


def test_a_grid_compares_fits_with_and_without_the_prior(recipe, capsys):
    small.edit(recipe, "declared_size = 100", "declared_size = 100\npublic = true")
    recipe.write_text(recipe.read_text() + COMPARE)
    assert cli.run(["compare", "recipe.toml", "-o", "out"]) == 0
    frame = pd.read_parquet("out/comparison.parquet")
    assert {"mst", "mst with prior"} <= set(frame.mechanism)
    small.edit(recipe, "made up, the year before", "made up, another year")
    capsys.readouterr()
    assert cli.run(["compare", "recipe.toml", "-o", "out"]) == 2
    assert "another comparison" in capsys.readouterr().err


def test_a_grid_that_does_not_say_who_starts_from_the_prior_is_refused(recipe, capsys):
    recipe.write_text(recipe.read_text() + '\n[compare]\nmechanisms = ["mst"]\n')
    assert cli.run(["compare", "recipe.toml", "-o", "out"]) == 2
    assert "have both, or neither" in " ".join(capsys.readouterr().err.split())
