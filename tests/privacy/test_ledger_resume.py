"""Charge, sync, read, store, answer, in this order; and what an interrupted fit is given when it goes on."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import stratsynth as ss
from helpers.crash import Ladder
from helpers.ledgers import BUDGET, Watched, interrupted, kinds, ladder, lines_of, recipe_on_a_ledger, refused, table
from stratsynth import Budget, cli
from stratsynth.accounting.account import Request
from stratsynth.accounting.history import read_ledger
from stratsynth.accounting.ledger_file import FileAccount, FileLedger
from stratsynth.adapters import External, Independent
from stratsynth.adapters.independent import Product
from stratsynth.data.sources import CsvSource
from stratsynth.driver.answering import Answerer
from stratsynth.errors import BudgetRefused, LedgerError, StratsynthError
from stratsynth.fitting import fitted
from stratsynth.noise import SeededEntropy
from stratsynth.testing.record import identical

# The order: charge, sync, read, store, answer


def test_every_charge_is_on_the_disk_before_the_rows_are_read_and_every_answer_before_it_is_seen(
    data, ledger, monkeypatch
):
    synced, looks = set(), []
    sync, answer = os.fsync, Answerer.answer

    def on_disk(path):
        return (path.stat().st_ino, path.stat().st_size) in synced

    def note(handle):
        sync(handle)
        synced.add((os.fstat(handle).st_ino, os.fstat(handle).st_size))

    def look(self, asked):
        looks.append(kinds(ledger).count("charge"))
        assert on_disk(ledger), "read before the charge was on the disk"
        return answer(self, asked)

    class Careful(Watched):
        def pause(self):
            stored = sorted(ledger.parent.glob("people.ledger.journal/*/*.npz"))
            assert len(stored) == len(self.seen)
            assert all(map(on_disk, stored)), "seen before it was on the disk"

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(Answerer, "answer", look)
    ss.fit(Careful(), table(data), BUDGET)
    assert looks == [1, 2, 3, 4, 5, 6]
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # and the test notices when nothing is synced
    with pytest.raises(AssertionError, match="on the disk"):
        ss.fit(Careful(), table(data), Budget(0.5, 1e-9))


def test_a_charge_that_cannot_be_written_reads_nothing(data, ledger, monkeypatch, reads):
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", full_for_charges())
        with pytest.raises(LedgerError, match="No space left"):
            ss.fit(Independent(), table(data), BUDGET)
    assert reads == []
    assert kinds(ledger) == ["ledger", "reserve"]
    ss.fit(Independent(), table(data), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge", "done"]


def test_rows_that_cannot_be_read_leave_the_charge_standing(data, ledger, monkeypatch):
    def fail(self, columns):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(CsvSource, "batches", fail)
        with pytest.raises(StratsynthError, match="the charge stands"):
            ss.fit(Independent(), table(data), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge"]


# Resuming


def test_an_answer_that_a_kill_left_half_written_is_gone_when_the_fit_goes_on(data, ledger):
    """Nobody has seen it, and another draw replaces it: both together would say more than was paid for."""
    interrupted(data)
    (folder,) = (path for path in ledger.parent.glob("people.ledger.journal/*") if path.is_dir())
    left = folder / ".000003-abc.npz.0f0f0f0f.part"
    left.write_bytes(b"noisy")
    interrupted(data, stop=5)
    assert not left.exists()


@pytest.mark.parametrize("stop", range(7))
def test_a_resumed_fit_is_given_the_same_answers_and_charged_no_second_time(stop, data, ledger):
    seen = interrupted(data, stop)
    assert len(seen) == stop
    again = ladder()
    certificate = ss.fit(again, table(data), BUDGET).certificate
    assert again.seen[:stop] == seen
    assert kinds(ledger) == ["ledger", "reserve", *["charge"] * 6, "done"]
    assert len(certificate["charges"]) == 6
    assert certificate["ledger"]["releases"] == 1
    assert not list(ledger.parent.glob("people.ledger.journal/*/*.npz"))


def test_a_resumed_fit_makes_the_same_release(data):
    """The mechanism's own randomness is that of the first run."""

    class Random(Ladder):
        def steps(self, public, allot, rng):
            yield from Ladder.steps(self, public, allot, rng)
            chosen = rng.random(len(public.schema.names))
            even = {c: np.full(public.schema.size(c), x) for c, x in zip(public.schema.names, chosen, strict=True)}
            return Product(public.schema, even)

    with pytest.raises(KeyError), fitted(Random(), table(data), BUDGET) as first:
        raise KeyError
    second = ss.fit(Random(), table(data), BUDGET)
    assert first.measurements.equals(second.measurements)
    assert identical(first.model.state(), second.model.state())


def test_what_is_asked_anew_is_charged_anew_and_refused_beyond_the_allotment(data, ledger, reads):
    """A mechanism that asks something else when it is resumed finds no answer and no money."""
    interrupted(data, 6)
    reads.clear()

    class Fickle(Watched):
        def steps(self, public, allot, rng):
            return Independent.steps(Independent(), public, allot, rng)

    fickle = Fickle()
    Fickle.__qualname__ = Watched.__qualname__  # the same settings, other steps: as after an update of its package
    with pytest.raises(BudgetRefused, match="before reading"):
        ss.fit(fickle, table(data), BUDGET)
    assert reads == []
    assert kinds(ledger) == ["ledger", "reserve", *["charge"] * 6]


def test_another_budget_seed_or_mechanism_is_another_fit(data, ledger):
    interrupted(data)
    ss.fit(ladder(), table(data), Budget(0.5, 1e-9))
    ss.fit(ladder(), table(data), BUDGET, seed=3)
    ss.fit(ladder(rungs=5), table(data), BUDGET)
    assert kinds(ledger).count("reserve") == 4
    assert [fit["state"] for fit in read_ledger(ledger)["fits"]] == ["open", "done", "done", "done"]


def test_rows_handed_to_other_code_are_charged_each_time(data, ledger):
    """Its answers cannot be kept, so that nothing can be resumed: another run draws other noise."""
    runs = []

    def synthesizer(frame, sizes, epsilon, delta, rows):
        runs.append(len(frame))
        return {name: np.zeros(rows, dtype=np.int64) for name in sizes}

    how, budget = External(synthesizer, "their package 1.0"), Budget(1, 1e-9, "replace")
    for _ in range(2):
        with pytest.raises(KeyError), fitted(how, table(data), budget):
            raise KeyError
    release = ss.fit(how, table(data), budget)
    assert len(runs) == 3
    assert kinds(ledger) == ["ledger", *["reserve", "charge"] * 3, "done"]
    assert release.certificate["ledger"]["spent_epsilon"] == pytest.approx(3)
    release.save(data.with_name("release"))
    json.dumps(read_ledger(ledger), allow_nan=False)


def test_what_was_reserved_for_other_code_that_got_no_row_is_still_there(data, ledger, monkeypatch):
    how, budget = External(lambda *given: None, "their package 1.0"), Budget(1, 1e-9, "replace")
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", full_for_charges())
        with pytest.raises(LedgerError):
            ss.fit(how, table(data), budget)
    assert kinds(ledger) == ["ledger", "reserve"]
    with pytest.raises(StratsynthError):
        ss.fit(how, table(data), budget)
    assert kinds(ledger) == ["ledger", "reserve", "charge"]


def test_seeded_noise_never_gets_into_a_release_that_says_it_is_private(data):
    seen = interrupted(data, entropy=SeededEntropy(1))
    again = ladder()
    certificate = ss.fit(again, table(data), BUDGET).certificate
    assert certificate["private"] is True
    assert set(again.seen).isdisjoint(seen)


def test_one_process_at_a_time_runs_a_fit(data, ledger):
    with fitted(ladder(), table(data), BUDGET):
        with pytest.raises(LedgerError, match="another process is running this very fit"):
            ss.fit(ladder(), table(data), BUDGET)
        ss.fit(ladder(rungs=2), table(data), BUDGET)  # another fit need not wait
    assert kinds(ledger).count("reserve") == 2
    assert kinds(ledger).count("charge") == 8


@pytest.fixture
def stored(data, ledger):
    """The journal's files after an interrupt at the last rung."""
    interrupted(data, 5)
    return sorted(ledger.parent.glob("people.ledger.journal/*/*.npz"))


def test_every_byte_of_a_journalled_answer_flipped_is_detected_or_harmless(data, ledger, stored):
    """An answer comes back unchanged, or none does: never another one, and never a second draw."""
    account = FileLedger(ledger, lambda key: lines_of(ledger)[0]["data"]).open(the_request(ledger))
    paid = [(line["moment"], line["asked"]) for line in lines_of(ledger) if line["kind"] == "charge"]
    expected = account.recall(*paid[2])
    content = stored[2].read_bytes()
    harmless = 0
    for at in range(len(content)):
        stored[2].write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            state = account.recall(*paid[2])
        except LedgerError:
            continue
        harmless += 1
        assert state.facts == expected.facts
        assert all((state.arrays[name] == array).all() for name, array in expected.arrays.items())
    assert harmless < len(content) / 2
    account.close()


def the_request(ledger):
    """The request of the ladder that the ledger was opened for."""
    [line] = [line for line in lines_of(ledger) if line["kind"] == "reserve"]
    return Request(line["identity"], "ladder", BUDGET, BUDGET.zcdp(), None)


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive"])
def test_a_damaged_journal_is_refused_and_nothing_is_read(content, data, stored, reads):
    stored[2].write_bytes(content)
    reads.clear()
    refused(data, "journal", mechanism=ladder())
    assert reads == []


def test_an_answer_that_was_seen_and_is_gone_is_not_drawn_again(data, ledger, stored, reads):
    """The next question was charged, so the answer had been given: another draw would be a second look."""
    stored[2].unlink()
    reads.clear()
    refused(data, "journal", mechanism=ladder())
    assert reads == []


def test_an_answer_that_fills_the_disk_is_charged_and_drawn_when_there_is_room(data, ledger, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr("stratsynth.files.atomic.os.fsync", full_for("*.npz.*.part"))
        with pytest.raises(LedgerError, match=r"No space left.*The charge stands"):
            ss.fit(ladder(), table(data), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge"]
    ss.fit(ladder(), table(data), BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", *["charge"] * 6, "done"]


def full_for_charges():
    """A write that fails for lines that charge."""
    proper = os.pwrite

    def write(handle, content, offset):
        if b'"charge"' in content:
            raise OSError(28, "No space left on device")
        return proper(handle, content, offset)

    return write


def full_for(pattern):
    """A sync that fails for files of one kind."""
    proper = os.fsync

    def sync(handle):
        if Path(f"/proc/self/fd/{handle}").readlink().match(pattern):
            raise OSError(28, "No space left on device")
        proper(handle)

    return sync


# The release and the ledger's last line


def test_the_release_is_on_the_disk_before_the_ledger_says_that_the_fit_is_done(tmp_path, monkeypatch):
    """Then the journal goes: a power cut must not leave empty files and a fit that cannot be resumed."""
    recipe = recipe_on_a_ledger(tmp_path)
    synced, missing = set(), []
    sync, finish = os.fsync, FileAccount.finish

    def note(handle):
        sync(handle)
        synced.add(os.fstat(handle).st_ino)

    def check(self):
        release = tmp_path / "release"
        missing.extend(p for p in [tmp_path, release, *release.rglob("*")] if p.stat().st_ino not in synced)
        finish(self)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(FileAccount, "finish", check)
    assert cli.run(["fit", str(recipe)]) == 0
    assert [str(p.relative_to(tmp_path)) for p in missing] == []


def test_a_recipe_that_another_process_finishes_meanwhile_is_not_paid_twice(tmp_path, monkeypatch, capsys):
    """It had found no release when it looked; it must look again before it reserves anything."""
    recipe = recipe_on_a_ledger(tmp_path)
    proper = FileLedger.open

    def late(self, request):
        monkeypatch.setattr(FileLedger, "open", proper)
        assert cli.run(["fit", str(recipe)]) == 0
        return proper(self, request)

    monkeypatch.setattr(FileLedger, "open", late)
    assert cli.run(["fit", str(recipe)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert kinds(tmp_path / "people.ledger").count("reserve") == 1


def test_what_a_killed_process_left_of_a_release_is_in_nobodys_way(tmp_path, monkeypatch):
    """In a container every process has the same number."""
    recipe = recipe_on_a_ledger(tmp_path)
    stale = tmp_path / f".release.{os.getpid()}.part"
    stale.mkdir()
    (stale / "certificate.json").write_text("{", encoding="utf-8")
    assert cli.run(["fit", str(recipe)]) == 0
    ss.Release.load(tmp_path / "release")
