"""Fits of two linked tables killed from the outside: the same recipe goes on, and no charge is made twice."""

import signal

import pytest

from helpers import homes
from helpers.crash import KILLED, Fault, command
from helpers.ledgers import kinds
from stratsynth import verify

RECIPE = """[data]
parent = "households.csv"
child = "persons.csv"
schema = "homes.toml"
declared_size = 80
[mechanism]
name = "linked"
base = "mst"
children = "chain"
[budget]
epsilon = 4
delta = 1e-9
ledger = "homes.ledger"
[release]
rows = 30
seed = 1
"""
FAULTS = {
    "at its first reading": Fault("stratsynth.driver.answering:Answerer.answer"),
    "between two steps": Fault("stratsynth.adapters.linked.mechanism:_part_with"),
    "after a charge, before it is answered": Fault("stratsynth.accounting.account:FitAccount.charge", at=3, after=True),
    "while a table is written": Fault("stratsynth.data.writing:write_table", at=2),
    "before the release has its name": Fault("pathlib:Path.rename"),
}


@pytest.fixture
def place(tmp_path):
    for frame, name in zip(homes.tables(80), ("households", "persons"), strict=True):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "homes.toml").write_text(homes.PLAIN.to_toml(), encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("when", FAULTS)
def test_a_killed_fit_goes_on_and_charges_nothing_twice(when, place, nursery):
    ended = nursery.run(command, "fit", "recipe.toml", cwd=place, faults=[FAULTS[when]])
    assert ended.code == KILLED, ended.said
    assert not (place / "recipe_release").exists()
    assert not (place / "release").exists()
    again = nursery.run(command, "fit", "recipe.toml", cwd=place)
    assert again.code == 0, again.said
    lines = kinds(place / "homes.ledger")
    assert (lines.count("reserve"), lines.count("done")) == (1, 1)
    found = verify(place / "release", place / "homes.ledger")
    assert found.ok, found.to_text()
    assert not list(place.rglob(".*.part"))


def test_files_that_change_after_a_kill_are_other_data(place, nursery):
    fault = FAULTS["between two steps"]
    assert nursery.run(command, "fit", "recipe.toml", cwd=place, faults=[fault]).code == -signal.SIGKILL
    persons = place / "persons.csv"
    persons.write_text("\n".join(persons.read_text(encoding="utf-8").splitlines()[:-1]) + "\n", encoding="utf-8")
    again = nursery.run(command, "fit", "recipe.toml", cwd=place)
    assert again.code != 0
    assert kinds(place / "homes.ledger").count("reserve") == 1
    assert not (place / "release").exists()
