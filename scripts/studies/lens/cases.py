"""INTERNAL. Whose lens it is: simulated people, public data that a reader brings, or the built-in census."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stratsynth import census
from stratsynth.evaluation.tables import EncodedRows, group_numbers
from stratsynth.questions import Coded
from stratsynth.questions.sums.design import features
from stratsynth.schema.rows import CodedRows
from studies import data
from studies.lens.people import People
from studies.lens.simulate import WORLDS, as_table, make_people

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator

    from stratsynth.schema import Schema

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


def brought(adult: Path | None, law: Path | None, rng: Generator) -> list[Case]:
    """Adult by sex and by race, law school by race, as far as their files are named; the census where none is."""
    problems = []
    if adult is not None:
        one = data.adult(adult)
        problems += [(f"Adult by {group}", one, group) for group in ("sex", "race")]
    if law is not None:
        problems += [("law school by race", data.law(law), "race")]
    if not problems:
        problems = [(f"census by {group.lower()}", _census(), group) for group in ("SEX", "RACE")]
    return [_case(name, problem, group, rng) for name, problem, group in problems]


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
