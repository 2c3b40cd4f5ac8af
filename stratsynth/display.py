"""What a notebook shows of an object: a title, some facts, a table; no colours of its own, so that any theme fits."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

ROWS = 40
"""The largest number of rows of a table."""
SHORT = 12
"""The length up to which a cell stays on one line."""
_CELL = "text-align:{side};padding:.1em .7em .1em 0;vertical-align:top;overflow-wrap:normal"


def panel(
    title: str,
    facts: Sequence[tuple[str, Any]] = (),
    table: tuple[Sequence[str], Sequence[Sequence[Any]]] | None = None,
    *,
    note: str = "",
    warning: str = "",
) -> str:
    """The HTML of an object; every text is escaped.

    Args:
        title: What it is.
        facts: Names and values.
        table: Its heads and rows; numbers stand to the right. Rows beyond `ROWS` are counted, not shown.
        note: A line below.
        warning: A line above that nobody may miss, such as the stamp of INTERNAL figures.
    """
    parts = [f"<strong>{escape(title)}</strong>"]
    if warning:
        parts.insert(0, f'<div style="border:2px solid currentColor;padding:.2em .6em">{escape(warning)}</div>')
    if facts:
        lines = "".join(
            f'<tr><th style="{_CELL.format(side="left")}">{escape(name)}</th>'
            f'<td style="{_CELL.format(side="left")}">{escape(str(value))}</td></tr>'
            for name, value in facts
        )
        parts.append(f"<table>{lines}</table>")
    if table is not None:
        parts.append(_table(*table))
        hidden = len(table[1]) - ROWS
        note = f"{note} {hidden:,} more rows are not shown.".strip() if hidden > 0 else note
    if note:
        parts.append(f"<div>{escape(note)}</div>")
    return f"<div>{''.join(parts)}</div>"


def preformatted(title: str, text: str) -> str:
    """A text as a terminal has it."""
    return f'<div><strong>{escape(title)}</strong><pre style="white-space:pre-wrap">{escape(text)}</pre></div>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    right = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(heads))]
    sides = ["right" if number else "left" for number in right]
    head = "".join(
        f'<th style="{_CELL.format(side=side)}">{escape(name)}</th>' for name, side in zip(heads, sides, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cell(_spelt(value), side) for value, side in zip(row, sides, strict=True)) + "</tr>"
        for row in rows[:ROWS]
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str, side: str) -> str:
    whole = ";white-space:nowrap" if len(text) <= SHORT else ""
    return f'<td style="{_CELL.format(side=side)}{whole}">{escape(text)}</td>'


def _spelt(value: Any) -> str:
    if isinstance(value, float):
        return "–" if value != value else f"{value:.3g}"  # noqa: PLR0124 - NaN
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
