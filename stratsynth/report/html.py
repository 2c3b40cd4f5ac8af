"""Page as one HTML file, which loads nothing."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.report.numbers import known, spelt
from stratsynth.report.page import Cell, Points
from stratsynth.report.strip import Axis, axis, strip

if TYPE_CHECKING:
    from jinja2 import Environment

    from stratsynth.report.page import Column, Page, Table, Text, Value

HERE = Path(__file__).parent
WORD = 20
"""Largest length of a word or number in a table that is never broken."""


def render(page: Page) -> str:
    """Return the text of one HTML file for a Page; equal pages give equal bytes."""
    styles = [_read("style.css")] + ([_read("internal.css")] if page.internal else [])
    script = _read("page.js")
    # the policy allows just these texts, by their hashes
    *kept, own = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in [*styles, script]
    )
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src {' '.join(kept)}",
            f"script-src {own}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    template = _environment().get_template("page.html.j2")
    return template.render(page=page, styles=styles, script=script, policy=policy)


@cache
def _read(name: str) -> str:
    """Return the text of the file `name` in this package's folder."""
    return (HERE / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # names longer than any word, which may be broken inside
    made.tests["long"] = lambda text: any(len(word) > WORD for word in str(text).split())
    made.globals |= {"axis": axis, "drawn": drawn, "form": form}
    return made


def drawn(column: Column, value: Value) -> tuple[Text, float | str | None, int | None]:
    """Return (text or picture, key that rows are sorted by, shade of a heat map) of a `value` in a table's `column`.

    The shade is 0 to 8. Key and shade are None where there is none.
    """
    if isinstance(value, Cell):
        return value.text, value.key, None
    if isinstance(value, Points):
        picture = strip(column.scale or Axis(0, 1), value.marks, joined=value.joined, what=value.name)
        return picture, known(value.key), None
    text = spelt(value, column.kind)
    if column.kind == "text" or isinstance(value, str):
        try:
            return text, float(text), None  # a number among texts is sorted as one
        except ValueError:
            return text, text, None
    key, most = known(value), column.scale.high if column.scale else 0.0
    shade = 0 if most <= 0 else min(8, int(9 * max(key or 0.0, 0.0) / most))
    return text, key, shade if column.kind == "shade" and key is not None else None


def form(table: Table) -> str:
    """Return CSS classes, a text, of a table's layout on a phone: "plain", "stack", or "heat" with few, some, many."""
    if any(column.kind == "shade" for column in table.columns):
        many = len(table.columns) - 1
        return "heat few" if many <= 6 else "heat some" if many <= 12 else "heat many"
    wide = len(table.columns) > 3 or any(column.kind == "picture" for column in table.columns)
    return "stack" if wide else "plain"
