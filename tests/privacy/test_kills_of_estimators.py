"""Kills of an estimator's fit at random times: each charge once, each answer drawn once, and the same call goes on."""

import random

import pytest

from helpers.crash import KILLED, estimate
from helpers.ledgers import lines_of
from stratsynth.accounting.chain import Chain


@pytest.fixture
def kills(request):
    """Number of fits that are killed."""
    return 40 if request.config.getoption("slow") else 4


def done(folder):
    """True if the ledger holds the end of the fit; its last line may be torn."""
    ledger = folder / "people.ledger"
    lines = Chain(ledger).read() if ledger.exists() else []
    return bool(lines) and lines[-1]["kind"] == "done"


def test_a_killed_fit_of_an_estimator_goes_on_without_a_second_charge(nursery, kills, tmp_path):
    (tmp_path / "whole").mkdir()
    whole = nursery.run(estimate, tmp_path / "whole")
    assert whole.code == 0, whole.said
    batches = sum(line["kind"] == "charge" for line in lines_of(tmp_path / "whole" / "people.ledger"))
    rng = random.Random()
    for number in range(kills):
        folder = tmp_path / str(number)
        folder.mkdir()
        for _ in range(rng.choice([1, 2, 3])):
            ended = nursery.run(estimate, folder, kill=rng.uniform(0.05, 1) * whole.seconds)
            assert ended.code in (KILLED, 0), ended.said
            if done(folder):  # another call would be another fit, which is charged
                break
        if not done(folder):
            again = nursery.run(estimate, folder)
            assert again.code == 0, again.said
        lines = lines_of(folder / "people.ledger")
        assert sum(line["kind"] == "reserve" for line in lines) == 1
        for kind in ("charge", "answered"):
            assert [line["moment"] for line in lines if line["kind"] == kind] == list(range(batches))
