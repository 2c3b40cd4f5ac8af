"""What a page consists of, and how it becomes one HTML file that fetches nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from stratsynth.report.numbers import Numbers, known, percent, short

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

Text: TypeAlias = "str | Markup"
"""A `str` is escaped when the page is written; only code of this project makes `Markup`."""

HERE = Path(__file__).parent
WORD = 20
"""The length up to which a word or number in a table is never broken."""


@dataclass(frozen=True)
class Cell:
    """What a table shows in one place, and what it is sorted by; None sorts last."""

    text: Text
    key: float | str | None = None
    shade: int | None = None
    """In a heat map, from 0 (as good as no error) to 8."""

    @classmethod
    def words(cls, text: Any) -> Cell:
        """A text, which numbers among others are sorted by as numbers."""
        plain = str(text)
        try:
            return cls(plain, float(plain))
        except ValueError:
            return cls(plain, plain)

    @classmethod
    def figure(cls, value: float | None) -> Cell:
        """A number with the digits that matter."""
        return cls(short(value), known(value))

    @classmethod
    def count(cls, value: float | None) -> Cell:
        """A whole number."""
        return cls("–" if known(value) is None or value is None else f"{int(value):,}", known(value))

    @classmethod
    def share(cls, value: float | None) -> Cell:
        """A percentage."""
        return cls(percent(value), known(value))

    @classmethod
    def drawn(cls, picture: Markup, key: float | None) -> Cell:
        """A picture, sorted by a number."""
        return cls(picture, known(key))

    @classmethod
    def shaded(cls, value: float | None, most: float) -> Cell:
        """A number of a heat map whose darkest colour stands for `most` and more."""
        key = known(value)
        if key is None:
            return cls("–", None)
        shade = 0 if most <= 0 else min(8, int(9 * max(key, 0.0) / most))
        return cls(f"{key:.2f}", key, shade)


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    kind: str = "number"
    """"text", "number", "picture" or "shade"."""
    axis: Text = ""
    """What is drawn under its name."""


@dataclass(frozen=True)
class Table:
    """Rows that a reader can sort; `last` are those that stay at the end, as that for everybody does."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    last: Sequence[Sequence[Cell]] = ()

    @property
    def form(self) -> str:
        """How it is laid out on a phone."""
        if any(column.kind == "shade" for column in self.columns):
            many = len(self.columns) - 1
            return "heat few" if many <= 6 else "heat some" if many <= 12 else "heat many"
        wide = len(self.columns) > 3 or any(column.kind == "picture" for column in self.columns)
        return "stack" if wide else "plain"


@dataclass(frozen=True)
class Figure:
    """A picture or a table with what it means, and its numbers for programs."""

    title: str
    note: Text = ""
    table: Table | None = None
    picture: Text = ""
    legend: Text = ""
    numbers: Numbers | None = None
    codes: tuple[str, Sequence[tuple[str, Text]]] | None = None
    """A long list of codes and what they mean, folded away under a title."""
    group: str | None = None
    """The group it is about, where the reader of a section chooses one."""


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


@dataclass(frozen=True)
class Page:
    """A report."""

    title: str
    subtitle: str
    lead: Sequence[Text]
    """What a reader in a hurry must know."""
    sections: Sequence[Section]
    internal: str | None = None
    """The stamp of a report that must not be published."""
    warning: str | None = None
    """What is wrong with the release itself."""
    made_with: str = ""


def render(page: Page) -> str:
    """The HTML. The same page gives the same bytes."""
    styles = [_read("style.css")] + ([_read("internal.css")] if page.internal else [])
    script = _read("page.js")
    policy = "; ".join([
        "default-src 'none'",
        "style-src " + " ".join(map(_hash, styles)),
        "script-src " + _hash(script),
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ])  # fmt: skip
    template = _environment().get_template("page.html.j2")
    return template.render(page=page, styles=styles, script=script, policy=policy)


def _hash(text: str) -> str:
    """Allows just this text as a style or script, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.tests["long"] = _is_long
    return made


def _is_long(text: object) -> bool:
    """Whether a text holds a name that is longer than any word, and may be broken inside."""
    return any(len(word) > WORD for word in str(text).split())
