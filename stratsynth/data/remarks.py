"""INTERNAL: remarks on columns of private rows, those that differ in their numbers alone put into one sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

NAMED = 12
"""Largest number of columns that a sentence about several names."""
_FIGURE = re.compile(r"-?\d[\d,.]*%?")


def together(said: Iterable[tuple[str, str]], one: str = "", several: str = "") -> list[tuple[str, str]]:
    """Return a list of (words for columns, text) from `said`, (column, text) pairs, grouped by equal texts.

    The words end in the verb `one` or `several`. Texts that differ in numbers alone are equal; the numbers are those of
    the first column.
    """
    found: dict[str, tuple[str, list[str]]] = {}
    for name, text in said:
        found.setdefault(_FIGURE.sub("#", text.replace(json.dumps(name), "#")), (text, []))[1].append(name)
    shared = []
    for key, (text, names) in found.items():
        listed = ", ".join(map(repr, names[:NAMED])) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
        what, verb = ("column", one) if len(names) == 1 else ("columns", several)
        first = f" (the numbers are those of {names[0]!r})" if len(names) > 1 and "#" in key else ""
        shared.append((" ".join(filter(None, (what, listed, verb))), text + first))
    return shared
