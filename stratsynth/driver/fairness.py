"""Exact sums of `FairGradients`: clipped gradients of a penalised loss, and predicted probabilities by cell.

The rules are those of `stratsynth.driver.sums`: floats one element at a time, integers where rows are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from stratsynth.driver import design
from stratsynth.driver.clipping import Floats, Ints, Which, into_ball
from stratsynth.driver.models import THETA, exp_of, logits_of
from stratsynth.questions.total import GRID
from stratsynth.schema.rows import CodedRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.questions.attribute import AttributeGradients
    from stratsynth.questions.fairness import FairGradients

FEW = 64
"""Up to this many cells, sums by cell are a product with each row's cell as a line of zeros and a one."""


def fair_gradients(query: FairGradients, rows: CodedRows, which: Which) -> list[Ints]:
    """One product gives all models' logits, another all gradients, and a third all sums of probabilities.

    A row's gradient is c x, x being its whole features and c one number a class, so clipping is clipping c.
    """
    whole, reach = design.whole(query.design, rows, which)
    x = whole.astype(np.float64)
    levels = rows.codes[query.target][which].astype(np.intp)
    cell = cells_of(query, rows, which) if query.by else None
    make = _logistic if query.link == "logistic" else _softmax
    residuals, units = make(query, logits_of(x, query), levels, cell)
    models, axes = len(query.thetas), residuals.shape[0]
    c = into_ball(
        residuals.reshape(axes, -1) * (GRID // design.UNIT) / query.clip, np.tile(reach, models)
    ).astype(np.float64)  # fmt: skip
    # one column a model and class, as thetas have them
    columns = np.moveaxis(c.reshape(axes, models, -1), 0, 1).reshape(models * axes, -1)
    gradients = (columns @ x).astype(np.int64).reshape(models, axes, -1)
    parts = [np.ascontiguousarray(one.T).ravel() for one in gradients]
    if cell is None or units is None:
        return parts
    sums = added(units, cell, rows.schema.cells(query.by))
    return [block for pair in zip(parts, sums, strict=True) for block in pair]


def cells_of(query: FairGradients | AttributeGradients, rows: CodedRows, which: Which) -> NDArray[np.intp]:
    """The number of each row's cell."""
    codes = [rows.codes[name][which].astype(np.intp) for name in query.by]
    return np.ravel_multi_index(codes, rows.schema.shape(query.by))


def _slopes(query: FairGradients) -> Floats:
    """The slopes, one line a model, a column a cell, and classes last."""
    slopes = cast("Floats", query.slopes)
    return slopes.reshape(len(slopes), -1, slopes.shape[-1])


def chance_of(logits: Floats) -> Floats:
    """The second class's probability."""
    small = exp_of(np.abs(logits) * (1 / (design.UNIT * THETA)))
    found: Floats = np.where(logits < 0, small, GRID) / (small + GRID)
    return found


def chances_of(logits: Floats, models: int) -> tuple[Floats, Ints]:
    """Each class's probability, axes class, model and row; and in whole units, rounded down, so at most GRID in all."""
    logits = np.moveaxis(logits.reshape(models, -1, logits.shape[-1]), 1, 0)
    weights = exp_of((logits.max(axis=0) - logits) * (1 / (design.UNIT * THETA)))
    whole = weights.sum(axis=0)
    return weights / whole, weights * GRID // whole


def _logistic(
    query: FairGradients, logits: Floats, levels: NDArray[np.intp], cell: NDArray[np.intp] | None
) -> tuple[Floats, Ints | None]:
    """Derivatives by the logit, axes model and row after a first one of length 1; F in units of 1 / GRID.

    The units of the first class are what those of the second leave of GRID, so that they are GRID together.
    """
    p = chance_of(logits)
    residuals = p - levels
    if cell is None:
        return residuals[None], None
    slopes = _slopes(query)
    residuals += p * (1 - p) * (slopes[:, :, 1] - slopes[:, :, 0])[:, cell]
    second = np.trunc(p * GRID).astype(np.int64)
    return residuals[None], np.stack([GRID - second, second])


def _softmax(
    query: FairGradients, logits: Floats, levels: NDArray[np.intp], cell: NDArray[np.intp] | None
) -> tuple[Floats, Ints | None]:
    """Derivatives by the logits, axes class, model and row; F in whole units."""
    p, units = chances_of(logits, len(query.thetas))
    residuals: Floats = p.copy()
    residuals[levels, :, np.arange(len(levels))] -= 1
    if cell is None:
        return residuals, None
    slopes = np.moveaxis(_slopes(query), 2, 0)[:, :, cell]
    mean = np.zeros_like(p[0])
    for share, slope in zip(p, slopes, strict=True):
        mean += share * slope
    residuals += p * (slopes - mean)
    return residuals, units


def added(units: Ints, cell: NDArray[np.intp], cells: int) -> list[Ints]:
    """For each model the sum of F in each cell, classes last; exact, as every row adds at most GRID."""
    classes, models, rows = units.shape
    if cells <= FEW:
        here = np.zeros((rows, cells))
        here[np.arange(rows), cell] = 1.0
        found = (units.reshape(-1, rows).astype(np.float64) @ here).reshape(classes, models, cells)
    else:
        found = np.array([[np.bincount(cell, one, cells) for one in line] for line in units])
    return [np.ascontiguousarray(found[:, m].T).astype(np.int64).ravel() for m in range(models)]
