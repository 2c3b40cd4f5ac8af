"""A fit that its ledger has done is charged again only on request."""

import pandas as pd
import pytest

from helpers import small
from helpers.command import stratsynth
from helpers.ledgers import lines_of
from stratsynth import fit
from stratsynth.errors import UsageError
from stratsynth.recipes.recipe import Recipe, RecipeOptions


@pytest.fixture
def recipe(tmp_path):
    made = small.write_recipe(tmp_path)
    small.edit(made, "delta = 1e-9\n", 'delta = 1e-9\nledger = "people.ledger"\n')
    return made


def reservations(folder):
    return [line for line in lines_of(folder / "people.ledger") if line["kind"] == "reserve"]


def test_a_second_charge_of_one_recipe_is_asked_about(recipe, tmp_path):
    read = Recipe.read(recipe)
    read.run(tmp_path / "release")
    with pytest.raises(UsageError, match=r"this recipe is done: fit 1 of people\.ledger, of 20.*release holds its"):
        Recipe.read(recipe).run(tmp_path / "release2")
    assert len(reservations(tmp_path)) == 1
    assert not (tmp_path / "release2").exists()
    Recipe.read(recipe).run(tmp_path / "release2", RecipeOptions(seed=7, again=True))
    assert len(reservations(tmp_path)) == 2


def test_the_command_says_what_it_would_cost(recipe, tmp_path):
    assert stratsynth("fit", recipe, cwd=tmp_path).returncode == 0
    second = stratsynth("fit", recipe, "-o", tmp_path / "second", cwd=tmp_path)
    assert second.returncode == 2
    assert "a second charge of epsilon 1, from 1 to 1.4" in second.stderr
    assert stratsynth("fit", recipe, "-o", tmp_path / "second", "--again", cwd=tmp_path).returncode == 0


def test_another_fit_and_another_version_of_the_data_are_not_asked_about(recipe, tmp_path):
    small.edit(recipe, 'ledger = "people.ledger"', 'ledger = "people.ledger"\naccount = "persons"')
    Recipe.read(recipe).run(tmp_path / "release")
    small.edit(recipe, "epsilon = 1.0", "epsilon = 0.5")
    Recipe.read(recipe).run(tmp_path / "half")
    small.edit(recipe, "epsilon = 0.5", "epsilon = 1.0")
    pd.concat([small.people(), small.people(3)]).to_csv(tmp_path / "people.csv", index=False)
    Recipe.read(recipe).run(tmp_path / "next")
    assert len(reservations(tmp_path)) == 3


def test_an_interrupted_fit_goes_on_unasked(recipe, tmp_path, monkeypatch):
    from stratsynth.release import Release

    Recipe.read(recipe).run(tmp_path / "release")
    with monkeypatch.context() as broken:
        broken.setattr(Release, "save", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            Recipe.read(recipe).run(tmp_path / "second", RecipeOptions(seed=7, again=True))
    Recipe.read(recipe).run(tmp_path / "second")
    assert len(reservations(tmp_path)) == 2


def test_a_fit_in_python_is_what_it_is():
    """Nothing is asked of a call of `fit`: it is a program's own decision."""
    table = small.table()
    for _ in range(2):
        fit(small.stratified(), table, small.BUDGET)
