"""Several processes at once on one ledger: never more than the cap, never two draws for one question."""

import pytest

from helpers import small
from helpers.crash import Fault, command, fit, reserve, traces
from helpers.ledgers import kinds
from stratsynth.accounting.history import read_ledger

PROCESSES, TIMES = 8, 50


def all_reserve(nursery, path, **settings):
    """Eight processes, fifty times a thousandth each, of a tenth."""
    return nursery.together(
        *[(reserve, [path], {"times": TIMES, "name": f"process {i}", **settings}) for i in range(PROCESSES)]
    )


def test_eight_processes_of_fifty_thousandths_are_granted_exactly_a_hundred_of_a_tenth(tmp_path, nursery):
    ended = all_reserve(nursery, tmp_path / "people.ledger")
    assert [e.code for e in ended] == [0] * PROCESSES, [e.said for e in ended]
    assert sum(e.result for e in ended) == 100
    assert kinds(tmp_path / "people.ledger") == ["ledger", *["reserve"] * 100]
    found = read_ledger(tmp_path / "people.ledger")
    assert found["spent_epsilon"] == pytest.approx(0.1, rel=1e-12)
    assert len({fit["run"] for fit in found["fits"]}) == 100


def test_without_the_lock_it_would_go_wrong(tmp_path, nursery):
    """More is granted than there is, reservations are lost, or the chain does not fit."""
    for attempt in range(20):
        path = tmp_path / str(attempt) / "people.ledger"
        path.parent.mkdir()
        ended = all_reserve(nursery, path, unlocked=True)
        granted = sum(e.result or 0 for e in ended)
        if any(e.code for e in ended) or granted != 100:
            return
    pytest.fail("nobody missed the lock")


def test_a_ledger_damaged_under_their_hands_is_refused_by_all(tmp_path, nursery):
    path = tmp_path / "people.ledger"
    all_reserve(nursery, path, cap=0.01)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    for ended in all_reserve(nursery, path, cap=0.01):
        assert ended.code == 1
        assert "LedgerError" in ended.said
    assert path.read_bytes() == content


def test_of_processes_that_run_the_same_fit_at_once_one_runs_and_the_others_are_refused(tmp_path, nursery):
    small.people().to_csv(tmp_path / "people.csv", index=False)
    # The first one waits, in the middle of its work, until the others, which wait for its beginning, have been refused.
    ends = [str(tmp_path / f"end {i}") for i in range(3)]
    busy = Fault("stratsynth.driver.answering:Answerer.answer", 2, signal=None, until=ends)
    first, *others = nursery.together(
        (fit, [tmp_path], {"faults": [busy]}),
        *[(fit, [tmp_path], {"after": [str(tmp_path / "reads.log")], "mark": end}) for end in ends],
    )
    assert first.code == 0, first.said
    for other in others:
        assert other.code == 1
        assert "another process is running this very fit" in other.said
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve", *["charge"] * 6, "done"]
    assert len(traces(tmp_path, "reads.log")) == 6
    assert len(traces(tmp_path, "seen.log")) == 6


def test_the_same_recipe_started_many_times_is_paid_once(tmp_path, nursery):
    """Whoever comes late finds the release, or the fit being run."""
    recipe = small.write_recipe(tmp_path)
    small.edit(recipe, "delta = 1e-9\n", 'delta = 1e-9\nledger = "people.ledger"\n')
    delays = [0, 0, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05]
    ended = nursery.together(*[(command, ["fit", "recipe.toml"], {"cwd": tmp_path, "wait": d}) for d in delays])
    assert sum(e.code == 0 for e in ended) == 1, [e.said for e in ended]
    for late in ended:
        if late.code:
            assert any(said in late.said for said in ("another process", "exists already", "is done: fit 1")), late.said
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve", "charge", "done"]


def test_different_fits_run_at_the_same_time(tmp_path, nursery):
    small.people().to_csv(tmp_path / "people.csv", index=False)
    ended = nursery.together(*[(fit, [tmp_path], {"rungs": 3 + i, "out": f"release {i}"}) for i in range(4)])
    assert [e.code for e in ended] == [0] * 4, [e.said for e in ended]
    found = read_ledger(tmp_path / "people.ledger")
    assert sorted(fit["questions"] for fit in found["fits"]) == [3, 4, 5, 6]
    assert {fit["state"] for fit in found["fits"]} == {"done"}
