"""Public data, one loader a data set: Adult, the law school, the American Community Survey; and a made-up problem.

The files themselves are not part of this project: readers name their own. Bounds and levels are those of the published
descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stratsynth.data.sources import open_source
from stratsynth.errors import UsageError
from stratsynth.schema import Categorical, Numeric, Schema
from studies import acs

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bounds = Mapping[str, tuple[float, float]]

TRAINED = 0.75
"""The part of the rows that is fitted, as in paper 004."""
ADULT: Bounds = {"age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 99)}
ADULT_WIDE: Bounds = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 20_000),
    "capital-loss": (0, 3_000),
    "hours-per-week": (1, 99),
}
ADULT_CODED = ("workclass", "marital-status", "occupation", "relationship", "race")
LAW: Bounds = {"lsat": (10, 48), "ugpa": (1, 4), "fam_inc": (1, 5), "tier": (1, 6)}
LAW_WIDE: Bounds = {
    "lsat": (10, 48),
    "ugpa": (1, 4),
    "zfygpa": (-4, 4),
    "zgpa": (-7, 5),
    "fam_inc": (1, 5),
    "tier": (1, 6),
}
RECORDS = "a file of person records of the ACS"


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with a target and a sensitive attribute."""

    name: str
    frame: pd.DataFrame
    schema: Schema
    target: str
    group: str

    @property
    def features(self) -> list[str]:
        """All columns but the target; the group's is among them."""
        return [name for name in self.schema.names if name != self.target]

    @property
    def positive(self) -> str:
        """The second level of the target."""
        return self.schema.levels(self.target)[1]

    def split(self, rng: Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows to fit and rows to measure on."""
        chosen = rng.random(len(self.frame)) < TRAINED
        return self.frame[chosen].reset_index(drop=True), self.frame[~chosen].reset_index(drop=True)

    def scaled(self, name: str, frame: pd.DataFrame) -> Floats:
        """A numeric column of these rows, between -1 and 1."""
        column = self.schema.column(name)
        assert isinstance(column, Numeric)  # noqa: S101 - its callers' condition
        low, high = float(column.lower), float(column.upper)
        return np.clip(2 * (frame[name].to_numpy(np.float64) - low) / (high - low) - 1, -1, 1)

    def matrix(self, frame: pd.DataFrame) -> Floats:
        """The features of these rows as private models have them: scaled numbers, and 0 or 1 for all levels but one."""
        columns: list[Any] = []
        for name in self.features:
            column = self.schema.column(name)
            if isinstance(column, Numeric):
                columns.append(self.scaled(name, frame))
            else:
                columns += [(frame[name] == level).to_numpy(np.float64) for level in column.levels[1:]]
        return np.column_stack(columns)


def problem(name: str, frame: pd.DataFrame, numbers: Bounds, coded: Sequence[str], target: str, group: str) -> Problem:
    """A problem from its columns: numbers with their bounds, and others by their levels; empty fields are `missing`."""
    levels = [n for n in (*coded, group, target) if n not in numbers]
    frame = frame.assign(**{n: frame[n].astype(object).where(frame[n].notna(), "missing").astype(str) for n in levels})
    columns: dict[str, Any] = {n: Numeric(lower=low, upper=high, bins=4) for n, (low, high) in numbers.items()}
    columns |= {n: Categorical(levels=tuple(sorted(frame[n].unique()))) for n in levels}
    return Problem(name, frame[list(columns)].reset_index(drop=True), Schema(columns), target, group)


def adult(path: Path, name: str = "Adult", *, wide: bool = True) -> Problem:
    """Income above 50,000 dollars, by sex; `wide` has capital gains and losses and the native country too."""
    numbers, coded = (ADULT_WIDE, (*ADULT_CODED, "native-country")) if wide else (ADULT, ADULT_CODED)
    frame = _read(path, "the Adult data", (*numbers, *coded, "income", "sex"))
    return problem(name, frame, numbers, coded, "income", "sex")


def law(path: Path, name: str = "law school", *, wide: bool = True) -> Problem:
    """Passing the bar, by race; `wide` has the grades and full-time study too."""
    numbers, coded = (LAW_WIDE, ("fulltime",)) if wide else (LAW, ())
    frame = _read(path, "the law school data", (*numbers, *coded, "pass_bar", "race"))
    frame["bar"] = np.where(frame["pass_bar"] > 0, "yes", "no")
    return problem(name, frame, numbers, coded, "bar", "race")


def grades(path: Path, name: str = "law school, grades") -> Problem:
    """Grades in law school, by race."""
    frame = _read(path, "the law school data", (*LAW, "zgpa", "race"))
    return problem(name, frame, {**LAW, "zgpa": (-4, 4)}, (), "zgpa", "race")


def employment(path: Path) -> list[Problem]:
    """Employment of people aged 16 to 89, by race and by sex, from person records of the ACS."""
    frame = records(path, ("ESR", "AGEP", "SCHL", "MAR", "SEX", "RAC1P", "DIS", "CIT", "MIL", "NATIVITY"))
    frame = frame[(frame["AGEP"] >= 16) & (frame["AGEP"] < 90)].copy()
    frame["EMPLOYED"] = np.where(frame["ESR"].astype(float).isin([1.0, 2.0]), "yes", "no")
    frame["RACE"] = np.select(
        [frame["RAC1P"].astype(float) == k for k in (1, 2, 6)], ["white", "black", "asian"], "other"
    )
    frame["SEX"] = np.where(frame["SEX"].astype(float) == 1, "male", "female")
    for name in ("MAR", "DIS", "CIT", "MIL", "NATIVITY"):
        frame[name] = frame[name].astype("Float64").astype("string").fillna("N").astype(str)
    numbers = {"AGEP": (16, 89), "SCHL": (1, 24)}
    coded = ("MAR", "DIS", "CIT", "MIL", "NATIVITY")
    return [
        problem(f"ACS employment by {group}", frame, numbers, (*coded, other), "EMPLOYED", name)
        for group, name, other in (("race", "RACE", "SEX"), ("sex", "SEX", "RACE"))
    ]


def records(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Columns of person records of the ACS, or of NIST's excerpt of them, as the file has them."""
    return _read(path, RECORDS, columns)[list(columns)]


def texts(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Columns of such a file as texts: whole numbers without a point, `N` where a field is empty."""
    source = open_source(path)
    _refuse_lacking(path, RECORDS, columns, source.columns())
    frame: pd.DataFrame = source.read(list(columns)).to_pandas()

    def text(column: pd.Series[Any]) -> pd.Series[Any]:
        said = column.astype("string").str.strip().str.removesuffix(".0")
        return said.fillna("N").replace("", "N").astype(str)

    return frame.apply(text)


def survey(path: Path) -> Schema:
    """The schema of a file: person records, which have ESR, or NIST's excerpt, which has industries instead."""
    return acs.pums() if "ESR" in columns(path) else acs.excerpt()


def columns(path: Path) -> list[str]:
    """Names of the columns of a file."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}.")
    return list(open_source(path).columns())


def _read(path: Path, what: str, needed: Sequence[str]) -> pd.DataFrame:
    """A CSV or Parquet file; refuses one that lacks a column."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}.")
    try:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, skipinitialspace=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is not {what} ({type(error).__name__}).") from None
    _refuse_lacking(path, what, needed, list(frame.columns))
    return frame


def _refuse_lacking(path: Path, what: str, needed: Sequence[str], found: Sequence[str]) -> None:
    lacking = [name for name in needed if name not in found]
    if lacking:
        raise UsageError(f"{path.name} is not {what}: it lacks {', '.join(lacking)}.")


def correlated(rows: int, seed: int, apart: float = 1.25) -> Problem:
    """Ten features that matter alike; two of them go with the group, which itself matters nothing.

    Args:
        rows: How many.
        seed: Of the rows.
        apart: By how many standard deviations the groups' means of these two features differ.
    """
    rng = np.random.default_rng(seed)
    group = rng.random(rows) < 0.5
    x = rng.normal(size=(rows, 10))
    x[:, :2] += np.where(group, apart / 2, -apart / 2)[:, None]
    yes = rng.random(rows) < 1 / (1 + np.exp(-0.5 * x.sum(axis=1)))
    frame = pd.DataFrame(np.clip(x, -3, 3), columns=[f"X{i}" for i in range(10)])
    frame["S"], frame["Y"] = np.where(group, "b", "a"), np.where(yes, "yes", "no")
    return problem("correlated", frame, {f"X{i}": (-3, 3) for i in range(10)}, (), "Y", "S")
