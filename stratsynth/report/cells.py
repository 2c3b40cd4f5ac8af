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
    return Cell(short(value), known(value))


def count(value: float | None) -> Cell:
    """A whole number."""
    return Cell("–" if known(value) is None or value is None else f"{int(value):,}", known(value))


def share(value: float | None) -> Cell:
    """A percentage."""
    return Cell(percent(value), known(value))


def drawn(picture: Markup, key: float | None) -> Cell:
    """A picture, sorted by a number."""
    return Cell(picture, known(key))


def shaded(value: float | None, most: float) -> Cell:
    """A number of a heat map whose darkest colour stands for `most` and more."""
    key = known(value)
    if key is None:
        return Cell("–", None)
    shade = 0 if most <= 0 else min(8, int(9 * max(key, 0.0) / most))
    return Cell(f"{key:.2f}", key, shade)


def known(value: float | None) -> float | None:
    """A number; None where there is none, or an infinite one."""
    return None if value is None or not math.isfinite(value) else float(value)
