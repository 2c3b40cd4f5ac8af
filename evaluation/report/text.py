"""Figures and columns of plain text, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def shown(value: Any) -> str:
    """A figure with three decimals, or none from 100 on; a dash for NaN."""
    if np.isnan(value):
        return "-"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"


def aligned(rows: Sequence[Sequence[str]], left: int | None = None) -> list[str]:
    """Columns of one width: the first `left` (by default all), and a last one headed "status", to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left, words = len(widths) if left is None else left, rows[0][-1] == "status"
    sides = ["<" if i < left or (words and i == len(widths) - 1) else ">" for i in range(len(widths))]
    return ["  ".join(f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths, strict=True)).rstrip() for row in rows]
