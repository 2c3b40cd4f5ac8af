"""Catalogue of the columns of person and household records, from the tables beside this file: one entry a meaning."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from stratsynth.checks import check_integer
from stratsynth.errors import UsageError, nearest

FIRST, LAST = 2014, 2024
"""First and last survey year in the catalogue."""
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """Column with one meaning, in some years."""

    name: str
    years: tuple[int, int]
    """First and last year in which the column has this meaning."""
    about: str = ""
    absent: str = ""
    """People without a value, whose level is N; empty if everybody has one."""
    instead: str = ""
    """Column that has this meaning in other years."""
    levels: tuple[tuple[str, str], ...] = ()
    """Codes with their meanings, in order."""
    number: Mapping[str, Any] | None = None
    """Arguments of a numeric column; None for other columns."""
    codes: str = ""
    """Name of the column's code list; empty if it has none."""
    records: str = "persons"
    """Records that have the column: "persons" or "households"."""
    refused: str = ""
    """Reason that it cannot be a column of a release, and what to do instead; empty if it can."""

    def valid(self, year: int) -> bool:
        """True if the column of this entry has its meaning in the survey year `year`."""
        return self.years[0] <= year <= self.years[1]


@dataclass(frozen=True)
class CodeList:
    """Codes of a column in some years, with their source."""

    years: tuple[int, int]
    source: str
    codes: tuple[str, ...]
    state: str = ""
    """State that the list is for; empty for all states."""


@dataclass(frozen=True)
class Codes:
    """Code lists of a column, with the spelling of codes and their grouping."""

    digits: int
    groups: tuple[int | tuple[tuple[str, str], ...], ...]
    """Groupings from fine to coarse: a number of leading digits, or the first code of each group and its name."""
    lists: tuple[CodeList, ...]


@dataclass(frozen=True)
class FolktablesTask:
    """Prediction task of folktables."""

    name: str
    about: str
    features: tuple[str, ...]
    """Columns to predict from, by their names of 2018."""
    target: str
    """Column to predict."""
    positive: str
    """Condition on the target that defines the positive class."""
    group: str
    """Column of the groups that are compared."""
    keep: tuple[str, ...]
    """Conditions that a record must meet to be in the task."""


@dataclass(frozen=True)
class RuleText:
    """Structural rule as written in rules.toml."""

    when: Mapping[str, Any]
    never: Mapping[str, Any]
    held: tuple[str, ...]
    """Public-use files in which no record breaks the rule."""


def check_year(year: int) -> int:
    """Return `year` itself if it is a survey year of the catalogue, FIRST to LAST; UsageError for anything else."""
    check_integer("census: year", year, FIRST, LAST)
    return year


@cache
def entries() -> tuple[Entry, ...]:
    """Return a tuple of every `Entry` of the catalogue, one for each meaning of a column, in the order of schemas."""
    households = [{**each, "records": "households"} for each in _read("households.toml")["column"]]
    return tuple(_entry(each) for each in (*_read("columns.toml")["column"], *households))


def entry(name: str, year: int) -> Entry:
    """Return the `Entry` of the column `name` with its meaning in a survey year.

    Raises:
        UsageError: A column that is unknown, belongs to other years, or cannot be released; with the remedy.
    """
    same = [each for each in entries() if each.name == name]
    if not same:
        known = dict.fromkeys(each.name for each in entries() if not each.refused)
        raise UsageError(
            f"census: no column {name!r} is known{nearest(name, known)}; declare it in the schema by hand."
        )
    for each in same:
        if each.refused:
            raise UsageError(f"census: {name} {each.refused}.")
        if each.valid(year):
            return each
    raise UsageError(f"census: {other_year(same[0], year)}")


def other_year(found: Entry, year: int) -> str:
    """Return a sentence, for a refusal, on `found`, the catalogue's `Entry` of a column that `year` does not have."""
    own = [f"{a} to {b}" for a, b in (each.years for each in entries() if each.name == found.name)]
    remedy = f"; in {year} it is {found.instead}" if found.instead else ""
    return f"{found.name} is a column of {' and '.join(own)}, not of {year}{remedy}."


def in_year(name: str, year: int) -> str:
    """Return the name that the column `name` has in a survey year: itself, or that of the column that replaced it."""
    for each in entries():
        if each.name == name and not each.valid(year) and each.instead:
            other = [e for e in entries() if e.name == each.instead and e.valid(year)]
            return other[0].name if other else name
    return name


@cache
def code_lists() -> Mapping[str, Codes]:
    """Return the long code lists, a mapping from list's name, such as `OCCP`, to `Codes`; the states' is left out."""
    found = _read("codes.toml")
    return {name: _codes(keys) for name, keys in found.items() if name != "states"}


@cache
def states() -> Mapping[str, tuple[str, str]]:
    """Return a mapping from a state's two letters to the pair of its code and name."""
    lines = (line.split(" ", 2) for line in _read("codes.toml")["states"]["names"].strip().splitlines())
    return {letters: (code, name) for code, letters, name in lines}


def state_of(letters: object) -> tuple[str, str]:
    """Return the pair (code, name) of the state with these two letters; UsageError for unknown ones."""
    if not isinstance(letters, str) or letters.upper() not in states():
        hint = nearest(str(letters).upper(), states())
        raise UsageError(f"census: {letters!r} is no state by its two letters, such as PA{hint}.")
    return states()[letters.upper()]


@cache
def tasks() -> Mapping[str, FolktablesTask]:
    """Return {name: FolktablesTask} of the prediction tasks of folktables."""
    return {
        name: FolktablesTask(
            name,
            keys["about"],
            tuple(keys["features"]),
            keys["target"],
            keys["positive"],
            keys["group"],
            tuple(keys["keep"]),
        )
        for name, keys in _read("tasks.toml").items()
    }


def task(name: str) -> FolktablesTask:
    """Return the `FolktablesTask` of this name; UsageError for an unknown one."""
    if name not in tasks():
        raise UsageError(
            f"census: there is no task {name!r}{nearest(str(name), tasks())}; there are {', '.join(tasks())}."
        )
    return tasks()[name]


@cache
def rules() -> tuple[RuleText, ...]:
    """Return a tuple of `RuleText`, every structural rule of the catalogue, as written in its file."""
    return tuple(RuleText(r["when"], r["never"], tuple(r.get("held", ()))) for r in _read("rules.toml")["rule"])


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / name).read_text(encoding="utf-8"))


def _years(text: str | None) -> tuple[int, int]:
    """Return (first, last) survey year of a text such as "2018-2021"; all years of the catalogue for None."""
    first, last = (FIRST, LAST) if text is None else map(int, text.split("-"))
    return first, last


def _entry(keys: Mapping[str, Any]) -> Entry:
    """Return the Entry of `keys`, one column's TOML table of the catalogue, a mapping from key to value."""
    lines = [line.partition(" ") for line in keys.get("levels", "").strip().splitlines()]
    plain = {key: value for key, value in keys.items() if key not in ("years", "levels")}
    return Entry(years=_years(keys.get("years")), levels=tuple((code, said) for code, _, said in lines), **plain)


def _codes(keys: Mapping[str, Any]) -> Codes:
    """Return the Codes (digits, groups, lists by years) of `keys`, one TOML table of code lists, a mapping."""
    groups = tuple(each if isinstance(each, int) else tuple((a, b) for a, b in each) for each in keys["groups"])
    lists = tuple(
        CodeList(_years(each["years"]), each["source"], tuple(each["codes"].split()), each.get("state", ""))
        for each in keys.get("list", ())
    )
    return Codes(keys["digits"], groups, lists)
