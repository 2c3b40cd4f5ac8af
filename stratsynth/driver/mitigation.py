"""Exact sums of a step of group-aware gradient descent, under the rules of `stratsynth.driver.sums`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stratsynth.driver import design
from stratsynth.driver.clipping import Floats, Ints, PathRows, Which, into_ball
from stratsynth.driver.models import THETA, logits_of, residuals_of
from stratsynth.questions.queries import Glm
from stratsynth.questions.total import GRID

if TYPE_CHECKING:
    from stratsynth.questions.mitigation import Mitigated


def mitigated(query: Mitigated, rows: PathRows, which: Which) -> list[Ints]:
    """The gradient and the statistics of one piece of the rows.

    Every gradient here is c x, x being a row's whole features and c one number a logit, so clipping it is clipping c to
    the row's reach: the largest whole m with |m x| <= GRID.
    """
    whole, reach = design.whole(query.design, rows, which)
    x = whole.astype(np.float64)
    levels = rows.codes[query.target][which].astype(np.intp)
    residuals = residuals_of(query, rows, which, logits_of(x, query))
    chances = residuals.copy()
    if query.link == "logistic":
        chances[0] += levels
    else:
        chances[levels, np.arange(len(levels))] += 1
    cell = _cells(query, rows, which)
    radius = reach if query.cuts is None else np.floor(reach * query.cuts.ravel()[cell]).astype(np.int64)
    units = GRID // design.UNIT
    c = into_ball(_bent(query, x, chances, residuals, cell) * units / query.clip, radius).astype(np.float64)
    found = [(x.T @ c.T).astype(np.int64).ravel()]
    groups = rows.schema.cells(query.by)
    norms = _length(residuals) * (GRID / design.UNIT / reach)  # |x|, to 2^-16 of itself
    for name in query.statistics:
        if name == "tally":
            counts = np.bincount(2 * cell + (norms > query.threshold), minlength=2 * groups)
            found.append(counts.astype(np.int64) * GRID)
        elif name == "boundary":
            top = 1 - 1 / rows.schema.size(query.target)
            share = np.trunc(np.clip(_boundary(query, chances) / top, 0, 1) * GRID)
            found.append(np.bincount(cell, share, groups).astype(np.int64))  # whole numbers below 2^53: exact
        elif name == "pulls":
            c = into_ball(residuals * units / query.wide, reach).astype(np.float64)
            parts = [(x.T @ np.where(cell == k, c, 0.0).T).astype(np.int64).ravel() for k in range(groups)]
            found.append(np.concatenate(parts))
        else:
            beyond = np.maximum(1 - query.clip / np.maximum(norms, query.clip), 0.0)
            c = into_ball(residuals * beyond * units / (query.wide - query.clip), reach).astype(np.float64)
            found.append((x.T @ c.T).astype(np.int64).ravel())
    return found


def _bent(query: Mitigated, x: Floats, chances: Floats, residuals: Floats, cell: NDArray[np.intp]) -> Floats:
    """The derivative by each logit of everything that is minimised; one line a logit."""
    bent = residuals.copy()
    if query.noise_slopes is not None:
        bent += query.noise_slopes.ravel()[cell] * _boundary_slopes(query, chances)
    if query.clip_slopes is not None:
        along = _along(query, x)
        if query.link == "logistic":
            bent += query.clip_slopes.ravel()[cell] * (chances * (1 - chances) * along)
        else:
            mean = np.zeros(len(x))
            for p, t in zip(chances, along, strict=True):
                mean += p * t
            bent += query.clip_slopes.ravel()[cell] * (chances * (along - mean))
    return bent


def _along(query: Mitigated, x: Floats) -> Floats:
    """The features times the direction, one line a logit: an exact product of whole numbers, as logits are."""
    assert query.direction is not None  # noqa: S101 - the query's check
    unit = 1 / (design.UNIT * THETA)
    return logits_of(x, Glm(query.design, query.target, query.link, query.direction, query.clip)) * unit


def _boundary(query: Mitigated, chances: Floats) -> Floats:
    """1 - sum over classes of p^2."""
    if query.link == "logistic":
        (p,) = chances
        return np.asarray(2 * p * (1 - p))
    found = np.ones(chances.shape[1])
    for p in chances:
        found -= p * p
    return found


def _boundary_slopes(query: Mitigated, chances: Floats) -> Floats:
    """Its derivative by each logit: 2 p_k (sum of p^2 - p_k); of two classes with one logit, 2 (1 - 2 p) p (1 - p)."""
    if query.link == "logistic":
        return 2 * (1 - 2 * chances) * chances * (1 - chances)
    return 2 * chances * (1 - _boundary(query, chances) - chances)


def _length(residuals: Floats) -> Floats:
    """The norm of each column, added up one after another."""
    square = np.zeros(residuals.shape[1])
    for line in residuals:
        square += line * line
    return np.sqrt(square)


def _cells(query: Mitigated, rows: PathRows, which: Which) -> NDArray[np.intp]:
    """The number of each row's group."""
    found = np.zeros(len(rows.codes[query.target][which]), np.intp)
    for name in query.by:
        found = found * rows.schema.size(name) + rows.codes[name][which]
    return found
