"""People of the repeated experiments of paper 003: the built-in census, or a public file that a reader brings.

The paper predicts employment from the sixteen columns of folktables' ACSEmployment. A file of person records is read
by that task and its survey year, with all of them that it has; the built-in census and NIST's excerpt have some of
them, and others that are near to the rest. What is predicted is a column of its own, `no` or `yes`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from stratsynth import census
from stratsynth.schema import Categorical
from stratsynth.strata import crossing
from studies import acs, data

if TYPE_CHECKING:
    from pathlib import Path

    from stratsynth.schema import Schema

BY = ("SEX", "RAC1P")
TARGET = "EMPLOYED"
HELD_OUT = 0.25
"""The part of a file that nothing is fitted to."""
CENSUS = ("AGEP", "SEX", "RAC1P", "HISP", "CIT", "HOUSING_TYPE", "MAR", "SCHL", "DEAR", "DEYE", "DREM", "DIS", "MIL")
EXCERPT = (
    "AGEP",
    "SEX",
    "MSP",
    "HISP",
    "RAC1P",
    "HOUSING_TYPE",
    "OWN_RENT",
    "EDU",
    "DVET",
    "DREM",
    "DPHY",
    "DEYE",
    "DEAR",
)
TASK = "ACSEmployment"


@dataclass(frozen=True, eq=False)
class Study:
    """Public people, split into a fitted and a held-out part."""

    name: str
    """The data and the target in words."""
    schema: Schema
    """The columns, `TARGET` last."""
    train: pd.DataFrame
    """The rows that are fitted."""
    held: pd.DataFrame
    """The rows that predictions are audited on."""
    shares: pd.DataFrame
    """The share of every declared group."""
    citation: str
    """Citation of the shares."""

    def write(self, folder: Path) -> None:
        """The files that a recipe names."""
        folder.mkdir(parents=True, exist_ok=True)
        self.schema.write_toml(folder / "schema.toml")
        for name, frame in {"people": self.train, "holdout": self.held, "shares": self.shares}.items():
            frame.to_csv(folder / f"{name}.csv", index=False)


def built_in(rows: int, held: int) -> Study:
    """Simulated people, nobody's data: employed and at work, by folktables' definition."""
    schema = _with_target(census.schema().restrict(CENSUS))
    train, test = (_employed(frame, schema) for frame in (census.make(rows), census.holdout(held)))
    name = f"the built-in census ({rows:,} simulated people, {held:,} held out), employment"
    return Study(name, schema, train, test, census.shares(BY), census.CITATION)


def brought(path: Path, year: int, rows: int | None) -> Study:
    """A public file: person records of the ACS of that year, with ESR, or NIST's excerpt, which has industries instead.

    `rows` is the largest number of people to fit, drawn by chance; None for all that are not held out.
    """
    columns = data.columns(path)
    lacking: list[str] = []
    if "ESR" in columns:
        whole, cause, what = census.acs.schema(task=TASK, year=year), "ESR", f"employment, {TASK} of {year}"
        lacking = [name for name in whole.names if name not in (*columns, *BY, "AGEP")]
        kept = [name for name in whole.names if name not in (*lacking, "ESR")]
    else:
        whole, cause, what, kept = acs.excerpt(), "INDP_CAT", "worked within five years", list(EXCERPT)
    schema = _with_target(whole.restrict(kept))
    frame = data.texts(path, (*kept, cause))
    frame[TARGET] = np.where(frame[cause].eq("1") if cause == "ESR" else frame[cause].ne("N"), "yes", "no")
    frame = frame[list(schema.names)]
    rng = np.random.default_rng(2003)
    held = rng.random(len(frame)) < HELD_OUT
    train, test = (frame[which].reset_index(drop=True) for which in (~held, held))
    if rows is not None and rows < len(train):
        train = train.iloc[np.sort(rng.choice(len(train), rows, replace=False))].reset_index(drop=True)
    without = f", without {', '.join(lacking)}, which the file lacks" if lacking else ""
    name = f"{path.name} ({len(train):,} people, {len(test):,} held out), {what}, {len(kept)} columns{without}"
    return Study(name, schema, train, test, _shares(frame, schema), f"{path.name} itself, a public file")


def _with_target(schema: Schema) -> Schema:
    return replace(schema, columns={**schema.columns, TARGET: Categorical(levels=("no", "yes"))})


def _employed(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    found: pd.DataFrame = frame.assign(**{TARGET: np.where(frame["ESR"] == "1", "yes", "no")})[list(schema.names)]
    return found


def _shares(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Each declared group's part of the file; half a record for a group that it has none of."""
    counted = frame.groupby(list(BY)).size().to_dict()
    found = [dict(zip(BY, stratum.names, strict=True)) for stratum in crossing(schema, BY)]
    counts = np.array([max(counted.get(tuple(group.values()), 0), 0.5) for group in found])
    return pd.DataFrame(found).assign(share=counts / counts.sum())
