"""Code lists: from this package, from the Bureau's data dictionary, or from a user's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from stratsynth.census.acs.catalogue import Entry, code_lists, state_of
from stratsynth.census.acs.dictionary import URL, Variable
from stratsynth.data.overlap import check_public_inputs
from stratsynth.errors import UsageError
from stratsynth.files.outside import level, records
from stratsynth.inputs import check_citation
from stratsynth.schema import Nested

PERSONS = frozenset(("SERIALNO", "SPORDER", "PWGTP", "AGEP"))
"""Columns of person records, which no list of codes has."""
MANY = 40
"""Number of codes above which a list can be measured in groups; lists of codes.toml always can."""


@dataclass(frozen=True)
class Listed:
    """Codes of one column."""

    codes: Mapping[str, str]
    """Codes with their meanings; empty texts if unknown."""
    source: str
    """Source of the list."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Code -> its group, if the table names groups."""
    listed: str | None = None
    """Origin as certificates state it, if the list was given as a table: its file and citation."""


def check_cited(given: Mapping[str, Any], citation: str) -> str:
    """Return the trimmed `citation` of `given`, {column: table of codes}; an empty text if there are no tables.

    Raises:
        UsageError: Tables without a fit citation, or a citation without tables; a table whose file has a privacy
            account, or of person records: codes that somebody has are no public list of all that there are.
    """
    if not given:
        if citation:
            raise UsageError("census: a citation of codes goes with a table of them, --codes COLUMN=FILE.")
        return ""
    check_public_inputs(declared=given.values())
    for name, table in given.items():
        if people := PERSONS.intersection(records(f"census: codes of {name}", table)[0]):
            raise UsageError(
                f"census: the table of codes of {name} has a column {min(people)}, so its lines are person records: "
                "their codes are those that somebody has, and no public list of all that there are."
            )
    if not citation:
        raise UsageError(
            f"census: the codes of {', '.join(given)} need a citation (--codes-citation) that says where the list was "
            "published; codes that were read off records are not public."
        )
    return check_citation("census: --codes-citation", citation)


def listed(
    entry: Entry,
    year: int,
    state: str | None,
    given: Any,
    dictionary: Mapping[str, Variable] | None,
    citation: str = "",
) -> Listed:
    """Return the Listed codes (meanings, source, groups) of the column `entry` in a year and state.

    They are those of the table `given`, with its citation, of the dictionary, name -> `Variable`, or of this package.

    Raises:
        UsageError: None of them lists the codes; with the remedy.
    """
    known, place = code_lists()[entry.codes], None if state is None else state_of(state)[0]
    if given is not None:
        return _from_table(entry.name, given, known.digits, place, citation)
    variable = None if dictionary is None else dictionary.get(entry.name)
    if variable is not None and variable.values and not variable.ranged:
        codes = {_padded(code, known.digits): meaning for code, meaning in variable.values.items()}
        return Listed(codes, f"the data dictionary that was given: {variable.about}")
    for each in known.lists:
        if each.years[0] <= year <= each.years[1] and each.state in ("", place):
            return Listed(dict.fromkeys(each.codes, ""), each.source)
    raise UsageError(_lacking(entry, year, state, has_dictionary=dictionary is not None))


def _lacking(entry: Entry, year: int, state: str | None, *, has_dictionary: bool) -> str:
    """Return the text of a refusal of column `entry` for lack of a code list, with a remedy by year, state (None: all).

    `has_dictionary`: one was named.
    """
    by_state, give = entry.codes in ("PUMA", "POWPUMA"), f"--codes {entry.name}=FILE"
    where = f" of {state}" if by_state and state else ""
    said = f"census: the codes of {entry.name}{where} in {year} are not in this package. "
    if by_state:
        name = "Give" if state else "Name the state (--state), and give"
        such = ", such as the Bureau's file of tracts and areas, by STATEFP and PUMA5CE,"
        return (
            f"{said}{name} a public table of them{such if entry.name == 'PUMA' else ''} with {give}; or leave it out."
        )
    if has_dictionary:
        return f"{said}The dictionary that was given has no list of them either: give one with {give}."
    if year >= 2017:
        url = URL.format(year=year)
        return f"{said}Give the Bureau's data dictionary with --dictionary FILE ({url}), or leave the column out."
    return f"{said}Give a public list of them with {give}, or leave the column out."


def _from_table(name: str, given: Any, digits: int, state: str | None, citation: str) -> Listed:
    """Return the Listed codes of column `name`, padded to so many digits, from `given`, a CSV file or frame.

    They have its citation. Of a table of tracts, those of the state. UsageError without a column of codes, for codes in
    several lines, tracts without a state, and groups of some codes alone.
    """
    lines = records(f"census: codes of {name}", given)
    key = next((k for k in ("code", name, "PUMA5CE") if k in lines[0]), None)
    if key is None:
        raise UsageError(f"census: the table of codes of {name} has neither a column `code` nor {name}.")
    if key == "PUMA5CE":
        if state is None or "STATEFP" not in lines[0]:
            raise UsageError(
                f"census: {name}: such a table is of all states; name one (--state), by its column STATEFP."
            )
        lines = [line for line in lines if _padded(level(line["STATEFP"]), 2) == state]
        if not lines:
            raise UsageError(f"census: the table of codes of {name} has none of state {state}.")
    codes, groups = dict[str, str](), dict[str, str]()
    for line in lines:
        code = _padded(level(line[key]), digits)
        if code in codes and key != "PUMA5CE":  # of an area there are several tracts
            raise UsageError(
                f"census: the table of codes of {name} has a code in several lines, as records of persons have; a list "
                "has each code once. Give the list that was published, and never codes that were read off records."
            )
        codes.setdefault(code, str(line.get("label") or ""))
        if line.get("group"):
            groups[code] = str(line["group"])
    if groups and len(groups) < len(codes):
        raise UsageError(f"census: the table of codes of {name} names a group for some codes and not for others.")
    codes = dict(sorted(codes.items()))
    what = Path(given).name if isinstance(given, str | PathLike) else "a frame"
    return Listed(codes, citation, groups, f"a code list from {what}, cited as {citation}")


def _padded(code: str, digits: int) -> str:
    return code.zfill(digits) if code.isdigit() else code


def column(entry: Entry, found: Listed, shares: Mapping[str, float], source: str | None) -> Nested:
    """Return the `Nested` column of the catalogue's `entry`, of the `Listed` codes `found` and their groupings.

    `shares` maps codes to shares within the column, {} for none, published in `source`.
    """
    known = code_lists()[entry.codes]
    groupings = (
        [_named(found.groups)] if found.groups else [_grouping(each, list(found.codes)) for each in known.groups]
    )
    useful = [each for each in groupings if 1 < len(each) < len(found.codes)]
    own = ("N",) if entry.absent else ()
    labels = {code: label for code, label in found.codes.items() if label}
    labels |= {"N": f"Not applicable: {entry.absent}"} if entry.absent else {}
    return Nested(
        levels=(*own, *found.codes),
        not_applicable="N" if entry.absent else None,
        labels=labels,
        groupings=tuple(useful),
        shares=shares,
        source=source if shares else None,
        listed=found.listed,
    )


def _named(groups: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return {group: tuple of its codes}, from a mapping of codes to groups."""
    found: dict[str, tuple[str, ...]] = {}
    for code, group in groups.items():
        found[group] = (*found.get(group, ()), code)
    return found


def _grouping(how: int | Sequence[tuple[str, str]], codes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return {group: tuple of its codes} of `codes` by `how`: a number of leading digits, or pairs (first code, group).

    Pairs are in ascending order; codes before the first of them are a group each.
    """

    def name(code: str) -> str:
        if isinstance(how, int):
            return f"{code[:how]}{'x' * (len(code) - how)}"
        before = [group for first, group in how if first <= code]
        return before[-1] if before else f"{code} alone"

    return _named({code: name(code) for code in codes})
