"""Exact sums of `AttributeGradients`: what a secret group adds to gradients, and to probabilities by cell.

The rules are those of `stratsynth.driver.sums`: floats one element at a time, integers where rows are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.driver import design
from stratsynth.driver.clipping import Floats, Ints, Which, into_ball
from stratsynth.driver.fairness import added, cells_of, chance_of, chances_of
from stratsynth.driver.models import logits_of
from stratsynth.questions.attribute import reach as reach_of
from stratsynth.questions.total import GRID
from stratsynth.schema.rows import CodedRows

if TYPE_CHECKING:
    from stratsynth.questions.attribute import AttributeGradients

SHRUNK = 1 - 1e-12
"""Factors are this much smaller than they are, which is more than their rounding."""


def attribute_gradients(query: AttributeGradients, rows: CodedRows, which: Which) -> list[Ints]:
    """A row's part of a gradient is c x, x being its whole features and c one number a class."""
    whole, reach = design.whole(query.design, rows, which)
    x = whole.astype(np.float64)
    cell = cells_of(query, rows, which)
    models, groups = len(query.thetas), rows.schema.cells(query.groups)
    logits, contrasts = logits_of(x, query), _contrasts(query, groups)[:, cell]
    residuals, units = _logistic(logits, contrasts) if query.link == "logistic" else _softmax(logits, contrasts)
    axes = residuals.shape[0]
    c = into_ball(
        residuals.reshape(axes, -1) * (GRID // design.UNIT) / query.clip, np.tile(reach, models)
    ).astype(np.float64)  # fmt: skip
    columns = np.moveaxis(c.reshape(axes, models, -1), 0, 1).reshape(models * axes, -1)
    gradients = (columns @ x).astype(np.int64).reshape(models, axes, -1)
    sums = _by_cell(units, cell, groups, rows.schema.cells(query.by))
    return [block for one, other in zip(gradients, sums, strict=True) for block in (one.T.ravel(), other)]


def _contrasts(query: AttributeGradients, groups: int) -> Floats:
    """The slopes less their mean over groups: one line a model, a column a cell, and classes last."""
    slopes = query.slopes.reshape(len(query.slopes), groups, -1, query.slopes.shape[-1])
    found: Floats = slopes - slopes.mean(axis=1, keepdims=True)
    return found.reshape(len(slopes), -1, slopes.shape[-1])


def _logistic(logits: Floats, contrasts: Floats) -> tuple[Floats, Ints]:
    """Derivatives by the logit, and F in units of 1 / GRID, which are GRID together."""
    p = chance_of(logits)
    second = np.trunc(p * GRID).astype(np.int64)
    residuals: Floats = p * (1 - p) * (contrasts[:, :, 1] - contrasts[:, :, 0])
    return residuals[None], np.stack([GRID - second, second])


def _softmax(logits: Floats, contrasts: Floats) -> tuple[Floats, Ints]:
    """Derivatives by the logits, axes class, model and row; F in whole units, at most GRID together."""
    p, units = chances_of(logits, len(contrasts))
    steep = np.moveaxis(contrasts, 2, 0)
    mean = np.zeros_like(p[0])
    for share, slope in zip(p, steep, strict=True):
        mean += share * slope
    return p * (steep - mean), units


def _by_cell(units: Ints, cell: Ints, groups: int, cells: int) -> list[Ints]:
    """For each model the sums of F at the own group less F / K at each, in units of the block's clip over GRID.

    With R the block's clip, a row of units u adds trunc(u R) at its own group, and -trunc(u / (K R)) at each other
    one. Its squared length, R^2 + (K - 1) / (K R)^2 = 1 times that of u, is checked in integers; a row that fails
    would add nothing.
    """
    far = reach_of(groups)
    own = np.trunc(units * (far * SHRUNK)).astype(np.int64)
    other = np.trunc(units * (SHRUNK / (groups * far))).astype(np.int64)
    fits = (own * own).sum(axis=0) + (groups - 1) * (other * other).sum(axis=0) <= GRID * GRID
    own, other = own * fits, other * fits
    found = []
    for mine, theirs in zip(added(own, cell, cells), added(other, cell, cells), strict=True):
        at = theirs.reshape(groups, -1)
        found.append(mine - (at.sum(axis=0, keepdims=True) - at).ravel())
    return found
