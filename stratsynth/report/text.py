"""Page as text for a terminal: facts beside their names, tables in columns, no pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stratsynth.report.page import Figure, Page, Row, Section, Table

WIDTH = 110
CELL = 48
"""Length from which a cell's text is broken into several lines, except in the last column."""
NAME = 12
"""Smallest width of the names of facts, so that most stand in one column."""
LONG = 24
"""Largest length of a fact's name with which the names of its section stand in a column."""
CODES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "\r\v\f"}
"""Control signs of a terminal, made visible; folding would turn them into blanks."""


def render(page: Page) -> str:
    """Return a Page as text for a terminal: stamp and warnings first; sections and figures for detail are left out."""
    stamp = [f"INTERNAL: {page.internal[:1].lower()}{page.internal[1:]}"] if page.internal else []
    warnings = [folded(f"*** {text} ***", indent=4) for text in page.warnings]
    head = [line for line in (page.title, page.subtitle) if line]
    parts = ["\n".join([*stamp, *warnings, *map(folded, [*head, *map(str, page.lead)])])]
    shown = [section for section in page.sections if not section.detail]
    widths = [max((len(name) for name, _ in section.facts), default=0) for section in shown]
    width = max([NAME, *(width for width in widths if width <= LONG)])
    parts += ["\n".join(lines) for section in shown if (lines := list(_section(section, width)))]
    return "\n\n".join(part for part in parts if part)


def folded(text: str, indent: int = 0) -> str:
    """Return `text` folded into lines of the terminal's width, all but the first indented by `indent` blanks."""
    return textwrap.fill(
        text.translate(CODES), WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def _section(section: Section, width: int) -> Iterator[str]:
    """Yield the lines of one section: its title, if it has a body, and the body; `width` is for names of facts."""
    body = list(_body(section, width))
    if body and section.title:
        yield section.title
    yield from body


def _body(section: Section, width: int) -> Iterator[str]:
    """Yield the lines of a section below its title: text, facts (names in `width`), figures, quotes, notes."""
    yield from (folded(str(text)) for text in section.text)
    long = any(len(name) > LONG for name, _ in section.facts)
    for name, text in section.facts:
        yield folded(f"{name}: {text}", 4) if long else folded(f"{name:{width}}  {text}", width + 2)
    for place, figure in enumerate(section.figures):
        if figure.table is not None and not figure.detail:
            if place or section.facts or section.text:
                yield ""
            yield from _figure(figure, figure.table)
    yield from section.quotes
    if section.notes:
        yield ""
    yield from map(folded, section.notes)


def _figure(figure: Figure, table: Table) -> Iterator[str]:
    """Yield the lines of a figure: its title and note, the `table` with rows left out in the middle, the caption."""
    title = f"{figure.title}{'.' if figure.title and figure.title[-1] not in '.?!' else ''}"
    if title or figure.note:
        yield folded(f"{title} {figure.note}".strip())
    first, end = table.ends if len(table.rows) > table.most else (len(table.rows), 0)
    hidden = len(table.rows) - first - end
    lines = _aligned(table, [*table.rows[:first], *table.rows[first + hidden :], *table.last])
    if hidden:
        lines.insert(len(lines) - end - len(table.last), f"... {hidden:,} {table.rest} ...")
    yield from lines
    if table.caption:
        yield folded(table.caption)


def _aligned(table: Table, rows: Sequence[Row]) -> list[str]:
    """Return a list of texts, perhaps of several lines: the table's heads, then each of `rows`.

    Texts left, numbers right.
    """
    columns = [(i, column) for i, column in enumerate(table.columns) if column.kind != "picture"]
    cells = [[column.name for _, column in columns]] if any(column.name for _, column in columns) else []
    cells += [[column.text(row[i]) for i, column in columns] for row in rows]
    broken = [[textwrap.wrap(cell.translate(CODES), CELL) or [""] for cell in row[:-1]] + [row[-1:]] for row in cells]
    widths = [max(len(line) for row in broken for line in row[i]) for i in range(len(columns))]
    sides = ["<" if column.kind == "text" else ">" for _, column in columns]
    return [
        "\n".join(
            "  ".join(
                f"{cell[n] if n < len(cell) else '':{side}{width}}"
                for cell, side, width in zip(row, sides, widths, strict=True)
            ).rstrip()
            for n in range(max(map(len, row)))
        )
        for row in broken
    ]
