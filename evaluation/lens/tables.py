"""INTERNAL. The error of a synthetic table in each group, split into what caused it.

Between the real rows and a release's stand three more tables:

    real        the rows that the release was fitted to
    weighed     real within each group, groups as large as the model without noise has them
    noiseless   rows of the same mechanism fitted without noise
    model       rows of the release's own model, so many that their number no longer matters
    release     its rows

One step each is the part of `weights`, `misfit`, `noise` and `sampling`. The error is the total variation between the
last and the first of them within a group, summed over the cells c of a marginal with q(c) the part of all records that
are of the group and the cell, in units of the group's real share:

    error = 1/2 sum |q_release - q_real| / share
    part  = 1/2 sum sign(q_release - q_real) (q_after - q_before) / share

so parts add up to the error exactly; a negative one makes up for others. Of several marginals it is the mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from stratsynth.evaluation.lens.twins import Fitted
from stratsynth.evaluation.tables import EncodedRows, group_numbers

from stratsynth.models import TableModel
from stratsynth.models.rules import draw_allowed
from stratsynth.strata import Stratum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

PARTS = ("weights", "misfit", "noise", "sampling")
CAUSES = {
    "weights": ("the group's size in the release", "other shares of groups, or a source nearer to the data"),
    "misfit": ("what the mechanism leaves out even without noise", "a workload or cliques that hold these columns"),
    "noise": ("privacy noise", "merging the group, pooling strata, fewer columns, or more budget"),
    "sampling": ("the number of released rows", "more rows of the release, which cost nothing"),
}
"""What each part is, and what moves it."""
DRAWN = 200_000
"""Rows drawn of a model, at the least, to stand for it."""
MOST = 60
"""The most marginals of a width; the same ones every time."""


@dataclass(frozen=True, eq=False)
class Split:
    """The errors and their parts: one line for each group and a last one for everybody."""

    error: Floats
    parts: Mapping[str, Floats]
    bound: Floats
    """What the drawn rows leave uncertain in the parts of misfit and noise: 1.96 standard deviations."""


def drawn(model: TableModel, rows: int, seed: int) -> EncodedRows:
    """Rows of a model, structural rules kept."""
    rng = np.random.default_rng(seed)
    codes = draw_allowed(model.schema, rows, rng, lambda k, moved: model.counted(k, rng, {}, moved))
    return EncodedRows(model.schema, codes, {}, rows)


def marginals(schema: Schema, by: Sequence[str], width: int) -> list[tuple[str, ...]]:
    """Sets of columns besides those of the groups, at most `MOST` of them."""
    columns = [name for name in schema.names if name not in by]
    every = list(combinations(columns, min(width, len(columns))))
    chosen = np.random.default_rng(5).permutation(len(every))[:MOST] if len(every) > MOST else range(len(every))
    return [every[i] for i in sorted(chosen)]


def split(
    real: EncodedRows, noiseless: EncodedRows, model: EncodedRows, release: EncodedRows, by: Sequence[str], width: int
) -> Split:
    """The parts of a release's error.

    Args:
        real: The rows that it was fitted to.
        noiseless: Many rows of the mechanism without noise.
        model: Many rows of the release's model.
        release: Its rows.
        by: Columns whose crossing makes the groups; none for everybody alone.
        width: The number of columns of a marginal.
    """
    found = [_of_clique([real, noiseless, model, release], by, clique) for clique in marginals(real.schema, by, width)]
    error, parts, bound = (np.mean([one[i] for one in found], axis=0) for i in range(3))
    return Split(error, dict(zip(PARTS, parts, strict=True)), bound)


def _of_clique(
    tables: Sequence[EncodedRows], by: Sequence[str], clique: Sequence[str]
) -> tuple[Floats, Floats, Floats]:
    """Errors, parts and bounds of one marginal."""
    real, noiseless, model, release = (_shares(table, by, clique) for table in tables)
    sizes, now = real.sum(axis=1, keepdims=True), noiseless.sum(axis=1, keepdims=True)
    # a group of no real rows has no shape of its own: it is given that of the mechanism without noise
    weighed = np.where(sizes > 0, real * now / np.where(sizes > 0, sizes, 1), noiseless)
    chain = [real, weighed, noiseless, model, release]
    # without groups, the one line is everybody's already
    chain = [np.vstack([one, one.sum(axis=0)]) if by else one for one in chain]
    scale = chain[0].sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        sign = np.sign(chain[4] - chain[0])
        error = np.where(scale > 0, np.abs(chain[4] - chain[0]).sum(axis=1) / 2 / scale, np.nan)
        parts = np.array([
            np.where(scale > 0, (sign * (after - before)).sum(axis=1) / 2 / scale, np.nan)
            for before, after in pairwise(chain)
        ])  # fmt: skip
        spread = sum(
            ((one * sign**2).sum(axis=1) - (one * sign).sum(axis=1) ** 2) / table.rows
            for one, table in ((chain[2], tables[1]), (chain[3], tables[2]))
        )
        bound = np.where(scale > 0, 1.96 * np.sqrt(np.maximum(spread, 0)) / 2 / scale, np.nan)
    return error, parts, bound


def _shares(table: EncodedRows, by: Sequence[str], clique: Sequence[str]) -> Floats:
    """The part of all rows in each group and cell."""
    schema = table.schema
    cells, groups = math.prod(schema.size(name) for name in clique), schema.cells(tuple(by))
    cell = group_numbers(table, by)
    for name in clique:
        cell = cell * schema.size(name) + table.codes[name]
    counts = np.bincount(cell, minlength=groups * cells).reshape(groups, cells)
    return counts / max(table.rows, 1)


def by_sigma(fitted: Fitted, real: EncodedRows, by: Sequence[str], groups: Sequence[Stratum]) -> Floats:
    """What the certificate's sigmas alone would leave in each group's measured tables of one column.

    Half the sum over cells of the mean of |N(0, sigma^2)|, over the group's real rows; the mean over tables. That is
    before post-processing, which knows of totals and of other tables and leaves less. NaN where no such table was asked
    of just this group.
    """
    sizes = np.append(np.bincount(group_numbers(real, by), minlength=len(groups)), real.rows) if by else [real.rows]
    at: dict[Any, int] = {(): len(sizes) - 1} | ({(group,): i for i, group in enumerate(groups)} if by else {})
    found: list[list[float]] = [[] for _ in sizes]
    for measured in fitted.measurements:
        where = at.get(measured.path)
        if where is not None and len(measured.table.clique) == 1 and sizes[where]:
            noise = measured.table.values.size * measured.table.sigma * math.sqrt(2 / math.pi) / 2
            found[where].append(noise / float(sizes[where]))
    return np.array([np.mean(one) if one else np.nan for one in found])
