"""A page as one HTML file, which loads nothing."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

    from stratsynth.report.page import Page

HERE = Path(__file__).parent
WORD = 20
"""The length up to which a word or number in a table is never broken."""


def render(page: Page) -> str:
    """The HTML. The same page gives the same bytes."""
    styles = [_read("style.css")] + ([_read("internal.css")] if page.internal else [])
    script = _read("page.js")
    # the policy allows just these texts, by their hashes
    *kept, own = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in [*styles, script]
    )
    policy = "; ".join([
        "default-src 'none'",
        f"style-src {' '.join(kept)}",
        f"script-src {own}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ])  # fmt: skip
    template = _environment().get_template("page.html.j2")
    return template.render(page=page, styles=styles, script=script, policy=policy)


@cache
def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from stratsynth.report.strip import axis

    made = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # names longer than any word, which may be broken inside
    made.tests["long"] = lambda text: any(len(word) > WORD for word in str(text).split())
    made.globals["axis"] = axis
    return made
