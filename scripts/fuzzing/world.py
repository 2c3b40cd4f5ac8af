"""Small world of the fuzzers: two hundred people, their schema, shares, recipe, ledger and releases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import stratsynth as ss
from stratsynth.adapters import GroupRegression, Independent

ROWS = 200
BUDGET = ss.Budget(1.0, 1e-9)
SCHEMA = ss.Schema(
    {
        "SEX": ss.Categorical(levels=("1", "2")),
        "AGE": ss.Numeric(lower=0, upper=9, edges=(0, 3, 6, 10), integer=True),
        "WORK": ss.Categorical(levels=("N", "yes", "no"), not_applicable="N", outside="no"),
    }
)
RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 200

[strata]
by = ["SEX"]

[weights]
source = "public"
path = "shares.csv"
citation = "made up for the fuzzers, 2026"

[mechanism]
name = "independent"

[budget]
epsilon = 1.0
delta = 1e-9
ledger = "people.ledger"

[release]
rows = 50
directory = "out"
seed = 7
"""


def people() -> pd.DataFrame:
    """Return rows that fit the schema."""
    cycle = np.arange(ROWS)
    words = np.array(["yes", "no", "N"])
    return pd.DataFrame({"SEX": (1 + cycle % 2).astype(str), "AGE": (7 * cycle) % 10, "WORK": words[cycle % 3]})


def shares() -> pd.DataFrame:
    """Return public shares of the sexes."""
    return pd.DataFrame({"SEX": ["1", "2"], "share": [0.5, 0.5]})


def place(folder: Path) -> Path:
    """Write data, schema, shares, recipe, ledger, a release of rows and one of predictions; return the folder."""
    people().to_csv(folder / "people.csv", index=False)
    people().to_parquet(folder / "people.parquet")
    shares().to_csv(folder / "shares.csv", index=False)
    SCHEMA.write_toml(folder / "schema.toml")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    weights = ss.Weights.public(shares(), citation="made up for the fuzzers, 2026")
    table = ss.open_table(
        folder / "people.csv", schema=SCHEMA, declared_size=ROWS, ledger=folder / "people.ledger", ledger_epsilon=9.0
    )
    ss.fit(ss.Stratified(Independent(), by=["SEX"], weights=weights), table, BUDGET, seed=1).save(folder / "rows")
    ss.fit(GroupRegression(target="AGE", features=("WORK",), groups=("SEX",)), table, BUDGET, seed=1).save(
        folder / "predicts"
    )
    return folder
