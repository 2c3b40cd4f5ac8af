"""Cells of tables, made from plain values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from stratsynth.report.numbers import percent, short
from stratsynth.report.page import Cell

if TYPE_CHECKING:
    from markupsafe import Markup


def words(text: Any) -> Cell:
    """A text, which numbers among others are sorted by as numbers."""
    plain = str(text)
    try:
        return Cell(plain, float(plain))
    except ValueError:
        return Cell(plain, plain)


def figure(value: float | None) -> Cell:
    """A number with the digits that matter."""
    return Cell(short(value), _key(value))


def count(value: float | None) -> Cell:
    """A whole number."""
    return Cell("–" if _key(value) is None or value is None else f"{int(value):,}", _key(value))


def share(value: float | None) -> Cell:
    """A percentage."""
    return Cell(percent(value), _key(value))


def drawn(picture: Markup, key: float | None) -> Cell:
    """A picture, sorted by a number."""
    return Cell(picture, _key(key))


def shaded(value: float | None, most: float) -> Cell:
    """A number of a heat map whose darkest colour stands for `most` and more."""
    key = _key(value)
    if key is None:
        return Cell("–", None)
    shade = 0 if most <= 0 else min(8, int(9 * max(key, 0.0) / most))
    return Cell(f"{key:.2f}", key, shade)


def _key(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
