"""Exact sums of a step of group-aware gradient descent, under the rules of `stratsynth.driver.sums`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stratsynth.driver.bent import Layers, Regression, boundary
from stratsynth.driver.clipping import Floats, Ints, Which
from stratsynth.questions.total import GRID
from stratsynth.schema.rows import CodedRows

if TYPE_CHECKING:
    from stratsynth.questions.mitigation import Mitigated


def mitigated(query: Mitigated, rows: CodedRows, which: Which) -> list[Ints]:
    """The gradient and the statistics of one piece of the rows."""
    model = (Layers if query.link == "network" else Regression)(query, rows, which)
    cell, groups = _cells(query, rows, which), rows.schema.cells(query.by)
    bent = model.bent(_of(query.noise_slopes, cell), _of(query.clip_slopes, cell))
    found = [model.total(model.whole(bent, query.clip, _of(query.cuts, cell)))]
    norms = model.norms
    for name in query.statistics:
        if name == "tally":
            counts = np.bincount(2 * cell + (norms > query.threshold), minlength=2 * groups)
            found.append(counts.astype(np.int64) * GRID)
        elif name == "boundary":
            top = 1 - 1 / rows.schema.size(query.target)
            share = np.trunc(np.clip(boundary(model.chances) / top, 0, 1) * GRID)
            found.append(np.bincount(cell, share, groups).astype(np.int64))  # whole numbers below 2^53: exact
        elif name == "pulls":
            pulls = model.whole(model.plain, query.wide)
            found.append(np.concatenate([model.total(pulls, cell == k) for k in range(groups)]))
        else:
            beyond = np.maximum(1 - query.clip / np.maximum(norms, query.clip), 0.0)
            found.append(model.total(model.whole(model.plain * beyond, query.wide - query.clip)))
    return found


def _of(by_group: Floats | None, cell: NDArray[np.intp]) -> Floats | None:
    """Each row's number of those of its group."""
    return None if by_group is None else np.asarray(by_group.ravel()[cell])


def _cells(query: Mitigated, rows: CodedRows, which: Which) -> NDArray[np.intp]:
    """The number of each row's group."""
    found = np.zeros(len(rows.codes[query.target][which]), np.intp)
    for name in query.by:
        found = found * rows.schema.size(name) + rows.codes[name][which]
    return found
