"""Commands in processes of their own, as users start them; most other tests run them in the process of the tests."""

import pytest

from helpers import small
from helpers.command import complaint, started, stratsynth
from stratsynth.cli.app import app

ELSEWHERE = {
    "audit": "e2e/test_audit_command.py",
    "benchmark": "e2e/test_benchmark_command.py",
    "certificate": "privacy/test_no_network.py",
    "compare": "e2e/test_compare_command.py",
    "demo": "e2e/test_cli.py",
    "evaluate": "privacy/test_no_network.py",
    "check": "unit/test_check_recipe.py",
    "fit": "e2e/test_cli.py",
    "mechanisms": "e2e/test_cli.py",
    "plan": "privacy/test_no_network.py",
    "sample": "e2e/test_cli.py",
    "verify": "privacy/test_verify.py",
}
"""Files in which other processes are started."""
DONE = {
    "cite": (["cite", "release"], "@misc{stratsynth"),
    "census": (["census", "tasks"], "ACSIncome"),
    "ledger": (["ledger", "show", "people.ledger"], "independent"),
    "query": (["query", "release", "--columns", "WORK"], "yes"),
    "schema": (["schema", "draft", "people.csv", "-o", "draft.toml"], "draft written"),
    "weights": (["weights", "sensitivity", "release"], "points"),
}
REFUSED = {
    "lens": (["lens", "recipe.toml", "-o", "release/lens"], "release"),
    "means": (["means", "recipe.toml"], "mean"),
    "predict": (["predict", "release", "people.csv", "-o", "said.csv"], "predict"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A recipe, its release, and the ledger of both."""
    folder = tmp_path_factory.mktemp("place")
    recipe = small.write_recipe(folder)
    small.edit(recipe, "delta = 1e-9", 'delta = 1e-9\nledger = "people.ledger"')
    assert stratsynth("fit", recipe, cwd=folder).returncode == 0
    return folder


def test_every_command_is_started_somewhere():
    import typer.main

    commands = set(typer.main.get_command(app).commands)
    assert commands == {*ELSEWHERE, *DONE, *REFUSED}


@pytest.mark.parametrize("command", DONE)
def test_it_does_its_work(place, command):
    arguments, words = DONE[command]
    done = started(*arguments, cwd=place)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout


@pytest.mark.parametrize("command", REFUSED)
def test_it_refuses_in_a_line(place, command):
    arguments, words = REFUSED[command]
    before = small.tree(place)
    assert words in complaint(started(*arguments, cwd=place), 2)
    assert small.tree(place) == before
