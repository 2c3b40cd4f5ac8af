"""Damaged ledgers, journals and what else lies beside them: typed errors alone, and no second answer for one charge."""

import contextlib
import os
import random
import shutil

import numpy as np
import pytest

from helpers.accounts import charge
from helpers.ledgers import lines_of
from privacy.test_ledger_mutations import BYTES, MEANT, SECONDS, within
from stratsynth import Budget
from stratsynth.accounting.account import Request
from stratsynth.accounting.history import read_ledger
from stratsynth.accounting.ledger_file import FileLedger
from stratsynth.accounting.registry import Registry
from stratsynth.errors import StratsynthError
from stratsynth.files.npz import State

QUICK, SLOW = 600, 10_000
MOMENTS, GIVEN = 6, 4
BUDGET = Budget(1, 1e-9)
REQUEST = Request("a" * 64, "test", BUDGET, BUDGET.zcdp(), 7)


def run(folder, upto=MOMENTS):
    """A fit of six questions, resumed if it was interrupted; returns what it was given."""
    registry = Registry(folder / "people.csv")
    account = FileLedger(folder / "people.ledger", lambda key: f"data under {key.hex()}", 3.0, registry=registry).open(
        REQUEST
    )
    given = []
    try:
        for moment in range(upto):
            asked = f"{moment:064d}"
            account.charge(moment, asked, [charge(BUDGET.zcdp().rho / MOMENTS)], 0.0)
            state = account.recall(moment, asked)
            if state is None:
                state = State([{"n": moment}], {"0/0": np.frombuffer(os.urandom(16), np.int64)})
                account.store(moment, asked, state)
            given.append(state.arrays["0/0"].tolist())
        if upto == MOMENTS:
            account.finish()
    finally:
        account.close()
    return given


@pytest.fixture
def sound(tmp_path, monkeypatch):
    """An interrupted fit, and one more byte of everything that a fit keeps."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    folder = tmp_path / "sound"
    folder.mkdir()
    (folder / "people.csv").write_text("a\n1\n", encoding="utf-8")
    return folder, run(folder, GIVEN)


def damaged(rng, folder):
    """Damage one or two of the files, or lose or exchange them; returns which."""
    files = [path for path in sorted(folder.rglob("people.*")) + sorted(folder.rglob("*.npz")) if path.is_file()]
    files = [path for path in files if path.name != "people.csv"]
    named = []
    for _ in range(rng.choice([1, 1, 2])):
        path = rng.choice(files)
        named.append(path.name)
        how = rng.random()
        content = path.read_bytes() if path.exists() else b""
        if how < 0.05:
            path.unlink(missing_ok=True)
        elif how < 0.1:
            there = [each for each in files if each.exists()]
            path.write_bytes(rng.choice(there).read_bytes() if there else b"")
        elif how < 0.25 and path.name == "people.ledger" and content:
            path.write_bytes(b"".join(content.splitlines(keepends=True)[: rng.randrange(12)]))
        else:
            damage = MEANT.get(path.suffix, rng.choice(BYTES)) if rng.random() < 0.4 else rng.choice(BYTES)
            with contextlib.suppress(Exception):  # what is damaged already may be past another damage
                path.write_bytes(damage(rng, content) or b"x")
    return named


def campaign(sound, number, seed):
    """Returns what should not have come out, and how often it was refused."""
    (folder, first), rng = sound, random.Random(seed)
    wrong, refused = [], 0
    here = folder.with_name("here")
    for i in range(number):
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(folder, here)
        named = damaged(rng, here)
        try:
            with within(SECONDS):
                with contextlib.suppress(StratsynthError):
                    read_ledger(here / "people.ledger")
                given = run(here)
        except StratsynthError as error:
            refused += 1
            if str(error).count("\n") > 1:
                wrong.append((i, named, str(error)))
            continue
        except (Exception, SystemExit) as error:  # noqa: BLE001 - these are what we look for
            wrong.append((i, named, repr(error)[:200]))
            continue
        reserved = sum(line["kind"] == "reserve" for line in lines_of(here / "people.ledger"))
        if given[:GIVEN] != first and reserved < 2:
            wrong.append((i, named, "a second answer for one charge"))
    return wrong, refused


def test_damage_to_a_ledger_and_all_beside_it_is_refused_or_harmless(sound):
    wrong, refused = campaign(sound, QUICK, seed=3)
    assert wrong == []
    assert QUICK / 4 < refused < QUICK


@pytest.mark.slow
def test_ten_thousand_damages_to_a_ledger_and_all_beside_it_are_refused_or_harmless(sound):
    seed = random.SystemRandom().randrange(2**32)
    wrong, _ = campaign(sound, SLOW, seed)
    assert wrong == [], f"seed {seed}"


def test_the_campaign_would_notice_a_second_answer(sound, monkeypatch):
    from stratsynth.accounting.file_account import FileAccount

    monkeypatch.setattr(FileAccount, "recall", lambda self, moment, asked: None)
    wrong, _ = campaign(sound, 60, seed=3)
    assert any("second answer" in said for _, _, said in wrong)
