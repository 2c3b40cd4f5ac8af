"""Check by the names of its columns that a file is of the assumed year."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from stratsynth.census.acs.catalogue import entries, other_year
from stratsynth.errors import nearest


@dataclass(frozen=True)
class HeaderVerdict:
    """Findings from the names of a file's columns."""

    other: tuple[str, ...]
    """One sentence for each column of other years."""
    missing: tuple[str, ...]
    """One sentence for each wanted column that is missing."""
    unknown: tuple[str, ...]
    """Columns of no known year."""

    def __bool__(self) -> bool:
        """True if a column is missing or of another year; unknown columns do no harm."""
        return bool(self.other or self.missing)

    def text(self) -> str:
        """Return, as one text, the sentences on missing columns and on columns of other years; empty without any."""
        return " ".join((*self.missing, *self.other))


def judge(names: Collection[str], wanted: Iterable[str], year: int) -> HeaderVerdict:
    """Return a `HeaderVerdict` on the column `names` of a file in a survey year: words on misdated and missing ones.

    Those of `wanted`, names too, are needed; names that the catalogue lacks are listed.
    """
    known = {each.name for each in entries()}
    other = [each for each in entries() if each.name in names and each.instead and not _in(each.name, year)]
    return HeaderVerdict(
        tuple(dict.fromkeys(other_year(each, year) for each in other)),
        tuple(_missing(name, names, year) for name in wanted if name not in names),
        tuple(name for name in names if name not in known),
    )


def _in(name: str, year: int) -> bool:
    return any(each.name == name and each.valid(year) for each in entries())


def _missing(name: str, names: Collection[str], year: int) -> str:
    """Return a sentence on the column `name`, missing in that year's file of columns `names`, and its replacement."""
    for each in entries():
        if each.name == name and each.instead and each.instead in names:
            own = "the file is of another year" if _in(name, year) else f"in {year} it is {each.instead}"
            return f"The file has {each.instead}, not {name}: {own}."
    return f"The file has no column {name}{nearest(name, names)}."
