"""A graphical model refitted to tables with fresh noise: the spread of what is drawn from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.adapters.engine.model import Graphical
from stratsynth.adapters.engine.solve import MeasuredTable, Problem, solve
from stratsynth.adapters.engine.structure import Clique, forbidden
from stratsynth.errors import Unsupported
from stratsynth.mechanisms.known import Known

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.models import Mixture
    from stratsynth.models.base import MeasuredCounts

PRIOR = 1.0
"""Weight of the pull towards uniform in every refit, in records: the mechanisms' default."""
SURER = 16.0
"""The public shares' sigma is at least the smallest table sigma divided by this, as in every final fit."""


def redrawn(
    model: Graphical, tables: Sequence[MeasuredCounts], rows: float, times: int, rng: Generator
) -> list[Graphical]:
    """Return a list of `times` `Graphical`s, each fitted to `rows` x its own tables, plus noise by `rng`.

    The tables are of the columns in `tables`, triples (columns, counts, sigma) of which the counts are not used. Those
    outside the model's cliques are left out; see `TableModel.redrawn`.
    """
    sizes = tuple((name, model.schema.size(name)) for name in model.schema.names)
    held = [set(clique) for clique in model.tree.cliques]
    kept = [(clique, sigma) for clique, _, sigma in tables if any(set(clique) <= inside for inside in held)]
    rules = {
        clique: cells
        for clique, cells in forbidden(model.schema).items()
        if any(set(clique) <= inside for inside in held)
    }
    true = [rows * marginal for marginal in model.marginals([clique for clique, _ in kept])]
    problems = []
    for _ in range(times):
        noisy = tuple(
            MeasuredTable(clique, np.rint(counted + rng.normal(0, sigma, counted.shape)).astype(np.int64), sigma)
            for (clique, sigma), counted in zip(kept, true, strict=True)
        )
        problems.append(Problem(sizes, noisy, max(rows, 1.0), rules, prior=PRIOR))
    return [Graphical.of(model.schema, solution) for solution in solve(problems)]


def redrawn_mixed(
    mixture: Mixture, tables: Sequence[MeasuredCounts], rows: float, times: int, rng: Generator
) -> list[Mixture]:
    """Return a list of `times` mixtures: `mixture` refitted to tables of `rows` rows that `rng` redraws from it.

    `tables` are (columns, counts, sigma), whose counts are not used. One model of everybody is fitted and conditioned
    on each group, since the noise is common to all groups. Unsupported for merged strata.
    """
    schema, strata = mixture.schema, tuple(mixture.parts)
    if any(stratum.is_merge for stratum in strata):
        raise Unsupported("samples: one model of everybody is not taken apart by merged levels again.")
    by = tuple(name for name in schema.names if name in strata[0].levels)
    sizes = tuple((name, schema.size(name)) for name in schema.names)
    inside = [{*by, *clique} for clique in _parts(mixture)[0].tree.cliques]
    kept = [(clique, sigma) for clique, _, sigma in tables if any(set(clique) <= held for held in inside)]
    rules = {clique: cells for clique, cells in forbidden(schema).items() if any(set(clique) <= h for h in inside)}
    shares, *true = _marginals(mixture, [by, *(clique for clique, _ in kept)])
    # weighted as a public table is in the first fit; redrawn counts centre on these shares, so none contradicts them
    least = min((sigma for _, sigma in kept), default=0.0) / SURER
    public = MeasuredTable(by, rows * shares, max(least, math.sqrt(Known(by, shares).variance(by, rows))))
    problems = []
    for _ in range(times):
        noisy = [
            MeasuredTable(clique, np.rint(rows * one + rng.normal(0, sigma, one.shape)).astype(np.int64), sigma)
            for (clique, sigma), one in zip(kept, true, strict=True)
        ]
        problems.append(Problem(sizes, (public, *noisy), rows, rules, prior=PRIOR))
    again = [Graphical.of(schema, solution) for solution in solve(problems)]
    return [
        replace(
            mixture,
            parts={group: whole.conditioned(part.schema, group.codes(schema)) for group, part in mixture.parts.items()},
        )
        for whole in again
    ]


def _parts(mixture: Mixture) -> list[Graphical]:
    """Return a list of the mixture's parts that are graphical models."""
    return [part for part in mixture.parts.values() if isinstance(part, Graphical)]


def _marginals(mixture: Mixture, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
    """Return a list, for each of `cliques` the mixture's array of cell probabilities, an axis a column.

    A clique may have grouping columns.
    """
    schema = mixture.schema
    found = [np.zeros(schema.shape(clique)) for clique in cliques]
    for stratum, part in zip(mixture.parts, _parts(mixture), strict=True):
        numbers = stratum.codes(schema)
        rest = [tuple(name for name in clique if name not in numbers) for clique in cliques]
        some = [clique for clique in dict.fromkeys(rest) if clique]
        inside = dict(zip(some, part.marginals(some), strict=True))
        for clique, other, table in zip(cliques, rest, found, strict=True):
            at = tuple(numbers[name][0] if name in numbers else slice(None) for name in clique)
            table[at] += mixture.weights[stratum] * (inside[other] if other else 1.0)
    return found
