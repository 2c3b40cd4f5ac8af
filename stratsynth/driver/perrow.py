"""Exact sums of `PerRowGradients`: gradients by somebody's function, clipped here, and probabilities by cell.

That a row's vector is its own alone is the function's part, and tested; see `stratsynth.questions.perrow`. Its length
is ours: whatever the function returns is checked in whole numbers, and what fails the check counts as zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.driver import design
from stratsynth.driver.clipping import HUGE, Floats, Ints, Which
from stratsynth.questions.perrow import BATCH, RESERVE
from stratsynth.questions.total import GRID
from stratsynth.schema.rows import CodedRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stratsynth.questions.perrow import PerRow, PerRowGradients

RADIUS = GRID - RESERVE
"""The longest vector of a row, in units."""


def per_row_gradients(query: PerRowGradients, rows: CodedRows, which: Which) -> list[Ints]:
    """The sum of the clipped gradients, and of the probabilities in each cell."""
    per_row, classes = query.per_row, query.per_row.classes
    whole, _ = design.whole(query.design, rows, which)
    x: Floats = whole[:, int(query.design.intercept) :].astype(np.float64) / design.UNIT
    levels = rows.codes[query.target][which].astype(np.int64)
    cell, slopes = np.zeros(len(x), np.intp), np.zeros((len(x), classes))
    if query.slopes is not None:
        codes = [rows.codes[name][which].astype(np.intp) for name in query.by]
        cell = np.ravel_multi_index(codes, rows.schema.shape(query.by))
        slopes = query.slopes.reshape(-1, classes)[cell]
    total = np.zeros(per_row.weights, np.int64)
    sums = np.zeros((rows.schema.cells(query.by) if query.by else 1, classes), np.int64)
    for places, gradients, chances in _evaluated(per_row, query.weights, x, levels, slopes):
        total += into_ball(gradients / per_row.clip * GRID, RADIUS).sum(axis=0)
        np.add.at(sums, cell[places], shares(chances))
    return [total, sums.ravel()] if query.by else [total]


def _evaluated(
    per_row: PerRow, weights: Floats, x: Floats, levels: Ints, slopes: Floats
) -> Iterator[tuple[NDArray[np.intp], Floats, Floats]]:
    """Rows by number, their gradients and their probabilities; rows at which the function fails are left out.

    Every call has BATCH rows. When one fails, its rows are tried one by one.
    """
    for start in range(0, len(x), BATCH):
        together = np.arange(start, min(start + BATCH, len(x)))
        for places in (together, *together[:, None]):
            pad = BATCH - len(places)
            given = [np.concatenate([a[places], np.zeros((pad, *a.shape[1:]), a.dtype)]) for a in (x, levels, slopes)]
            found = per_row.sound(weights, given[0], given[1], given[2])
            if found is not None:
                yield places, found[0][: len(places)], found[1][: len(places)]
            if places is together and found is not None:
                break


@np.errstate(all="ignore")
def into_ball(vectors: Floats, radius: int) -> Ints:
    """Each line scaled into a ball of a whole radius below GRID and cut to integers, whose norm is checked exactly.

    As `stratsynth.driver.clipping.into_ball`, for many coordinates: a line's float norm is added up in any order.
    """
    vectors = np.clip(vectors, -HUGE, HUGE)
    length = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    scaled = np.where(np.isnan(length), 0.0, vectors * np.minimum(1.0, radius / np.maximum(length, 1.0)))
    units = np.clip(np.trunc(scaled), -GRID - 1, GRID + 1).astype(np.int64)
    fits = _within(units, radius)
    if not fits.all():
        units -= np.where(fits[:, None], 0, np.sign(units))  # a norm that was rounded up: one unit less is enough
        units[~_within(units, radius)] = 0
    return units


def _within(units: Ints, radius: int) -> NDArray[np.bool_]:
    """Whether each line's norm is at most the radius, exactly, for |units| <= GRID + 1.

    A float sum of P <= 2^18 squares is right to 2^-34 of itself; below 2^62 the whole sum stays within 64 bits.
    """
    floats = units.astype(np.float64)
    small = (floats * floats).sum(axis=1) < 2.0**62
    fits: NDArray[np.bool_] = small & ((units * units).sum(axis=1) <= radius**2)
    return fits


@np.errstate(all="ignore")
def shares(chances: Floats) -> Ints:
    """Probabilities in units, RADIUS in all at most; a row whose are not so counts as zero."""
    scaled = np.trunc(np.clip(chances, 0, 1) * RADIUS)
    units = np.where(np.isnan(chances), 0, scaled).astype(np.int64)
    units[units.sum(axis=1) > RADIUS] = 0
    return units
