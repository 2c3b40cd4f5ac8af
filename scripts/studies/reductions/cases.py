"""Adult and the law school as cases of equalized odds: public data, read from files that the caller names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import stratsynth as ss
from stratsynth.errors import UsageError
from studies.reductions.odds import Case

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

ADULT_NUMBERS = {"age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 99)}
ADULT_LEVELS = ("workclass", "marital-status", "occupation", "relationship", "race", "sex", "income")
LAW_NUMBERS = {"lsat": (10, 48), "ugpa": (1, 4), "fam_inc": (1, 5), "tier": (1, 6)}
LAW_LEVELS = ("race", "bar")
"""Bounds are those of the published descriptions."""


def adult(path: str | Path) -> Case:
    """Income above 50,000 dollars, by sex."""
    frame = pd.read_csv(path, skipinitialspace=True)
    return _case("Adult, income by sex", frame, ADULT_NUMBERS, ADULT_LEVELS, "income", "sex")


def law(path: str | Path) -> Case:
    """Passing the bar, by race."""
    frame = pd.read_csv(path)
    if "pass_bar" in frame:
        frame["bar"] = np.where(frame["pass_bar"] > 0, "yes", "no")
    return _case("law school, bar by race", frame, LAW_NUMBERS, LAW_LEVELS, "bar", "race")


def _case(
    name: str,
    frame: pd.DataFrame,
    numbers: Mapping[str, tuple[int, int]],
    levels: Sequence[str],
    target: str,
    group: str,
) -> Case:
    lacking = [column for column in (*numbers, *levels) if column not in frame]
    if lacking:
        raise UsageError(f"these are not the data of {name}: they lack {lacking[0]}.")
    columns: dict[str, Any] = {n: ss.Numeric(lower=low, upper=high, bins=4) for n, (low, high) in numbers.items()}
    frame = frame[[*numbers, *levels]].astype(dict.fromkeys(levels, str))
    columns |= {n: ss.Categorical(levels=tuple(sorted(frame[n].unique()))) for n in levels}
    return Case(name, frame, ss.Schema(columns), target, group)
