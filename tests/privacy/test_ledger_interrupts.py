"""Ctrl-C at any moment, and a disk that is full: no half release, and the same recipe goes on without a new charge."""

import random
import re
import signal

import pytest

from helpers import small
from helpers.crash import Fault, command, program, traces
from helpers.ledgers import kinds, lines_of
from stratsynth import Release

RUNGS = 6
LEDGER = 'delta = 1e-9\nledger = "people.ledger"\nledger_epsilon = 3.0\n'


@pytest.fixture
def place(tmp_path):
    return recipe_in(tmp_path)


def recipe_in(folder, mechanism=f'"ladder"\nrungs = {RUNGS}\ntrace = "."'):
    """A recipe of a ladder for everybody, on a ledger."""
    recipe = small.write_recipe(folder)
    text = recipe.read_text(encoding="utf-8")
    text = text[: text.index("[strata]")] + text[text.index("[mechanism]") :]
    text = text.replace('"independent"', mechanism).replace("delta = 1e-9\n", LEDGER)
    recipe.write_text(text, encoding="utf-8")
    return folder


def left(folder):
    """Files a run left that are no input and no trace, without the ledger's own."""
    inputs = {"people.csv", "people.csv.accounts", "schema.toml", "shares.csv", "recipe.toml", "reads.log", "seen.log"}
    return sorted(p.name for p in folder.iterdir() if p.name not in inputs and not p.name.startswith("people.ledger"))


IGNORED_BY_PYTHON = re.compile(
    r"Exception ignored in.*?^(?=\S+Error|KeyboardInterrupt)[^\n]*\n", flags=re.MULTILINE | re.DOTALL
)


def check_interrupted(ended, folder):
    """Assert after a run was cut short: nothing half, nothing read that was not charged."""
    # Python itself reports an interrupt that falls into a library's compiled import; that is not our message
    said = IGNORED_BY_PYTHON.sub("", ended.said)
    complete = "Release written to" in said  # the interrupt came when the command had nothing left to say
    assert ended.code == 0 or complete or len(said.strip().splitlines()) <= 2, ended.said
    assert "Traceback" not in said, ended.said
    assert left(folder) in ([], ["release"]), left(folder)
    if left(folder):
        Release.load(folder / "release").sample(5)
    ledger = folder / "people.ledger"
    lines = lines_of(ledger) if ledger.exists() else []
    charged = sum(line["kind"] == "charge" for line in lines)
    assert charged >= len({int(moment) for (moment,) in traces(folder, "reads.log")})


def check_resumes(nursery, folder, out="again"):
    """Run the recipe again: one reservation, a charge a question, no answer given twice with different noise."""
    ended = nursery.run(command, "fit", "recipe.toml", "-o", out, cwd=folder)
    assert (ended.code, ended.said.splitlines()[:1]) == (0, [f"Release written to {out}"]), ended.said
    assert kinds(folder / "people.ledger") == ["ledger", "reserve", *["charge"] * RUNGS, "done"]
    certificate = Release.load(folder / out).certificate
    assert len(certificate["charges"]) == RUNGS
    assert certificate["ledger"]["releases"] == 1
    seen = {(rung, answer) for rung, answer in traces(folder, "seen.log")}
    assert len(seen) == RUNGS


INT = signal.SIGINT
MOMENTS = {
    "reading the recipe": Fault("stratsynth.recipes.recipe:Recipe.read", signal=INT),
    "opening the table": Fault("stratsynth.recipes.recipe:Recipe.table", signal=INT),
    "making the key": Fault("os:fsync", 0, signal=INT),
    "making the ledger": Fault("os:pwrite", 0, after=True, signal=INT),
    "reserving": Fault("os:pwrite", 1, after=True, signal=INT),
    "having reserved": Fault("stratsynth.accounting.ledger_file:FileLedger.open", after=True, signal=INT),
    "charging": Fault("os:pwrite", 3, after=True, signal=INT),
    "syncing a charge": Fault("os:fsync", 7, after=True, signal=INT),
    "loading the rows": Fault("stratsynth.data.backends:load_rows", signal=INT),
    "reading the rows": Fault("stratsynth.driver.answering:Answerer.answer", 2, signal=INT),
    "having read the rows": Fault("stratsynth.driver.answering:Answerer.answer", 2, after=True, signal=INT),
    "writing the journal": Fault("stratsynth.files.npz:write", 3, signal=INT),
    "having written the journal": Fault("stratsynth.files.npz:write", 3, after=True, signal=INT),
    "starting the release": Fault("stratsynth.release.release:Release.save", signal=INT),
    "writing the certificate": Fault("stratsynth.release.folder:write_json", after=True, signal=INT),
    "writing the rows": Fault("stratsynth.data.writing:write_table", 1, signal=INT),
    "writing the model": Fault("stratsynth.models.files:save", after=True, signal=INT),
    "before the release has its name": Fault("pathlib:Path.rename", signal=INT),
    "when the release has its name": Fault("pathlib:Path.rename", after=True, signal=INT),
    "finishing": Fault("stratsynth.accounting.ledger_file:FileAccount.finish", signal=INT),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_leaves_no_half_release_and_the_same_recipe_goes_on(moment, place, nursery):
    ended = nursery.run(command, "fit", "recipe.toml", cwd=place, faults=[MOMENTS[moment]])
    assert ended.code == 130, ended.said
    assert "interrupted" in ended.said
    check_interrupted(ended, place)
    check_resumes(nursery, place)


def test_ctrl_c_at_ten_random_times(tmp_path, nursery):
    rng = random.Random()
    whole = nursery.run(command, "fit", "recipe.toml", cwd=recipe_in(tmp_path / "whole")).seconds
    for i in range(10):
        folder = recipe_in(tmp_path / str(i))
        ended = nursery.run(command, "fit", "recipe.toml", cwd=folder, kill=rng.uniform(0.003, whole), by=INT)
        assert ended.code in {0, 130}, (i, ended)
        check_interrupted(ended, folder)
        ledger = folder / "people.ledger"
        if not (ledger.exists() and lines_of(ledger) and lines_of(ledger)[-1]["kind"] == "done"):
            check_resumes(nursery, folder)


def test_ctrl_c_of_the_real_program(tmp_path, nursery):
    whole = nursery.run(program, "fit", "recipe.toml", cwd=recipe_in(tmp_path / "whole", '"independent"'))
    assert whole.code == 0, whole.said
    seconds = whole.seconds
    for attempt in range(30):
        folder = recipe_in(tmp_path / str(attempt), '"independent"')
        kill = (0.8, 0.5, 0.9, 0.7, 0.6, 0.4, 0.3)[attempt % 7] * seconds
        ended = nursery.run(program, "fit", "recipe.toml", cwd=folder, kill=kill, by=INT)
        if ended.code == 130 and not (folder / "release").exists():
            break
        # it was done before, or had not begun: the machine is busier or less busy than it was
        seconds *= 0.8 if (folder / "release").exists() else 1.2
    check_interrupted(ended, folder)
    assert "interrupted" in ended.said
    again = nursery.run(program, "fit", "recipe.toml", "-o", "again", cwd=folder)
    assert again.code == 0, again.said
    assert kinds(folder / "people.ledger") == ["ledger", "reserve", "charge", "done"]


# A disk that is full


@pytest.mark.parametrize("limit", [0, 16, 100, 300, 500, 700, 1000, 1400, 1800, 2400, 2800])
def test_a_file_size_limit_leaves_no_half_release_and_costs_nothing_more(limit, place, nursery):
    ended = nursery.run(command, "fit", "recipe.toml", cwd=place, limit=limit)
    assert ended.code == 1, ended.said
    check_interrupted(ended, place)
    assert left(place) == []
    assert re.search("File too large|No space left", ended.said)
    check_resumes(nursery, place)


def test_a_release_that_does_not_fit_on_the_disk_leaves_nothing_and_costs_nothing_more(place, nursery):
    small.edit(place / "recipe.toml", "rows = 50", "rows = 200000")
    ended = nursery.run(command, "fit", "recipe.toml", cwd=place, limit=60_000)
    assert ended.code == 1, ended.said
    check_interrupted(ended, place)
    assert left(place) == []
    assert "File too large" in ended.said
    small.edit(place / "recipe.toml", "rows = 200000", "rows = 100")
    check_resumes(nursery, place)
