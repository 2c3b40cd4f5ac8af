"""Scores of candidates as exact integers, with the exact bound on how far one record moves them.

References, offsets, slopes and weights are public numbers; they are rounded to integers first, and the
bound is computed from the rounded ones. After that there is no rounding at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Neighbours
from stratsynth.questions import Choose, Distance, Peak
from stratsynth.questions.choose import REFERENCE_UNIT, WEIGHT_UNIT
from stratsynth.questions.total import GRID

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

_SLOPE_UNIT = 2**30
"""Slopes are taken relative to the largest, to about a billionth."""


def unit_scores(
    question: Choose, exact: Sequence[Any], schema: Schema, neighbours: Neighbours
) -> tuple[list[int], int]:
    """Integer scores, and the most that one neighbouring step can move any of them."""
    distances = [score for score in question.scores if isinstance(score, Distance)]
    if distances:
        return weigh(distances, [away(score, table) for score, table in zip(distances, exact, strict=True)], neighbours)
    peaks = [score for score in question.scores if isinstance(score, Peak)]
    return _peaks(peaks, exact, schema, neighbours)


def away(score: Distance, table: NDArray[np.int64]) -> int:
    """The distance between a table and its reference, in units of 1/65,536 of a record."""
    reference = np.rint(np.asarray(score.reference, dtype=np.float64) * REFERENCE_UNIT).astype(np.int64)
    cells = np.abs(table * REFERENCE_UNIT - reference)
    return int(cells.sum()) if score.norm == "l1" else int(cells.max(initial=0))


def weigh(scores: Sequence[Distance], distances: Sequence[int], neighbours: Neighbours) -> tuple[list[int], int]:
    """Score = weight x (distance - offset), weights in units of the heaviest; and the most that a step moves one."""
    heaviest = max(score.weight for score in scores)
    units, reach = [], 1
    for score, distance in zip(scores, distances, strict=True):
        weight = max(1, round(score.weight / heaviest * WEIGHT_UNIT))
        units.append(weight * (distance - round(score.offset * REFERENCE_UNIT)))
        reach = max(reach, weight * score.reach(neighbours) * REFERENCE_UNIT)
    return units, reach


def _peaks(
    scores: Sequence[Peak], exact: Sequence[Sequence[NDArray[np.int64]]], schema: Schema, neighbours: Neighbours
) -> tuple[list[int], int]:
    """Score = sign x max over j of slopes_j . sum + offsets_j, slopes and offsets in one public unit."""
    worth = [_worth(score, schema) for score in scores]
    unit = max(float(np.abs(score.slopes * w).max()) for score, w in zip(scores, worth, strict=True)) / _SLOPE_UNIT
    units, reach = [], 1
    for score, w, blocks in zip(scores, worth, exact, strict=True):
        slopes = [[int(x) for x in row] for row in np.rint(score.slopes * w / unit)]
        offsets = [round(Fraction(float(o)) / Fraction(unit)) for o in score.offsets]
        total = [int(x) for block in blocks for x in block]
        values = (
            sum(a * s for a, s in zip(row, total, strict=True)) + o for row, o in zip(slopes, offsets, strict=True)
        )
        units.append(score.sign * max(values))
        reach = max(reach, *(_moves(row, score, schema, neighbours) for row in slopes))
    return units, reach


def _worth(score: Peak, schema: Schema) -> NDArray[np.float64]:
    """What one grid unit of each coordinate of the sum is worth."""
    return np.concatenate([np.full(b.size, b.clip / GRID) for b in score.query.blocks(schema)])


def _moves(slopes: Sequence[int], score: Peak, schema: Schema, neighbours: Neighbours) -> int:
    """How far one step moves slopes . sum, rounded up: the clip, in units, times the length of the slopes."""
    start, moved = 0, 0
    for block in score.query.blocks(schema):
        part = slopes[start : start + block.size]
        start += block.size
        # an L1 clip is an L2 clip too; isqrt rounds down, hence the 1
        length = math.isqrt(sum(a * a for a in part)) + 1
        moved += math.ceil(length * GRID * Fraction(block.reach(neighbours)))
    return moved
