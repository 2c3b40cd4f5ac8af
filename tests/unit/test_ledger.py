import math

import pytest

import stratsynth as ss
from helpers import small
from helpers.accounts import BUDGET, reserve
from stratsynth.accounting.budget import Budget
from stratsynth.accounting.process import ProcessLedger
from stratsynth.accounting.zcdp import epsilon_of
from stratsynth.adapters import Independent
from stratsynth.errors import BudgetRefused, StratsynthError


def test_reservations_add_up_in_rho():
    ledger = ProcessLedger()
    first, second = (reserve(ledger, rho=0.125) for _ in range(2))
    assert (first.releases, second.releases) == (1, 2)
    assert second.spent_epsilon == pytest.approx(epsilon_of(0.25, 1e-9), rel=1e-6)


def test_the_cap_can_be_reached_and_not_passed():
    ledger = ProcessLedger(cap_epsilon=1.0)
    reserve(ledger)
    with pytest.raises(BudgetRefused):
        reserve(ledger, Budget(1e-3, 1e-9))


def test_a_refusal_says_what_is_short_and_leaves_the_account_as_it_was():
    ledger = ProcessLedger(cap_epsilon=1.2)
    reserve(ledger)
    with pytest.raises(BudgetRefused, match=r"remaining 0\.2 of 1\.2.* 0\.237142 too much"):
        reserve(ledger)
    assert reserve(ledger, Budget(0.1, 1e-9)).releases == 2


def test_the_standing_admits_that_no_file_keeps_it():
    record = reserve(ProcessLedger(cap_epsilon=2.0)).to_dict()
    assert record["name"] is None
    assert "process" in record["note"]
    assert record["cap_epsilon"] == 2


@pytest.mark.parametrize("cap", [math.nan, 0, -1], ids=str)
def test_a_cap_that_is_no_cap_is_refused(cap):
    """A cap of NaN would never refuse anything."""
    with pytest.raises(StratsynthError):
        reserve(ProcessLedger(cap_epsilon=cap))


def test_tables_opened_without_a_ledger_share_nothing_with_other_data():
    first = ss.fit(Independent(), small.table(), BUDGET).certificate["ledger"]
    second = ss.fit(Independent(), small.table(small.people(99)), BUDGET).certificate["ledger"]
    assert first["releases"] == second["releases"] == 1


def test_a_file_opened_twice_in_one_process_has_one_account(tmp_path):
    path = tmp_path / "people.csv"
    small.people().to_csv(path, index=False)
    ledgers = []
    for _ in range(2):
        table = ss.open_table(path, schema=small.SCHEMA, declared_size=small.SIZE)
        ledgers.append(ss.fit(Independent(), table, BUDGET).certificate["ledger"])
    assert [ledger["releases"] for ledger in ledgers] == [1, 2]
