"""Real people of paper 000's experiments, from files that readers bring: the law school, and credit limits.

The paper's credit data have no name: age, asset and income of 14,417 customers of high income, men and women. The UCI
repository's "Default of Credit Card Clients" is public and near to it; it has no asset and no income, in whose place
education, the last bill and the last payment are here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stratsynth.errors import UsageError
from studies import data
from studies.regression.simulate import People

if TYPE_CHECKING:
    from numpy.random import Generator

TRAINED = 0.8
CREDIT: dict[str, tuple[float, float]] = {
    "AGE": (18, 90),
    "EDUCATION": (0, 6),
    "BILL_AMT1": (-100_000, 1_000_000),
    "PAY_AMT1": (0, 1_000_000),
}
"""Features of credit limits, with round public bounds."""
LIMIT = 1_000_000
"""Largest credit limit, a public round figure."""
WHITE, BLACK = "white", "black"


def law(path: Path, rng: Generator) -> tuple[str, People, People]:
    """Grades in law school by entrance test, earlier grades, family income and tier: name, people to fit and to test.

    White against Black students, as in the paper; White against all others where the file tells no more apart.
    """
    known = data.grades(path)
    rows, race = known.frame, known.frame["race"].str.casefold()
    told = race.eq(BLACK).any()
    kept = (race.isin([WHITE, BLACK]) if told else race.ne("missing")).to_numpy()
    if not (race.eq(WHITE).any() and race[kept].ne(WHITE).any()):
        raise UsageError(f"{path.name}: the column race tells White students from no others.")
    x = np.column_stack([np.ones(len(rows)), *(known.scaled(name, rows) for name in data.LAW)])
    y = np.clip(rows["zgpa"].to_numpy(np.float64) / 4, -1, 1)
    name = "law school, White and Black" if told else "law school, White and all others (the file has no Black)"
    return name, *_split(x[kept], y[kept], race.eq(WHITE).to_numpy()[kept], rng)


def credit(path: Path, rng: Generator) -> tuple[str, People, People]:
    """Credit limits by age, education, last bill and last payment, by sex: name, people to fit and to test."""
    try:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is not the credit data ({type(error).__name__}).") from None
    lacking = [name for name in ("LIMIT_BAL", "SEX", *CREDIT) if name not in frame.columns]
    if lacking:
        raise UsageError(f"{path.name} is not the credit data: it lacks {', '.join(lacking)}.")
    columns = [np.ones(len(frame))]
    for name, (low, high) in CREDIT.items():
        columns.append(np.clip(2 * (frame[name].to_numpy(np.float64) - low) / (high - low) - 1, -1, 1))
    y = np.clip(2 * frame["LIMIT_BAL"].to_numpy(np.float64) / LIMIT - 1, -1, 1)
    values, code, counts = np.unique(frame["SEX"].to_numpy(), return_inverse=True, return_counts=True)
    first = code == counts.argmax()
    if len(values) == 1:
        raise UsageError(f"{path.name}: the column SEX has one value only.")
    return "credit limits, women and men", *_split(np.column_stack(columns), y, first, rng)


def _split(x: Any, y: Any, first: Any, rng: Generator) -> tuple[People, People]:
    """People to fit and to test, the larger group first."""
    chosen = rng.random(len(y)) < TRAINED
    return _sorted(x, y, first, chosen), _sorted(x, y, first, ~chosen)


def _sorted(x: Any, y: Any, first: Any, chosen: Any) -> People:
    order = [*np.flatnonzero(first & chosen), *np.flatnonzero(~first & chosen)]
    return People(x[order], y[order], (int((first & chosen).sum()), len(order)), 1.0)
