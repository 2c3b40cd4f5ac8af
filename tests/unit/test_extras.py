"""A missing extra is named by the part that needs it, and nothing is spent."""

import sys

import pytest

import stratsynth as ss
from helpers.small import SCHEMA
from stratsynth.errors import UsageError


def test_a_database_without_duckdb_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    path, ledger = tmp_path / "people.duckdb", tmp_path / "people.ledger"
    path.touch()
    with pytest.raises(UsageError, match=r'pip install "stratsynth\[duckdb\]"'):
        ss.open_table(path, schema=SCHEMA, table="people", ledger=ledger)
    assert not ledger.exists()


def test_a_database_is_known_by_its_name_and_asks_for_a_table(tmp_path):
    with pytest.raises(UsageError, match=r"either table = .* or query = "):
        ss.open_table(tmp_path / "people.duckdb", schema=SCHEMA)
