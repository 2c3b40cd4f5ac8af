"""Census columns: private means by ever finer groups, of public records declared public for the purpose.

Redone from Figure 2 of the paper. There, columns went unscaled through COINPRESS, so that what is shown as the
cost of privacy is the bias of clipping; weights and groups were matched by their order, not by their labels; the
public sample overlapped the private one; and the five worst groups were left out. Here scales are public round
figures, labels match, one person in ten is set aside as the public sample, and no group is left out.

A column is that of the people who have a value, as in the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.schema import Categorical, Numeric, Schema
from studies import data
from studies.means.mixtures import BUDGET, rows_of
from studies.means.simulate import PublicRows
from studies.means.trials import compare

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from numpy.random import Generator
    from numpy.typing import NDArray

    Sizes = NDArray[np.int64]


@dataclass(frozen=True)
class Studied:
    """A column with its public centre, radius and scale: round figures, on the column's scale."""

    title: str
    column: str
    numeric: Numeric
    centre: float
    radius: float
    scale: float


LEAST, MOST = -20_000, 1_500_000
"""Incomes: the survey's codes lie between."""
STUDIED = (
    Studied("SCHL", "SCHL", Numeric(lower=0, upper=24), 12, 12, 6),
    Studied("WKHP", "WKHP", Numeric(lower=0, upper=168), 40, 40, 15),
    Studied("JWMNP", "JWMNP", Numeric(lower=0, upper=200), 30, 30, 40),
    Studied("PINCP", "PINCP", Numeric(lower=LEAST, upper=MOST), 50_000, 50_000, 70_000),
    # on the scale of log(1 + income / 1,000): an income of 35,000 is 3.6
    Studied("PINCP, log", "PINCP", Numeric(lower=LEAST, upper=MOST, transform="log", transform_unit=1_000), 3, 3, 1.5),
)
AGES = (18, 35, 50, 65)
"""First ages of the age bands after the first."""
LEVELS = {
    "SEX": ("1", "2"),
    "DIS": ("1", "2"),
    "RAC1P": tuple("123456789"),
    "AGE": tuple(str(i) for i in range(len(AGES) + 1)),
}
GROUPINGS = (
    ("SEX",),
    ("SEX", "DIS"),
    ("RAC1P",),
    ("SEX", "RAC1P"),
    ("SEX", "RAC1P", "AGE"),
    ("SEX", "RAC1P", "AGE", "DIS"),
)


def acs(path: Path) -> pd.DataFrame:
    """Person records of the American Community Survey, a parquet or CSV file with the survey's names."""
    return prepared(data.records(path, ["SEX", "RAC1P", "AGEP", "DIS", *dict.fromkeys(s.column for s in STUDIED)]))


def simulated(rows: int) -> pd.DataFrame:
    """People of the built-in census, who have no JWMNP."""
    from stratsynth import census

    return prepared(census.make(rows))


def prepared(frame: pd.DataFrame) -> pd.DataFrame:
    """Groups as texts, age in bands, the studied columns as numbers; other values are missing."""
    import pandas as pd

    made: dict[str, Any] = {name: frame[name].astype(str).str.removesuffix(".0") for name in ("SEX", "RAC1P", "DIS")}
    age = pd.to_numeric(frame["AGEP"], errors="coerce").to_numpy(dtype=float)
    made["AGE"] = pd.Series(np.searchsorted(AGES, age, side="right")).astype(str)
    for name in dict.fromkeys(s.column for s in STUDIED):
        if name in frame.columns:
            made[name] = pd.to_numeric(frame[name], errors="coerce").astype(float)
    return pd.DataFrame({key: np.asarray(column) for key, column in made.items()})


def tasks(frame: pd.DataFrame) -> list[tuple[Studied, tuple[str, ...]]]:
    """Return every column that the records have, by every grouping; the slowest come first."""
    return [(studied, by) for by in reversed(GROUPINGS) for studied in STUDIED if studied.column in frame.columns]


def experiment(
    private: PublicRows, public: Sizes, studied: Studied, by: tuple[str, ...], rng: Generator, runs: int
) -> list[dict[str, Any]]:
    """Run one column by one grouping; return a row for each run and method."""
    centre, radius, scale = ({"x": figure} for figure in (studied.centre, studied.radius, studied.scale))
    settings = {"columns": ["x"], "centre": centre, "radius": radius, "scale": scale}
    present = np.bincount(private.stratum, minlength=len(private.strata)) > 0
    given = {"experiment": "census", "column": studied.title, "by": " x ".join(by), "n": len(private.stratum)}
    given |= {"k": int(present.sum()), "empty": int((~present).sum())}
    found = compare(private, public, BUDGET, settings, rng, runs=runs)
    return [row for run, scores in enumerate(found) for row in rows_of(scores, {**given, "run": run})]


def split(
    frame: pd.DataFrame, aside: NDArray[np.bool_], studied: Studied, by: tuple[str, ...]
) -> tuple[PublicRows, Sizes]:
    """The private rows that have a value, and how many people of each group the public sample has, by label."""
    kept = frame[studied.column].notna().to_numpy()
    frame, aside = frame[kept], aside[kept]
    codes = [frame[name].map({level: i for i, level in enumerate(LEVELS[name])}) for name in by]
    if any(code.isna().any() for code in codes):
        raise UsageError("the records hold a level of SEX, RAC1P or DIS that the survey does not have.")
    shape = [len(LEVELS[name]) for name in by]
    stratum = np.ravel_multi_index([code.to_numpy(np.int64) for code in codes], shape).astype(np.int64)
    schema = Schema({**{name: Categorical(levels=LEVELS[name]) for name in by}, "x": studied.numeric})
    values = np.clip(frame[studied.column].to_numpy(dtype=float), studied.numeric.lower, studied.numeric.upper)
    sizes = np.bincount(stratum[aside], minlength=math.prod(shape)).astype(np.int64)
    return PublicRows(schema, {"x": values[~aside]}, by, stratum[~aside]), sizes
