"""Kills, interrupts, a full disk and a folder that cannot be written, over every phase of every adaptive mechanism.

No charge is lost or made twice, no answer is drawn twice, no release is half there, and the same recipe goes on.
"""

import os
import random
import signal

import pytest

from helpers import small
from helpers.crash import KILLED, Fault, command
from helpers.ledgers import lines_of
from stratsynth import Release
from stratsynth.accounting.chain import Chain
from stratsynth.accounting.history import read_ledger
from stratsynth.models.base import Returns

QUICK, SLOW = 2, 25
"""Kills of each mechanism."""
TINY = "components = 4\nhidden = [3]\nlatent = 2\niterations = 1\nrounds = 3\nleast = 1\n"
STRATA = (
    '[strata]\nby = ["SEX", "GROUP"]\n\n[weights]\nsource = "public"\npath = "shares.csv"\ncitation = "made up"\n\n'
)
PREDICT = 'target = "SEX"\nfeatures = ["AGE"]\ngroups = ["GROUP"]\n'
MECHANISMS = {
    "mst by strata": (STRATA, 'name = "mst"\n'),
    "aim": ("", 'name = "aim"\n'),
    "gem": ("", f'name = "gem"\n{TINY}'),
    "pooled": (STRATA, 'name = "pooled"\nbase = "aim"\n'),
    "group_regression": ("", f'name = "group_regression"\nmodel = "logistic"\niterations = 6\n{PREDICT}'),
    "output_perturbation": ("", f'name = "output_perturbation"\n{PREDICT}'),
    "reductions": ("", f'name = "reductions"\niterations = 3\n{PREDICT}'),
    "fermi": ("", f'name = "fermi"\npenalty = 1\niterations = 8\nsampling = 0.1\n{PREDICT}'),
    "fair_sgd": ("", f'name = "fair_sgd"\niterations = 8\nsampling = 0.1\n{PREDICT}'),
}
SAMPLED = ("fermi", "fair_sgd")
"""Mechanisms whose noise is calibrated by numerical accounting, which takes a second a run."""
PREDICTORS = ("group_regression", "output_perturbation", "reductions", "fermi", "fair_sgd")
HOW = ["KILL", "TERM", "INT", "full", "read-only"]


def place(folder, name):
    """A recipe of this mechanism, on a ledger, about people enough for it to be adaptive."""
    folder.mkdir(parents=True)
    recipe = small.write_recipe(folder)
    small.people(5000).to_csv(folder / "people.csv", index=False)
    strata, mechanism = MECHANISMS[name]
    rows = "" if name in PREDICTORS else "rows = 50\n"
    recipe.write_text(
        f'[data]\npath = "people.csv"\nschema = "schema.toml"\ndeclared_size = 5000\n{strata}[mechanism]\n{mechanism}\n'
        '[budget]\nepsilon = 2.0\ndelta = 1e-9\nledger = "people.ledger"\nledger_epsilon = 3.0\n\n'
        f'[release]\n{rows}directory = "release"\nseed = 7\n',
        encoding="utf-8",
    )
    return folder


def broken(nursery, folder, how, when, whole, rng):
    """Break one run in this way, at this part of its time; returns how it ended."""
    settings = {"cwd": folder}
    if how == "full":
        settings["limit"] = rng.choice([0, 100, 400, 800, 1500, 2500, 4000, 6000, 9000])
    elif how == "read-only":
        settings["unprivileged"] = True
    else:
        settings |= {"kill": when * whole, "by": getattr(signal, f"SIG{how}")}
    return nursery.run(command, "fit", "recipe.toml", **settings)


def check_broken(folder, how, ended):
    """A sound ledger, whatever was written of it; a release that is whole or not there."""
    codes = {"KILL": {KILLED}, "TERM": {143, -signal.SIGTERM}, "INT": {130}, "full": {1}, "read-only": {1, 2}}
    assert ended.code in codes[how] | {0}, (how, ended)
    if how in ("full", "read-only") and ended.code:
        assert len(ended.said.strip().splitlines()) <= 2, ended.said
        assert "Traceback" not in ended.said
    ledger = folder / "people.ledger"
    if ledger.exists() and ledger.stat().st_size and how != "KILL":
        once(lines_of(ledger))
    if (folder / "release").exists():
        use(folder)


def use(folder):
    """Draw rows of the release, or predict some."""
    release = Release.load(folder / "release")
    if release.model.returns is Returns.ROWS:
        release.sample(5)
    else:
        assert len(release.predict(folder / "people.csv", seed=1)) == 5000


def once(lines):
    """One reservation; each moment charged once, and answered at most once."""
    assert sum(line["kind"] == "reserve" for line in lines) <= 1
    charged = [line["moment"] for line in lines if line["kind"] == "charge"]
    given = [line["moment"] for line in lines if line["kind"] == "answered"]
    assert charged == list(range(len(charged)))
    assert given == charged[: len(given)]
    assert len(charged) - len(given) <= 1
    return charged, given


def check_finished(folder):
    """All of it charged once, all answers given once."""
    lines = lines_of(folder / "people.ledger")
    charged, given = once(lines)
    assert given == charged
    assert [line["kind"] for line in lines][-1] == "done"
    found = read_ledger(folder / "people.ledger")
    assert found["spent_epsilon"] == pytest.approx(2, rel=1e-9)
    certificate = Release.load(folder / "release").certificate
    assert len(certificate["charges"]) == sum(len(line["charges"]) for line in lines if line["kind"] == "charge")
    assert certificate["ledger"]["releases"] == 1


def check_tidy(nursery, folder):
    """No answer is left in the journal, at the latest once the ledger was opened again: here for a fit it refuses.

    A kill after the line `done` and before the last deletion leaves answers; nobody goes on with a fit that is done.
    """
    if left(folder):
        recipe = folder / "recipe.toml"
        recipe.write_text(
            recipe.read_text(encoding="utf-8").replace("epsilon = 2.0\ndelta", "epsilon = 2.9\ndelta"), encoding="utf-8"
        )
        (folder / "release").rename(folder / "done")
        lines = lines_of(folder / "people.ledger")
        refused = nursery.run(command, "fit", "recipe.toml", cwd=folder)
        assert refused.code == 3, refused.said
        assert lines_of(folder / "people.ledger") == lines
    assert not left(folder)


def left(folder):
    """Files of answers and unfinished writes that a killed run has left behind."""
    return [*folder.glob("people.ledger.journal/*/*.npz"), *folder.rglob(".*.part")]


def campaign(nursery, folder, name, kills, rng):
    """Break runs of this mechanism so often, each once or several times; returns what was done."""
    whole = nursery.run(command, "fit", "recipe.toml", cwd=place(folder / "whole", name))
    assert whole.code == 0, whole.said
    done = dict.fromkeys(HOW, 0)
    tries = 0
    while sum(done.values()) < kills:
        tries += 1
        assert tries < 5 * kills + 10
        here, how = place(folder / str(tries), name), HOW[tries % len(HOW)]
        for _ in range(rng.choice([1, 1, 3])):
            ended = broken(nursery, here, how, rng.uniform(0.05, 1), whole.seconds, rng)
            check_broken(here, how, ended)
            done[how] += ended.code != 0
            if ended.code == 0 or (here / "release").exists():
                break
        if (here / "release").exists() and Chain(here / "people.ledger").read()[-1]["kind"] != "done":
            (here / "release").rename(here / "first")  # it goes on, to the same release
        if not (here / "release").exists():
            again = nursery.run(command, "fit", "recipe.toml", cwd=here)
            assert again.code == 0, (name, how, again.said)
        check_finished(here)
        check_tidy(nursery, here)
    return done


@pytest.mark.skipif(os.getuid() != 0, reason="only root can take its rights away")
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SAMPLED else ()) for n in MECHANISMS])
def test_a_few_breaks(name, tmp_path, nursery):
    campaign(nursery, tmp_path, name, QUICK, random.Random())


def test_a_kill_between_the_last_line_and_the_deletion_leaves_answers_until_the_next_opening(tmp_path, nursery):
    here = place(tmp_path / "recipe", "mst by strata")
    killed = nursery.run(
        command, "fit", "recipe.toml", cwd=here, faults=[Fault("stratsynth.accounting.file_account:mark", after=True)]
    )
    assert killed.code == KILLED, killed.said
    check_finished(here)
    assert left(here)
    check_tidy(nursery, here)


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can take its rights away")
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_hundred_breaks(name, tmp_path, nursery):
    seed = random.SystemRandom().randrange(2**32)
    done = campaign(nursery, tmp_path, name, SLOW, random.Random(seed))
    assert sum(done.values()) >= SLOW, seed
