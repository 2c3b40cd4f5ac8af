"""The features of a design, row by row: as numbers between -1 and 1, and as integers.

Everything here is done one element at a time, under the rules of `stratsynth.driver.sums`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stratsynth.questions.total import GRID
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from stratsynth.driver.clipping import Which
    from stratsynth.questions.queries import Design
    from stratsynth.schema.rows import CodedRows

UNIT = 1 << 12
"""Whole features are taken to the nearest 1 / UNIT."""
KEPT = 2**28
"""The most rows times features whose whole features are kept; larger designs are made anew each time."""
ROWS = 1 << 13
"""Rows worked on at a time."""


def features(design: Design, rows: CodedRows) -> NDArray[np.float64]:
    """The features, one a line in the order of `Design.names`, and one column a row."""
    made = np.zeros((len(design.plain(rows.schema)), rows.size))
    at = 0
    if design.intercept:
        made[0], at = 1.0, 1
    for name in design.columns:
        column, codes, first = rows.schema.column(name), rows.codes[name].astype(np.intp), 0
        if isinstance(column, Numeric):
            first = len(column.extents)
            number = scaled(column, rows.numbers[name])
            made[at] = np.where((codes < first) & ~np.isnan(number), number, 0.0)
            at += 1
        level = np.flatnonzero(codes >= first)
        made[at + codes[level] - first, level] = 1.0
        at += column.size - first
    products = design.products(rows.schema)
    if products is None:
        return made
    found = np.ones((len(products), rows.size))
    for i, factors in enumerate(products):
        for factor in factors:
            found[i] *= made[factor]
    return found


def scaled(column: Numeric, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers from their bounds to [-1, 1]; NaN stays."""
    lower, upper = float(column.lower), float(column.upper)
    part = 1.0 if math.isfinite(upper - lower) else 0.25  # bounds so far apart that the distance overflows
    share = (numbers * part - lower * part) / (upper * part - lower * part)
    return np.clip(share * 2 - 1, -1, 1)


def target(name: str, rows: CodedRows, which: Which = slice(None)) -> NDArray[np.float64]:
    """A numeric target, scaled; NaN where a row has none."""
    column = rows.schema.column(name)
    assert isinstance(column, Numeric)  # noqa: S101 - the query's check
    return scaled(column, rows.numbers[name][which])


def whole(design: Design, rows: CodedRows, which: Which) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    """The features of some rows in whole units, one line a row, and each row's reach; kept for the next time."""
    kept = rows.cache.setdefault("whole features", {})
    if design not in kept:
        cells = rows.size * len(design.names(rows.schema))
        if cells > KEPT:
            return _whole(design, rows.take(which))
        if cells + sum(x.size for x, _ in kept.values()) > KEPT:
            kept.clear()
        parts = [_whole(design, rows.take(slice(i, i + ROWS))) for i in range(0, max(rows.size, 1), ROWS)]
        kept[design] = tuple(np.concatenate(both) for both in zip(*parts, strict=True))
    x, reach = kept[design]
    return x[which], reach[which]


def _whole(design: Design, rows: CodedRows) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    """The features in whole units, and for each row the largest whole number m with |m x| <= GRID."""
    x: NDArray[Any] = np.rint(features(design, rows).T * UNIT).astype(np.int64)
    square = np.maximum((x * x).sum(axis=1), 1)
    # The quotient is right to 2^-52 of itself, so m is at most one too large, and m^2 |x|^2 far below 2^63.
    m = np.floor(GRID / np.sqrt(square.astype(np.float64))).astype(np.int64)
    m -= m * m * square > GRID**2
    return np.ascontiguousarray(x, np.int16), m
