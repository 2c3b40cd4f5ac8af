"""Accounts without a ledger file: one for the same data in a process, however often and by whatever way opened."""

import sys
import threading
import time
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pytest

import stratsynth as ss
from helpers import small
from helpers.accounts import Account, charge
from stratsynth import Budget
from stratsynth.accounting.account import Request
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.process import ProcessLedger
from stratsynth.adapters import Independent
from stratsynth.errors import BudgetRefused, UsageError

BUDGET = Budget(1, 1e-9)


def unlike(rows=100):
    """People that no other test has: their account is theirs alone."""
    frame = small.people(rows)
    unlike.made += 1
    return pd.concat([frame, frame.iloc[[unlike.made % rows] * unlike.made]], ignore_index=True)


unlike.made = 0


def opened(data, cap=None):
    return ss.open_table(data, schema=small.SCHEMA, declared_size=small.SIZE, ledger_epsilon=cap)


def fitted(data, cap=None):
    return ss.fit(Independent(), opened(data, cap), BUDGET).certificate["ledger"]


def frame_and_copy(tmp_path):
    frame = unlike()
    return frame, frame.copy()


def frame_itself(tmp_path):
    frame = unlike()
    return frame, frame


def arrow_itself(tmp_path):
    table = pa.Table.from_pandas(unlike(), preserve_index=False)
    return table, table


def arrow_and_another(tmp_path):
    frame = unlike()
    return tuple(pa.Table.from_pandas(frame, preserve_index=False) for _ in range(2))


def one_path(tmp_path):
    unlike().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv", str(tmp_path / "." / "people.csv")


def link(tmp_path):
    unlike().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "others.csv").symlink_to(tmp_path / "people.csv")
    return tmp_path / "people.csv", tmp_path / "others.csv"


def copied_file(tmp_path):
    unlike().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "copy.csv").write_bytes((tmp_path / "people.csv").read_bytes())
    return tmp_path / "people.csv", tmp_path / "copy.csv"


SAME = [frame_itself, frame_and_copy, arrow_itself, arrow_and_another, one_path, link, copied_file]


@pytest.mark.parametrize("same", SAME)
def test_the_same_data_opened_again_have_one_account(same, tmp_path):
    first, second = same(tmp_path)
    one, two = opened(first, 1.2), opened(second)
    assert ss.fit(Independent(), one, BUDGET).certificate["ledger"]["releases"] == 1
    with pytest.raises(BudgetRefused):
        ss.fit(Independent(), two, BUDGET)
    with pytest.raises(BudgetRefused):
        fitted(first)
    small_one = ss.fit(Independent(), two, Budget(0.1, 1e-9)).certificate["ledger"]
    assert (small_one["releases"], small_one["cap_epsilon"]) == (2, 1.2)
    assert small_one["spent_epsilon"] > 1


def test_two_accounts_that_turn_out_to_be_of_the_same_data_become_one_with_all_that_was_spent(tmp_path):
    """The file was changed to what a frame holds; nothing is counted twice."""
    frame, path = unlike(), tmp_path / "people.csv"
    unlike().to_csv(path, index=False)
    one, two = opened(frame), opened(path)
    for table in (one, two):
        assert ss.fit(Independent(), table, BUDGET).certificate["ledger"]["releases"] == 1
    other = tmp_path / "other.csv"
    other.write_bytes(path.read_bytes())
    found = [ss.fit(Independent(), opened(d), BUDGET).certificate["ledger"]["releases"] for d in (other, path, other)]
    assert found == [2, 3, 4]
    assert ss.fit(Independent(), one, BUDGET).certificate["ledger"]["releases"] == 2


def test_a_file_that_changes_keeps_its_account(tmp_path):
    path = tmp_path / "people.csv"
    unlike().to_csv(path, index=False)
    assert fitted(path)["releases"] == 1
    unlike().to_csv(path, index=False)
    assert fitted(path)["releases"] == 2


def test_other_data_have_another_account():
    assert fitted(unlike())["releases"] == 1
    assert fitted(unlike())["releases"] == 1


def test_another_cap_is_refused_when_the_table_is_opened():
    frame = unlike()
    opened(frame, 2.0)
    with pytest.raises(UsageError, match=r"opened before in this process, with ledger_epsilon 2\.0, not 3"):
        opened(frame, 3.0)


def test_the_certificate_says_by_what_data_were_known():
    assert "by path, object and content" in fitted(unlike())["note"]


def test_opening_reads_nothing_and_the_fingerprint_stays_here(tmp_path):
    path = tmp_path / "people.csv"
    unlike().to_csv(path, index=False)
    assert small.tree(tmp_path) == (before := small.tree(tmp_path))
    fitted(path)
    assert small.tree(tmp_path) == before


# Threads


@pytest.fixture
def hurried():
    """Threads take turns as often as they can."""
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(old)


def in_threads(number, task):
    """Run a task in so many threads at once; returns what each returned."""
    found, barrier = [], threading.Barrier(number)

    def run():
        barrier.wait()
        found.append(task())

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def granted(times, ask):
    """Number of times it was not refused."""
    count = 0
    for _ in range(times):
        try:
            ask()
        except BudgetRefused:
            continue
        count += 1
    return count


def test_32_threads_are_granted_what_there_is_and_no_more(monkeypatch):
    """Each is held up after it was told that there is room."""
    from stratsynth.accounting import process as module

    proper = module.afford

    def slow(*given):
        found = proper(*given)
        time.sleep(0.001)
        return found

    monkeypatch.setattr(module, "afford", slow)
    budget = Budget(0.1, 1e-9)
    request = Request("", "test", budget, budget.zcdp(), 0)
    alone, ledger = ProcessLedger(cap_epsilon=0.84), ProcessLedger(cap_epsilon=0.84)
    most = granted(160, lambda: alone.open(request))
    assert 40 < most < 90
    assert sum(in_threads(32, lambda: granted(5, lambda: ledger.open(request)))) == most


class Slow(Fraction):
    """A number that is added slowly: what it is added to is read before, and written after."""

    def __radd__(self, other):
        time.sleep(0.0002)
        return Fraction(other) + Fraction(self)


def test_32_threads_of_one_fit_are_charged_what_there_is_and_no_more(hurried, monkeypatch):
    """Each is held up while its charge is added."""
    proper = Charge.at
    monkeypatch.setattr(Charge, "at", lambda self, declared, other: Slow(proper(self, declared, other)))
    account = Account(rho=84 / 128)
    asked = [charge(1 / 128)]
    assert sum(in_threads(32, lambda: granted(5, lambda: account.charge(asked)))) == 84
    assert len(account.spending.charges) == 84
    assert account.spending.spent() == Fraction(account.allot.amount)


def test_tables_of_the_same_data_opened_in_threads_have_one_account(hurried):
    frame = unlike()
    budget = Budget(0.05, 1e-9)
    found = in_threads(8, lambda: granted(3, lambda: ss.fit(Independent(), opened(frame.copy(), 0.3), budget)))
    one = in_threads(1, lambda: ss.fit(Independent(), opened(frame), Budget(1e-6, 1e-9)).certificate["ledger"])[0]
    assert one["spent_epsilon"] <= 0.3 * (1 + 1e-6)
    assert sum(found) == one["releases"] - 1
