"""Typed levels: whole numbers, reals and truth values in a synthetic table, instead of texts."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from stratsynth.schema import checks
from stratsynth.schema.text import MISSING, meaning

if TYPE_CHECKING:
    from stratsynth.schema.columns import Categorical


def value(column: Categorical, level: str) -> str | int | float | bool | None:
    """Return the value of a level in synthetic tables, in the column's `dtype`; None for a level written as null."""
    if column.dtype in {"string", "category"}:
        return None if level == MISSING and MISSING not in column.levels else level
    if level in {column.not_applicable, MISSING}:
        return None
    exact = meaning(level)
    if exact is None:
        return None
    if column.dtype == "float64":
        return float(exact) + 0.0
    return int(exact) if column.dtype == "int64" else bool(exact)


def check(column: Categorical) -> None:
    """Raise SchemaError if some level cannot be recovered from its value in the column's `dtype`."""
    spelt = [meaning(level) for level in column.levels]
    times = Counter(spelt)
    for level, exact in zip(column.levels, spelt, strict=True):
        if level in {column.not_applicable, MISSING}:
            continue
        fits = exact is not None and (
            -(2**63) < exact < 2**63 and exact == exact.to_integral_value()
            if column.dtype == "int64"
            else exact in {0, 1}
            if column.dtype == "bool"
            else math.isfinite(float(exact)) and meaning(repr(float(exact))) == exact
        )
        if not fits:
            checks.refuse(f'dtype {column.dtype!r} cannot hold level {level!r}; use dtype = "string"')
        if times[exact] > 1:
            checks.refuse(f'dtype {column.dtype!r} cannot tell level {level!r} from another; use dtype = "string"')
