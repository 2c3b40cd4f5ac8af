"""Page as a fragment for notebooks: no colours of its own, so that any theme fits."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stratsynth.report.page import Page, Row, Section, Table

ROWS = 40
"""Largest number of rows of a table."""
SHORT = 12
"""Largest length of a cell that stays on one line."""
_CELL = "text-align:{};padding:.1em .7em .1em 0;vertical-align:top;overflow-wrap:normal"


def render(page: Page) -> str:
    """Return a Page as an HTML fragment, without details and pictures; every text is escaped."""
    stamp = [f"INTERNAL: {page.internal}"] if page.internal else []
    boxes = [_tag("div", text, "border:2px solid currentColor;padding:.2em .6em") for text in [*stamp, *page.warnings]]
    head = [_tag("strong", page.title), *(_tag("div", str(text)) for text in [page.subtitle, *page.lead] if text)]
    return f"<div>{''.join([*boxes, *head, *(part for section in page.sections for part in _section(section))])}</div>"


def _section(section: Section) -> Iterator[str]:
    """Yield HTML of one section: title, text, facts, tables, quotes, notes; nothing for one of detail."""
    if section.detail:
        return
    if section.title:
        yield _tag("div", section.title, "font-weight:bold")
    yield from (_tag("div", str(text)) for text in section.text)
    if section.facts:
        left, broken = _CELL.format("left"), _CELL.format("left").replace("normal", "anywhere")
        lines = (
            f"<tr>{_tag('th', name, left, 'scope=row')}{_tag('td', str(value), broken)}</tr>"
            for name, value in section.facts
        )
        yield f"<table>{''.join(lines)}</table>"
    for figure in section.figures:
        if figure.table is not None and not figure.detail:
            if figure.title:
                yield _tag("div", figure.title, "font-weight:bold")
            yield from [_tag("div", str(figure.note))] if figure.note else []
            yield from _table(figure.table)
    yield from (_tag("div", text) for text in [*section.quotes, *section.notes])


def _table(table: Table) -> Iterator[str]:
    """Yield HTML of a table: its first ROWS rows and `last`, without pictures, then its caption."""
    kept = [(i, column) for i, column in enumerate(table.columns) if column.kind != "picture"]
    sides = [_CELL.format("left" if column.kind == "text" else "right") for _, column in kept]
    heads = (_tag("th", column.name, side, "scope=col") for (_, column), side in zip(kept, sides, strict=True))

    def line(row: Row) -> str:
        cells = [column.text(row[i]) for i, column in kept]
        styled = (
            _tag("td", text, side + (";white-space:nowrap" if len(text) <= SHORT else ""))
            for text, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{''.join(styled)}</tr>"

    body = "".join(line(row) for row in [*table.rows[:ROWS], *table.last])
    scrolled = (
        f'<div style="overflow-x:auto" tabindex="0" role="region" aria-label="{escape(table.caption or "table")}">'
    )
    yield f"{scrolled}<table><thead><tr>{''.join(heads)}</tr></thead><tbody>{body}</tbody></table></div>"
    hidden = len(table.rows) - ROWS
    rest = f"{hidden:,} more rows are not shown." if hidden > 0 else ""
    if text := f"{table.caption} {rest}".strip():
        yield _tag("div", text)


def _tag(name: str, text: str, style: str = "", more: str = "") -> str:
    """Return HTML, an element `name` with the escaped `text`, a CSS `style` and `more` attributes, if any."""
    styled = f' style="{style}"' if style else ""
    return f"<{name}{styled}{' ' + more if more else ''}>{escape(text)}</{name}>"
