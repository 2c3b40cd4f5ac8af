"""Numbers in the cells of small public tables, such as shares."""

from __future__ import annotations

import math
from typing import Any

from stratsynth.schema.text import number


def figure(value: Any) -> float:
    """Return the number in `value`, a cell of a small table, or that its text spells (`number`); NaN if none."""
    if isinstance(value, str | bool):
        found = number(str(value))
        return math.nan if found is None else found
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
