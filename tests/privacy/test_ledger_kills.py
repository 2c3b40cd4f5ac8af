"""kill -9, at random times and around every sync: no torn line, no lost charge, no answer with two noises."""

import random
import shutil

import pytest

from helpers import small
from helpers.crash import KILLED, Fault, append_forever, fit, traces
from helpers.ledgers import kinds, lines_of
from stratsynth import Release
from stratsynth.accounting.chain import Chain
from stratsynth.accounting.history import read_ledger
from stratsynth.files import npz

RUNGS = 4


@pytest.fixture
def kills(request):
    """Number of processes killed at random times: other times in every run of the suite."""
    return 60 if request.config.getoption("slow") else 12


def fitted(nursery, folder, **how):
    """A fit of so many questions that one is the first, one the last, and two lie between."""
    return nursery.run(fit, folder, rungs=RUNGS, **how)


def place(folder):
    folder.mkdir()
    small.people().to_csv(folder / "people.csv", index=False)
    return folder


def journal(folder):
    """The answers on disk: for each moment, its arrays."""
    paths = folder.glob("people.ledger.journal/*/*.npz")
    return {int(path.name[:6]): {n: a.tolist() for n, a in npz.read(path).arrays.items()} for path in paths}


def check_killed(folder):
    """Wherever it died: a sound ledger, charges for all that was read, a release that is whole or not there."""
    ledger = folder / "people.ledger"
    if ledger.exists():
        charged = [line["moment"] for line in lines_of(ledger) if line["kind"] == "charge"]
        assert charged == list(range(len(charged)))
        if lines_of(ledger):
            assert read_ledger(ledger)["spent_epsilon"] <= 1 + 1e-9
    else:
        charged = []
    # Reading number n is watched with the charges that stand by then; one that is done again is the last one.
    looked = [int(charges) for (charges,) in traces(folder, "reads.log")]
    assert looked == sorted(looked)
    assert not looked or 1 <= looked[0] <= looked[-1] <= len(charged)
    assert set(journal(folder)) <= set(charged)
    if (folder / "release").exists():
        Release.load(folder / "release").sample(5)


def check_finished(folder, kept):
    """One reservation, a charge a question, and the answers that were in the journal before."""
    assert kinds(folder / "people.ledger") == ["ledger", "reserve", *["charge"] * RUNGS, "done"]
    found = read_ledger(folder / "people.ledger")
    assert found["spent_epsilon"] == pytest.approx(1, rel=1e-9)
    assert [fit["questions"] for fit in found["fits"]] == [RUNGS]
    release = Release.load(folder / "release")
    assert len(release.certificate["charges"]) == RUNGS
    seen = {(int(rung), answer) for rung, answer in traces(folder, "seen.log")}
    assert sorted(rung for rung, _ in seen) == list(range(RUNGS)), "an answer was given twice with different noise"
    frame = release.measurements.to_pandas()
    for moment, arrays in kept.items():
        asked = frame[frame["question"] == moment]
        values = [asked[asked["clique"] == clique]["value"].tolist() for clique in asked["clique"].unique()]
        assert values == list(arrays.values())


def run_to_the_end(nursery, folder, **how):
    """Kill a fit, check, let it go on, check; returns how many processes were killed."""
    first = fitted(nursery, folder, **how)
    assert first.code in {0, KILLED}, first.said
    check_killed(folder)
    done = (folder / "release").exists()
    kept = {} if done else journal(folder)
    if first.code == KILLED and not done:
        again = fitted(nursery, folder)
        assert again.code == 0, again.said
    if not done or first.code == 0:
        check_finished(folder, kept)
    return first.code == KILLED


def test_kills_at_random_times(kills, tmp_path, nursery):
    rng = random.Random()
    whole = max(fitted(nursery, place(tmp_path / f"whole{i}")).seconds for i in range(2))
    killed = tries = 0
    while killed < kills:
        tries += 1
        if run_to_the_end(nursery, place(tmp_path / str(tries)), kill=rng.uniform(0.1, 1) * whole):
            killed += 1
        else:
            whole *= 0.95  # it was done before: the machine is less busy than it was
        assert tries < 5 * kills


def test_kills_of_one_fit_again_and_again(tmp_path, nursery):
    """Each time a bit further, or not."""
    rng = random.Random()
    whole = fitted(nursery, place(tmp_path / "whole")).seconds
    folder = place(tmp_path / "fit")
    for _ in range(20):
        kept = journal(folder)
        ended = fitted(nursery, folder, kill=rng.uniform(0.3, 1) * whole)
        check_killed(folder)
        if (folder / "release").exists():
            break
        assert ended.code == KILLED, ended.said
        assert kept.items() <= journal(folder).items()
    if not (folder / "release").exists():
        kept = journal(folder)
        assert fitted(nursery, folder).code == 0
        check_finished(folder, kept)


WHERE = ["os:fsync", "os:pwrite", "pathlib:Path.replace", "pathlib:Path.rename", "pathlib:Path.mkdir"]


@pytest.mark.parametrize("where", WHERE)
def test_a_kill_before_and_after_every(where, tmp_path, nursery, request):
    """In the short form before or after, by chance: after one is nearly the moment before the next."""
    times = fitted(nursery, place(tmp_path / "whole"), count=where).result
    assert times >= (3 * RUNGS + 4 if where == "os:fsync" else 1)
    for at in range(times):
        for after in (False, True) if request.config.getoption("slow") else (random.random() < 0.5,):
            folder = place(tmp_path / f"{at}-{after}")
            assert run_to_the_end(nursery, folder, faults=[Fault(where, at, after)]), (where, at, after)


def test_a_kill_in_the_middle_of_every_write(tmp_path, nursery):
    times = fitted(nursery, place(tmp_path / "whole"), count="os:pwrite").result
    assert times >= RUNGS + 3
    for at in range(times):
        folder = place(tmp_path / str(at))
        assert fitted(nursery, folder, torn=at).code == KILLED
        kept = journal(folder)
        if (folder / "release").exists():  # it was the last line
            (folder / "release").rename(folder / "first")
        again = fitted(nursery, folder)
        assert again.code == 0, (at, again.said)
        if lines_of(folder / "people.ledger")[-1]["kind"] == "done" and not (folder / "first").exists():
            check_finished(folder, kept)


@pytest.mark.parametrize("size", [2_000, 200_000])
def test_a_writer_that_is_killed_leaves_a_ledger_that_goes_on(kills, size, tmp_path, nursery):
    """Linux looks for a kill whenever a write comes to a new page: the line is then torn."""
    rng = random.Random()
    for i in range(kills // 2):
        folder = tmp_path / str(i)
        folder.mkdir()
        path = folder / "people.ledger"
        ended = nursery.run(append_forever, path, size=size, kill=rng.uniform(0.005, 0.04))
        assert ended.code == KILLED, ended.said
        known = len(traces(folder, "done.log"))
        chain = Chain(path)
        with chain.locked() as append:
            append({"n": len(chain.lines), "filler": ""})
        assert [line["n"] for line in lines_of(path)] == list(range(len(chain.lines)))
        assert known + 1 <= len(chain.lines) <= known + 2
        shutil.rmtree(folder)


def test_a_kill_when_the_release_is_there_and_the_ledger_does_not_know(tmp_path, nursery):
    """Run the recipe again: it writes the same answers to another folder; nothing is charged."""
    folder = place(tmp_path / "fit")
    fault = Fault("stratsynth.accounting.ledger_file:FileAccount.finish")
    assert fitted(nursery, folder, faults=[fault]).code == KILLED
    (folder / "release").rename(folder / "first")
    assert fitted(nursery, folder).code == 0
    check_finished(folder, {})
    assert Release.load(folder / "first").measurements.equals(Release.load(folder / "release").measurements)


# Whether these tests would notice


@pytest.mark.parametrize("bug", ["no journal", "reads before the charge", "refunds"])
def test_a_planted_bug_is_caught(bug, tmp_path, nursery):
    folder = place(tmp_path / "fit")
    first = fitted(nursery, folder, bug=bug, faults=[Fault("stratsynth.files.npz:write", 2, after=True)])
    assert first.code in {KILLED, 1}
    with pytest.raises(AssertionError):  # noqa: PT012 - whichever check finds it
        check_killed(folder)
        kept = journal(folder)
        assert fitted(nursery, folder, bug=bug).code == 0
        check_finished(folder, kept)
