"""INTERNAL. Whose lens it is: simulated people, public data that a reader brings, or the built-in census."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stratsynth import census
from stratsynth.data.sources import open_source
from stratsynth.errors import UsageError
from stratsynth.evaluation.tables import EncodedRows, group_numbers
from stratsynth.questions import Coded
from stratsynth.questions.sums.design import features
from stratsynth.schema import Categorical, Schema
from stratsynth.schema.rows import CodedRows
from studies import data
from studies.lens.people import People
from studies.lens.simulate import WORLDS, as_table, make_people

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.random import Generator

ROWS = 2_000
"""Simulated people whose steps and trainings are looked at; fits have four times as many."""
MOST = 4_000
"""Largest number of real rows whose steps and trainings are studied, chosen at random; fits have all."""
CENSUS = 20_000
RACES = {"1": "white", "2": "black", "6": "asian"}
"""Races of the census by code; all others have too few people here."""


@dataclass(frozen=True, eq=False)
class Case:
    """Rows with a target of two classes and groups, as learners see them and as a table."""

    name: str
    people: People
    """People whose steps and trainings are studied."""
    frame: pd.DataFrame
    """People that `fair_sgd` is fitted to."""
    schema: Schema
    target: str
    group: str
    """The column of the groups."""
    rate: float
    """The learning rate of a regression's fit."""
    simulated: bool


def simulated(rng: Generator) -> list[Case]:
    """Two groups each that differ in one way, so that what is to blame is known."""
    found = []
    for world in WORLDS:
        frame, schema = as_table(make_people(world, 4 * ROWS, rng))
        found.append(Case(world.name, make_people(world, ROWS, rng), frame, schema, "CLASS", "GROUP", 4.0, True))
    return found


def brought(
    adult: Path | None, law: Path | None, rng: Generator, other: Sequence[tuple[data.Problem, str]] = ()
) -> list[Case]:
    """Adult by sex and by race, law school by race, others with their groups, as named; the census where none is."""
    problems = []
    if adult is not None:
        one = data.adult(adult)
        problems += [(f"Adult by {group}", one, group) for group in ("sex", "race")]
    if law is not None:
        problems += [("law school by race", data.law(law), "race")]
    problems += [(f"{one.name} by {group}", one, group) for one, group in other]
    if not problems:
        problems = [(f"census by {group.lower()}", _census(), group) for group in ("SEX", "RACE")]
    return [_case(name, problem, group, rng) for name, problem, group in problems]


def declared(path: Path, schema: Path | None, target: str | None, by: str | None) -> tuple[data.Problem, str]:
    """Return the problem of any file, by its schema, and the column of its groups; refuse what has no two classes."""
    if schema is None or not target or not by:
        raise UsageError("--data goes with --schema FILE, --target COLUMN and --by COLUMN.")
    read = Schema.from_toml(schema)
    for name in (target, by):
        if not isinstance(read.columns.get(name), Categorical):
            raise UsageError(f"{name} is no categorical column of {schema.name}; groups and classes are.")
    if read.size(target) != 2:
        raise UsageError(f"the target {target} has {read.size(target)} levels; the experiments are of two classes.")
    if target == by:
        raise UsageError(f"{target} is the target; groups are by another column.")
    frame = open_source(path).read(list(read.names)).to_pandas()
    return data.Problem(path.name.split(".")[0], frame, read, target, by), by


def _census() -> data.Problem:
    """Public health coverage of the built-in census."""
    frame = census.make(CENSUS)
    frame["RACE"] = frame["RAC1P"].astype(str).map(RACES).fillna("other")
    coded = ("SEX", "RACE", "HISP", "CIT", "MAR", "DIS", "ESR", "TEN")
    for name in (*coded, "PUBCOV"):
        frame[name] = frame[name].astype(str)
    return data.problem("census", frame, {"AGEP": (0, 95)}, coded, "PUBCOV", "SEX")


def _case(name: str, problem: data.Problem, group: str, rng: Generator) -> Case:
    """Features are all columns but target and group, as `fair_sgd` takes them by default."""
    schema, frame = problem.schema, problem.frame
    chosen = np.sort(rng.permutation(len(frame))[:MOST])
    rows = EncodedRows.read(frame.iloc[chosen], schema)
    design = Coded(tuple(column for column in schema.names if column not in (problem.target, group)))
    x = features(design, CodedRows(schema, rows.codes, dict(rows.numbers), rows.rows)).T
    y = (rows.codes[problem.target] == 1).astype(np.float64)
    people = People(np.ascontiguousarray(x), y, group_numbers(rows, (group,)).astype(np.intp), schema.levels(group))
    return Case(name, people, frame, schema, problem.target, group, 1.0, False)
