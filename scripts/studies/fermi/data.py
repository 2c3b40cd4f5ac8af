"""Public data for fair classification: files that a reader brings, and one problem that is made up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stratsynth.errors import UsageError
from stratsynth.schema import Categorical, Numeric, Schema

if TYPE_CHECKING:
    from numpy.random import Generator

TRAINED = 0.75
"""The part of the rows that is fitted, as in the paper."""


@dataclass(frozen=True)
class Problem:
    """Rows with a target and a sensitive attribute."""

    name: str
    frame: pd.DataFrame
    schema: Schema
    target: str
    group: str

    def split(self, rng: Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows to fit and rows to measure on."""
        chosen = rng.random(len(self.frame)) < TRAINED
        return self.frame[chosen].reset_index(drop=True), self.frame[~chosen].reset_index(drop=True)


def adult(path: Path) -> Problem:
    """Income above 50,000 dollars, by sex; bounds and levels are those of the published description."""
    frame = _read(path, "Adult", ("income", "sex", "age"))
    numbers = {
        "age": (17, 90), "education-num": (1, 16), "capital-gain": (0, 20_000), "capital-loss": (0, 3_000),
        "hours-per-week": (1, 99),
    }  # fmt: skip
    coded = ("workclass", "marital-status", "occupation", "relationship", "race", "native-country")
    return problem("Adult", frame, numbers, coded, "income", "sex")


def law(path: Path) -> Problem:
    """Passing the bar, by race."""
    frame = _read(path, "law school", ("pass_bar", "race", "lsat"))
    frame["bar"] = np.where(frame["pass_bar"] > 0, "yes", "no")
    numbers = {"lsat": (10, 48), "ugpa": (1, 4), "zfygpa": (-4, 4), "zgpa": (-7, 5), "fam_inc": (1, 5), "tier": (1, 6)}
    frame["fulltime"] = frame["fulltime"].astype(str)
    return problem("law school", frame, numbers, ("fulltime",), "bar", "race")


def acs(path: Path) -> list[Problem]:
    """Employment of people aged 16 to 89, by race and by sex, from person records of the ACS."""
    frame = pd.read_parquet(path)
    lacking = {"ESR", "AGEP", "SCHL", "MAR", "SEX", "RAC1P", "DIS", "CIT", "MIL", "NATIVITY"} - {*frame.columns}
    if lacking:
        raise UsageError(f"{path.name} lacks {', '.join(sorted(lacking))}: it is no file of person records of the ACS.")
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


def problem(
    name: str,
    frame: pd.DataFrame,
    numbers: Mapping[str, tuple[float, float]],
    coded: tuple[str, ...],
    target: str,
    group: str,
) -> Problem:
    """A problem from its columns: numbers with their bounds, and others by their levels."""
    columns: dict[str, Any] = {n: Numeric(lower=low, upper=high, bins=4) for n, (low, high) in numbers.items()}
    columns |= {n: Categorical(levels=tuple(sorted(frame[n].unique()))) for n in (*coded, group, target)}
    return Problem(name, frame[list(columns)].reset_index(drop=True), Schema(columns), target, group)


def _read(path: Path, name: str, needed: tuple[str, ...]) -> pd.DataFrame:
    frame = pd.read_csv(path)
    lacking = [column for column in needed if column not in frame.columns]
    if lacking:
        raise UsageError(f"{path.name} is not the {name} data: it lacks {', '.join(lacking)}.")
    texts = frame.select_dtypes(exclude="number").columns
    return frame.assign(**{c: frame[c].fillna("missing").astype(str) for c in texts})
