"""Year, state and origin of a public-use file, by its serial numbers, columns and name: no citation contradicts them.

Serial numbers of the Bureau's files have 13 characters from 2017 on, and begin with the year of the interview; in
files of five years so do earlier ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.census.acs.catalogue import check_year, state_of, states
from stratsynth.errors import UsageError

if TYPE_CHECKING:
    from stratsynth.data.sources import Source

SERIAL = "SERIALNO"
PLACES = ("STATE", "ST")
"""Columns of the state, from 2023 on and before."""
EXCERPT = frozenset(
    ("MSP", "NOC", "NPF", "HOUSING_TYPE", "OWN_RENT", "DENSITY", "INDP_CAT", "EDU", "PINCP_DECILE", "DVET")
)
"""Columns of NIST's Diverse Communities Data Excerpts that no file of the Bureau has."""
FEW = 3
"""Smallest number of such columns by which an excerpt is known."""
LONGEST = 5
"""Largest number of survey years in one of the Bureau's files."""
_BUREAU = re.compile(
    r"psam_p(?P<code>\d\d)\b|ss(?P<year>\d\d)p(?P<old>[a-z]{2})\b|csv_p(?P<zip>[a-z]{2})\b", re.IGNORECASE
)
_YEAR = re.compile(r"(?<!\d)20[0-4]\d(?!\d)")


@dataclass(frozen=True)
class Evidence:
    """Facts that a file states of itself."""

    name: str
    """Name of the file, for messages."""
    years: tuple[int, ...] = ()
    """Years in its serial numbers, else the one in its name; empty if neither has one."""
    states: tuple[str, ...] = ()
    """Two digits of each state in its column of states, else of the one in the Bureau's name of it."""
    serial: bool = False
    """True if it has the Bureau's serial numbers."""
    named: tuple[bool, bool] = (False, False)
    """True if its name alone says the years; the states."""
    excerpt: bool = False
    """True if it has columns of NIST's excerpts."""

    def year(self, given: int | None) -> int:
        """Return the survey year of the file: `given`, if not None, or its own.

        UsageError if they contradict each other, or there is none.
        """
        if given is not None:
            check_year(given)
        if not self.years:
            if given is None:
                raise UsageError(f"census: nothing in {self.name} says of which year it is; name it with --year.")
            return given
        last = max(self.years)
        if last - min(self.years) >= LONGEST:
            raise UsageError(f"census: {self.name} holds records of {self.span}; no file of a survey does.")
        if given is not None and given != last:
            by = "its name says" if self.named[0] else "its serial numbers say"
            raise UsageError(
                f"census: {self.name} is of {self.span}, as {by}, not of {given}. Shares are cited by the year of "
                "their file, which must not be the one that is released."
            )
        return check_year(last)

    @property
    def span(self) -> str:
        """Years as text, such as "2024" or "2020 to 2024"; empty if unknown."""
        if not self.years:
            return ""
        return f"{max(self.years)}" if len(self.years) == 1 else f"{min(self.years)} to {max(self.years)}"

    def state(self, given: str | None) -> str | None:
        """Return the two letters of the file's state: `given`, if not None, or its own; None for several or unknown.

        UsageError if they contradict each other.
        """
        letters = {code: each for each, (code, _) in states().items()}
        found = [letters.get(code, code) for code in self.states]
        if given is None:
            return found[0] if len(found) == 1 else None
        if found and [state_of(given)[0]] != [*self.states]:
            raise UsageError(
                f"census: {self.name} is of {', '.join(found[:3])}{' and others' if len(found) > 3 else ''}, as its "
                f"{'name' if self.named[1] else 'column of states'} says, not of {given.upper()}."
            )
        return given.upper()

    def origin(self, given: str | None, year: int) -> str | None:
        """Return the words for the file in its citation: `given`, with the year; None if it is the Bureau's own.

        Raises:
            UsageError: NIST's excerpt, or a file without the Bureau's serial numbers, that nobody named, or that is
                named as the Bureau's; a name with another year.
        """
        if given is None:
            if self.excerpt:
                raise UsageError(
                    f"census: {self.name} has columns of NIST's excerpts ({', '.join(sorted(EXCERPT)[:3])} and more): "
                    "it is not the Bureau's own file; name it with --origin, as in "
                    '"NIST Diverse Communities Data Excerpts, Texas".'
                )
            if not self.serial:
                raise UsageError(
                    f"census: {self.name} has no SERIALNO, so nothing shows that it is the Bureau's file of {year}. "
                    'Take the file with that column, which `census load` keeps, or name this one with --origin "TEXT".'
                )
            return None
        if self.excerpt and re.search(r"census bureau", given, re.IGNORECASE) and not re.search(r"\bNIST\b", given):
            raise UsageError(f"census: {self.name} is NIST's excerpt, and --origin names the Census Bureau alone.")
        named = {int(found) for found in _YEAR.findall(given)}
        if named and year not in named:
            raise UsageError(f"census: --origin names {min(named)}, and {self.name} is taken as of {year}.")
        return given if named else f"{given}, {year}"


def evidence(source: Source, path: Path) -> Evidence:
    """Return Evidence: what the public-use file `source`, at `path`, says itself of year, states and origin.

    Its name, header, serial numbers and column of states are read.
    """
    names, known = source.columns(), _BUREAU.search(path.name)
    years, codes = set[int](), set[str]()
    place = next((name for name in PLACES if name in names), None)
    wanted = [name for name in (SERIAL, place) if name is not None and names.count(name) == 1]
    if wanted:
        import pyarrow as pa
        import pyarrow.compute as pc

        for table in source.batches(wanted):
            if SERIAL in wanted:
                serials = table.column(SERIAL).cast(pa.string())
                long = serials.filter(pc.equal(pc.utf8_length(serials), 13))
                firsts = pc.unique(pc.utf8_slice_codeunits(long, 0, 4)).to_pylist()
                years |= {int(first) for first in firsts if first.isdigit()}
            if place in wanted:
                codes |= {str(code).zfill(2) for code in pc.unique(table.column(place)).to_pylist() if code is not None}
    named = (not years, not codes)
    if named[0]:
        years = {int(found) for found in _YEAR.findall(path.name)}
        years = {2000 + int(known["year"])} if known and known["year"] else years if len(years) == 1 else set()
    if named[1] and known:
        letters = (known["old"] or known["zip"] or "").upper()
        codes = {known["code"]} if known["code"] else {states()[letters][0]} if letters in states() else set()
    excerpt = SERIAL not in names and len(EXCERPT.intersection(names)) >= FEW
    return Evidence(path.name, tuple(sorted(years)), tuple(sorted(codes)), SERIAL in names, named, excerpt)
