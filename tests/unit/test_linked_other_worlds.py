"""Whole fits of other linked tables: customers with accounts, patients with visits in the order of dates."""

import numpy as np
import pandas as pd

import stratsynth as ss
from stratsynth.adapters import Linked
from stratsynth.noise import SeededEntropy
from stratsynth.schema import Temporal
from stratsynth.schema.linked_toml import parse

BUDGET = ss.Budget(8, 1e-9)


def fitted(schema, parents, children, n, required=()):
    """Release of a fit, seeded; the schema goes by its file."""
    table = ss.open_tables(parents, children, schema=parse(schema.to_toml()), declared_size=n)
    how = Linked(base="mst", children="chain", required=required)
    return ss.fit(how, table, BUDGET, seed=0, entropy=SeededEntropy(0))


def test_customers_with_accounts_whose_balances_add_up():
    rng, n = np.random.default_rng(3), 3_000
    since = rng.choice(["new", "old"], n)
    owner = np.repeat(np.arange(n), np.where(since == "new", 1, rng.integers(1, 5, n)))
    saves = rng.random(len(owner)) < 0.4
    balance = np.where(saves, rng.integers(0, 1_000, len(owner)), rng.integers(-100, 300, len(owner)))
    place = np.arange(len(owner))
    accounts = pd.DataFrame({"CUSTOMER": owner, "OPENED": place, "KIND": np.where(saves, "s", "c"), "BALANCE": balance})
    customers = pd.DataFrame({"CUSTOMER": np.arange(n), "SINCE": since, "HOLDS": 0})
    schema = ss.LinkedSchema(
        parent=ss.Schema(
            {
                "SINCE": ss.Categorical(levels=("new", "old")),
                "HOLDS": ss.Numeric(-400, 4_000, integer=True, edges=(-400, 0, 200, 600, 1_500, 4_001)),
            }
        ),
        child=ss.Schema(
            {
                "KIND": ss.Categorical(levels=("c", "s")),
                "BALANCE": ss.Numeric(-100, 1_000, integer=True, edges=(-100, 0, 100, 300, 1_001)),
            }
        ),
        key="CUSTOMER",
        order="OPENED",
        most=6,
        derived={
            "ACCOUNTS": ss.ChildCount(top=4),
            "SAVINGS": ss.ChildCount(where={"KIND": "s"}, top=3),
            "HOLDS": ss.ChildSum(column="BALANCE"),
        },
        names=("customer", "account"),
    )
    release = fitted(schema, customers, accounts, n, required=[["ACCOUNTS", "SAVINGS", "R_KIND"]])
    above, below = release.sample_tables(2_000, seed=1)
    by = below.groupby("CUSTOMER")
    assert (by["BALANCE"].sum().to_numpy() == above["HOLDS"].to_numpy()).all()
    assert (by.size().to_numpy() == above["ACCOUNTS"].to_numpy()).all()
    assert (by["KIND"].apply(lambda kinds: (kinds == "s").sum()).to_numpy() == above["SAVINGS"].to_numpy()).all()
    assert (above[above["SINCE"] == "new"]["ACCOUNTS"] == 1).mean() > 0.95
    assert abs((below["KIND"] == "s").mean() - 0.4) < 0.05


def test_patients_with_visits_in_the_order_of_dates():
    rng, n = np.random.default_rng(4), 3_000
    owner = np.repeat(np.arange(n), rng.integers(1, 5, n))
    wait = pd.Series(rng.integers(1, 90, len(owner))).groupby(owner).cumsum().to_numpy()
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n)[owner] + wait, unit="D")
    visits = pd.DataFrame({"PATIENT": owner, "DAY": day, "WARD": rng.choice(["a", "b"], len(owner))})
    patients = pd.DataFrame({"PATIENT": np.arange(n), "SEX": rng.choice(["1", "2"], n)})
    schema = ss.LinkedSchema(
        parent=ss.Schema({"SEX": ss.Categorical(levels=("1", "2"))}),
        child=ss.Schema(
            {
                "DAY": Temporal(kind="date", lower="2020-01-01", upper="2024-12-31", bins=20),
                "WARD": ss.Categorical(levels=("a", "b")),
            }
        ),
        key="PATIENT",
        order="DAY",
        most=6,
        derived={"VISITS": ss.ChildCount(top=4)},
        difference="DAY",
        differences=(0, 1, 15, 30, 60, 90),
        names=("patient", "visit"),
    )
    above, below = fitted(schema, patients, visits.sample(frac=1, random_state=0), n).sample_tables(2_000, seed=1)
    gaps = pd.to_datetime(below["DAY"]).groupby(below["PATIENT"]).diff().dt.days.dropna()
    assert (gaps >= 1).mean() > 0.97  # noise leaves a little to bands in which no visit is
    assert (gaps < 90).mean() > 0.95
    assert abs((gaps >= 30).mean() - 60 / 89) < 0.06
    assert (below.groupby("PATIENT").size().to_numpy() == above["VISITS"].to_numpy()).all()
