"""An answer that was given is never drawn again, and a ledger that is older than the files beside it is refused."""

import contextlib
import json
import shutil

import pytest

import stratsynth as ss
from helpers.ledgers import BUDGET, interrupted, kinds, ladder, lines_of, refused, table
from stratsynth import cli
from stratsynth.accounting.file_account import FileAccount
from stratsynth.accounting.history import read_ledger
from stratsynth.adapters import Independent
from stratsynth.errors import LedgerError
from stratsynth.fitting import fitted


def answers(folder):
    return sorted(folder.glob("people.ledger.journal/*/*.npz"))


def cut(ledger, lines):
    """Take the last lines of a ledger away, soundly."""
    raw = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(raw[:-lines]))


def beside(ledger):
    return ledger.with_name(f"{ledger.name}.next")


# Answers


def test_every_answer_is_known_to_the_ledger_before_the_program_has_it(data, ledger):
    made = ladder()
    proper, known = type(made).pause, []

    def pause(self):
        known.append(sum(line["kind"] == "answered" for line in lines_of(ledger)) if ledger.exists() else 0)
        proper(self)

    type(made).pause = pause
    try:
        ss.fit(made, table(data), BUDGET)
    finally:
        type(made).pause = proper
    assert known == list(range(7))


@pytest.mark.parametrize("stop", range(1, 7))
def test_the_last_answer_is_not_drawn_again_when_its_file_is_lost(stop, data, ledger, reads):
    """The release may have been written with it."""
    interrupted(data, stop)
    answers(ledger.parent)[-1].unlink()
    reads.clear()
    refused(data, "an answer that was given; another draw would be", mechanism=ladder())
    assert reads == []


class Killed(Exception):
    """Raised by nobody but the test."""


def test_a_release_that_was_written_is_not_followed_by_a_second_answer(data, ledger, tmp_path):
    """Killed between the release and `done`, and the journal is lost: one charge has given one answer."""
    with contextlib.suppress(Killed), fitted(Independent(), table(data), BUDGET) as release:
        release.save(tmp_path / "release", rows=10)
        raise Killed
    for lost in answers(ledger.parent):
        lost.unlink()
    refused(data, "an answer that was given")


def test_an_answer_that_is_not_the_one_that_was_given_is_refused(data, ledger):
    interrupted(data, 4)
    stored = answers(ledger.parent)
    shutil.copy(stored[1], stored[3])
    refused(data, "not the answer that was given", mechanism=ladder())


def test_an_answer_that_reached_the_journal_and_not_the_ledger_is_given_and_noted(data, ledger, monkeypatch):
    """A kill between the two: nobody has seen it, and it is there."""
    with monkeypatch.context() as killed:
        killed.setattr(FileAccount, "_answered", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ss.fit(ladder(), table(data), BUDGET)
    (stored,) = answers(ledger.parent)
    before = stored.read_bytes()
    seen = interrupted(data, 1)
    assert len(seen) == 1
    assert stored.read_bytes() == before
    assert [line["kind"] for line in lines_of(ledger)] == ["ledger", "reserve", "charge", "answered"]
    again = ladder()
    ss.fit(again, table(data), BUDGET)
    assert again.seen[:1] == seen


# Lines that were cut off


def test_a_done_that_was_cut_off_is_put_back_and_a_fit_of_one_moment_is_paid_again(data, ledger):
    ss.fit(Independent(), table(data), BUDGET)
    whole = ledger.read_bytes()
    cut(ledger, 1)
    assert read_ledger(ledger)["fits"][0]["state"] == "done"
    ss.fit(Independent(), table(data), BUDGET)
    assert ledger.read_bytes().startswith(whole)
    assert kinds(ledger).count("reserve") == 2


def test_without_the_line_beside_it_a_fit_of_one_moment_is_refused(data, ledger):
    """Its answer was given, and its journal is gone."""
    ss.fit(Independent(), table(data), BUDGET)
    cut(ledger, 1)
    beside(ledger).unlink()
    for lock in ledger.parent.glob("people.ledger.journal/*/lock"):
        lock.write_bytes(b"")
    with pytest.raises(LedgerError, match="an answer that was given"):
        ss.fit(Independent(), table(data), BUDGET)


@pytest.mark.parametrize("lines", [2, 3, 4])
def test_a_ledger_that_lacks_more_than_its_last_line_is_refused(lines, data, ledger):
    ss.fit(Independent(), table(data), BUDGET)
    cut(ledger, lines)
    refused(data, "older than the files beside it")
    with pytest.raises(LedgerError, match="older than the files beside it"):
        read_ledger(ledger)


@pytest.mark.parametrize("lines", [1, 2, 3, 4])
def test_a_ledger_that_lacks_what_the_journal_knows_is_refused(lines, data, ledger):
    """Restored from an old copy with all that lay beside it, but for the journal."""
    ss.fit(Independent(), table(data), BUDGET)
    cut(ledger, lines)
    beside(ledger).unlink()
    refused(data, "older than the files beside it")


def test_a_ledger_restored_from_before_the_fit_went_on_is_refused(data, ledger):
    """The journal holds answers of moments that this copy has not charged."""
    interrupted(data, 2)
    old = ledger.read_bytes()
    interrupted(data, 4)
    ledger.write_bytes(old)
    beside(ledger).unlink()
    refused(data, "older than the files beside it", mechanism=ladder())


def test_an_older_line_beside_a_ledger_is_in_nobodys_way(data, ledger):
    interrupted(data, 2)
    old = beside(ledger).read_bytes()
    interrupted(data, 4)
    beside(ledger).write_bytes(old)
    ss.fit(ladder(), table(data), BUDGET)


def test_a_line_that_could_not_be_written_is_not_completed_later(data, ledger, monkeypatch):
    """Its fit was told that nothing was reserved."""
    import os

    ss.fit(Independent(), table(data), BUDGET)
    before, proper = ledger.read_bytes(), os.pwrite

    def full(handle, content, offset):
        if offset:
            raise OSError(28, "No space left on device")
        return proper(handle, content, offset)

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", full)
        with pytest.raises(LedgerError, match="No space left"):
            ss.fit(ladder(), table(data), BUDGET)
    assert read_ledger(ledger)["spent_epsilon"] == pytest.approx(1)
    assert ledger.read_bytes() == before


# What is left, and what is shown


def test_answers_that_a_killed_process_left_of_a_finished_fit_go_with_the_next_one(data, ledger, monkeypatch):
    with monkeypatch.context() as killed:
        killed.setattr(
            "stratsynth.accounting.file_account.mark", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            ss.fit(ladder(), table(data), BUDGET)
    assert len(answers(ledger.parent)) == 6
    assert kinds(ledger)[-1] == "done"
    ss.fit(Independent(), table(data), BUDGET)
    assert answers(ledger.parent) == []


def test_nothing_of_a_request_is_shown_under_a_plain_hash(data, ledger, capsys):
    """A request may hold a confidential holdout: whoever guesses it must not be able to confirm the guess."""
    ss.fit(Independent(), table(data), BUDGET)
    (reserved,) = (line for line in lines_of(ledger) if line["kind"] == "reserve")
    assert cli.run(["ledger", "show", str(ledger), "--json"]) == 0
    shown = capsys.readouterr().out
    assert reserved["identity"][:8] not in shown
    assert json.loads(shown)["fits"][0]["run"] == 1


def test_a_given_answer_is_the_one_that_the_journal_digests(data, ledger):
    """The digest is of the journal's file, which holds noisy answers alone."""
    import hashlib

    interrupted(data, 3)
    told = [line["sha256"] for line in lines_of(ledger) if line["kind"] == "answered"]
    assert told == [hashlib.sha256(path.read_bytes()).hexdigest() for path in answers(ledger.parent)]
