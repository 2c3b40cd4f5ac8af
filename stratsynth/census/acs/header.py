"""Whether a file is of the year that it is taken for, as far as the names of its columns tell."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from stratsynth.census.acs.catalogue import entries, other_year
from stratsynth.errors import nearest


@dataclass(frozen=True)
class Verdict:
    """What the names of a file's columns say."""

    other: tuple[str, ...]
    """A sentence for each column that is of other years."""
    missing: tuple[str, ...]
    """A sentence for each wanted column that is not there."""
    unknown: tuple[str, ...]
    """Columns that are known of no year."""

    def __bool__(self) -> bool:
        """Whether something is wrong: a column that nobody knows is none of a schema, and does no harm."""
        return bool(self.other or self.missing)

    def text(self) -> str:
        """The sentences."""
        return " ".join((*self.missing, *self.other))


def judge(names: Collection[str], wanted: Iterable[str], year: int) -> Verdict:
    """The columns of a file, against those that are wanted of a year."""
    known = {each.name for each in entries()}
    other = [each for each in entries() if each.name in names and each.instead and not _in(each.name, year)]
    return Verdict(
        tuple(dict.fromkeys(other_year(each, year) for each in other)),
        tuple(_missing(name, names, year) for name in wanted if name not in names),
        tuple(name for name in names if name not in known),
    )


def _in(name: str, year: int) -> bool:
    return any(each.name == name and each.valid(year) for each in entries())


def _missing(name: str, names: Collection[str], year: int) -> str:
    """A wanted column that is not there, and where its meaning may be."""
    for each in entries():
        if each.name == name and each.instead and each.instead in names:
            own = "the file is of another year" if _in(name, year) else f"in {year} it is {each.instead}"
            return f"The file has {each.instead}, not {name}: {own}."
    return f"The file has no column {name}{nearest(name, list(names))}."
