"""A result as a page of sections, built once: `html`, `text` and `notebook` render it.

Cells are the values themselves; a column's kind says how they are spelt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from stratsynth.report.numbers import Numbers, spelt

if TYPE_CHECKING:
    from markupsafe import Markup

    from stratsynth.report.strip import Axis, Mark

Text: TypeAlias = "str | Markup"
"""A `str` is escaped when the page is written; only code of this project makes `Markup`."""


@dataclass(frozen=True)
class Cell:
    """The text of one place of a table, and the key that rows are sorted by; None sorts last."""

    text: str
    key: float | str | None = None


@dataclass(frozen=True)
class Points:
    """Marks on the scale of their column, and the number that rows are sorted by."""

    name: str
    """The row, in words."""
    marks: Sequence[Mark]
    key: float | None
    joined: bool = False


Value: TypeAlias = "str | float | Cell | Points | None"
Row: TypeAlias = "Sequence[Value]"


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    kind: str = "number"
    """"text"; "number", with the digits that matter; "count", a whole number; "share", a percentage; "shade", darker
    where it is larger; or "picture", of `Points`."""
    scale: Axis | None = None
    """Of a picture; of shades, 0 and the number whose colour is the darkest."""
    aside: bool = False
    """Left out beside a picture, in whose numbers it is."""

    def text(self, value: Value) -> str:
        """A value as a terminal has it."""
        return (
            str(value.text) if isinstance(value, Cell) else "" if isinstance(value, Points) else spelt(value, self.kind)
        )


@dataclass(frozen=True)
class Table:
    """Rows that a reader can sort; `last` are those that stay at the end, as that for everybody does."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    last: Sequence[Row] = ()
    most: int = 30
    """The largest number of rows of which a terminal shows all; of more, the first and last `ends`."""
    ends: tuple[int, int] = (30, 0)
    rest: str = "more are in the files"
    """The place of rows that are not shown, with the verb."""

    def numbers(self, name: str) -> Numbers:
        """Its values, but for pictures and the rows at the end, for programs."""
        kept = [i for i, column in enumerate(self.columns) if column.kind != "picture"]
        values = [[v.key if isinstance(v := row[i], Cell) else v for i in kept] for row in self.rows]
        return Numbers(name, [self.columns[i].name for i in kept], values)


@dataclass(frozen=True)
class Figure:
    """A picture or a table with its meaning, and its numbers for programs."""

    title: str
    note: Text = ""
    table: Table | None = None
    picture: Text = ""
    legend: Text = ""
    numbers: Numbers | None = None
    codes: tuple[str, Sequence[tuple[str, Text]]] | None = None
    """A long list of codes and their meanings, folded away under a title."""
    group: str | None = None
    """The group it is about, where the reader of a section chooses one."""
    detail: bool = False
    """True if a terminal and a notebook leave it to the page."""


@dataclass(frozen=True)
class Section:
    """A chapter."""

    name: str
    """Its anchor."""
    title: str
    text: Sequence[Text] = ()
    facts: Sequence[tuple[str, Text]] = ()
    figures: Sequence[Figure] = ()
    groups: Sequence[str] = ()
    """If not empty, the reader chooses one of these, and sees the figures of that group."""
    choose: str = "Group"
    quotes: Sequence[str] = ()
    """Lines to be copied as they are."""
    notes: Sequence[str] = ()
    """Sentences at the end."""
    detail: bool = False
    """True if a terminal and a notebook leave it to the page."""


@dataclass(frozen=True)
class Page:
    """A result for readers."""

    title: str
    subtitle: str = ""
    lead: Sequence[Text] = ()
    """The sentences for a reader in a hurry."""
    sections: Sequence[Section] = field(default=())
    internal: str | None = None
    """The stamp of a page that must not be published."""
    warnings: Sequence[str] = ()
    """Sentences that nobody may miss, the gravest first."""
    made_with: str = ""
