"""Built-in census: simulated people, in the columns and codes of the American Community Survey.

    from stratsynth import census

    people = census.make(100_000)                  # the same people on every machine, whatever else is made
    schema = census.schema()                       # public: levels, bounds, structural zeros
    weights = census.weights(["SEX", "RAC1P"])     # the exact shares of the population they are drawn from
    others = census.holdout(5_000)                 # more of that population, none of them made above
    before = census.make(100_000, year=2018)       # the year before: other people, a little drift

Whole households, as two linked tables:

    households, persons = census.make_households(50_000)
    schema = census.linked_schema()                # of both; census.household_schema() and person_schema() of each

Files of the survey itself are in `census.acs`; `census.from_folktables` takes a source and a problem of folktables.

Nobody's data, and not an estimate of anything. The shares and conditionals are round figures, written from memory of
published tables of the U.S. Census Bureau, so that groups differ about as much as they do in the survey: see
people.toml and its neighbours beside this file, which name the tables. Much is left out: nobody of `make` is
in a household with another, areas are invented, and Alaska Natives are some three times as many as in truth, to be a
group of one in a thousand. Use it for demonstrations and tests, never for a statement about people.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stratsynth.checks import check_integer
from stratsynth.errors import UsageError
from stratsynth.schema import Schema
from stratsynth.weights import Weights

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.census.acs.folktables import from_folktables, to_folktables
    from stratsynth.schema.linked import LinkedSchema

__all__ = [
    "CITATION",
    "from_folktables",
    "holdout",
    "household_schema",
    "linked_schema",
    "make",
    "make_households",
    "person_schema",
    "schema",
    "shares",
    "to_folktables",
    "weights",
]

CITATION = (
    "Simulated: the built-in census of stratsynth, a simulation and not an estimate of anything. Its figures are "
    "rounded, from memory of published tables of the American Community Survey, 2019 1-year, U.S. Census Bureau "
    "(among them B01001, B02001, B03001, B12002, B15003, B25003, S0201, S1701, S1810, S2301)."
)
"""Citation of the shares: their origin, and the public tables they follow."""

PEOPLE = 1 << 40
"""Row number at which the hold-out begins: `make` has the rows below, `holdout` those from there on."""


def make(rows: int, *, seed: int = 0, offset: int = 0, year: int = 2019) -> pd.DataFrame:
    """Return simulated people, one per row, as a frame.

    A person is a function of the seed and the row number alone: `make(10)` is the start of `make(1_000_000)`, and
    `make(10, offset=5)` is its rows 5 to 14.

    Args:
        rows: Number of people.
        seed: Number of the population of people; all are drawn from one distribution.
        offset: Number of the first row.
        year: 2019, the year of the tables, or up to ten years before or after it: other people, whose distribution
            drifts from year to year, while the groups of `shares` keep theirs. Last year's rows can serve as a prior.

    Returns:
        A frame with the columns, order and types of the schema. Categories are texts, with "N" for not
        applicable; numbers are numbers, with NaN for people who were not asked.
    """
    _check_integer("rows", rows)
    _check_integer("offset", offset)
    if offset + rows > PEOPLE:
        raise UsageError("census: there are 2**40 people; the rows after them are the hold-out's.")
    return _frame(rows, seed, offset, year)


def holdout(rows: int = 5_000, *, seed: int = 0) -> pd.DataFrame:
    """Return other people of the same population: with one seed, none of them is ever among those of `make`.

    Args:
        rows: Number of people.
        seed: Number of the population, as for `make`.

    Returns:
        A frame as that of `make`.
    """
    _check_integer("rows", rows)
    return _frame(rows, seed, PEOPLE, 2019)


def make_households(rows: int, *, seed: int = 0, offset: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return simulated households, and the persons in them, as two frames linked by SERIALNO.

    A household is a function of the seed and its number alone, as a person of `make` is. Couples are near each other in
    age, children are younger than their parents, and the income of a household is the sum of its members'. None of the
    persons is one of `make`.

    Args:
        rows: Number of households.
        seed: Number of the population of households.
        offset: Number of the first household.

    Returns:
        (households, persons). Persons of a household lie together, in the order of SPORDER: the householder, a husband,
        wife or partner, children by age, then others.
    """
    from stratsynth.census import households

    _check_integer("rows", rows)
    _check_integer("offset", offset)
    _check_integer("seed", seed)
    return households.frames(seed, offset, rows)


def household_schema() -> Schema:
    """Return the public schema of households, with rules on their size; the key, SERIALNO, is not in it."""
    from stratsynth.census import two_tables

    return two_tables.household_schema()


def person_schema() -> Schema:
    """Return the public schema of the persons of households, with their structural zeros; without key and order."""
    from stratsynth.census import two_tables

    return two_tables.person_schema()


def linked_schema() -> LinkedSchema:
    """Return the public `LinkedSchema` of households and their persons, with the rules across them."""
    from stratsynth.census import two_tables

    return two_tables.linked_schema()


def schema() -> Schema:
    """Return the public schema of the census, with its structural zeros."""
    from stratsynth.census import model

    return model.schema()


def shares(by: Sequence[str] = ("SEX", "RAC1P")) -> pd.DataFrame:
    """Return each group's share in the distribution that people are drawn from, which is the same for all seeds.

    Exact but for one rounding to a floating-point number; every declared group has a row, in the schema's order.

    Args:
        by: Some of AREA, AGEP (its bins), SEX, RAC1P and HISP.

    Returns:
        A frame with these columns and `share`, which adds up to 1.
    """
    from stratsynth.census import population

    return population.frame(by)


def weights(by: Sequence[str] = ("SEX", "RAC1P")) -> Weights:
    """Return public `Weights`: the shares of groups by the columns `by`, those of `shares`, with their citation."""
    return Weights.public(shares(by), citation=CITATION)


def __getattr__(name: str) -> object:
    """Import `census.acs`, the files of the survey itself, or the door to folktables, when it is first used."""
    from importlib import import_module

    if name == "acs":
        return import_module("stratsynth.census.acs")
    if name in {"from_folktables", "to_folktables"}:
        return getattr(import_module("stratsynth.census.acs.folktables"), name)
    raise AttributeError(f"module 'stratsynth.census' has no attribute {name!r}")


def _frame(rows: int, seed: int, start: int, year: int) -> pd.DataFrame:
    from stratsynth.census import people, years

    _check_integer("seed", seed)
    years.check_year(year)
    return people.frame(seed, start, rows, year)


def _check_integer(name: str, value: object) -> None:
    check_integer(f"census: {name}", value, 0, (1 << 62) - 1)
