"""Files of version 0.1.0 are still read: releases, a ledger, and the journal of a fit that was interrupted.

The files and the script that wrote them, `write.py`, are in `written_by_0_1_0`. They were made once, with
`python write.py FOLDER` on version 0.1.0 (commit b6cbf3c), and are never made again.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers.ledgers import lines_of
from stratsynth import cli
from stratsynth.accounting.history import read_ledger
from stratsynth.errors import LedgerError, UsageError
from stratsynth.recipes.recipe import Recipe, RecipeOptions

GOLDEN = Path(__file__).parent / "written_by_0_1_0"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))
LAWS = json.loads((GOLDEN.parent / "laws_of_0_1_0.json").read_text(encoding="utf-8"))
"""Probabilities of the models of these releases, as a version read them that drew the rows of `expected.json`."""
ROWS = [name for name in EXPECTED if name != "clipped_mean"]


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(GOLDEN, tmp_path / "golden"))


@pytest.mark.parametrize("name", ROWS)
def test_a_release_draws_by_the_law_that_it_drew_by(name):
    """Probabilities of levels and of pairs of the first two columns; rows of a seed are others since 0.4.0."""
    model = ss.Release.load(GOLDEN / name).table_model
    names, laws = model.schema.names, LAWS[name]
    found = {f"{c} {i}": model.mass({c: frozenset({i})}) for c in names for i in range(model.schema.size(c))}
    one, two = names[:2]
    for i, k in np.ndindex(model.schema.size(one), model.schema.size(two)):
        found[f"{one} {i} {two} {k}"] = model.mass({one: frozenset({i}), two: frozenset({k})})
    assert found == pytest.approx(laws, abs=1e-6)
    rows = model.sample(1_000, np.random.default_rng(3))
    for column in names:
        drawn = np.bincount(rows[column], minlength=model.schema.size(column)) / 1_000
        assert drawn == pytest.approx([laws[f"{column} {i}"] for i in range(len(drawn))], abs=0.005)
    assert len(ss.Release.load(GOLDEN / name).sample(6, seed=3)) == 6


def test_a_release_of_estimates_says_what_it_said():
    found = ss.Release.load(GOLDEN / "clipped_mean").estimates()
    wanted = pd.DataFrame(EXPECTED["clipped_mean"])
    assert list(found.columns) == [*wanted.columns, "design", "design_lower", "design_upper", "design_by"]
    pd.testing.assert_frame_equal(found[wanted.columns], wanted, check_dtype=False, rtol=1e-9)
    assert found[["design", "design_lower", "design_upper"]].isna().to_numpy().all(), "which it did not state"
    assert set(found["design_by"]) == {""}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_certificate_is_shown(name, capsys):
    assert cli.run(["certificate", str(GOLDEN / name)]) == 0
    assert "epsilon 2" in capsys.readouterr().out


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recipe_is_understood(name):
    recipe = Recipe.read(GOLDEN / f"{name}.toml")
    recipe.how()
    assert recipe.mechanism.name == json.loads((GOLDEN / name / "certificate.json").read_text())["mechanism"]["name"]


def test_the_ledger_is_shown(capsys):
    assert cli.run(["ledger", "show", str(GOLDEN / "people.ledger")]) == 0
    said = capsys.readouterr().out
    assert "left of 9" in said
    fits = [(fit["mechanism"], fit["state"], fit["questions"]) for fit in read_ledger(GOLDEN / "people.ledger")["fits"]]
    assert fits == [("independent", "done", 1), ("mst", "open", 2)]


def test_the_interrupted_fit_of_mst_which_asks_otherwise_now_is_refused_by_name_and_charged_nothing(folder):
    """MST has other shares since: the version that began the fit ends it, or another seed pays for a new one."""
    before = lines_of(folder / "people.ledger")
    recipe = Recipe.read(folder / "interrupted.toml")
    with pytest.raises(LedgerError, match=r"unfinished fit of mst .* begun by stratsynth 0\.1\.0 or before"):
        recipe.run(recipe.directory)
    assert lines_of(folder / "people.ledger") == before
    new = folder / "interrupted.toml"
    new.write_text(new.read_text(encoding="utf-8").replace("seed = ", "seed = 1"), encoding="utf-8")
    Recipe.read(new).run(recipe.directory)
    after = lines_of(folder / "people.ledger")
    assert after[: len(before)] == before
    assert [fit["state"] for fit in read_ledger(folder / "people.ledger")["fits"]] == ["done", "open", "done"]


def test_the_finished_fit_is_a_new_one_when_it_is_run_again(folder):
    recipe = Recipe.read(folder / "done.toml")
    with pytest.raises(UsageError, match=r"this recipe is done: fit 1 of people\.ledger"):
        recipe.run(recipe.directory)
    recipe.run(recipe.directory, RecipeOptions(again=True))
    new = [line for line in lines_of(folder / "people.ledger") if line["kind"] == "reserve"][-1]
    assert new["version"] == ss.__version__
