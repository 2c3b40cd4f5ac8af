"""Reader of the Census Bureau's data dictionary, PUMS_Data_Dictionary_YYYY.csv, published for 2017 and later."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from stratsynth.checks import path as given_path
from stratsynth.errors import UsageError
from stratsynth.files.reading import read_bytes

URL = "https://www2.census.gov/programs-surveys/acs/tech_docs/pums/data_dict/PUMS_Data_Dictionary_{year}.csv"
"""Address of the dictionary at the Bureau."""
_YEAR = re.compile(r"(?<!\d)(?P<first>20\d\d)(?:-(?P<last>20\d\d))?(?!\d)")
"""Year in the name of a dictionary, or two with a hyphen, as of a file of five years."""
MOST = 16_000_000
"""Largest dictionary that is read, in bytes; published ones have a third of a megabyte."""


@dataclass(frozen=True)
class Variable:
    """Entry of the dictionary for one column."""

    about: str
    """Description of the column."""
    coded: bool
    """True if values are codes, False if they are amounts."""
    absent: str
    """People without a value; empty if the dictionary names none."""
    values: Mapping[str, str]
    """Single values with their meaning, as the dictionary spells them, in its order."""
    ranged: bool
    """True if the dictionary also gives ranges of values, so that `values` are not all."""


def read(path: str | PathLike[str], year: int | None = None) -> Mapping[str, Variable]:
    """Return a mapping from column to its `Variable` in a data dictionary file; of two of one name the persons'.

    Lines are `NAME,column,C or N,digits,description` and `VAL,column,C or N,digits,first,last,meaning`; b is blank.

    Args:
        path: The dictionary.
        year: Its assumed year, which its name must not contradict.

    Raises:
        UsageError: A missing file, one that is no such dictionary, or of another year by its name.
    """
    file = given_path("census: dictionary", path)
    if (
        (named := _YEAR.search(file.name))
        and year is not None
        and not int(named["first"]) <= year <= int(named["last"] or named["first"])
    ):
        raise UsageError(f"census: {file.name} is the dictionary of {named[0]}, by its name, not of {year}.")
    try:
        text = read_bytes(file, MOST).decode("utf-8-sig")
    except OSError:
        raise UsageError(f"census: there is no dictionary {file}.") from None
    except UnicodeDecodeError:
        text = read_bytes(file, MOST).decode("cp1252", "replace")
    lines = _lines(text, file)
    found: dict[str, Variable] = {}
    for number, line in enumerate(lines, start=1):
        kind = line[0].strip().upper() if line else ""
        if kind == "NAME" and len(line) >= 5:
            found[line[1].strip()] = Variable(line[4].strip(), line[2].strip().upper() == "C", "", {}, ranged=False)
        elif kind == "VAL" and len(line) >= 7 and line[1].strip() in found:
            name = line[1].strip()
            found[name] = _with(found[name], line[4].strip(), line[5].strip(), line[6].strip())
        elif kind:
            raise UsageError(
                f"census: line {number} of {file.name} begins with neither NAME nor VAL; is it the Bureau's data "
                f"dictionary as CSV? {URL.format(year='YYYY')}"
            )
    if not found:
        raise UsageError(f"census: {file.name} names no column; the Bureau's is {URL.format(year='YYYY')}")
    return found


def _lines(text: str, file: Path) -> list[list[str]]:
    """Return the rows of a CSV `text`, lists of texts; UsageError, naming `file`, if it is none."""
    try:
        return list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        raise UsageError(f"census: {file.name} is not a CSV file.") from None


def _with(known: Variable, first: str, last: str, meaning: str) -> Variable:
    """Return a copy of the `Variable` `known` with one more line: values from `first` to `last`, and their meaning."""
    if first and set(first) == {"b"}:
        return Variable(known.about, known.coded, meaning.removeprefix("N/A").strip(" ()"), known.values, known.ranged)
    if first != last:
        return Variable(known.about, known.coded, known.absent, known.values, ranged=True)
    return Variable(known.about, known.coded, known.absent, {**known.values, first: meaning}, known.ranged)
