"""Problems beside those of `data`: any file that a reader names, incomes of the survey, and two that are made up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from stratsynth import census
from stratsynth.errors import UsageError
from studies import data
from studies.data import Problem, problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.random import Generator

MOST_LEVELS = 100
"""Most values of a column of texts: more are names or numbers of single records."""
INCOME = 50_000
"""Yearly income in dollars that is predicted to be exceeded."""


IDLE = 20
"""Features of `scarce` that tell nothing of the target."""
MEASURED = 10_000
"""Rows of `scarce` to measure on, which no model is fitted to."""


@dataclass(frozen=True, eq=False)
class FirstRows(Problem):
    """A problem whose first rows are fitted, whatever the split is drawn by; the others are measured on."""

    fitted: int

    def split(self, rng: Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows to fit and rows to measure on."""
        return self.frame[: self.fitted], self.frame[self.fitted :].reset_index(drop=True)


def scarce(rows: int = 3_000, seed: int = 0) -> FirstRows:
    """`correlated` with few `rows` to fit and 20 features more that tell nothing: here epsilon decides the error."""
    made = data.correlated(rows + MEASURED, seed)
    idle = np.random.default_rng([7, seed]).uniform(-1, 1, (len(made.frame), IDLE))
    frame = made.frame.assign(**{f"Z{i}": idle[:, i] for i in range(IDLE)})
    ends = {name: (-3, 3) for name in made.frame.columns if name.startswith("X")}
    ends |= {f"Z{i}": (-1, 1) for i in range(IDLE)}
    return FirstRows(**vars(problem("scarce", frame, ends, (), made.target, made.group)), fitted=rows)


def named(path: Path, target: str, group: str, *, above: float | None = None, leave: Sequence[str] = ()) -> Problem:
    """A problem of a public file: numbers between their own ends, all other columns by their values.

    Args:
        path: A CSV or Parquet file, whose rows whoever runs the study declares public.
        target: Column to predict, of two values; with `above` a numeric one.
        group: Sensitive attribute.
        above: What is predicted is whether the target is above this number.
        leave: Columns that are no features, such as a record's number.

    Raises:
        UsageError: Columns that the file lacks; a target or another column of too many values.
    """
    for name in {target, group} & set(leave):
        raise UsageError(f"{name} cannot be left out: it is the target, or the sensitive attribute.")
    frame = _read(path)
    for name in (target, group, *leave):
        if name not in frame.columns:
            raise UsageError(f"{path.name} lacks the column {name}; it has {', '.join(frame.columns)}.")
    frame = frame.drop(columns=list(leave))
    if above is not None:
        if not pd.api.types.is_numeric_dtype(frame[target]):
            raise UsageError(f"{target} is no number, and nothing of it is above {above:g}.")
        frame[target] = np.where(frame[target] > above, "yes", "no")
    frame = frame.dropna(subset=[target, group])
    numbers = [
        name for name in frame.columns if name not in (target, group) and pd.api.types.is_numeric_dtype(frame[name])
    ]
    frame = frame.dropna(subset=numbers)
    coded = [name for name in frame.columns if name not in (*numbers, target, group)]
    for name in (*coded, group):
        if frame[name].nunique() > MOST_LEVELS:
            raise UsageError(f"{name} has more than {MOST_LEVELS} values that are no numbers: --leave {name}.")
    if frame[target].nunique() != 2:
        raise UsageError(f"{target} has {frame[target].nunique()} values, and two are needed; of numbers, --above N.")
    ends = {name: (float(frame[name].min()), float(frame[name].max())) for name in numbers}
    return problem(path.name.split(".")[0], frame, ends, coded, target, group)


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, skipinitialspace=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is no table in CSV or Parquet ({type(error).__name__}).") from None


def income(path: Path) -> Problem:
    """Income above 50,000 dollars of those who work, by sex, from person records of the ACS: Adult's successor.

    People and columns are those of ACSIncome of Ding, Hardt, Miller and Schmidt (2021) but for occupation, place of
    birth and relationship, which not all files have.
    """
    frame = data.records(path, ("AGEP", "COW", "SCHL", "MAR", "WKHP", "SEX", "RAC1P", "PINCP", "PWGTP"))
    numbers = frame[["AGEP", "PINCP", "WKHP", "PWGTP"]].astype(float)
    kept = (numbers["AGEP"] > 16) & (numbers["PINCP"] > 100) & (numbers["WKHP"] > 0) & (numbers["PWGTP"] >= 1)
    frame = frame[kept].copy()
    frame["INCOME"] = np.where(frame["PINCP"].astype(float) > INCOME, "yes", "no")
    frame["SEX"] = np.where(frame["SEX"].astype(float) == 1, "male", "female")
    for name in ("COW", "MAR", "RAC1P"):
        frame[name] = frame[name].astype(float).astype(int).astype(str)
    ends = {"AGEP": (17.0, 99.0), "SCHL": (1.0, 24.0), "WKHP": (1.0, 99.0)}
    return problem("ACS income by sex", frame, ends, ("COW", "MAR", "RAC1P"), "INCOME", "SEX")


def simulated_census(rows: int = 60_000, seed: int = 0, ends: Sequence[float] = (INCOME,)) -> Problem:
    """Income of those who work, by sex, among `rows` people of the built-in census: the class between `ends`."""
    frame = census.make(rows, seed=seed)
    frame = frame[frame["WKHP"].notna() & frame["PINCP"].notna()].copy()
    frame["INCOME"] = [f"class {one}" for one in np.searchsorted(ends, frame["PINCP"].to_numpy(np.float64))]
    coded = ("RAC1P", "CIT", "MAR", "SCHL", "COW", "OCC", "DIS")
    return problem("built-in census", frame, {"AGEP": (0, 99), "WKHP": (1, 99)}, coded, "INCOME", "SEX")


def loans(rows: int = 24_000, seed: int = 0) -> Problem:
    """Made-up applications for a loan, by sex: `paid` says who paid it back. Nobody's data, and no estimate.

    Women have shorter employments and smaller incomes here, and pay back a little more often than men of equal
    numbers, so that a model that is not told the sex serves them worse.
    """
    rng = np.random.default_rng([2024, seed])
    woman = rng.random(rows) < 0.4
    years = np.clip(rng.gamma(2.0, 4.0, rows) - 2.5 * woman, 0, 40)
    income = np.clip(np.exp(rng.normal(10.4, 0.45, rows) - 0.28 * woman) / 1000, 5, 150)
    debt = np.clip(rng.gamma(1.5, 6.0, rows), 0, 60)
    late = np.clip(rng.poisson(0.9, rows), 0, 8)
    purpose = rng.choice(["car", "home", "study", "other"], rows, p=[0.35, 0.25, 0.15, 0.25])
    logit = 0.045 * (income - 30) + 0.08 * (years - 7) - 0.06 * (debt - 9) - 0.55 * (late - 1) + 0.9 + 0.25 * woman
    paid = rng.random(rows) < 1 / (1 + np.exp(-logit + 0.4 * (purpose == "study")))
    frame = pd.DataFrame(
        {"YEARS": years, "INCOME": income, "DEBT": debt, "LATE": late.astype(float), "PURPOSE": purpose}
    )
    frame["SEX"], frame["PAID"] = np.where(woman, "female", "male"), np.where(paid, "yes", "no")
    ends = {"YEARS": (0, 40), "INCOME": (5, 150), "DEBT": (0, 60), "LATE": (0, 8)}
    return problem("made-up loans", frame, ends, ("PURPOSE",), "PAID", "SEX")
