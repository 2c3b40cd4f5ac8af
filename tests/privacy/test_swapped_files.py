"""The file that is read is the one the account was opened for, or nothing is released."""

import gzip
import os
import shutil

import pytest

import stratsynth as ss
from helpers import small
from helpers.ledgers import kinds
from stratsynth.adapters import Independent
from stratsynth.data.backends import Memory
from stratsynth.data.fingerprint import fingerprint
from stratsynth.data.sources import open_source
from stratsynth.errors import LedgerError, StratsynthError, UsageError

ENDINGS = ["csv", "csv.gz", "parquet", "feather"]


def write(path, rows=small.SIZE):
    people = small.people(rows).astype(str)
    kind = path.name.partition(".")[2]
    if kind.startswith("csv"):
        people.to_csv(path, index=False)
    else:
        getattr(people, f"to_{kind}")(path)
    return path


def other(path):
    return path.with_name("other." + path.name.partition(".")[2])


def rename(path):
    write(other(path), 90)
    other(path).replace(path)


def rewrite(path):
    path.write_bytes(write(other(path), 90).read_bytes())


def rewrite_with_old_times(path):
    was = path.stat()
    rewrite(path)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def append(path):
    with path.open("ab") as file:
        file.write(b"1,a,3,yes\n")


def point_elsewhere(path):
    write(other(path), 90)
    path.unlink()
    path.symlink_to(other(path))


SWAPS = [rename, rewrite, rewrite_with_old_times, append, point_elsewhere]


def swapped_when_charged(monkeypatch, path, swap):
    """The file is swapped after the reservation, before its rows are read."""
    read = Memory.rows

    def late(self, **settings):
        swap(path)
        return read(self, **settings)

    monkeypatch.setattr(Memory, "rows", late)


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_swapped_after_the_reservation_is_refused(ending, swap, tmp_path, monkeypatch):
    path, ledger = write(tmp_path / f"people.{ending}"), tmp_path / "people.ledger"
    table = ss.open_table(path, schema=small.SCHEMA, declared_size=small.SIZE, ledger=ledger)
    with monkeypatch.context() as patch:
        swapped_when_charged(patch, path, swap)
        with pytest.raises(LedgerError, match="was changed or replaced while it was read") as caught:
            ss.fit(Independent(), table, small.BUDGET)
    assert caught.value.__cause__ is None
    assert kinds(ledger) == ["ledger", "reserve", "charge"]  # stands


def test_the_same_file_put_back_goes_on_without_a_second_charge(tmp_path, monkeypatch):
    path, ledger, safe = write(tmp_path / "people.csv"), tmp_path / "people.ledger", tmp_path / "safe.csv"
    shutil.copy(path, safe)

    def opened():
        return ss.open_table(path, schema=small.SCHEMA, declared_size=small.SIZE, ledger=ledger)

    with monkeypatch.context() as patch:
        swapped_when_charged(patch, path, rename)
        with pytest.raises(LedgerError, match="changed or replaced"):
            ss.fit(Independent(), opened(), small.BUDGET)
    with pytest.raises(LedgerError, match="belongs to other data"):
        ss.fit(Independent(), opened(), small.BUDGET)
    shutil.copy(safe, path)
    ss.fit(Independent(), opened(), small.BUDGET)
    assert kinds(ledger) == ["ledger", "reserve", "charge", "done"]


def test_a_table_opened_once_is_fitted_again_after_its_file_was_touched(tmp_path):
    path, ledger = write(tmp_path / "people.csv"), tmp_path / "people.ledger"
    table = ss.open_table(path, schema=small.SCHEMA, declared_size=small.SIZE, ledger=ledger)
    ss.fit(Independent(), table, small.BUDGET, seed=1)
    path.touch()
    ss.fit(Independent(), table, small.BUDGET, seed=2)
    assert kinds(ledger).count("done") == 2


def test_a_file_whose_content_changed_under_one_key_is_not_read_any_more(tmp_path):
    """Even where the change was noticed by another fit, which was refused."""
    source = open_source(write(tmp_path / "people.csv"))
    first = fingerprint(source, b"key")
    rewrite(tmp_path / "people.csv")
    assert fingerprint(source, b"key") != first
    with pytest.raises(LedgerError, match="changed or replaced"):
        source.read(["SEX"])


def test_a_file_that_changes_while_it_is_open_is_refused(tmp_path):
    path = write(tmp_path / "people.csv")
    source = open_source(path)

    def read():
        with source.open():
            append(path)

    with pytest.raises(LedgerError, match="changed or replaced"):
        read()


@pytest.mark.parametrize("ending", ["csv.gz", "parquet"])
def test_a_file_cut_short_or_damaged_is_charged_once_however_often_it_is_tried(ending, tmp_path):
    path, ledger = write(tmp_path / f"people.{ending}", 3000), tmp_path / "people.ledger"
    content = bytearray(path.read_bytes())
    if ending == "csv.gz":
        content = bytearray(gzip.compress(gzip.decompress(content), 0)[:-400])
    else:
        content[60:400] = b"\xff" * 340  # pages of values, not the footer
    path.write_bytes(content)
    for _ in range(2):
        table = ss.open_table(path, schema=small.SCHEMA, declared_size=small.SIZE, ledger=ledger)
        with pytest.raises(StratsynthError, match=r"the charge stands\. .*is not charged again"):
            ss.fit(Independent(), table, small.BUDGET)
        assert kinds(ledger) == ["ledger", "reserve", "charge"]


def test_pipes_and_folders_are_no_data(tmp_path):
    os.mkfifo(tmp_path / "people.csv")
    (tmp_path / "people.parquet").mkdir()
    for name, said in (("people.csv", "is not a regular file"), ("people.parquet", "holds no .parquet file")):
        with pytest.raises(UsageError, match=said):
            open_source(tmp_path / name)
