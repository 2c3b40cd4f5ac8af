"""Files beside the data: nothing private is in them, their owner alone reads them, and none of it is published."""

import os
import stat

import stratsynth as ss
from helpers import small
from helpers.ledgers import BUDGET, interrupted, lines_of, recipe_on_a_ledger
from helpers.search import found_below
from stratsynth import cli
from stratsynth.adapters import Independent

# What is in the ledger's files


def test_the_ledger_its_key_and_its_journal_are_for_their_owner_alone(data, ledger):
    old = os.umask(0o022)
    try:
        interrupted(data)
    finally:
        os.umask(old)
    modes = {p: stat.S_IMODE(p.stat().st_mode) for p in ledger.parent.rglob("people.ledger*")}
    modes |= {p: stat.S_IMODE(p.stat().st_mode) for p in ledger.parent.glob("people.ledger.journal/**/*")}
    assert len(modes) >= 8
    wrong = {p.name: oct(mode) for p, mode in modes.items() if mode != (0o700 if p.is_dir() else 0o600)}
    assert wrong == {}


def test_no_file_beside_the_ledger_holds_a_private_value(tmp_path):
    canaries = ["canaryLEVELqx8", "8113685477580712", "canaryTEXTqx7"]
    people = small.people().astype(object)
    people.loc[::3, "WORK"] = canaries[0]
    people.loc[::2, "AGE"] = canaries[1]
    people["extra"] = canaries[2]
    data = tmp_path / "people.csv"
    people.to_csv(data, index=False)
    interrupted(data)
    assert len(list(tmp_path.rglob("*.npz"))) == 3
    data.rename(tmp_path.parent / f"{tmp_path.name}.csv")
    assert found_below(canaries, tmp_path) == []


def test_neither_key_nor_fingerprint_is_published(tmp_path, capsys):
    recipe = recipe_on_a_ledger(tmp_path)
    assert cli.run(["fit", str(recipe)]) == 0
    assert cli.run(["ledger", "show", str(tmp_path / "people.ledger")]) == 0
    key = (tmp_path / "people.ledger.key").read_bytes()
    fingerprint = lines_of(tmp_path / "people.ledger")[0]["data"]
    secrets = [fingerprint.encode(), bytes.fromhex(fingerprint), key, key.hex().encode()]
    published = [p.read_bytes() for p in (tmp_path / "release").rglob("*") if p.is_file()]
    published.append(capsys.readouterr().out.encode())
    assert not [1 for content in published for secret in secrets if secret in content]


def test_two_ledgers_of_the_same_data_know_them_by_different_fingerprints(data, tmp_path):
    """A plain hash would let anybody who guesses a table confirm the guess."""
    for name in ("one", "two"):
        table = ss.open_table(data, schema=small.SCHEMA, ledger=tmp_path / name, new_account="to compare the two")
        ss.fit(Independent(), table, BUDGET)
    one, two = (lines_of(tmp_path / name)[0]["data"] for name in ("one", "two"))
    assert one != two
