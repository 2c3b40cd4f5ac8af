"""Schemas of person records: entries of the wanted columns, their code lists, and the rules that concern them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from stratsynth.census.acs import dictionary as bureau
from stratsynth.census.acs import lists
from stratsynth.census.acs.catalogue import (
    Entry,
    check_year,
    code_lists,
    entries,
    entry,
    in_year,
    state_of,
    states,
    task,
)
from stratsynth.census.acs.rules import rules_of
from stratsynth.census.acs.weights import row_weight, weight_facts
from stratsynth.census.acs.within import within_codes
from stratsynth.checks import is_list
from stratsynth.errors import UsageError
from stratsynth.schema import Categorical, Column, Numeric, Schema
from stratsynth.schema.weight import ONE

if TYPE_CHECKING:
    from stratsynth.weights.table import Tabular


@dataclass(frozen=True)
class Made:
    """Schema with notes for its reader."""

    schema: Schema
    """The public schema."""
    notes: tuple[str, ...]
    """Sources of its code lists, rows that a task keeps, and number of rules that were counted on no file."""

    def to_toml(self) -> str:
        """Return the text of a schema file, with the notes as comments before it."""
        return "".join(f"# {note}\n" for note in self.notes) + self.schema.to_toml()


def schema(
    columns: Sequence[str] | None = None,
    *,
    year: int,
    task: str | None = None,
    state: str | None = None,
    without: Sequence[str] = (),
    dictionary: str | PathLike[str] | None = None,
    codes: Mapping[str, Tabular] | None = None,
    codes_citation: str = "",
    within: Sequence[Tabular] = (),
    citation: str = "",
    weight: int | None = None,
    weight_mean: str | float | None = None,
    weight_from: str | PathLike[str] | None = None,
) -> Schema:
    """Return the public schema of person records, for some columns or for a task.

    Args:
        columns: The columns, by their names in that year.
        year: The survey year, 2014 to 2024.
        task: Instead of columns, a task of folktables; columns that were renamed have their name of that year.
        state: The two letters of the state, for a file of one state: its code, and its areas.
        without: Columns of the task to leave out.
        dictionary: The Bureau's data dictionary of that year (PUMS_Data_Dictionary_YYYY.csv): its levels and labels
            take the place of those in this package. One with another year in its name is refused.
        codes: Mapping from column to its table of codes, with a column `code`, and perhaps `label` and `group`.
        codes_citation: Place of publication of these tables; needed with them.
        within: Tables of public shares of codes, by which a group's records are given single codes: see `Nested`.
        citation: Place of publication of these shares.
        weight: Count every record as its PWGTP, up to this number: see `RowWeight`.
        weight_mean: Mean of these weights, as a number or a text PEOPLE/RECORDS of published totals; needed with
            `weight` unless there is a file.
        weight_from: Public-use file of an earlier year, from which the mean is taken, and the largest weight if that is
            not given: the smallest beyond which are at most 1 % of its people.

    Returns:
        The schema, of public origin.

    Raises:
        UsageError: A column that is unknown, is of other years, or whose codes are unknown; with the remedy.
    """
    made = make(
        columns,
        year=year,
        task=task,
        state=state,
        without=without,
        dictionary=dictionary,
        codes=codes,
        codes_citation=codes_citation,
        within=within,
        citation=citation,
        weight=weight,
        weight_mean=weight_mean,
        weight_from=weight_from,
    )
    return made.schema


def make(
    columns: Sequence[str] | None = None,
    *,
    year: int,
    task: str | None = None,
    state: str | None = None,
    without: Sequence[str] = (),
    dictionary: str | PathLike[str] | None = None,
    codes: Mapping[str, Tabular] | None = None,
    codes_citation: str = "",
    within: Sequence[Tabular] = (),
    citation: str = "",
    weight: int | None = None,
    weight_mean: str | float | None = None,
    weight_from: str | PathLike[str] | None = None,
) -> Made:
    """Return a `Made`: the schema of person records of a survey year, and notes on its sources for the user.

    Arguments as of `schema`: columns or a task of folktables, a state, columns left out (`without`), a data dictionary,
    code lists and shares within them with citations, the largest and mean weight or an earlier file that they are taken
    from. UsageError for ones that do not go together.
    """
    check_year(year)
    names, notes = _wanted(columns, task, year, without)
    place = None if state is None else state_of(state)[0]
    variables = None if dictionary is None else bureau.read(dictionary, year)
    given = dict(codes or {})
    cited = lists.check_cited(given, codes_citation)
    for name in given:
        if name not in names:
            raise UsageError(f"census: there are codes for {name}, which is not among the columns.")
    found: dict[str, Column] = {}
    drawn = within_codes(within, citation, names)
    for name in names:
        known = _known(name, year, variables)
        own = variables.get(name) if variables else None
        if known.codes == "states":
            found[name] = _states(place)
        elif known.codes in code_lists():
            listed = lists.listed(known, year, state, given.pop(name, None), variables, cited)
            found[name] = lists.column(known, listed, drawn.get(name, {}), citation or None)
            notes.append(f"{name}: {len(listed.codes)} codes, from {listed.source}.")
        elif known.number is not None:
            found[name] = _number(known, own)
        else:
            found[name] = _levels(known, own)
    if given:
        raise UsageError(f"census: {min(given)} has no long code list, so a table of its codes is of no use.")
    for name in drawn:
        if name not in found or name not in code_lists():
            raise UsageError(f"census: there are shares within {name}, which is no code list among the columns.")
    plain = Schema(found)
    kept, unchecked = rules_of(plain)
    if unchecked:
        notes.append(f"{unchecked} of {len(kept)} rules follow from the dictionary and were counted on no file.")
    persons = {each.records for each in entries() if each.name in names} != {"households"}
    whose = "Person" if persons else "Household"
    head = f"{whose} records of the American Community Survey, {year}: public knowledge, from the U.S. Census Bureau."
    counting = ONE
    if not (weight is None and weight_mean is None and weight_from is None):
        facts = None if weight_from is None else weight_facts(weight_from, year)
        counting = row_weight(weight, weight_mean, facts)
        notes += [] if facts is None or weight is not None else [facts.note]
    return Made(Schema(found, rules=kept, row_weight=counting), (head, *notes))


def _wanted(
    columns: Sequence[str] | None, name: str | None, year: int, without: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Return (tuple of the columns, or of those of the task `name` but `without`, in order; notes on the task).

    All are named as of that year. UsageError unless one of columns and task is given, for columns twice, and for ones
    left out that the task lacks.
    """
    if (columns is None) == (name is None):
        raise UsageError("census: give columns, or a task; one of them.")
    notes = list[str]()
    if name is not None:
        found = task(name)
        names = dict.fromkeys(in_year(each, year) for each in (*found.features, found.target))
        keep = [" ".join([in_year(part.split()[0], year), *part.split()[1:]]) for part in found.keep]
        notes.append(f"{found.name}: {found.about}. Target {in_year(found.target, year)} {found.positive}.")
        notes.append(f"Rows of the task: {' and '.join(keep) or 'all'}; `stratsynth census load --task` keeps them.")
        gone = {in_year(each, year) for each in without}
        for each in gone:
            if each not in names:
                raise UsageError(f"census: {each} is not among the columns of {found.name}.")
        return tuple(each for each in names if each not in gone), notes
    if without:
        raise UsageError("census: columns are left out of a task; of a list, do not name them.")
    if isinstance(columns, str) or not is_list(columns) or not columns or len(set(columns)) < len(columns):
        raise UsageError("census: columns is a list of different names, at least one.")
    return tuple(columns), notes


def _known(name: str, year: int, variables: Mapping[str, bureau.Variable] | None) -> Entry:
    """Return the `Entry` of column `name` in a survey year; UsageError for an unknown column, or no levels.

    For a column that the catalogue lacks, the entry is made of `variables`, a dictionary's entries by column.
    """
    variable = None if variables is None else variables.get(name)
    if variables is not None and variable is None and any(each.name == name and not each.refused for each in entries()):
        entry(name, year)
        raise UsageError(f"census: the dictionary that was given has no column {name}; is it of {year}?")
    if any(each.name == name for each in entries()) or variable is None:
        return entry(name, year)
    if not variable.coded or variable.ranged or not variable.values:
        raise UsageError(
            f"census: {name} is in the dictionary with values from one to another; this package has no bins for it. "
            "Declare it in the schema by hand."
        )
    return Entry(name, (year, year), variable.about, variable.absent)


def _levels(known: Entry, variable: bureau.Variable | None) -> Categorical:
    """Return the `Categorical` column of the catalogue's `Entry` `known`; levels are those of `variable` if it has all.

    That is the dictionary's `Variable`, None without.
    """
    levels = known.levels
    if variable is not None and variable.values and not variable.ranged:
        levels = tuple((str(int(code)) if code.isdigit() else code, said) for code, said in variable.values.items())
    labels = {code: meaning for code, meaning in levels if meaning}
    if not known.absent:
        return Categorical(levels=tuple(code for code, _ in levels), labels=labels)
    labels["N"] = f"Not applicable: {known.absent}"
    return Categorical(levels=("N", *(code for code, _ in levels)), not_applicable="N", labels=labels)


def _states(place: str | None) -> Categorical:
    """Return a `Categorical` column whose levels are all states' codes, or the code `place` alone."""
    found = {code: name for code, name in states().values() if place in (None, code)}
    return Categorical(levels=tuple(found), labels=found)


def _number(known: Entry, variable: bureau.Variable | None) -> Numeric:
    """Return the `Numeric` column of the catalogue's `Entry` `known`.

    Values that `variable`, the dictionary's `Variable` or None, lists beyond its bounds become special codes.
    """
    keys: dict[str, Any] = dict(known.number or {})
    beyond = [] if variable is None else [code for code in variable.values if _beyond(code, keys)]
    special = tuple(dict.fromkeys((*keys.pop("special", ()), *beyond)))
    labels = {"N": f"Not applicable: {known.absent}"} if known.absent else {}
    return Numeric(**keys, special=special, not_applicable="N" if known.absent else None, dtype="int64", labels=labels)


def _beyond(code: str, keys: Mapping[str, Any]) -> bool:
    """True if the text `code` is an integer outside of the bounds `keys["lower"]` to `keys["upper"]`, numbers."""
    return code.removeprefix("-").isdigit() and not keys["lower"] <= int(code) <= keys["upper"]
