"""INTERNAL. Error of a synthetic table in each group, split by cause.

Between the rows of a file and those of a release stand these tables:

    written     the rows as they stand in their file
    real        these rows as the schema reads them: clipped, recoded or left out if outside of it
    weighed     real within each group, groups as large as the model without noise has them
    noiseless   rows of the same mechanism fitted without noise, structural rules not enforced
    model       rows of the release's own model likewise, so many that their number does not matter
    ruled       rows of the release's model with rules enforced
    rounded     ruled within each group, groups of as many rows as the release has
    release     its rows

One step each is the part of `schema`, `weights`, `misfit`, `noise`, `rules`, `rounding` and `sampling`. The error is
the total variation between the last and the first of them within a group, summed over the cells c of a marginal with
q(c) the fraction of all records in the group and the cell, in units of the group's share in the file:

    error = 1/2 sum |q_release - q_written| / share
    part  = 1/2 sum sign(q_release - q_written) (q_after - q_before) / share

so parts add up to the error exactly; a negative one compensates others. Values outside the schema are in a cell of
their own, which is empty in a release. With several marginals it is the mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.lens.twins import Fitted
from stratsynth.evaluation.tables import EncodedRows, group_numbers
from stratsynth.models import TableModel
from stratsynth.models.mixture import Mixture
from stratsynth.models.rules import draw_allowed
from stratsynth.questions import NoisyTable
from stratsynth.strata import Stratum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

PARTS = ("schema", "weights", "misfit", "noise", "rules", "rounding", "sampling")
CAUSES = {
    "schema": (
        "values outside the schema, which are clipped, recoded or left out",
        "wider bounds, and levels for such values",
    ),
    "weights": ("the group's size in the release", "other shares of groups, or a source nearer to the data"),
    "misfit": (
        "what the mechanism leaves out even without noise",
        "a workload or cliques that hold these columns, or strata of the groups",
    ),
    "noise": ("privacy noise", "merging the group, pooling strata, fewer columns, or more budget"),
    "rules": (
        "rows that break a structural rule, which are drawn again",
        "a mechanism or workload that holds the rule's columns together, or another rule",
    ),
    "rounding": (
        "the group's number of rows in the release: rounded if it is a stratum, else random",
        "more rows of the release, which cost nothing, or strata of the groups",
    ),
    "sampling": ("which rows were drawn of the group", "more rows of the release, which cost nothing"),
}
"""Part of the error -> (cause, remedy)."""
DRAWN = 200_000
"""Smallest number of rows drawn of a model to represent it."""
MOST = 60
"""Largest number of marginals of a width, a fixed choice."""


@dataclass(frozen=True, eq=False)
class ErrorParts:
    """Errors and their parts: arrays over the groups, then everybody."""

    error: Floats
    parts: Mapping[str, Floats]
    bound: Floats
    """Half width of the 95 % interval due to the drawn rows, for the parts misfit, noise and rules."""


@dataclass(frozen=True, eq=False)
class TableChain:
    """Tables between a file and a release."""

    written: EncodedRows
    """Rows as `stratsynth.evaluation.lens.outside:as_written` reads them."""
    real: EncodedRows
    noiseless: EncodedRows
    model: EncodedRows
    ruled: EncodedRows
    release: EncodedRows


def drawn(model: TableModel, rows: int, seed: int, *, rules: bool = True) -> EncodedRows:
    """EncodedRows, `rows` of them, drawn from a TableModel by a seed.

    Structural rules are enforced unless `rules` is False.
    """
    rng = np.random.default_rng(seed)
    if rules:
        codes = draw_allowed(model.schema, rows, rng, lambda k, moved: model.counted(k, rng, {}, moved))
    else:
        codes = _free(model).sample(rows, rng)
    return EncodedRows(model.schema, codes, {}, rows)


def _free(model: TableModel) -> TableModel:
    """Return a model that draws as the given one but for structural rules: a copy of a mixture, another itself."""
    if not isinstance(model, Mixture):
        return model
    parts = {stratum: _free(part) for stratum, part in model.parts.items()}
    return Mixture(replace(model.schema, rules=()), parts, model.weights)


def marginals(schema: Schema, by: Sequence[str], width: int) -> list[tuple[str, ...]]:
    """List of tuples, all sets of `width` columns of a schema, without the groups' columns `by`.

    If there are more than `MOST`, a fixed choice of them.
    """
    columns = [name for name in schema.names if name not in by]
    every = list(combinations(columns, min(width, len(columns))))
    chosen = np.random.default_rng(5).permutation(len(every))[:MOST] if len(every) > MOST else range(len(every))
    return [every[i] for i in sorted(chosen)]


def split(chain: TableChain, by: Sequence[str], width: int) -> ErrorParts:
    """Return ErrorParts, a release's error in each group and for everybody split into its parts, by cause.

    Args:
        chain: TableChain, the tables between the file and the release.
        by: Columns whose crossing makes the groups; empty for everybody alone.
        width: Number of columns of a marginal.
    """
    found = [_of_clique(chain, by, clique) for clique in marginals(chain.real.schema, by, width)]
    error, parts, bound = (np.mean([one[i] for one in found], axis=0) for i in range(3))
    return ErrorParts(error, dict(zip(PARTS, parts, strict=True)), bound)


def _of_clique(chain: TableChain, by: Sequence[str], clique: Sequence[str]) -> tuple[Floats, Floats, Floats]:
    """Three arrays of the marginal `clique`, by groups of `by`, then everybody: errors, parts, bounds; NaN if empty.

    Errors are total variations of release and file, the ends of the TableChain; parts have a line for each step of the
    chain, are signed and add up to them; bounds are half widths of 95 % intervals, by chance in the rows drawn of
    models.
    """
    given = (chain.written, chain.real, chain.noiseless, chain.model, chain.ruled, chain.release)
    written, real, noiseless, model, ruled, release = (_shares(table, by, clique) for table in given)
    weighed, rounded = _resized(real, noiseless), _resized(ruled, release)
    tables = [written, real, weighed, noiseless, model, ruled, rounded, release]
    # the last line holds rows of no declared group, which count for everybody alone; without groups it is the only line
    tables = [np.vstack([one[:-1], one.sum(axis=0)]) if by else one for one in tables]
    scale = tables[0].sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        sign = np.sign(tables[-1] - tables[0])
        error = np.where(scale > 0, np.abs(tables[-1] - tables[0]).sum(axis=1) / 2 / scale, np.nan)
        parts = np.array(
            [
                np.where(scale > 0, (sign * (after - before)).sum(axis=1) / 2 / scale, np.nan)
                for before, after in pairwise(tables)
            ]
        )
        # variance of the mean sign under multinomial sampling of each drawn table
        spread = sum(
            ((one * sign**2).sum(axis=1) - (one * sign).sum(axis=1) ** 2) / drawn.rows
            for one, drawn in zip(tables[3:6], (chain.noiseless, chain.model, chain.ruled), strict=True)
            if drawn is not chain.ruled or chain.ruled is not chain.model
        )
        bound = np.where(scale > 0, 1.96 * np.sqrt(np.maximum(spread, 0)) / 2 / scale, np.nan)
    return error, parts, bound


def _resized(shapes: Floats, sizes: Floats) -> Floats:
    """Array (groups, cells): rows of the array `shapes`, scaled to the sums of the rows of `sizes`, an array alike.

    A row without sum is that of `sizes`.
    """
    now, then = sizes.sum(axis=1, keepdims=True), shapes.sum(axis=1, keepdims=True)
    return np.where(then > 0, shapes * now / np.where(then > 0, then, 1), sizes)


def _shares(table: EncodedRows, by: Sequence[str], clique: Sequence[str]) -> Floats:
    """Array (groups of columns `by`, cells of columns `clique`): shares of all encoded rows of a `table`.

    The last group, and a last level of each column, are rows outside the schema.
    """
    schema = table.schema
    group = np.zeros(table.rows, np.int64)
    known = np.ones(table.rows, bool)
    for name in by:
        group = group * schema.size(name) + table.codes[name]
        known &= table.codes[name] < schema.size(name)
    groups, cells = schema.cells(tuple(by)), math.prod(schema.size(name) + 1 for name in clique)
    lines = groups + 1 if by else 1
    cell = np.where(known, group, groups) if by else group
    for name in clique:
        cell = cell * (schema.size(name) + 1) + table.codes[name]
    counts = np.bincount(cell, minlength=lines * cells).reshape(lines, cells)
    return counts / max(table.rows, 1)


def by_sigma(fitted: Fitted, real: EncodedRows, by: Sequence[str], groups: Sequence[Stratum]) -> Floats:
    """Array over groups, then everybody: mean error of the noise alone, in total variation, expected by sigma.

    It is over the one-way tables in `fitted` measured of just this group, one of the strata `groups`; NaN if none was.
    Half the sum over cells of E|N(0, sigma^2)|, divided by the group's rows in encoded rows `real`; that is before
    post-processing, which uses totals and other tables and leaves less.
    """
    sizes = np.append(np.bincount(group_numbers(real, by), minlength=len(groups)), real.rows) if by else [real.rows]
    at: dict[Any, int] = {(): len(sizes) - 1} | ({(group,): i for i, group in enumerate(groups)} if by else {})
    found: list[list[float]] = [[] for _ in sizes]
    for measured in fitted.measurements:
        where = at.get(measured.path) if isinstance(measured.table, NoisyTable) else None
        if where is not None and len(measured.table.clique) == 1 and sizes[where]:
            # E|N(0, sigma^2)| = sigma sqrt(2 / pi) for each cell
            noise = measured.table.values.size * measured.table.sigma * math.sqrt(2 / math.pi) / 2
            found[where].append(noise / float(sizes[where]))
    return np.array([np.mean(one) if one else np.nan for one in found])
