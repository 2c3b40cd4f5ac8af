"""The small tables that `scripts/same` fits on, each with what is publicly known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd

from stratsynth import Categorical, Nested, Numeric, Schema, Temporal
from stratsynth import census as simulated
from stratsynth.schema.schema import Unit
from stratsynth.schema.weight import RowWeight


@dataclass(frozen=True)
class Rows:
    """A table and what is publicly known of it."""

    frame: pd.DataFrame
    schema: Schema
    size: int | None
    public: bool = False


CENSUS = ("SEX", "RAC1P", "AGEP", "MAR", "DEAR", "DIS", "ESR", "WKHP")


@cache
def census() -> Rows:
    """Six hundred simulated people in eight columns, with the rules that these have."""
    whole = simulated.schema()
    schema = whole.without([name for name in whole.names if name not in CENSUS])
    return Rows(simulated.make(600)[list(schema.names)], schema, 600)


@cache
def people() -> Rows:
    """Four columns, with values that the schema does not know."""
    rng, n = np.random.default_rng(1), 300
    frame = pd.DataFrame(
        {
            "SEX": rng.choice(["1", "2"], n),
            "GROUP": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]),
            "AGE": rng.integers(0, 12, n),
            "WORK": rng.choice(["yes", "no", "N", "zebra"], n),
        }
    )
    schema = Schema(
        {
            "SEX": Categorical(levels=("1", "2")),
            "GROUP": Categorical(levels=("a", "b", "c")),
            "AGE": Numeric(lower=0, upper=9, edges=(0, 3, 6, 10), integer=True, missing=True),
            "WORK": Categorical(levels=("N", "yes", "no"), not_applicable="N", outside="no"),
        }
    )
    return Rows(frame, schema, n)


@cache
def measured() -> Rows:
    """Two groups whose Y goes with X by slopes of their own; D is yes where Y is large."""
    rng, n = np.random.default_rng(2), 400
    group = np.where(rng.random(n) < 0.3, "b", "a")
    x = rng.uniform(-1, 1, n)
    y = np.where(group == "a", 0.5, -0.5) * x + 0.1 * rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "G": group,
            "X": x,
            "Z": rng.uniform(0, 10, n),
            "C": rng.choice(["p", "q", "r"], n),
            "Y": y.clip(-1, 1),
            "D": np.where(y + 0.1 * rng.normal(size=n) > 0, "yes", "no"),
        }
    )
    schema = Schema(
        {
            "G": Categorical(levels=("a", "b")),
            "X": Numeric(lower=-1, upper=1, bins=2),
            "Z": Numeric(lower=0, upper=10, bins=2),
            "C": Categorical(levels=("p", "q", "r")),
            "Y": Numeric(lower=-1, upper=1, bins=2),
            "D": Categorical(levels=("no", "yes")),
        }
    )
    return Rows(frame, schema, n)


@cache
def attributes() -> Rows:
    """The people of `people`, of whom the group alone is protected."""
    rows, open_ = measured(), ("X", "Z", "C", "Y", "D")
    columns = {
        name: replace(column, public=True) if name in open_ else replace(column, outside="a")
        for name, column in rows.schema.columns.items()
    }
    return replace(rows, schema=replace(rows.schema, columns=columns))


@cache
def persons() -> Rows:
    """Units of up to three rows, some with more."""
    rows = people()
    who = np.random.default_rng(3).integers(0, 120, len(rows.frame))
    return Rows(rows.frame.assign(ID=who), replace(rows.schema, unit=Unit(column="ID", max_rows=3)), rows.size)


@cache
def heavy() -> Rows:
    """Rows that stand for up to five people."""
    rows = people()
    weight = np.random.default_rng(4).choice([0, 1, 2, 5, 7, -1], len(rows.frame))
    schema = replace(rows.schema, row_weight=RowWeight(5, "PWGTP", mean=2.0))
    return Rows(rows.frame.assign(PWGTP=weight), schema, 600)


@cache
def heavy_measured() -> Rows:
    """People with measurements, whose rows stand for up to three."""
    rows = measured()
    weight = np.random.default_rng(5).integers(0, 4, len(rows.frame))
    return Rows(rows.frame.assign(W=weight), replace(rows.schema, row_weight=RowWeight(3, "W")), 600)


@cache
def measured_persons() -> Rows:
    """People with measurements, in units of two rows."""
    rows = measured()
    who = np.arange(len(rows.frame)) // 2
    return Rows(rows.frame.assign(ID=who), replace(rows.schema, unit=Unit(column="ID", max_rows=2)), rows.size)


@cache
def unsized() -> Rows:
    """The people of `people`, without a declared size."""
    return replace(people(), size=None)


@cache
def declared_public() -> Rows:
    """Rows of which nothing is charged."""
    return replace(people(), public=True)


@cache
def dated() -> Rows:
    """Days and lengths of time."""
    rng, n = np.random.default_rng(6), 300
    days = np.datetime64("2015-01-01") + rng.integers(-100, 900, n)
    schema = Schema(
        {
            "DAY": Temporal(kind="date", lower="2015-01-01", upper="2016-12-31", bins=6, missing=True),
            "WAIT": Temporal(kind="duration", unit="minute", lower=0, upper=120, bins=4, spikes=(0,)),
            "SEX": Categorical(levels=("1", "2")),
        }
    )
    frame = {"DAY": days.astype(str), "WAIT": rng.integers(0, 130, n), "SEX": rng.choice(["1", "2"], n)}
    return Rows(pd.DataFrame(frame), schema, n)


@cache
def coded() -> Rows:
    """A long list of codes, which a fit counts in groups."""
    rng, n = np.random.default_rng(8), 300
    codes = tuple(f"{i:03}" for i in range(200))
    schema = Schema(
        {
            "JOB": Nested(levels=codes, groupings=({f"group {g}": codes[g * 20 : g * 20 + 20] for g in range(10)},)),
            "SEX": Categorical(levels=("1", "2")),
        }
    )
    frame = {"JOB": rng.choice(codes[:150], n), "SEX": rng.choice(["1", "2"], n)}
    return Rows(pd.DataFrame(frame), schema, n)
