"""Fuzzers of the public doors: what counts as a fault, and a short run of each, the same every time."""

import time
from importlib import import_module

import pytest

from fuzzing import harness
from fuzzing.__main__ import PARTS
from fuzzing.harness import Outcomes
from stratsynth.errors import UsageError

CASES = {"arguments": 200, "files": 40, "commands": 40}


def refused():
    raise UsageError("no such column")


@pytest.mark.parametrize(
    ("work", "charged", "outcome", "faults"),
    [
        (lambda: 1, False, "accepted", 0),
        (refused, False, "refused", 0),
        (refused, True, "charged", 1),
        (lambda: {}["x"], False, "untyped", 1),
        (lambda: int("x"), False, "untyped", 1),
        (lambda: time.sleep(10), False, "hang", 1),
    ],
)
def test_faults_are_errors_of_others_hangs_and_charges_of_what_is_refused(work, charged, outcome, faults, monkeypatch):
    monkeypatch.setattr(harness, "SECONDS", 0.05)
    found = Outcomes()
    found.case("a case", work, lambda: charged)
    assert (dict(found.counts), found.faults) == ({outcome: 1}, faults)
    assert ("a case" in str(found)) is bool(faults)


@pytest.mark.parametrize("part", PARTS)
def test_a_short_run_of_each_finds_none(part, tmp_path):
    found = import_module(f"fuzzing.{part}").fuzz(tmp_path, CASES[part], 1)
    assert found.counts.total() >= CASES[part]
    assert found.counts["refused"] > found.counts["accepted"]
    assert not found.faults, str(found)
