"""Page of sections as one value, which `html`, `text` and `notebook` render.

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
"""Text of a page: a `str` is escaped when the page is written; only code of this project makes `Markup`."""


@dataclass(frozen=True)
class Cell:
    """Text of one table cell, and the key that rows are sorted by; None sorts last."""

    text: str
    key: float | str | None = None


@dataclass(frozen=True)
class Points:
    """Marks on the scale of their column, and the number that rows are sorted by."""

    name: str
    """Row, in words."""
    marks: Sequence[Mark]
    key: float | None
    joined: bool = False


Value: TypeAlias = "str | float | Cell | Points | None"
Row: TypeAlias = "Sequence[Value]"


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    kind: str = "number"
    """Kind of the values: "text"; "number", with significant digits; "count", a whole number; "share", a percentage;
    "shade", darker where it is larger; or "picture", of `Points`."""
    scale: Axis | None = None
    """Scale of a picture; for shades, 0 and the number with the darkest colour."""
    aside: bool = False
    """True if the column is left out beside a picture, whose numbers include it."""

    def text(self, value: Value) -> str:
        """Return text: a `value` of this column as a terminal shows it; "" for a picture."""
        return (
            str(value.text) if isinstance(value, Cell) else "" if isinstance(value, Points) else spelt(value, self.kind)
        )


@dataclass(frozen=True)
class Table:
    """Rows that a reader can sort; the rows `last`, such as everybody's, stay at the end."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    last: Sequence[Row] = ()
    most: int = 30
    """Largest number of rows of which a terminal shows all; of more, the first and last `ends`."""
    ends: tuple[int, int] = (30, 0)
    rest: str = "more are in the files"
    """Words for the rows that are left out, with the verb."""

    def numbers(self, name: str) -> Numbers:
        """Return this table's `rows`, but not `last`, as `Numbers` called `name`; columns of pictures are left out."""
        kept = [i for i, column in enumerate(self.columns) if column.kind != "picture"]
        values = [[v.key if isinstance(v := row[i], Cell) else v for i in kept] for row in self.rows]
        return Numbers(name, [self.columns[i].name for i in kept], values)


@dataclass(frozen=True)
class Figure:
    """Picture or table with its meaning, and its numbers for programs."""

    title: str
    note: Text = ""
    table: Table | None = None
    picture: Text = ""
    legend: Text = ""
    numbers: Numbers | None = None
    codes: tuple[str, Sequence[tuple[str, Text]]] | None = None
    """Title and a long list of codes and meanings, folded away."""
    group: str | None = None
    """Group of the figure, where the reader of a section chooses one."""
    detail: bool = False
    """True if a terminal and a notebook leave it to the page."""


@dataclass(frozen=True)
class Section:
    """Chapter of a page."""

    name: str
    """Anchor of the section."""
    title: str
    text: Sequence[Text] = ()
    facts: Sequence[tuple[str, Text]] = ()
    figures: Sequence[Figure] = ()
    groups: Sequence[str] = ()
    """Groups to choose from; the reader sees the figures of the chosen one. Empty without a choice."""
    choose: str = "Group"
    quotes: Sequence[str] = ()
    """Lines to be copied verbatim."""
    notes: Sequence[str] = ()
    """Sentences at the end."""
    detail: bool = False
    """True if a terminal and a notebook leave it to the page."""


@dataclass(frozen=True)
class Page:
    """Result for readers."""

    title: str
    subtitle: str = ""
    lead: Sequence[Text] = ()
    """Summary: the first sentences."""
    sections: Sequence[Section] = field(default=())
    internal: str | None = None
    """Stamp of a page that must not be published; None for public pages."""
    warnings: Sequence[str] = ()
    """Warnings, the gravest first."""
    made_with: str = ""
