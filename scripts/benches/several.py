"""`answers --only samples`: coverage of intervals from several synthetic tables.

A logistic coefficient and a difference of means, of people of the built-in census in two columns and an outcome. Where
declared tables hold all columns of an analysis together, coverage is to be within three points; the same analysis of
tables that hold only pairs of them, or single columns, is printed too, and has no target: what no table holds is in no
interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

import stratsynth as ss
from stratsynth import census
from stratsynth.answers import combine
from stratsynth.mechanisms import make
from studies.figures import Figure

COLUMNS = ("AGEP", "SEX", "TEN", "PUBCOV")
ROWS, TABLES, TIMES = 5_000, 20, 4
"""People of a fit, synthetic tables of each, and how many times as many rows these have."""
POPULATION = 1_000_000
LEVEL, WITHIN = 0.95, 0.03
DECLARED = {
    "all columns in one table": (("SEX", "TEN", "PUBCOV"), ("SEX", "AGEP")),
    "pairs of columns": (("SEX", "PUBCOV"), ("TEN", "PUBCOV"), ("SEX", "AGEP")),
    "single columns": (("SEX",), ("TEN",), ("PUBCOV",), ("AGEP",)),
}


def several(fits: int) -> list[Figure]:
    """Coverage over so many fits."""
    schema = census.schema().restrict(COLUMNS)
    truth = analyses(census.make(POPULATION, seed=1)[list(COLUMNS)])
    held: dict[tuple[str, str], list[bool]] = {}
    for fit in range(fits):
        people = census.make(ROWS, seed=2, offset=fit * ROWS)[list(COLUMNS)]
        for said, tables in DECLARED.items():
            table = ss.open_table(people, schema=schema, declared_size=ROWS, public=True)
            release = ss.fit(make("fixed", {"tables": tables}), table, ss.Budget(epsilon=1, delta=1e-9))
            made = [analyses(one) for one in release.samples(TABLES, TIMES * ROWS, seed=fit)]
            for name, (true, _) in truth.items():
                estimates, variances = zip(*(one[name] for one in made), strict=True)
                found = combine(estimates, variances, size=TIMES, level=LEVEL)
                held.setdefault((name, said), []).append(found.low <= true <= found.high)
    return [_figure(name, said, hits) for (name, said), hits in held.items()]


def _figure(name: str, said: str, hits: Sequence[bool]) -> Figure:
    value = float(np.mean(hits))
    what = f"coverage at {100 * LEVEL:g} % from {TABLES} tables of fixed: {name}, {said}"
    if said != "all columns in one table":
        return Figure(what, 100 * value, "%", len(hits), None, "no target")
    against = f"{100 * LEVEL:g} within {100 * WITHIN:g} points"
    return Figure(what, 100 * value, "%", len(hits), None, against, bool(abs(value - LEVEL) <= WITHIN))


def analyses(people: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Two results of a frame, each with the square of its standard error."""
    cells = people.groupby(["SEX", "TEN", "PUBCOV"], observed=True).size().reset_index(name="n")
    sex, owner = (cells.SEX == "2").to_numpy(float), cells.TEN.isin(["1", "2"]).to_numpy(float)
    x = np.stack([np.ones(len(cells)), sex, owner], axis=1)
    beta, errors = logistic(x, (cells.PUBCOV == "1").to_numpy(float), cells.n.to_numpy(float))
    ages = [pd.to_numeric(people.AGEP[level == people.SEX]) for level in "12"]
    apart = float(ages[1].mean() - ages[0].mean())
    return {
        "logistic coefficient of owning": (float(beta[2]), float(errors[2])),
        "logistic coefficient of sex": (float(beta[1]), float(errors[1])),
        "difference of mean ages": (apart, math.fsum(float(a.var(ddof=1)) / len(a) for a in ages)),
    }


def logistic(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], n: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Newton's method for a logistic regression of counted cells: coefficients and the squares of their errors."""
    beta = np.zeros(x.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-(x @ beta)))
        inverse = np.linalg.inv(x.T @ (x * (n * p * (1 - p))[:, None]))
        beta = beta + inverse @ (x.T @ (n * (y - p)))
    return beta, np.diag(inverse)
