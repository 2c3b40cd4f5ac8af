"""Fits on a ledger file, in this process; and a reader of ledgers that shares no code with the package's."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

import stratsynth as ss
from helpers import small
from helpers.crash import Ladder, digest
from stratsynth.adapters import Independent
from stratsynth.errors import LedgerError

BUDGET = ss.Budget(1, 1e-9)


def lines_of(ledger):
    """The lines of a ledger, its chain recomputed here; fails where a byte is wrong."""
    raw = Path(ledger).read_bytes()
    assert not raw or raw.endswith(b"\n"), "torn"
    head, lines = "0" * 64, []
    for line in raw.splitlines():
        stated, body = line.split(b" ", 1)
        head = hashlib.sha256(head.encode() + b" " + body).hexdigest()
        assert stated.decode() == head, f"line {len(lines) + 1}"
        lines.append(json.loads(body))
    return lines


def chained(contents):
    """The bytes of a ledger that says this, soundly chained."""
    head, lines = "0" * 64, []
    for said in contents:
        body = json.dumps(said, separators=(",", ":")).encode()
        head = hashlib.sha256(head.encode() + b" " + body).hexdigest()
        lines.append(head.encode() + b" " + body + b"\n")
    return b"".join(lines)


def forged(ledger, contents):
    """Make a ledger say this; what was written last lies beside it."""
    ledger.write_bytes(chained(contents))
    ledger.with_name(f"{ledger.name}.next").unlink(missing_ok=True)


@dataclass(frozen=True)
class Watched(Ladder):
    """A ladder that keeps the answers it was given, and may stop at one of its rungs."""

    def __post_init__(self):
        object.__setattr__(self, "seen", [])
        object.__setattr__(self, "stop", None)

    def pause(self):
        if self.stop == len(self.seen):
            raise KeyboardInterrupt

    def steps(self, public, allot, rng):
        asked = Ladder.steps(self, public, allot, rng)
        question = next(asked)
        while True:
            self.pause()
            answer = yield question
            self.seen.append(digest(answer))
            try:
                question = asked.send(answer)
            except StopIteration as done:
                self.pause()
                return done.value


def ladder(stop=None, rungs=6):
    """Return the mechanism of one fit, with an interrupt at question `stop` or without."""
    made = Watched(rungs)
    object.__setattr__(made, "stop", stop)
    return made


def interrupted(data, stop=3, **settings):
    """Run a ladder into an interrupt; returns what it had seen."""
    made = ladder(stop)
    with pytest.raises(KeyboardInterrupt):
        ss.fit(made, table(data), BUDGET, **settings)
    return made.seen


def table(data, cap=None, **settings):
    return ss.open_table(
        data,
        schema=small.SCHEMA,
        declared_size=100,
        ledger=data.with_name("people.ledger"),
        ledger_epsilon=cap,
        **settings,
    )


def kinds(ledger):
    """Return the kinds of a ledger's lines, without those that state a charge's answers as given."""
    return [line["kind"] for line in lines_of(ledger) if line["kind"] != "answered"]


def refused(data, match, kind=LedgerError, mechanism=None):
    """A fit that is refused, and leaves the folder as it was."""
    before = small.tree(data.parent)
    with pytest.raises(kind, match=match):
        ss.fit(mechanism or Independent(), table(data), BUDGET)
    assert small.tree(data.parent) == before


def recipe_on_a_ledger(folder):
    recipe = small.write_recipe(folder)
    small.edit(recipe, "delta = 1e-9\n", 'delta = 1e-9\nledger = "people.ledger"\n')
    return recipe


def without_account(release):
    """A certificate but for its account: the second fit on the same data adds to that of the first."""
    return {key: value for key, value in release.certificate.items() if key != "ledger"}
