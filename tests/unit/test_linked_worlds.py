"""Other linked tables: customers with accounts whose balances add up, patients with visits in the order of dates."""

import numpy as np
import pandas as pd

from helpers import two_tables
from stratsynth import Categorical, Numeric, Schema, Temporal
from stratsynth.adapters.linked import Assembly, CountRole, LinkedModels, LinkRoles, SumRole
from stratsynth.adapters.linked.tables import to_tables


def distance(real, synthetic):
    one, other = (values.value_counts(normalize=True) for values in (real, synthetic))
    return one.sub(other, fill_value=0).abs().sum() / 2


def accounts(n):
    """Customers with accounts: as many as they like, none too; balances in cents that add up to what the bank holds."""
    rng = np.random.default_rng(3)
    kind = rng.choice(["new", "old"], n)
    number = np.where(kind == "new", rng.integers(0, 3, n), rng.integers(1, 5, n))
    owner = np.repeat(np.arange(n), number)
    saves = rng.random(len(owner)) < 0.4
    balance = np.where(saves, rng.integers(0, 100_000, len(owner)), rng.integers(-10_000, 30_000, len(owner))) / 100
    total = np.bincount(owner, balance, minlength=n)
    below = pd.DataFrame(
        {"id": owner, "at": np.arange(len(owner)), "KIND": np.where(saves, "savings", "current"), "BALANCE": balance}
    )
    return pd.DataFrame({"id": np.arange(n), "SINCE": kind, "HOLDS": total.round(2)}), below


def test_customers_with_accounts_and_without():
    edges = (-1000.0, 0.0, 100.0, 300.0, 1000.0)
    parent = Schema(
        {
            "SINCE": Categorical(levels=("new", "old")),
            "HOLDS": Numeric(lower=-4000.0, upper=4000.0, edges=(-4000.0, 0.0, 200.0, 600.0, 1500.0, 4000.0)),
        }
    )
    child = Schema(
        {
            "KIND": Categorical(levels=("current", "savings")),
            "BALANCE": Numeric(lower=-1000.0, upper=1000.0, edges=edges, digits=2),
        }
    )
    two_tables.TOP.update(ACCOUNTS=4, SAVINGS=3)
    roles = LinkRoles(
        parent=parent,
        child=child,
        size="ACCOUNTS",
        counts={"ACCOUNTS": CountRole(), "SAVINGS": CountRole(where={"KIND": frozenset({1})})},
        state="SAVINGS",
        summed=SumRole(column="HOLDS", of="BALANCE", ends=(-100.0, 0.0, 0.01, 200.0, 600.0)),
    )
    customers, own = accounts(2_000)
    counted = two_tables.Counted(roles, customers, own, "id", "at")
    models = LinkedModels(
        parent=two_tables.fitted(
            roles,
            counted.frame("parent"),
            [
                ("SINCE", "ACCOUNTS", "SAVINGS"),
                ("SAVINGS", "R_KIND", "ACCOUNTS"),
                ("R_KIND", "R_BALANCE"),
                ("R_BALANCE", "SHR", "HOLDS"),
            ],
        ),
        second=None,
        others=two_tables.fitted(
            roles,
            pd.concat([counted.frame("second"), counted.frame("others")]),
            [("ST", "KIND"), ("KIND", "BALANCE"), ("REM", "ALL", "BALANCE"), ("ST", "ALL", "REM")],
        ),
        prefixes=("", "", ""),
    )
    rows, _ = Assembly(roles, models).draw(3_000, np.random.default_rng(0))
    above, below = (t.to_pandas() for t in to_tables(roles, rows, np.random.default_rng(1), key="id", order="at"))
    assert (above["ACCOUNTS"] == below.groupby("id").size().reindex(above["id"], fill_value=0).to_numpy()).all()
    saved = (below["KIND"] == "savings").groupby(below["id"]).sum().reindex(above["id"], fill_value=0).to_numpy()
    assert (above["SAVINGS"] == saved).all()
    assert (np.minimum(saved, 3) == rows.parent["SAVINGS"]).mean() > 0.98
    cents = np.rint(below["BALANCE"] * 100)
    assert np.abs(below["BALANCE"] * 100 - cents).max() < 1e-6
    held = cents.groupby(below["id"]).sum().reindex(above["id"], fill_value=0).to_numpy()
    assert (np.rint(above["HOLDS"] * 100) == held).all()
    assert abs((above["ACCOUNTS"] == 0).mean() - (counted.frame("parent")["ACCOUNTS"] == 0).mean()) < 0.03


def test_visits_are_in_the_order_of_their_dates():
    rng = np.random.default_rng(4)
    n = 1_500
    number = rng.integers(1, 5, n)
    owner = np.repeat(np.arange(n), number)
    start = rng.integers(0, 1000, n)
    wait = rng.integers(1, 90, len(owner))
    day = start[owner] + np.concatenate([np.cumsum(wait[owner == i]) for i in range(n)])
    visits = pd.DataFrame(
        {
            "id": owner,
            "at": np.arange(len(owner)),
            "DAY": pd.Timestamp("2020-01-01") + pd.to_timedelta(day, unit="D"),
            "WARD": rng.choice(["a", "b"], len(owner)),
        }
    )
    patients = pd.DataFrame({"id": np.arange(n), "SEX": rng.choice(["1", "2"], n)})
    parent = Schema({"SEX": Categorical(levels=("1", "2"))})
    child = Schema(
        {
            "DAY": Temporal(kind="date", lower="2020-01-01", upper="2024-12-31", bins=20),
            "WARD": Categorical(levels=("a", "b")),
        }
    )
    two_tables.TOP.update(VISITS=4)
    days = (0, 1, 15, 30, 60, 90)
    roles = LinkRoles(
        parent=parent,
        child=child,
        size="VISITS",
        counts={"VISITS": CountRole(least=1)},
        stepped="DAY",
        differences=days,
        previous=tuple(range(200, 1800, 200)),
    )

    class Days(two_tables.Counted):
        def number(self, row):
            return (row["DAY"] - pd.Timestamp("2020-01-01")).days + child.column("DAY").lower

    counted = Days(roles, patients, visits, "id", "at")
    models = LinkedModels(
        parent=two_tables.fitted(roles, counted.frame("parent"), [("SEX", "VISITS"), ("R_DAY", "VISITS"), ("R_WARD",)]),
        second=two_tables.fitted(
            roles, counted.frame("second"), [("R_DAY", "DIF", "DAY"), ("WARD", "R_WARD")], prefix="second."
        ),
        others=two_tables.fitted(roles, counted.frame("others"), [("PREV", "DIF", "DAY"), ("WARD", "ST")]),
        prefixes=("", "second.", ""),
    )
    rows, counts = Assembly(roles, models).draw(2_000, np.random.default_rng(0))
    above, below = (t.to_pandas() for t in to_tables(roles, rows, np.random.default_rng(1), key="id", order="at"))
    gaps = pd.to_datetime(below["DAY"]).groupby(below["id"]).diff().dt.days.dropna()
    real = visits["DAY"].groupby(visits["id"]).diff().dt.days.dropna()
    assert gaps.min() >= 1
    assert gaps.max() < 90
    assert distance(real // 30, gaps // 30) < 0.06
    assert (above["VISITS"] == below.groupby("id").size().to_numpy()).all()
    assert counts.relaxed == 0
